"""What the server costs beside the library, how quickly it answers, what it does with four times too much, and what a
second worker adds.

python -m benchmarks.serving [--set-name eurlex57k] [--seconds 10] [--data DIR] [--work DIR]

Trains the linear method on the set, unless that was done before. Server and library each have one core, the same one,
and one thread; the clients have the others. One worker is compared with two on all cores, which the clients share.
→ results/serving.json
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks.framework import Benchmark, Found, Limits, Measured, add_options, limits_of, percentiles
from benchmarks.framework.machine import cores
from benchmarks.framework.markdown import disturbed, table
from benchmarks.framework.sources import method_roots
from benchmarks.sets import locate, work_folder
from xmtc import api

NAME = "serving"
WANTED = 0.5  # of the library's documents a second, with 64 texts a request
GROWTH_MB = 50.0  # of memory under overload that is noise
TEXTS = 64  # a request
_K = 10
_CLIENTS = 4  # with many texts a request: the server always finds one waiting
_MANY_CLIENTS = 16
_WORKERS = 2
_WORKER_CLIENTS = 32
_OVERLOAD = 4.0  # times capacity
_IN_FLIGHT = 64  # requests that the clients of an overload have under way at most
_QUEUE = 4  # requests of many texts that may wait
_TEST_TEXTS = 4096
_CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []  # before any is given away
_CASES = {
    "many": f"{TEXTS} texts a request",
    "one": "one text a request",
    "one_many_clients": "one text a request, many clients",
}


def measure(data: Path, model: Path, seconds: float, limits: Limits) -> Found:
    """Return what was found of the library and of the server, on one core each."""
    job: Found = {"data": str(data.absolute()), "model": str(model), "seconds": seconds, "texts": TEXTS, "threads": 1}
    facts = BENCHMARK.facts(1)
    trained = BENCHMARK.run("train", {**job, "threads": cores()}, limits)
    library = BENCHMARK.run("library", job, limits)
    server = BENCHMARK.run("server", job, limits)
    workers = BENCHMARK.run("workers", {**job, "threads": cores()}, limits)
    ratio = server["many"]["documents_a_second"] / library["documents_a_second"]
    overload = server["overload"]
    return {
        "facts": facts,
        "set": data.name,
        "labels": trained["labels"],
        "seconds": seconds,
        "library": library,
        "server": server,
        "workers": workers,
        "ratio": ratio,
        "holds": {
            "ratio": ratio >= WANTED,
            "refuses": overload["refused"] > 0 and overload["failed"] == 0 and overload["answered"] > 0,
            "memory": overload["growth_mb"] <= GROWTH_MB,
            "recovers": overload["after_ms"]["p50"] <= 2 * server["one"]["ms"]["p50"],
        },
    }


def train(job: Found) -> Found:
    """Train the linear method, unless that was done before."""
    model = Path(job["model"])
    if not model.exists():
        model.parent.mkdir(parents=True, exist_ok=True)
        api.train(api.read_corpus(job["data"], "train"), "linear", out=model)
    return {"labels": api.load(model).labels.n_labels}


def library(job: Found) -> Found:
    """Rank batches of texts as a program would, on one core."""
    _pin(os.getpid(), first=True)
    model, batches = api.load(job["model"]), _batches(job)
    model.rank(batches[0], _K).named(model.labels)
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < job["seconds"]:
        batch = batches[done % len(batches)]
        model.rank(batch, _K).named(model.labels)
        done += 1
    return {"documents_a_second": done * job["texts"] / (time.perf_counter() - started)}


def server(job: Found) -> Found:
    """Ask a running server: many texts a request, one, one by many clients, and far too much."""
    many = [json.dumps({"texts": batch, "k": _K}).encode() for batch in _batches(job)]
    one = [json.dumps({"texts": [text], "k": _K}).encode() for batch in _batches(job)[:16] for text in batch]
    _pin(os.getpid(), first=False)
    with _running(job) as target:
        _ask(target, many, _CLIENTS, min(1.0, job["seconds"]), job["texts"])  # warms up
        found = {
            "many": _ask(target, many, _CLIENTS, job["seconds"], job["texts"]),
            "one": _ask(target, one, 1, job["seconds"], 1),
            "one_many_clients": _ask(target, one, _MANY_CLIENTS, job["seconds"], 1),
        }
        rate = _OVERLOAD * found["many"]["requests_a_second"]
        overload = _overload(target, many, rate, job["seconds"], job["texts"])
        after = _ask(target, one, 1, min(2.0, job["seconds"]), 1)
        return {**found, "overload": {**overload, "times": _OVERLOAD, "after_ms": after["ms"]}}


def workers(job: Found) -> Found:
    """Ask servers of one worker and of several, one text a request, from many clients, on all cores."""
    one = [json.dumps({"texts": [text], "k": _K}).encode() for batch in _batches(job)[:16] for text in batch]
    found = {}
    for n_workers in (1, _WORKERS):
        with _running(job, n_workers) as target:
            _ask(target, one, _WORKER_CLIENTS, min(1.0, job["seconds"]), 1)  # warms up
            found[str(n_workers)] = _ask(target, one, _WORKER_CLIENTS, job["seconds"], 1)
    return {**found, "gain": found[str(_WORKERS)]["requests_a_second"] / found["1"]["requests_a_second"]}


class _Target(NamedTuple):
    host: str
    port: int
    path: str
    pid: int


@contextmanager
def _running(job: Found, n_workers: int | None = None) -> Iterator[_Target]:
    """The server, on the core that the library had; with a number of workers, on all cores."""
    command = [sys.executable, "-m", "xmtc", "serve", "--name", f"served={job['model']}", "--port", "0"]
    with tempfile.TemporaryFile("w+") as log:
        command += ["--queue", str(_QUEUE * job["texts"]), "--workers", str(n_workers or 1)]
        process = subprocess.Popen(command, stderr=log, env={**os.environ, "XMTC_THREADS": "1"})
        try:
            if n_workers is None:
                _pin(process.pid, first=True)
            while (found := re.search(r"at http://([\d.]+):(\d+)/", _read(log))) is None:
                if process.poll() is not None:
                    raise RuntimeError(_read(log))
                time.sleep(0.05)
            yield _Target(found[1], int(found[2]), "/v1/models/served/suggest", process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _ask(target: _Target, bodies: list[bytes], clients: int, seconds: float, texts: int) -> Found:
    """Requests one after the other on each of some connections: what came back, and when."""
    deadline = time.perf_counter() + seconds

    def client(number: int) -> list[float]:
        taken = []
        connection = http.client.HTTPConnection(target.host, target.port)
        while time.perf_counter() < deadline:
            body = bodies[(number + clients * len(taken)) % len(bodies)]
            started = time.perf_counter()
            if _post(connection, target.path, body) != 200:
                raise RuntimeError("the server refused a request that it has room for")
            taken.append(time.perf_counter() - started)
        connection.close()
        return taken

    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        taken = [one for times in pool.map(client, range(clients)) for one in times]
    rate = len(taken) / (time.perf_counter() - started)
    return {
        "clients": clients,
        "requests_a_second": rate,
        "documents_a_second": rate * texts,
        "ms": percentiles([1000 * seconds for seconds in taken]),
    }


def _overload(target: _Target, bodies: list[bytes], rate: float, seconds: float, texts: int) -> Found:
    """Requests that come at a rate, whatever the server does with them."""
    n_requests = max(8, int(rate * seconds))
    started = time.perf_counter()

    def client(number: int) -> int:
        time.sleep(max(0.0, started + number / rate - time.perf_counter()))
        connection = http.client.HTTPConnection(target.host, target.port)
        try:
            return _post(connection, target.path, bodies[number % len(bodies)])
        except OSError:
            return 0
        finally:
            connection.close()

    with _memory(target.pid) as seen, ThreadPoolExecutor(_IN_FLIGHT) as pool:
        statuses = list(pool.map(client, range(n_requests)))
        taken = time.perf_counter() - started
    early = max(seen[: max(1, len(seen) // 3)])
    answered, refused = statuses.count(200), statuses.count(503)
    return {
        "offered": n_requests / taken,
        "answered": answered,
        "refused": refused,
        "failed": n_requests - answered - refused,
        "documents_a_second": answered * texts / taken,
        "growth_mb": max(0.0, max(seen) - early),
        "peak_mb": max(seen),
    }


def _post(connection: http.client.HTTPConnection, path: str, body: bytes) -> int:
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


@contextmanager
def _memory(pid: int) -> Iterator[list[float]]:
    """The memory that a process holds, in 10⁶ bytes, ten times a second."""
    seen = [_resident_mb(pid)]
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.1):
            seen.append(_resident_mb(pid))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        stop.set()
        looking.join()


def _resident_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # no Linux
        return 0.0
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmRSS")), 0.0)


def _batches(job: Found) -> list[list[str]]:
    texts = api.read_corpus(job["data"], "test").texts
    if texts is None:
        raise RuntimeError("the set has no texts")
    some = [text[:100_000] or "empty" for text in texts[:_TEST_TEXTS]]
    whole = len(some) // job["texts"]
    return [some[i * job["texts"] : (i + 1) * job["texts"]] for i in range(whole)] or [
        (some * job["texts"])[: job["texts"]]
    ]


def _pin(pid: int, first: bool) -> None:
    """Give a process the first of our cores, or all the others; one core alone is shared."""
    if len(_CORES) > 1:
        os.sched_setaffinity(pid, _CORES[:1] if first else _CORES[1:])


def _read(log: IO[str]) -> str:
    log.seek(0)
    return log.read()


def describe(found: Found) -> list[str]:
    """Return the section of the page."""
    server, library, overload = found["server"], found["library"], found["server"]["overload"]
    rows = [
        ["library, batches of 64", "–", "–", f"{library['documents_a_second']:,.0f}", "–", "–"],
        *([told, *_cells(server[case])] for case, told in _CASES.items()),
    ]
    overload_told = (
        f"Overload: {overload['offered']:.1f} requests of {TEXTS} texts a second, {overload['times']:.1f} times what "
        f"it can do. {overload['answered']:,} were answered ({overload['documents_a_second']:,.0f} documents a "
        f"second), {overload['refused']:,} got a 503, {overload['failed']:,} anything else. Memory grew by "
        f"{overload['growth_mb']:.0f} MB from the first third to the end, of {overload['peak_mb']:,.0f} MB. One text "
        f"afterwards took {overload['after_ms']['p50']:.1f} ms (p50)."
    )
    return [
        "## The server beside the library",
        f"The linear method on {found['set']} ({found['labels']:,} labels), 10 labels a text, vectorising included, "
        "over loopback: `python -m benchmarks.serving`. Library and server each had the same one core and one thread; "
        f"the clients had the others. {found['seconds']:.0f} s a row.{disturbed((library, server))}",
        table(["", "clients", "requests/s", "documents/s", "p50, ms", "p99, ms"], rows),
        f"With {TEXTS} texts a request the server reaches {100 * found['ratio']:.0f} % of the library's documents a "
        f"second ({'holds' if found['holds']['ratio'] else 'does not hold'}: {100 * WANTED:.0f} % wanted).",
        overload_told,
        *([_told_of_workers(found["workers"])] if "workers" in found else []),
    ]


def _told_of_workers(found: Found) -> str:
    one, several = found["1"], found[str(_WORKERS)]
    return (
        f"Workers, one text a request, {one['clients']} clients, on cores that the clients share: one answers "
        f"{one['requests_a_second']:,.0f} requests a second (p50 {one['ms']['p50']:.1f} ms), {_WORKERS} answer "
        f"{several['requests_a_second']:,.0f} (p50 {several['ms']['p50']:.1f} ms), {found['gain']:.2f} times as many."
        f"{disturbed([found])}"
    )


def _cells(case: Found) -> list[str]:
    return [
        str(case["clients"]),
        f"{case['requests_a_second']:,.1f}",
        f"{case['documents_a_second']:,.0f}",
        f"{case['ms']['p50']:.1f}",
        f"{case['ms']['p99']:.1f}",
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--set-name", default="eurlex57k", metavar="SET", help="whose test texts are sent")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    add_options(parser, "data", "work", timeout=3600, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    with locate(options.set_name, options.data) as folder:
        model = work_folder(options.work) / NAME / options.set_name
        yield NAME, measure(folder, model, options.seconds, limits_of(options))


PHASES = {"train": train, "library": library, "server": server, "workers": workers}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure the server on loopback.",
    phases=PHASES,
    packages=("xmtc", "fastapi", "uvicorn", "pydantic", "numpy", "scipy", "numba"),
    measures=("xmtc.app.rest", *method_roots("linear")),
    arguments=_add_arguments,
    measure=_measured,
    holds=lambda result: all(result["holds"].values()),
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
