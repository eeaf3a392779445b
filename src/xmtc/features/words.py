"""Words: the most frequent words of a corpus as numbers, and their initial vectors.

Input: texts. Output: rows of word numbers, for networks that read words instead of a pretrained encoder's tokens. 0 is
padding, 1 an out-of-vocabulary word (or a text without words), 2 a number. Independent of networks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.cache import key_of
from xmtc.core.config import Settings
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.progress import SILENT, Progress
from xmtc.core.texts import Texts

Embed = Callable[[list[str]], NDArray[np.float32]]

PAD, UNKNOWN, NUMBER = 0, 1, 2
N_SPECIAL = 3

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(rf"{_NUMBER.pattern}(?!\w)|\w+")
_NO_WORDLLAMA = "words.vectors = wordllama needs wordllama; install it with: pip install wordllama"
_LARGEST = float(np.finfo(np.float32).max)
_BATCH = 1000  # words per call for vectors


class WordsConfig(Settings):
    """Which words are read, and their initial vectors."""

    size: int = Field(
        80_000, ge=1, le=10_000_000, description="number of words with a vector, the most frequent of train"
    )
    max_words: int = Field(300, ge=1, le=1_000_000, description="maximum words read per text")
    vectors: str = Field(
        "random",
        description="random, wordllama, encoder (the word embeddings of encoder.name), the path of a text file (a word "
        "and its numbers per line, like GloVe's), or of a folder with vocab.npy and emb_init.npy (AttentionXML's)",
    )
    width: int = Field(512, ge=1, le=65_536, description="width of random vectors")


@dataclass(frozen=True, eq=False)
class Words:
    """A vocabulary: its word i has the number N_SPECIAL + i, the most frequent first."""

    vocabulary: Texts
    max_words: int

    @classmethod
    def fit(cls, texts: Iterable[str], config: WordsConfig) -> Words:
        """Keep the most frequent words, lower-cased and without numbers. Ties go to the first in order."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(split_words(text))
        words = [(-count, word) for word, count in counts.items() if not _NUMBER.fullmatch(word)]
        return cls(Texts.pack(word for _, word in sorted(words)[: config.size]), config.max_words)

    def __len__(self) -> int:
        return N_SPECIAL + len(self.vocabulary)

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into word numbers, at most max_words each; a text without words becomes one unknown word."""
        return [self._encode(text) or [UNKNOWN] for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the span of each word that is read in a text, in characters; (0, 0) if there is none."""
        return word_spans(text)[: self.max_words] or [(0, 0)]

    def fingerprint(self) -> str:
        """Return a string that changes whenever the numbers may change."""
        return f"words 1 {self.max_words} {key_of([self.vocabulary.buffer, self.vocabulary.offsets])}"

    def arrays(self) -> dict[str, NDArray]:
        """Return the vocabulary as arrays to store; max_words is not included."""
        return {"words": self.vocabulary.buffer, "word_offsets": self.vocabulary.offsets}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray], max_words: int) -> Words:
        """Return the words that `arrays` came from."""
        return cls(Texts.restore(arrays, "words", "word_offsets"), max_words)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary, N_SPECIAL)}

    def _encode(self, text: str) -> list[int]:
        number_of = self._number_of
        found = (match.group() for match in islice(_WORD.finditer(text.lower()), self.max_words))
        return [number_of.get(word) or (NUMBER if _NUMBER.fullmatch(word) else UNKNOWN) for word in found]


def split_words(text: str) -> list[str]:
    """Return the words and numbers of a text, lower-cased."""
    return _WORD.findall(text.lower())


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the span of each word of `split_words` in a text, in characters."""
    places = [i for i, letter in enumerate(text) for _ in letter.lower()]  # a few letters grow when lower-cased
    return [(places[match.start()], places[match.end() - 1] + 1) for match in _WORD.finditer(text.lower())]


def word_vectors(
    words: Words, config: WordsConfig, seed: int, progress: Progress = SILENT, embed: Embed | None = None
) -> NDArray[np.float32]:
    """Return one row per number of `words`; the row of padding is zero.

    Random rows are normal with variance 1; a word unknown to the file, package or encoder gets a random row with the
    spread of the known ones. `embed` is the encoder's function from words to vectors.
    """
    return fill_vectors(known_vectors(words, config, progress, embed), len(words), config.width, seed)


def known_vectors(
    words: Words, config: WordsConfig, progress: Progress = SILENT, embed: Embed | None = None
) -> NDArray[np.float32] | None:
    """Return the vectors from file, package or encoder, one row per number, zero if unknown; None for `random`."""
    if config.vectors == "random":
        return None
    known = _known_rows(words, config.vectors, embed)
    n_found = int(known.any(axis=1).sum())
    if not n_found:
        raise ConfigError(f"{config.vectors} has a vector for none of the {len(words.vocabulary):,} words")
    progress.say(f"{n_found:,} of {len(words.vocabulary):,} words have a vector in {config.vectors}")
    return known


def fill_vectors(known: NDArray[np.float32] | None, n: int, width: int, seed: int) -> NDArray[np.float32]:
    """Return n rows: the known ones, and random ones for the others; see `word_vectors`."""
    random = np.random.default_rng(seed)
    if known is None:
        vectors = random.standard_normal((n, width), dtype=np.float32)
    else:
        found = np.asarray(known.any(axis=1))
        drawn = known[found].std() * random.standard_normal(known.shape, dtype=np.float32)
        vectors = np.where(found[:, None], known, drawn)
    vectors[PAD] = 0
    return vectors


def load_wordllama() -> Embed | None:
    """Return WordLlama's function from texts to mean word vectors; None if the package is not installed."""
    if find_spec("wordllama") is None:
        return None
    try:
        package = import_module("wordllama")
        # 0.4.0 looks for its tokenizer in a wrong place, then in the cache, then on the hub; its own folder, passed as
        # the cache, holds everything it needs
        model = package.WordLlama.load(cache_dir=Path(str(package.__file__)).parent, disable_download=True)
    except Exception as error:  # from an incomplete package, or one with a missing dependency
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"wordllama is installed, but cannot load its vectors: {reason[:120]}") from None
    return lambda texts: np.asarray(model.embed(texts), dtype=np.float32)


