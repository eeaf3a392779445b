"""TReaderXML: no document teaches itself, loss against loops, folders, going on after a kill, odd labels."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="treader needs torch")

import xmtc  # noqa: E402
from tests.tiny import build_tiny  # noqa: E402
from xmtc import api  # noqa: E402
from xmtc.core.config import merge  # noqa: E402
from xmtc.core.errors import ConfigError, DataError  # noqa: E402
from xmtc.core.progress import Progress  # noqa: E402
from xmtc.core.texts import Texts  # noqa: E402
from xmtc.features.tokens import tokenize  # noqa: E402
from xmtc.methods.treader.method import _groups  # noqa: E402
from xmtc.methods.treader.network import TreaderNetwork  # noqa: E402
from xmtc.neural import trainer  # noqa: E402
from xmtc.neural.embed import mean_states  # noqa: E402
from xmtc.neural.encoder import EncoderConfig, load_encoder  # noqa: E402

HERE = Path(__file__).parent
TOPICS = ["sugar", "fish", "steel", "milk", "wine", "coal", "grain", "silk", "salt", "oil"]
pytestmark = pytest.mark.usefixtures("one_thread")


def documents(n=60, seed=0, named=True, tree=True):
    """Texts of topic words; labels are the topics, three to a parent that is no label itself."""
    random = np.random.default_rng(seed)
    texts, lists = [], []
    for i in range(n):
        topics = sorted({i % len(TOPICS), int(random.integers(len(TOPICS)))})
        words = [f"{TOPICS[t]}{random.integers(3)}" for t in topics for _ in range(3)]
        texts.append(" ".join([*words, "and", f"noise{random.integers(9)}"]))
        lists.append([str(t) for t in topics])
    parents = [(f"group{t // 3}",) if tree else () for t in range(len(TOPICS))]
    concepts = [xmtc.Concept(str(t), topic if named else "", parents=parents[t]) for t, topic in enumerate(TOPICS)]
    return xmtc.Corpus.from_lists(texts, lists, ids=[f"d{i}" for i in range(n)], concepts=concepts)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return build_tiny("bert", tmp_path_factory.mktemp("encoder"), [*documents().texts, *TOPICS])


@pytest.fixture(scope="module")
def settings(encoder):
    return {
        "encoder": {"name": str(encoder), "max_length": 32, "dropout": 0},
        "words": {"max_words": 16, "width": 16},
        "tfidf": {"min_df": 1},
        "head": {"bottleneck": 16},
        "rate": {"words": 1e-2, "encoder": 5e-3, "reader": 5e-3},
        "train": {"epochs": 2, "batch_size": 16},
    }


@pytest.fixture(scope="module")
def model(settings):
    return xmtc.train(documents(), "treader", settings, seed=3)


class Heard(Progress):
    """Remembers; stops, as a kill would, when a stage of this name begins."""

    def __init__(self, stop=None):
        self.facts, self.stages, self.stop = [], [], stop

    def stage(self, name):
        self.stages.append(name)
        if name == self.stop:
            raise KeyboardInterrupt

    def say(self, fact):
        self.facts.append(fact)


class Spy:
    """Stands before the trainer's `fit` and keeps what it is told."""

    def __init__(self, monkeypatch):
        self.data = self.dev = self.more = None
        monkeypatch.setattr("xmtc.neural.prepare.fit", self)

    def __call__(self, network, groups, data, config, *, dev, **more):
        self.data, self.dev, self.more = data, dev, more
        return trainer.fit(network, groups, data, config, dev=dev, **more)


@pytest.mark.parametrize("vectors", ["words", "tfidf", "encoder"])
def test_no_document_teaches_itself(settings, monkeypatch, vectors):
    """Every document has a label that no other has: should it stand in the document's scope, it leaked."""
    base = documents(40)
    lists = [[*base.labels.decode(base.Y[i].indices), f"own{i}"] for i in range(40)]
    corpus = xmtc.Corpus.from_lists(base.texts, lists)
    seen = Spy(monkeypatch)
    config = merge(settings, {"neighbours": {"vectors": vectors}, "train": {"epochs": 1}})
    model = xmtc.train(corpus, "treader", config)
    scopes, Y = seen.data.inputs.scopes, seen.data.Y
    assert len(scopes) == Y.shape[0]
    own = [label.startswith("own") for label in model.labels.ids]
    met = 0
    for i in range(len(scopes)):
        entries = scopes[i][0].tolist()
        (unique,) = [label for label in Y[i].indices if own[label]]
        assert unique not in entries
        met += any(own[entry] for entry in entries)
    assert met == len(scopes)  # the others' are there: the test would see a leak
    # the same texts, asked for later, do find themselves
    rows = model.teacher.search(corpus.texts, tokenize(corpus.texts, model.tokenizer)).rows
    found = [corpus.ids[i] in [model.teacher.ids[row] for row in rows[i]] for i in range(40)]
    assert sum(found) >= 38  # all but the two held out


