"""LightXML: the whole network against plain loops, its stages, its parameter groups, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="lightxml needs torch")

import xmtc  # noqa: E402
from tests.tiny import LAYERS, WIDTH, build_tiny  # noqa: E402
from xmtc.core.config import build, merge  # noqa: E402
from xmtc.core.errors import ConfigError, DataError  # noqa: E402
from xmtc.core.partition import Partition  # noqa: E402
from xmtc.core.progress import Progress  # noqa: E402
from xmtc.features.tokens import tokenize  # noqa: E402
from xmtc.methods.lightxml import method as lightxml  # noqa: E402
from xmtc.neural.batches import Inputs  # noqa: E402
from xmtc.neural.encoder import EncoderConfig, load_encoder  # noqa: E402

TEXTS = ["red green", "Green blue blue red", "blue", "", "white red green blue white"]
LABELS = [[0, 3], [1], [2, 5, 6], [4], [0, 1, 2, 3]]
PARTITION = Partition(np.array([0, 0, 1, 1, 1, 2, 3], np.int32), 4)  # clusters of 2, 3, 1, 1
MEMBERS = {0: [0, 1], 1: [2, 3, 4], 2: [5], 3: [6]}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    return {family: build_tiny(family, folder / family, TEXTS) for family in ("bert", "xlnet")}


def settings(encoders, family="bert", **over):
    plain = {
        "encoder": {"name": str(encoders[family]), "max_length": 32, "dropout": 0.0},
        "head": {"dropout": 0.0, "bottleneck": 8, "shortlist": 2},
        "cluster": {"size": 2},
        "tfidf": {"min_df": 1},
        "train": {"epochs": 2, "batch_size": 4},
    }
    return build(lightxml.LightxmlConfig, plain, over)


def network_and_batch(config, partition=None, texts=TEXTS, lists=LABELS):
    torch.manual_seed(3)
    encoder, tokenizer = load_encoder(
        EncoderConfig(**config.encoder.model_dump(include=set(EncoderConfig.model_fields)))
    )
    network = lightxml.LightxmlNetwork(encoder, config, 7, partition)
    if partition is not None:  # logits far enough apart that the choice of clusters means something
        with torch.no_grad():
            network.head.generator.weight.mul_(5)
            network.head.table.weight.mul_(3)
    Y = sp.csr_matrix(np.array([[float(label in found) for label in range(7)] for found in lists]))
    tokens = tokenize(texts, tokenizer)
    network.eval()
    return network, Inputs(tokens, encoder.layout).collate(range(len(texts)), Y), tokens


def naive_text(network, encoder, tokens, cls_place):
    """[CLS] of the layers, the last first, from one unpadded text after another."""
    rows = []
    for i in range(len(tokens)):
        ids = torch.from_numpy(np.array(tokens[i], dtype=np.int64)).unsqueeze(0)
        states = encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states
        rows.append(torch.cat([states[-1 - layer][0, cls_place] for layer in range(LAYERS)]).tolist())
    return rows


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def cross_entropy(logit, target):
    return -math.log(sigmoid(logit)) if target else -math.log(1 - sigmoid(logit))


def linear(layer, vector):
    weight, bias = layer.weight.tolist(), layer.bias.tolist()
    return [sum(w * x for w, x in zip(row, vector, strict=True)) + b for row, b in zip(weight, bias, strict=True)]


def label_logits(head, vector):
    hidden = linear(head.bottleneck, vector)
    return [sum(e * h for e, h in zip(row, hidden, strict=True)) for row in head.table.weight.tolist()]


def recall_term(cluster_logits, labels):
    truth = [any(label in MEMBERS[c] for label in labels) for c in range(4)]
    return sum(cross_entropy(z, t) for z, t in zip(cluster_logits, truth, strict=True)) / 4


def chosen_clusters(cluster_logits, labels, n):
    """Clusters with positives first, then by score: n, and more where more hold positives."""
    holds = [any(label in MEMBERS[c] for label in labels) for c in range(4)]
    return sorted(range(4), key=lambda c: (-holds[c], -cluster_logits[c]))[: max(n, sum(holds))]


def ranking_term(logits, cluster_logits, labels, n):
    candidates = [label for c in chosen_clusters(cluster_logits, labels, n) for label in MEMBERS[c]]
    assert set(labels) <= set(candidates)
    return sum(cross_entropy(logits[label], label in labels) for label in candidates) / len(candidates)


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_small_loss_and_ranking(encoders, family):
    network, batch, tokens = network_and_batch(settings(encoders, family, head={"mode": "small"}))
    texts = naive_text(network, network.encoder, tokens, -1 if family == "xlnet" else 0)
    logits = [linear(network.head.output, text) for text in texts]
    expected = sum(cross_entropy(z, j in LABELS[i]) for i, row in enumerate(logits) for j, z in enumerate(row))
    total, count = network.loss(batch)
    assert total.item() == pytest.approx(expected, rel=1e-5)
    assert float(count) == 5 * 7
    labels, scores = network.rank(batch, 3)
    for i, row in enumerate(logits):
        best = sorted(range(7), key=lambda j: -row[j])[:3]
        assert labels[i].tolist() == best
        assert scores[i].tolist() == pytest.approx([sigmoid(row[j]) for j in best], rel=1e-5)


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_large_loss_and_ranking(encoders, family):
    network, batch, tokens = network_and_batch(settings(encoders, family), PARTITION)
    texts = naive_text(network, network.encoder, tokens, -1 if family == "xlnet" else 0)
    clusters = [linear(network.head.generator, text) for text in texts]
    logits = [label_logits(network.head, text) for text in texts]
    # two clusters a document, but three for the one with positives in three
    expected = sum(
        ranking_term(logits[i], clusters[i], LABELS[i], 2) + recall_term(clusters[i], LABELS[i]) for i in range(5)
    )
    total, count = network.loss(batch)
    assert total.item() == pytest.approx(expected, rel=1e-4)
    assert float(count) == 5
    labels, scores = network.rank(batch, 7)
    for i in range(5):
        kept = sorted(range(4), key=lambda c: -clusters[i][c])[:2]
        product = {j: sigmoid(logits[i][j]) * sigmoid(clusters[i][c]) for c in kept for j in MEMBERS[c]}
        best = sorted(product, key=lambda j: -product[j])
        found = labels[i][labels[i] >= 0].tolist()
        assert found == best
        assert scores[i][: len(best)].tolist() == pytest.approx([product[j] for j in best], rel=1e-4)


@pytest.mark.parametrize("negatives", ["static", "static-own"])
def test_static_stages(encoders, negatives):
    network, batch, tokens = network_and_batch(settings(encoders, head={"negatives": negatives}), PARTITION)
    network.enter("recall")
    recall_encoder = network.recaller or network.encoder
    with torch.no_grad():  # as if recall had learned something
        for parameter in recall_encoder.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    recalled = naive_text(network, recall_encoder, tokens, 0)
    clusters = [linear(network.head.generator, text) for text in recalled]
    total, count = network.loss(batch)
    assert total.item() == pytest.approx(
        sum(recall_term(c, y) for c, y in zip(clusters, LABELS, strict=True)), rel=1e-4
    )
    assert float(count) == 5

    network.enter("rank")
    assert torch.equal(network.encoder.embed_words().weight, recall_encoder.embed_words().weight)
    if negatives == "static-own":  # ranking's encoder goes its own way; recall's clusters stay
        with torch.no_grad():
            for parameter in network.encoder.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
    logits = [label_logits(network.head, text) for text in naive_text(network, network.encoder, tokens, 0)]
    expected = sum(ranking_term(logits[i], clusters[i], LABELS[i], 2) for i in range(5))
    total, _ = network.loss(batch)
    assert total.item() == pytest.approx(expected, rel=1e-4)
    total.backward()
    learns = {
        name.split(".")[0] + "." + name.split(".")[1] for name, p in network.named_parameters() if p.grad is not None
    }
    own = {"encoder.network"} if negatives == "static-own" else set()
    assert learns == {"head.bottleneck", "head.table"} | own
    labels, scores = network.rank(batch, 1)
    for i in range(5):
        best = labels[i, 0].item()
        product = sigmoid(logits[i][best]) * sigmoid(clusters[i][PARTITION.parents[best]])
        assert scores[i, 0].item() == pytest.approx(product, rel=1e-4)


def test_static_negatives_have_no_dropout_in_recall(encoders):
    config = settings(encoders, head={"negatives": "static", "dropout": 0.0}, encoder={"dropout": 0.3})
    network, batch, _ = network_and_batch(config, PARTITION)
    network.enter("rank")
    network.train()
    assert network.loss(batch)[0].item() == network.loss(batch)[0].item()
    assert network.encoder.training


def test_bottleneck_sigmoid(encoders):
    network, batch, tokens = network_and_batch(settings(encoders, head={"sigmoid": True}), PARTITION)
    (text,) = naive_text(network, network.encoder, tokens, 0)[:1]
    hidden = [sigmoid(h) for h in linear(network.head.bottleneck, text)]
    logit = sum(e * h for e, h in zip(network.head.table.weight.tolist()[2], hidden, strict=True))
    expected = math.log(sigmoid(logit) * sigmoid(linear(network.head.generator, text)[1]))
    assert network.score(batch, 2)[0].item() == pytest.approx(expected, rel=1e-4)


def test_mean_pooling_and_layers(encoders):
    config = settings(encoders, encoder={"pool": "cls+mean"}, head={"mode": "small"})
    network, batch, tokens = network_and_batch(config)
    assert network.width == 2 * WIDTH
    ids = torch.from_numpy(np.array(tokens[1], dtype=np.int64)).unsqueeze(0)
    last = network.encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states[-1][0]
    expected = torch.cat([last[0], last.mean(0)])
    torch.testing.assert_close(network._text(network.encoder, batch)[1], expected, rtol=1e-5, atol=1e-6)
    assert lightxml.LightxmlNetwork(network.encoder, settings(encoders), 7, None).width == LAYERS * WIDTH


def test_reference_reads_the_first_token_and_repeats_the_last_candidate(encoders):
    lists = [[0, 3], [1], [2, 5], [4], [0, 1, 2, 3]]  # never in all three chosen clusters: so the last one is by score
    config = settings(encoders, "xlnet", reference=True, head={"shortlist": 3})
    network, batch, tokens = network_and_batch(config, PARTITION, lists=lists)
    expected, rows = 0.0, []
    for text, labels in zip(naive_text(network, network.encoder, tokens, 0), lists, strict=True):
        clusters, logits = linear(network.head.generator, text), label_logits(network.head, text)
        order = chosen_clusters(clusters, labels, 3)
        rows.append([(logits[j], j in labels) for c in order for j in MEMBERS[c]])
        expected += recall_term(clusters, labels)
    widest = max(map(len, rows))
    assert min(map(len, rows)) < widest
    for row in rows:
        filled = row + [row[-1]] * (widest - len(row))
        expected += sum(cross_entropy(*pair) for pair in filled) / widest
    assert network.loss(batch)[0].item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("mode", ["small", "large"])
@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_padding_changes_nothing(encoders, family, mode):
    network, batch, tokens = network_and_batch(settings(encoders, family), PARTITION if mode == "large" else None)
    together = network.loss(batch)[0]
    together.backward()
    gradients = [p.grad.to_dense() if p.grad is not None else None for p in network.parameters()]
    network.zero_grad()
    Y = sp.csr_matrix(np.array([[float(label in found) for label in range(7)] for found in LABELS]))
    alone = sum(network.loss(Inputs(tokens, network.encoder.layout).collate([i], Y))[0] for i in range(5))
    alone.backward()
    assert together.item() == pytest.approx(alone.item(), abs=1e-5)
    for parameter, before in zip(network.parameters(), gradients, strict=True):
        if before is not None:
            # sums in another order: on some processors the last but one digit differs
            torch.testing.assert_close(parameter.grad.to_dense(), before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_groups_decay_all_but_biases_and_norms(encoders, family):
    config = settings(encoders, family, rate={"encoder": 1e-4, "head": 1e-3}, encoder={"freeze_words": True})
    network, _, _ = network_and_batch(config, PARTITION)
    network.encoder.embed_words().weight.requires_grad_(False)
    group_of = {id(p): group for group in lightxml.groups(network, config) for p in group.parameters}
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            assert id(parameter) not in group_of
            continue
        group = group_of[id(parameter)]
        spared = "bias" in name or "norm" in name.lower()
        assert group.decay == (0 if spared else 0.01), name
        assert group.rate == (1e-3 if name.startswith("head") else 1e-4), name
        assert group.row_sparse == ("table" in name)
    assert not network.encoder.embed_words().weight.requires_grad
    assert sum(len(group.parameters) for group in lightxml.groups(network, config)) == len(group_of)


@pytest.mark.parametrize("mode", ["small", "large"])
def test_a_head_started_from_documents(encoders, mode, tmp_path):
    """Biases are log-odds less w·mean; rows point to the mean of their documents, read by the encoder as it was."""
    head = {"mode": mode, "initial_bias": "prior", "label_init": "documents"}
    config = settings(encoders, head=head, rate={"encoder": 1e-12, "head": 1e-12}, train={"dev_fraction": 0})
    corpus = small_corpus()
    model = xmtc.train(corpus, "lightxml", config, out=tmp_path / "model")
    network, Y = model.network, corpus.Y.toarray()
    read = torch.tensor(naive_text(network, network.encoder, tokenize(corpus.texts, model.tokenizer), 0)).double()
    mean, n_labels = read.mean(0), Y.shape[1]
    if mode == "small":
        layer, holds = network.head.output, Y
    else:
        clusters = network.head.clusters
        members = [[j for j in range(n_labels) if clusters.cluster_of[j] == c] for c in range(clusters.n_clusters)]
        layer, holds = network.head.generator, np.stack([Y[:, own].any(1) for own in members], axis=1)
        weight = network.head.bottleneck.weight.detach().double()
        torch.testing.assert_close(network.head.bottleneck.bias.detach().double(), -weight @ mean, rtol=1e-3, atol=1e-4)
        assert_points_to_means(network.head.table.weight, (read - mean) @ weight.T, Y)
    assert_points_to_means(layer.weight, read - mean, holds)
    counts = holds.sum(0)
    for i, n in enumerate(counts.tolist()):
        middle = (layer.weight[i].double() @ mean + layer.bias[i]).item()
        assert middle == pytest.approx(math.log((n + 0.5) / (24 - n + 0.5)), abs=1e-3)
    again = xmtc.load(tmp_path / "model").rank(list(corpus.texts), 3)
    assert again.scores.tobytes() == model.rank(list(corpus.texts), 3).scores.tobytes()


def assert_points_to_means(rows, centred, holds):
    """Each row is one number times the mean of its documents' centred vectors, divided by its length."""
    lengths = []
    for i, row in enumerate(rows.detach().double()):
        mean = centred[np.flatnonzero(holds[:, i])].mean(0)
        if mean.norm() > 1e-3:
            torch.testing.assert_close(row / row.norm(), mean / mean.norm(), rtol=1e-2, atol=1e-3)
            lengths.append(row.norm().item())
    assert lengths == pytest.approx([lengths[0]] * len(lengths), rel=1e-3)
    assert len(lengths) > 1


