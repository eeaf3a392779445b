"""X-BERT: stages and members against plain loops, going on after a kill, one folder, and what it says of odd labels."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file

torch = pytest.importorskip("torch", reason="xbert needs torch")

from transformers import AutoTokenizer  # noqa: E402

import xmtc  # noqa: E402
from tests.tiny import build_tiny  # noqa: E402
from xmtc import api  # noqa: E402
from xmtc.core.config import merge  # noqa: E402
from xmtc.core.errors import ConfigError, DataError, ModelError, XmtcError  # noqa: E402
from xmtc.core.progress import Progress  # noqa: E402

TOPICS = ["sugar", "fish", "steel", "milk", "wine", "coal", "grain", "silk", "salt", "oil"]


def documents(n=60, seed=0, named=True):
    """Texts of topic words; labels are the topics, by name or by bare number."""
    random = np.random.default_rng(seed)
    texts, lists = [], []
    for i in range(n):
        topics = sorted({i % len(TOPICS), int(random.integers(len(TOPICS)))})
        words = [f"{TOPICS[t]}{random.integers(3)}" for t in topics for _ in range(3)]
        texts.append(" ".join([*words, "and", f"noise{random.integers(9)}"]))
        lists.append([str(t) for t in topics])
    concepts = [xmtc.Concept(str(t), topic) for t, topic in enumerate(TOPICS)] if named else []
    return xmtc.Corpus.from_lists(texts, lists, concepts=concepts)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return build_tiny("bert", tmp_path_factory.mktemp("encoder"), [*documents().texts, *TOPICS])


@pytest.fixture(scope="module")
def settings(encoder):
    return {
        "encoder": {"name": str(encoder), "max_length": 32, "dropout": 0},
        "cluster": {"count": 4},
        "search": {"beam": 2},
        "tfidf": {"min_df": 1},
        "words": {"width": 16},
        "xttention": {"hidden": 8, "attention": 4, "rows": 2, "mlp": 16},
        "rate": {"encoder": 5e-3, "head": 2e-2, "xttention": 1e-2},
        "train": {"epochs": 2, "batch_size": 16},
    }


class Heard(Progress):
    """Remembers; stops, as a kill would, when the n-th stage of a name begins."""

    def __init__(self, stop="", at=1):
        self.stages, self.facts, self.stop, self.at = [], [], stop, at

    def stage(self, name):
        self.stages.append(name)
        if self.stages.count(self.stop) == self.at:
            raise KeyboardInterrupt

    def say(self, fact):
        self.facts.append(fact)


def hinge(score, power):
    return math.exp(-(max(0.0, 1 - score) ** power))


def raw_labels(member, row):
    """Raw score of every label by its dense weights."""
    found = {}
    ranker = member.ranker
    for place, label in enumerate(ranker.leaf_labels.tolist()):
        features, weights = ranker.weights_of(len(ranker.child_starts) - 1 + place)
        found[label] = sum(float(row[f]) * float(w) for f, w in zip(features, weights, strict=True))
    return found


@pytest.mark.parametrize("kind", ["linear", "xttention", "bert"])
@pytest.mark.parametrize("embedding", [False, True])
def test_ranking_against_a_loop_over_the_retrieved_clusters(settings, kind, embedding):
    if kind == "linear" and embedding:
        pytest.skip("a linear matcher has no vectors")
    given = {"match": {"kind": kind}, "rank": {"embedding": embedding, "negatives": "both"}}
    model = xmtc.train(documents(), "xbert", merge(settings, given), seed=3)
    (member,) = model.members
    texts = list(documents(seed=1).texts)[:6]
    ranking = model.rank(texts, 10)
    X, tokens = model.tfidf.transform(texts), None if model.reader is None else model.reader(texts)
    for i in range(len(texts)):
        row = np.append(X[i].toarray()[0], 1.0)
        if kind == "linear":
            clusters = [(c, float(row @ dense_weights(member.matcher.tree, c, len(row)))) for c in range(4)]
        else:
            ids = torch.tensor([tokens[i].tolist()])
            with torch.no_grad():
                network = member.matcher.network
                vector = network.body(ids, torch.ones_like(ids, dtype=torch.bool))
                clusters = list(enumerate(network.output(vector)[0].tolist()))
            if embedding:
                vector = (vector[0] / vector[0].norm()).numpy()
                row = np.concatenate([row[:-1] / math.sqrt(2), vector / math.sqrt(2), [1.0]])
        labels = raw_labels(member, row)
        expected = {}
        for cluster, score in sorted(clusters, key=lambda pair: -pair[1])[:2]:
            for label in member.partition.members(cluster).tolist():
                expected[label] = hinge(score, 2) * hinge(labels[label], 3)
        found = {k: v for k, v in zip(ranking.labels[i].tolist(), ranking.scores[i].tolist(), strict=True) if k >= 0}
        assert found.keys() == expected.keys()
        assert found == pytest.approx(expected, rel=1e-4)


def dense_weights(tree, cluster, width):
    features, weights = tree.weights_of(tree.path(cluster)[-1])
    dense = np.zeros(width)
    dense[features] = weights
    return dense


@pytest.fixture(scope="module")
def ensemble(settings):
    given = {
        "match": {"kind": "linear"},
        "cluster": {"vectors": ["text", "pifa"], "seeds": 2},
        "ensemble": {"width": 3},
    }
    return xmtc.train(documents(), "xbert", merge(settings, given), seed=5)


def test_members_are_vectors_times_seeds(ensemble):
    members = ensemble.manifest.details.members
    assert [(m.vectors, m.seed) for m in members] == [("text", 10), ("text", 11), ("pifa", 10), ("pifa", 11)]
    assert len({member.partition.parents.tobytes() for member in ensemble.members}) > 1


def test_an_ensemble_is_the_mean_of_its_members(ensemble):
    from dataclasses import replace

    texts = list(documents(seed=1).texts)[:8]
    width = ensemble.ensemble.width
    alone = [replace(ensemble, members=(member,)).rank(texts, width) for member in ensemble.members]
    together = ensemble.rank(texts, 3)
    for i in range(len(texts)):
        total: dict[int, float] = {}
        for ranking in alone:
            for label, score in zip(ranking.labels[i].tolist(), ranking.scores[i].tolist(), strict=True):
                if label >= 0:
                    total[label] = total.get(label, 0.0) + score / 4
        best = sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
        np.testing.assert_allclose(together.scores[i], [score for _, score in best], rtol=1e-5)
        for label, score in zip(together.labels[i].tolist(), together.scores[i].tolist(), strict=True):
            assert total[label] == pytest.approx(score, rel=1e-5)


def test_one_folder_holds_all_members(ensemble, tmp_path):
    ensemble.save(tmp_path / "model")
    again = xmtc.load(tmp_path / "model")
    texts = list(documents(seed=1).texts)
    assert again.rank(texts, 5).labels.tobytes() == ensemble.rank(texts, 5).labels.tobytes()
    assert api.evaluate_stages(again, documents(seed=1)) == api.evaluate_stages(ensemble, documents(seed=1))
    assert len(list((tmp_path / "model").glob("member-*"))) == 4
    assert len(list((tmp_path / "model").rglob("tfidf"))) == 1


@pytest.mark.parametrize("frozen", [{"freeze_words": True}, {"freeze_layers": 1}])
def test_words_that_nobody_trains_are_held_once(settings, tmp_path, frozen):
    given = {"encoder": frozen, "cluster": {"vectors": ["text", "pifa"]}, "train": {"epochs": 1}}
    model = xmtc.train(documents(), "xbert", merge(settings, given))
    texts = list(documents(seed=1).texts)
    before = model.rank(texts, 5)
    for generation in ("one", "two"):  # what was loaded can be saved again
        model.save(tmp_path / generation)
        model = xmtc.load(tmp_path / generation)
        first, second = (member.matcher.network.body.encoder.embed_words().weight for member in model.members)
        assert first is second
        words = load_file(tmp_path / generation / "encoder" / "words.safetensors")["weight"]
        assert np.array_equal(words, first.numpy())
        for i in range(2):
            weights = load_file(tmp_path / generation / f"member-{i}" / "network.safetensors")
            assert words.shape not in [array.shape for array in weights.values()]
        after = model.rank(texts, 5)
        assert after.labels.tobytes() == before.labels.tobytes()
        assert after.scores.tobytes() == before.scores.tobytes()


def test_models_whose_members_have_all_words_each_are_read(settings, tmp_path):
    given = {"encoder": {"freeze_words": True}, "cluster": {"vectors": ["text", "pifa"]}, "train": {"epochs": 1}}
    model = xmtc.train(documents(), "xbert", merge(settings, given))
    texts = list(documents(seed=1).texts)
    before = model.rank(texts, 5)
    model.reader.encoder.embed_words().weight.requires_grad_(True)  # so are they saved
    for member in model.members:
        member.matcher.network.body.shared.clear()
    model.save(tmp_path / "model")
    assert not (tmp_path / "model" / "encoder" / "words.safetensors").exists()
    assert xmtc.load(tmp_path / "model").rank(texts, 5).scores.tobytes() == before.scores.tobytes()


def test_xttention_begins_with_the_words_of_an_encoder(settings, encoder):
    given = {"match": {"kind": "xttention"}, "words": {"vectors": "encoder"}, "rate": {"xttention": 1e-12}}
    model = xmtc.train(documents(), "xbert", merge(settings, given | {"train": {"epochs": 1}}))
    table = load_file(encoder / "model.safetensors")["embeddings.word_embeddings.weight"]
    piece = AutoTokenizer.from_pretrained(encoder).convert_tokens_to_ids("fish0")
    (number,) = model.reader.tokenizer(["fish0"])[0]
    found = model.members[0].matcher.network.body.words.weight[number].detach()
    np.testing.assert_allclose(found, table[piece] / table.std(ddof=1), rtol=1e-4, atol=1e-6)


def test_each_encoder_reads_a_text_once(settings):
    given = {"cluster": {"vectors": ["text", "pifa"], "count": 8}, "rank": {"embedding": True}, "search": {"beam": 5}}
    model = xmtc.train(documents(), "xbert", merge(settings, given))
    read = [0, 0]
    for i, member in enumerate(model.members):
        member.matcher.network.body.register_forward_hook(
            lambda *given, i=i: read.__setitem__(i, read[i] + len(given[2]))
        )
    model.rank(list(documents().texts)[:7], 3)
    assert read == [7, 7]
    data = documents(seed=1)
    ranking, stages = api.rank_in_stages(model, data, 3)  # what `xmtc evaluate` does
    assert read == [7 + len(data)] * 2
    assert ranking.labels.tobytes() == model.rank(list(data.texts), 3).labels.tobytes()
    assert stages == api.evaluate_stages(model, data)


def files_of(folder: Path):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "given",
    [
        {"match": {"kind": "linear"}},
        {"match": {"kind": "xttention", "linear": 0.5}},
        {"match": {"kind": "bert"}, "encoder": {"freeze_words": True}},
    ],
)
def test_a_killed_run_goes_on_member_by_member_and_stage_by_stage(settings, given, tmp_path):
    config = merge(settings, merge(given, {"cluster": {"vectors": ["pifa", "text"]}}))
    whole = Heard()
    xmtc.train(documents(), "xbert", config, seed=2, out=tmp_path / "whole", progress=whole)
    for stop in ("clustering labels", "training the ranker"):
        out = tmp_path / stop.replace(" ", "-")
        with pytest.raises(KeyboardInterrupt):
            xmtc.train(documents(), "xbert", config, seed=2, out=out, progress=Heard(stop, at=2))
        resumed = Heard()
        xmtc.train(documents(), "xbert", config, seed=2, out=out, resume=True, progress=resumed)
        assert files_of(out) == files_of(tmp_path / "whole")
        assert not Path(f"{out}.partial").exists()
        assert resumed.stages.count("training the ranker") == 1  # the second member's
        assert resumed.stages.count("clustering labels") == (stop == "clustering labels")
        epochs = [stage for stage in resumed.stages if stage.startswith("epoch ")]
        assert not epochs or stop == "clustering labels"
    assert whole.stages.count("training the ranker") == 2


class StopsInsideTraining(Progress):
    """Stops, as a kill would, in the n-th batch of all epochs."""

    def __init__(self, at):
        self.left = at
        self.inside = False

    def stage(self, name):
        self.inside = name.startswith("epoch ")

    def step(self, done, total=None):
        self.left -= self.inside
        if self.inside and self.left == 0:
            raise KeyboardInterrupt


def test_a_run_killed_in_coarse_or_fine_epochs_ends_in_the_same_bytes(settings, tmp_path):
    """Four batches an epoch: the first two epochs learn coarse clusters."""
    given = {"match": {"kind": "xttention", "coarse": 0.5}, "rank": {"embedding": "auto"}, "train": {"epochs": 4}}
    config = merge(settings, given)
    xmtc.train(documents(), "xbert", config, seed=2, out=tmp_path / "whole")
    for stop, done in (
        (StopsInsideTraining(5), []),
        (StopsInsideTraining(14), ["coarse-matcher"]),
        (Heard("choosing the ranker's features"), ["coarse-matcher", "matcher"]),
        (Heard("training the ranker"), ["coarse-matcher", "features", "matcher"]),
    ):
        out = tmp_path / f"cut-{len(done)}"
        with pytest.raises(KeyboardInterrupt):
            xmtc.train(documents(), "xbert", config, seed=2, out=out, progress=stop)
        kept = {path.name for path in Path(f"{out}.partial", "member-0").iterdir()}
        assert sorted(kept & {"coarse-matcher", "features", "matcher"}) == done
        xmtc.train(documents(), "xbert", config, seed=2, out=out, resume=True)
        assert files_of(out) == files_of(tmp_path / "whole")


def test_coarse_clusters_are_learnt_first(settings):
    given = {"match": {"kind": "xttention", "coarse": 0.5}, "cluster": {"count": 8}, "train": {"epochs": 4}}
    heard = Heard()
    model = xmtc.train(documents(), "xbert", merge(settings, given), seed=3, progress=heard)
    assert "the matcher learns 2 coarse clusters first, then 8" in heard.facts
    assert [stage for stage in heard.stages if stage.startswith("epoch ")] == ["epoch 1 of 2", "epoch 2 of 2"] * 2
    few = Heard()
    xmtc.train(documents(), "xbert", merge(settings, merge(given, {"cluster": {"count": 3}})), progress=few)
    assert "match.coarse has no effect: 3 clusters are too few to join" in few.facts
    assert "epoch 1 of 4" in few.stages
    (details,) = model.manifest.details.members
    assert (len(details.coarse_curve), len(details.curve)) == (2, 2)
    assert model.members[0].matcher.network.output.out_features == 8


def test_what_the_ranker_reads_is_chosen_once_and_stored(settings, tmp_path):
    given = {"cluster": {"vectors": ["text", "pifa"]}, "rank": {"embedding": "auto"}}
    heard = Heard()
    model = xmtc.train(documents(), "xbert", merge(settings, given), seed=3, progress=heard)
    choice = model.manifest.details.feature_choice
    assert sum(fact.startswith("rank.embedding = auto") for fact in heard.facts) == 1
    assert choice.joined == (choice.joined_score > choice.alone_score)
    fixed = xmtc.train(
        documents(), "xbert", merge(settings, merge(given, {"rank": {"embedding": choice.joined}})), seed=3
    )
    texts = list(documents(seed=1).texts)
    model.save(tmp_path / "model")
    for each in (model, xmtc.load(tmp_path / "model")):
        assert each.rank(texts, 5).scores.tobytes() == fixed.rank(texts, 5).scores.tobytes()
        assert all(member.matcher.keeps_vectors == choice.joined for member in each.members)
    assert xmtc.load(tmp_path / "model").manifest.details.feature_choice == choice
    assert fixed.manifest.details.feature_choice is None


def test_a_folder_from_before_these_settings_loads(ensemble, tmp_path):
    ensemble.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    stored = json.loads(path.read_text())
    del stored["config"]["match"]["coarse"], stored["config"]["cluster"]["file"]
    assert "feature_choice" not in stored["details"]
    assert all("coarse_curve" not in member for member in stored["details"]["members"])
    del stored["sha256"]
    stored["sha256"] = hashlib.sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(stored))
    texts = list(documents(seed=1).texts)
    assert xmtc.load(tmp_path / "model").rank(texts, 5).scores.tobytes() == ensemble.rank(texts, 5).scores.tobytes()


def test_labels_are_clustered_by_the_vectors_of_a_file(settings, tmp_path):
    """Two topics in each of five directions: labels of a direction are one cluster, in any order of the file's rows."""
    rows = [*reversed(range(len(TOPICS)))]
    vectors = np.eye(5, dtype=np.float32)[[row // 2 for row in rows]]
    sp.save_npz(tmp_path / "L.elmo.npz", sp.csr_matrix(vectors))
    (tmp_path / "mlc2seq").mkdir()
    (tmp_path / "mlc2seq" / "label_vocab.txt").write_text("".join(f"1\t{row}\n" for row in rows))
    given = {"match": {"kind": "linear"}, "cluster": {"count": 5, "vectors": ["file"]}}
    config = merge(settings, merge(given, {"cluster": {"file": str(tmp_path / "L.elmo.npz")}}))
    model = xmtc.train(documents(), "xbert", config)
    parents = model.members[0].partition.parents
    cluster_of = dict(zip(model.labels.ids, parents.tolist(), strict=True))
    for topic in range(0, len(TOPICS), 2):
        assert cluster_of[str(topic)] == cluster_of[str(topic + 1)]
    assert len(set(cluster_of.values())) == 5
    for wrong, told in (("nofile.npz", "no such file"), ("mlc2seq/label_vocab.txt", "not a sparse matrix")):
        with pytest.raises(XmtcError, match=told):
            xmtc.train(documents(), "xbert", merge(config, {"cluster": {"file": str(tmp_path / wrong)}}))


def test_another_run_is_refused(settings, tmp_path):
    config = merge(settings, {"match": {"kind": "linear"}})
    with pytest.raises(KeyboardInterrupt):
        xmtc.train(documents(), "xbert", config, out=tmp_path / "m", progress=Heard("training the ranker"))
    with pytest.raises(ConfigError, match="other settings, data or seed"):
        xmtc.train(documents(), "xbert", config, out=tmp_path / "m", resume=True, seed=1)


def test_a_run_with_another_dev_is_refused(settings, tmp_path):
    config, out = merge(settings, {"match": {"kind": "xttention"}, "train": {"epochs": 1}}), tmp_path / "m"
    with pytest.raises(KeyboardInterrupt):
        xmtc.train(
            documents(),
            "xbert",
            config,
            dev=documents(20, 1),
            out=out,
            progress=Heard("matching the training documents"),
        )
    for dev in (None, documents(20, seed=2)):
        with pytest.raises(ConfigError, match="other settings, data or seed"):
            xmtc.train(documents(), "xbert", config, dev=dev, out=out, resume=True)
    xmtc.train(documents(), "xbert", config, dev=documents(20, 1), out=out, resume=True)
    for dev in (None, documents(20, seed=2)):  # nor is the finished model theirs
        with pytest.raises(ConfigError, match="other settings, data or seed"):
            xmtc.train(documents(), "xbert", config, dev=dev, out=out, resume=True)
    xmtc.train(documents(), "xbert", config, dev=documents(20, 1), out=out, resume=True)


def test_a_linear_matcher_uses_no_dev(settings, tmp_path):
    config, out = merge(settings, {"match": {"kind": "linear"}}), tmp_path / "m"
    xmtc.train(documents(), "xbert", config, dev=documents(20, 1), out=out)
    xmtc.train(documents(), "xbert", config, out=out, resume=True)  # is the same run
    kinds = [api.read_settings("xbert", {"match": {"kind": kind}})[1] for kind in ("linear", "xttention", "bert")]
    assert [api.uses_dev("xbert", kind) for kind in kinds] == [False, True, True]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"words": {"vectors": "nofile.txt"}}, "cannot read 'nofile.txt'"),
        ({"words": {"vectors": "bad.txt"}}, "bad.txt:2: expected a word and 2 numbers"),
        ({"train": {"metric": "P@7"}}, "no metric 'P@7'"),
        pytest.param(
            {"train": {"precision": "fp16"}},
            "fp16 needs a GPU",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU"),
        ),
        ({"match": {"kind": "linear"}, "train": {"metric": "P@7"}}, "no metric 'P@7'"),
        ({"match": {"initial_bias": math.nan}}, "match.initial_bias"),
        ({"match": {"kind": "bert"}, "encoder": {"name": "/no/encoder"}}, "/no/encoder"),
        ({"cluster": {"vectors": ["pifa", "text"], "encoder": "/no/encoder"}}, "cluster.encoder: .*/no/encoder"),
    ],
)
def test_a_mended_command_needs_no_flag(settings, wrong, told, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("bad.txt").write_text("sugar0 0.5 1\nsugar1 0.5 x\n")
    config = merge(settings, {"match": {"kind": "xttention"}, "train": {"epochs": 1}})
    heard = Heard()
    with pytest.raises(XmtcError, match=told):
        xmtc.train(documents(), "xbert", merge(config, wrong), out=tmp_path / "m", progress=heard)
    assert "clustering labels" not in heard.stages
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    xmtc.train(documents(), "xbert", config, out=tmp_path / "m")


def test_what_does_not_fit_is_refused_before_anything_is_kept(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("xmtc.neural.plan.available_memory", lambda: 1000)
    with pytest.raises(XmtcError, match="training needs about"):
        xmtc.train(documents(), "xbert", settings, out=tmp_path / "m")
    assert not any(tmp_path.iterdir())


def test_a_refused_command_leaves_another_run_alone(settings, tmp_path):
    config = merge(settings, {"match": {"kind": "linear"}})
    with pytest.raises(KeyboardInterrupt):  # before it has anything to keep
        xmtc.train(documents(), "xbert", config, out=tmp_path / "model", progress=Heard("clustering labels"))
    with pytest.raises(XmtcError, match="other settings"):
        xmtc.train(documents(), "xbert", merge(config, {"search": {"beam": 1}}), out=tmp_path / "model", resume=True)
    assert (tmp_path / "model.partial" / "run.json").exists()


def test_a_stage_that_was_cut_is_named(settings, tmp_path):
    config = merge(settings, {"match": {"kind": "linear"}})
    with pytest.raises(KeyboardInterrupt):
        xmtc.train(documents(), "xbert", config, out=tmp_path / "m", progress=Heard("training the ranker"))
    parents = tmp_path / "m.partial" / "member-0" / "index" / "parents.npy"
    parents.write_bytes(parents.read_bytes()[:-20])
    with pytest.raises(
        ModelError, match=r"parents\.npy is missing, cut or altered; remove .*index to run this stage again"
    ):
        xmtc.train(documents(), "xbert", config, out=tmp_path / "m", resume=True)


def test_matching_is_measured_against_loops(ensemble):
    corpus = documents(40, seed=4)
    for truth in ("all", "known"):
        measured = api.evaluate_stages(ensemble, corpus, truth)["matching"]
        assert len(measured) == 4
        for member, found in zip(ensemble.members, measured, strict=True):
            clusters = member.matcher.match(ensemble.tfidf.transform(list(corpus.texts)), None, 2)[0].labels
            right, inside = 0, 0.0
            for i in range(40):
                true = [int(member.partition.parents[ensemble.labels.position[corpus.labels.ids[label]]])
                        for label in corpus.Y[i].indices]  # fmt: skip
                right += clusters[i, 0] in true
                inside += sum(cluster in clusters[i] for cluster in true) / len(true)
            assert found["P@1"] == pytest.approx(100 * right / 40)
            assert found["recall"] == pytest.approx(100 * inside / 40)
            assert (found["clusters"], found["beam"]) == (4, 2)


def test_recall_is_of_the_clusters_that_are_retrieved():
    """With one cluster retrieved, a tree of several levels finds others than the best of five."""
    random = np.random.default_rng(0)
    lists = [[f"l{i % 200}", f"l{random.integers(200)}"] for i in range(600)]
    texts = [" ".join(f"{label}w{random.integers(3)} n{random.integers(20)}" for label in labels) for labels in lists]
    config = {"match": {"kind": "linear"}, "cluster": {"vectors": ["pifa"], "count": 140}, "search": {"beam": 1}}
    data = xmtc.Corpus.from_lists(texts, lists)
    staged = xmtc.train(data, "xbert", config)
    (member,) = staged.members
    best = member.matcher.match(staged.tfidf.transform(list(data.texts)), None, 1)[0].labels[:, 0]
    inside = [
        np.mean([member.partition.parents[staged.labels.position[label]] == best[i] for label in set(labels)])
        for i, labels in enumerate(lists)
    ]
    assert member.matcher.tree.shape.depth > 1
    assert api.evaluate_stages(staged, data)["matching"][0]["recall"] == pytest.approx(100 * np.mean(inside))


def test_labels_never_trained_on_cost_the_matchers_recall(ensemble):
    corpus = xmtc.Corpus.from_lists(["sugar0 sugar1", "fish0"], [["0", "new"], ["new"]])
    everything, known = (api.evaluate_stages(ensemble, corpus, truth)["matching"][0] for truth in ("all", "known"))
    assert everything["recall"] == known["recall"] / 4
    assert known["recall"] == 100


def test_evaluate_tells_both_stages(ensemble, tmp_path):
    from tests.app.conftest import write_lines
    from tests.app.conftest import xmtc as run

    ensemble.save(tmp_path / "model")
    corpus = documents(20, seed=4)
    rows = [{"text": text, "labels": corpus.labels.decode(corpus.Y[i].indices)} for i, text in enumerate(corpus.texts)]
    write_lines(tmp_path / "test.jsonl", rows)
    found = run("evaluate", tmp_path / "model", tmp_path / "test.jsonl", "--json").json
    assert found["stages"] == api.evaluate_stages(ensemble, corpus)
    assert {"metrics", "intervals", "n", "n_labels", "propensity", "truth", "model", "data"} <= set(found)
    told = run("evaluate", tmp_path / "model", tmp_path / "test.jsonl").out
    assert told.count("matching (") == 4
    assert f"P@1 {found['stages']['matching'][0]['P@1']:.2f}" in told


def test_other_models_have_no_stages():
    model = xmtc.train(documents(), "linear", {"tfidf": {"min_df": 1}})
    assert api.evaluate_stages(model, documents()) == {}


def test_labels_without_text_are_clustered_by_their_documents(settings):
    heard = Heard()
    config = merge(settings, {"match": {"kind": "linear"}, "cluster": {"vectors": ["text", "pifa"], "seeds": 2}})
    model = xmtc.train(documents(named=False), "xbert", config, progress=heard)
    assert [m.vectors for m in model.manifest.details.members] == ["pifa", "pifa"]
    assert "the labels have no text: they are clustered by the words of their documents (pifa)" in heard.facts


def test_a_cluster_that_is_never_retrieved_is_told(settings):
    heard = Heard()
    config = merge(settings, {"match": {"kind": "bert"}, "search": {"beam": 1}, "cluster": {"count": 10}})
    config = merge(
        config, {"rate": {"encoder": 1e-9, "head": 1e-9}, "rank": {"negatives": "man"}, "train": {"epochs": 1}}
    )
    model = xmtc.train(documents(), "xbert", config, progress=heard)
    (told,) = [fact for fact in heard.facts if "for no training document" in fact]
    assert "of 10 clusters for no training document" in told
    assert np.isfinite(model.rank(["sugar0"], 1).scores).all()


@pytest.mark.parametrize("match", [{"kind": "linear"}, {"kind": "xttention", "linear": 0.5}])
def test_a_beam_above_the_number_of_clusters_takes_all(settings, match):
    config = merge(settings, {"match": match, "rank": {"negatives": "both"}})
    texts = list(documents(seed=1).texts)
    wide, all_of_them = (
        xmtc.train(documents(), "xbert", merge(config, {"search": {"beam": beam}}), seed=3) for beam in (10**7, 4)
    )
    assert wide.rank(texts, 10).scores.tobytes() == all_of_them.rank(texts, 10).scores.tobytes()
    found = [api.evaluate_stages(model, documents(seed=1))["matching"][0] for model in (wide, all_of_them)]
    assert found[0]["recall"] == found[1]["recall"] == 100


def test_a_linear_matcher_beside_probabilities_keeps_its_margins(settings):
    given = {"match": {"kind": "xttention", "loss": "bce", "linear": 0.5}, "search": {"cluster": "sigmoid"}}
    model = xmtc.train(documents(), "xbert", merge(settings, given))
    matcher = model.members[0].matcher
    row = np.append(model.tfidf.transform(["sugar0 milk1"]).toarray()[0], 1.0)
    found = matcher.linear.match(model.tfidf.transform(["sugar0 milk1"]), None, 4)[0]
    for cluster, score in zip(found.labels[0].tolist(), found.scores[0].tolist(), strict=True):
        assert score == pytest.approx(hinge(row @ dense_weights(matcher.linear.tree, cluster, len(row)), 2), rel=1e-4)


def test_equal_members_are_one(settings):
    noop = {"match": {"kind": "linear"}, "search": {"combiner": "noop"}, "cluster": {"vectors": ["pifa", "pifa"]}}
    assert len(xmtc.train(documents(), "xbert", merge(settings, noop)).members) == 1


def test_what_cannot_be(settings):
    with pytest.raises(ConfigError, match=r"rank\.embedding needs a neural matcher"):
        xmtc.train(documents(), "xbert", merge(settings, {"match": {"kind": "linear"}, "rank": {"embedding": True}}))
    with pytest.raises(ConfigError, match=r"match\.linear needs a neural matcher"):
        xmtc.train(documents(), "xbert", merge(settings, {"match": {"kind": "linear", "linear": 0.5}}))
    for wrong, told in (
        ({"match": {"kind": "linear"}, "rank": {"embedding": "auto"}}, r"rank\.embedding needs a neural matcher"),
        ({"match": {"kind": "linear", "coarse": 0.5}}, r"match\.coarse needs a neural matcher"),
        ({"match": {"coarse": 0.5}, "train": {"epochs": 1}}, r"match\.coarse divides the epochs"),
    ):
        with pytest.raises(ConfigError, match=told):
            xmtc.train(documents(), "xbert", merge(settings, wrong))
    noop = {"match": {"kind": "linear"}, "search": {"combiner": "noop"}, "cluster": {"seeds": 2}}
    with pytest.raises(ConfigError, match=r"set ensemble\.rule to rank, sigmoid or softmax"):
        xmtc.train(documents(), "xbert", merge(settings, noop))
    ranked = xmtc.train(documents(), "xbert", merge(settings, {**noop, "ensemble": {"rule": "rank"}}))
    assert ranked.rank(["sugar0 sugar1"], 1).named(ranked.labels)[0][0][0] == "sugar"
    corpus = documents()
    features = xmtc.Corpus(corpus.ids, None, corpus.Y.copy(), corpus.Y, corpus.labels)
    with pytest.raises(DataError, match="xbert reads texts, and this corpus has only features"):
        xmtc.train(features, "xbert", settings)


def test_an_explanation_has_words_and_path(ensemble):
    found = ensemble.explain("Fish0 and FISH1 and coal2", "fish")
    assert {word for word, _ in found.words("Fish0 and FISH1 and coal2", 2)} == {"fish0", "fish1"}
    (cluster, score), (label, _) = found.path
    assert label == "fish"
    assert "fish" in cluster
    assert 0 < score <= 1
    far = ensemble.explain("fish0 fish1", "steel")  # in no retrieved cluster, or low: its own path scores it
    assert 0 <= far.score < found.score


@pytest.mark.parametrize(
    ("name", "clusters", "epochs", "batch"),
    [
        ("eurlex-4k", 64, 20, 32),
        ("wiki10-28k", 512, 15, 32),
        ("amazoncat-13k", 256, 5, 36),
        ("wiki-500k", 8192, 12, 36),
    ],
)
def test_published_recipes(name, clusters, epochs, batch):
    method, config = api.read_settings(recipe=f"xbert/{name}")
    assert method == "xbert"
    assert (config.cluster.count, config.train.epochs, config.train.batch_size) == (clusters, epochs, batch)
    assert (config.cluster.vectors, config.cluster.seeds) == (["text", "pifa"], 3)
    assert (config.encoder.name, config.match.loss, config.solver.bias) == ("bert-base-uncased", "hinge", 0)
    assert (config.search.beam, config.search.cluster, config.search.combiner) == (10, "l2-hinge", "l3-hinge")
    assert (0.5 if name == "wiki-500k" else 0.55) == config.propensity.A


@pytest.mark.parametrize(
    ("name", "clusters", "epochs", "batch"),
    [
        ("eurlex-4k", 64, 12, 128),
        ("wiki10-28k", 512, 20, 128),
        ("amazoncat-13k", 256, 6, 256),
        ("wiki-500k", 8192, 9, 256),
    ],
)
def test_published_recipes_of_xttention(name, clusters, epochs, batch):
    method, config = api.read_settings(recipe=f"xbert/{name}-xttention")
    assert (method, config.match.kind, config.match.loss) == ("xbert", "xttention", "hinge")
    assert (config.cluster.count, config.train.epochs, config.train.batch_size) == (clusters, epochs, batch)
    sizes = config.xttention
    assert (sizes.hidden, sizes.attention, sizes.rows, sizes.mlp) == (512, 350, 30, 2000)
    assert (config.words.vectors, config.words.width, config.words.max_words) == ("random", 512, 300)
    assert (config.rate.xttention, config.solver.bias, config.solver.prune) == (1e-4, 0, 0.1)
    assert (0.5 if name == "wiki-500k" else 0.55) == config.propensity.A


def test_ensemble_recipes():
    for data in ("tate", "eurlex57k"):
        for version, vectors in (("v1", ["text"]), ("v2", ["pifa"]), ("v3", ["text", "pifa"])):
            config = api.read_settings(recipe=f"xbert/{data}-{version}-cpu")[1]
            assert (config.cluster.vectors, config.cluster.seeds) == (vectors, 3)
