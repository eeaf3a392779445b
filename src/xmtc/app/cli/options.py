"""Arguments and options that several commands share, so that they are spelt and explained once."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xmtc.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from xmtc.core.propensity import Propensity


class Truth(StrEnum):
    """Which labels count as true."""

    all = "all"
    known = "known"


def check_path(option: typer.CallbackParam, path: str | None) -> str | None:
    """Refuse an empty path, such as an unset variable of the shell gives; it would mean the current folder."""
    if path == "":
        raise ConfigError(f"{option.opts[0]} is empty; give it a path")
    return path


def check_parent(path: str | None) -> None:
    """Refuse a file to write whose folder does not exist, before the long work."""
    if path is not None and (Path(path).is_dir() or not Path(path).absolute().parent.is_dir()):
        raise ConfigError(f"cannot write {path}: it is a folder, or its folder does not exist; name a file")


def check_utf8(text: str, name: str) -> None:
    """Refuse an argument whose bytes are not UTF-8; Python hands them over in disguise."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{name} is not UTF-8; convert it, or pass it in a UTF-8 file with --input") from None


ModelFolder = Annotated[str, typer.Argument(metavar="MODEL", help="Folder of a trained model.")]
ModelFolders = Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders of two trained models or more.")]
Out = Annotated[
    str, typer.Option("--out", metavar="FOLDER", callback=check_path, help="Folder to write; it must not exist yet.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a model that exists at --out.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="The same seed gives the same result.")]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="FIELD",
        help="Field of the documents, such as a source or year; documents held out share no value with the others.",
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Where to run: local (this process), processes (one per core) or ray (a cluster; see docs/CLUSTERS.md).",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="Of a Ray cluster: auto, HOST:PORT or ray://HOST:PORT; without one, Ray is started on this machine.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Split = Annotated[str, typer.Option("--split", metavar="NAME", help="Split of a folder; a file is taken whole.")]
TruthOption = Annotated[
    Truth,
    typer.Option(
        "--truth",
        help="all: labels unseen in training stay in the truth; known: drop them, from suggestions too.",
    ),
]
PropensityOption = Annotated[
    str | None,
    typer.Option("--propensity", metavar="A,B", help="Propensity of PSP@k; the model's own (0.55,1.5) by default."),
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
    typer.Option("--seeds", metavar="N,N,…", help="One model per seed: MODEL-0, MODEL-1, … for --seeds 0,1,…"),
]


def parse_seeds(text: str) -> list[int]:
    """Read two different seeds or more, separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) < 2**32 for part in parts) or not 1 < len(set(parts)) == len(parts):
        raise ConfigError(f"--seeds takes two different whole numbers or more, such as 0,1,2; got {text!r}")
    return [int(part) for part in parts]


def seed_folder(model: str, seed: int) -> str:
    """Return the folder of one of several models that differ in their seed."""
    return f"{model.rstrip('/')}-{seed}"


def parse_propensity(text: str | None) -> Propensity | None:
    """Read "A,B"; None leaves the choice to the model."""
    from xmtc.core.config import build
    from xmtc.core.propensity import Propensity

    if text is None:
        return None
    numbers = parse_numbers(text, "--propensity", "0.55,1.5")
    if len(numbers) != 2:
        raise ConfigError(f"--propensity takes two numbers A,B, such as 0.55,1.5; got {text!r}")
    return build(Propensity, dict(zip("AB", numbers, strict=True)))
