"""Predict for many files on any engine; each output file has the name of its input file.

One task tags one file and writes it to a temporary file, which is renamed when complete. So an existing output file is
finished, and a repeated run tags only the missing files.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import time
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from xmtc.app.cli.prediction_output import ENDINGS, check_output
from xmtc.app.cli.tagging import Request, Tagger
from xmtc.core.engine import Engine
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.progress import Progress

_RUN = ".xmtc-predict.json"  # in the output folder: the options of the run


class Shard(NamedTuple):
    """A file to tag, and the file to write."""

    source: str
    output: str


def is_pattern(path: str, output: str | None) -> bool:
    """Return whether a path means many files: a pattern such as 'shards/*.jsonl.gz', or a folder with an output."""
    return (Path(path).is_dir() and output is not None) or (not Path(path).exists() and glob.has_magic(path))


def find_shards(pattern: str, output: str) -> list[Shard]:
    """Return the files of a pattern, folder or path, each with its path in the output folder."""
    if Path(pattern).is_dir():
        root, found = Path(pattern), [path for path in Path(pattern).rglob("*") if _is_visible(path, Path(pattern))]
    elif Path(pattern).is_file():
        root, found = Path(pattern).parent, [Path(pattern)]
    else:
        found = [Path(path) for path in glob.glob(pattern, recursive=True) if Path(path).is_file()]
        fixed = Path(pattern).parent.parts
        root = Path(*fixed[: next((i for i, part in enumerate(fixed) if glob.has_magic(part)), len(fixed))])
    if not found:
        raise DataError(f"no file matches {pattern!r}; quote the pattern, and check the folder")
    target = Path(output)
    if target.resolve() == root.resolve() or (target.suffix in ENDINGS or target.is_file()):
        raise ConfigError(f"--output {output} must be a folder of its own, for files of the same names as the input")
    return [Shard(str(path.absolute()), str(target.absolute() / path.relative_to(root))) for path in sorted(found)]


def tag_shards(request: Request, shards: Sequence[Shard], output: str, engine: Engine, progress: Progress) -> None:
    """Tag the unfinished files, and report the result."""
    folder = Path(output)
    for shard in shards:
        check_output(shard.output, request.json, request.wide)
    _begin(folder, request, shards)
    left = [shard for shard in shards if not Path(shard.output).exists()]
    if len(left) < len(shards):
        progress.say(f"{len(shards) - len(left):,} of {len(shards):,} files are finished already")
    if not left:
        return
    engine.check(folder.absolute())
    request = request._replace(model=str(Path(request.model).absolute()))
    progress.say(f"{len(left):,} files on {engine.outline}")
    progress.stage("ranking")
    started = time.monotonic()
    done = 0
    # the largest first, so that no worker is still busy with one at the end
    tasks = sorted(left, key=lambda shard: (-os.path.getsize(shard.source), shard))
    told: set[str] = set()
    wrong: list[str] = []
    for _, (n_documents, raised, mistake) in engine.run(_tag_shard, [(request, shard) for shard in tasks]):
        done += n_documents
        progress.step(done, 0)
        if mistake is not None:
            wrong.append(mistake)
        for warning in raised:
            if warning.category.__name__ not in told:  # one of each kind: a thousand files may raise a thousand
                told.add(warning.category.__name__)
                warnings.warn(warning.text, warning.category, stacklevel=2)
    _remove_partial(folder)  # of workers that died with their node
    seconds = time.monotonic() - started
    progress.say(
        f"{done:,} documents of {len(left) - len(wrong):,} files in {seconds:,.1f} s: "
        f"{done / max(seconds, 1e-9):,.0f} documents/s"
    )
    if wrong:
        more = f" ({len(wrong) - 1:,} more files failed; the others are tagged)" if len(wrong) > 1 else ""
        raise DataError(f"{min(wrong)}{more}")


class _Raised(NamedTuple):
    """A warning in a worker, which the main process must show."""

    category: type[Warning]
    text: str


def _tag_shard(task: tuple[Request, Shard]) -> tuple[int, list[_Raised], str | None]:
    """Tag one file, in any process; return the number of documents, our warnings, and the error in the file, if any."""
    request, shard = task
    Path(shard.output).parent.mkdir(parents=True, exist_ok=True)
    n_documents, mistake = 0, None
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", UserWarning)
        tagger = _open(request)
        try:
            n_documents = tagger.tag(shard.source, shard.output, lambda done: None)
        except DataError as error:  # one invalid file must not stop the others
            mistake = str(error)
    ours = [
        _Raised(each.category, str(each.message)) for each in raised if each.category.__module__.startswith("xmtc.")
    ]
    return n_documents, ours, mistake


@lru_cache(maxsize=1)
def _open(request: Request) -> Tagger:
    """Open the model once per worker; memory-mapped arrays are in memory once per machine."""
    return request.open()


def _begin(folder: Path, request: Request, shards: Sequence[Shard]) -> None:
    """Create the output folder; raise if it has predictions of another model or other options, or unrelated files."""
    mark = folder / _RUN
    manifest = Path(request.model) / "model.json"
    asked = {
        **request._replace(model="", mapping=None)._asdict(),
        "mapping": None if request.mapping is None else request.mapping.model_dump(mode="json"),
        "model": hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else "",
    }
    text = json.dumps(asked, sort_keys=True)
    try:
        if mark.is_file():
            if mark.read_text(encoding="utf-8") != text:
                raise ConfigError(
                    f"{folder} contains predictions of another model or with other options; choose another folder"
                )
            _remove_partial(folder)  # of a killed run
            return
        taken = next((shard.output for shard in shards if Path(shard.output).exists()), None)
        if taken is not None:
            raise ConfigError(f"{taken} exists but is not from an earlier run of this command; choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{_RUN}.writing-{os.getpid()}"
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(mark)
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror or error}") from None


def _remove_partial(folder: Path) -> None:
    """Remove unfinished files."""
    for partial in folder.rglob(".*.writing-*"):
        partial.unlink(missing_ok=True)


def _is_visible(path: Path, root: Path) -> bool:
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts)
