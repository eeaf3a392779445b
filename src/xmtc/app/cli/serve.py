"""xmtc serve: serve models over HTTP."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from xmtc.app.cli.options import check_path
from xmtc.app.cli.panels import advanced_option, data_option, network_option
from xmtc.app.hang_up import HangUp
from xmtc.core.errors import ConfigError

_PACKAGES = {"fastapi", "starlette", "uvicorn", "prometheus_client", "python_multipart"}
_TOKEN = "XMTC_TOKEN"


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help="Model folders. Each model is served under the name of its folder."),
    ] = None,
    name: Annotated[
        list[str] | None,
        data_option("--name", metavar="NAME=FOLDER", help="Serve a model under another name. Repeatable."),
    ] = None,
    host: Annotated[
        str, network_option("--host", help="Address to listen on. 0.0.0.0 means all addresses of this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int, network_option("--port", min=0, max=65535, help="Port to listen on. 0 means any free port.")
    ] = 8000,
    token_file: Annotated[
        str | None,
        network_option(
            "--token-file",
            metavar="FILE",
            callback=check_path,
            help=f"File with the bearer token that clients must send. Default: ${_TOKEN}, if it is set.",
        ),
    ] = None,
    queue: Annotated[
        int,
        advanced_option(
            "--queue", min=1, help="Maximum number of waiting texts per model. Further requests get a 503."
        ),
    ] = 1024,
    timeout: Annotated[
        float,
        advanced_option("--timeout", min=0.1, max=3600, help="Maximum seconds per request. Slower requests get a 504."),
    ] = 30.0,
    workers: Annotated[
        int,
        advanced_option(
            "--workers", min=1, max=256, help="Number of processes that share the port. One per core is best."
        ),
    ] = 1,
    connections: Annotated[
        int,
        advanced_option(
            "--connections", min=1, help="Maximum number of open connections. Beyond it, idle ones are closed."
        ),
    ] = 1000,
    rate: Annotated[
        float | None,
        network_option(
            "--rate",
            min=0.01,
            metavar="N",
            help="Maximum requests per second and client address. Further ones get a 429.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        network_option(
            "--allow-host",
            metavar="NAME",
            help="Host name that clients may use for this server, such as that of a proxy. Others are refused. "
            "Repeatable.",
        ),
    ] = None,
) -> None:
    """Serve models over HTTP, with a web page to try them.

    Ctrl-C and SIGTERM stop the server after it has answered accepted requests; SIGHUP reloads changed model folders.
    See docs/SERVING.md.
    """
    folders = _folders(models or [], name or [])
    token = _token(token_file)
    with HangUp() as hang_up:  # from here on, because the imports below take a second
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)  # workers have their own folder
        try:
            from xmtc.app.rest import ServerSettings, open_socket, serve_models, serve_with_workers
        except ModuleNotFoundError as error:
            if error.name not in _PACKAGES:
                raise
            raise ConfigError(f"the server needs {error.name}; install it with: pip install 'xmtc[serve]'") from None

        if workers > 1 and sys.platform == "win32":
            _say("warning: several workers are not supported on Windows; using one")
            workers = 1
        with open_socket(host, port) as listener:
            address, port, *_ = listener.getsockname()
            local = _is_local(address)
            if token is None and not local:
                _say(f"warning: anyone who can reach {host} can use this server; set --token-file or ${_TOKEN}")
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
    """Return the folder of each name; raise if two models have the same name."""
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
            raise ConfigError(f"{name!r} cannot be part of a URL; choose another name with --name NAME={folder}")
        if name in folders:
            raise ConfigError(
                f"two models are called {name!r}: {folders[name]} and {folder}; rename one with --name NAME={folder}"
            )
        folders[name] = Path(folder)
    return folders


def _folder_name(folder: str) -> str:
    name = Path(folder).absolute().name if Path(folder).name != ".." else Path(folder).resolve().name
    if not name or not folder:
        raise ConfigError(f"{folder!r} is not a folder name; choose a name with --name NAME={folder}")
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
        raise ConfigError(
            f"{where} has no valid token; a token is one word, such as the output of `openssl rand -hex 32`"
        )
    return token


def _names(host: str, allowed: Sequence[str]) -> list[str]:
    """Return the host names that clients may use, besides addresses and localhost."""
    return [*allowed, *([] if host == "localhost" or host in allowed else [host])]


def _is_local(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
