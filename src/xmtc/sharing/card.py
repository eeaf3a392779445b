"""Write the model card: README.md of a model on the hub. Does not use the network.

The input is `model.json` and, if given, the JSON of `xmtc evaluate --json`. The card shows only the last part of data
paths.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from pydantic import BaseModel, ValidationError

from xmtc.core.errors import DataError
from xmtc.core.metrics import BINS

_KS = (1, 3, 5)
_BY_DOCUMENT = ("P", "R", "nDCG", "PSP")
_BY_LABEL = ("macro-P@5", "macro-R@5", "macro-F@5", "coverage@5")
_LICENCES = "apache-2.0, mit, cc-by-4.0, cc0-1.0, other"


class Evaluation(BaseModel):
    """The fields of `xmtc evaluate --json` that the card shows; others are ignored."""

    metrics: dict[str, float]  # percent
    intervals: dict[str, tuple[float, float]] = {}
    n: int
    labels_in_bin: dict[str, int] = {}
    truth: str = "all"
    data: str = ""


def read_evaluation(file: str | Path) -> Evaluation:
    """Read the scores that `xmtc evaluate --json` wrote to a file."""
    try:
        return Evaluation.model_validate_json(Path(file).read_bytes())
    except OSError as error:
        raise DataError(f"cannot read the scores in {file}: {error.strerror or error}") from None
    except ValidationError:
        raise DataError(
            f"{file} does not hold scores; write it with: xmtc evaluate MODEL DATA --json > scores.json"
        ) from None


def write_card(name: str, manifest: Mapping[str, Any], scores: Evaluation | None, licence: str | None) -> str:
    """Return the card of the model `owner/name` as Markdown; manifest: the content of its `model.json`."""
    front = [
        *([f"license: {licence}"] if licence else []),
        "library_name: xmtc",
        "pipeline_tag: text-classification",
        "tags:",
        *(f"- {tag}" for tag in ("xmtc", "extreme-multi-label-classification", f"xmtc-{manifest['method']}")),
    ]
    parts = [
        "---",
        *front,
        "---",
        "",
        f"# {name}",
        "",
        f"Ranks the most relevant of {manifest['n_labels']:,} labels for a text, by the method `{manifest['method']}` "
        "of xmtc, a library for extreme multi-label text classification.",
        "",
        *_facts(manifest),
        *(_scores(scores) if scores else ["", "## Scores", "", "None were given when the model was pushed."]),
        *_use(name),
    ]
    return "\n".join(parts) + "\n"


def check_licence(licence: str | None) -> None:
    """Raise if a licence does not have the form of the hub's identifiers."""
    if licence is not None and not (licence.isascii() and licence.replace("-", "").replace(".", "").isalnum()):
        raise DataError(f"{licence!r} is not a licence of the hub; write it as the hub does, such as {_LICENCES}")


def _facts(manifest: Mapping[str, Any]) -> list[str]:
    size = sum(file["size"] for file in manifest["files"].values())
    calibrated = "calibration.json" in manifest["files"]
    rows = [
        ("Method", f"`{manifest['method']}`"),
        ("Labels", f"{manifest['n_labels']:,}"),
        ("Training documents", f"{manifest['n_documents']:,}"),
        ("Training data", f"sha256 `{manifest['data'][:16]}…`"),
        ("Seed", str(manifest["seed"])),
        ("Probabilities", "yes, calibrated" if calibrated else "no; scores only"),
        ("Size", f"{size / 1e6:,.1f} MB in {len(manifest['files'])} files; no pickle"),
    ]
    settings = json.dumps(manifest["config"], indent=1, ensure_ascii=False, sort_keys=True)
    return [
        "## Model",
        "",
        "| | |",
        "| --- | --- |",
        *(f"| {key} | {value} |" for key, value in rows),
        "",
        "<details><summary>Settings</summary>",
        "",
        *(f"    {line}" for line in settings.splitlines()),
        "",
        "</details>",
    ]


def _scores(scores: Evaluation) -> list[str]:
    named = f" of `{_plain(PurePath(scores.data).name)}`" if scores.data else ""
    lines = [
        "",
        "## Scores",
        "",
        f"On {scores.n:,} documents{named}, in percent, with 95 % intervals. Truth: {_plain(scores.truth)} labels.",
    ]
    columns = [f"@{k}" for k in _KS]
    lines += _table(["", *columns], [(m, [f"{m}@{k}" for k in _KS]) for m in _BY_DOCUMENT], scores)
    if any(f"{metric}/{bin_}" in scores.metrics for metric in _BY_LABEL for bin_ in BINS):
        titles = [bin_.title for bin_ in BINS.values()]
        lines += ["", "By the number of a label's training documents, averaged over labels:"]
        lines += _table(["", *titles], [(m, [f"{m}/{bin_}" for bin_ in BINS]) for m in _BY_LABEL], scores)
        if scores.labels_in_bin:
            lines.append(f"| labels | {' | '.join(f'{scores.labels_in_bin.get(bin_, 0):,}' for bin_ in BINS)} |")
    return lines


def _table(head: list[str], rows: list[tuple[str, list[str]]], scores: Evaluation) -> list[str]:
    known = [(title, keys) for title, keys in rows if any(key in scores.metrics for key in keys)]
    lines = [f"| {title} | {' | '.join(_cell(scores, key) for key in keys)} |" for title, keys in known]
    return ["", f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |", *lines]


def _cell(scores: Evaluation, key: str) -> str:
    if key not in scores.metrics:
        return ""
    interval = scores.intervals.get(key)
    return f"{scores.metrics[key]:.2f}" + (f" ({interval[0]:.2f} to {interval[1]:.2f})" if interval else "")


def _use(name: str) -> list[str]:
    return [
        "",
        "## Use",
        "",
        "    pip install 'xmtc[hub]'",
        f'    xmtc predict hf:{name} "a text to tag"',
        "",
        "    import xmtc",
        f'    model = xmtc.load("hf:{name}")',
        '    ranking = model.rank(["a text to tag"], k=5)',
        "    print(ranking.named(model.labels)[0])",
        "",
        "The labels are those of the training data, and so are their gaps and biases. Check suggestions before you "
        "rely on them.",
    ]


def _plain(text: str) -> str:
    """Return an untrusted name without characters that Markdown or HTML would interpret."""
    return "".join(c if c.isalnum() or c in " ._-" else "_" for c in text)[:100]
