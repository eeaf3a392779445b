"""Warnings about data that is probably not what the user meant: one `DataWarning` each, never an error.

Input: a model and a corpus, two corpora, or the texts to rank. Output: warnings. Independent of files and methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from xmtc.core.abilities import Composed, Lexical, find_concepts
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataWarning
from xmtc.core.labels import LabelSet
from xmtc.core.model import Model
from xmtc.core.storage import SKETCH
from xmtc.core.texts import Texts

_FEW_LABELS = 0.2  # minimum share of the documents' labels that the model should know
_SHARED = 0.02  # share of texts that may also be in the training data: short texts are equal by chance
_KNOWN_WORDS = 1 / 3  # minimum share of a text's distinct words that the model should know
_FEWEST_WORDS = 5  # minimum distinct words of a text that can be judged
LOOKED_AT = 64  # texts of a batch to check with `find_strange`; more are not worth the time


def warn(message: str) -> None:
    """Issue a one-line warning, attributed to the caller of the library."""
    warnings.warn(message, DataWarning, stacklevel=3)


def check_evaluation(model: Model, corpus: Corpus, name: str = "the model") -> None:
    """Warn if a model was trained on the documents it is evaluated on, or knows few of their labels."""
    manifest = model.manifest
    if len(corpus) == manifest.n_documents and corpus.compact().fingerprint() == manifest.data:
        warn(f"{name} was trained on these documents, so its scores are too high; give documents it has not seen")
    elif corpus.texts is not None and manifest.seen:
        share = share_seen(corpus.texts, manifest.seen)
        if share > _SHARED:
            warn(f"{name} was trained on about {share:.0%} of these texts, so its scores are too high")
    counts = np.bincount(corpus.Y.indices, minlength=len(corpus.labels))
    labels = model.labels
    used = np.flatnonzero(counts).tolist()
    ranked = {*labels.ids[: labels.n_labels], *(labels.ids[entry] for entry in find_concepts(model).tolist())}
    known = [entry for entry in used if corpus.labels.ids[entry] in ranked]
    if used and counts[known].sum() < _FEW_LABELS * counts.sum():
        examples = f"{corpus.labels.ids[used[0]]!r} here, {model.labels.ids[0]!r} there"
        some = f"{len(known):,} of the {len(used):,} labels" if known else f"none of the {len(used):,} labels"
        warn(f"{name} knows {some} of these documents ({examples}); do both use the same vocabulary?")


def check_dev(train: Corpus, dev: Corpus) -> None:
    """Warn if dev documents are among the training documents, because their scores then say little."""
    if train.texts is None or dev.texts is None:
        return
    hashes = dev.texts.hashes()
    share = float(np.isin(hashes, train.texts.hashes()).mean()) if len(hashes) else 0.0
    if share > _SHARED:
        warn(f"{share:.0%} of the dev texts are training texts, too; dev cannot show when to stop")


def check_members(sets: Sequence[LabelSet]) -> None:
    """Warn if a member of an ensemble has no label in common with any other."""
    trained = [set(labels.ids[: labels.n_labels]) for labels in sets]
    for i, own in enumerate(trained):
        if all(own.isdisjoint(other) for j, other in enumerate(trained) if j != i):
            warn(f"model {i + 1} of the ensemble has no label in common with the others; their rankings cannot agree")
            return


def find_strange(model: Model, texts: Sequence[str]) -> list[int]:
    """Return the indices of texts with hardly any words that the model knows; empty for models not based on words."""
    from xmtc.core.calibration import uncalibrated

    plain = uncalibrated(model)
    if isinstance(plain, Lexical):
        known, words = plain.known_words(texts)
        return np.flatnonzero((words >= _FEWEST_WORDS) & (known < _KNOWN_WORDS * words)).tolist()
    if not isinstance(plain, Composed):
        return []
    found = [set(find_strange(member, texts)) for member in plain.members if _reads_words(member)]
    return sorted(set.intersection(*found)) if found else []


def share_seen(texts: Texts, sketch: bytes) -> float:
    """Return the share of texts that are in a sketch (`Manifest.seen`); exact if the sketch holds all hashes.

    Texts whose hash is above the sketch's largest are skipped, because the sketch may have dropped them.
    """
    seen = np.frombuffer(sketch, "<u8")
    hashes = texts.hashes()
    judged = hashes if len(seen) < SKETCH else hashes[hashes <= seen[-1]]
    return float(np.isin(judged, seen).mean()) if len(judged) else 0.0


def _reads_words(model: Model) -> bool:
    from xmtc.core.calibration import uncalibrated

    return isinstance(uncalibrated(model), (Lexical, Composed))
