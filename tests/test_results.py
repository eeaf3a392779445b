"""docs/results is what benchmarks/results give; and the pieces of the benchmarks that need no rival."""

from __future__ import annotations

import ast
import json
import re
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
from benchmarks.framework.sources import record_sources
from benchmarks.pages.markup import finish
from benchmarks.peers import score
from benchmarks.peers.export import Problem, export
from benchmarks.rankings import OURS, write_top
from xmtc.core.labels import LabelSet

LIMITS = Limits(timeout=60, patience=0)
LARGEST = 8_000_000  # bytes of benchmarks/results


def test_pages_are_what_the_results_give_and_every_result_is_on_one() -> None:
    if not stored.RESULTS.is_dir():
        pytest.skip("no benchmarks/results here")
    pages = tables.gather()
    assert tables.problems(pages) == []
    text = "".join(part for parts in pages.values() for part in parts)
    files = {path.relative_to(stored.RESULTS).with_suffix("").as_posix() for path in stored.RESULTS.rglob("*.json")}
    assert sorted(file for file in files if f"(result:{file})" not in text and f"(result:{file}#" not in text) == []


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


def test_pages_hold_the_figures_and_mark_what_is_decided(results: Path) -> None:
    page = "\n".join(tables.gather()["tiny"])
    assert "| [xmtc linear](result:linear/tiny) | 50.00 |" in page
    assert "| [first](result:peers/tiny#first) | **−1.00 [−2.00, −0.50]** |" in page
    assert "| [second](result:peers/tiny#second) | +0.25 [−0.50, +1.00] |" in page
    assert "- third failed: install: no such package" in page
    assert "[third]" not in page
    index = "\n".join(tables.gather()["index"])
    assert "| tiny | rival: [first](result:peers/tiny#first) | **50.00** |" in index
    assert "On 0 of 1 sets the best of ours has a higher P@5" in index


def test_check_tells_typed_figures_stale_drawings_and_a_stale_comparison(results: Path) -> None:
    assert tables.main([]) == tables.main(["--check"]) == 0
    readme = tables.README.read_text()
    assert readme.startswith("before\n")
    assert readme.endswith(f"{tables.END}\nafter\n")
    assert "| tiny | rival | first | **50.00** |" in readme
    for path, old, new in (
        (tables.FOLDER / "tiny.md", "50.00", "60.00"),
        (tables.README, "50.00", "60.00"),
        (tables.FOLDER / "training.svg", "shows ", "showed "),
        (results / "peers" / "tiny.json", '"compared_with": "abc"', '"compared_with": "old"'),
    ):
        kept = path.read_text()
        path.write_text(kept.replace(old, new))
        assert tables.main(["--check"]) == 1, path
        path.write_text(kept)
    (tables.FOLDER / "gone.md").write_text("of a set that has no results any more")
    assert tables.main(["--check"]) == 1
    assert tables.main([]) == 0
    assert not (tables.FOLDER / "gone.md").exists()
    tables.README.write_text("no place for results")
    assert tables.main(["--check"]) == 1


def test_lines_stay_readable(results: Path) -> None:
    parts = ["# A page", "word " * 200, "- item " * 100, "| a |"]
    assert max(map(len, finish(parts).splitlines())) <= 120
    too_long = {**tables.gather(), "tiny": ["# tiny", f"| {'x' * 300} |"]}
    assert any("a line of 304 characters" in problem for problem in tables.problems(too_long))


def test_older_code_is_marked_and_refused_by_strict(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = results.parent / "xmtc"
    (sources / "methods").mkdir(parents=True)
    (sources / "methods" / "linear.py").write_text("x = 1\n")
    monkeypatch.setattr("benchmarks.framework.sources.SOURCES", sources)
    current = {**FACTS, "sources": record_sources(["xmtc.methods.linear"])}
    stored.write_result("linear/tiny", {**_linear(), "facts": current})
    path = results / "peers" / "tiny.json"
    path.write_text(path.read_text().replace('"facts": {', f'"facts": {{"sources": {json.dumps(current["sources"])},'))
    assert tables.main(["--strict"]) == 0
    assert "†" not in (tables.FOLDER / "index.md").read_text()
    record = stored.read_result("linear/tiny") or {}
    record["facts"]["sources"]["sha256"] = "of other code"
    stored.write_result("linear/tiny", record)
    assert tables.main([]) == 0  # marked, not refused
    page = (tables.FOLDER / "tiny.md").read_text()
    assert re.search(r"\| \[xmtc linear\]\[\d+\]† \|", page)
    assert "[first][2] |" in page
    assert "† Measured on code that has changed since" in page
    capsys.readouterr()
    assert tables.main(["--check", "--strict"]) == 1
    assert capsys.readouterr().err == (
        "error: results/linear/tiny measured other code than today's (on index, tiny); measure it again\n"
    )


def test_seeds_are_one_row_and_presets_are_on_the_first_page(results: Path) -> None:
    for seed, reached in enumerate((60.0, 62.0, 64.0)):
        stored.write_result(f"presets/tiny/balanced-10m-{seed}", _preset(seed, reached))
    pages = tables.gather()
    row = next(row for row in "\n".join(pages["index"]).splitlines() if row.startswith("| tiny | preset balanced"))
    assert row.startswith("| tiny | preset balanced within 10m, seeds [0](result:presets/tiny/balanced-10m-0), [1](")
    assert "| **62.00** | **62.00** |" in row
    assert "| 30\u00a0s |" in row  # without the start and reading
    told = "\n".join(pages["tiny"])
    assert "| [balanced-10m-1](result:presets/tiny/balanced-10m-1) | knn | 50.00 | 50.00 | 50.00 | 40 % | 7 |" in told
    assert "the best of ours has a higher P@5 than the best rival (tiny +12.00" in "\n".join(pages["index"])


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
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "pages")
    monkeypatch.setattr(tables, "README", tmp_path / "README.md")
    (tmp_path / "README.md").write_text(f"before\n{tables.BEGIN}\n{tables.END}\nafter\n")
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


def _preset(seed: int, reached: float) -> dict[str, Any]:
    line = {"name": "knn", "scores": dict.fromkeys(("P@1", "P@5", "PSP@5"), 50.0), "share": 0.4}
    return {
        "facts": {**FACTS, "seed": seed},
        "preset": "balanced",
        "time_limit": "10m",
        "group": None,
        "leaderboard": [line],
        "member_seconds": {"knn": 7.0},
        "seconds": {"train": {"start": 5.0, "read": 5.0, "train": 30.0}, "rank": {"rank": 1.0}},
        "documents_per_second": 10.0,
        "one_ms": {"p50": 1.0, "p99": 2.0},
        "model_mb": 1.0,
        "reports": {"known": {"metrics": dict.fromkeys(HEADS, reached)}},
        "ranking": {"sha256": "abc", "k": 5},
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
