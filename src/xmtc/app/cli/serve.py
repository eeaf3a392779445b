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
from xmtc.app.hang_up import HangUp
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
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=256, help="Processes that share the port; one per core is best.")
    ] = 1,
    connections: Annotated[
        int,
        typer.Option("--connections", min=1, help="Connections at a time; then idle ones are closed."),
    ] = 1000,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.01, metavar="N", help="Requests per second of one client address; then a 429."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Name that this server goes by, such as a proxy's; others are refused, as always on 127.0.0.1.",
        ),
    ] = None,
) -> None:
    """Answer HTTP requests with models, and show a page to try them on.

    SIGTERM and Ctrl-C finish what was accepted; SIGHUP reads changed model folders again. See docs/SERVING.md.
    """
    folders = _folders(models or [], name or [])
    token = _token(token_file)
    with HangUp() as hang_up:  # from now on: what is imported below takes a second
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)  # workers have a folder of their own
        try:
            from xmtc.app.rest import ServerSettings, open_socket, serve_models, serve_with_workers
        except ModuleNotFoundError as error:
            if error.name not in _PACKAGES:
                raise
            raise ConfigError(f"the server needs {error.name}; install it with: pip install 'xmtc[serve]'") from None

        if workers > 1 and sys.platform == "win32":
            _say("warning: on Windows processes do not share a port; one worker serves")
            workers = 1
        with open_socket(host, port) as listener:
            address, port, *_ = listener.getsockname()
            local = _is_local(address)
            if token is None and not local:
                _say(f"warning: anyone who reaches {host} may use it; set a token with --token-file or ${_TOKEN}")
            settings = ServerSettings(
                folders=folders,
                token=token,
                hosts=_names(host, allow_host or []) if local or allow_host else None,
                queue=queue,
                timeout=timeout,
                connections=connections,
                rate=rate,
                workers=workers,
            )
            (serve_models if workers == 1 else serve_with_workers)(
                settings,
                listener,
                hang_up=hang_up,
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


def _names(host: str, allowed: Sequence[str]) -> list[str]:
    """Names that clients may call this server by, besides addresses and localhost, which are always right."""
    return [*allowed, *([] if host == "localhost" or host in allowed else [host])]


def _is_local(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
