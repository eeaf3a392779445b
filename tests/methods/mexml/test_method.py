"""ME-XML: the whole network against plain loops, its losses, its shortlist, its groups, and what it refuses."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="mexml needs torch")

import xmtc  # noqa: E402
from tests.tiny import LAYERS, build_tiny  # noqa: E402
from xmtc.core.config import build, merge  # noqa: E402
from xmtc.core.errors import ConfigError  # noqa: E402
from xmtc.core.partition import Partition  # noqa: E402
from xmtc.core.progress import Progress  # noqa: E402
from xmtc.features.tokens import tokenize  # noqa: E402
from xmtc.methods.mexml import method as mexml  # noqa: E402
from xmtc.neural.batches import Inputs  # noqa: E402
from xmtc.neural.encoder import load_encoder  # noqa: E402

TEXTS = ["red green", "Green blue blue red", "blue", "", "white red green blue white"]
LABELS = [[0, 3], [1], [2, 5, 6], [4], [0, 1, 2, 3]]
COUNTS = [4, 1, 2, 9, 1, 3, 5]
PARTITION = Partition(np.array([0, 0, 1, 1, 1, 2, 3], np.int32), 4)  # clusters of 2, 3, 1, 1
MEMBERS = {0: [0, 1], 1: [2, 3, 4], 2: [5], 3: [6]}
THREE = ["A-1", "A-last", "D-last"]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    return {family: build_tiny(family, folder / family, TEXTS) for family in ("bert", "xlnet")}


def settings(encoders, family="bert", **over):
    plain = {
        "encoder": {"name": str(encoders[family]), "max_length": 32, "dropout": 0.0},
        "head": {"dropout": 0.0, "hidden": 8},
        "cluster": {"size": 2},
        "tfidf": {"min_df": 1},
        "train": {"epochs": 2, "batch_size": 4},
    }
    return build(mexml.MexmlConfig, plain, over)


def network_and_batch(config, partition=None, dtype=torch.double):
    torch.manual_seed(3)
    encoder, tokenizer = load_encoder(config.encoder)
    network = mexml.MexmlNetwork(encoder, config, 7, partition).to(dtype).eval()
    with torch.no_grad():  # weights far enough apart that attention and the choice of clusters mean something
        for expert in network.attention:
            expert.queries.normal_()
            expert.label_bias.normal_()
        if partition is not None:
            network.shortlist.generator.weight.mul_(5)
        network.counts.copy_(torch.tensor(COUNTS))
    tokens = tokenize(TEXTS, tokenizer)
    return network, Inputs(tokens, encoder.layout).collate(range(5), targets()), tokens


def targets():
    return sp.csr_matrix(np.array([[float(label in found) for label in range(7)] for found in LABELS]))


def naive_logits(network, tokens, cls_place):
    """logits[text][expert][label], from one unpadded text after another."""
    texts = []
    for i in range(len(tokens)):
        ids = torch.from_numpy(np.array(tokens[i], dtype=np.int64)).unsqueeze(0)
        states = [layer[0] for layer in network.encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states]
        texts.append([naive_expert(expert, states, cls_place) for expert in network.experts])
    return texts


def naive_expert(expert, states, cls_place):
    if not hasattr(expert, "queries"):
        text = [x for _, layer in expert.parts for x in states[layer][cls_place].tolist()]
        return linear(expert.output, [math.tanh(x) for x in linear(expert.hidden, text)])
    words, logits = states[expert.layer].tolist(), []
    for query in expert.queries.tolist():
        scores = [math.exp(sum(a * b for a, b in zip(word, query, strict=True))) for word in words]
        e = [
            sum(s * word[i] for s, word in zip(scores, words, strict=True)) / sum(scores) for i in range(len(words[0]))
        ]
        logits.append(linear(expert.output, [max(0.0, x) for x in linear(expert.hidden, e)])[0])
    return [z + bias for z, bias in zip(logits, expert.label_bias.tolist(), strict=True)]


def linear(layer, vector):
    weight, bias = layer.weight.tolist(), layer.bias.tolist()
    return [sum(w * x for w, x in zip(row, vector, strict=True)) + b for row, b in zip(weight, bias, strict=True)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def cross_entropy(logit, target):
    return -math.log(sigmoid(logit)) if target else -math.log(1 - sigmoid(logit))


def individual(experts, labels, among=range(7)):
    return sum(cross_entropy(z[j], j in labels) for z in experts for j in among) / len(experts)


def diversity(experts, labels):
    """Eq. 6–9, over all ordered pairs."""
    terms = []
    for one, two in permutations(experts, 2):
        total = 0.0
        for i in labels:
            p, q = sigmoid(one[i]), sigmoid(two[i])
            kl = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
            total -= (1 - max(p, q)) / COUNTS[i] * kl
        terms.append(total)
    return sum(terms) / len(terms)


@pytest.mark.parametrize("family", ["bert", "xlnet"])
@pytest.mark.parametrize("experts", [["A-1", "D-last"], THREE, ["D-2+1"]])
def test_loss_ranking_and_score(encoders, family, experts):
    network, batch, tokens = network_and_batch(settings(encoders, family, experts=experts))
    texts = naive_logits(network, tokens, -1 if family == "xlnet" else 0)
    total, count = network.loss(batch)
    expected = sum(individual(z, y) / 7 for z, y in zip(texts, LABELS, strict=True))
    assert total.item() == pytest.approx(expected, rel=1e-8)
    assert float(count) == 5
    labels, scores = network.rank(batch, 3)
    for i, text in enumerate(texts):
        mean = [sum(sigmoid(z[j]) for z in text) / len(text) for j in range(7)]
        best = sorted(range(7), key=lambda j: -mean[j])[:3]
        assert labels[i].tolist() == best
        assert scores[i].tolist() == pytest.approx([mean[j] for j in best], rel=1e-8)
        assert network.score(batch, 2)[i].item() == pytest.approx(math.log(mean[2]), rel=1e-8)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_diversity_starts_when_told(encoders, reduction):
    config = settings(encoders, experts=THREE, loss={"diversity": 0.7, "reduction": reduction})
    network, batch, tokens = network_and_batch(config)
    texts = naive_logits(network, tokens, 0)
    scale = 7 if reduction == "mean" else 1  # of the cross-entropy; Eq. 6 is a sum
    alone = sum(individual(z, y) for z, y in zip(texts, LABELS, strict=True)) / scale
    assert network.loss(batch)[0].item() == pytest.approx(alone, rel=1e-8)
    network.diverse = True
    both = alone + 0.7 * sum(diversity(z, y) for z, y in zip(texts, LABELS, strict=True))
    assert abs(both - alone) > 1e-6
    assert network.loss(batch)[0].item() == pytest.approx(both, rel=1e-8)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shortlist", [None, 2])
def test_half_precision(encoders, half, shortlist):
    """Under autocast experts give half values; the loss is near that in single precision, and so are its gradients."""
    over = {
        "experts": THREE,
        "encoder": {"pool": "cls+mean"},
        "loss": {"diversity": 0.7},
        "head": {"shortlist": shortlist},
    }
    config = settings(encoders, **over)
    network, batch, _ = network_and_batch(config, None if shortlist is None else PARTITION, torch.float)
    network.diverse = True
    found = []
    for enabled in (True, False):
        with torch.autocast("cpu", dtype=half, enabled=enabled):
            total, _ = network.loss(batch)
        total.backward()
        gradient = network.experts[-1].output.weight.grad.clone()
        network.zero_grad()
        found.append((total, gradient))
    (total, gradient), (exact, expected) = found
    assert total.dtype == torch.float
    assert total.item() == pytest.approx(exact.item(), rel=0.02)
    assert (gradient - expected).norm() < 0.05 * expected.norm()


def test_prior_biases_are_the_log_odds_of_the_labels(encoders):
    config = settings(encoders, experts=THREE, head={"shortlist": 2, "initial_bias": "prior"})
    network, _, _ = network_and_batch(config, PARTITION)
    network.set_prior(targets(), PARTITION)
    counts = [sum(label in found for found in LABELS) for label in range(7)]
    expected = [math.log((n + 0.5) / (5 - n + 0.5)) for n in counts]
    holds = [sum(any(label in MEMBERS[c] for label in found) for found in LABELS) for c in range(4)]
    for expert in network.experts:
        biases = expert.label_bias + expert.output.bias if hasattr(expert, "queries") else expert.output.bias
        assert biases.tolist() == pytest.approx(expected, rel=1e-6)
    assert network.shortlist.generator.bias.tolist() == pytest.approx(
        [math.log((n + 0.5) / (5 - n + 0.5)) for n in holds], rel=1e-6
    )


def test_collaborative_loss_is_of_the_mean_logits(encoders):
    network, batch, tokens = network_and_batch(settings(encoders, experts=THREE, loss={"kind": "collaborative"}))
    expected = 0.0
    for text, labels in zip(naive_logits(network, tokens, 0), LABELS, strict=True):
        expected += individual([[sum(z) / 3 for z in zip(*text, strict=True)]], labels) / 7
    assert network.loss(batch)[0].item() == pytest.approx(expected, rel=1e-8)


def test_gradients_are_those_of_the_dense_form(encoders):
    config = settings(encoders, experts=THREE, loss={"diversity": 0.5})
    network, batch, _ = network_and_batch(config)
    network.diverse = True
    network.loss(batch)[0].backward()
    ours = {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}
    network.zero_grad()
    encoded = network.encoder(batch.ids, batch.mask)
    logits = []
    for expert in network.experts:
        if hasattr(expert, "queries"):
            states = encoded.states[expert.layer]
            scores = torch.einsum("btd,ld->blt", states, expert.queries)
            alpha = scores.masked_fill(~encoded.mask[:, None], -torch.inf).softmax(2)
            logits.append(expert.output(expert.hidden(alpha @ states).relu()).squeeze(2) + expert.label_bias)
        else:
            logits.append(expert(encoded))
    y = batch.dense_targets(7).double()
    total = sum(torch.nn.functional.binary_cross_entropy_with_logits(z, y, reduction="sum") for z in logits) / 3 / 7
    for one, two in permutations([z.sigmoid() for z in logits], 2):
        kl = one * (one / two).log() + (1 - one) * ((1 - one) / (1 - two)).log()
        total = total - 0.5 * (y * (1 - torch.maximum(one, two).detach()) / network.counts * kl).sum() / 6
    total.backward()
    theirs = {name: p.grad for name, p in network.named_parameters() if p.grad is not None}
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-6, atol=1e-10, msg=name)


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_padding_changes_nothing(encoders, family):
    network, batch, tokens = network_and_batch(settings(encoders, family, experts=THREE), dtype=torch.float)
    network.diverse = True
    together = network.loss(batch)[0]
    together.backward()
    gradients = [None if p.grad is None else p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    layout = network.encoder.layout
    alone = sum(network.loss(Inputs(tokens, layout).collate([i], targets()))[0] for i in range(5))
    alone.backward()
    assert together.item() == pytest.approx(alone.item(), abs=1e-5)
    for parameter, before in zip(network.parameters(), gradients, strict=True):
        if before is not None:
            torch.testing.assert_close(parameter.grad, before, rtol=1e-5, atol=1e-5)


def test_shortlist_loss_and_ranking(encoders):
    config = settings(encoders, experts=THREE, head={"shortlist": 2}, loss={"diversity": 0.7})
    network, batch, tokens = network_and_batch(config, PARTITION)
    network.diverse = True
    texts = naive_logits(network, tokens, 0)
    expected, kept = 0.0, []
    for i, labels in enumerate(LABELS):
        ids = torch.from_numpy(np.array(tokens[i], dtype=np.int64)).unsqueeze(0)
        last = network.encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states[-1][0, 0].tolist()
        clusters = linear(network.shortlist.generator, last)
        holds = [any(label in MEMBERS[c] for label in labels) for c in range(4)]
        expected += sum(cross_entropy(z, y) for z, y in zip(clusters, holds, strict=True)) / 4
        order = sorted(range(4), key=lambda c, h=holds, z=clusters: (-h[c], -z[c]))[: max(2, sum(holds))]
        candidates = [label for c in order for label in MEMBERS[c]]
        expected += individual(texts[i], labels, candidates) / len(candidates) + 0.7 * diversity(texts[i], labels)
        kept.append([j for c in sorted(range(4), key=lambda c, z=clusters: -z[c])[:2] for j in MEMBERS[c]])
    total, count = network.loss(batch)
    assert total.item() == pytest.approx(expected, rel=1e-8)
    assert float(count) == 5
    labels, scores = network.rank(batch, 7)
    for i, text in enumerate(texts):
        mean = {j: sum(sigmoid(z[j]) for z in text) / 3 for j in kept[i]}
        best = sorted(mean, key=lambda j: -mean[j])
        assert labels[i][labels[i] >= 0].tolist() == best
        assert scores[i][: len(best)].tolist() == pytest.approx([mean[j] for j in best], rel=1e-8)


def test_a_shortlist_of_all_clusters_is_the_full_form(encoders):
    over = {"experts": THREE, "loss": {"diversity": 0.7}}
    full, batch, _ = network_and_batch(settings(encoders, **over))
    some, _, _ = network_and_batch(settings(encoders, **over, head={"shortlist": 4}), PARTITION)
    some.load_state_dict({**some.state_dict(), **full.state_dict()})
    full.diverse = some.diverse = True
    recall, _ = some.shortlist.loss(some.encoder(batch.ids, batch.mask), batch)
    one, two = full.loss(batch)[0], some.loss(batch)[0] - recall.mean(1).sum()
    assert one.item() == pytest.approx(two.item(), rel=1e-9)
    one.backward()
    two.backward()
    theirs = dict(some.named_parameters())
    for name, parameter in full.named_parameters():
        if parameter.grad is not None:
            other = theirs[name].grad
            assert other.is_sparse == ("queries" in name)
            torch.testing.assert_close(parameter.grad, other.to_dense(), rtol=1e-6, atol=1e-10, msg=name)
    for found, wanted in zip(some.rank(batch, 7), full.rank(batch, 7), strict=True):
        torch.testing.assert_close(found, wanted)


def test_attention_of_a_label(encoders):
    network, batch, _ = network_and_batch(settings(encoders, experts=THREE))
    weights = network.attend(batch, 4)
    encoded = network.encoder(batch.ids, batch.mask)
    expected = sum(
        (encoded.states[expert.layer] @ expert.queries[4]).masked_fill(~batch.mask, -torch.inf).softmax(1) / 2
        for expert in network.attention
    )
    torch.testing.assert_close(weights, expected)
    alone, _, _ = network_and_batch(settings(encoders, experts=["D-last"]))
    assert alone.attend(batch, 4) is None


TOPICS, NOISE = [f"topic{i}" for i in range(12)], [f"noise{i}" for i in range(20)]


def planted(n, seed):
    """Texts of one to three topics, each its label's only word, among noise.

    Labels come and go independently, and one perceptron serves them all: whether a label fits shows only in what it
    attends to, so it must attend to its word where that stands.
    """
    random = np.random.default_rng(seed)
    texts, lists = [], []
    for i in range(n):
        labels = sorted({i % 12, *random.integers(0, 12, random.integers(0, 3)).tolist()})
        words = [TOPICS[label] for label in labels] + [NOISE[j] for j in random.integers(0, 20, 4)]
        random.shuffle(words)
        texts.append(" ".join(words))
        lists.append([TOPICS[label] for label in labels])
    return xmtc.Corpus.from_lists(texts, lists)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_labels_look_at_their_words(family, tmp_path):
    corpus, unseen = planted(360, 0), planted(48, 1)
    config = {
        "experts": ["A-first"],
        "encoder": {"name": str(build_tiny(family, tmp_path, TOPICS + NOISE)), "max_length": 16, "dropout": 0.0},
        "head": {"initial_bias": -2},
        "rate": {"encoder": 5e-3, "queries": 1e-2, "output": 5e-3},
        "train": {"epochs": 20, "batch_size": 16, "warmup": 0.1},
    }
    model = xmtc.train(corpus, "mexml", config, dev=corpus)
    assert xmtc.evaluate(model, unseen, intervals=False)["P@1"] > 70
    looked_at = [model.explain(text, TOPICS[i % 12]).words(text, 1)[0][0] for i, text in enumerate(unseen.texts)]
    # a label that looks anywhere finds its word once in five or six times
    assert np.mean([word == TOPICS[i % 12] for i, word in enumerate(looked_at)]) > 0.6


def test_experts_disagree(encoders):
    network, batch, tokens = network_and_batch(settings(encoders, experts=THREE))
    expected = 0.0
    for text, labels in zip(naive_logits(network, tokens, 0), LABELS, strict=True):
        for one, two in permutations(text, 2):
            for i in labels:
                p, q = sigmoid(one[i]), sigmoid(two[i])
                expected += (p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))) / 6
    total, count = network.disagree(batch)
    assert total.item() == pytest.approx(expected, rel=1e-8)
    assert float(count) == sum(map(len, LABELS))


@pytest.mark.parametrize("shortlist", [None, 2])
def test_three_rates(encoders, shortlist):
    rates = {"encoder": 1e-5, "queries": 1e-4, "output": 1e-3, "decay": 0.1}
    config = settings(encoders, experts=THREE, rate=rates, head={"shortlist": shortlist})
    network, _, _ = network_and_batch(config, None if shortlist is None else PARTITION)
    group_of = {id(p): group for group in mexml.groups(network, config) for p in group.parameters}
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            assert id(parameter) not in group_of
            continue
        group = group_of[id(parameter)]
        kind = "encoder" if name.startswith("encoder") else "queries" if "queries" in name else "output"
        assert group.rate == rates[kind], name
        assert group.decay == (0 if "bias" in name or "norm" in name.lower() else 0.1), name
        assert group.row_sparse == (kind == "queries" and shortlist is not None)


def test_defaults_are_the_papers():
    config = build(mexml.MexmlConfig, {"train": {"epochs": 8}})
    assert config.experts == ("A-first", "D-last")
    assert (config.rate.encoder, config.rate.queries, config.rate.output, config.rate.decay) == (5e-5, 2e-4, 2e-3, 0)
    assert (config.train.schedule, config.train.clip, config.train.warmup) == ("linear", 1.0, 0)
    assert (config.diversity, config.diversity_from) == (0.01, 4)
    assert (config.head.dropout, config.head.hidden, config.head.initial_bias) == (0.1, 256, 0)
    assert build(mexml.MexmlConfig, {"experts": ["D-12"]}).diversity == 0
    assert build(mexml.MexmlConfig, {"train": {"epochs": 1}}).diversity_from == 0


class Told(Progress):
    def __init__(self):
        self.facts = []

    def say(self, fact):
        self.facts.append(fact)


def small_corpus(n=24):
    words = ["red", "green", "blue", "white"]
    texts = [f"{words[i % 4]} {words[i // 4 % 4]}" for i in range(n)]
    return xmtc.Corpus.from_lists(texts, [[words[i % 4], f"{words[i % 4]}-{words[i // 4 % 4]}"] for i in range(n)])


def test_diversity_begins_in_its_epoch(encoders, monkeypatch):
    seen = []
    plain = mexml.MexmlNetwork.loss

    def loss(self, batch):
        seen.append(self.diverse)
        return plain(self, batch)

    monkeypatch.setattr(mexml.MexmlNetwork, "loss", loss)
    config = settings(encoders, train={"epochs": 3, "batch_size": 24}, loss={"diversity_from": 2})
    xmtc.train(small_corpus(), "mexml", config, dev=small_corpus())
    assert seen == [False, False, True]


def test_counts_are_those_of_the_documents_trained_on(encoders):
    model = xmtc.train(small_corpus(), "mexml", settings(encoders), dev=small_corpus())
    counts = dict(zip(model.labels.ids, model.network.counts.tolist(), strict=False))
    assert (counts["red"], counts["red-red"], counts["red-white"]) == (6, 2, 1)


@pytest.mark.parametrize("shortlist", [None, 3])
def test_trains_saves_and_reloads(encoders, shortlist, tmp_path):
    over = {"experts": THREE, "head": {"shortlist": shortlist, "initial_bias": -2, "queries": "text"}}
    rates = {"encoder": 5e-3, "queries": 2e-2, "output": 2e-2}
    config = settings(encoders, **merge(over, {"rate": rates, "train": {"epochs": 25}}))
    corpus, told = small_corpus(), Told()
    model = xmtc.train(corpus, "mexml", config, dev=corpus, out=tmp_path / "model", progress=told)
    assert any("million parameters; training takes about" in fact for fact in told.facts)
    assert not any("start at random" in fact for fact in told.facts)
    assert xmtc.evaluate(model, corpus, intervals=False)["R@5"] > 90
    again = xmtc.load(tmp_path / "model")
    texts = list(corpus.texts)
    assert model.rank(texts, 5).scores.tobytes() == again.rank(texts, 5).scores.tobytes()
    np.testing.assert_array_equal(model.rank(texts, 5).labels, again.rank(texts, 5).labels)
    assert again.explain("red blue", "red") == model.explain("red blue", "red")
    weights = [weight for _, _, weight in again.explain("red blue", "red").spans]
    assert len(weights) == 2
    assert all(0 < weight < 1 for weight in weights)


def test_labels_without_names_start_at_random_and_it_says_so(encoders):
    numbered = xmtc.Corpus.from_lists(["red green", "blue white"] * 4, [["12"], ["7"]] * 4)
    told = Told()
    xmtc.train(numbered, "mexml", settings(encoders, head={"queries": "text"}), progress=told)
    assert "2 of 2 labels have no name: their queries start at random" in told.facts


def test_explains_by_gradients_without_attention(encoders):
    model = xmtc.train(small_corpus(), "mexml", settings(encoders, experts=["D-last+first"]))
    spans = model.explain("red blue", "red").spans
    assert [span[:2] for span in spans] == [(0, 3), (4, 8)]


def test_refusals(encoders):
    corpus = small_corpus()
    for over, message in (
        ({"experts": []}, "experts is empty; name one or more, such as A-first and D-last"),
        (
            {"experts": ["C-1"]},
            r"experts: 'C-1' is not an expert; write A- \(attention to words\) or D- \(document\) and a layer",
        ),
        ({"experts": ["A-1+2"]}, r"experts: 'A-1\+2': attention reads one layer"),
        ({"experts": ["A-3"]}, f"experts: 'A-3' reads layer 3, but the encoder has {LAYERS}; its last is A-last"),
        (
            {"experts": ["D-1"], "loss": {"diversity": 0.01}},
            r"loss\.diversity = 0\.01, but there is only one expert: set it to 0",
        ),
        (
            {"encoder": {"pool": "mean2"}},
            r"encoder\.pool = mean2, but document experts read one layer each, which `experts` names: set cls, mean or",
        ),
        ({"loss": {"diversity_from": 2}}, r"loss\.diversity_from = 2, but the last of 2 epochs is number 1"),
    ):
        with pytest.raises(ConfigError, match=message) as caught:
            xmtc.train(corpus, "mexml", settings(encoders, **over))
        assert "\n" not in str(caught.value)


PUBLISHED = {  # Tables 5 and 6: rates of queries, output, encoder; batch, epochs, length
    "eurlex-4k": (2e-4, 2e-3, 5e-5, 8, 8, 512),
    "wiki10-31k": (1e-4, 1e-3, 1e-5, 5, 5, 512),
    "amazoncat-13k": (5e-4, 2e-3, 5e-5, 12, 4, 192),
}


@pytest.mark.parametrize("recipe", [*PUBLISHED, "cooking-cpu", "tate-cpu", "eurlex57k-cpu", "pydocs-cpu"])
def test_recipes_are_valid(recipe):
    method, config = xmtc.api.read_settings(recipe=f"mexml/{recipe}")
    assert method == "mexml"
    if recipe in PUBLISHED:
        rate, train = config.rate, config.train
        found = (rate.queries, rate.output, rate.encoder, train.batch_size, train.epochs, config.encoder.max_length)
        assert found == PUBLISHED[recipe]
        assert config.encoder.name == "roberta-base"
        assert (config.experts, config.diversity, rate.decay) == (("A-1", "D-12"), 0.01, 0)
    else:
        assert config.encoder.name == ("gte-small" if recipe in ("cooking-cpu", "tate-cpu") else "minilm")
