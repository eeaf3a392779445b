"""TReaderXML (Wang et al., 2022): Table 3 (teacher knowledge, reading, residual) and Table 4 (the tail).

Published figures are those of the paper's tables, on AmazonCat-13K; neither that set nor its word vectors ran here.
"""

from __future__ import annotations

from typing import Any

from benchmarks.ablations.study import FEW_IN_SCOPE, FEW_VOTE, IN_SCOPE, VOTE, Arm, Claim, Documents, Published, Study
from xmtc.core.config import merge

_WORDS, _EPOCHS = 32, 10
SHARED: dict[str, Any] = {
    "text": "words",
    "encoder": {"name": "minilm"},  # whose word embeddings are read; none of its layers
    "words": {"max_words": _WORDS, "vectors": "encoder"},
    "neighbours": {"k": 5, "vectors": "words"},
    "head": {"pool": "mean", "initial_bias": -6.0},
    "rate": {"words": 1e-2, "reader": 3e-4},  # with 1e-3 the attentions' tanh saturates where two stand in a row
    "train": {"epochs": _EPOCHS, "batch_size": 16, "schedule": "linear"},  # attention in a row wants many steps
}
# what lets the reading layers learn, beyond the paper: norms, residuals, teacher and text pooled apart, dropout
NORM: dict[str, Any] = {"reader": {"norm": True}, "head": {"pool": "apart", "dropout": 0.5}}
_BY_TFIDF = merge(SHARED, {"neighbours": {"vectors": "tfidf"}})
_VOTE = merge(_BY_TFIDF, {"scope": {"weighted": True}, "head": {"vote": True}})  # "weight", by its old name
_FIGURES = ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5")
_TAIL = ("PSP@1", "PSP@3", "PSP@5")
_BINS = ("macro-F@5/few", "macro-F@5/medium", "macro-F@5/many")
_RAN = f"TReaderXML on MiniLM's word embeddings, {_WORDS} words, mean of the states, {_EPOCHS} epochs"

# arm → words, teacher, reading, and the row of Table 3
_CONFIGURATIONS: dict[str, tuple[str, bool, str, tuple[float, ...]]] = {
    "config-0": ("0: neither teacher nor reading", False, "none", (88.73, 69.12, 53.94, 78.78, 75.42)),
    "config-1": ("1: teacher, no reading", True, "none", (93.93, 77.70, 58.53, 87.15, 81.79)),
    "config-2": ("2: teacher, MMHSA+R", True, "mmhsa+r", (95.49, 83.45, 66.08, 92.00, 88.81)),
    "config-3": ("3: teacher, MHSA+R", True, "mhsa+r", (95.52, 83.46, 66.04, 92.03, 88.81)),
    "config-4": ("4: teacher, MHSA+R+MMHSA", True, "mhsa+r+mmhsa", (96.49, 85.44, 68.84, 93.86, 91.52)),
    "config-5": ("5: teacher, MMHSA+MHSA", True, "mmhsa+mhsa", (96.20, 84.89, 68.04, 93.33, 90.72)),
    "config-6": ("6: teacher, MMHSA+R+MHSA", True, "mmhsa+r+mhsa", (96.64, 85.57, 68.98, 93.99, 91.67)),
}


def build_arms(shared: dict[str, Any], *numbers: int) -> tuple[Arm, ...]:
    """Return the arms of these configurations of Table 3, as the equations have them."""
    named = {name: _CONFIGURATIONS[name] for name in (f"config-{number}" for number in numbers)}
    return tuple(_arm(name, words, teacher, reading, shared) for name, (words, teacher, reading, _) in named.items())


def build_norm_arms(shared: dict[str, Any], *numbers: int) -> tuple[Arm, ...]:
    """Return the arms of these configurations with `reader.norm`."""
    return tuple(
        Arm(f"norm-{number}", f"{arm.words}, with norm", arm.method, merge(arm.settings, NORM))
        for number, arm in zip(numbers, build_arms(shared, *numbers), strict=True)
    )


