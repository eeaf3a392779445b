"""X-BERT (Chang et al., 2019): Table 2 (label vectors × matchers, both stages), Figure 5 (ensembles), Table 4 (a tree).

Published figures are those of the paper's tables; the data sets, encoders and GPUs they come from did not run here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

from benchmarks.ablations.study import Arm, Claim, Documents, Published, Study
from xmtc.core.config import merge

_LAYERS, _TOKENS, _EPOCHS, _SHORTER, _LONGER = 3, 32, 4, 2, 8
_XTTENTION_EPOCHS = 6
_PRECISIONS = ("P@1", "P@3", "P@5")
_BOTH_STAGES = (*(f"matching {figure}" for figure in _PRECISIONS), *_PRECISIONS)
_SHARED: dict[str, Any] = {
    "encoder": {"name": "minilm", "layers": _LAYERS, "max_length": _TOKENS, "freeze_words": True, "pool": "cls+mean"},
    "cluster": {"count": 96},  # of some fifty labels each
    "match": {"initial_bias": -1.0},
}
_MATCHERS: dict[str, dict[str, Any]] = {
    "minilm": {
        "match": {"kind": "bert"},
        "rate": {"encoder": 2e-4, "head": 3e-3},
        "train": {"epochs": _EPOCHS, "batch_size": 32, "warmup": 0.1},
    },
    "xttention": {
        "match": {"kind": "xttention"},
        "words": {"max_words": _TOKENS, "vectors": "encoder"},
        "xttention": {"hidden": 128, "attention": 64, "rows": 8, "mlp": 256},
        "rate": {"xttention": 1e-3},
        "train": {"epochs": _XTTENTION_EPOCHS, "batch_size": 32, "warmup": 0.1},
    },
    "linear": {"match": {"kind": "linear"}},
}
_WORDS = {"minilm": "MiniLM", "xttention": "X-ttention, small", "linear": "linear tree"}
_VECTORS = {"text": "names", "pifa": "documents (PIFA)"}


def _arm(name: str, words: str, *settings: dict[str, Any]) -> Arm:
    return Arm(name, words, "xbert", reduce(merge, settings, _SHARED))


def _ensemble(name: str, words: str, vectors: list[str], seeds: int = 3) -> Arm:
    return _arm(name, words, _MATCHERS["minilm"], {"cluster": {"vectors": vectors, "seeds": seeds}})


def _one(vectors: str, matcher: str) -> Arm:
    """One member, on the clusters of v3's first of this kind."""
    words = f"{_WORDS[matcher]} on labels' {_VECTORS[vectors]}"
    arm = _arm(f"{vectors}-{matcher}", words, _MATCHERS[matcher], {"cluster": {"vectors": [vectors]}})
    return replace(arm, stride=3)


def _changed(arm: Arm, name: str, words: str, settings: dict[str, Any]) -> Arm:
    """An arm with something else about it."""
    return replace(arm, name=name, words=words, settings=merge(arm.settings, settings))


def _part(arm: Arm, *members: int) -> Arm:
    """An arm that is part of v3, with v3's seeds, so that six encoders are trained, not fourteen."""
    return replace(arm, of="v3", members=members, stride=1)


def _table_2(vectors: str, label: str, **rows: tuple[float, float, float, float, float, float]) -> Claim:
    """One half of Table 2: a kind of label vector, all matchers, the best first."""
    arms = {matcher: f"{vectors}-{matcher}" for matcher in rows}
    figures = {arms[matcher]: dict(zip(_BOTH_STAGES, values, strict=True)) for matcher, values in rows.items()}
    return Claim(
        title=f"Table 2: matchers, labels clustered by their {_VECTORS[vectors]}",
        said="A better matcher makes a better ranking: BERT beats X-ttention beats the linear tree, in the matching "
        "stage (clusters) and in the ranking stage (labels).",
        ran=f"MiniLM, first {_LAYERS} layers, {_TOKENS} tokens, {_EPOCHS} epochs; X-ttention with u = 128, r = 8, MLP "
        f"of 256, {_TOKENS} words that begin with MiniLM's word embeddings, {_XTTENTION_EPOCHS} epochs, the best of "
        "which is kept; labels ranked on TF-IDF by teacher forcing, 10 of 96 clusters",
        arms=tuple(arms.values()),
        figures=_BOTH_STAGES,
        order=tuple(arms.values()),
        published=(
            Published(f"Table 2, {label}", figures, who={arms["minilm"]: "BERT", arms["xttention"]: "u = 512, r = 30"}),
        ),
    )


