"""Update a match model: count more documents, add labels of a vocabulary, retire labels. Trains nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.progress import Progress
from xmtc.core.revision import revise
from xmtc.core.updatable import UpdateSummary
from xmtc.methods.match.index import Index
from xmtc.methods.match.model import MatchModel


def update_model(
    model: MatchModel, corpus: Corpus | None, base: Corpus | None, retire: Iterable[str], progress: Progress
) -> MatchModel:
    """Return a model with updated document counts and labels; see `xmtc.update`."""
    progress.stage("comparing labels")
    concepts = set(model.ranked_concepts.tolist())
    revision = revise(model.labels, model.manifest, corpus, base, retire, concepts=concepts, only_news=False)
    before = model.manifest.details
    done = UpdateSummary(
        documents=0 if corpus is None else len(corpus),
        whole=revision.whole,
        new_labels=revision.labels.n_labels - revision.n_kept,
        retired_labels=len(revision.retired) - len(before.retired),
    )
    details = before.model_copy(update={"retired": list(revision.retired), "updates": [*before.updates, done]})
    manifest = replace(
        model.manifest,
        n_labels=revision.labels.n_labels,
        n_documents=revision.n_documents,
        data=revision.data(),
        details=details,
    )
    return _reindex(replace(model, manifest=manifest), revision.labels)


def add_labels(model: MatchModel, concepts: Sequence[Concept], progress: Progress) -> MatchModel:
    """Return a model that also finds these concepts."""
    progress.stage("indexing names")
    labels = model.labels.described(concepts)
    before = model.manifest.details
    added = len(labels) - len(model.labels)
    done = UpdateSummary(documents=0, whole=True, new_labels=0, retired_labels=0, new_concepts=added)
    details = before.model_copy(update={"updates": [*before.updates, done]})
    updated = _reindex(replace(model, manifest=model.manifest.with_details(details)), labels)
    nameless = sum(not updated.index.named(len(labels))[labels.position[concept.id]] for concept in concepts)
    if nameless:
        progress.say(f"{nameless:,} of {len(concepts):,} concepts have no name and are not found in texts")
    return updated


def _reindex(model: MatchModel, labels: LabelSet) -> MatchModel:
    """Return the model over other labels; weights of words and usage of labels are kept."""
    old = model.index.stems.vocabulary
    index = Index.build(labels, model.manifest.details.analyzer, model.manifest.details.retired)
    weight_of = dict(zip(old, model.weights.tolist(), strict=True))
    rarest = float(model.weights.max(initial=0))  # for stems that were in no name, and so were not counted
    weights = np.array([weight_of.get(stem, rarest) for stem in index.stems.vocabulary], dtype=np.float32)
    position = model.labels.position
    usage = model.usage.take(np.array([position.get(label, -1) for label in labels.ids], dtype=np.int64))
    vectors = model.vectors
    if vectors is not None:
        vectors = vectors.renew(labels, model.manifest.details.retired)
    return replace(model, labels=labels, index=index, weights=weights, usage=usage, vectors=vectors)
