from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.app.conftest import fails, write_lines, xmtc
from xmtc import __version__, api
from xmtc.app.details import training_curves
from xmtc.app.report import page as html_report
from xmtc.app.report.analysis import (
    draw_differences,
    draw_examples,
    judge,
    measure_reliability,
    score_labels,
)
from xmtc.app.report.comparison import short_names
from xmtc.app.report.examples import mark_words
from xmtc.app.report.markup import join, tag
from xmtc.app.report.plots import Bars, plot_bars
from xmtc.app.report.sections import training_section
from xmtc.core.corpus import Corpus
from xmtc.core.explanation import Explanation
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details

pytest.importorskip("matplotlib", reason="reports are drawn by matplotlib")


class Reader(HTMLParser):
    """What a browser would make of a page: its elements, and the text of each section."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.text: dict[str, str] = {}
        self.section = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.links += [str(given[key]) for key in ("href", "src", "xlink:href") if key in given]
        if "id" in given:
            self.ids.append(str(given["id"]))
        if tag in ("section", "header", "footer"):
            self.section = given.get("id") or tag
        if tag not in ("meta", "link", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag  # every element is closed, in order

    def handle_data(self, data: str) -> None:
        self.text[self.section] = self.text.get(self.section, "") + data


def read(path: Path) -> Reader:
    return Reader(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(model: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "report.html"
    result = xmtc("evaluate", model, data, "--json", "--report", out)
    assert (result.code, result.err) == (0, "")
    assert result.json == xmtc("evaluate", model, data, "--json").json  # ranking deeper changes no score
    return out


def test_a_report_is_one_whole_file(page: Path) -> None:
    found = read(page)
    assert list(page.parent.iterdir()) == [page]
    assert found.open == []
    assert all(link.startswith(("#", "data:")) for link in found.links)
    assert "script" not in found.tags
    assert {link[1:] for link in found.links if link.startswith("#")} <= set(found.ids)
    assert [id for id, times in Counter(found.ids).items() if times > 1] == []
    assert "http" not in re.sub(r"http-equiv", "", page.read_text())


def test_it_shows_what_was_measured(page: Path, model: Path, data: Path) -> None:
    told = xmtc("evaluate", model, data, "--json").json
    found = read(page)
    for key in ("P@1", "P@5", "R@5", "nDCG@5", "PSP@5"):
        low, high = told["intervals"][key]
        assert f"{key}{told['metrics'][key]:.1f} %" in found.text["headlines"]
        assert f"{low:.1f} to {high:.1f}" in found.text["headlines"]
    for key in ("macro-P", "macro-R", "macro-F", "coverage"):
        low, high = told["intervals"][f"{key}@5/medium"]
        assert f"{told['metrics'][f'{key}@5/medium']:.2f} [{low:.1f}, {high:.1f}]" in found.text["bins"]
    assert "5 labels in training" in found.text["zipf-section"]
    assert "sugar" in found.text["labels"]
    assert "First label right" in found.text["examples"]
    assert "not calibrated" in found.text["reliability"]
    settings = found.text["settings"]
    assert all(
        part in settings for part in ("tree.trees", str(data), "A = 0.55", "120", api.read_corpus(data).fingerprint())
    )
    assert found.tags.count("svg") == found.tags.count("figcaption") == 3


def test_it_names_the_version_and_the_commit(page: Path) -> None:
    repository = Path(__file__).resolve().parents[3]
    commit = r" commit [0-9a-f]{12}( with local changes)?" if (repository / ".git").exists() else ""
    assert re.search(rf"xmtc{re.escape(__version__)}{commit}Python\d", read(page).text["settings"])


def test_the_same_measurement_gives_the_same_bytes(page: Path, model: Path, data: Path, tmp_path: Path) -> None:
    assert xmtc("evaluate", model, data, "--report", tmp_path / "again.html").out.endswith("again.html\n")
    assert (tmp_path / "again.html").read_bytes() == page.read_bytes()


def test_texts_labels_and_ids_are_shown_as_text(tmp_path: Path) -> None:
    nasty = "<script>alert('x')</script>"
    rows = [
        {"id": f"<b>{i}</b>", "text": f"sugar & <img src=x onerror=alert({i})> word{i % 3}", "labels": ["<i>a", "b\0$"]}
        for i in range(6)
    ]
    write_lines(tmp_path / "train.jsonl", rows)
    write_lines(tmp_path / "test.jsonl", rows)
    write_lines(tmp_path / "labels.jsonl", [{"label": "<i>a", "name": nasty}])
    assert xmtc("train", tmp_path, "--out", tmp_path / "<u>m").code == 0
    result = xmtc("evaluate", tmp_path / "<u>m", tmp_path, "--report", tmp_path / "r.html")
    assert result.code == 0
    assert result.err.startswith("warning: the model was trained on these documents")
    assert len(result.err.splitlines()) == 1
    found = read(tmp_path / "r.html")
    assert not {"script", "img", "u"} & set(found.tags)
    assert nasty in found.text["examples"]
    assert nasty in found.text["labels"]
    assert "onerror=alert(" in found.text["examples"]
    assert "<b>" in found.text["examples"]
    assert "\0" not in (tmp_path / "r.html").read_text()


def test_markup_escapes_all_but_markup() -> None:
    assert tag("p", "a<b", tag("b", '"'), class_='"x') == '<p class="&quot;x">a&lt;b<b>&quot;</b></p>'
    assert tag("td", None, ["1", ["2"]], tabindex=0, hidden=True, title=None) == '<td tabindex="0" hidden>12</td>'


def test_words_are_marked_by_their_push() -> None:
    text = "sugar is not <fish> at all"
    spans = ((0, 5, 1.0), (6, 8, 0.01), (9, 12, -0.5), (13, 19, 0.2))
    marked = join(*mark_words(text, Explanation("x", 1.0, spans)))
    assert re.findall(r"<mark[^>]*>(.*?)</mark>", marked) == ["sugar", "&lt;fish&gt;"]
    assert 'class="strong" title="+1, for the label">sugar' in marked
    assert re.findall(r'<span class="down"[^>]*>(.*?)</span>', marked) == ["not"]
    assert re.sub(r"<[^>]+>", "", marked) == "sugar is not &lt;fish&gt; at all"


def test_a_long_text_is_cut_around_its_strongest_word() -> None:
    text = "start " + "filler " * 300 + "sugar " + "filler " * 300
    place = text.index("sugar")
    shown = re.sub(r"<[^>]+>", "", join(*mark_words(text, Explanation("x", 1.0, ((place, place + 5, 1.0),)))))
    assert "sugar" in shown
    assert shown.startswith("… filler")
    assert shown.endswith(" …")
    assert len(shown) < 700
    assert join(*mark_words(text, None)).startswith("start filler")


def ranked(n: int = 60, n_labels: int = 25, k: int = 20, seed: int = 0) -> tuple[Any, Corpus, Ranking]:
    """A trained model of many labels and an arbitrary ranking of some documents."""
    random = np.random.default_rng(seed)
    lists = [[f"l{label}" for label in random.choice(n_labels, 3, replace=False)] for _ in range(n)]
    corpus = Corpus.from_lists([f"text {i}" for i in range(n)], lists)
    model = api.train(corpus.take(np.arange(40)), "linear", {"tree": {"trees": 1}})
    width = model.labels.n_labels
    labels = np.stack([random.permutation(width)[:k] for _ in range(n)]).astype(np.int32)
    labels[0, 3:] = -1
    scores = np.sort(random.random((n, k)).astype(np.float32))[:, ::-1]
    return model, corpus, Ranking(labels, scores, scores**2)


@pytest.mark.parametrize("truth", ["all", "known"])
def test_label_scores_against_loops(truth: Any) -> None:
    model, corpus, ranking = ranked()
    best, worst, least = score_labels(judge(model, corpus, ranking, truth))
    expected = {}
    for label in model.labels.ids[: model.labels.n_labels]:
        true = {row for row in range(len(corpus)) if label in corpus.labels.decode(corpus.Y[row].indices)}
        shown = {row for row in range(len(corpus)) if label in model.labels.decode(ranking.labels[row, :5])}
        if len(true) >= least:
            expected[label] = 200 * len(true & shown) / (len(true) + len(shown)), len(true)
    assert least == 5
    for row in (*best, *worst):
        assert (row.f, row.tested) == pytest.approx(expected[row.label])
        assert row.trained == model.labels.counts[model.labels.position[row.label]]
    in_order = sorted(f for f, _ in expected.values())
    assert [row.f for row in worst] == pytest.approx(in_order[: len(worst)])
    assert [row.f for row in best] == pytest.approx(in_order[::-1][:10])
    assert not {row.label for row in best} & {row.label for row in worst}


def test_reliability_against_loops() -> None:
    model, corpus, ranking = ranked()
    judged = judge(model, corpus, ranking, "all")
    found = measure_reliability(judged)
    pairs = []
    for row in range(len(corpus)):
        true = corpus.labels.decode(corpus.Y[row].indices)
        for label, score in zip(ranking.labels[row], ranking.scores[row], strict=True):
            if label >= 0:
                pairs.append((float(score), model.labels.ids[label] in true))
    pairs.sort(key=lambda pair: pair[0])
    groups = np.array_split(np.arange(len(pairs)), 15)
    gaps = [abs(sum(pairs[i][0] for i in group) - sum(pairs[i][1] for i in group)) for group in groups]
    assert found["score"].ece == pytest.approx(sum(gaps) / len(pairs), abs=1e-6)
    assert set(found) == {"score", "calibrated"}
    low = [(score, right) for score, right in pairs if score < 0.1]
    assert found["score"].points[0] == pytest.approx(tuple(np.mean(low, axis=0)), abs=1e-6)
    assert set(found["score"].by_bin) == {"few"}
    assert set(measure_reliability(judge(model, corpus, replace(ranking, probabilities=None), "all"))) == {"score"}


def test_examples_are_what_they_are_said_to_be(model: Path, data: Path) -> None:
    loaded, corpus = api.load(model), api.read_corpus(data, "test")
    judged = judge(loaded, corpus, api.rank_corpus(loaded, corpus, 20), "all")
    right = draw_examples("m", judged, True)
    assert len(right) == 5
    assert [example.id for example in right] == [example.id for example in draw_examples("m", judged, True)]
    for example in right:
        tagged = example.tagged["m"]
        true = corpus.labels.decode(corpus.Y[list(corpus.ids).index(example.id)].indices)
        assert tagged.given[0].right
        assert [one.right for one in tagged.given] == [one.label in true for one in tagged.given]
        assert len(tagged.missed) == len(true) - sum(one.right for one in tagged.given)
        assert tagged.explanation is not None
        assert tagged.explanation.label == tagged.given[0].label
    for example in draw_examples("m", judged, False):
        assert not example.tagged["m"].given[0].right


def test_examples_where_models_differ() -> None:
    model, corpus, ranking = ranked()
    other = ranked(seed=1)[2]
    judged = {"a": judge(model, corpus, ranking, "all"), "b": judge(model, corpus, other, "all")}
    drawn = draw_differences(judged)
    assert len(drawn) > 0
    for example in drawn:
        assert {tagged.given[0].right for tagged in example.tagged.values()} == {True, False}


def test_a_calibrated_model_is_shown_before_and_after(model: Path, data: Path, tmp_path: Path) -> None:
    loaded = api.load(model)
    api.calibrate(loaded, api.read_corpus(data, "test"), out=tmp_path / "calibrated")
    assert xmtc("evaluate", tmp_path / "calibrated", data, "--report", tmp_path / "r.html").code == 0
    told = read(tmp_path / "r.html").text["reliability"]
    assert "not calibrated" not in told
    loaded = api.load(tmp_path / "calibrated")
    corpus = api.read_corpus(data, "test")
    found = measure_reliability(judge(loaded, corpus, api.rank_corpus(loaded, corpus, 20), "all"))
    assert set(found) == {"score", "calibrated"}
    for name, kind in found.items():
        assert f"{name} (ECE {kind.ece:.3f})" in told
    assert " %" in read(tmp_path / "r.html").text["examples"]


def test_the_curve_of_a_model_trained_in_epochs(model: Path) -> None:
    loaded: Any = api.load(model)
    assert training_section({"m": loaded}) is None
    curve = [{"epoch": i, "loss": 0.5 - i / 10, "dev": 40.0 + i} for i in range(3)]
    config = {"train": {"metric": "nDCG@5"}}
    manifest = replace(loaded.manifest, details=Details(curve=curve), config=config)
    trained = replace(loaded, manifest=manifest)
    assert training_curves(trained) == {"linear": curve}
    section = str(training_section({"m": trained}))
    assert "nDCG@5 42.00 after epoch 3" in section
    assert section.count("<svg") == 1
    one = replace(trained, manifest=replace(manifest, details=Details(curve=curve[:1])))
    assert "<svg" not in str(training_section({"m": one}))
    joined = api.ensemble([trained, loaded])
    assert training_curves(joined) == {"linear": curve}


def test_comparison(model: Path, other_model: Path, data: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "nothing.jsonl", ({"text": "regulation", "labels": [f"t{1 + i % 5}"]} for i in range(20)))
    assert xmtc("train", tmp_path / "nothing.jsonl", "--out", tmp_path / "poor").code == 0
    models = (model, other_model, tmp_path / "poor")
    out = tmp_path / "r.html"
    result = xmtc("compare", *models, "--data", data, "--report", out, "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json == xmtc("compare", *models, "--data", data, "--json").json
    found = read(out)
    poor = result.json["models"][2]
    gap = poor["differences"]["P@1"]
    assert f"P@1{result.json['models'][0]['metrics']['P@1']:.2f}" in found.text["scores"]
    assert f"{poor['metrics']['P@1']:.2f} worse" in found.text["scores"]
    assert f"{gap['difference']:+.2f}[{gap['interval'][0]:.2f}, {gap['interval'][1]:.2f}]" in found.text["differences"]
    assert "second" in found.text["bins"]
    assert "firstlinear" in found.text["settings"].replace("method", "") or "poor" in found.text["settings"]
    assert found.text["examples"].count("Document ") > 0
    assert found.open == []
    assert [id for id, times in Counter(found.ids).items() if times > 1] == []


def test_a_report_changes_no_score(tmp_path: Path) -> None:
    # with k = 20, a knn model gives other labels of score 0 in the first five places than with k = 5
    rows = [{"text": f"word{i} thing{i}", "labels": [f"l{i:02}"]} for i in range(30) for _ in range(1 + i % 7)]
    write_lines(tmp_path / "train.jsonl", rows)
    write_lines(tmp_path / "test.jsonl", [{**row, "labels": ["l13", "l20", "l27"]} for row in rows[::3]])
    for method in ("knn", "linear"):
        assert xmtc("train", tmp_path, "--method", method, "--out", tmp_path / method).code == 0
    evaluate = ["evaluate", tmp_path / "knn", tmp_path, "--json"]
    compare = ["compare", tmp_path / "knn", tmp_path / "linear", "--data", tmp_path, "--json"]
    for command in (evaluate, compare):
        for truth in ("all", "known"):
            plain = xmtc(*command, "--truth", truth).json
            assert xmtc(*command, "--truth", truth, "--report", tmp_path / "r.html").json == plain


def test_features_and_single_documents(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("4 3 2\n0 0:1.0\n1 1:1.0\n0 0:0.5\n1 1:0.5\n")
    (tmp_path / "test.txt").write_text("1 3 2\n0 0:1.0\n")
    assert xmtc("train", tmp_path / "train.txt", "--out", tmp_path / "m").code == 0
    result = xmtc("evaluate", tmp_path / "m", tmp_path / "test.txt", "--report", tmp_path / "r.html")
    assert (result.code, result.err) == (0, "")
    assert "features, no texts" in read(tmp_path / "r.html").text["examples"]


def test_empty_texts_and_documents_without_labels(model: Path, tmp_path: Path) -> None:
    rows = [{"text": "", "labels": ["t1"]}, {"text": "sugar beet", "labels": []}, {"text": "fish", "labels": ["t2"]}]
    write_lines(tmp_path / "test.jsonl", rows)
    for truth in ("all", "known"):
        result = xmtc("evaluate", model, tmp_path / "test.jsonl", "--truth", truth, "--report", tmp_path / "r.html")
        assert result.code == 0, result
        assert read(tmp_path / "r.html").open == []


@pytest.mark.parametrize("command", [["evaluate"], ["compare", "other", "--data"]])
def test_what_cannot_be_written_is_refused_at_once(command: list[str], tmp_path: Path) -> None:
    """Before the model is even looked for: none of these exists."""
    arguments = [command[0], "no-model", *command[1:], "no-data", "--report"]
    assert "no folder" in fails(*arguments, tmp_path / "absent" / "r.html")
    assert "is a folder" in fails(*arguments, tmp_path)
    assert "empty" in fails(*arguments, "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html_report.importlib.util, "find_spec", lambda name: None)
        assert "pip install 'xmtc[report]'" in fails(*arguments, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_written_to_and_never_replaced(model: Path, data: Path) -> None:
    html_report.check_report("/dev/null")
    html_report.write_page("/dev/null", html_report.Page("title", "about", []))
    assert not Path("/dev/null").is_file()


def test_names_are_as_short_as_tells_them_apart() -> None:
    assert short_names(("a/x", "b/y/")) == {"a/x": "x", "b/y/": "y"}
    assert short_names(("a/x", "b/x")) == {"a/x": "a/x", "b/x": "b/x"}


def test_names_in_plots_are_text(tmp_path: Path) -> None:
    drawn = plot_bars("p", "t", ["few"], [Bars("_<b>$x$ 糖", [50.0], [None])])
    assert "<b>" not in drawn
    assert drawn.count("_&lt;b&gt;$x$ 糖") == 2  # in the description and in the legend
    assert "#00000" not in drawn
    assert "var(--series-1)" in drawn


def test_a_model_in_stages(model: Path, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="xbert needs torch")
    settings = ["match.kind=linear", 'cluster.vectors=["pifa"]', "cluster.seeds=2", "cluster.count=3", "search.beam=1"]
    given = [part for setting in settings for part in ("--set", setting)]
    assert xmtc("train", data, "--method", "xbert", "--out", tmp_path / "x", *given).code == 0
    result = xmtc("evaluate", tmp_path / "x", data, "--json", "--report", tmp_path / "r.html")
    assert (result.code, result.err) == (0, "")
    found = read(tmp_path / "r.html")
    assert found.open == []
    first, second = result.json["stages"]["matching"]
    for seed, member in enumerate((first, second)):
        row = f"pifa, seed {seed}" + "".join(f"{member[key]:.2f}" for key in ("P@1", "P@3", "P@5", "recall")) + "1 of 3"
        assert row in found.text["matching"]
    assert "pifa, seed 0; pifa, seed 1" in found.text["settings"]
    compared = xmtc("compare", tmp_path / "x", model, "--data", data, "--report", tmp_path / "c.html")
    assert (compared.code, compared.err) == (0, "")
    assert "matching" not in read(tmp_path / "c.html").ids


class StagedDetails(Details):
    """As a model in stages has them."""

    members: list[dict[str, Any]]


def test_curves_of_members_in_stages(model: Path) -> None:
    loaded: Any = api.load(model)
    curves = [[{"epoch": 0, "loss": loss, "dev": 40.0}] for loss in (0.5, 0.4)]
    members = [{"vectors": "pifa", "seed": seed, "curve": curve} for seed, curve in enumerate(curves)]
    details = StagedDetails(members=members, curve=curves[0])
    staged = replace(loaded, manifest=replace(loaded.manifest, method="xbert", details=details))
    assert training_curves(staged) == {"xbert, pifa, seed 0": curves[0], "xbert, pifa, seed 1": curves[1]}
    one = replace(
        staged, manifest=replace(staged.manifest, details=StagedDetails(members=members[:1], curve=curves[0]))
    )
    assert training_curves(one) == {"xbert": curves[0]}
    joined = api.ensemble([one, one])
    assert training_curves(joined) == {"xbert": curves[0], "xbert, again 1": curves[0]}
