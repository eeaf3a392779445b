"""A ranking of a corpus in one file, with everything a later comparison needs.

Input: a model's ranking of a corpus. Output: one .npz file without pickle. When it is read again, it is checked against
the corpus of the comparison; the model itself is not needed. Independent of methods.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.propensity import Propensity
from xmtc.core.ranking import Ranking
from xmtc.core.texts import Texts

_FORMAT = 1
_ARRAYS = ("labels", "scores", "counts", "document_bytes", "document_ends", "label_bytes", "label_ends")


@dataclass(frozen=True, eq=False)
class SavedRanking:
    """A model's ranking of a corpus; replaces the model in `xmtc.compare`."""

    model: str  # name of the model
    data: str  # name of the corpus
    ranking: Ranking
    ids: Texts  # of the documents
    texts: str  # the output of `digest_documents` for the corpus
    labels: LabelSet  # labels of the model: ids and training counts, without names
    n_documents: int  # number of training documents
    propensity: Propensity  # of the model

    def save(self, file: str | Path) -> None:
        """Write the ranking to a file, completely or not at all; an existing file is replaced."""
        facts = {
            "format": _FORMAT,
            "model": self.model,
            "data": self.data,
            "texts": self.texts,
            "n_labels": self.labels.n_labels,
            "n_documents": self.n_documents,
            "propensity": self.propensity.model_dump(),
        }
        label_ids = Texts.pack(self.labels.ids)
        arrays = (
            self.ranking.labels,
            self.ranking.scores,
            self.labels.counts,
            *(self.ids.buffer, self.ids.offsets),
            *(label_ids.buffer, label_ids.offsets),
        )
        target = Path(file).absolute()
        partial = target.with_name(f".{target.name}.writing-{os.getpid()}")
        try:
            with partial.open("wb") as out:  # a file object, because numpy would append an extension to a path
                described = np.frombuffer(json.dumps(facts, sort_keys=True).encode(), np.uint8)
                parts: dict[str, Any] = dict(zip(_ARRAYS, arrays, strict=True))
                np.savez_compressed(out, xmtc_ranking=described, **parts)
            partial.replace(target)
        except OSError as error:
            raise DataError(f"cannot write the ranking to {file}: {error.strerror or error}") from None
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, file: str | Path) -> SavedRanking:
        """Read a saved ranking; raise if the file is truncated, modified or not a ranking."""
        try:
            with np.load(file, allow_pickle=False) as held:
                if "xmtc_ranking" not in held.files:
                    raise DataError(f"{file} is not a saved ranking; write one with `xmtc evaluate --save-ranking`")
                facts = json.loads(held["xmtc_ranking"].tobytes())
                if facts["format"] != _FORMAT:
                    raise DataError(f"{file} was saved by a newer version of xmtc; upgrade xmtc to read it")
                parts = {name: held[name] for name in _ARRAYS}
            return cls._restore(facts, parts)
        except OSError as error:
            raise DataError(f"cannot read {file}: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, EOFError, AttributeError, zipfile.BadZipFile, ValidationError):
            raise DataError(
                f"{file} is not a saved ranking, or is cut or altered; write it again with `xmtc evaluate "
                "--save-ranking`"
            ) from None

    @classmethod
    def _restore(cls, facts: dict[str, Any], parts: dict[str, NDArray[Any]]) -> SavedRanking:
        """Rebuild a ranking from the parts of its file; raise ValueError if they do not fit together."""
        ids, names = (Texts(parts[f"{kind}_bytes"], parts[f"{kind}_ends"]) for kind in ("document", "label"))
        labels, scores = parts["labels"], parts["scores"]
        n_labels = int(facts["n_labels"])
        if labels.shape != scores.shape or len(labels) != len(ids) or len(names) != len(parts["counts"]):
            raise ValueError
        if labels.size and not (labels.min() >= -1 and labels.max() < len(names) >= n_labels):
            raise ValueError
        described = zip(map(Concept, names), parts["counts"].tolist(), strict=True)
        return cls(
            str(facts["model"]),
            str(facts["data"]),
            Ranking(labels, scores),
            ids,
            str(facts["texts"]),
            LabelSet.restore(described, n_labels),
            int(facts["n_documents"]),
            Propensity(**facts["propensity"]),
        )

    def ranking_of(self, corpus: Corpus, name: str) -> Ranking:
        """Return the ranking if it belongs to this corpus; `name` is the ranking's name in errors."""
        if len(self.ids) != len(corpus):
            raise DataError(
                f"{name} ranks {len(self.ids):,} documents of {self.data}, but the data has {len(corpus):,}; "
                "compare on the data that was ranked"
            )
        other = next((i for i, (one, two) in enumerate(zip(self.ids, corpus.ids, strict=True)) if one != two), None)
        if other is not None:
            raise DataError(
                f"{name} ranks other documents: number {other + 1} is {self.ids[other]!r} there, and "
                f"{corpus.ids[other]!r} here; compare on the data that was ranked, {self.data}"
            )
        if self.texts != digest_documents(corpus):
            raise DataError(
                f"{name} ranks documents of the same ids, but other texts; compare on the data that was ranked, "
                f"{self.data}"
            )
        return self.ranking


def digest_documents(corpus: Corpus) -> str:
    """Return a sha256 over the texts of a corpus, or over its features if it has no texts."""
    X = corpus.X
    if corpus.texts is not None:
        parts: list[NDArray[Any]] = [corpus.texts.buffer, corpus.texts.offsets]
    else:
        assert X is not None  # a corpus has texts or features
        parts = [X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.astype(np.float32)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