def test_groups_of_the_static_stages(encoders):
    for negatives, encoder in (("static", "encoder"), ("static-own", "recaller")):
        config = settings(encoders, head={"negatives": negatives})
        network, _, _ = network_and_batch(config, PARTITION)
        names = {id(p): name.split(".")[0] + "." + name.split(".")[1] for name, p in network.named_parameters()}
        network.enter("recall")
        learns = {names[id(p)] for group in lightxml.groups(network, config) for p in group.parameters}
        assert learns == {f"{encoder}.network", "head.generator"}
        network.enter("rank")
        learns = {names[id(p)] for group in lightxml.groups(network, config) for p in group.parameters}
        assert learns == {"head.bottleneck", "head.table"} | ({"encoder.network"} if encoder == "recaller" else set())


def test_defaults_are_the_papers_even_where_others_are_set():
    config = build(lightxml.LightxmlConfig, {"train": {"epochs": 4}, "cluster": {"weighting": "sqrt"}})
    assert (config.train.schedule, config.train.clip, config.cluster.size) == ("constant", None, 100)
    assert (config.rate.encoder, config.rate.head, config.rate.decay) == (1e-4, 1e-4, 0.01)
    assert (config.head.dropout, config.head.sigmoid, config.head.negatives) == (0.5, False, "dynamic")


