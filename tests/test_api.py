"""The functions of the API: what they take, refuse and hand on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import xmtc
from xmtc.core import metrics
from xmtc.core.errors import ConfigError, DataError, ModelError

TEXTS = ["red apple pie", "green pear tart", "red cherry pie", "green apple tart"] * 4
LISTS = [["red", "pie"], ["green"], ["red"], ["green", "tart"]] * 4


@pytest.fixture(scope="module")
def corpus():
    return xmtc.Corpus.from_lists(TEXTS, LISTS)


@pytest.fixture(scope="module")
def on_texts(corpus):
    return xmtc.train(corpus)


@pytest.fixture(scope="module")
def on_features():
    X = sp.csr_matrix(np.tile(np.eye(4, dtype=np.float32), (4, 1)))
    return xmtc.train(xmtc.Corpus.assemble(LISTS, X=X))


def test_a_report_is_a_mapping(on_texts, corpus):
    report = xmtc.evaluate(on_texts, corpus, intervals=False)
    assert report["P@1"] == dict(report)["P@1"] == report.get("P@1")
    assert "P@1" in report
    assert "P@2" not in report
    assert len(report) == len(list(report)) == 35
    with pytest.raises(KeyError, match=r"no metric 'P@2'\. Did you mean"):
        report["P@2"]


def test_results_do_not_depend_on_k(on_texts):
    narrow, wide = on_texts.rank(TEXTS, 2), on_texts.rank(TEXTS, 4)
    assert narrow.labels.tobytes() == np.ascontiguousarray(wide.top(2).labels).tobytes()
    assert narrow.scores.tobytes() == np.ascontiguousarray(wide.top(2).scores).tobytes()


def test_tiny_corpora_train_with_the_defaults():
    model = xmtc.train(xmtc.Corpus.from_lists(["red apple", "green pear"], [["a"], ["b"]]))
    assert model.rank(["red"], 1).named(model.labels)[0][0][0] == "a"
    with pytest.raises(DataError, match="holds a word"):
        xmtc.train(xmtc.Corpus.from_lists(["?", ""], [["a"], ["b"]]))


def test_ensembles_keep_the_propensity_and_one_kind_of_input(corpus, on_texts, on_features):
    config = {"propensity": {"A": 0.6, "B": 2.6}}
    members = [xmtc.train(corpus, config=config, seed=seed) for seed in (0, 1)]
    joined = xmtc.ensemble(members)
    assert xmtc.evaluate(joined, corpus, intervals=False).propensity == {"A": 0.6, "B": 2.6, "N": 16}
    assert xmtc.compare({"a": joined, "b": on_texts}, corpus).propensity == {"A": 0.6, "B": 2.6, "N": 16}
    with pytest.raises(ConfigError, match="one kind of input"):
        xmtc.ensemble([on_texts, on_features])


def test_models_are_compared_by_the_first_one_s_counts(corpus):
    # the second model was trained on each document 30 times: by its own counts no label would be rare
    often = xmtc.Corpus.from_lists(TEXTS * 30, LISTS * 30)
    first, second = xmtc.train(corpus), xmtc.train(often)
    found = xmtc.compare({"a": first, "b": second, "again": first}, corpus, all_pairs=True)
    assert found.propensity["N"] == len(corpus)
    counts = np.array([first.labels.counts[first.labels.position[label]] for label in second.labels.ids])
    expected = metrics.evaluate(
        second.rank(TEXTS, 5), corpus.align(second.labels).Y, second.labels.with_counts(counts), len(corpus)
    )
    assert found.values["b"] == expected.metrics
    assert found.values["a"] == xmtc.evaluate(first, corpus, intervals=False).metrics
    assert {key: one.difference for key, one in found.pairs["again"]["b"].items()} == {
        key: found.values["a"][key] - found.values["b"][key] for key in found.values["a"]
    }
    swapped = xmtc.compare({"b": second, "a": first}, corpus)
    assert swapped.values["a"] != found.values["a"]
    fewer = xmtc.train(xmtc.Corpus.from_lists(TEXTS[:2], LISTS[:2]))  # truth "known" is what the first model knows
    known = xmtc.compare({"all": first, "fewer": fewer}, corpus, "known")
    assert known.n == len(corpus)


def test_narrower_features_are_widened_and_other_inputs_refused(on_features, on_texts, corpus):
    narrow = xmtc.Corpus.assemble(LISTS, X=sp.csr_matrix(np.tile(np.eye(4, dtype=np.float32), (4, 1))[:, :3]))
    assert xmtc.evaluate(on_features, narrow, intervals=False).n == 16
    with pytest.raises(ModelError, match="give it the features of training"):
        xmtc.evaluate(on_features, corpus)
    with pytest.raises(ModelError, match="give it the texts"):
        xmtc.evaluate(on_texts, narrow)
    with pytest.raises(ModelError, match="got a dense array"):
        on_features.rank(np.eye(4))


def test_iterators_of_texts_are_read_once(on_texts):
    assert on_texts.rank(iter(TEXTS[:3]), 1).labels.shape == (3, 1)


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", None, True])
def test_k_that_is_none(on_texts, k):
    with pytest.raises(ModelError, match="k must be a whole number of at least 1; got"):
        on_texts.rank(["x"], k)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"corpus": "folder"}, DataError, "train takes a Corpus"),
        ({"seed": -1}, ConfigError, "seed must be"),
        ({"seed": "a"}, ConfigError, "seed must be"),
        ({"seed": True}, ConfigError, "seed must be"),
        ({"method": 3}, ConfigError, "method must be a name"),
        ({"config": "x"}, ConfigError, "config must be a mapping"),
        ({"method": "linaer"}, ConfigError, "Did you mean 'linear'"),
        ({"recipe": "linear/one-tre"}, ConfigError, "Did you mean 'linear/one-tree'"),
    ],
)
def test_wrong_arguments_of_train(corpus, arguments, error, words):
    with pytest.raises(error, match=words):
        xmtc.train(**{"corpus": corpus, **arguments})


def test_seeds_of_numpy_are_numbers(corpus):
    config = {"tree": {"trees": 1}}
    found = [xmtc.train(corpus, config=config, seed=seed) for seed in (np.int64(3), 3)]
    assert found[0].manifest.to_json() == found[1].manifest.to_json()


def test_wrong_arguments_elsewhere(on_texts, corpus):
    with pytest.raises(DataError, match="evaluate takes a Corpus"):
        xmtc.evaluate(on_texts, TEXTS)
    with pytest.raises(DataError, match="compare takes a Corpus"):
        xmtc.compare({"a": on_texts, "b": on_texts}, TEXTS)
    with pytest.raises(ConfigError, match="compare takes a mapping"):
        xmtc.compare([on_texts, on_texts], corpus)
    with pytest.raises(ConfigError, match="ensemble takes a list of models; got LinearModel"):
        xmtc.ensemble(on_texts)
    for call in (
        lambda: xmtc.evaluate("model", corpus),
        lambda: xmtc.compare({"a": "model"}, corpus),
        lambda: xmtc.ensemble(["model", "other"]),
        lambda: xmtc.update("model", corpus),
        lambda: xmtc.calibrate("model", corpus),
        lambda: xmtc.export("model", out="exported"),
    ):
        with pytest.raises(ModelError, match="give a model, not its path"):
            call()
    with pytest.raises(ConfigError, match="propensity must be"):
        xmtc.evaluate(on_texts, corpus, propensity=(0.5, 0.4))
    with pytest.raises(DataError, match="a label must be a string"):
        on_texts.explain("x", 3)


def test_names_that_several_labels_bear():
    concepts = [xmtc.Concept("1", "music"), xmtc.Concept("2", "music")]
    model = xmtc.train(xmtc.Corpus.from_lists(["song tune", "song dance"], [["1"], ["2"]], concepts=concepts))
    with pytest.raises(DataError, match="2 labels are called 'music'; give the id of one: 1, 2"):
        model.explain("song", "music")
    assert model.explain("song", "2").label == "2"


def test_folders_in_the_way_of_checkpoints_are_kept(corpus, tmp_path):
    mine = tmp_path / "model.partial"
    mine.mkdir()
    (mine / "notes").write_text("mine")
    with pytest.raises(ModelError, match="is not a folder of checkpoints"):
        xmtc.train(corpus, out=tmp_path / "model", overwrite=True)
    assert (mine / "notes").read_text() == "mine"


def test_a_run_that_was_killed_before_it_had_a_name_is_no_hindrance(corpus, tmp_path):
    (tmp_path / "model.partial").mkdir()
    (tmp_path / "model.partial" / ".run-77.json").write_text("{")
    xmtc.train(corpus, out=tmp_path / "model", resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_models_and_reports_are_shown_in_a_few_lines(corpus, on_texts, on_features):
    line = "method linear, trained on"
    assert repr(on_texts).startswith(f"<LinearModel: {line} {len(corpus):,} documents with seed")
    assert "ranks texts" in repr(on_texts)
    assert "features" in repr(on_features)
    joined = xmtc.ensemble([on_texts, on_texts])
    assert repr(joined).startswith("<EnsembleModel: 2 models (linear, linear), joined by mean; ")
    calibrated = xmtc.calibrate(on_texts, corpus)
    assert repr(calibrated) == f"<CalibratedModel: isotonic calibration of {on_texts!r}>"
    for model in (on_texts, joined, calibrated):
        assert len(repr(model)) < 300
        assert f"<b>{type(model).__name__}</b>" in model._repr_html_()
        assert model.rank(list(corpus.texts)[:1]).label_set is model.labels
    report = xmtc.evaluate(on_texts, corpus)
    assert repr(report).startswith(f"<Report: P@1 {report['P@1']:.2f}, P@5 ")
    low, high = report.intervals["nDCG@3"]
    row = next(line for line in str(report).splitlines() if line.startswith("nDCG"))
    assert f" {report['nDCG@3']:.2f} [{low:.1f}, {high:.1f}] " in row
    assert report._repr_html_().count("<tr>") == str(report).count("\n") - 2  # the line, and a blank one before tables
    compared = xmtc.compare({"one": on_texts, "two": joined}, corpus)
    assert f"P@1{' ' * 16}{report['P@1']:.2f}" in str(compared)
