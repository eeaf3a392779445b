"""benchmarks.ablations: a small study from its arms to its tables, and what its tables decide."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="neural arms need torch")

from benchmarks.ablations import lightxml, phases, schedule, table
from benchmarks.ablations.documents import read_test, read_training
from benchmarks.ablations.study import (
    FEW_IN_SCOPE,
    IN_SCOPE,
    KL,
    LOSS,
    MODEL,
    OWN,
    PAPERS,
    VOTE,
    Arm,
    Claim,
    Documents,
    Published,
    Study,
    flatten,
    read_study,
    tried_of,
    with_rates,
)
from benchmarks.framework import Limits, PhaseError, process, results
from tests.benchmarks.phases import run_here
from tests.benchmarks.sets import all_texts, documents, write_native
from tests.tiny import build_tiny
from xmtc import api
from xmtc.core.config import merge
from xmtc.core.errors import ConfigError, DataError
from xmtc.features.tokens import tokenize
from xmtc.neural.batches import Inputs

LIMITS = Limits(timeout=250, patience=0)
FACTS: dict[str, Any] = {
    "commit": "0123456789abcdef",
    "dirty": False,
    "cpu": "a processor",
    "cores": 2,
    "ram_gb": 8.0,
    "system": "Linux",
    "packages": {},
    "threads": 2,
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(process, "run", run_here)
    return tmp_path


def build_study(encoder: str = "tiny", documents: Documents | None = None) -> Study:
    light = {
        "encoder": {"name": encoder, "max_length": 16},
        "head": {"mode": "small"},
        "train": {"epochs": 2, "batch_size": 16},
    }
    return Study(
        paper="paper",
        title="A paper",
        documents=documents or Documents("tiny", train=60, dev=20, test=30),
        arms=(Arm("light", "ours", "lightxml", light), Arm("linear", "theirs", "linear", {})),
        claims=(
            Claim(
                title="Table 9",
                said="ours wins",
                ran="LightXML on a tiny BERT",
                arms=("light", "linear"),
                figures=("P@1", LOSS.format(2), MODEL),
                published=(Published("Table 9, row 1", {"light": {"P@1": 80.0}, "linear": {"P@1": 75.5}}),),
                convergence=True,
            ),
        ),
    )


def test_a_study_runs_once_and_fills_its_table(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_native(home / "tiny", {"train": 100, "test": 40})
    study = build_study(str(build_tiny("bert", home / "tiny-bert", all_texts())))
    assert schedule.fill(study, folder, study.choose(None), [0], LIMITS, threads=1) == []
    first = json.loads((home / "results/ablations/paper/light-0.json").read_text())
    assert [set(entry) for entry in first["curve"]] == [{"loss_thousandths", "dev"}] * 2
    assert first["curve"][0]["loss_thousandths"] > 10  # of the order of 1000 · ln 2
    assert first["documents"] == {"set": "tiny", "train": 60, "dev": 20, "test": 30}
    assert first["n"] == 30
    assert first["model_mb"] > 0
    assert first["peak_rss_mb"]["train"] > 10
    assert min(first["ms_a_document"].values()) > 0
    linear = json.loads((home / "results/ablations/paper/linear-0.json").read_text())
    assert linear["metrics"]["P@1"] > 50
    assert linear["curve"] == []
    page = "\n".join(table.tables_of(study))
    run = "[0](result:ablations/paper/linear-0)"
    assert f"| theirs (`linear`) | {run} | {linear['metrics']['P@1']:.2f} |" in page
    assert "**Undecided**: 1 of 3 seeds." in page
    capsys.readouterr()
    assert schedule.fill(study, folder, study.choose(None), [0], LIMITS, threads=1) == []
    assert capsys.readouterr().out == "light-0: done before\nlinear-0: done before\n"


def test_seed_by_seed_and_only_what_is_missing_or_changed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_native(home / "tiny", {"train": 100, "test": 40})
    study = build_study()
    done = []

    def measure(study: Study, arm: Arm, folder: Path, seed: int, *more: Any) -> dict[str, Any]:
        done.append(f"{arm.name}-{seed}")
        return _result(study, arm, seed, 50.0)

    monkeypatch.setattr(schedule, "_measure", measure)

    def fill(study: Study, hours: float | None = None) -> list[str]:
        done.clear()
        schedule.fill(study, folder, study.choose(None), [0, 1], LIMITS, hours=hours)
        return list(done)

    assert fill(study, hours=0) == []
    assert fill(study) == ["light-0", "linear-0", "light-1", "linear-1"]
    assert fill(study) == []
    light, linear = study.arms
    changed = replace(light, settings={**light.settings, "rate": {"head": 1e-5}})
    assert fill(replace(study, arms=(changed, linear))) == ["light-0", "light-1"]
    assert fill(replace(study, arms=(changed, linear))) == []
    fewer = replace(study, documents=Documents("tiny", train=50, dev=20, test=30))
    assert fill(fewer) == ["light-0", "linear-0", "light-1", "linear-1"]


def test_an_arm_that_is_part_of_another_is_ranked_by_its_members(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_native(home / "tiny", {"train": 100, "test": 40})
    settings = {"match": {"kind": "linear"}, "cluster": {"vectors": ["pifa"], "count": 4}, "search": {"beam": 1}}
    both = Arm("both", "two", "xbert", {**settings, "cluster": {**settings["cluster"], "seeds": 2}})
    alone = Arm("alone", "one", "xbert", settings)
    study = replace(
        build_study(), arms=(both, replace(alone, name="second", of="both", members=(1,)), alone), claims=()
    )
    ran, run = [], process.run

    def watched(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        ran.append(phase)
        return run(python, module, phase, job, limits)

    monkeypatch.setattr(process, "run", watched)
    assert schedule.fill(study, folder, study.choose(["both", "second"]), [0], LIMITS, threads=1) == []
    assert ran == ["train", "rank", "rank"]
    assert schedule.fill(study, folder, study.choose(["alone"]), [1], LIMITS, threads=1) == []
    apart = replace(study, arms=(replace(both, name="first", of="both", members=(0,)), both, replace(alone, stride=2)))
    assert schedule.fill(apart, folder, apart.choose(["first", "alone"]), [2], LIMITS, threads=1) == []
    runs = ("second-0", "alone-1", "first-2", "alone-2")
    found = [json.loads((home / f"results/ablations/paper/{run}.json").read_text()) for run in runs]
    assert found[0]["metrics"] == found[1]["metrics"]  # members of a run with seed s have the seeds 2 s and 2 s + 1
    assert found[2]["metrics"] == found[3]["metrics"]
    assert found[0]["metrics"]["matching P@1"] > 0
    assert (found[0]["of"], found[0]["members"]) == ("both", [1])
    assert (found[1]["of"], found[1]["members"]) == (None, [])


def test_settings_are_chosen_on_dev_and_used_by_all_seeds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_native(home / "tiny", {"train": 100, "test": 40})
    weak = {"tree": {"trees": 1}, "solver": {"C": 1e-5, "prune": 0.9}}  # every weight is pruned
    tries = {OWN: {}, "C = 1": {"solver": {"C": 1.0, "prune": 0.01}}, "C = 1e-6": {"solver": {"C": 1e-6}}}
    arm = Arm("trees", "ours", "linear", weak, tries=tries)
    like = Arm("like", "ours, more passes", "linear", merge(weak, {"solver": {"passes": 7}}), like="trees")
    study = replace(build_study(), arms=(arm, like), claims=())
    ran, run = [], process.run

    def watched(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        ran.append((phase, job["config"]["solver"]["C"], job["seed"]))
        return run(python, module, phase, job, limits)

    monkeypatch.setattr(process, "run", watched)
    assert schedule.fill(study, folder, study.choose(None), [0, 1], LIMITS, threads=1) == []
    tried = [(phase, C, 0) for C in (1e-5, 1.0, 1e-6) for phase in ("train", "rank_dev")]
    seeds = [("rank", 1.0, 0), ("train", 1.0, 0), ("rank", 1.0, 0)]  # of the arm, whose model is there, and of `like`
    assert ran == tried + seeds + [("train", 1.0, 1), ("rank", 1.0, 1)] * 2
    found = json.loads((home / "results/chosen/paper.json").read_text())
    (chosen,) = found["arms"].values()
    assert chosen["chosen"] == "C = 1"
    assert chosen["tried"]["C = 1"]["dev"]["P@5"] > chosen["tried"][OWN]["dev"]["P@5"] + 1
    assert study.settle(like).settings["solver"] == {"C": 1.0, "prune": 0.01, "passes": 7}
    page = "\n".join(table.tables_of(study))
    assert f"**C = 1 {chosen['tried']['C = 1']['dev']['P@5']:.2f}**" in page
    assert "changed since" not in page

    ran.clear()
    assert schedule.fill(study, folder, study.choose(None), [0, 1], LIMITS, threads=1) == []
    assert ran == []  # nothing is chosen or trained again
    other = replace(study, arms=(replace(arm, tries={OWN: {}, "C = 1": {"solver": {"C": 2.0}}}), like))
    assert other.settle(like) == like  # what was chosen among other settings says nothing
    fewer = replace(study, documents=Documents("tiny", train=50, dev=20, test=30))
    assert fewer.chosen() == {}


def test_rates_are_tried_together() -> None:
    arm = Arm("light", "ours", "lightxml", {"rate": {"encoder": 2e-4, "head": 3e-3}})
    tried = with_rates(arm, 0.5, 2, **{"α = 1": {"loss": {"diversity": 1.0}}})
    assert list(tried.tries) == [OWN, "rates × 0.5", "rates × 2", "α = 1"]
    assert tried.tries["rates × 2"] == {"rate": {"encoder": 4e-4, "head": 6e-3}}
    assert tried_of(tried)["rates × 0.5"] == ["rate.encoder=0.0001", "rate.head=0.0015"]


def test_a_failing_run_is_told_and_the_next_goes_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_native(home / "tiny", {"train": 100, "test": 40})
    study = build_study()

    def measure(study: Study, arm: Arm, folder: Path, seed: int, *more: Any) -> dict[str, Any]:
        if arm.name == "light":
            raise PhaseError("out of memory")
        return _result(study, arm, seed, 50.0)

    monkeypatch.setattr(schedule, "_measure", measure)
    assert schedule.fill(study, folder, study.choose(None), [0], LIMITS) == ["light-0: out of memory"]
    assert (home / "results/ablations/paper/linear-0.json").is_file()
    assert not (home / "results/ablations/paper/light-0.json").exists()


def test_documents_are_fixed_and_dev_is_never_trained_on(tmp_path: Path) -> None:
    without = write_native(tmp_path / "without", {"train": 100, "test": 40})
    documents = Documents("tiny", train=60, dev=20, test=30)
    train, dev = read_training(without, documents)
    again, _ = read_training(without, documents)
    assert (len(train), len(dev), len(read_test(without, documents))) == (60, 20, 30)
    assert train.fingerprint() == again.fingerprint()
    assert not set(train.ids) & set(dev.ids)
    own = write_native(tmp_path / "with", {"train": 70, "dev": 15, "test": 10})
    train, dev = read_training(own, documents)
    assert (len(train), len(dev), len(read_test(own, documents))) == (60, 15, 10)
    assert set(dev.texts or ()) <= set(api.read_corpus(own, "dev").texts or ())
    with pytest.raises(DataError, match="120 training documents, and without has 100"):
        read_training(without, replace(documents, train=100))


@pytest.mark.parametrize(
    ("ours", "difference", "told"),
    [
        ([51.0, 52.0], 1.5, "+1.50"),
        ([51.0, 51.2, 51.1], 1.1, "**+1.10 ± 0.25**"),  # t of 2 degrees is 4.303: 4.303 · 0.1 / √3
        ([51.0, 49.0, 50.3], 0.1, "+0.10 ± 2.52"),
        ([51.0, 51.0, 51.0], 1.0, "**+1.00 ± 0.00**"),
    ],
)
def test_what_three_seeds_decide(home: Path, ours: list[float], difference: float, told: str) -> None:
    assert table.compare(ours, [50.0] * len(ours))[0] == pytest.approx(difference)
    study = build_study()
    for seed, score in enumerate(ours):
        _write(study, "light", seed, score)
        _write(study, "linear", seed, 50.0)
    _write(study, "linear", 7, 99.0)  # of a seed that the other arm lacks
    page = "\n".join(table.tables_of(study))
    assert f"| `light` − `linear` | {len(ours)} | {told} |" in page
    assert "| – paper, Table 9, row 1 |  | +4.50 |" in page  # the paper's own difference
    assert "LightXML on a tiny BERT, 60 documents of tiny." in page
    assert page.count("(result:ablations/paper/linear-") == len(ours) + 1
    verdict = table.verdicts_of(study)[0].word
    assert verdict == ("confirmed" if told.startswith("**") else "undecided")


def test_relative_improvements_stand_beside_the_papers(home: Path) -> None:
    study = build_study()
    (claim,) = study.claims
    told = replace(claim, figures=("P@1",), convergence=False, relative={"Table 4, ours": {"P@1": 4.78}})
    study = replace(study, claims=(told,))
    for seed, (ours, theirs) in enumerate([(44.0, 40.0), (57.0, 50.0), (24.0, 20.0)]):
        _write(study, "light", seed, ours)
        _write(study, "linear", seed, theirs)
    page = "\n".join(table.tables_of(study))
    half = 4.302653 * 5.033223 / math.sqrt(3)  # 10, 14 and 20 %: their standard deviation, and Student's t
    assert f"| `light` over `linear` | 3 | **+14.67 ± {half:.2f}** |" in page
    assert "| paper, Table 4, ours |  | +4.78 |" in page
    assert "improvement in percent" not in "\n".join(table.tables_of(build_study()))


def test_arms_that_the_paper_prints_nothing_of(home: Path) -> None:
    study = build_study()
    (claim,) = study.claims
    alone = Published("Table 9, row 1", {"light": {"P@1": 80.0}})
    study = replace(study, claims=(replace(claim, figures=("P@1",), published=(alone,)),))
    for arm in ("light", "linear"):
        _write(study, arm, 0, 50.0)
    page = "\n".join(table.tables_of(study))
    rows = [row for row in page.splitlines() if row.startswith("| ")]
    assert rows[2:] == [
        "| ours (`light`) | [0](result:ablations/paper/light-0) | 50.00 |",
        "| – paper, Table 9, row 1 |  | 80.00 |",
        "| theirs (`linear`) | [0](result:ablations/paper/linear-0) | 50.00 |",
        "| `light` − `linear` | 1 | +0.00 |",
    ]


@pytest.mark.parametrize(
    ("scores", "order", "word"),
    [
        ({"light": (60, 61, 62), "linear": (50, 51, 52)}, (), "confirmed"),
        ({"light": (50, 51, 52), "linear": (60, 61, 62)}, (), "not confirmed"),
        ({"light": (50, 51, 52), "linear": (60, 61, 62)}, ("linear", "light"), "confirmed"),
        ({"light": (50, 61, 52), "linear": (51, 51, 51)}, (), "undecided"),
        ({"light": (60, 61), "linear": (50, 51)}, (), "undecided"),
    ],
)
def test_a_claim_is_judged_by_the_differences_of_its_arms(
    home: Path, scores: dict[str, tuple[int, ...]], order: tuple[str, ...], word: str
) -> None:
    study = build_study()
    (claim,) = study.claims
    study = replace(study, claims=(replace(claim, by="P@5", order=order), replace(claim, by=None)))
    for arm, seeds in scores.items():
        for seed, score in enumerate(seeds):
            _write(study, arm, seed, score)
    judged, open_one = table.verdicts_of(study)
    assert (judged.word, open_one.word) == (word, None)
    assert ("2 of 3 seeds" in judged.why) is (len(scores["light"]) < 3)


def test_how_much_experts_differ_is_told(home: Path) -> None:
    folder = write_native(home / "tiny", {"train": 60, "test": 20})
    train, test = api.read_corpus(folder, "train"), api.read_corpus(folder, "test")
    encoder = {"name": str(build_tiny("bert", home / "tiny-bert", all_texts())), "max_length": 16}
    found = []
    for experts in (["A-first", "D-last"], ["D-last"]):
        config = {"encoder": encoder, "experts": experts, "train": {"epochs": 1}}
        model = api.train(train, "mexml", config, dev=test)
        found.append(phases.disagreement(model, test.align(model.labels)))
        if len(experts) == 2:
            pairs = [_kl(model, text, labels) for text, labels in documents(20, 1)]
    assert found[0][KL] == pytest.approx(1000 * sum(map(sum, pairs)) / sum(map(len, pairs)), rel=1e-4)
    assert found[1] == {}


def test_what_a_teacher_knows_is_told(home: Path) -> None:
    folder = write_native(home / "tiny", {"train": 60, "test": 20})
    train, test = api.read_corpus(folder, "train"), api.read_corpus(folder, "test")
    config = {"words": {"vectors": "random", "width": 16}, "neighbours": {"k": 3}, "train": {"epochs": 1}}
    model = api.train(train, "treader", config, dev=test)
    found = phases.scope(model, test.align(model.labels))
    counts = dict(zip(model.labels.ids, model.labels.counts.tolist(), strict=True))
    hits, truth = [], []
    for text, labels in zip(test.texts, test.Y, strict=True):
        own = [label for label in test.labels.decode(labels.indices) if counts.get(label)]
        given = {label for _, _, of in model.explain(text, own[0]).neighbours for label in of}
        truth += own
        hits += [label for label in own if label in given]
    assert found[IN_SCOPE] == pytest.approx(100 * len(hits) / len(truth), rel=1e-4)
    few = [[label for label in of if counts[label] <= 20] for of in (hits, truth)]
    assert found[FEW_IN_SCOPE] == pytest.approx(100 * len(few[0]) / len(few[1]), rel=1e-4)
    assert 0 < found[VOTE] <= 100
    assert json.loads(json.dumps(found)) == found
    taught = phases.scope(api.train(train, "treader", {**config, "reader": {"teacher": False}}, dev=test), test)
    assert taught == {}


def _kl(model: Any, text: str, labels: list[str]) -> list[float]:
    """Of each label of a text, both orders averaged."""
    tokens = tokenize([text], model.tokenizer)
    batch = Inputs(tokens, model.network.encoder.layout).collate([0])
    encoded = model.network.encoder(batch.ids, batch.mask)
    places = [model.labels.find(label) for label in labels]
    one, two = (expert(encoded)[0, places].double().sigmoid() for expert in model.network.experts)
    orders = [p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log() for p, q in ((one, two), (two, one))]
    return ((orders[0] + orders[1]) / 2).tolist()


def test_results_of_other_settings_are_left_out(home: Path) -> None:
    study = build_study()
    assert table.tables_of(study) == []
    _write(study, "light", 0, 50.0)
    _write(replace(study, documents=Documents("tiny", train=5)), "light", 1, 70.0)
    page = "\n".join(table.tables_of(study))
    assert "documents of the study have changed since: [light-1](result:ablations/paper/light-1)." in page
    assert "| ours (`light`) | [0](result:ablations/paper/light-0) | 50.00 |" in page


def test_convergence_is_told_by_the_losses(home: Path) -> None:
    study = build_study()
    for arm, losses in (("light", [9.0, 5.0, 3.0]), ("linear", [9.0, 6.0, 5.5])):
        _write(study, arm, 0, 50.0, losses)
    _write(study, "light", 1, 50.0, [9.0, 8.0, 7.0])
    _write(study, "linear", 1, 50.0, [9.0, 6.0, 5.5])
    page = "\n".join(table.tables_of(study))
    assert "loss of `linear`: after epoch 2 of 3 (seed 0), not in 3 epochs (seed 1)." in page


@pytest.mark.parametrize("paper", PAPERS)
def test_studies_hold_together(paper: str) -> None:
    study = read_study(paper)
    names = [arm.name for arm in study.arms]
    assert len(set(names)) == len(names)
    for arm in study.arms:
        api.read_settings(arm.method, arm.settings)
        model = study.model_of(arm)
        assert model is arm or not arm.tries
        for settings in model.tries.values():
            api.read_settings(arm.method, merge(arm.settings, settings))
    for claim in study.claims:
        assert set(claim.arms) <= set(names)
        assert set(claim.order) <= set(claim.arms)
        assert claim.by is None or claim.by in claim.figures
        for published in claim.published:
            assert published.figures
            assert set(published.figures) <= set(claim.arms)
            printed = {figure for found in published.figures.values() for figure in found}
            assert printed & set(claim.figures)


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'lightxml'"):
        read_study("lightxm")
    with pytest.raises(ConfigError, match="Did you mean 'static'"):
        lightxml.STUDY.choose(["statik"])


def _write(study: Study, arm: str, seed: int, score: float, losses: list[float] | None = None) -> None:
    found = _result(study, study.choose([arm])[0], seed, score, losses)
    results.write_result(f"ablations/{study.paper}/{arm}-{seed}", found)


def _result(study: Study, arm: Arm, seed: int, score: float, losses: list[float] | None = None) -> dict[str, Any]:
    quiet = {"load_before": 0.1, "waited_s": 0.0, "others_cores": None}
    return {
        "arm": arm.name,
        "seed": seed,
        "facts": FACTS,
        "method": arm.method,
        "settings": flatten(arm.settings),
        "documents": vars(study.documents),
        "labels": 12,
        "seconds": {"train": 1.0},
        "peak_rss_mb": {"train": 1.0, "rank": 1.0},
        "machine": {"train": quiet, "rank": quiet},
        "model_mb": 2.0,
        "ms_a_document": {"in_batches": 1.0, "one_by_one": 2.0},
        "curve": [{"loss_thousandths": loss, "dev": 1.0} for loss in losses or [3.0, 2.0]],
        "n": 30,
        "metrics": {"P@1": score, "P@5": score},
    }
