"""APLC-XLNet (Ye et al., ICML 2020): Figure 4 (number of clusters), Figure 5 (partitions), 4.1 (learning rates).

Its Eq. 9 and 14, parameters and work against a linear layer, are measured by benchmarks.aplc_cost. Published figures
are those of the paper's text: what only its plots show is left out.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from benchmarks.ablations.study import LOSS, Arm, Claim, Documents, Published, Study
from xmtc.core.config import merge

_TOKENS, _EPOCHS = 32, 3
_RATES = {"encoder": 1e-4, "hidden": 3e-4, "aplc": 3e-3}  # of the recipe aplc/tate-cpu
_SHARED: dict[str, Any] = {
    "encoder": {"name": "minilm-l3", "max_length": _TOKENS, "freeze_words": True, "pool": "mean", "dropout": 0.0},
    "head": {"initial_bias": -6.0},
    "train": {"epochs": _EPOCHS, "batch_size": 32},
}
_THREE_EVEN = (0.33, 0.33, 0.34)  # as Figure 5 has them; Figure 4's three even clusters are the same
_SINGLE = (1e-4, 3e-4, 1e-3, 3e-3)  # the modules' own rates, and one between
_PRECISIONS = ("P@1", "P@3", "P@5")
_RAN = f"APLC on minilm-l3, 3 layers, mean, {_TOKENS} tokens, {_EPOCHS} epochs"


def _arm(name: str, words: str, cluster: dict[str, Any], rate: dict[str, float] = _RATES) -> Arm:
    return Arm(name, words, "aplc", reduce(merge, ({"cluster": cluster}, {"rate": rate}), _SHARED))


def _single(rate: float) -> Arm:
    return _arm(f"single-{rate:.0e}", f"2 even clusters, {rate:g} for all", _even(2), dict.fromkeys(_RATES, rate))


def _even(n_bands: int) -> dict[str, Any]:
    return {"bands": n_bands}


def _cut(*proportions: float) -> dict[str, Any]:
    return {"proportions": list(proportions)}


STUDY = Study(
    paper="aplc",
    title="APLC-XLNet (Ye et al., ICML 2020)",
    documents=Documents(train=6_000),
    arms=(
        _arm("even-2", "2 even clusters, a rate for each module", _even(2)),
        _arm("even-3", "3 even clusters (0.33, 0.33, 0.34)", _cut(*_THREE_EVEN)),
        _arm("even-4", "4 even clusters", _even(4)),
        _arm("even-6", "6 even clusters", _even(6)),
        _arm("large-head", "(0.7, 0.2, 0.1)", _cut(0.7, 0.2, 0.1)),
        _arm("small-head", "(0.1, 0.2, 0.7)", _cut(0.1, 0.2, 0.7)),
        *(_single(rate) for rate in _SINGLE),
    ),
    claims=(
        Claim(
            title="Figure 4: the number of clusters",
            said="The more even clusters, the lower P@1: gradually on EURLex, slightly on Wiki10 (the text beside "
            "Figure 4; it prints no table).",
            ran=_RAN,
            arms=("even-2", "even-3", "even-4", "even-6"),
            figures=_PRECISIONS,
            by="P@1",
            order=("even-2", "even-3", "even-4", "even-6"),
            published=(Published("text on Figure 4, EURLex", {"even-2": {"P@1": 87.72}, "even-6": {"P@1": 85.72}}),),
        ),
        Claim(
            title="Figure 5: the share of the head",
            said="Of three clusters, the more labels are in the head, the higher P@1: by about 3 percent on EURLex "
            "from (0.1, 0.2, 0.7) to (0.7, 0.2, 0.1), by little on Wiki10 (the text beside Figure 5; it prints no "
            "table).",
            ran=_RAN,
            arms=("large-head", "even-3", "small-head"),
            figures=_PRECISIONS,
            by="P@1",
            order=("large-head", "even-3", "small-head"),
        ),
        Claim(
            title="Section 4.1: learning rates",
            said="Each module needs its own rate, the encoder the lowest; with the same for the entire model it is "
            "infeasible to train (4.1 prints no figures).",
            ran=f"{_RAN}; {_RATES['encoder']:g} for the encoder, {_RATES['hidden']:g} for the hidden layer and "
            f"{_RATES['aplc']:g} for APLC, against single rates from {_SINGLE[0]:g} to {_SINGLE[-1]:g} for all",
            arms=("even-2", *(_single(rate).name for rate in _SINGLE)),
            figures=(LOSS.format(_EPOCHS), *_PRECISIONS),
        ),
    ),
)