class Told(Progress):
    def __init__(self):
        self.facts = []

    def say(self, fact):
        self.facts.append(fact)


def small_corpus(n=24):
    words = ["red", "green", "blue", "white"]
    texts = [f"{words[i % 4]} {words[i // 4 % 4]}" for i in range(n)]
    return xmtc.Corpus.from_lists(texts, [[words[i % 4], f"{words[i % 4]}-{words[i // 4 % 4]}"] for i in range(n)])


@pytest.mark.parametrize("negatives", ["static", "static-own"])
def test_static_arms_train_save_and_reload(encoders, negatives, tmp_path):
    over = {"head": {"mode": "large", "negatives": negatives}, "rate": {"encoder": 5e-3, "head": 2e-2}}
    config = settings(encoders, **merge(over, {"train": {"epochs": 8, "average_from": 6, "average_every": 2}}))
    corpus = small_corpus()
    model = xmtc.train(corpus, "lightxml", config, dev=corpus, out=tmp_path / "model")
    assert [entry.epoch for entry in model.manifest.details.curve] == [*range(8), *range(8)]  # all epochs in each stage
    assert [(entry.dev is not None) for entry in model.manifest.details.curve] == [False] * 8 + [True] * 8
    assert xmtc.evaluate(model, corpus, intervals=False)["R@5"] > 60
    again = xmtc.load(tmp_path / "model")
    texts = list(corpus.texts)
    np.testing.assert_array_equal(model.rank(texts, 5).labels, again.rank(texts, 5).labels)
    assert not (tmp_path / "model.partial").exists()


