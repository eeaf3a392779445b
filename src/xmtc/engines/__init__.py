"""Engines, which run tasks: in this process, in several processes, or on Ray. All give the same bytes.

Ray is imported only when it is requested.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from xmtc.core.errors import ConfigError, nearest

if TYPE_CHECKING:  # a worker imports this package before it sets its thread variables, which numpy reads
    from xmtc.core.engine import Engine

__all__ = ["ENGINES", "check_engine", "open_engine"]

ENGINES = ("local", "processes", "ray")


def check_engine(name: str, address: str | None = None) -> None:
    """Raise unless this engine exists, its packages are installed, and it can use an address if one is given."""
    if name not in ENGINES:
        raise ConfigError(f"no engine {name!r}; choose one of {', '.join(ENGINES)}.{nearest(name, ENGINES)}")
    if address is not None and name != "ray":
        raise ConfigError(
            f"an address is that of a Ray cluster; the engine is {name!r}: give --engine ray, or no address"
        )
    if name == "ray" and not _is_installed("ray"):  # not imported, which takes seconds
        raise ConfigError("the engine 'ray' needs Ray; install it with: pip install 'xmtc[ray]'")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # the module was hidden on purpose
        return False


@contextmanager
def open_engine(name: str = "local", address: str | None = None) -> Iterator[Engine]:
    """Open an engine and close it at the end: "local" (this process), "processes" (one per core) or "ray".

    address: of a running Ray cluster, "auto" or "ray://…"; the default is $RAY_ADDRESS, or else Ray is started here.
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
