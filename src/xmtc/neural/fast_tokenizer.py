"""FastTokenizer: read a stored tokenizer with the `tokenizers` package; needs neither torch nor transformers."""

from __future__ import annotations

from typing import Any


class FastTokenizer:
    """A tokenizer.json as stored in an exported model; `Tokenizer` calls it like a tokenizer of transformers.

    max_length: truncates texts, including special tokens; None does not truncate.
    """

    is_fast = True
    truncation_side = "right"

    def __init__(self, content: str, max_length: int | None) -> None:
        from tokenizers import Tokenizer as Backend

        self.backend_tokenizer = Backend.from_str(content)
        if max_length is not None:
            self.backend_tokenizer.enable_truncation(max_length)

    def __call__(
        self,
        texts: str | list[str],
        *,
        add_special_tokens: bool = True,
        return_offsets_mapping: bool = False,
        **_: object,
    ) -> dict[str, Any]:
        """Return the ids of tokens, and their offsets if wanted; a list of each for a list of texts."""
        one = isinstance(texts, str)
        batch = [texts] if one else texts
        backend = self.backend_tokenizer
        encode = backend.encode_batch if return_offsets_mapping else backend.encode_batch_fast  # offsets take time
        encoded = encode(batch, add_special_tokens=add_special_tokens)
        found: dict[str, list[Any]] = {"input_ids": [each.ids for each in encoded]}
        if return_offsets_mapping:
            found["offset_mapping"] = [each.offsets for each in encoded]
        return {name: rows[0] for name, rows in found.items()} if one else dict(found)
