"""Run processes that train together on a Ray cluster; start all at once, and restart all if one dies.

Each process is a Ray actor with the environment variables that torchrun would set; training code finds the other
processes through these. Ray Train does the same, but is not used: it needs pandas and tensorboardX, and our trainer has
its own checkpoints.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from xmtc.core.errors import ConfigError, XmtcError, is_out_of_memory
from xmtc.core.progress import Progress

Task = TypeVar("Task")
Node = dict[str, Any]

_TRIES = 10  # maximum restarts of all processes
_EVERY = 0.5  # seconds between two checks of the processes
_NOTICE = 60  # seconds until Ray notices that a process or node has died
_WAIT = 600  # seconds to wait for cores after a node has died or while others use them


class Shape(NamedTuple):
    """The resources of the processes in a group."""

    n_processes: int
    cores: int  # of each
    gpus: int  # of each: 1, or 0 without GPUs


def shape_group(nodes: Sequence[Node], n_processes: int | None) -> Shape | None:
    """Assign nodes: one process per GPU, or per node without GPUs, each with as many cores as all can have.

    Returns None if there is no room for `n_processes`.
    """
    cores = [int(node["Resources"].get("CPU", 0)) for node in nodes]
    gpus = [int(node["Resources"].get("GPU", 0)) for node in nodes]
    on_gpus = any(gpus)
    n = n_processes or (sum(gpus) if on_gpus else len(nodes))
    for each in range(max(cores, default=0), 0, -1):
        places = (min(own // each, gpu if on_gpus else own) for own, gpu in zip(cores, gpus, strict=True))
        if 0 < n <= sum(places):
            return Shape(n, each, int(on_gpus))
    return None


class RayGroup:
    """Starts the processes of a group, forwards their progress, and restarts them."""

    def __init__(self, ray: Any, nodes: Callable[[], list[Node]], n_processes: int | None, progress: Progress) -> None:
        self._ray, self._nodes, self._progress = ray, nodes, progress
        shape = shape_group(nodes(), n_processes)
        if shape is None:
            n_cores, n_gpus = (int(sum(node["Resources"].get(kind, 0) for node in nodes())) for kind in ("CPU", "GPU"))
            has = f"{n_gpus} GPUs and {n_cores} cores" if n_gpus else f"{n_cores} cores"
            raise ConfigError(
                f"{n_processes} workers do not fit: the cluster has {has}, and a worker takes one; give fewer --workers"
            )
        self._shape = shape

    def run(self, function: Callable[[Task, Progress], None], task: Task) -> None:
        """Run function(task, progress) in every process, until all end without a crash."""
        for _ in range(_TRIES):
            died = self._try(function, task)
            if died is None:
                return
            self._progress.say(f"a worker died ({died}); all start again from the last checkpoint")
            self._shape = self._wait_for_room()
        raise ConfigError(
            f"workers died {_TRIES} times; look at `ray status` and at the memory of the nodes, then resume the run"
        )

    def _try(self, function: Callable[[Task, Progress], None], task: Task) -> str | None:
        """Run all processes once; return why one died, or None if all ended."""
        ray, failures, shape = self._ray, self._ray.exceptions, self._shape
        bundle = {"CPU": shape.cores, **({"GPU": shape.gpus} if shape.gpus else {})}
        group = ray.util.placement_group([bundle] * shape.n_processes, strategy="SPREAD")
        workers: list[Any] = []
        waiting: list[Any] = []
        try:
            ready, until = group.ready(), time.monotonic() + _WAIT
            while not ray.wait([ready], timeout=_EVERY)[0]:
                if shape_group(self._nodes(), shape.n_processes) is None:  # Ray listed a dead node until now
                    return "a node is gone"
                if time.monotonic() > until:
                    raise ConfigError(
                        f"no room for {shape.n_processes} workers of {shape.cores} cores in {_WAIT // 60} minutes: "
                        "others use the cluster; give fewer --workers, or resume the run later"
                    )
            workers = [self._start(group, place) for place in range(shape.n_processes)]
            places: list[Place] = ray.get([worker.place.remote() for worker in workers])
            what = "GPU" if shape.gpus else "core"
            per = shape.gpus or shape.cores
            self._progress.say(
                f"{len(workers)} workers on {len({place.node for place in places})} nodes, {per} {what}"
                f"{'s' if per > 1 else ''} each"
            )
            waiting = [
                worker.run.remote(function, task, variables, shape.cores, bool(self._progress.trackers))
                for worker, variables in zip(workers, list_variables(places, shape.gpus > 0), strict=True)
            ]
            while waiting:
                ended, waiting = ray.wait(waiting, timeout=_EVERY)
                self._pass_on(ray.get(workers[0].take_events.remote()))
                ray.get(ended)
            self._pass_on(ray.get(workers[0].take_events.remote()))
            return None
        except failures.RayTaskError as error:
            if isinstance(error.cause, (XmtcError, OSError)) or is_out_of_memory(error.cause):
                raise error.cause from None
            # if one process dies, the others fail too, often before its death is known
            died = self._find_death(waiting)
            if died is None:
                raise
            return died
        except failures.OutOfMemoryError:
            raise MemoryError("a worker takes more memory than its node has") from None
        except failures.RayError as error:
            return _first_line(error)
        finally:
            for worker in workers:
                ray.kill(worker)
            ray.util.remove_placement_group(group)

    def _start(self, group: Any, place: int) -> Any:
        """Start the actor of one process."""
        from_group = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        options: dict[str, Any] = {"num_cpus": self._shape.cores, "num_gpus": self._shape.gpus, "max_concurrency": 2}
        pinned = from_group(group, placement_group_bundle_index=place)
        return self._ray.remote(**options, scheduling_strategy=pinned)(_Worker).remote()

    def _pass_on(self, events: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        """Repeat the progress events of rank 0 here."""
        for name, values in events:
            if name == "log":
                for tracker in self._progress.trackers:
                    tracker.log(*values)
            elif name == "stage":
                self._progress.stage(*values)
            elif name == "step":
                self._progress.step(*values)
            elif name == "note":
                self._progress.note(*values)
            else:
                self._progress.say(*values)

    def _find_death(self, waiting: Sequence[Any]) -> str | None:
        """Return why a process died, or None if none did."""
        failures, until = self._ray.exceptions, time.monotonic() + _NOTICE
        left = list(waiting)
        while left and time.monotonic() < until:
            ended, left = self._ray.wait(left, timeout=_EVERY)
            for reference in ended:
                try:
                    self._ray.get(reference)
                except failures.RayTaskError:
                    continue
                except failures.RayError as error:
                    return _first_line(error)
        return None

    def _wait_for_room(self) -> Shape:
        """Return how the same number of processes fits on the remaining or new nodes."""
        n, until, told = self._shape.n_processes, time.monotonic() + _WAIT, False
        while (shape := shape_group(self._nodes(), n)) is None:
            if time.monotonic() > until:
                raise ConfigError(f"no room for {n} workers since a node died; add a node, then resume the run")
            if not told:
                told = True
                self._progress.say(f"waiting for room for {n} workers: add a node, or interrupt and resume later")
            time.sleep(_EVERY)
        return shape


class Place(NamedTuple):
    """Where a process runs."""

    node: str
    address: str
    port: int  # a free port


def list_variables(places: Sequence[Place], on_gpus: bool) -> list[dict[str, str]]:
    """Return the variables that torchrun would set for each process; the first process is the master."""
    met, found = places[0], []
    for rank, place in enumerate(places):
        neighbours = [other for other, one in enumerate(places) if one.node == place.node]
        # Ray shows a process only its own GPU, as number 0
        local = 0 if on_gpus else neighbours.index(rank)
        found.append(
            {
                "RANK": str(rank),
                "WORLD_SIZE": str(len(places)),
                "LOCAL_RANK": str(local),
                "LOCAL_WORLD_SIZE": str(len(neighbours)),
                "MASTER_ADDR": met.address,
                "MASTER_PORT": str(met.port),
            }
        )
    return found


class _Worker:
    """One process of a group. One thread runs the function, another answers queries meanwhile."""

    def __init__(self) -> None:
        self._heard = _Heard()

    def place(self) -> Place:
        """Return the node and a free port on it."""
        from xmtc.engines.ray import import_ray

        ray = import_ray()
        with socket.socket() as free:
            free.bind(("", 0))
            port = int(free.getsockname()[1])
        return Place(ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address(), port)

    def run(
        self,
        function: Callable[[Task, Progress], None],
        task: Task,
        variables: Mapping[str, str],
        n_threads: int,
        tracked: bool,
    ) -> None:
        """Run the function."""
        from xmtc.engines.workers import use_threads

        use_threads(n_threads)
        os.environ.update(variables)
        if tracked:
            self._heard.trackers = (self._heard,)
        function(task, self._heard)

    def take_events(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the progress events since the last call."""
        return self._heard.take()


class _Heard(Progress):
    """Stores progress events until they are collected; also receives metrics, like a tracker."""

    def __init__(self) -> None:
        self._events: deque[tuple[str, tuple[Any, ...]]] = deque()  # another thread collects them

    def stage(self, name: str) -> None:
        """Store the stage's name."""
        self._events.append(("stage", (name,)))

    def step(self, done: int, total: int) -> None:
        """Store the progress of the stage."""
        self._events.append(("step", (done, total)))

    def note(self, text: str) -> None:
        """Store a note."""
        self._events.append(("note", (text,)))

    def say(self, fact: str) -> None:
        """Store a message."""
        self._events.append(("say", (fact,)))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Store the metrics of a step."""
        self._events.append(("log", (step, dict(values))))

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def take(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Return and remove the stored events; of consecutive steps keep only the last."""
        taken: list[tuple[str, tuple[Any, ...]]] = []
        while self._events:
            event = self._events.popleft()
            if taken and taken[-1][0] == event[0] == "step":
                taken.pop()
            taken.append(event)
        return taken


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
