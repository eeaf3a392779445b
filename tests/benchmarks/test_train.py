"""benchmarks.train and benchmarks.ensemble_weights, from a small set's files to the results page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="neural recipes need torch")

from benchmarks import ensemble_weights, tables, train
from benchmarks.framework import process, results
from benchmarks.framework.machine import ROOT
from benchmarks.rankings import WIDTH, read_scored, read_stored
from benchmarks.splits import read_splits
from tests.benchmarks.phases import run_here
from tests.benchmarks.sets import all_texts, write_native, write_recipe
from xmtc.api import read_corpus
from xmtc.core.ensemble import combine

if not Path("/proc/self/stat").exists():
    pytest.skip("looks for processes in /proc", allow_module_level=True)

pytestmark = pytest.mark.timeout(1800)  # several processes that load torch, on a machine that may be busy
EPOCHS = 15
MEMBERS = ["linear-0", "lightxml-tiny-cpu-0"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory):
    """Results of linear and LightXML on a small set without dev; LightXML was killed once and gone on with."""
    folder = tmp_path_factory.mktemp("benchmarks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XMTC_CACHE", str(folder / "cache"))
        patch.setattr(results, "RESULTS", folder / "results")
        patch.setattr(tables, "FOLDER", folder / "pages")
        patch.setattr(tables, "README", folder / "README.md")
        (folder / "README.md").write_text(f"{tables.BEGIN}\n{tables.END}\n")
        write_native(folder / "data" / "tiny", {"train": 200, "test": 60})
        command = [str(write_recipe(folder, all_texts(), epochs=EPOCHS)), *options(folder)]
        with pytest.MonkeyPatch.context() as here:
            here.setattr(process, "run", run_here)
            assert train.BENCHMARK.main(["linear", "--set-name", "tiny", *options(folder)]) == 0
        killer = threading.Thread(target=kill_after_first_checkpoint, args=(model(folder),))
        killer.start()
        assert train.BENCHMARK.main(command) == 2
        killer.join()
        assert not model(folder).exists()
        assert train.BENCHMARK.main(command) == 0
        yield folder


def model(folder: Path) -> Path:
    return folder / "cache" / "benchmarks" / "tiny" / MEMBERS[1]


def kill_after_first_checkpoint(model: Path) -> None:
    partial = model.with_name(f"{model.name}.partial")
    wait_until(lambda: any(partial.rglob("step-*")))
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                os.kill(int(path.parent.name), signal.SIGKILL)


def options(folder: Path) -> list[str]:
    return ["--data", str(folder / "data"), "--patience", "0", "--threads", "1", "--timeout", "600"]


def result(home: Path, kind: str, name: str) -> dict[str, Any]:
    return json.loads((home / "results" / kind / "tiny" / f"{name}.json").read_text())


def test_a_run_leaves_facts_scores_and_both_rankings(home: Path) -> None:
    found = result(home, "train", "lightxml-tiny-cpu-0")
    assert found["title"] == "LightXML on tiny-bert, 2 layers, 16 tokens, 15 epochs"
    assert found["encoder"] == "tiny-bert, 2 layers, 16 tokens"
    assert found["config"]["encoder"]["name"] == "tiny-bert"
    assert {"torch", "transformers"} <= set(found["facts"]["packages"])
    assert set(found["seconds"]["train"]) >= {"start", "read", "train", "save"}
    assert (found["data"]["train_documents"], found["data"]["dev_documents"]) == (190, 10)
    assert found["data"]["test_documents"] == found["reports"]["all"]["n"] == 60
    assert set(found["reports"]["known"]["intervals"]) == set(found["reports"]["known"]["metrics"])
    assert found["peak_rss_mb"]["train"] > 0
    assert 0 < found["one_ms"]["p50"] <= found["one_ms"]["p99"]
    assert str(home) not in json.dumps(found)
    for split, n in (("dev", 10), ("test", 60)):
        path = home / "results" / "rankings" / "tiny" / f"lightxml-tiny-cpu-0.{split}.npz"
        stored = read_stored(path)
        assert stored.ids.shape == stored.scores.shape == (n, WIDTH)
        assert (stored.ids.dtype, stored.scores.dtype) == (np.int32, np.float16)
        assert (stored.rows is not None) == (split == "dev")


def test_every_method_trains_without_the_same_held_out_documents(home: Path) -> None:
    linear, neural = (result(home, "train", member)["data"] for member in MEMBERS)
    for key in ("train", "dev", "test", "label_ids", "held_out"):
        assert linear[key] == neural[key]
    whole, splits = read_corpus(home / "data" / "tiny", "train"), read_splits(home / "data" / "tiny")
    stored = read_stored(home / "results" / "rankings" / "tiny" / "linear-0.dev.npz")
    assert [whole.texts[row] for row in stored.rows] == list(splits.dev.texts)
    assert set(splits.train.ids) | set(splits.dev.ids) == set(whole.ids)
    assert not set(splits.train.ids) & set(splits.dev.ids)


def test_a_finished_run_is_ranked_again_and_keeps_the_times_of_its_training(home: Path) -> None:
    before = result(home, "train", "linear-0")
    path = home / "results" / "train" / "tiny" / "linear-0.json"
    path.unlink()
    assert train.BENCHMARK.main(["linear", "--set-name", "tiny", *options(home)]) == 0
    after = json.loads(path.read_text())
    assert after["seconds"]["train"] == before["seconds"]["train"]
    assert after["machine"]["train"] == before["machine"]["train"]
    assert after["rankings"] == before["rankings"]


def test_a_killed_run_goes_on_when_the_command_is_given_again(home: Path) -> None:
    found = result(home, "train", MEMBERS[1])
    assert found["sessions"] == 2
    assert [entry["epoch"] for entry in found["curve"]] == list(range(EPOCHS))
    log = model(home).with_name(f"{MEMBERS[1]}.log").read_text()
    assert "resuming at step" in log
    assert log.count("epoch 1 of") == 1


def test_a_phase_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    mark, job = tmp_path / "runs", tmp_path / "job.json"
    job.write_text("{}")
    (tmp_path / "sleeper.py").write_text(
        f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\n"
        "PHASES = {'wait': lambda job: time.sleep(300)}\n"
    )
    command = f"[sys.executable, '-m', 'benchmarks.framework', 'sleeper', 'wait', {str(job)!r}]"
    outer = f"import subprocess, sys, time; subprocess.Popen({command}); time.sleep(60)"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    process = subprocess.Popen([sys.executable, "-c", outer], cwd=ROOT, env=environment)
    wait_until(lambda: mark.is_file() and mark.read_text() != "")
    process.kill()
    process.wait()
    pid = int(mark.read_text())
    wait_until(lambda: not runs(pid), 60)
    assert not runs(pid)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")  # dead, not yet collected


def wait_until(happened: Callable[[], bool], seconds: float = 600) -> None:
    until = time.monotonic() + seconds
    while not happened() and time.monotonic() < until:
        time.sleep(0.02)


def test_an_ensemble_is_chosen_on_dev_and_scored_on_test(home: Path) -> None:
    assert ensemble_weights.BENCHMARK.main(["tiny", *MEMBERS, "--data", str(home / "data")]) == 0
    found = result(home, "ensembles", "+".join(MEMBERS))
    assert len(found["dev"]) == 11
    assert found["dev"][" ".join(f"{weight:.1f}" for weight in found["weights"].values())] == max(found["dev"].values())
    runs = [result(home, "train", member) for member in MEMBERS]
    for corner, run in (("1.0 0.0", runs[0]), ("0.0 1.0", runs[1])):
        assert found["dev"][corner] == pytest.approx(run["dev"]["P@5"], abs=1e-3)
    rankings = [read_scored("tiny", f"{run['name']}.test", run["rankings"]["test"]["sha256"]) for run in runs]
    corpus = read_corpus(home / "data" / "tiny", "test").align(read_splits(home / "data" / "tiny").train.labels)
    top = combine(rankings, 1, weights=list(found["weights"].values())).labels[:, 0]
    p1 = 100 * np.mean([corpus.Y[row, label] for row, label in enumerate(top)])
    assert found["reports"]["all"]["metrics"]["P@1"] == pytest.approx(p1, abs=1e-3)
    pairs = [(pair["of"], pair["minus"]) for pair in found["differences"]]
    assert pairs == [("ensemble", MEMBERS[0]), ("ensemble", MEMBERS[1]), (MEMBERS[1], MEMBERS[0])]
    gap = found["differences"][2]["scores"]["P@1"]
    scores = [run["reports"]["known"]["metrics"]["P@1"] for run in runs]
    assert gap["difference"] == pytest.approx(scores[1] - scores[0], abs=1e-3)
    assert gap["decided"] == (gap["interval"][0] > 0 or gap["interval"][1] < 0)


def test_the_page_shows_what_ran_and_tells_stale_ensembles(home: Path) -> None:
    assert ensemble_weights.BENCHMARK.main(["tiny", *MEMBERS, "--data", str(home / "data")]) == 0
    assert tables.main([]) == 0
    assert tables.main(["--check", "--strict"]) == 0  # all was measured by the code of today
    page = (tables.FOLDER / "tiny.md").read_text()
    assert "†" not in page
    scores = result(home, "train", MEMBERS[1])["reports"]["known"]["metrics"]
    name = r"\[LightXML on tiny-bert, 2 layers, 16 tokens, 15 epochs\]\[\d+\]"
    assert re.search(rf"\| {name} \| {scores['P@1']:.2f} \| {scores['P@3']:.2f} \|", page)
    assert "[xmtc linear, without dev][" in page
    assert "settings were chosen on 10, held out of train as dev" in page.replace("\n", " ")
    assert "| [lightxml-tiny-cpu-0][" in page  # the curve
    assert ": ensemble − `linear-0` |" in page
    assert "mean of linear + LightXML" in (tables.FOLDER / "index.md").read_text()
    path = home / "results" / "train" / "tiny" / "linear-0.json"
    kept = path.read_text()
    path.write_text(kept.replace(json.loads(kept)["rankings"]["dev"]["sha256"], "0" * 64))
    assert [problem for problem in tables.problems(tables.gather()) if "made of other rankings" in problem]
    path.write_text(kept)


def test_members_of_other_dev_documents_are_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / "results" / "train" / "tiny" / "linear-0.json"
    kept = json.loads(path.read_text())
    other = {**kept, "data": {**kept["data"], "dev": "0" * 64}}
    (path.parent / "other-0.json").write_text(json.dumps(other))
    refused(
        capsys,
        ensemble_weights.BENCHMARK.main(["tiny", MEMBERS[1], "other-0", "--data", str(home / "data")]),
        "same dev documents",
    )
    (path.parent / "other-0.json").unlink()
    refused(
        capsys,
        ensemble_weights.BENCHMARK.main(["tiny", *MEMBERS, "--by", "P@55", "--data", str(home / "data")]),
        "'P@5'",
    )
    refused(capsys, ensemble_weights.BENCHMARK.main(["tiny", MEMBERS[0], "linaer-0"]), "Did you mean 'linear-0'?")
    refused(capsys, ensemble_weights.BENCHMARK.main(["tiny", MEMBERS[0]]), "two different members")


def test_other_data_than_the_members_are_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_native(home / "elsewhere" / "tiny", {"train": 201, "test": 60})
    refused(
        capsys, ensemble_weights.BENCHMARK.main(["tiny", *MEMBERS, "--data", str(home / "elsewhere")]), "another tiny"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["linear"], "--set-name"),
        (["lightxml/tate-cpuu"], "Did you mean 'lightxml/tate-cpu'?"),
        (["linear", "--set-name", "nowhere"], "no data set 'nowhere'"),
        (["linear", "--set-name", "tiny", "--set", "tree.treees=1"], "tree.treees"),
    ],
)
def test_mistakes_are_told_in_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    refused(capsys, train.BENCHMARK.main([*arguments, *options(home)]), told)


def refused(capsys: pytest.CaptureFixture[str], code: int, told: str) -> None:
    errors = capsys.readouterr().err
    assert code == 2
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert told in errors


def test_a_dev_split_of_the_folder_is_dev(tmp_path: Path) -> None:
    splits = read_splits(write_native(tmp_path / "set", {"train": 30, "dev": 7, "test": 5}))
    assert (len(splits.train), len(splits.dev), splits.held) == (30, 7, None)


def test_weights_cover_the_simplex() -> None:
    tried = list(ensemble_weights.simplex(3))
    assert len(set(tried)) == len(tried) == 66
    assert all(sum(weights) == 10 for weights in tried)
