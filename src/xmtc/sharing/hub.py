"""Upload model folders to the Hugging Face hub and download them, with huggingface_hub.

Only the files that a model's `model.json` lists, with their sha256, are uploaded and downloaded. A download goes to a
temporary folder, is checked like any model folder, and then renamed, so that no incomplete or altered model is left.
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
_NOT_OURS = (_CARD, ".gitattributes")  # files of a repository that do not belong to the model
_LARGEST_MANIFEST = 64 * 1024 * 1024  # bytes
_PATIENCE = 10.0  # timeout in seconds for a request to the hub


class _Name(NamedTuple):
    """The name of a model: "hf:owner/name" or "hf:owner/name@revision"."""

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
    """Upload a model folder and its card to the hub as "hf:owner/name", and return the URL of its page.

    scores: a file with the JSON of `xmtc evaluate --json`, for the card. licence: the hub's identifier, such as
    "apache-2.0". private: applies only to a new repository. say: called with the size before the upload.
    """
    target = _parse(name)
    check_licence(licence)
    evaluation = None if scores is None else read_evaluation(scores)
    files = FolderReader(folder).files  # raises for an incomplete or altered folder before the upload
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
        stale = sorted(there - {MANIFEST, *files, *_NOT_OURS})  # files of the previous model
        commit = api.create_commit(
            target.repository,
            [*add, *(hub.CommitOperationDelete(file) for file in stale)],
            commit_message=f"Push a {manifest['method']} model of {manifest['n_labels']:,} labels",
            revision=target.revision,
        )
    except Exception as error:  # the hub's client raises many types
        raise _refusal(target, "did not accept it", error) from None
    return str(commit.repo_url)


def pull_model(
    name: str, out: str | Path, *, overwrite: bool = False, say: Callable[[str], None] = lambda line: None
) -> Path:
    """Download the model "hf:owner/name" or "hf:owner/name@revision" into a folder.

    say: called with its size before the download.
    """
    source = _parse(name)
    check_target(out, overwrite=overwrite)
    _download(source, _commit_of(source), Path(out), overwrite, say)
    return Path(out)


def fetch_model(name: str) -> Path:
    """Return a cache folder with the model "hf:owner/name"; download it unless it is cached.

    If the hub does not answer, return the last downloaded version.
    """
    source = _parse(name)
    models = cache_folder() / "models" / source.repository.replace("/", "--")
    known = models / f"{source.revision.replace('/', '--')}.txt"  # the last known commit of this revision
    try:
        commit = _commit_of(source)
    except ModelError as error:
        last = known.read_text(encoding="utf-8").strip() if known.is_file() else ""
        if not last or not (models / last / MANIFEST).is_file():
            raise
        warnings.warn(f"{error}; using the earlier copy", Notice, stacklevel=3)
        return models / last
    if not (models / commit / MANIFEST).is_file():
        _download(source, commit, models / commit, False, lambda line: warnings.warn(line, Notice, stacklevel=5))
    known.write_text(commit, encoding="utf-8", newline="\n")
    return models / commit


def _parse(name: str) -> _Name:
    found = re.fullmatch(r"hf:([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", name)
    if found is None:
        raise ConfigError(f"{name!r} does not name a model on the hub; write hf:owner/name, or hf:owner/name@revision")
    try:
        _client().utils.validate_repo_id(found[1])
    except ValueError as error:
        raise ConfigError(f"{name!r} does not name a model on the hub: {_first_line(error)}") from None
    return _Name(name, found[1], found[2] or "main")


def _commit_of(source: _Name) -> str:
    """Return the current commit of a revision from the hub, so that all files come from the same commit."""
    try:
        found = _client().HfApi().model_info(source.repository, revision=source.revision, timeout=_PATIENCE)
    except Exception as error:
        raise _refusal(source, "did not provide it", error) from None
    commit = str(found.sha)
    if re.fullmatch(r"[0-9a-f]{40,64}", commit) is None:
        raise ModelError(f"{source.source}: the hub returned no commit; check that HF_ENDPOINT is the address of a hub")
    return commit


def _download(source: _Name, commit: str, target: Path, overwrite: bool, say: Callable[[str], None]) -> None:
    """Download the files listed in `model.json` into `target`, and check them."""
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
            raise _refusal(source, "did not provide all of it", error) from None
        shutil.rmtree(writer.folder / ".cache", ignore_errors=True)  # metadata of the client
        try:
            FolderReader(writer.folder)
        except ModelError as error:
            message = str(error).replace(str(writer.folder), source.source)
            raise ModelError(f"{message}; the downloaded files are removed") from None


def _listed(manifest: Path, source: _Name) -> dict[str, int]:
    """Return the files of a model and their sizes from its `model.json`; raise if a name is outside the folder."""
    try:
        if manifest.stat().st_size > _LARGEST_MANIFEST:
            raise ValueError
        files = {str(name): int(facts["size"]) for name, facts in json.loads(manifest.read_bytes())["files"].items()}
        for name in files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or path.parts[0] == ".cache":
                raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise ModelError(f"{source.source} is not an xmtc model: its {MANIFEST} cannot be read") from None
    return files


def _refusal(name: _Name, what: str, error: Exception) -> ModelError:
    if type(error).__name__ == "RepositoryNotFoundError":
        reason = "there is no such model, or it is private and your token may not see it"
    elif type(error).__name__ in ("EntryNotFoundError", "RemoteEntryNotFoundError"):
        reason = f"it has no {MANIFEST}, or lacks a file that it lists; it is not an xmtc model"
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
