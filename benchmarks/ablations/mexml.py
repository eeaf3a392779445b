"""ME-XML (anonymous submission to ACL): Table 4 (experts and losses), Figure 2 (how experts differ), Table 3 (by bin).

Published figures are those of the paper's tables; the data sets, encoder and GPU that they come from did not run here.
Layer 12 of the paper is the last here, 1 the first, 6 the middle one.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from benchmarks.ablations.study import KL, Arm, Claim, Documents, Published, Study
from xmtc.core.config import merge

_TOKENS, _EPOCHS = 32, 3
_SHARED: dict[str, Any] = {
    "encoder": {"name": "minilm-l3", "max_length": _TOKENS, "freeze_words": True, "pool": "mean", "dropout": 0.0},
    "head": {"initial_bias": -6.0, "hidden": 64},
    "rate": {"encoder": 2e-4, "queries": 3e-3, "output": 3e-3},
    "train": {"epochs": _EPOCHS, "batch_size": 16},
}
_PRECISIONS = ("P@1", "P@3", "P@5")
_RAN = (
    f"ME-XML on minilm-l3, 3 layers, D-experts on means, {_TOKENS} tokens, {_EPOCHS} epochs, attention's perceptron "
    f"{_SHARED['head']['hidden']} wide"
)
# name → experts, loss, words in the tables, and P@1, P@3, P@5 in the paper's Table 4, whose order this is
_IND, _COL, _DIV = {"diversity": 0.0}, {"kind": "collaborative", "diversity": 0.0}, {}
_ROWS: dict[str, tuple[tuple[str, ...], dict[str, Any], str, tuple[float, float, float]]] = {
    "d-last": (("D-last",), {}, "1E (D-12)", (87.11, 74.53, 62.33)),
    "a-first": (("A-first",), {}, "1E (A-1)", (86.03, 71.10, 57.75)),
    "a-last": (("A-last",), {}, "1E (A-12)", (86.14, 72.39, 59.05)),
    "d-joined": (("D-last+first",), {}, "1E (D-(12+1))", (87.24, 74.67, 62.35)),
    "pair-col": (("A-first", "D-last"), _COL, "2E (A-1+D-12), collaborative", (88.35, 76.12, 63.22)),
    "pair-ind": (("A-first", "D-last"), _IND, "2E (A-1+D-12), individual", (89.13, 77.01, 64.14)),
    "pair": (("A-first", "D-last"), _DIV, "2E (A-1+D-12), individual and diversity", (89.43, 77.12, 64.38)),
    "pair-d-first": (("D-first", "D-last"), _DIV, "2E (D-1+D-12)", (87.69, 75.48, 62.96)),
    "pair-a-last": (("A-last", "D-last"), _DIV, "2E (A-12+D-12)", (87.77, 75.94, 63.76)),
    "three-a": (("A-first", "A-middle", "D-last"), _DIV, "3E (A-1+A-6+D-12)", (89.38, 77.63, 64.85)),
    "three-d": (("A-first", "D-middle", "D-last"), _DIV, "3E (A-1+D-6+D-12)", (88.54, 76.15, 63.51)),
}


def _arm(name: str) -> Arm:
    experts, loss, words, _ = _ROWS[name]
    return Arm(name, words, "mexml", reduce(merge, ({"experts": list(experts)}, {"loss": loss}), _SHARED))


def _table_4(
    title: str,
    said: str,
    *arms: str,
    figures: tuple[str, ...] = _PRECISIONS,
    ran: str = _RAN,
    order: tuple[str, ...] = (),
) -> Claim:
    """A claim whose figures are rows of Table 4."""
    printed = {arm: dict(zip(_PRECISIONS, _ROWS[arm][3], strict=True)) for arm in arms}
    return Claim(title, said, ran, arms, figures, (Published("Table 4, EUR-LEX", printed),), order=order)


def _table_3(name: str, said: str, **sets: tuple[tuple[float, ...], tuple[float, ...]]) -> Claim:
    """One class of labels: macro P, R, F@5 of one expert, then of two, on each of the paper's sets."""
    figures = tuple(f"macro-{score}@5/{name}" for score in "PRF")
    published = []
    for columns, rows in sets.items():
        one, two = (dict(zip(figures, row, strict=True)) for row in rows)
        where = f"Table 3, {columns.replace('_', '-')}, {name.capitalize()}-shot"
        published.append(Published(where, {"pair": two, "d-last": one}))
    by = None if name == "many" else figures[-1]  # of many-shot labels the paper claims no gain
    return Claim(f"Table 3: {name}-shot labels", said, _RAN, ("pair", "d-last"), figures, tuple(published), by)


STUDY = Study(
    paper="mexml",
    title="ME-XML (anonymous submission to ACL)",
    documents=Documents(train=3_000),  # attention to all their labels costs as much as the encoder
    arms=tuple(_arm(name) for name in _ROWS),
    claims=(
        _table_4(
            "Table 4: one expert against two",
            "Two different experts beat each of them alone, and beat one that joins the [CLS] of both layers.",
            *("pair", "d-last", "a-first", "a-last", "d-joined"),
        ),
        _table_4(
            "Table 4: losses",
            "Experts that are trained each by its own loss beat those trained by the loss of their mean; the diversity "
            "loss helps.",
            *("pair", "pair-ind", "pair-col"),
            order=("pair", "pair-ind", "pair-col"),
        ),
        _table_4(
            "Table 4 and Figure 2: which second expert",
            "Beside the last [CLS], attention to the first layer's words is the best second expert, and it differs "
            "most: the KL between experts on true labels follows P@5 (Figure 2b prints no numbers).",
            *("pair", "pair-d-first", "pair-a-last"),
            figures=(*_PRECISIONS, KL),
            ran=f"{_RAN}; KL is the mean over the labels that test documents have, and over both orders of a pair",
        ),
        _table_4(
            "Table 4: a third expert",
            "Attention to a middle layer as a third expert adds a little to P@3 and P@5; a middle [CLS] costs.",
            *("three-a", "three-d", "pair"),
            order=("three-a", "pair", "three-d"),
        ),
        _table_3(
            "few",
            "On labels with at most 20 training documents two experts beat one, but not on Wiki10-31k.",
            EUR_Lex=((22.08, 27.98, 22.97), (22.57, 28.64, 23.66)),
            Wiki10_31k=((6.32, 4.13, 4.55), (5.68, 3.69, 4.05)),
            AmazonCat_13k=((22.05, 26.19, 21.02), (28.84, 31.65, 27.24)),
        ),
        _table_3(
            "medium",
            "On labels with 21 to 100 training documents two experts gain more F@5 than on those with many.",
            EUR_Lex=((42.96, 72.81, 52.02), (44.08, 76.51, 54.01)),
            Wiki10_31k=((37.94, 22.51, 26.34), (38.94, 24.97, 27.86)),
            AmazonCat_13k=((40.39, 69.81, 45.89), (43.78, 69.23, 49.21)),
        ),
        _table_3(
            "many",
            "On labels with more than 100 training documents two experts gain little or nothing.",
            EUR_Lex=((46.06, 82.84, 58.07), (46.15, 85.02, 58.83)),
            Wiki10_31k=((44.65, 32.03, 35.57), (45.87, 33.84, 36.65)),
            AmazonCat_13k=((43.13, 72.76, 49.95), (42.90, 72.51, 49.91)),
        ),
    ),
)
