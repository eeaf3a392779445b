"""Training beside a busy process, and on a quiet machine: waiting threads as xmtc has them and as libraries have them.

python -m benchmarks.contention [--threads 2] [--steps 40]

LightXML at the size of the recipe lightxml/cooking-cpu, with random weights and documents: what is measured is steps a
second. "Settled" is as xmtc has the threads (core/threads.py, core/spinning.py), "plain" as they are without it.
Each way runs in a process of its own, one after another, all in one run: beside a process that keeps one core busy, and
alone. → results/contention.json; the exit code is 1 if a limit below is not kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.framework import Benchmark, Found, Limits, Measured, add_options, at_least, limits_of
from benchmarks.framework.markdown import table
from benchmarks.framework.sources import method_roots
from benchmarks.training_steps import Stamps, draw_documents

NAME = "contention"
BESIDE, ALONE = 0.6, 0.97  # least share of the better plain way's steps, beside a busy process and alone
_LENGTH, _BATCH, _LABELS = 32, 32, 3000  # of lightxml/cooking-cpu
_SIZES = {  # of MiniLM
    "vocab_size": 30_522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
}
_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
# name → (settled, threads of the job or 1, beside a busy process)
_WAYS = {
    "settled, beside": (True, None, True),
    "plain, beside": (False, None, True),
    "plain on one thread, beside": (False, 1, True),
    "settled, alone": (True, None, False),
    "plain, alone": (False, None, False),
}


def measure(job: Found, limits: Limits) -> Found:
    """Run every way and return what each found."""
    ways = {}
    for name, (settled, threads, beside) in _WAYS.items():
        own = {**job, "threads": threads or job["threads"]}
        patience = Limits(limits.timeout, 0) if beside else limits  # our own busy process never gets quiet
        with _variables(settled), _busy(beside):
            ways[name] = BENCHMARK.run("train", own, patience)
    return {"facts": BENCHMARK.facts(job["threads"]), "sizes": job, "ways": ways}


def train(job: Found) -> Found:
    """Some steps in the training loop; the first is not counted."""
    from xmtc.catalogue import open_method

    open_method("lightxml")  # before torch is imported, as in `xmtc train`
    import torch
    from transformers import BertConfig, BertModel

    from xmtc.core.config import build
    from xmtc.methods.lightxml import method as lightxml
    from xmtc.neural.encoder import Encoder, TokenLayout
    from xmtc.neural.trainer import fit

    torch.manual_seed(0)
    settings = {"head": {"mode": "small"}, "train": {"epochs": 1, "batch_size": _BATCH}}
    config = build(lightxml.LightxmlConfig, settings)
    sizes = {**_SIZES, **job["encoder"]}
    layout = TokenLayout(pad_id=0, segments=True)
    network = lightxml.LightxmlNetwork(Encoder(BertModel(BertConfig(**sizes)), layout), config, _LABELS, None)
    data = draw_documents(job["steps"] * _BATCH, _LENGTH, sizes["vocab_size"], _LABELS, layout, shortest=_LENGTH // 2)
    stamps = Stamps()
    groups = lightxml.groups(network, config)
    fit(network, groups, data, config.train, dev=None, seed=0, skips_parameters=True, progress=stamps)
    return {"steps_per_second": 1000 / stamps.ms, "torch_threads": torch.get_num_threads()}


@contextmanager
def _variables(settled: bool) -> Iterator[None]:
    """Leave the libraries' variables to `import xmtc` in the phase's process, or make it leave them as they are."""
    before = {name: os.environ.pop(name, None) for name in _VARIABLES}
    if not settled:
        os.environ["KMP_BLOCKTIME"] = "200"  # Intel's own default; xmtc takes it for the user's word
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _busy(wanted: bool) -> Iterator[None]:
    """Keep one core busy."""
    if not wanted:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def shares(result: Found) -> tuple[float, float]:
    """Return settled steps as a share of the better plain way's, beside a busy process and alone."""
    speed = {name: way["steps_per_second"] for name, way in result["ways"].items()}
    beside = max(speed["plain, beside"], speed["plain on one thread, beside"])
    return speed["settled, beside"] / beside, speed["settled, alone"] / speed["plain, alone"]


def holds(result: Found) -> bool:
    """Say whether both limits are kept."""
    beside, alone = shares(result)
    return beside >= BESIDE and alone >= ALONE


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    beside, alone = shares(result)
    rows = [[name, str(way["torch_threads"]), f"{way['steps_per_second']:.2f}"] for name, way in result["ways"].items()]
    return [
        "## Training beside a busy process",
        f"Steps a second of LightXML at the size of `lightxml/cooking-cpu`, {result['sizes']['steps']} steps a way. "
        "Settled: waiting threads sleep unless all cores are free, as xmtc has it; plain: as the libraries have it.",
        table(["", "threads", "steps a second"], rows),
        f"Beside a busy process, settled training makes {beside:.0%} of the steps of the better plain way (limit "
        f"{BESIDE:.0%}); alone it makes {alone:.0%} (limit {ALONE:.0%}).",
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=at_least(2), default=40, help="steps of training, the first not timed")
    add_options(parser, threads=2, timeout=1800, patience=300)


def _measured(options: argparse.Namespace) -> Measured:
    job = {"steps": options.steps, "threads": options.threads, "encoder": {}}
    yield NAME, measure(job, limits_of(options))


PHASES = {"train": train}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure training beside a busy process and alone, with waiting threads as xmtc and as libraries have them.",
    phases=PHASES,
    packages=("xmtc", "torch", "accelerate", "numpy"),
    measures=method_roots("lightxml"),
    arguments=_add_arguments,
    measure=_measured,
    describe=describe,
    holds=holds,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