def test_dev_documents_are_not_among_the_neighbours(settings, monkeypatch):
    seen = Spy(monkeypatch)
    corpus = documents()
    model = xmtc.train(corpus, "treader", merge(settings, {"train": {"epochs": 1, "dev_fraction": 0.2}}))
    assert len(model.teacher.ids) == 48 == len(seen.data.inputs.tokens)
    assert len(seen.dev[0].scopes) == 12
    texts = set(model.teacher.ids)
    assert len(texts) == 48
    given = documents(10, seed=5)
    model = xmtc.train(corpus, "treader", merge(settings, {"train": {"epochs": 1}}), dev=given)
    assert list(model.teacher.ids) == list(corpus.ids)


def test_loss_against_loops(model):
    corpus = documents(6, seed=9)
    inputs = model.read(corpus.texts)
    batch = inputs.collate(range(6), corpus.align(model.labels).Y)
    total, count = model.network.loss(batch)
    expected = 0.0
    for i in range(6):
        alone = inputs.collate([i])
        for label in range(model.labels.n_labels):
            logit = model.network.score(alone, label).item()
            right = label in batch.positives[batch.starts[i] : batch.starts[i + 1]].tolist()
            expected -= math.log(1 / (1 + math.exp(-logit if right else logit)))
    assert total.item() == pytest.approx(expected, rel=1e-4)
    assert float(count) == 6


@pytest.mark.parametrize("vote", ["weight", "log"])
def test_votes_of_the_scope_against_loops(settings, tmp_path, vote):
    config = merge(settings, {"head": {"vote": vote}, "scope": {"weighted": True, "power": 4}})
    model = xmtc.train(documents(), "treader", config, seed=3, out=tmp_path / "model")
    network, corpus = model.network, documents(6, seed=9)
    slope, constant = network.vote.line.tolist()
    assert slope != 0  # it learns
    assert constant != 0
    inputs = model.read(corpus.texts)
    ranking = model.rank(corpus.texts, model.labels.n_labels)
    voted = 0
    for i in range(6):
        alone = inputs.collate([i])
        entries, weights, votes = (values.tolist() for values in inputs.scopes[i])
        x = dict(zip(entries, [math.log(v) for v in votes] if vote == "log" else weights, strict=True))
        text = network._read(alone)
        expected = []
        for label in range(model.labels.n_labels):
            logit = (text @ network.head.output.weight[label] + network.head.output.bias[label]).item()
            if label in x:
                logit += 10 * (slope * x[label] + constant)
                voted += 1
            expected.append(1 / (1 + math.exp(-logit)))
            assert network.score(alone, label).item() == pytest.approx(logit, abs=1e-4)
        assert ranking.scores[i] == pytest.approx(np.array(expected)[ranking.labels[i]], rel=1e-4)
        assert ranking.scores[i] == pytest.approx(np.sort(expected)[::-1], rel=1e-4)
    assert voted
    assert xmtc.load(tmp_path / "model").rank(corpus.texts, 5).scores == pytest.approx(ranking.top(5).scores, rel=1e-5)
    with pytest.raises(ConfigError, match=r"head\.vote"):
        xmtc.train(documents(), "treader", merge(config, {"reader": {"teacher": False}}))


