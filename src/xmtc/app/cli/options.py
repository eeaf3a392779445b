"""Arguments and options that several commands share."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xmtc.app.cli.panels import advanced_option, data_option, method_option, output_option
from xmtc.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from xmtc.core.propensity import Propensity


_SEPARATORS = f"/{os.sep}"  # Windows accepts both


class Truth(StrEnum):
    """Which labels count as true."""

    all = "all"
    known = "known"


def check_path(option: typer.CallbackParam, path: str | None) -> str | None:
    """Raise for an empty path: an unset shell variable would otherwise mean the current folder."""
    if path == "":
        raise ConfigError(f"{option.opts[0]} is empty; give it a path")
    return path


def check_parent(path: str | None) -> None:
    """Raise early if an output file cannot be written because its folder does not exist."""
    if path is not None and (Path(path).is_dir() or not Path(path).absolute().parent.is_dir()):
        raise ConfigError(f"cannot write {path}: it is a folder, or its folder does not exist; name a file")


def check_utf8(text: str, name: str) -> None:
    """Raise if an argument is not UTF-8; Python passes such bytes as surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{name} is not UTF-8; convert it, or pass it in a UTF-8 file with --input") from None


ModelFolder = Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a trained model.")]
ModelFolders = Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders of two or more trained models.")]
Out = Annotated[
    str, output_option("--out", metavar="FOLDER", callback=check_path, help="Folder to create. It must not exist yet.")
]
Overwrite = Annotated[bool, output_option("--overwrite", help="Replace an existing model at --out.")]
Seed = Annotated[
    int, advanced_option("--seed", min=0, max=2**32 - 1, help="Random seed. The same seed gives the same result.")
]
Group = Annotated[
    str | None,
    data_option(
        "--group",
        metavar="FIELD",
        help="Field of the documents, such as source or year. Held-out documents never share a value of it with the "
        "other documents.",
    ),
]
EngineOption = Annotated[
    str | None,
    advanced_option(
        "--engine",
        metavar="ENGINE",
        help="Where to run: local (this process), processes (one per core) or ray (a cluster, see docs/SCALING.md).",
    ),
]
Address = Annotated[
    str | None,
    advanced_option(
        "--address",
        metavar="ADDRESS",
        help="Address of a Ray cluster: auto, HOST:PORT or ray://HOST:PORT. Without it, Ray starts on this machine.",
    ),
]
Json = Annotated[bool, output_option("--json", help="Print JSON instead of text.")]
Split = Annotated[
    str, data_option("--split", metavar="NAME", help="Split of a data folder. Ignored for a single file.")
]
TruthOption = Annotated[
    Truth,
    method_option(
        "--truth",
        help="all counts every true label; known ignores labels not in the training data, also in rankings.",
    ),
]
PropensityOption = Annotated[
    str | None,
    method_option(
        "--propensity",
        metavar="A,B",
        help="Propensity constants of PSP@k. Default: those of the model, usually 0.55,1.5.",
    ),
]


def parse_numbers(text: str, option: str, example: str) -> list[float]:
    """Read numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"{option} takes numbers separated by commas, such as {example}; got {text!r}") from None


def parse_duration(text: str, option: str) -> float:
    """Read a duration such as 90s, 30m, 2h or 1h30m, or a number of seconds; return seconds."""
    number = r"(\d+(?:\.\d+)?)"
    found = re.fullmatch(f"(?:{number}h)?(?:{number}m)?(?:{number}s?)?", text.strip().lower())
    parts = [float(part or 0) for part in found.groups()] if found else []
    seconds = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
    if seconds <= 0:
        raise ConfigError(f"{option} takes a duration such as 90s, 30m, 2h or 1h30m; got {text!r}")
    return seconds


def parse_latency(text: str, option: str) -> float:
    """Read a time per document such as 2ms, 2 ms or 0.5s; return seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s)", text.strip().lower())
    seconds = float(found[1]) * (1e-3 if found[2] == "ms" else 1) if found else 0.0
    if seconds <= 0:
        raise ConfigError(f"{option} takes a time per document such as 2ms or 0.5s; got {text!r}")
    return seconds


Seeds = Annotated[
    str | None,
    advanced_option("--seeds", metavar="N,N,…", help="Use one model per seed: --seeds 0,1 means MODEL-0 and MODEL-1."),
]


def parse_seeds(text: str) -> list[int]:
    """Read two or more different seeds, separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) < 2**32 for part in parts) or not 1 < len(set(parts)) == len(parts):
        raise ConfigError(f"--seeds takes two or more different whole numbers, such as 0,1,2; got {text!r}")
    return [int(part) for part in parts]


def seed_folder(model: str, seed: int) -> str:
    """Return the folder of the model with this seed, such as model-0."""
    return f"{model.rstrip(_SEPARATORS)}-{seed}"


def parse_propensity(text: str | None) -> Propensity | None:
    """Read "A,B"; return None for None, which means the model's own values."""
    from xmtc.core.config import build
    from xmtc.core.propensity import Propensity

    if text is None:
        return None
    numbers = parse_numbers(text, "--propensity", "0.55,1.5")
    if len(numbers) != 2:
        raise ConfigError(f"--propensity takes two numbers A,B, such as 0.55,1.5; got {text!r}")
    return build(Propensity, dict(zip("AB", numbers, strict=True)))
