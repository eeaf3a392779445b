"""napkinXC's probabilistic label tree, through its Python API."""

from __future__ import annotations

from napkinxc.models import PLT

from benchmarks.framework import Clock, Found, folder_mb
from benchmarks.peers.drivers.job import Job, alone, environment, matrix, write_top


def train(job: Job) -> Found:
    """Train; the model is written while it is trained."""
    X, Y = matrix(job, "X.train"), matrix(job, "Y.train")
    C = {"liblinear_c": job["settings"]["C"]} if "C" in job["settings"] else {}
    model = PLT(job["model"], threads=job["threads"], seed=job["seed"], **C)
    with Clock() as clock:
        model.fit(X, Y)
    return {"seconds": clock.seconds, "model_mb": folder_mb(job["model"]), **environment("napkinxc")}


def predict(job: Job) -> Found:
    """Rank all test documents in one call."""
    X = matrix(job, "X.test")
    model = PLT(job["model"], threads=job["threads"], seed=job["seed"])
    with Clock() as load:
        model.load()
    with Clock() as clock:
        rows = model.predict(X, top_k=job["k"])
    write_top(job, rows)
    return {"seconds": clock.seconds, "load_seconds": load.seconds}


def single(job: Job) -> Found:
    """Rank documents one by one."""
    model = PLT(job["model"], threads=1, seed=job["seed"])
    model.load()
    return alone(job, lambda row: model.predict(row, top_k=5))


PHASES = {"train": train, "predict": predict, "single": single}
