"""Training and bulk prediction of linear models on Ray: one node, two nodes, and this process alone.

python -m benchmarks.engines [--size 100000:200000] [--recipe linear/fast] [--nodes 1,2] [--work DIR]

Documents are synthetic. Nodes are those of a Ray cluster on this machine, of one core each; this process alone has one
thread. Each way has a process of its own. The engine's own cost is what one node takes beyond this process. Model
folders are compared byte by byte. → results/engines.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.framework import Benchmark, Clock, Found, Limits, Measured, add_options, limits_of
from benchmarks.framework.markdown import disturbed, table
from benchmarks.framework.sources import method_roots
from benchmarks.linear import METHOD, warm_up
from benchmarks.scale import make
from xmtc import api
from xmtc.engines import open_engine

NAME = "engines"
TRAINING, PREDICTION = 1.6, 1.7  # times as fast that two nodes must be
_SHARDS, _PER_SHARD = 40, 20_000
_STORE = 100_000_000  # bytes of a node's object store


def measure(job: Found, folder: Path, limits: Limits) -> Found:
    """Run every way in a folder and return what each found."""
    places = {**job, "data": str(folder / "data"), "model": str(folder / "model"), "shards": str(folder / "shards")}
    found: Found = {"facts": BENCHMARK.facts(1, job["seed"]), "job": job, "make": BENCHMARK.run("make", places, limits)}
    found["alone"] = BENCHMARK.run("alone", places, limits)
    found["nodes"] = {str(n): BENCHMARK.run("nodes", {**places, "nodes": n}, limits) for n in job["nodes"]}
    return found


def alone(job: Found) -> Found:
    """Train in this process, write shards of test documents, and tag them."""
    warm_up(job)
    corpus = api.read_corpus(job["data"], "train")
    with Clock() as training:
        api.train(corpus, METHOD, recipe=job["recipe"], seed=job["seed"], out=job["model"])
    _write_shards(job)
    return {"train_seconds": training.seconds, **_predict(job, "local", None), "sha256": digest(Path(job["model"]))}


def nodes(job: Found) -> Found:
    """Train and tag on a cluster of one-core nodes, and watch the memory of its workers."""
    corpus = api.read_corpus(job["data"], "train")
    out = Path(job["model"]).with_name(f"model-{job['nodes']}")
    with _cluster(job["nodes"]) as address, _watch() as peak:
        with open_engine("ray", address) as engine:
            list(
                engine.run(_compile, list(range(2 * job["nodes"])))
            )  # workers load what they need before the clock runs
            with Clock() as training:
                api.train(corpus, METHOD, recipe=job["recipe"], seed=job["seed"], out=out, engine="ray")
            found = _predict(job, "ray", None)
        return {"train_seconds": training.seconds, **found, "sha256": digest(out), "worker_mb": peak[0]}


def digest(folder: Path) -> str:
    """Return a sha256 over all files of a model folder."""
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        whole.update(path.relative_to(folder).as_posix().encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _write_shards(job: Found) -> None:
    """Cut test documents, again and again if there are few, into files."""
    texts = list(api.read_corpus(job["data"], "test").texts or ())
    folder = Path(job["shards"])
    folder.mkdir()
    for shard in range(_SHARDS):
        rows = ({"id": f"{shard}-{i}", "text": texts[(shard * _PER_SHARD + i) % len(texts)]} for i in range(_PER_SHARD))
        (folder / f"{shard:03d}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _predict(job: Found, engine: str, address: str | None) -> Found:
    from xmtc.app.cli import main

    with tempfile.TemporaryDirectory() as out, Clock() as clock:
        options = ["--input", job["shards"], "--output", f"{out}/tags", "--engine", engine]
        code = main(["predict", job["model"], *options, *([] if address is None else ["--address", address])])
        if code:
            raise RuntimeError(f"xmtc predict ended with {code}")
    return {"predict_seconds": clock.seconds, "documents": _SHARDS * _PER_SHARD}


def _compile(_: int) -> None:
    """Load the kernels in a worker."""
    warm_up({})
    time.sleep(0.5)  # so that every worker gets one


@contextmanager
def _cluster(n: int) -> Iterator[str]:
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    head = {"num_cpus": 0, "object_store_memory": _STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(n):
            cluster.add_node(num_cpus=1, object_store_memory=_STORE)
        yield cluster.address
    finally:
        cluster.shutdown()


@contextmanager
def _watch() -> Iterator[list[float]]:
    """Give a list whose item is the most memory, in MB, that a worker of Ray has taken."""
    peak, ended = [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(0.2):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if (process / "cmdline").read_bytes().startswith(b"ray::"):
                        own = (process / "status").read_text().partition("RssAnon:")[2]
                        peak[0] = max(peak[0], int(own.split()[0]) / 1000)
                except (OSError, ValueError, IndexError):
                    continue

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    own = result["alone"]
    rows = [_row("this process, one thread", own, own["peak_rss_mb"])]
    for n, found in result["nodes"].items():
        rows.append(_row(f"Ray, {n} node{'s' if n != '1' else ''} of one core", found, found["worker_mb"]))
    same = all(found["sha256"] == own["sha256"] for found in result["nodes"].values())
    ways = [own, *result["nodes"].values()]
    lines = [
        "## Linear models on Ray",
        f"Recipe {result['job']['recipe']} on {result['job']['documents']:,} synthetic documents with "
        f"{result['job']['labels']:,} labels; `xmtc predict` of {own['documents']:,} documents in {_SHARDS} files. "
        f"All nodes are on one machine.{disturbed(ways)} Memory is the peak of this process; of a "
        "worker of Ray, without files that it maps.",
        table(["", "train s", "predict s", "peak MB"], rows),
        f"Model folders of all ways are {'the same, byte for byte' if same else 'not the same'}.",
    ]
    if {"1", "2"} <= result["nodes"].keys():
        training, prediction = gains(result)
        lines.append(
            f"Two nodes train {training:.2f} times as fast as one (limit {TRAINING}) and predict {prediction:.2f} "
            f"times as fast (limit {PREDICTION}). One node trains in {_cost(result):.2f} times the time of this "
            "process: the cost of files and tasks."
        )
    return lines


def gains(result: Found) -> tuple[float, float]:
    """Return how many times as fast two nodes are as one, in training and in prediction."""
    one, two = result["nodes"]["1"], result["nodes"]["2"]
    return one["train_seconds"] / two["train_seconds"], one["predict_seconds"] / two["predict_seconds"]


def holds(result: Found) -> bool:
    """Say whether the limits are kept, and the bytes are the same."""
    if any(found["sha256"] != result["alone"]["sha256"] for found in result["nodes"].values()):
        return False
    training, prediction = gains(result)
    return training >= TRAINING and prediction >= PREDICTION


def _row(name: str, found: Found, mb: float) -> list[str]:
    return [name, f"{found['train_seconds']:.1f}", f"{found['predict_seconds']:.1f}", f"{mb:,.0f}"]


def _cost(result: Found) -> float:
    return float(result["nodes"]["1"]["train_seconds"] / result["alone"]["train_seconds"])


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", default="100000:200000", metavar="LABELS:DOCUMENTS")
    parser.add_argument("--recipe", default="linear/fast")
    parser.add_argument("--nodes", default="1,2", help="sizes of clusters")
    add_options(parser, "work", seed=0, timeout=3600, patience=300)


def _measured(options: argparse.Namespace) -> Measured:
    labels, documents = map(int, options.size.split(":"))
    job: dict[str, Any] = {"labels": labels, "documents": documents, "recipe": options.recipe, "seed": options.seed}
    job |= {"threads": 1, "nodes": [int(n) for n in options.nodes.split(",")]}
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        yield NAME, measure(job, Path(folder), limits_of(options))


PHASES = {"make": make, "alone": alone, "nodes": nodes}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure training and bulk prediction of linear models on Ray, on one and two nodes of one core.",
    phases=PHASES,
    packages=("xmtc", "ray", "numpy", "scipy", "numba"),
    measures=("xmtc.engines", *method_roots("linear")),
    arguments=_add_arguments,
    measure=_measured,
    describe=describe,
    holds=holds,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