def test_entries_beyond_the_trained_labels_are_no_positives(encoders):
    """A corpus aligned to a label set may hold labels without parameters."""
    corpus = small_corpus()
    few = xmtc.Corpus.from_lists(["red red"], [["red"]])
    aligned = corpus.align(few.labels)
    model = lightxml.LightxmlMethod().train(aligned, settings(encoders))
    assert model.labels.n_labels == 1


def test_weights_averaged_and_words_frozen(encoders):
    config = settings(encoders, encoder={"freeze_words": True}, train={"average_from": 1, "average_every": 2})
    before, _ = load_encoder(EncoderConfig(name=str(encoders["bert"]), max_length=32))
    model = xmtc.train(small_corpus(), "lightxml", config)
    network = model.network
    assert torch.equal(network.encoder.embed_words().weight, before.embed_words().weight)
    names = dict(before.named_parameters())
    changed = [n for n, p in network.encoder.named_parameters() if not torch.equal(p, names[n])]
    assert len(changed) > 10


def test_lower_case_survives_saving(encoders, tmp_path):
    config = settings(encoders, "xlnet", encoder={"lowercase": True})
    model = xmtc.train(small_corpus(), "lightxml", config, out=tmp_path / "model")
    for found in (model, xmtc.load(tmp_path / "model")):
        one, two = (found.rank([text], 3) for text in ("RED Green", "red green"))
        assert one.scores.tobytes() == two.scores.tobytes()
        assert found.tokenizer.offsets("RED Green")[:2] == [(0, 3), (4, 9)]


