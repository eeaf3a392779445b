"""omikuji, through its Python API."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import omikuji
import scipy.sparse as sp

from benchmarks.framework import Clock, Found, folder_mb
from benchmarks.peers.drivers.job import Job, alone, environment, matrix, write_top


def train(job: Job) -> Found:
    """Train on a file in the XML Repository's layout; writing that file is not timed, reading it is."""
    file = Path(job["data"], "train.txt")
    _write(file, matrix(job, "X.train"), matrix(job, "Y.train"))
    Path(job["model"]).mkdir(parents=True, exist_ok=True)
    settings = omikuji.Model.default_hyper_param()
    settings.linear_c = job["settings"].get("C", settings.linear_c)
    with Clock() as clock:
        omikuji.Model.train_on_data(str(file), settings, n_threads=job["threads"]).save(job["model"])
    return {"seconds": clock.seconds, "model_mb": folder_mb(job["model"]), **environment("omikuji")}


def predict(job: Job) -> Found:
    """Rank one document at a time, from as many Python threads as asked for."""
    X = matrix(job, "X.test")
    rows = [
        list(zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True))
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    with Clock() as load:
        model = omikuji.Model.load(job["model"])
    model.init_prediction_thread_pool(job["threads"])

    def rank(part: np.ndarray) -> list[list[tuple[int, float]]]:
        beam = job["settings"]["beam_size"]
        return [model.predict(rows[i], beam_size=beam, top_k=job["k"]) for i in part]

    with Clock() as clock, ThreadPoolExecutor(job["threads"]) as pool:
        parts = list(pool.map(rank, np.array_split(np.arange(len(rows)), job["threads"])))
    write_top(job, [[label for label, _ in row] for part in parts for row in part])
    return {"seconds": clock.seconds, "load_seconds": load.seconds}


def single(job: Job) -> Found:
    """Rank documents one by one."""
    model = omikuji.Model.load(job["model"])
    model.init_prediction_thread_pool(1)
    beam = job["settings"]["beam_size"]

    def rank(row: sp.csr_matrix) -> object:
        pairs = list(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        return model.predict(pairs, beam_size=beam, top_k=5)

    return alone(job, rank)


def _write(path: Path, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for x, y in zip(X, Y, strict=True):
            labels = ",".join(map(str, y.indices.tolist()))
            features = (f"{i}:{v:.7g}" for i, v in zip(x.indices.tolist(), x.data.tolist(), strict=True))
            file.write(" ".join([labels, *features]) + "\n")  # a blank at the end of a line is refused


PHASES = {"train": train, "predict": predict, "single": single}
