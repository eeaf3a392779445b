"""Tokenizer: texts → token ids, truncated or split into windows; TokenLayout: how an encoder expects padding.

Needs neither torch nor transformers: an exported model reads its tokenizer with only the `tokenizers` package.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from xmtc.core.errors import ModelError
from xmtc.neural.prefix import cut_text, may_cut
from xmtc.neural.windows import Choice, cut_windows

T = TypeVar("T")
_PER_TOKEN = 6  # characters of a text that are tokenized at first, per token that is read


@dataclass(frozen=True)
class TokenLayout:
    """The sequence layout of a model family."""

    pad_id: int
    pad_left: bool = False
    cls_last: bool = False
    segments: bool = False  # whether the network takes segment ids
    cls_segment: int = 0  # XLNet's [CLS] has its own segment
    pad_segment: int = 0
    window: int | None = None  # tokens per window, if a text may have several, concatenated


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """A family's tokenizer, which truncates texts at max_length tokens, or splits them into windows of that length."""

    inner: Any
    max_length: int
    windows: int = 1  # maximum per text
    choice: Choice = "first"

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, including special tokens; truncation keeps the last special token.

        If there are several windows, they are concatenated, each with its special tokens.
        """
        if not self._may_cut:
            return self._read(texts)
        wanted = self.windows * self.max_length  # a text that gives fewer tokens is tokenized again, with more of it
        found: list[list[int]] = [[]] * len(texts)
        left, size = list(range(len(texts))), _PER_TOKEN * wanted
        while left:
            cut = {i: cut_text(texts[i], size) for i in left}
            for i, ids in zip(left, self._read(list(cut.values())), strict=True):
                found[i] = ids
            left = [i for i in left if len(found[i]) < wanted and len(cut[i]) < len(texts[i])]
            size *= 4
        return found

    @cached_property
    def _may_cut(self) -> bool:
        """Whether the tokens that are read are the first ones, and do not depend on the rest of the text."""
        return (self.windows == 1 or self.choice == "first") and may_cut(self.inner)

    def _read(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize whole texts, and keep the tokens that are read."""
        if self.windows > 1:
            whole = self.inner(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
            before, after = self._special_ids()
            return [self._cut(ids, before, after) for ids in whole]
        found: list[list[int]] = self.inner(
            list(texts),
            truncation=True,
            max_length=self.max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        return found

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) of each token in the text, in characters; special tokens get (0, 0)."""
        if not self.inner.is_fast:
            raise ModelError("this encoder's tokenizer gives no positions of tokens, so words have no weights")
        if self.windows > 1:
            whole = self.inner(text, add_special_tokens=False, verbose=False, return_offsets_mapping=True)
            before, after = ([(0, 0)] * len(special) for special in self._special_ids())
            return self._cut([(int(start), int(end)) for start, end in whole["offset_mapping"]], before, after)
        found = self.inner(text, truncation=True, max_length=self.max_length, return_offsets_mapping=True)
        return [(int(start), int(end)) for start, end in found["offset_mapping"]]

    def _cut(self, tokens: Sequence[T], before: Sequence[T], after: Sequence[T]) -> list[T]:
        """Return a text's windows, concatenated, each with its special tokens."""
        size = self.max_length - len(before) - len(after)
        parts = cut_windows(len(tokens), size, self.windows, self.choice)
        return list(chain.from_iterable([*before, *tokens[start:stop], *after] for start, stop in parts))

    def _special_ids(self) -> tuple[list[int], list[int]]:
        """Return the special tokens before and after a text."""
        bare, whole = (self.inner("a", add_special_tokens=flag)["input_ids"] for flag in (False, True))
        n_before = next(i for i in range(len(whole)) if whole[i : i + len(bare)] == bare)
        return whole[:n_before], whole[n_before + len(bare) :]

    def fingerprint(self) -> str:
        """Return a string that changes whenever the ids could change."""
        lengths = str(self.max_length) + (f"|{self.windows}|{self.choice}" if self.windows > 1 else "")
        if not self.inner.is_fast:
            return f"{json.dumps(self.inner.get_vocab(), sort_keys=True)}|{lengths}"
        state = json.loads(self.inner.backend_tokenizer.to_str())
        state.update(truncation=None, padding=None)  # these store the arguments of the last call
        return f"{json.dumps(state, sort_keys=True)}|{lengths}"
