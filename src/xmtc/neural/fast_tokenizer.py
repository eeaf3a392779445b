"""FastTokenizer: read a stored tokenizer with the `tokenizers` package; needs neither torch nor transformers."""

from __future__ import annotations

from typing import Any


class FastTokenizer:
    """A tokenizer.json as stored in an exported model; `Tokenizer` calls it like a tokenizer of transformers.

    max_length: truncates texts, including special tokens; None does not truncate.
    """

    is_fast = True

    def __init__(self, content: str, max_length: int | None) -> None:
        from tokenizers import Tokenizer as Backend

        self.backend_tokenizer = Backend.from_str(content)
        if max_length is not None:
            self.backend_tokenizer.enable_truncation(max_length)

    def __call__(self, texts: str | list[str], *, add_special_tokens: bool = True, **_: object) -> dict[str, Any]:
        """Return the ids and offsets of tokens; a list of each for a list of texts."""
        one = isinstance(texts, str)
        batch = [texts] if one else texts
        found = self.backend_tokenizer.encode_batch(batch, add_special_tokens=add_special_tokens)
        ids, places = [each.ids for each in found], [each.offsets for each in found]
        return {"input_ids": ids[0] if one else ids, "offset_mapping": places[0] if one else places}
