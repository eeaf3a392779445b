"""Cut a text before it is tokenized, so that a long text whose first tokens are read is not tokenized to its end.

A text is cut only at a space that every tokenizer described here splits at, between two characters that no normalizer
joins with a space. So the tokens before the cut do not depend on the text after it. Other tokenizers read whole texts.
"""

from __future__ import annotations

import json
from typing import Any
from unicodedata import category

# change or drop single characters, or combine letters with the marks that follow them: nothing across a space
_LOCAL_NORMALIZERS = {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "Prepend"}
_LOCAL_NORMALIZERS |= {"Strip", "StripAccents"}
_SPLITTERS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}  # at any whitespace
_MAY_PRECEDE = {"Digits", "Punctuation"}  # keep the spaces for a splitter that follows


def cut_text(text: str, size: int) -> str:
    """Return at most `size` characters of a text, up to a space where it may be cut; the whole text if there is none.

    Only the second half of these characters is searched for such a space.
    """
    if len(text) <= size:
        return text
    place = text.rfind(" ", size // 2, size)
    while place > 0:
        if _is_plain(text[place - 1]) and _is_plain(text[place + 1]):
            return text[:place]
        place = text.rfind(" ", size // 2, place)
    return text


def _is_plain(character: str) -> bool:
    """Return whether no normalizer joins the character with a space beside it: marks, for example, are not plain."""
    return "!" <= character <= "~" or category(character) in ("Ll", "Lu")


def may_cut(inner: Any) -> bool:
    """Return whether a tokenizer gives the same tokens before a cut of `cut_text` as it gives for the whole text."""
    if not inner.is_fast or inner.truncation_side != "right":
        return False
    backend = inner.backend_tokenizer
    try:
        normalizer, splitter = (
            None if part is None else json.loads(part.__getstate__())
            for part in (backend.normalizer, backend.pre_tokenizer)
        )
    except Exception:  # a part written in Python has no state
        return False
    return (
        _is_local(normalizer)
        and _splits(splitter)
        and not any(_has_space(token.content) for token in backend.get_added_tokens_decoder().values())
    )


def _has_space(text: str) -> bool:
    return any(character.isspace() for character in text)


def _is_local(normalizer: dict[str, Any] | None) -> bool:
    """Return whether a normalizer, as stored, changes each word by itself."""
    if normalizer is None or normalizer["type"] in _LOCAL_NORMALIZERS:
        return True
    if normalizer["type"] == "Sequence":
        return all(_is_local(part) for part in normalizer["normalizers"])
    if normalizer["type"] == "Replace":
        pattern, content = normalizer["pattern"], normalizer["content"]
        if "String" in pattern:
            return not _has_space(pattern["String"]) and not _has_space(content)
        return bool(pattern == {"Regex": " {2,}"})  # of sentencepiece; a text is never cut at several spaces
    return False


def _splits(splitter: dict[str, Any] | None) -> bool:
    """Return whether a pre-tokenizer, as stored, splits at every single space between two words."""
    if splitter is None:
        return False
    if splitter["type"] == "Sequence":
        rest = [part for part in splitter["pretokenizers"] if part["type"] not in _MAY_PRECEDE]
        return bool(rest) and _splits(rest[0])  # the others see words only
    if splitter["type"] == "ByteLevel":
        return bool(splitter.get("use_regex", True))
    if splitter["type"] == "Metaspace":
        return bool(splitter.get("split", True))
    return splitter["type"] in _SPLITTERS