def test_scopes_are_labels_of_neighbours_and_their_parents(model):
    texts = documents(8, seed=4).texts
    inputs = model.read(texts)
    teacher, labels = model.teacher, model.labels
    found = teacher.search(texts, inputs.tokens)
    for i in range(8):
        expected = {int(entry) for row in found.rows[i] if row >= 0 for entry in teacher.Y[int(row)].indices}
        expected |= {parent for entry in expected for parent in labels.parents[entry]}
        entries, weights, _ = inputs.scopes[i]
        assert entries.tolist() == sorted(expected)
        np.testing.assert_allclose(weights, 1 / len(expected), rtol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"reader": {"norm": True}, "head": {"pool": "apart", "vote": "log"}},
        {"text": "encoder"},
        {"neighbours": {"vectors": "encoder"}},
        {"reader": {"teacher": False, "norm": True}, "head": {"pool": "apart"}},
    ],
    ids=["words, norm", "encoder", "neighbours by encoder", "no teacher"],
)
def test_a_folder_holds_all_and_is_mapped(settings, tmp_path, change):
    config = merge(settings, merge({"train": {"epochs": 1}}, change))
    model = xmtc.train(documents(), "treader", config)
    model.save(tmp_path / "model")
    again = xmtc.load(tmp_path / "model")
    texts = list(documents(seed=1).texts)
    one, two = model.rank(texts, 5), again.rank(texts, 5)
    assert one.labels.tobytes() == two.labels.tobytes()
    assert one.scores.tobytes() == two.scores.tobytes()
    assert again.explain(texts[0], "0") == model.explain(texts[0], "0")
    if again.teacher is None:
        assert not change["reader"]["teacher"]
        assert not (tmp_path / "model" / "teacher").exists()
    else:
        (stored,) = again.teacher.store.arrays().values()
        assert not stored.flags.owndata


