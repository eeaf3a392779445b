"""train.dev_fraction = 0: all documents are trained on, dev is not used, and the last epoch is kept."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="neural methods need torch")

import xmtc
from tests.methods.test_contract import METHODS, corpus
from tests.tiny import build_tiny
from xmtc import api
from xmtc.core.config import merge
from xmtc.core.errors import ConfigError
from xmtc.core.progress import Progress

pytestmark = pytest.mark.usefixtures("one_thread")
SOME = ["lightxml (bert, small)", "aplc (bert)", "mexml (bert)", "xbert (xttention)", "treader (words)"]


class Told(Progress):
    def __init__(self):
        self.facts = []

    def say(self, fact):
        self.facts.append(fact)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(build_tiny("bert", tmp_path_factory.mktemp("encoder"), corpus().texts))


def briefly(variant, encoder):
    train = {"epochs": 2, "dev_fraction": 0}
    return variant.split(" ")[0], merge(METHODS[variant], {"encoder": {"name": encoder}, "train": train})


@pytest.mark.parametrize("variant", SOME)
def test_nothing_is_held_out_and_dev_is_not_read(variant, encoder, tmp_path):
    method, config = briefly(variant, encoder)
    _, settings = api.read_settings(method, config)
    assert not api.uses_dev(method, settings)
    told, texts = Told(), list(corpus().texts)
    model = xmtc.train(corpus(), method, config, progress=told, out=tmp_path / "model")
    assert not any("held out" in fact for fact in told.facts)
    details = model.manifest.details
    assert [entry.dev for entry in details.curve] == [None, None]
    other = xmtc.train(corpus(), method, config, dev=corpus(n=8, seed=3))
    assert other.manifest.details.dev is None
    expected = model.rank(texts, 5)
    for found in (other, xmtc.load(tmp_path / "model")):
        assert found.rank(texts, 5).scores.tobytes() == expected.scores.tobytes()
    assert xmtc.train(corpus(), method, config, out=tmp_path / "model", resume=True).manifest == model.manifest


def test_such_a_model_is_calibrated_by_a_copy(encoder):
    method, config = briefly("aplc (bert)", encoder)
    model = xmtc.train(corpus(), method, config)
    told = Told()
    calibrated = xmtc.calibrate(model, corpus(), progress=told)
    assert any("a copy of the model is trained without them" in fact for fact in told.facts)
    assert "copy trained without them" in calibrated.calibration.source


def test_patience_needs_dev(encoder):
    method, config = briefly("aplc (bert)", encoder)
    with pytest.raises(ConfigError, match=r"train\.patience = 2, but with train\.dev_fraction = 0 there is no dev"):
        api.read_settings(method, merge(config, {"train": {"patience": 2}}))
