"""Settings: layers, assignments, and one line for each mistake."""

from __future__ import annotations

import pytest
from pydantic import Field, model_validator

from xmtc.core.config import Settings, build, merge, parse_assignments, read_toml
from xmtc.core.errors import ConfigError


class Train(Settings):
    epochs: int = Field(3, ge=1)
    rate: float = 0.1


class Extra(Settings):
    depth: int = 1
    names: list[str] = Field(default_factory=list)


class Config(Settings):
    train: Train = Train()
    extra: Extra | None = None
    name: str = "minilm"

    @model_validator(mode="after")
    def _fits(self) -> Config:
        if self.name == "none" and self.train.epochs > 5:
            raise ValueError("more than 5 epochs need a name")
        return self


def test_later_layers_win_and_defaults_remain():
    config = build(Config, {"train": {"epochs": 5, "rate": 0.2}}, {"train": {"epochs": 7}}, {"name": "big"})
    assert config == Config(train=Train(epochs=7, rate=0.2), name="big")
    assert build(Config) == Config()


def test_settings_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        Config().name = "other"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train": {"epoch": 3}}, r"unknown setting 'train.epoch'. Did you mean 'epochs'\?"),
        ({"extra": {"dept": 3}}, r"unknown setting 'extra.dept'. Did you mean 'depth'\?"),
        ({"epochs": 1}, r"unknown setting 'epochs'. Did you mean 'train.epochs'\?"),
        ({"zzz": 1}, "unknown setting 'zzz'. Known here: extra, name, train."),
        ({"train": {"epochs": 0}}, "setting 'train.epochs': .*greater than or equal to 1; got 0"),
        ({"train": {"epochs": "many"}}, "setting 'train.epochs': .*; got 'many'"),
        ({"train": 3}, "setting 'train': .*; got 3"),
        ({"extra": {"names": "a"}}, r"setting 'extra.names': .*list \(a list is JSON, .*'\[\"a\", \"b\"\]'\); got 'a'"),
        ({"train": {"epochs": 0, "rate": "x"}}, r"1 more mistakes"),
        ({"name": "none", "train": {"epochs": 9}}, "^more than 5 epochs need a name$"),
    ],
)
def test_mistakes_are_one_line(given, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build(Config, given)
    assert "\n" not in str(caught.value)


def test_merge_leaves_its_arguments_alone():
    below, above = {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}, "d": {"e": 5}}
    assert merge(below, above) == {"a": {"b": 1, "c": 4}, "d": {"e": 5}}
    assert below == {"a": {"b": 1, "c": 2}, "d": 3}
    assert above == {"a": {"c": 4}, "d": {"e": 5}}


def test_assignments():
    given = ["train.epochs=3", "name=mini=lm", "flag=true", "list=[1, 2]", "train.rate=1e-3", "empty=", 'text="7"']
    assert parse_assignments(given) == {
        "train": {"epochs": 3, "rate": 1e-3},
        "name": "mini=lm",
        "flag": True,
        "list": [1, 2],
        "empty": "",
        "text": "7",
    }
    assert parse_assignments([]) == {}
    assert parse_assignments(["a=1", "a=2"]) == {"a": 2}


@pytest.mark.parametrize("bad", ["epochs", "=3", " =3", ""])
def test_bad_assignments(bad):
    with pytest.raises(ConfigError, match="path=value"):
        parse_assignments([bad])


def test_read_toml(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text('name = "x"\n[train]\nepochs = 4\n', encoding="utf-8")
    assert build(Config, read_toml(path)) == Config(name="x", train=Train(epochs=4))
    path.write_text("name = \n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"recipe.toml is not valid TOML: .*line 1"):
        read_toml(path)
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_toml(path)
    with pytest.raises(ConfigError, match=r"cannot read .*missing.toml: No such file"):
        read_toml(tmp_path / "missing.toml")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_numbers_are_finite(value):
    class Rate(Settings):
        rate: float = 0.1
        shares: tuple[float, ...] = ()

    with pytest.raises(ConfigError, match="rate"):
        build(Rate, parse_assignments([f"rate={value}"]))
    with pytest.raises(ConfigError, match="shares"):
        build(Rate, {"shares": (0.5, float(value))})