def claim_norm(title: str, ran: str) -> Claim:
    """Return the question whether Table 3's order comes back with norms."""
    return Claim(
        title=title,
        said="The order is 0 < 1 < 6. The literal network's states collapse (docs/methods/treader.md), so here the "
        "same configurations have norms and residuals (`reader.norm`), and teacher and text are pooled apart; the "
        "literal 0 and 6 stand beside them.",
        ran=f"{ran}; with norm, the means of teacher and text side by side",
        arms=("norm-6", "norm-1", "norm-0", "config-6", "config-0"),
        order=("norm-6", "norm-1", "norm-0"),
        figures=("P@1", "P@3", "P@5", "nDCG@5", "PSP@5"),
    )


def _arm(name: str, words: str, teacher: bool, reading: str, shared: dict[str, Any] = SHARED) -> Arm:
    return Arm(name, words, "treader", merge(shared, {"reader": {"teacher": teacher, "reading": reading}}))


def claim_table_3(title: str, said: str, *numbers: int, ran: str = _RAN) -> Claim:
    """Return the claim that the first of these configurations beats the others."""
    arms = tuple(f"config-{number}" for number in numbers)
    figures = {arm: dict(zip(_FIGURES, _CONFIGURATIONS[arm][3], strict=True)) for arm in arms}
    return Claim(
        title=f"Table 3: {title}",
        said=said,
        ran=ran,
        arms=arms,
        figures=_FIGURES,
        published=(Published(f"Table 3, configurations {', '.join(map(str, numbers))}", figures),),
    )


def claim_tail(title: str, said: str, ran: str, *more: str) -> Claim:
    """Return the claim that a teacher serves the tail where nothing is read; `more` figures stand beside it."""
    return Claim(title, said, ran, ("config-1", "config-0"), (*_TAIL, *_BINS, *more), by="PSP@5")


STUDY = Study(
    paper="treader",
    title="TReaderXML (Wang et al., 2022)",
    documents=Documents(train=5_000),
    arms=(
        *build_arms(SHARED, *range(len(_CONFIGURATIONS))),
        *build_norm_arms(SHARED, 6, 1, 0),
        _arm("reading-alone", "MMHSA+R+MHSA without a teacher", False, "mmhsa+r+mhsa"),
        _arm("tfidf-1", "1, neighbours by TF-IDF", True, "none", _BY_TFIDF),
        _arm("tfidf-6", "6, neighbours by TF-IDF", True, "mmhsa+r+mhsa", _BY_TFIDF),
        _arm("vote-1", "1, neighbours by TF-IDF, whose labels vote", True, "none", _VOTE),
    ),
    claims=(
        claim_table_3("teacher knowledge", "Teacher knowledge helps where nothing is read: 88.73 → 93.93 P@1.", 1, 0),
        claim_table_3(
            "reading",
            "Reading word by word (MMHSA, with what was read added to it), then as a whole (MHSA), beats no reading, "
            "each of the two alone, and the other order.",
            6,
            1,
            2,
            3,
            4,
        ),
        claim_norm("Table 3, with norms", _RAN),
        claim_table_3("the residual", "Without the residual a little is lost: 96.64 → 96.20 P@1.", 6, 5),
        Claim(
            title="Table 4: the tail",
            said="Teacher knowledge serves the tail: PSP@1 / 3 / 5 of 57.15 / 71.64 / 77.27 on AmazonCat-13K, above "
            "AttentionXML's 53.76 / 68.72 / 76.38. The paper prints no PSP without a teacher: here the same network "
            "without one, and configurations 1 and 0, stand beside it.",
            ran=_RAN,
            arms=("config-6", "reading-alone"),
            figures=(*_TAIL, *_BINS, "P@1", "P@5"),
            by="PSP@5",
        ),
        claim_tail("Table 4: the tail, nothing read", "The same without reading.", _RAN),
        Claim(
            title="What the teacher knows, and what is made of it",
            said="Texts are compared by the mean of their word vectors (Eq. 1), and the descriptions of all labels in "
            "a scope are averaged. Beside it neighbours by TF-IDF; what the neighbours' labels hold of the truth; what "
            "they are worth if they vote and nothing is learnt; and a network whose logits they vote on (`head.vote`).",
            ran=_RAN,
            arms=("vote-1", "tfidf-1", "config-1", "config-0", "tfidf-6", "config-6"),
            figures=(IN_SCOPE, FEW_IN_SCOPE, VOTE, FEW_VOTE, "P@1", "P@5", "PSP@5", "macro-F@5/few"),
            by=None,
        ),
    ),
)