def test_going_on_after_a_kill_gives_the_same_bytes(settings, tmp_path):
    config = merge(settings, {"train": {"epochs": 3}})
    xmtc.train(documents(), "treader", config, seed=2, out=tmp_path / "whole")
    for stop in ("finding neighbours", "epoch 2 of 3"):
        out = tmp_path / stop.replace(" ", "-")
        with pytest.raises(KeyboardInterrupt):
            xmtc.train(documents(), "treader", config, seed=2, out=out, progress=Heard(stop))
        resumed = Heard()
        xmtc.train(documents(), "treader", config, seed=2, out=out, resume=True, progress=resumed)
        assert ("epoch 1 of 3" in resumed.stages) == (stop == "finding neighbours")
        for path in sorted((tmp_path / "whole").rglob("*")):
            if path.is_file():
                assert (out / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes(), path


RENEWED = {
    "text": "encoder",
    "neighbours": {"vectors": "tfidf", "renew": 1},
    "reader": {"norm": True},
    "head": {"pool": "apart", "vote": "log"},
    "train": {"epochs": 3, "dev_fraction": 0.2, "metric": "nDCG@5"},
}


def test_renewed_neighbours_are_those_of_the_encoder_after_an_epoch(settings, monkeypatch, tmp_path):
    """The last epoch reads scopes by the encoder of the first epoch's end, which the folder holds."""
    seen, ends = Spy(monkeypatch), []
    original = trainer._Run.score_epoch

    def score_epoch(run):
        ends.append({name: value.clone() for name, value in run.network.encoder.state_dict().items()})
        original(run)

    monkeypatch.setattr(trainer._Run, "score_epoch", score_epoch)
    model = xmtc.train(documents(), "treader", merge(settings, RENEWED), seed=3, out=tmp_path / "model")
    assert model.manifest.details.renewed
    comparing = model.teacher.compare.encoder.encoder
    for name, value in comparing.state_dict().items():
        assert torch.equal(value, ends[0][name])
    assert any(not torch.equal(value, ends[1][name]) for name, value in ends[0].items())
    # every pool document's neighbours, a cosine at a time
    tokens = seen.data.inputs.tokens
    vectors = mean_states(comparing, tokens).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scopes = seen.data.inputs.scopes
    for i in range(len(tokens)):
        order = sorted((j for j in range(len(tokens)) if j != i), key=lambda j, i=i: -float(vectors[i] @ vectors[j]))
        expected = {int(entry) for j in order[:5] for entry in model.teacher.Y[j].indices}
        expected |= {parent for entry in expected for parent in model.labels.parents[entry]}
        assert scopes[i][0].tolist() == sorted(expected)
    dev_texts = [
        text for text, id in zip(documents().texts, documents().ids, strict=True) if id not in set(model.teacher.ids)
    ]
    assert sorted(s[0].tolist() for s in model.read(Texts.pack(dev_texts)).scopes) == sorted(
        s[0].tolist() for s in seen.dev[0].scopes
    )
    again, texts = xmtc.load(tmp_path / "model"), list(documents(seed=1).texts)
    assert again.rank(texts, 5).scores.tobytes() == model.rank(texts, 5).scores.tobytes()


def test_an_epoch_before_the_renewal_keeps_its_teacher(settings, tmp_path):
    """No epoch ranks dev's label, which training does not know: the first is as good as any, and is kept."""
    dev = xmtc.Corpus.from_lists(["fish0 sugar1"], [["unknown"]])
    model = xmtc.train(documents(), "treader", merge(settings, RENEWED), dev=dev, out=tmp_path / "model")
    assert [entry.dev for entry in model.manifest.details.curve] == [0, 0, 0]
    assert not model.manifest.details.renewed
    assert type(model.teacher.compare).__name__ == "ByTfidf"
    assert not (tmp_path / "model" / "teacher" / "encoder").exists()
    again, texts = xmtc.load(tmp_path / "model"), list(documents(seed=1).texts)
    assert again.rank(texts, 5).scores.tobytes() == model.rank(texts, 5).scores.tobytes()


def test_resuming_around_a_renewal_gives_the_same_bytes(settings, tmp_path):
    config = merge(settings, RENEWED)
    xmtc.train(documents(), "treader", config, seed=3, out=tmp_path / "whole")
    for stop in ("epoch 2 of 3", "renewing neighbours", "epoch 3 of 3"):
        out = tmp_path / stop.replace(" ", "-")
        with pytest.raises(KeyboardInterrupt):
            xmtc.train(documents(), "treader", config, seed=3, out=out, progress=Heard(stop))
        resumed = Heard()
        xmtc.train(documents(), "treader", config, seed=3, out=out, resume=True, progress=resumed)
        assert "renewing neighbours" in resumed.stages
        assert "epoch 1 of 3" not in resumed.stages
        for path in sorted((tmp_path / "whole").rglob("*")):
            if path.is_file():
                assert (out / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes(), path


def test_settings_that_contradict_each_other(settings):
    for change, told in [
        ({"neighbours": {"renew": 1}}, "text = 'words'"),
        ({"text": "encoder", "neighbours": {"renew": 2}}, "ends after 2 epochs"),
        ({"text": "encoder", "neighbours": {"renew": 1}, "train": {"average_from": 0}}, r"train\.average_from"),
        ({"neighbours": {"vectors": "tfidf", "encoder": {"name": "minilm"}}}, r"neighbours\.encoder"),
    ]:
        with pytest.raises(ConfigError, match=told) as caught:
            xmtc.train(documents(), "treader", merge(settings, change))
        assert "\n" not in str(caught.value)


def test_neighbours_by_another_encoder(settings, tmp_path, tmp_path_factory):
    other = build_tiny("roberta", tmp_path_factory.mktemp("other"), [*documents().texts, *TOPICS])
    change = {
        "text": "encoder",
        "neighbours": {"vectors": "encoder", "encoder": {"name": str(other), "max_length": 20}},
    }
    model = xmtc.train(documents(), "treader", merge(settings, merge(change, {"train": {"epochs": 1}})))
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(other), max_length=20))
    texts = documents(6, seed=9).texts
    expected = mean_states(encoder.eval(), tokenize(texts, tokenizer))
    np.testing.assert_allclose(model.teacher.compare(texts, tokenize(texts, model.tokenizer)), expected, rtol=1e-6)
    model.save(tmp_path / "model")
    again = xmtc.load(tmp_path / "model")
    assert again.rank(list(texts), 5).scores.tobytes() == model.rank(list(texts), 5).scores.tobytes()
    assert again.explain(texts[0], "0") == model.explain(texts[0], "0")


def test_near_duplicates_do_not_teach_below_a_cap(settings, monkeypatch):
    """Every text comes twice, with a label of its own: the twin's stands in the scope only without a cap."""
    base = list(documents(30).texts)
    corpus = xmtc.Corpus.from_lists([*base, *base], [[f"own{i}", f"t{i % 7}"] for i in range(60)])
    seen = Spy(monkeypatch)
    for cap in (None, 0.999):
        config = merge(settings, {"neighbours": {"vectors": "tfidf", "cap": cap}, "train": {"epochs": 1}})
        model = xmtc.train(corpus, "treader", config, dev=documents(4))
        names, scopes = model.labels.ids, seen.data.inputs.scopes
        twins = [f"own{(i + 30) % 60}" in [names[entry] for entry in scopes[i][0]] for i in range(60)]
        assert all(twins) if cap is None else not any(twins)
        assert all(len(scopes[i][0]) for i in range(60))
    # ranking knows no cap: a text that was trained on finds itself
    found = model.teacher.search(Texts.pack(base[:5]), tokenize(base[:5], model.tokenizer))
    np.testing.assert_allclose(found.similarities[:, 0], 1, rtol=1e-5)


