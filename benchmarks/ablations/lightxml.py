"""LightXML (Jiang et al., AAAI 2021): Table 5 (dynamic negatives), Figure 2 (layers of [CLS]), Table 6 (size, speed).

Published figures are those of the paper's tables; the data sets, encoders and GPU that they come from did not run here.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from benchmarks.ablations.study import (
    BATCHES,
    DEV,
    LOSS,
    MODEL,
    ONE_BY_ONE,
    Arm,
    Claim,
    Documents,
    Published,
    Study,
)
from xmtc.core.config import merge

_TOKENS, _EPOCHS = 32, 3
_SHARED: dict[str, Any] = {
    "encoder": {"name": "minilm-l3", "max_length": _TOKENS, "freeze_words": True, "pool": "mean", "dropout": 0.0},
    "head": {"initial_bias": -6.0},
    "rate": {"encoder": 2e-4, "head": 3e-3},
    "train": {"epochs": _EPOCHS, "batch_size": 32},
}
# 6,000 documents of tate have 4,810 labels, halved to 256 clusters of 18 or 19: 26 of them hold a tenth of the labels
_LARGE = {
    "head": {"mode": "large", "shortlist": 26},
    "cluster": {"size": 32},
    "train": {"schedule": "linear"},  # as in the recipes for CPUs; curves of the loss need the paper's constant rates
}
_TWICE = {"head": {"negatives": "dynamic"}, "train": {"epochs": 2 * _EPOCHS}}
_SMALL = {"encoder": {"name": "minilm"}, "head": {"mode": "small"}}


def _light(name: str, words: str, *settings: dict[str, Any]) -> Arm:
    return Arm(name, words, "lightxml", reduce(merge, settings, _SHARED))


_PRECISIONS = ("P@1", "P@3", "P@5")


def _published(row: str, **arms: tuple[float, float, float]) -> Published:
    """P@1, P@3 and P@5 of a row of Table 5."""
    figures = {arm.replace("_", "-"): dict(zip(_PRECISIONS, values, strict=True)) for arm, values in arms.items()}
    return Published(f"Table 5, {row}", figures)


STUDY = Study(
    paper="lightxml",
    title="LightXML (Jiang et al., AAAI 2021)",
    documents=Documents(train=6_000),
    arms=(
        _light("dynamic", "D: dynamic negatives", _LARGE, {"head": {"negatives": "dynamic"}}),
        _light("dynamic-twice", "D, as many epochs as both stages", _LARGE, _TWICE),
        _light("static-own", "BS: static, an encoder for each stage", _LARGE, {"head": {"negatives": "static-own"}}),
        _light("static", "S: static, one frozen encoder", _LARGE, {"head": {"negatives": "static"}}),
        _light("mean-5", "means of the last five layers", _SMALL, {"encoder": {"pool": "mean5"}}),
        _light("mean-1", "mean of the last layer", _SMALL),
        Arm("linear", "xmtc's linear trees, default settings", "linear", {}),
    ),
    claims=(
        Claim(
            title="Table 5: dynamic against static negatives",
            said="Negatives drawn anew in every step by the generator (D) beat fixed ones, whether ranking has an "
            "encoder of its own (BS) or shares recall's (S); BS beats S.",
            ran=f"LightXML on minilm-l3, 3 layers, mean, {_TOKENS} tokens, {_EPOCHS} epochs in each stage",
            arms=("dynamic", "static-own", "static"),
            figures=_PRECISIONS,
            order=("dynamic", "static-own", "static"),
            published=(
                _published(
                    "Wiki-500K",
                    dynamic=(76.19, 57.22, 44.12),
                    static_own=(75.30, 56.64, 43.03),
                    static=(73.30, 54.60, 42.27),
                ),
                _published(
                    "Amazon-670K",
                    dynamic=(47.14, 42.02, 38.23),
                    static_own=(46.27, 41.40, 37.69),
                    static=(43.36, 38.55, 34.96),
                ),
            ),
        ),
        Claim(
            title="Table 5 with equal numbers of epochs",
            said="The paper trains each stage of BS and S for as many epochs as D in all. Here D has as many epochs as "
            "their two stages together.",
            ran=f"LightXML on minilm-l3, 3 layers, mean, {_TOKENS} tokens, {2 * _EPOCHS} epochs in all",
            arms=("dynamic-twice", "static-own", "static"),
            figures=_PRECISIONS,
        ),
        Claim(
            title="Figure 2: five layers against one",
            said="With five layers the training loss that one layer ends with is reached in half of the epochs, and "
            "the final P@5 is more than 1 % higher (the text beside Figure 2; it prints no table).",
            ran="LightXML on MiniLM, 6 layers, with one output layer over all labels; means of the tokens, because "
            f"MiniLM's [CLS] says nothing below the last layer; {_TOKENS} tokens, {_EPOCHS} epochs",
            arms=("mean-5", "mean-1"),
            figures=(
                *(LOSS.format(epoch) for epoch in range(1, _EPOCHS + 1)),
                *(DEV.format(epoch) for epoch in range(1, _EPOCHS + 1)),
                "P@5",
            ),
            convergence=True,
        ),
        Claim(
            title="Table 6: size, and time of a prediction",
            said="LightXML is smaller and ranks faster than AttentionXML, a tree with a model for each level (one "
            "Tesla V100). AttentionXML is not here: xmtc's linear trees stand beside LightXML instead.",
            ran=f"LightXML on minilm-l3, 3 layers, {_TOKENS} tokens, and linear trees on the whole texts",
            arms=("dynamic", "linear"),
            figures=(MODEL, BATCHES, ONE_BY_ONE, "P@1", "P@5"),
            by=None,
            published=tuple(
                Published(
                    f"Table 6, {row}",
                    {"dynamic": {MODEL: size, BATCHES: time}, "linear": {MODEL: their_size, BATCHES: their_time}},
                    who={"dynamic": "LightXML-1", "linear": "AttentionXML-1"},
                )
                for row, size, time, their_size, their_time in (
                    ("Wiki-500K", 1470, 3.75, 3110, 4.20),
                    ("Amazon-670K", 1530, 4.09, 5520, 8.59),
                )
            ),
        ),
    ),
)
