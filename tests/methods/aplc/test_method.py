"""APLC-XLNet: bands, the whole network against plain loops, parameter groups, recipes, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="aplc needs torch")

import xmtc  # noqa: E402
from tests.tiny import WIDTH, build_tiny  # noqa: E402
from xmtc.core.config import build, merge  # noqa: E402
from xmtc.core.errors import ConfigError, DataError  # noqa: E402
from xmtc.core.progress import Progress  # noqa: E402
from xmtc.features.tokens import tokenize  # noqa: E402
from xmtc.methods.aplc import method as aplc  # noqa: E402
from xmtc.neural.batches import Inputs  # noqa: E402
from xmtc.neural.encoder import load_encoder  # noqa: E402

TEXTS = ["red green", "Green blue blue red", "blue", "", "white red green blue white"]
LABELS = [[0, 3], [1], [2, 5, 6], [4], [0, 1, 2, 3]]
COUNTS = np.array([2, 2, 2, 2, 1, 1, 1])
MEMBERS = [[0, 1, 2], [3, 4], [5, 6]]  # a head and two tails


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    return {family: build_tiny(family, folder / family, TEXTS) for family in ("bert", "xlnet")}


def settings(encoders, family="bert", **over):
    plain = {
        "encoder": {"name": str(encoders[family]), "max_length": 32, "dropout": 0.0},
        "head": {"dropout": 0.0},
        "train": {"epochs": 2, "batch_size": 4},
    }
    return build(aplc.AplcConfig, plain, over)


def network_and_batch(config, lists=LABELS):
    torch.manual_seed(3)
    encoder, tokenizer = load_encoder(config.encoder)
    network = aplc.AplcNetwork(encoder, config, aplc.band_labels(COUNTS, [3, 2, 2]))
    with torch.no_grad():  # logits far enough from 0 that their signs and places mean something
        for parameter in [*network.hidden.parameters(), *network.head.parameters()]:
            if parameter.ndim > 1:
                parameter.mul_(15)
    Y = sp.csr_matrix(np.array([[float(label in found) for label in range(7)] for found in lists]))
    tokens = tokenize(TEXTS, tokenizer)
    return network.eval(), Inputs(tokens, encoder.layout).collate(range(len(TEXTS)), Y), tokens


def naive_hidden(network, tokens, cls_place):
    """tanh of the hidden layer on [CLS] of the last layer, from one unpadded text after another."""
    rows = []
    for i in range(len(tokens)):
        ids = torch.from_numpy(np.array(tokens[i], dtype=np.int64)).unsqueeze(0)
        cls = network.encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states[-1][0, cls_place].double()
        rows.append((network.hidden.weight.double() @ cls + network.hidden.bias.double()).tanh())
    return rows


def naive_probabilities(head, hidden):
    """Of clusters and labels (Eq. 2)."""
    output = (head.head.weight.double() @ hidden).sigmoid().tolist()
    clusters, labels = output[3:], dict(zip(MEMBERS[0], output[:3], strict=True))
    for cluster, tail, members in zip(clusters, head.tails, MEMBERS[1:], strict=True):
        narrow = tail.squeeze.weight.double() @ hidden
        narrow = (narrow - narrow.mean()) / (narrow.var(correction=0) + 1e-5).sqrt()
        own = (tail.labels.weight.double() @ narrow.clamp(min=0)).sigmoid().tolist()
        labels |= {label: cluster * p for label, p in zip(members, own, strict=True)}
    return clusters, labels


@pytest.mark.parametrize("loss", ["repo", "paper"])
@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_loss_and_ranking(encoders, family, loss):
    network, batch, tokens = network_and_batch(settings(encoders, family, loss=loss))
    hidden = naive_hidden(network, tokens, -1 if family == "xlnet" else 0)
    total, count = network.loss(batch)
    labels, scores = network.rank(batch, 4)
    expected, n = 0.0, 0
    for i, positives in enumerate(LABELS):
        clusters, p = naive_probabilities(network.head, hidden[i])
        terms = []
        for band, members in enumerate(MEMBERS):
            if band == 0 or set(members) & set(positives):
                terms += [-math.log(p[label] if label in positives else 1 - p[label]) for label in members]
            elif loss == "repo":
                terms.append(-math.log(1 - clusters[band - 1]))
        expected += sum(terms) if loss == "paper" else sum(terms) / len(terms)
        n += len(terms) if loss == "paper" else 1
        best = sorted(p, key=lambda label: -p[label])[:4]
        assert labels[i].tolist() == best
        assert scores[i].tolist() == pytest.approx([p[label] for label in best], rel=1e-4)
        for label in range(7):
            assert network.score(batch, label)[i].item() == pytest.approx(math.log(p[label]), rel=1e-3, abs=1e-4)
    assert total.item() == pytest.approx(expected, rel=1e-4)
    assert float(count) == n


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_padding_changes_nothing(encoders, family):
    network, batch, tokens = network_and_batch(settings(encoders, family))
    network.loss(batch)[0].backward()
    together = {name: p.grad for name, p in network.named_parameters()}
    network.zero_grad()
    Y = sp.csr_matrix(np.array([[float(label in found) for label in range(7)] for found in LABELS]))
    sum(network.loss(Inputs(tokens, network.encoder.layout).collate([i], Y))[0] for i in range(5)).backward()
    for name, parameter in network.named_parameters():
        if together[name] is not None:
            torch.testing.assert_close(parameter.grad, together[name], rtol=1e-4, atol=1e-4)


def test_mean_and_width(encoders):
    network, batch, tokens = network_and_batch(settings(encoders, encoder={"pool": "cls+mean"}, head={"width": 10}))
    assert (network.hidden.in_features, network.hidden.out_features) == (2 * WIDTH, 10)
    ids = torch.from_numpy(np.array(tokens[1], dtype=np.int64)).unsqueeze(0)
    last = network.encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states[-1][0]
    expected = network.hidden(torch.cat([last[0], last.mean(0)])).tanh()
    torch.testing.assert_close(network._hidden(batch)[1], expected, rtol=1e-4, atol=1e-5)
    assert network_and_batch(settings(encoders))[0].hidden.out_features == WIDTH


def test_a_hidden_layer_that_starts_as_the_average(encoders):
    config = settings(encoders, encoder={"pool": "cls+mean"}, head={"hidden_init": "average"})
    encoder, tokenizer = load_encoder(config.encoder)
    network = aplc.AplcNetwork(encoder, config, aplc.band_labels(COUNTS, [3, 2, 2])).eval()
    tokens = tokenize(TEXTS, tokenizer)
    hidden = network._hidden(Inputs(tokens, encoder.layout).collate(range(len(TEXTS))))
    for row, ids in enumerate(np.array(tokens[i], dtype=np.int64) for i in range(len(TEXTS))):
        last = encoder(torch.from_numpy(ids)[None], torch.ones((1, len(ids)), dtype=torch.bool)).states[-1][0]
        torch.testing.assert_close(hidden[row], ((last[0] + last.mean(0)) / 2).tanh(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ConfigError, match=rf"as wide as the encoder, {WIDTH}, and head\.width is 10: leave"):
        xmtc.train(small_corpus(), "aplc", settings(encoders, head={"hidden_init": "average", "width": 10}))


def test_dropout_stands_after_the_hidden_layer(encoders):
    network, batch, _ = network_and_batch(settings(encoders, head={"dropout": 0.5}))
    whole = network._hidden(batch)
    dropped = network.train()._hidden(batch)
    zero = dropped == 0
    assert 0.2 < zero.float().mean() < 0.8
    torch.testing.assert_close(dropped[~zero], 2 * whole[~zero])


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_each_module_has_its_rate(encoders, family):
    over = {"rate": {"encoder": 1e-5, "hidden": 1e-4, "aplc": 1e-3, "decay": 0.01}}
    config = settings(encoders, family, encoder={"freeze_words": True}, **over)
    network, _, _ = network_and_batch(config)
    group_of = {id(p): group for group in aplc.groups(network, config) for p in group.parameters}
    rates = {"encoder": 1e-5, "hidden": 1e-4, "head": 1e-3}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            spared = "bias" in name or "norm" in name.lower() or ".shape." in name
            assert group_of[id(parameter)].rate == rates[name.split(".")[0]], name
            assert group_of[id(parameter)].decay == (0 if spared else 0.01), name
        else:
            assert id(parameter) not in group_of
    assert not network.encoder.embed_words().weight.requires_grad


def test_defaults_are_the_papers():
    config = build(aplc.AplcConfig, {"train": {"precision": "fp32"}})
    assert (config.rate.encoder, config.rate.hidden, config.rate.aplc, config.rate.decay) == (5e-5, 1e-4, 2e-3, 0)
    assert (config.head.dropout, config.head.q, config.head.bare, config.head.initial_bias) == (0.1, 2, False, 0)
    train = config.train
    assert (train.schedule, train.warmup, train.clip, train.batch_size, train.epochs) == ("slanted", 0, 1.0, 12, 8)
    assert config.loss == "repo"


@pytest.mark.parametrize(
    ("cluster", "n_labels", "sizes"),
    [
        ({}, 3956, [1978, 1978]),
        ({}, 5, [2, 3]),
        ({}, 1, [1]),
        ({"proportions": (0.5, 0.5)}, 3956, [1978, 1978]),
        ({"proportions": (0.7, 0.2, 0.1)}, 100, [70, 20, 10]),
        ({"proportions": (0.33, 0.33, 0.34)}, 100, [33, 33, 34]),
        ({"proportions": (1,)}, 7, [7]),
        ({"cutoffs": (167522, 335045, 502566)}, 670_091, [167522, 167523, 167521, 167525]),
        ({"cutoffs": (1,)}, 2, [1, 1]),
        ({"bands": 6}, 13, [2, 2, 2, 2, 2, 3]),
        ({"bands": 3}, 3, [1, 1, 1]),
    ],
)
def test_bands(cluster, n_labels, sizes):
    assert aplc.band_sizes(aplc.BandConfig(**cluster), n_labels) == sizes


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ({"proportions": (0.5, 0.4)}, r"cluster\.proportions must be positive and add up to 1; got 0\.5, 0\.4"),
        ({"proportions": (1.5, -0.5)}, r"must be positive and add up to 1"),
        ({"proportions": ()}, r"must be positive and add up to 1"),
        ({"proportions": (0.96, 0.04)}, r"0\.96, 0\.04 leave tail 1 none of the 7 labels: use fewer or larger shares"),
        ({"proportions": (0.04, 0.96)}, r"leave the head none of the 7 labels"),
        ({"proportions": (0.5, 0.02, 0.48)}, r"leave tail 1 none"),
        ({"bands": 8}, r"cluster\.bands = 8, but there are only 7 labels: use fewer bands"),
        ({"cutoffs": (3, 3)}, r"cluster\.cutoffs must rise, from 1 on; got 3, 3"),
        ({"cutoffs": (0, 3)}, r"must rise, from 1 on; got 0, 3"),
        ({"cutoffs": (3, 7)}, r"must be below the number of labels, 7, to leave each tail one; got 3, 7"),
        (
            {"cutoffs": (3,), "bands": 2},
            r"cluster\.cutoffs and cluster\.bands both split the labels: set one .* to null",
        ),
    ],
)
def test_bands_that_cannot_be_cut(cluster, told):
    with pytest.raises(ConfigError, match=told) as error:
        aplc.band_sizes(aplc.BandConfig(**cluster), 7)
    assert "\n" not in str(error.value)


def test_frequent_labels_come_first_and_ties_by_number():
    bands = aplc.band_labels(np.array([1, 5, 2, 5, 2, 9]), [2, 3, 1])
    assert bands.parents.tolist() == [2, 0, 1, 1, 1, 0]


class Told(Progress):
    """Keeps what it is told."""

    def __init__(self):
        self.facts = []

    def say(self, fact):
        self.facts.append(fact)


def small_corpus(n=24):
    words = ["red", "green", "blue", "white"]
    texts = [f"{words[i % 4]} {words[i // 4 % 4]} {words[i % 4]}" for i in range(n)]
    return xmtc.Corpus.from_lists(texts, [[words[i % 4], f"{words[i % 4]}-{words[i // 4 % 4]}"] for i in range(n)])


def test_bands_follow_the_documents_trained_on_and_survive_saving(encoders, tmp_path):
    corpus = small_corpus()
    config = settings(encoders, cluster={"proportions": [0.2, 0.3, 0.5]}, loss="paper")
    model = xmtc.train(corpus, "aplc", config, dev=corpus, out=tmp_path / "model")
    band_of = model.network.head.band_of.numpy()
    assert {model.labels.ids[i] for i in np.flatnonzero(band_of == 0)} == {"red", "green", "blue", "white"}
    counts = model.labels.counts[: model.labels.n_labels]
    assert counts[band_of == 1].min() >= counts[band_of == 2].max()
    again = xmtc.load(tmp_path / "model")
    assert again.network.head.band_of.tolist() == band_of.tolist()
    assert again.network.head.pooled
    texts = list(corpus.texts)
    assert model.rank(texts, 5).labels.tobytes() == again.rank(texts, 5).labels.tobytes()


def test_resumed_run_ends_where_an_unbroken_one_does(encoders, tmp_path):
    """Also with tails that some batches do not touch, and whose moments so begin later."""
    corpus, config = small_corpus(), settings(encoders, cluster={"bands": 4}, train={"batch_size": 2})
    whole = aplc.AplcMethod().train(corpus, config, dev=corpus, partial=tmp_path / "run")
    checkpoints = sorted((tmp_path / "run").glob("step-*"))
    assert len(checkpoints) == 2  # one an epoch
    for file in checkpoints[-1].iterdir():
        file.unlink()
    checkpoints[-1].rmdir()
    again = aplc.AplcMethod().train(corpus, config, dev=corpus, partial=tmp_path / "run")
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, again.network.state_dict()[name]), name


def test_says_what_it_takes(encoders):
    told = Told()
    config = settings(encoders, cluster={"bands": 3}, head={"width": 20})
    model = xmtc.train(small_corpus(), "aplc", config, progress=told)
    (plan,) = [fact for fact in told.facts if "million parameters; training takes about" in fact]
    network = model.network
    behind = sum(p.numel() for part in (network.hidden, network.head) for p in part.parameters())
    assert aplc._head_size(config, network.encoder, [6, 7, 7]).dense == behind
    assert plan.startswith(f"{sum(p.numel() for p in network.parameters()) / 1e6:,.1f} million")


def test_refusals(encoders):
    corpus = small_corpus()
    with pytest.raises(ConfigError, match=r"cluster\.bands = 99, but there are only 20 labels"):
        xmtc.train(corpus, "aplc", settings(encoders, cluster={"bands": 99}))
    with pytest.raises(ConfigError, match=r"tail 5 would be 1 wide, because head\.width is 32 and head\.q is 2: lower"):
        xmtc.train(corpus, "aplc", settings(encoders, cluster={"bands": 6}))
    features = replace(corpus, texts=None, X=sp.csr_matrix(np.eye(24, dtype=np.float32)))
    with pytest.raises(DataError, match="aplc reads texts, and this corpus has only features"):
        xmtc.train(features, "aplc", settings(encoders))
    with pytest.raises(ConfigError, match=r"unknown setting 'head\.widht'\. Did you mean 'width'\?"):
        build(aplc.AplcConfig, {"head": {"widht": 3}})
    with pytest.raises(ConfigError, match=r"setting 'head\.q'"):
        build(aplc.AplcConfig, {"head": {"q": 0.5}})


# set → tokens read, batch, epochs, width of the hidden layer, sizes of the bands of a label set of the published size
PAPER = {
    "eurlex-4k": (512, 12, 8, 768, 3956, [1978, 1978]),
    "amazoncat-13k": (256, 48, 8, 768, 13_330, [6665, 6665]),
    "wiki10-31k": (512, 12, 6, 768, 30_938, [15_469, 15_469]),
    "wiki-500k": (128, 96, 15, 512, 501_008, [125_252] * 4),
    "amazon-670k": (128, 28, 20, 384, 670_091, [167_523, 167_523, 167_522, 167_523]),
}
REPO = {
    "eurlex-4k": PAPER["eurlex-4k"],
    "amazoncat-13k": (192, *PAPER["amazoncat-13k"][1:]),
    "wiki10-31k": PAPER["wiki10-31k"],
    "wiki-500k": (256, 64, 12, 768, 501_008, [167_000, 167_000, 167_008]),
    "amazon-670k": (128, 32, 25, 512, 670_091, [167_522, 167_523, 167_521, 167_525]),
}
PROPENSITY = {"wiki-500k": (0.5, 0.4), "amazon-670k": (0.6, 2.6)}


@pytest.mark.parametrize("kind", ["paper", "repo"])
@pytest.mark.parametrize("name", PAPER)
def test_published_recipes(name, kind):
    method, config = xmtc.api.read_settings(recipe=f"aplc/{name}-{kind}")
    assert method == "aplc"
    length, batch, epochs, width, n_labels, sizes = {"paper": PAPER, "repo": REPO}[kind][name]
    assert (config.encoder.name, config.encoder.max_length) == ("xlnet-base-cased", length)
    assert (config.train.batch_size, config.train.epochs, config.head.width) == (batch, epochs, width)
    assert aplc.band_sizes(config.cluster, n_labels) == sizes
    rates = (1e-5, 1e-4, 1e-3) if name == "wiki10-31k" else (5e-5, 1e-4, 2e-3)
    assert (config.rate.encoder, config.rate.hidden, config.rate.aplc) == rates
    assert PROPENSITY.get(name, (0.55, 1.5)) == (config.propensity.A, config.propensity.B)
    defaults = build(aplc.AplcConfig, {})
    assert (config.head.q, config.head.bare, config.head.dropout, config.loss) == (2, False, 0.1, "repo")
    # the dev.csv of the authors' folder is their test: their settings do not choose by it
    assert config.train.dev_fraction == (0 if kind == "repo" else 0.05)
    same = {"batch_size": 12, "epochs": 8, "dev_fraction": 0.05}
    assert merge(config.train.model_dump(), same) == defaults.train.model_dump()


@pytest.mark.parametrize("name", ["cooking", "tate", "eurlex57k", "pydocs"])
def test_cpu_recipes(name):
    _, config = xmtc.api.read_settings(recipe=f"aplc/{name}-cpu")
    _, other = xmtc.api.read_settings(recipe=f"lightxml/{name}-cpu")
    encoder = "gte-small" if name in ("cooking", "tate") else "minilm"
    assert (config.encoder.name, config.encoder.pool, config.encoder.freeze_words) == (encoder, "cls+mean", True)
    assert config.encoder.max_length <= other.encoder.max_length
    assert config.train.schedule == ("linear" if name == "cooking" else "slanted")
