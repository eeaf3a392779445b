"""Turn texts into feature rows on disk: tasks count words and build rows over shards of documents.

The matrix has the bias as its last column, as the solver expects, and holds only the labelled documents. It is
memory-mapped: a task uses memory for the rows that it reads, and the system may free them at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from xmtc.core import parallel
from xmtc.core.stages import finish_stage, is_finished, read_stage, write_stage
from xmtc.core.texts import Texts
from xmtc.features.tfidf import TermCounts, Tfidf, count_shard, fit_shards
from xmtc.linear.tree import Biased, add_bias
from xmtc.methods.linear.tasks.work import Job, Work, group

_SHARD = 1 << 22  # bytes of text in a shard
_TASK = 1 << 26  # bytes of text per task
_TEXTS, _TFIDF, _MATRIX, _ROWS = "texts", "tfidf", "matrix", "rows"
_PARTS = ("indptr", "indices", "data")  # of a CSR matrix


def write_rows(work: Work, texts: Texts, labelled: NDArray[np.int64]) -> Tfidf:
    """Fit TF-IDF to texts, and write the matrix of the labelled texts."""
    settings = work.config.tfidf
    if not is_finished(work.folder, _TEXTS):
        with write_stage(work.folder, _TEXTS) as folder:
            np.save(folder / "buffer.npy", texts.buffer, allow_pickle=False)
            np.save(folder / "offsets.npy", texts.offsets, allow_pickle=False)
            np.save(folder / "starts.npy", _cut(texts.offsets), allow_pickle=False)
            np.save(folder / "labelled.npy", labelled, allow_pickle=False)
        texts.release()
    starts = read_stage(work.folder, _TEXTS)["starts"]
    tasks = group(np.diff(texts.offsets[starts]).tolist(), _TASK)
    if not is_finished(work.folder, _MATRIX):
        work.run("counting words", count_task, [(f"terms/{parts[0]}", parts) for parts in tasks])
        shards = _Shards(work.folder, tasks)
        finish_stage(work.folder, _TFIDF, lambda: fit_shards(shards, len(texts), settings, work.progress).arrays())
        work.run("vectorising", transform_task, [(f"{_ROWS}/{parts[0]}", parts) for parts in tasks])
        _join(work.folder, tasks)
    return Tfidf.from_arrays(read_stage(work.folder, _TFIDF), settings)


def write_features(work: Work, X: sp.csr_matrix, labelled: NDArray[np.int64]) -> None:
    """Write the matrix of a corpus that has features instead of texts."""

    def compute() -> dict[str, NDArray[Any]]:
        biased = add_bias(X.astype(np.float32)[labelled], work.config.solver.bias)
        return {**dict(zip(_PARTS, biased[:3], strict=True)), "width": np.array(biased[3])}

    finish_stage(work.folder, _MATRIX, compute)


def read_rows(folder: Path) -> Biased:
    """Memory-map the matrix."""
    found = read_stage(folder, _MATRIX, "r+")
    return found["indptr"], found["indices"], found["data"], int(found["width"])


def without_bias(biased: Biased, bias: float) -> sp.csr_matrix:
    """Return the matrix without its last column, in memory."""
    indptr, indices, data, width = biased
    kept = slice(None) if bias == 0 else indices != width - 1
    starts = indptr if bias == 0 else indptr - np.arange(len(indptr))
    return sp.csr_matrix((data[kept], indices[kept], starts), shape=(len(indptr) - 1, width - (bias != 0)))


def count_task(job: Job) -> None:
    """Count the words of some shards; one stage stores them all, with the shard's number in the array names."""

    def count(shard: int) -> TermCounts:
        return count_shard(_shard(job.folder, shard)[0], job.config.tfidf)

    counted = parallel.run(count, job.parts)
    arrays = {
        f"{name}-{shard}": array
        for shard, found in zip(job.parts, counted, strict=True)
        for name, array in found._asdict().items()
    }
    finish_stage(job.folder, job.stage, lambda: arrays)


def transform_task(job: Job) -> None:
    """Write the rows of some shards' labelled documents."""
    tfidf = Tfidf.from_arrays(read_stage(job.folder, _TFIDF), job.config.tfidf)
    if is_finished(job.folder, job.stage):
        return
    with write_stage(job.folder, job.stage) as out:  # shard by shard: the rows of a whole task may not fit into memory
        for shard in job.parts:
            texts, labelled = _shard(job.folder, shard)
            rows = tfidf.transform(texts)
            biased = add_bias(rows if len(labelled) == len(texts) else rows[labelled], job.config.solver.bias)
            arrays = {"sizes": np.diff(biased[0]), "indices": biased[1], "data": biased[2]}
            for name, array in arrays.items():
                np.save(out / f"{name}-{shard}.npy", array, allow_pickle=False)
        np.save(out / "width.npy", np.array(biased[3]), allow_pickle=False)


class _Shards:
    """The counts of all shards; each iteration reads them one by one."""

    def __init__(self, folder: Path, tasks: list[list[int]]) -> None:
        self._folder, self._tasks = folder, tasks

    def __iter__(self) -> Iterator[TermCounts]:
        for parts in self._tasks:
            found = read_stage(self._folder, f"terms/{parts[0]}", "r+")
            for shard in parts:
                yield TermCounts(*(found[f"{name}-{shard}"] for name in TermCounts._fields))


def _cut(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first document of each shard, and the end; a document longer than a shard is not split."""
    marks = np.arange(offsets[0], offsets[-1], _SHARD)
    return np.unique(np.append(np.searchsorted(offsets[:-1], marks), len(offsets) - 1)).astype(np.int64)


def _shard(folder: Path, number: int) -> tuple[Texts, NDArray[np.int64]]:
    """Return the texts of a shard, and which of them are labelled."""
    found = read_stage(folder, _TEXTS)
    first, last = found["starts"][number : number + 2].tolist()
    labelled = found["labelled"]
    mine = slice(*np.searchsorted(labelled, [first, last]).tolist())
    return Texts(found["buffer"], found["offsets"][first : last + 1]), labelled[mine] - first


def _join(folder: Path, tasks: list[list[int]]) -> None:
    """Concatenate the rows of all tasks."""

    def read(name: str) -> Iterator[NDArray[Any]]:
        for shards in tasks:  # one task's files at a time: a process cannot map the files of all tasks
            found = read_stage(folder, f"{_ROWS}/{shards[0]}")
            yield from (found[f"{name}-{shard}"] for shard in shards)

    sizes = np.concatenate([np.array(part) for part in read("sizes")])
    with write_stage(folder, _MATRIX) as out:
        np.save(out / "indptr.npy", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), allow_pickle=False)
        np.save(out / "width.npy", read_stage(folder, f"{_ROWS}/{tasks[0][0]}")["width"], allow_pickle=False)
        for name in _PARTS[1:]:
            with (out / f"{name}.npy").open("wb") as file:
                header = {"descr": next(read(name)).dtype.str, "fortran_order": False, "shape": (int(sizes.sum()),)}
                npy.write_array_header_1_0(file, header)
                for part in read(name):
                    file.write(part.data)