STUDY = Study(
    paper="xbert",
    title="X-BERT (Chang et al., 2019)",
    documents=Documents(train=6_000),
    arms=(
        *(_one(vectors, matcher) for vectors in _VECTORS for matcher in ("xttention", "linear")),
        _ensemble("v3", "v3: all six", ["text", "pifa"]),
        _part(_ensemble("v1", "v1: three clusterings by names", ["text"]), 0, 1, 2),
        _part(_ensemble("v2", "v2: three clusterings by documents", ["pifa"]), 3, 4, 5),
        _part(_ensemble("text2-pifa1", "two clusterings by names, one by documents", ["text", "pifa"]), 0, 1, 3),
        _part(_ensemble("text1-pifa2", "one clustering by names, two by documents", ["text", "pifa"]), 0, 3, 4),
        _part(_one("text", "minilm"), 0),
        _part(_one("pifa", "minilm"), 3),
        _ensemble("text6", "six clusterings by names", ["text"], seeds=6),
        _changed(_one("pifa", "minilm"), "pifa-both", "both together", {"match": {"linear": 0.5}}),
        _changed(_one("pifa", "minilm"), "pifa-longer", f"MiniLM, {_LONGER} epochs", {"train": {"epochs": _LONGER}}),
        _changed(_one("pifa", "minilm"), "pifa-shorter", f"MiniLM, {_SHORTER} epochs", {"train": {"epochs": _SHORTER}}),
        _changed(
            _one("text", "xttention"),
            "text-xttention-random",
            "X-ttention, small, random words",
            {"words": {"vectors": "random", "width": 384}},
        ),
        Arm("tree", "xmtc's linear trees, default settings", "linear", {}),
    ),
    claims=(
        _table_2(
            "text",
            "ELMo",
            minilm=(89.50, 78.27, 64.51, 83.29, 71.90, 60.28),
            xttention=(87.32, 74.91, 61.40, 83.00, 69.81, 58.10),
            linear=(83.70, 71.66, 59.43, 79.84, 67.70, 56.30),
        ),
        _table_2(
            "pifa",
            "PIFA",
            minilm=(93.14, 74.34, 55.38, 82.95, 70.91, 59.50),
            xttention=(92.91, 70.50, 52.06, 82.82, 70.25, 58.59),
            linear=(91.57, 69.12, 51.71, 81.19, 68.86, 57.51),
        ),
        Claim(
            title="Two matchers together, labels clustered by their documents",
            said="no such trial; a member has one matcher.",
            ran="as in Table 2, and MiniLM and a linear tree that score clusters by half each",
            arms=("pifa-both", "pifa-minilm", "pifa-linear"),
            figures=(*_BOTH_STAGES, "macro-F@5/few"),
            by=None,
        ),
        Claim(
            title="Longer and shorter training, labels clustered by their documents",
            said="no such trial; BERT is trained for 20 epochs on Eurlex-4K (its code).",
            ran=f"as in Table 2, and MiniLM with {_LONGER} and {_SHORTER} epochs; the epoch that matches dev's "
            "clusters best is kept",
            arms=("pifa-longer", "pifa-minilm", "pifa-shorter", "pifa-linear"),
            figures=(*_BOTH_STAGES, "macro-F@5/few"),
            by=None,
        ),
        Claim(
            title="X-ttention's first word vectors, labels clustered by their names",
            said="no such trial; X-ttention begins with random vectors (its code).",
            ran="as in Table 2, and X-ttention with random vectors of the same width",
            arms=("text-xttention", "text-xttention-random", "text-linear"),
            figures=(*_BOTH_STAGES, "macro-F@5/few"),
            by=None,
        ),
        Claim(
            title="Figure 5: ensembles over seeds and over label vectors",
            said="An ensemble over different label vectors helps more than one over seeds alone: v3, of all six, is "
            "best (Figure 5 prints no numbers).",
            ran=f"X-BERT on MiniLM, first {_LAYERS} layers, {_TOKENS} tokens, {_EPOCHS} epochs a member; mean score",
            arms=("v3", "v2", "v1", "text-minilm", "pifa-minilm"),
            figures=_PRECISIONS,
        ),
        Claim(
            title="Figure 5 with three members each: kinds of label vectors or seeds",
            said="An ensemble over different label vectors helps more than one over seeds alone; the paper compares "
            "six members of two kinds with three of one.",
            ran=f"X-BERT on MiniLM, first {_LAYERS} layers, {_TOKENS} tokens, {_EPOCHS} epochs a member; mean score of "
            "three members",
            arms=("text2-pifa1", "text1-pifa2", "v1", "v2"),
            figures=_PRECISIONS,
        ),
        Claim(
            title="Figure 5 with six members each: kinds of label vectors or seeds",
            said="as above.",
            ran=f"X-BERT on MiniLM, first {_LAYERS} layers, {_TOKENS} tokens, {_EPOCHS} epochs a member; mean score of "
            "six members",
            arms=("v3", "text6"),
            figures=_PRECISIONS,
        ),
        Claim(
            title="Table 4: against the linear tree",
            said="X-BERT's relative improvement over Parabel is larger than any other's; `xmtc compare` tells it "
            "of any two models.",
            ran=f"X-BERT on MiniLM, first {_LAYERS} layers, {_TOKENS} tokens, six members, and linear trees on the "
            "whole texts",
            arms=("v3", "tree"),
            figures=_PRECISIONS,
            relative={
                "Table 4, X-BERT on Eurlex-4K": dict(zip(_PRECISIONS, (4.78, 6.46, 6.79), strict=True)),
                "Table 4, X-BERT on Wiki-500K": dict(zip(_PRECISIONS, (11.31, 12.56, 12.82), strict=True)),
            },
        ),
    ),
)
