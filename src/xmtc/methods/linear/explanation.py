"""Explain a label by the words of a text and by its path through a linear tree."""

from __future__ import annotations

import numpy as np

from xmtc.core.errors import ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.labels import name_cluster
from xmtc.features.tfidf import word_shares
from xmtc.linear.beam import join_path
from xmtc.methods.linear.model import NAME, LinearModel

_WIDTH = 100  # labels to search for the explained one


def explain(model: LinearModel, text: str, label: str) -> Explanation:
    """Explain which words of a text raised or lowered a label's score, and score its path in the first tree.

    A word's weight is its TF-IDF value times its weights in the classifiers on the path, summed over levels and
    averaged over trees. Each cluster on the path is named by its most frequent labels.
    """
    if model.tfidf is None:
        raise ModelError("this model was trained on features, not texts: it cannot explain words")
    entry = model.labels.find_trained(label)
    X = model.tfidf.transform([text])
    push = np.zeros(X.shape[1] + 1, dtype=np.float64)
    scores = []
    for tree in model.trees:
        raw = []
        for node in tree.path(entry):
            raw.append(tree.score(node, X))
            features, weights = tree.weights_of(node)
            if model.config.search.combiner != "noop" or node == tree.path(entry)[-1]:
                push[features] += weights / len(model.trees)
        scores.append(join_path(raw, model.config.search))
    first = model.trees[0]
    steps = [(name_cluster(model.labels, first.labels_below(node)), first.score(node, X)) for node in first.path(entry)]
    return Explanation(
        label=model.labels.ids[entry],
        score=_ranked(model, text, entry, float(np.mean(scores))),
        method=NAME,
        spans=word_shares(model.tfidf, text, push),
        path=tuple(steps),
        text=text,
    )


def _ranked(model: LinearModel, text: str, entry: int, otherwise: float) -> float:
    """Return the score that ranking gives a label; if no tree's beam reaches it, the score of its path alone."""
    ranking = model.rank([text], min(_WIDTH, model.labels.n_labels))
    found = ranking.scores[0][ranking.labels[0] == entry]
    return float(found[0]) if len(found) else otherwise
