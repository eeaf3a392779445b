"""Annif: its tfidf, omikuji and mllm backends, and an ensemble of them, through its Python API.

The vocabulary is written as SKOS and the configuration as `projects.cfg`, the files that a user of Annif writes. An
ensemble that learns does so on documents that the backends have not seen.
"""

from __future__ import annotations

import configparser
import re
import shutil
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import nltk.data
import numpy as np
import rdflib
from annif.corpus.document import DocumentList
from annif.corpus.types import Document, SubjectSet
from annif.parallel import ProjectSuggestMap, get_pool
from annif.registry import AnnifRegistry
from annif.vocab import VocabFileSKOS
from rdflib.namespace import RDF, SKOS

from benchmarks.framework import Clock, Found, folder_mb
from benchmarks.peers.drivers.job import Job, environment, labels, matrix, texts, write_top

_SOURCES = ("tfidf", "omikuji", "mllm")
_ENSEMBLE = "ensemble"
_VOCABULARY, _LANGUAGE = "labels", "en"
_LABEL = "urn:label:"  # before the number of a label
# of punkt_tab, by which NLTK finds sentences; Annif would download it
nltk.data.path.insert(0, str(distribution("llama-index-core").locate_file("llama_index/core/_static/nltk_cache")))


def train(job: Job) -> Found:
    """Load the vocabulary, train each backend, then the ensemble if it learns."""
    Y, documents, model = matrix(job, "Y.train"), texts(job, "train"), Path(job["model"])
    labels_of = np.split(Y.indices, Y.indptr[1:-1])
    parts, seconds = _split(len(documents), job), dict[str, float]()
    _prepare(job)
    with Clock() as clock:
        with Clock() as load:
            registry, places = _load_vocabulary(job)
        for name, part in parts.items():
            subjects = [SubjectSet(places[label] for label in labels_of[i]) for i in part]
            corpus = DocumentList(list(map(Document, (documents[i] for i in part), subjects)))
            with Clock() as stage:
                registry.get_project(name).train(corpus, jobs=job["threads"])
            seconds[name] = stage.seconds
    for path in (model / "labels.ttl", *model.glob("projects/*/*-train*")):  # to train again; no part of the model
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {
        "seconds": clock.seconds,
        "stages": {"vocabulary": load.seconds, **seconds},
        "documents": {name: len(part) for name, part in parts.items()},
        "model_mb": folder_mb(model),
        **environment("annif", "omikuji", "scikit-learn", "nltk", "tensorflow-cpu", "keras"),
    }


def predict(job: Job) -> Found:
    """Rank all test documents in Annif's batches, in as many processes as asked for."""
    n_labels, documents = matrix(job, "Y.train").shape[1], DocumentList(list(map(Document, texts(job, "test"))))
    _prepare(job)
    registry = _open(job)
    with Clock() as load:
        labels_of = np.array([_number(subject.uri) for subject in registry.get_vocab(_VOCABULARY).subjects])
        registry.get_project(_ENSEMBLE).initialize(parallel=job["threads"] > 1)
    suggest = ProjectSuggestMap(registry, [_ENSEMBLE], backend_params=None, limit=None, threshold=0.0).suggest_batch
    processes, pool_class = get_pool(job["threads"])
    rows = []
    with Clock() as clock, pool_class(processes) as pool:
        for found, _ in pool.imap(suggest, documents.doc_batches):
            for row in found[_ENSEMBLE]:
                best = (int(labels_of[suggestion.subject_id]) for suggestion in row)
                rows.append([label for label in best if label < n_labels][: job["k"]])
    write_top(job, rows)
    return {"seconds": clock.seconds, "load_seconds": load.seconds}


def _split(n: int, job: Job) -> dict[str, np.ndarray]:
    """Return the documents that each project trains on: an ensemble that learns has those that are held out of the
    others; mllm has some of the others."""
    settings, order = job["settings"], np.random.default_rng(job["seed"]).permutation(n)
    held = min(int(settings.get("held_out", 0) * n), settings.get("most_held_out", n))
    seen = order[held:]
    parts = {"tfidf": seen, "omikuji": seen, "mllm": seen[: settings["mllm_documents"]]}
    if held:
        parts[_ENSEMBLE] = order[:held]
    return {name: np.sort(part) for name, part in parts.items()}


def _prepare(job: Job) -> None:
    """Limit the threads and seed the generators."""
    np.random.seed(job["seed"])  # mllm's
    if job["settings"]["ensemble"] == "nn_ensemble":
        import keras
        import tensorflow

        tensorflow.config.threading.set_intra_op_parallelism_threads(job["threads"])
        tensorflow.config.threading.set_inter_op_parallelism_threads(job["threads"])
        keras.utils.set_random_seed(job["seed"])


def _load_vocabulary(job: Job) -> tuple[AnnifRegistry, dict[int, int]]:
    """Make Annif's folder; return its projects, and the subject that each label is."""
    model = Path(job["model"])
    model.mkdir(parents=True)
    _write_vocabulary(labels(job), model / "labels.ttl")
    _write_projects(job["settings"], model / "projects.cfg")
    registry = _open(job)
    vocabulary = registry.get_vocab(_VOCABULARY)
    vocabulary.load_vocabulary(VocabFileSKOS(str(model / "labels.ttl")))
    return registry, {_number(subject.uri): place for place, subject in vocabulary.subjects.active}


def _open(job: Job) -> AnnifRegistry:
    model = Path(job["model"])
    return AnnifRegistry(str(model / "projects.cfg"), str(model), init_projects=False)


def _number(uri: str) -> int:
    return int(uri.removeprefix(_LABEL))


def _write_vocabulary(described: list[dict[str, Any]], path: Path) -> None:
    """Write SKOS concepts, numbered in the given order; of a label without a name, the words in it are its name."""
    graph = rdflib.Graph()
    graph.bind("skos", SKOS)
    concepts = [rdflib.URIRef(f"{_LABEL}{number}") for number in range(len(described))]
    for concept, label in zip(concepts, described, strict=True):
        name = label["name"]
        if name == label["label"]:
            name = re.sub(r"[\W_]+", " ", name).strip() or name
        graph.add((concept, RDF.type, SKOS.Concept))
        graph.add((concept, SKOS.prefLabel, rdflib.Literal(name, _LANGUAGE)))
        for other in label["alternatives"]:
            graph.add((concept, SKOS.altLabel, rdflib.Literal(other, _LANGUAGE)))
        for parent in label["parents"]:
            graph.add((concept, SKOS.broader, concepts[parent]))
            graph.add((concepts[parent], SKOS.narrower, concept))
    graph.serialize(path, format="turtle")


def _write_projects(settings: dict[str, Any], path: Path) -> None:
    """Write Annif's configuration: its defaults, but for the rival's settings of each project."""
    config = configparser.ConfigParser()
    for name in (*_SOURCES, _ENSEMBLE):
        common = {"name": name, "language": _LANGUAGE, "vocab": _VOCABULARY}
        if name == _ENSEMBLE:
            own = {"backend": settings["ensemble"], "sources": ",".join(_SOURCES)}
        else:
            own = {"backend": name, "analyzer": settings["analyzer"], **settings.get(name, {})}
        config[name] = {key: str(value) for key, value in (common | own).items()}
    with path.open("w", encoding="utf-8") as file:
        config.write(file)


PHASES = {"train": train, "predict": predict}