def test_a_folder_of_format_1_ranks_as_it_did():
    """Trained by the code before norms, when `head.vote` was a switch."""
    model = xmtc.load(HERE / "format_1")
    kept = json.loads((HERE / "format_1_ranking.json").read_text(encoding="utf-8"))
    ranking = model.rank(kept["texts"], 5)
    assert ranking.labels.tolist() == kept["labels"]
    np.testing.assert_allclose(ranking.scores, kept["scores"], atol=2e-6)


def test_an_explanation_has_words_neighbours_and_scope(model, tmp_path):
    text = "Fish0 fish1 and FISH2"
    found = model.explain(text, "fish")
    assert len(found.neighbours) == 5
    for id, similarity, labels in found.neighbours:
        row = list(model.teacher.ids).index(id)
        assert list(labels) == model.labels.decode(model.teacher.Y[row].indices)
        assert 0 < similarity <= 1.0001
    assert [s for _, s, _ in found.neighbours] == sorted((s for _, s, _ in found.neighbours), reverse=True)
    assert "1" in [label for label, _ in found.scope]
    assert "group0" in [label for label, _ in found.scope]
    assert sum(weight for _, weight in found.scope) == pytest.approx(1, abs=1e-5)
    assert {text[start:end] for start, end, _ in found.spans} >= {"Fish0", "fish1", "FISH2"}
    from tests.app.conftest import xmtc as run

    model.save(tmp_path / "model")
    told = run("explain", tmp_path / "model", text, "--label", "fish").out
    assert f"like   {found.neighbours[0][1]:.2f}  {found.neighbours[0][0]}: " in told
    assert "\n  scope  " in told
    assert "group0" in told
    written = run("explain", tmp_path / "model", text, "--label", "fish", "--json").json["labels"][0]
    assert {"label": "1", "name": "fish", "weight": dict(found.scope)["1"]} in written["scope"]


def test_without_a_teacher_nothing_is_searched(settings):
    config = merge(settings, {"reader": {"teacher": False, "reading": "none"}, "train": {"epochs": 1}})
    heard = Heard()
    model = xmtc.train(documents(), "treader", config, progress=heard)
    assert "finding neighbours" not in heard.stages
    assert model.teacher is None
    found = model.explain("fish0", "fish")
    assert (found.neighbours, found.scope) == ((), ())
    assert not list(model.network.reader.text.layers)


def test_no_hierarchy_is_told_and_works(settings):
    heard = Heard()
    quick = merge(settings, {"train": {"epochs": 1}})
    xmtc.train(documents(tree=False), "treader", quick, progress=heard)
    assert "the labels have no hierarchy: scopes contain only the neighbours' labels" in heard.facts
    heard = Heard()
    model = xmtc.train(documents(tree=False), "treader", merge(quick, {"scope": {"literal": True}}), progress=heard)
    assert "the labels have no hierarchy: every scope is empty (scope.literal)" in heard.facts
    assert np.isfinite(model.rank(["fish0"], 3).scores).all()
    assert model.explain("fish0", "fish").scope == ()
    heard = Heard()
    xmtc.train(documents(), "treader", quick, progress=heard)
    assert not [fact for fact in heard.facts if "no hierarchy" in fact]


def test_bad_hierarchies_and_too_many_neighbours(settings):
    circle = [xmtc.Concept("a", parents=("b",)), xmtc.Concept("b", parents=("a",))]
    corpus = xmtc.Corpus.from_lists(["one", "two"], [["a"], ["b"]], concepts=circle)
    with pytest.raises(DataError, match="circle"):
        xmtc.train(corpus, "treader", settings)
    model = xmtc.train(documents(8), "treader", merge(settings, {"neighbours": {"k": 500}, "train": {"epochs": 1}}))
    assert model.rank(["fish0 sugar1"], 3).labels.shape == (1, 3)


def test_labels_without_names_are_described_by_their_documents(settings):
    model = xmtc.train(documents(named=False, tree=False), "treader", merge(settings, {"train": {"epochs": 1}}))
    words = list(model.tokenizer.inner.vocabulary)
    for topic in range(len(TOPICS)):
        row = model.network.scope.descriptions[model.labels.position[str(topic)]].tolist()
        told = [words[word - 3] for word in row if word >= 3]
        assert len(told) == 4
        assert sum(word.startswith(TOPICS[topic]) for word in told) >= 2


