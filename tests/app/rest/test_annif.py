"""Annif's results: sorted by the score that is shown, with names in the language asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

import httpx

import xmtc
from xmtc.app.rest.annif import list_results
from xmtc.app.rest.answers import Kept
from xmtc.app.rest.application import build_application
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.models import Models
from xmtc.core.labels import Concept, LabelSet

LABELS = LabelSet.build(["a", "b", "c", "d"], [Concept("b", "beta")])


def test_results_are_sorted_by_probability() -> None:
    """A frequent label of a higher score may be less likely than a rare one."""
    kept = [Kept(0, 0.9, 0.3), Kept(1, 0.8, 0.7), Kept(2, 0.5, 0.3), Kept(3, 0.4, 0.05)]
    found = list_results(kept, LABELS, 0.1)
    assert [(one["uri"], one["label"], one["score"]) for one in found] == [
        ("b", "beta", 0.7),
        ("a", "a", 0.3),  # ties stay in the order of the ranking
        ("c", "c", 0.3),
    ]


def test_scores_are_kept_between_0_and_1() -> None:
    found = list_results([Kept(0, 3.5, None), Kept(1, 0.5, None), Kept(2, -1.0, None)], LABELS, 0.0)
    assert [(one["uri"], one["score"]) for one in found] == [("a", 1.0), ("b", 0.5), ("c", 0.0)]


def test_names_are_in_the_language_asked_for(tmp_path: Path) -> None:
    concepts = [
        Concept("sugar", "sugar", translations=(("de", "Zucker"), ("en", "sugar"))),
        Concept("fish", "fish", translations=(("en", "fish"),)),
    ]
    texts = ["sugar beet", "sweet sugar", "fish net", "fresh fish"]
    corpus = xmtc.Corpus.from_lists(texts, [["sugar"], ["sugar"], ["fish"], ["fish"]], concepts=concepts)
    xmtc.train(corpus, out=tmp_path / "m")

    async def ask() -> list[Any]:
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test/v1/projects") as client:
            found = [(await client.get("/m")).json()]
            for language in ({}, {"language": "de"}, {"language": "de-AT"}, {"language": "xx"}):
                one = await client.post("/m/suggest", data={"text": "sugar", **language})
                documents = {"documents": [{"text": "sugar"}]}
                many = await client.post("/m/suggest-batch", json=documents, params=language)
                assert one.json()["results"] == many.json()[0]["results"]
                found.append({result["uri"]: result["label"] for result in one.json()["results"]})
            return found

    metrics = Metrics()
    models = Models({"m": tmp_path / "m"}, 1024, 30, metrics)
    application = build_application(models, metrics, None, timeout=30)
    try:
        project, usual, german, austrian, unknown = asyncio.run(ask())
    finally:
        models.close()
    assert project["vocab"]["languages"] == ["en", "de"]
    assert (project["language"], project["vocab_language"]) == ("en", "en")
    assert usual == unknown == {"sugar": "sugar", "fish": "fish"}
    assert german == austrian == {"sugar": "Zucker", "fish": "fish"}