def test_says_what_it_takes_and_refuses_what_cannot_fit(encoders, monkeypatch):
    told = Told()
    xmtc.train(small_corpus(), "lightxml", settings(encoders), progress=told)
    assert any("million parameters; training takes about" in fact for fact in told.facts)
    monkeypatch.setattr("xmtc.neural.plan.available_memory", lambda: 10_000)
    with pytest.raises(ConfigError, match=r"training needs about .* are free: "):
        xmtc.train(small_corpus(), "lightxml", settings(encoders))


def test_an_interrupted_run_with_windows_ends_with_the_same_bytes(encoders, tmp_path):
    class Stop(Told):
        def step(self, done, total):
            if any(fact.startswith("epoch 1:") for fact in self.facts) and done == 2:
                raise KeyboardInterrupt

    windows = {"max_length": 4, "windows": 3, "window_pool": "attention", "dropout": 0.1}
    config = settings(encoders, encoder=windows, train={"checkpoint_minutes": 1e-9})
    data = small_corpus()
    xmtc.train(data, "lightxml", config, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        xmtc.train(data, "lightxml", config, out=tmp_path / "again", progress=Stop())
    assert list((tmp_path / "again.partial").rglob("step-*"))
    xmtc.train(data, "lightxml", config, out=tmp_path / "again", resume=True)
    for file in ("network.safetensors", "model.json"):
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_one_window_has_nothing_to_join(encoders):
    one, _, _ = network_and_batch(settings(encoders, encoder={"window_pool": "attention"}))
    two, _, _ = network_and_batch(settings(encoders, encoder={"window_pool": "attention", "windows": 2}))
    assert two.state_dict().keys() - one.state_dict().keys() == {"windows.attention"}


def test_a_folder_with_older_settings_loads(encoders, tmp_path):
    """Before `encoder.pool`, folders said `mean` and `cls_layers`."""
    model = xmtc.train(small_corpus(), "lightxml", settings(encoders, encoder={"pool": "cls2+mean"}))
    older = {key: value for key, value in model.manifest.config["encoder"].items() if key != "pool"}
    config = {**model.manifest.config, "encoder": {**older, "mean": True, "cls_layers": None}}
    replace(model, manifest=replace(model.manifest, config=config)).save(tmp_path / "older")
    found, wanted = (each.rank(TEXTS, 7) for each in (xmtc.load(tmp_path / "older"), model))
    assert found.scores.tobytes() == wanted.scores.tobytes()
    assert found.labels.tobytes() == wanted.labels.tobytes()


def test_refusals(encoders):
    corpus = small_corpus()
    with pytest.raises(ConfigError, match=r"encoder\.pool = cls3: cls3 reads 3 layers, but the encoder has 2"):
        xmtc.train(corpus, "lightxml", settings(encoders, encoder={"pool": "cls3"}))
    with pytest.raises(
        ConfigError, match=r"head.label_init = documents needs a linear bottleneck: set head.sigmoid = false"
    ):
        xmtc.train(corpus, "lightxml", settings(encoders, head={"label_init": "documents", "sigmoid": True}))
    features = replace(corpus, texts=None, X=sp.csr_matrix(np.eye(24, dtype=np.float32)))
    with pytest.raises(DataError, match="lightxml reads texts, and this corpus has only features"):
        xmtc.train(features, "lightxml", settings(encoders))
    with pytest.raises(DataError, match="lightxml reads texts, and dev has only features"):
        xmtc.train(corpus, "lightxml", settings(encoders), dev=features)


RECIPES = ["eurlex-4k", "amazoncat-13k", "wiki10-31k", "wiki-500k", "amazon-670k"]
CPU_RECIPES = ["cooking-cpu", "tate-cpu", "eurlex57k-cpu", "pydocs-cpu"]


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_of_the_authors_code_differ_by_its_slips_alone(name):
    published, repo = (xmtc.api.read_settings(recipe=f"lightxml/{name}{end}")[1] for end in ("", "-repo"))
    steps = {"amazoncat-13k": 20_000, "wiki-500k": 3000, "amazon-670k": 3000}.get(name)
    train = {"epochs": published.train.epochs + 5, "dropout_steps": steps}
    assert repo.model_dump() == merge(published.model_dump(), {"reference": True, "train": train})


@pytest.mark.parametrize("recipe", RECIPES + CPU_RECIPES)
def test_recipes_are_valid(recipe):
    method, config = xmtc.api.read_settings(recipe=f"lightxml/{recipe}")
    assert method == "lightxml"
    if recipe in RECIPES:  # the published ones
        assert config.encoder.name == "bert-base-uncased"
        assert (config.train.schedule, config.train.clip, config.head.dropout) == ("constant", None, 0.5)
        assert config.head.mode == ("large" if recipe in ("wiki-500k", "amazon-670k") else "small")
    else:
        assert config.encoder.name == ("minilm" if recipe == "pydocs-cpu" else "gte-small")
