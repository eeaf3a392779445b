"""The page of one paper: its claims with a verdict each, published figures beside ours."""

from __future__ import annotations

from benchmarks.ablations.study import PAPERS, Study, read_study
from benchmarks.ablations.table import tables_of, verdicts_of
from benchmarks.framework.markdown import NOT_KNOWN, table

_HEAD = (
    "Small trials of what the paper claims by experiment: the same fixed documents for all arms of a study, test "
    "scores with known truth, settings chosen on dev. “±” after an arm is the standard deviation over its seeds; "
    "after a difference, taken seed by seed, it is half of the 95 % interval of the mean (Student's t), and the "
    "difference is bold where that interval leaves out 0. The paper's own figures are of other data, far larger "
    "encoders and longer training: only directions can be compared."
)
_RULE = (
    "A claim is confirmed if the first arm beats all others so in the figure that decides, not confirmed if one of "
    "them beats it so, and undecided otherwise; with fewer than three seeds it is always undecided."
)


def titles() -> dict[str, str]:
    """Return the papers that have results, by the names of their pages; several studies may be of one paper."""
    return {page: studies[0].title for page, studies in _studies().items()}


def render(page: str) -> list[str]:
    """Return the parts of the page."""
    studies = _studies()[page]
    rows = [
        [f"{verdict.claim.title}", verdict.word or NOT_KNOWN, verdict.why or "nothing to decide"]
        for study in studies
        for verdict in verdicts_of(study)
    ]
    parts = [f"# {studies[0].title}", _HEAD, _RULE, table(["claim", "verdict", "why"], rows, words=3)]
    for study in studies:
        parts += [f"## Documents of {study.documents.set}", *tables_of(study)]
    return parts


def _studies() -> dict[str, list[Study]]:
    """Page → its studies: treader_eurlex57k is one of treader's."""
    found: dict[str, list[Study]] = {}
    for paper in PAPERS:
        study = read_study(paper)
        if verdicts_of(study):
            found.setdefault(paper.partition("_")[0], []).append(study)
    return found
