"""Engines: where tasks run. Each gives the same bytes. Ray is imported when it is asked for, never before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from xmtc.core.errors import ConfigError, nearest

if TYPE_CHECKING:  # a worker loads this package before it has settled its threads, which numpy reads
    from xmtc.core.engine import Engine

__all__ = ["ENGINES", "check_engine", "open_engine"]

ENGINES = ("local", "processes", "ray")


def check_engine(name: str, address: str | None = None) -> None:
    """Raise unless there is an engine of this name, its packages are installed, and an address is of use to it."""
    if name not in ENGINES:
        raise ConfigError(f"no engine {name!r}; choose one of {', '.join(ENGINES)}.{nearest(name, ENGINES)}")
    if address is not None and name != "ray":
        raise ConfigError(
            f"an address is that of a Ray cluster; the engine is {name!r}: give --engine ray, or no address"
        )
    if name == "ray" and not _is_installed("ray"):  # importing it takes seconds
        raise ConfigError("the engine 'ray' needs Ray; install it with: pip install 'xmtc[ray]'")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # a module that was hidden on purpose
        return False


@contextmanager
def open_engine(name: str = "local", address: str | None = None) -> Iterator[Engine]:
    """Open an engine and close it at the end: "local" (this process), "processes" (one per core) or "ray".

    address: of a running Ray cluster, "auto" or "ray://…"; without one, $RAY_ADDRESS, else Ray is started here.
    """
    check_engine(name, address)
    if name == "ray":
        from xmtc.engines.ray import RayEngine

        with RayEngine(address) as cluster:
            yield cluster
    elif name == "processes":
        from xmtc.engines.processes import ProcessEngine

        with ProcessEngine() as processes:
            yield processes
    else:
        from xmtc.engines.local import LocalEngine

        yield LocalEngine()
