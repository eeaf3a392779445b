"""xmtc serve: models behind HTTP."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from xmtc.app.cli.options import check_path
from xmtc.core.errors import ConfigError

_PACKAGES = {"fastapi", "starlette", "uvicorn", "prometheus_client", "python_multipart"}
_TOKEN = "XMTC_TOKEN"


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help="Model folders; each is served by its folder's name."),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", metavar="NAME=FOLDER", help="Serve a model by another name.")
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; 0.0.0.0 is every one of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 is any free one.")] = 8000,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            callback=check_path,
            help=f"Ask clients for the bearer token in this file; ${_TOKEN} works too.",
        ),
    ] = None,
    queue: Annotated[
        int, typer.Option("--queue", min=1, help="Texts that may wait for one model; then clients get a 503.")
    ] = 1024,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=3600, help="Seconds a request may take; then it gets a 504.")
    ] = 30.0,
) -> None:
    """Answer HTTP requests with models, and show a page to try them on.

    SIGTERM and Ctrl-C finish what was accepted; SIGHUP reads changed model folders again. See docs/SERVING.md.
    """
    folders = _folders(models or [], name or [])
    token = _token(token_file)
    try:
        from xmtc.app.rest import open_socket, serve_models
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        raise ConfigError(f"the server needs {error.name}; install it with: pip install 'xmtc[serve]'") from None

    with open_socket(host, port) as listener:
        address, port, *_ = listener.getsockname()
        if token is None and not _is_local(address):
            _say(f"warning: whoever reaches {host} may use this server; set a token with --token-file or ${_TOKEN}")
        serve_models(
            folders,
            listener,
            token=token,
            queue=queue,
            timeout=timeout,
            started=lambda: _say(f"serving {', '.join(folders)} at {_address(host, port)} (Ctrl-C stops)"),
        )
        _say("stopped")


def _folders(models: Sequence[str], named: Sequence[str]) -> dict[str, Path]:
    """Name → folder; each name once."""
    pairs = [(_folder_name(folder), folder) for folder in models]
    for option in named:
        name, separator, folder = option.partition("=")
        if not (name and separator and folder):
            raise ConfigError(f"--name takes NAME=FOLDER, such as --name eurlex=models/eurlex-7; got {option!r}")
        pairs.append((name, folder))
    if not pairs:
        raise ConfigError("no model to serve; give its folder, as in: xmtc serve model/")
    folders: dict[str, Path] = {}
    for name, folder in pairs:
        if "/" in name or not name.isprintable():
            raise ConfigError(f"{name!r} cannot be part of an address; choose another with --name NAME={folder}")
        if name in folders:
            raise ConfigError(
                f"two models are called {name!r}: {folders[name]} and {folder}; rename one with --name NAME={folder}"
            )
        folders[name] = Path(folder)
    return folders


def _folder_name(folder: str) -> str:
    name = Path(folder).absolute().name if Path(folder).name != ".." else Path(folder).resolve().name
    if not name or not folder:
        raise ConfigError(f"{folder!r} has no name; give one with --name NAME={folder}")
    return name


def _token(path: str | None) -> str | None:
    if path is None:
        token = os.environ.get(_TOKEN)
        where = f"${_TOKEN}"
    else:
        try:
            token = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise ConfigError(f"cannot read the token from {path}: {reason}") from None
        where = path
    if token is None:
        return None
    if not token.isprintable() or " " in token or not token:
        raise ConfigError(f"{where} holds no token; a token is one word, such as `openssl rand -hex 32` prints")
    return token


def _is_local(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
