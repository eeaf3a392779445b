"""Send model folders to the Hugging Face hub and fetch them from there, through huggingface_hub.

A model's `model.json` lists its files with their sha256: these files are sent and fetched, and no others. What is
fetched is written beside its place, checked like any model folder, and then renamed: no half or altered model is left.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from xmtc.core.cache import cache_folder
from xmtc.core.errors import ConfigError, ModelError, Notice
from xmtc.core.storage import MANIFEST, FolderReader, check_target, write_folder
from xmtc.sharing.card import check_licence, read_evaluation, write_card

PREFIX = "hf:"
_CARD = "README.md"
_NOT_OURS = (_CARD, ".gitattributes")  # files of a repository that belong to no model
_LARGEST_MANIFEST = 64 * 1024 * 1024  # bytes
_PATIENCE = 10.0  # seconds that the hub may take to answer a question


class _Name(NamedTuple):
    """Which model: "hf:owner/name", or "hf:owner/name@revision"."""

    source: str  # as the user wrote it
    repository: str
    revision: str


def push_model(
    folder: str | Path,
    name: str,
    *,
    scores: str | Path | None = None,
    licence: str | None = None,
    private: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> str:
    """Send a model folder and its card to the hub as "hf:owner/name", and return the address of its page.

    scores: a file with the JSON of `xmtc evaluate --json`, for the card. licence: as the hub writes it, such as
    "apache-2.0". private: applies when the repository is new. say: is called with the size before anything is sent.
    """
    target = _parse(name)
    check_licence(licence)
    evaluation = None if scores is None else read_evaluation(scores)
    files = FolderReader(folder).files  # refuses a cut or altered folder before it is sent
    manifest = json.loads((Path(folder) / MANIFEST).read_text(encoding="utf-8"))
    hub = _client()
    if hub.get_token() is None:
        raise ConfigError("no token of the hub; log in with `hf auth login`, or set HF_TOKEN to one that may write")
    size = sum(facts["size"] for facts in manifest["files"].values())
    say(f"{folder}: {len(files) + 2} files, {size / 1e6:,.1f} MB, to {target.source}")
    card = write_card(target.repository, manifest, evaluation, licence)
    api = hub.HfApi()
    try:
        api.create_repo(target.repository, private=private or None, exist_ok=True)
        there = set(api.list_repo_files(target.repository, revision=target.revision))
        add = [hub.CommitOperationAdd(file, str(Path(folder) / PurePosixPath(file))) for file in [*files, MANIFEST]]
        add.append(hub.CommitOperationAdd(_CARD, card.encode()))
        stale = sorted(there - {MANIFEST, *files, *_NOT_OURS})  # of the model that was there before
        commit = api.create_commit(
            target.repository,
            [*add, *(hub.CommitOperationDelete(file) for file in stale)],
            commit_message=f"Push a {manifest['method']} model of {manifest['n_labels']:,} labels",
            revision=target.revision,
        )
    except Exception as error:  # the hub's client raises many kinds
        raise _refusal(target, "did not take it", error) from None
    return str(commit.repo_url)


def pull_model(
    name: str, out: str | Path, *, overwrite: bool = False, say: Callable[[str], None] = lambda line: None
) -> Path:
    """Fetch the model "hf:owner/name" or "hf:owner/name@revision" into a folder.

    say: is called with its size before it is fetched.
    """
    source = _parse(name)
    check_target(out, overwrite=overwrite)
    _download(source, _commit_of(source), Path(out), overwrite, say)
    return Path(out)


def fetch_model(name: str) -> Path:
    """Return a folder of the cache with the model "hf:owner/name", fetched unless it was before.

    Where the hub does not answer, the model that was fetched last serves.
    """
    source = _parse(name)
    models = cache_folder() / "models" / source.repository.replace("/", "--")
    known = models / f"{source.revision.replace('/', '--')}.txt"  # the commit that this revision was, last time
    try:
        commit = _commit_of(source)
    except ModelError as error:
        last = known.read_text(encoding="utf-8").strip() if known.is_file() else ""
        if not last or not (models / last / MANIFEST).is_file():
            raise
        warnings.warn(f"{error}; the copy of before is used", Notice, stacklevel=3)
        return models / last
    if not (models / commit / MANIFEST).is_file():
        _download(source, commit, models / commit, False, lambda line: warnings.warn(line, Notice, stacklevel=5))
    known.write_text(commit, encoding="utf-8", newline="\n")
    return models / commit


def _parse(name: str) -> _Name:
    found = re.fullmatch(r"hf:([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", name)
    if found is None:
        raise ConfigError(f"{name!r} does not name a model of the hub; write hf:owner/name, or hf:owner/name@revision")
    try:
        _client().utils.validate_repo_id(found[1])
    except ValueError as error:
        raise ConfigError(f"{name!r} does not name a model of the hub: {_first_line(error)}") from None
    return _Name(name, found[1], found[2] or "main")


def _commit_of(source: _Name) -> str:
    """Ask the hub what commit a revision is now, so that all files come from the same one."""
    try:
        found = _client().HfApi().model_info(source.repository, revision=source.revision, timeout=_PATIENCE)
    except Exception as error:
        raise _refusal(source, "did not give it", error) from None
    commit = str(found.sha)
    if re.fullmatch(r"[0-9a-f]{40,64}", commit) is None:
        raise ModelError(f"{source.source}: the hub gave no commit; is HF_ENDPOINT a hub?")
    return commit


def _download(source: _Name, commit: str, target: Path, overwrite: bool, say: Callable[[str], None]) -> None:
    """Fetch what `model.json` lists into `target`, and check it."""
    hub = _client()
    if not sys.stderr.isatty():
        hub.utils.disable_progress_bars()

    def fetch(file: str) -> None:
        hub.hf_hub_download(source.repository, file, revision=commit, local_dir=writer.folder)

    with write_folder(target, overwrite=overwrite) as writer:
        try:
            fetch(MANIFEST)
            files = _listed(writer.folder / MANIFEST, source)
            say(f"{source.source}: {len(files) + 1} files, {sum(files.values()) / 1e6:,.1f} MB, to {target}")
            for file in files:
                fetch(file)
        except ModelError:
            raise
        except Exception as error:
            raise _refusal(source, "did not give all of it", error) from None
        shutil.rmtree(writer.folder / ".cache", ignore_errors=True)  # the client's own notes
        try:
            FolderReader(writer.folder)
        except ModelError as error:
            message = str(error).replace(str(writer.folder), source.source)
            raise ModelError(f"{message}; what was fetched is removed") from None


def _listed(manifest: Path, source: _Name) -> dict[str, int]:
    """The files of a model and their sizes, as its `model.json` says; names must stay inside the folder."""
    try:
        if manifest.stat().st_size > _LARGEST_MANIFEST:
            raise ValueError
        files = {str(name): int(facts["size"]) for name, facts in json.loads(manifest.read_bytes())["files"].items()}
        for name in files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or path.parts[0] == ".cache":
                raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise ModelError(f"{source.source} is not a model of xmtc: its {MANIFEST} cannot be read") from None
    return files


def _refusal(name: _Name, what: str, error: Exception) -> ModelError:
    if type(error).__name__ == "RepositoryNotFoundError":
        reason = "there is no such model, or it is private and your token may not see it"
    elif type(error).__name__ in ("EntryNotFoundError", "RemoteEntryNotFoundError"):
        reason = f"it has no {MANIFEST}, or lacks a file that it lists; it is not a model of xmtc"
    else:
        reason = _first_line(error)
    return ModelError(f"{name.source}: the hub {what} ({reason}); check name, network and token (`hf auth whoami`)")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:150].rstrip(".: ")


def _client() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.utils
    except ImportError:
        raise ConfigError("models of the hub need huggingface_hub; install it with: pip install 'xmtc[hub]'") from None
    return huggingface_hub