def test_words_are_those_of_texts_and_names(model):
    assert "milk" in list(model.tokenizer.inner.vocabulary)  # a name that no text holds
    entry = model.labels.position["3"]
    first = int(model.network.scope.descriptions[entry, 0])
    assert list(model.tokenizer.inner.vocabulary)[first - 3] == "milk"


def test_word_vectors_from_an_encoder(settings, encoder):
    from safetensors.numpy import load_file

    config = merge(settings, {"words": {"vectors": "encoder"}, "rate": {"words": 1e-12}, "train": {"epochs": 1}})
    model = xmtc.train(documents(), "treader", config)
    table = load_file(encoder / "model.safetensors")["embeddings.word_embeddings.weight"]
    from transformers import AutoTokenizer

    piece = AutoTokenizer.from_pretrained(encoder).convert_tokens_to_ids("fish0")
    (number,) = model.tokenizer(["fish0"])[0]
    found = model.network.encoder.words.weight[number].detach()
    np.testing.assert_allclose(found, table[piece] / table.std(ddof=1), rtol=1e-4, atol=1e-6)


def test_rates_fall_on_a_plateau_where_it_is_asked_for(settings, monkeypatch):
    seen = Spy(monkeypatch)
    xmtc.train(documents(), "treader", merge(settings, {"train": {"epochs": 1}}))
    assert seen.more["plateau"] is None
    xmtc.train(documents(), "treader", merge(settings, {"train": {"epochs": 1}, "plateau": {"factor": 0.1}}))
    assert (seen.more["plateau"].epochs, seen.more["plateau"].factor) == (1, 0.1)


def test_every_parameter_has_one_rate(model, settings):
    """Words, reader, output layer and votes at rates of their own; without one for the output, the reader's."""
    rates = {"words": 0.1, "reader": 0.2, "vote": 0.4}
    for output, expected in ((0.3, 0.3), (None, 0.2)):
        config = merge(settings, {"head": {"vote": "log"}, "rate": {**rates, "output": output}})
        config = api.read_settings("treader", config)[1]
        rows = model.network.scope.descriptions.numpy()
        network = TreaderNetwork(model.network.encoder, config, model.labels.n_labels, rows)
        found = {id(p): group.rate for group in _groups(network, config) for p in group.parameters}
        named = dict(network.named_parameters())
        assert len(found) == len(named) == sum(len(group.parameters) for group in _groups(network, config))
        for name, parameter in named.items():
            part = {"encoder": 0.1, "head": expected, "vote": 0.4}.get(name.split(".")[0], 0.2)
            assert found[id(parameter)] == part, name


@pytest.mark.parametrize(
    ("name", "words", "m", "batch"), [("eurlex-4k", 500, 4, 64), ("amazoncat-13k", 300, 4, 64), ("rcv1", 250, 16, 64)]
)
def test_published_recipes(name, words, m, batch):
    method, config = api.read_settings(recipe=f"treader/{name}")
    assert method == "treader"
    assert (config.text, config.words.max_words, config.reader.description_words) == ("words", words, m)
    assert (config.reader.heads, config.reader.reading, config.reader.teacher) == (4, "mmhsa+r+mhsa", True)
    assert (config.head.pool, config.head.bottleneck) == ("flatten", 512)
    assert (config.rate.words, config.rate.reader, config.rate.decay) == (1e-4, 1e-4, 0)
    assert (config.words.width, config.train.batch_size) == (400 if name == "rcv1" else 300, batch)
    assert config.plateau is not None
    assert (config.reader.norm, config.head.vote, config.head.initial_bias) == (False, "none", -6)


def test_recipes_for_cpus():
    for name in ("cooking-cpu", "cooking-encoder-cpu", "tate-cpu", "eurlex57k-cpu"):
        _, config = api.read_settings(recipe=f"treader/{name}")
        assert config.text == ("words" if name == "cooking-cpu" else "encoder")
        assert config.reader.norm
        assert (config.head.pool, config.head.vote) == ("apart", "log")


def test_unknown_reading(settings):
    with pytest.raises(ConfigError, match=r"reader\.reading"):
        xmtc.train(documents(), "treader", merge(settings, {"reader": {"reading": "mmhsa"}}))