def _known_rows(words: Words, vectors: str, embed: Embed | None) -> NDArray[np.float32]:
    """Return one row per number; zero if nothing is known."""
    if vectors == "wordllama":
        embed = load_wordllama()
        if embed is None:
            raise ConfigError(_NO_WORDLLAMA)
    elif vectors != "encoder" or embed is None:
        path = Path(vectors)
        return _folder_rows(path, words) if path.is_dir() else _file_rows(path, words)
    vocabulary = list(words.vocabulary)
    parts = [embed(vocabulary[start : start + _BATCH]) for start in range(0, len(vocabulary), _BATCH)]
    width = parts[0].shape[1] if parts else 1
    return np.concatenate([np.zeros((N_SPECIAL, width), np.float32), *parts])


def _folder_rows(folder: Path, words: Words) -> NDArray[np.float32]:
    """Return the same from AttentionXML's two files: an array of words, and a row of numbers for each."""
    known, table = _read_array(folder / "vocab.npy", "str"), _read_array(folder / "emb_init.npy", "'float32'")
    if known.dtype.kind != "U" or known.ndim != 1:
        raise DataError(f"{folder / 'vocab.npy'} must be a list of strings; got {known.dtype} of shape {known.shape}")
    if table.dtype.kind != "f" or table.ndim != 2 or len(table) != len(known) or not table.shape[1]:
        raise DataError(
            f"{folder / 'emb_init.npy'} must hold a row of numbers for each of the {len(known):,} words of vocab.npy; "
            f"got {table.dtype} of shape {table.shape}"
        )
    number_of = {word: i for i, word in enumerate(words.vocabulary, N_SPECIAL)}
    rows = np.zeros((len(words), table.shape[1]), dtype=np.float32)
    for at, word in enumerate(known.tolist()):
        place = number_of.get(word)
        if place is not None:
            if not (np.abs(table[at]) <= _LARGEST).all():  # also true for NaN
                raise DataError(f"{folder / 'emb_init.npy'}: row {at} ({word!r}) holds NaN or too large numbers")
            rows[place] = table[at]
    return rows


def _read_array(path: Path, dtype: str) -> NDArray:
    """Return the array of a file, mapped into memory; for pickled objects, raise and explain how to convert them."""
    try:
        return np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except OSError as error:
        raise ConfigError(
            f"words.vectors: cannot read {str(path)!r} ({error.strerror}); the folder must hold vocab.npy and "
            "emb_init.npy"
        ) from None
    except ValueError as error:
        if "Python objects" in str(error):
            raise DataError(
                f"{path} holds pickled Python objects, which could run code and are not loaded; if you trust the file, "
                f"convert it once: numpy.save(path, numpy.load(path, allow_pickle=True).astype({dtype}))"
            ) from None
        raise DataError(f"{path} is not a file of numpy.save: {error}") from None


def _file_rows(path: Path, words: Words) -> NDArray[np.float32]:
    """Return the same from a file; a first line of two whole numbers (word2vec's) is skipped."""
    number_of = {word: i for i, word in enumerate(words.vocabulary, N_SPECIAL)}
    rows: NDArray[np.float32] | None = None
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            for at, line in enumerate(file, 1):
                parts = line.rstrip().split(" ")
                if not line.strip() or (at == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts)):
                    continue
                if rows is None:
                    if len(parts) == 1:
                        break
                    rows = np.zeros((len(words), len(parts) - 1), dtype=np.float32)
                width = rows.shape[1]
                inside = len(parts) - width  # some words contain spaces
                if inside > 1 and parts[0] in number_of and _are_numbers(parts[1:]):
                    inside = 1  # but this one has one number too many
                place, numbers = number_of.get(" ".join(parts[:inside])), parts[inside:]
                if inside < 1 or (place is not None and (len(numbers) != width or not _are_numbers(numbers))):
                    raise DataError(f"{path}:{at}: expected a word and {width} numbers; got {line[:60]!r}")
                if place is not None:
                    rows[place] = [float(number) for number in numbers]
    except OSError as error:
        raise ConfigError(
            f"words.vectors: cannot read {str(path)!r} ({error.strerror}); give random, wordllama, encoder or a file "
            "or folder of vectors"
        ) from None
    if rows is None:
        raise DataError(
            f"{path} contains no word vectors; each line must be a word and its numbers, separated by spaces"
        )
    return rows


def _are_numbers(parts: list[str]) -> bool:
    try:
        return all(abs(float(part)) <= _LARGEST for part in parts)  # False for anything that is not a number
    except ValueError:
        return False
