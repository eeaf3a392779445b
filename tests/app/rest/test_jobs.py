"""Jobs and models inside one process: ranked together as if alone, one bad job costs no other, time runs out."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

from fastapi import FastAPI

from tests.app.conftest import documents, xmtc
from xmtc import api
from xmtc.app.rest.answers import Kept, Limits
from xmtc.app.rest.application import build_application
from xmtc.app.rest.jobs import Explained, SuggestJob, answer_jobs
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.models import Models
from xmtc.core.errors import DataError
from xmtc.core.explanation import Explanation
from xmtc.core.model import Documents, Model
from xmtc.core.ranking import Ranking

TEXTS = [row["text"] for row in documents(6, seed=5)]


def write(rows: Sequence[Sequence[Kept]], explained: Explained) -> bytes:
    return json.dumps([rows, [sorted(found) for found in explained]]).encode()


def answers(model: Model, jobs: Sequence[SuggestJob]) -> list[bytes | Exception]:
    found = dict(answer_jobs("test", model, Metrics(), jobs))
    return [found[job] for job in jobs]


class Delicate:
    """A model that ranks as another does, but stumbles over some words."""

    def __init__(self, model: Model) -> None:
        self.model, self.labels, self.manifest = model, model.labels, model.manifest
        self.calls: list[int] = []

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        self.calls.append(len(documents))
        if "bug" in documents:
            raise RuntimeError("a bug")
        if "mistake" in documents:
            raise DataError("a mistake")
        return self.model.rank(documents, k)

    def explain(self, text: str, label: str) -> Explanation:
        return self.model.explain(text, label)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        raise NotImplementedError


def jobs_of_many_kinds() -> list[SuggestJob]:
    return [
        SuggestJob(TEXTS[:2], Limits(1), write),
        SuggestJob(TEXTS[2:3], Limits(5), write),
        SuggestJob(TEXTS[3:], Limits(3, min_score=0.3), write),
        SuggestJob(TEXTS[:2], Limits(3), write, include=("t1", "t2")),
        SuggestJob(TEXTS[2:4], Limits(2), write, include=("t1", "t2")),
        SuggestJob(TEXTS[:1], Limits(2), write, exclude=("t1",), explain=True),
        SuggestJob(TEXTS[:1], Limits(5), write, explain=frozenset({0, 2})),
    ]


def test_together_jobs_are_answered_as_if_alone(model: Path) -> None:
    delicate = Delicate(api.load(model))
    together = answers(delicate, jobs_of_many_kinds())
    # 3 rankings, one for each set of labels; explaining calls the model inside
    assert delicate.calls == [2 + 1 + 3 + 1, 2 + 2, 1]
    assert together == [answers(delicate, [job])[0] for job in jobs_of_many_kinds()]


@pytest.mark.parametrize(("word", "error"), [("bug", RuntimeError), ("mistake", DataError)])
def test_a_bad_job_costs_no_other(model: Path, word: str, error: type[Exception]) -> None:
    jobs = [
        SuggestJob(TEXTS[:1], Limits(2), write),
        SuggestJob([word], Limits(2), write),
        SuggestJob(TEXTS[1:], Limits(2), write),
    ]
    found = answers(Delicate(api.load(model)), jobs)
    assert isinstance(found[1], error)
    alone = [answers(api.load(model), [job])[0] for job in (jobs[0], jobs[2])]
    assert [found[0], found[2]] == alone


def test_an_abandoned_job_is_not_worked_on(model: Path) -> None:
    delicate = Delicate(api.load(model))
    assert dict(answer_jobs("test", delicate, Metrics(), [SuggestJob(TEXTS, Limits(2), write, abandoned=True)])) == {}
    assert delicate.calls == []


def serve_in_process(folder: Path, timeout: float, *requests: dict[str, Any]) -> list[httpx.Response]:
    async def main() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return [await client.post("/v1/models/one/suggest", json=request) for request in requests]

    metrics = Metrics()
    models = Models({"one": folder}, 1024, timeout, metrics)
    application = build_application(models, metrics, None, timeout=30)
    try:
        return asyncio.run(main())
    finally:
        models.close()


def test_what_takes_too_long_is_given_up(model: Path) -> None:
    answered = threading.Event()

    def write_late(rows: Sequence[Sequence[Kept]], explained: Explained) -> bytes:
        answered.wait(30)
        return write(rows, explained)

    async def never() -> None:
        await asyncio.Event().wait()

    async def main() -> httpx.Response:
        # a job that is written only after the request is answered keeps the model busy, however fast the machine
        batcher = models.get("one").batcher
        before = asyncio.create_task(batcher.submit(SuggestJob(TEXTS[:1], Limits(1), write_late), 30, never))
        await asyncio.sleep(0)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=application), base_url="http://test") as client:
            late = await client.post("/v1/models/one/suggest", json={"texts": TEXTS[1:]})
        answered.set()
        assert json.loads(await before)[0]  # what was begun is answered
        return late

    metrics = Metrics()
    models = Models({"one": model}, 1024, 0.02, metrics)
    application = build_application(models, metrics, None, timeout=30)
    try:
        late = asyncio.run(main())
    finally:
        answered.set()
        models.close()
    assert late.status_code == 504
    assert late.json()["detail"].startswith("no answer within 0.02 s")


def test_a_calibrated_model_tells_probabilities_and_takes_a_threshold(model: Path, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "calibrated"
    shutil.copytree(model, folder)
    assert xmtc("calibrate", folder, data / "test.jsonl").code == 0
    everything, some = serve_in_process(folder, 30, {"texts": TEXTS[:1]}, {"texts": TEXTS[:1], "threshold": 0.5})
    labels = everything.json()["results"][0]["labels"]
    assert all(0 <= label["probability"] <= 1 for label in labels)
    assert some.json()["results"][0]["labels"] == [label for label in labels if label["probability"] >= 0.5]


def test_a_bug_is_told_without_its_traceback(model: Path) -> None:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app=application, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/bug")

    def bug() -> None:
        raise RuntimeError(f"a secret of {model}")

    metrics = Metrics()
    models = Models({"one": model}, 1024, 30, metrics)
    application = build_application(models, metrics, None, timeout=30)
    cast(FastAPI, application._app).add_api_route("/bug", bug)
    answer = asyncio.run(main())
    models.close()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["detail"]) == (500, "the server failed to answer; its log says why")
    assert 'xmtc_requests_total{method="GET",route="/bug",status="500"} 1.0' in metrics.text().decode()
