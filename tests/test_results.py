"""docs/RESULTS.md is what benchmarks/results give; and the pieces of the benchmarks that need no rival."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import tables
from benchmarks.framework import Limits, PhaseError, process
from benchmarks.framework import results as stored
from benchmarks.framework.machine import ROOT
from benchmarks.framework.markdown import SCORES as HEADS
from benchmarks.peers import score
from benchmarks.peers.export import Problem, export
from benchmarks.rankings import OURS, write_top
from xmtc.core.labels import LabelSet

LIMITS = Limits(timeout=60, patience=0)
LARGEST = 8_000_000  # bytes of benchmarks/results


def test_page_is_what_the_results_give() -> None:
    if not stored.RESULTS.is_dir():
        pytest.skip("no benchmarks/results here")
    assert tables.problems() == []


def test_only_rankings_that_a_table_uses_are_stored_and_results_stay_small() -> None:
    if not stored.RESULTS.is_dir():
        pytest.skip("no benchmarks/results here")
    assert tables.unused_rankings() == []
    assert sum(path.stat().st_size for path in stored.RESULTS.rglob("*") if path.is_file()) < LARGEST


def test_a_ranking_that_no_table_uses_is_named(results: Path) -> None:
    write_top("tiny", "third", np.zeros((2, 5), dtype=int))
    assert tables.unused_rankings() == ["tiny/third"]


@pytest.mark.parametrize(
    ("module", "absent"), [("benchmarks.framework", {"numpy", "xmtc"}), ("benchmarks.tables", {"torch"})]
)
def test_rivals_need_no_xmtc_and_the_pages_no_torch(module: str, absent: set[str]) -> None:
    asked = f"import sys, {module}; print(sorted({absent!r} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_benchmarks_use_public_names_alone() -> None:
    """No `import _name` from another module, and no `name._attribute` but on self and in os._exit."""
    private = []
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                private += [f"{path.name}: {alias.name}" for alias in node.names if _is_private(alias.name)]
            elif isinstance(node, ast.Attribute) and _is_private(node.attr):
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                if owner not in ("self", "os"):
                    private.append(f"{path.name}: {owner}.{node.attr}")
    assert private == []


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_page_holds_the_figures_and_says_what_is_undecided(results: Path) -> None:
    page = tables.render()
    assert "| xmtc linear | 50.00 |" in page
    assert "| P@1 | −1.00 [−2.00, −0.50] | +0.25 [−0.50, +1.00] undecided |" in page
    assert "- third failed: install: no such package" in page
    assert "| third |" not in page


def test_check_tells_a_typed_page_and_a_stale_comparison(results: Path) -> None:
    tables.PAGE.write_text(tables.render())
    tables.SCALING.write_text(tables.render_scaling())
    assert tables.problems() == []
    tables.PAGE.write_text(tables.render().replace("50.00", "60.00"))
    assert [problem for problem in tables.problems() if "docs/RESULTS.md" in problem]
    path = results / "peers" / "tiny.json"
    path.write_text(path.read_text().replace('"compared_with": "abc"', '"compared_with": "old"'))
    assert [problem for problem in tables.problems() if "--rescore" in problem]


def test_differences_are_xmtc_minus_rival(results: Path) -> None:
    n = 50
    labels = LabelSet.build("ab").with_counts(np.array([n, n]))
    problem = Problem(results, "", "", sp.csr_matrix(np.tile([1, 0], (n, 1))), labels, 2 * n)
    ours = write_top("tiny", OURS, np.tile([0, 1], (n, 1)))
    theirs = write_top("tiny", "rival", np.tile([1, 0], (n, 1)))
    rivals = {"rival": {"ranking": theirs}, "broken": {"error": "no"}}
    found = score.score("tiny", problem, {"ranking": ours}, rivals, results)
    assert found["rivals"]["rival"]["metrics"]["P@1"] == 0
    assert found["rivals"]["rival"]["differences"]["P@1"] == {
        "difference": 100.0,
        "interval": [100.0, 100.0],
        "decided": True,
    }
    assert found["rivals"]["broken"] == {"error": "no"}


def test_rivals_get_labelled_documents_and_labels_of_train(tmp_path: Path) -> None:
    documents = {
        "train": [("sugar beet sugar", ["s"]), ("fish net beet", ["f"]), ("sugar fish net", [])],
        "test": [("beet of sugar", ["s", "new"])],
    }
    for split, rows in documents.items():
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in rows]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.warns(match="without labels"):
        problem = export(tmp_path, tmp_path / "matrices")
    X, Y, X_test = (sp.load_npz(tmp_path / "matrices" / f"{part}.npz") for part in ("X.train", "Y.train", "X.test"))
    assert Y.toarray().tolist() == [[0, 1], [1, 0]]  # f, s
    assert X.shape == (2, 4)  # beet, fish, net, sugar: each in two documents
    assert (X_test.toarray()[0] > 0).tolist() == [True, False, False, True]
    assert problem.truth.toarray().tolist() == [[0, 1, 1]]
    assert problem.n_documents == 3


def test_a_failing_phase_is_told_in_one_line() -> None:
    with pytest.raises(PhaseError, match="No module named"):
        process.run(sys.executable, "benchmarks.no_such_module", "train", {"threads": 1}, LIMITS)


def test_errors_name_no_paths_of_this_machine() -> None:
    told = process.one_line("Traceback\nOSError: cannot read '/a/b/c.txt' from https://host/x\nWARNING: z\n\n")
    assert told == "OSError: cannot read '…' from …"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the results of one small set and three rivals, of which one failed."""
    monkeypatch.setattr(stored, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(tables, "PAGE", tmp_path / "RESULTS.md")
    monkeypatch.setattr(tables, "SCALING", tmp_path / "SCALING.md")
    stored.write_result("linear/tiny", _linear())
    rivals = {
        "first": _rival("first", -1.0, (-2.0, -0.5)),
        "second": _rival("second", 0.25, (-0.5, 1.0)),
        "third": {**_record("third"), "error": "install: no such package"},
    }
    stored.write_result("peers/tiny", {"compared_with": "abc", "rivals": rivals})
    return tmp_path / "results"


FACTS: dict[str, Any] = {
    "commit": "0123456789abcdef",
    "dirty": False,
    "cpu": "a processor",
    "cores": 2,
    "ram_gb": 8.0,
    "system": "Linux",
    "python": "3.11.0",
    "packages": {"numpy": "2.0"},
    "threads": 2,
    "seed": 0,
}
SCORES = dict.fromkeys(HEADS, 50.0)
QUIET = {"load_before": 0.1, "waited_s": 0.0, "others_cores": None}


def _linear() -> dict[str, Any]:
    report = {
        "metrics": SCORES,
        "intervals": {key: [49.0, 51.0] for key in SCORES},
        "n": 9,
        "labels_in_bin": dict.fromkeys(("few", "medium", "many", "unseen"), 1),
    }
    return {
        "set": "tiny",
        "facts": FACTS,
        "config": {"solver": {"C": 1.0}},
        "data": {"train_documents": 20, "test_documents": 10, "labels": 4},
        "seconds": {"train": dict.fromkeys(("vectorise", "cluster", "train", "save"), 1.0), "rank": {"rank": 1.0}},
        "documents_per_second": 10.0,
        "peak_rss_mb": {"train": 1.0, "rank": 1.0},
        "model_mb": 1.0,
        "machine": {"train": QUIET, "rank": QUIET},
        "ranking": {"sha256": "abc", "k": 20},
        "reports": {"known": report, "all": report},
    }


def _record(title: str) -> dict[str, Any]:
    return {"title": title, "settings": {"beam": 10}, "notes": ["odd"], "facts": FACTS}


def _rival(title: str, difference: float, interval: tuple[float, float]) -> dict[str, Any]:
    decided = interval[0] > 0 or interval[1] < 0
    phase = {"seconds": 1.0, "model_mb": 1.0, "peak_rss_mb": 1.0, "machine": QUIET}
    return {
        **_record(title),
        "train": phase,
        "predict": phase,
        "metrics": SCORES,
        "differences": {"P@1": {"difference": difference, "interval": interval, "decided": decided}},
    }
