"""The Ray engine: runs tasks on a Ray cluster, or on a Ray that it starts on this machine.

Each task takes one core; tasks are spread over the nodes. If a node dies, Ray reruns its tasks on another node. Results
are small and go to the driver; everything else is in files of a folder that every node can access.
"""

from __future__ import annotations

import copy
import os
import platform
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from xmtc.core.engine import LARGE_TASK
from xmtc.core.errors import ConfigError, DataError, XmtcError
from xmtc.core.progress import Progress
from xmtc.core.threads import n_threads

Task = TypeVar("Task")
Result = TypeVar("Result")
Value = TypeVar("Value")

_TRIES = 10  # maximum reruns of a task whose node or process died
_PATIENCE = 10  # seconds to wait for an answer from the head of a cluster
_STORE = 200_000_000  # bytes of Ray's object store if started here: results are small


def import_ray() -> Any:
    """Import the package `ray`; `check_engine` must have found it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # default of later versions; avoids a warning
    import ray

    return ray


class RayEngine:
    """Runs tasks on the nodes of a Ray cluster. Uses a Ray that the program has started, and leaves it running."""

    name = "ray"

    def __init__(self, address: str | None = None) -> None:
        self._ray = import_ray()
        self._started = not self._ray.is_initialized()
        if not self._started:
            return
        place = address or os.environ.get("RAY_ADDRESS") or "local"
        here = {"num_cpus": n_threads(), "object_store_memory": _STORE, "include_dashboard": False}
        try:
            _connect(place)
            self._ray.init(
                address=place,
                log_to_driver=False,
                logging_level="ERROR",
                ignore_reinit_error=True,
                **(here if place == "local" else {}),
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigError(
                f"no Ray cluster answers at {place!r} ({_first_line(error)}); start one with `ray start --head`, or "
                "leave out --address to start Ray on this machine"
            ) from None

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._started:
            self._ray.shutdown()

    @property
    def n_workers(self) -> int:
        """Return the number of cores in the cluster."""
        return max(1, int(sum(node["Resources"].get("CPU", 0) for node in self._nodes())))

    @property
    def outline(self) -> str:
        """Return the numbers of nodes and cores in the cluster as text."""
        n_nodes, n_cores = len(self._nodes()), self.n_workers
        return f"Ray, {n_nodes} node{'s' if n_nodes > 1 else ''}, {n_cores} core{'s' if n_cores > 1 else ''}"

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, memory: int = 0, queue: bool = True
    ) -> Iterator[tuple[int, Result]]:
        """Yield each task's index and result as it ends; rerun tasks of a node that died."""
        wanted: dict[str, Any] = {"num_cpus": 1, "max_retries": _TRIES, "scheduling_strategy": "SPREAD"}
        if memory:
            self._check_room(memory)
            wanted["memory"] = memory
        remote = self._ray.remote(**wanted)(_call)
        waiting = iter(enumerate(tasks))
        running: dict[Any, int] = {}
        try:
            while True:
                at_once = (2 if queue else 1) * self.n_workers  # twice, so that no core waits for its next task
                for place, task in islice(waiting, max(0, at_once - len(running))):
                    running[remote.remote(function, task)] = place
                if not running:
                    return
                for done in self._ray.wait(list(running), num_returns=1)[0]:
                    yield running[done], self._result(done)
                    del running[done]
        finally:
            for reference in running:
                self._ray.cancel(reference, force=True)

    def run_group(
        self, function: Callable[[Task, Progress], None], task: Task, n_processes: int | None, progress: Progress
    ) -> None:
        """Run function(task, progress) in several processes at once; restart all if one dies."""
        from xmtc.engines.ray_group import RayGroup

        RayGroup(self._ray, self._nodes, n_processes, progress).run(function, task)

    def share(self, value: Value) -> _Stored[Value]:
        """Store a value once in the cluster, and return a handle to it."""
        return _Stored(self._ray.put(value))

    def check(self, folder: Path | None, memory: int = 0) -> None:
        """Raise unless every node has the same xmtc and Python as this process, `folder`, and enough memory."""
        from xmtc import __version__

        mark = None if folder is None else folder / f".seen-{os.getpid()}"
        if mark is not None:
            mark.touch()
        try:
            asked = {node["NodeID"]: (node, self._ask(node["NodeID"], mark)) for node in self._nodes()}
            for node, reference in asked.values():
                here = (__version__, platform.python_version())
                self._check_node(node, self._result(reference), here, folder, memory)
        finally:
            if mark is not None:
                mark.unlink(missing_ok=True)

    def _check_room(self, memory: int) -> None:
        """Raise unless some node has enough memory for a task; otherwise Ray would wait forever."""
        most = max((node["Resources"].get("memory", 0) for node in self._nodes()), default=0)
        if most < memory:
            raise ConfigError(
                f"a task needs about {memory / 2**30:.1f} GiB, and the largest node has {most / 2**30:.1f} GiB; use "
                "nodes with more memory"
            )

    def _check_node(
        self, node: dict[str, Any], found: dict[str, Any], here: tuple[str, str], folder: Path | None, memory: int
    ) -> None:
        name, (version, python) = node["NodeManagerAddress"], here
        if found["xmtc"] is None:
            raise ConfigError(
                f"node {name} lacks xmtc; install xmtc {version} there: pip install 'xmtc[ray]=={version}'"
            )
        if found["xmtc"] != version:
            raise ConfigError(
                f"node {name} has xmtc {found['xmtc']}, this process has {version}; install the same on all"
            )
        if found["python"].split(".")[:2] != python.split(".")[:2]:
            raise ConfigError(f"node {name} has Python {found['python']}, this process has {python}; use one version")
        if not found["sees"]:
            raise DataError(
                f"node {name} does not see {folder}; use a folder that all nodes share, under the same path"
            )
        room = node["Resources"].get("memory", 0)
        if 0 < room < memory:
            raise ConfigError(
                f"a task needs about {memory / 2**30:.1f} GiB, and node {name} has {room / 2**30:.1f} GiB; use nodes "
                "with more memory"
            )
        room, memory = room / max(1, node["Resources"].get("CPU", 1)), min(memory, LARGE_TASK)
        if 0 < room < memory:
            raise ConfigError(
                f"a task needs about {memory / 2**30:.1f} GiB, and node {name} has {room / 2**30:.1f} GiB per core; "
                "use nodes with more memory, or start Ray there with fewer cores (--num-cpus)"
            )

    def _ask(self, node: str, mark: Path | None) -> Any:
        """Return what a node reports of itself; the function is defined here, so a node without xmtc can run it."""

        def say(path: str | None) -> dict[str, Any]:
            import os
            import platform

            try:
                from xmtc import __version__ as version
            except ImportError:
                version = None  # type: ignore[assignment]
            return {"xmtc": version, "python": platform.python_version(), "sees": path is None or os.path.exists(path)}

        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        pinned = NodeAffinitySchedulingStrategy(node, soft=True)  # soft: the node may die during the query
        return self._ray.remote(num_cpus=0, scheduling_strategy=pinned)(say).remote(None if mark is None else str(mark))

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0]

    def _result(self, reference: Any) -> Any:
        """Return a task's result, or raise its error without Ray's wrapper."""
        failures = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except failures.RayTaskError as error:
            if isinstance(error.cause, (XmtcError, OSError, MemoryError, KeyboardInterrupt)):
                raise error.cause from None
            raise
        except failures.OutOfMemoryError:
            raise MemoryError("a task needs more memory than its node has; use larger nodes") from None
        except (failures.RayError, ConnectionError) as error:
            raise ConfigError(
                f"the Ray cluster lost a task {_TRIES} times or ended ({_first_line(error)}); look at `ray status`, "
                "then run the same command again"
            ) from None


@dataclass(frozen=True)
class _Stored(Generic[Value]):
    """A value in Ray's object store, stored once per node; tasks carry a reference to it."""

    reference: Any

    def get(self) -> Value:
        """Return a copy; the arrays that Ray returns are read-only, and numba would recompile the kernels for them."""
        value: Value = copy.deepcopy(import_ray().get(self.reference))
        return value


def _call(function: Callable[[Task], Result], task: Task) -> Result:
    """Run one task in a worker."""
    from xmtc.engines.workers import use_threads

    use_threads(1)
    return function(task)


def _connect(address: str) -> None:
    """Raise OSError if nothing answers at HOST:PORT or ray://HOST:PORT: Ray itself would retry for ten minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
