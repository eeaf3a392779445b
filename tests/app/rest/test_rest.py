"""The server's answers: shapes, filters, explanations, Annif's API, every mistake as a sentence, the OpenAPI schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.conftest import TOPICS
from tests.app.served import Served, served
from xmtc import api

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

TEXT = "regulation on sugar beet <b>quota</b> and <script>alert('ü 𝒳')</script> sweet sugar"


@pytest.fixture(scope="module")
def server(model: Path, other_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log") / "stderr"
    with served(log, model, "--name", f"two trees={other_model}") as running:
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.log


def suggest(server: Served, name: str = "first", **body: Any) -> Any:
    answer = server.client.post(f"/v1/models/{name}/suggest", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def problem_of(answer: httpx.Response, status: int) -> str:
    """The sentence of a problem that is one, and that tells nothing of this machine."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found.keys() == {"type", "title", "status", "detail"}
    assert found["status"] == status
    for secret in ("Traceback", 'File "', "site-packages", "/tmp", ".py"):
        assert secret not in answer.text
    return str(found["detail"])


def refused(server: Served, status: int, name: str = "first", **body: Any) -> str:
    return problem_of(server.client.post(f"/v1/models/{name}/suggest", json=body), status)


def test_models_are_listed_by_their_names(server: Served) -> None:
    facts = {"method": "linear", "n_labels": 5, "n_documents": 120}
    facts |= {"calibrated": False, "explains": True, "hierarchy": True}
    expected = [{"name": "first", **facts}, {"name": "two trees", **facts}]
    assert server.client.get("/v1/models").json() == {"models": expected}


def test_labels_are_the_library_s(server: Served, model: Path) -> None:
    texts = [TEXT, "fish and boats", " "]
    found = suggest(server, texts=texts, k=3)
    loaded = api.load(model)
    ranking = loaded.rank(texts, 3)
    assert found["model"] == "first"
    for row, entries, scores in zip(found["results"], ranking.labels.tolist(), ranking.scores.tolist(), strict=True):
        expected = [
            {
                "label": loaded.labels.ids[entry],
                "name": loaded.labels.names[entry],
                "count": int(loaded.labels.counts[entry]),
                "parents": [{"label": "top", "name": "everything"}],
                "score": score,
            }
            for entry, score in zip(entries, scores, strict=True)
            if entry >= 0
        ]
        assert row == {"labels": expected}


def test_filters(server: Served) -> None:
    everything = suggest(server, texts=[TEXT])["results"][0]["labels"]
    assert len(everything) == 5
    least = everything[1]["score"]
    kept = suggest(server, texts=[TEXT], min_score=least)["results"][0]["labels"]
    assert kept == [label for label in everything if label["score"] >= least]
    only = suggest(server, texts=[TEXT], include=["milk", "t5"])["results"][0]["labels"]
    assert {label["label"] for label in only} == {"t4", "t5"}
    without = suggest(server, texts=[TEXT], include=["top"], exclude=["SUGAR"])["results"][0]["labels"]
    assert {label["label"] for label in without} == {"t2", "t3", "t4", "t5"}


def test_explanations(server: Served, model: Path) -> None:
    loaded = api.load(model)
    found = suggest(server, texts=[TEXT], k=2, explain=True)["results"][0]["labels"]
    for label in found:
        expected = loaded.explain(TEXT, label["label"])
        assert label["explanation"] == {
            "spans": [list(span) for span in expected.spans],
            "path": [list(step) for step in expected.path],
            "neighbours": [],
        }
    spans = found[0]["explanation"]["spans"]
    assert [TEXT[start:end] for start, end, _ in spans].count("sugar") == 2  # counted in code points, past 𝒳
    many = suggest(server, texts=[TEXT] * 50, explain=True)["results"]
    assert all([label.keys() >= {"explanation"} for label in row["labels"]] == [True] * 2 for row in many)
    one = suggest(server, texts=[TEXT], explain=["t1"])["results"][0]["labels"]
    assert [label["label"] for label in one if "explanation" in label] == ["t1"]
    assert not any("explanation" in label for label in suggest(server, texts=[TEXT])["results"][0]["labels"])


def test_labels_are_found_by_name(server: Served) -> None:
    def find(**query: Any) -> list[str]:
        return [label["name"] for label in server.client.get("/v1/models/first/labels", params=query).json()["labels"]]

    assert (set(find(q="s")[:2]), set(find(q="s")[2:])) == ({"sugar", "steel"}, {"fishery", "customs"})
    assert find(q="MILK") == ["milk"]
    assert find(q="t4") == ["milk"]
    assert find(q="every") == ["everything"]
    assert len(find(limit=3)) == 3
    assert find(q="zzz") == []
    found = server.client.get("/v1/models/first/labels", params={"q": "milk"}).json()["labels"]
    assert found[0].keys() == {"label", "name", "count", "parents"}


MISTAKES: list[tuple[dict[str, Any], int, str]] = [
    ({}, 422, 'texts: this is missing; send {"texts": ["a text to tag"]}'),
    ({"text": "a"}, 422, 'texts: this is missing; send {"texts": ["a text to tag"]}'),
    ({"texts": []}, 422, "texts: "),
    ({"texts": ["a", ""]}, 422, "texts[1]: this is empty; give a text"),
    ({"texts": "a"}, 422, "texts: "),
    ({"texts": [1]}, 422, "texts[0]: "),
    ({"texts": ["a"] * 257}, 422, "texts: "),
    ({"texts": ["a" * 500_001]}, 422, "texts[0]: "),
    ({"texts": ["a"], "k": 0}, 422, "k: input should be greater than or equal to 1"),
    ({"texts": ["a"], "k": 201}, 422, "k: input should be less than or equal to 200"),
    ({"texts": ["a"], "k": 1.5}, 422, "k: "),
    ({"texts": ["a"], "k": True}, 422, "k: input should be a number"),
    ({"texts": ["a"], "k": "5"}, 422, "k: input should be a number"),
    ({"texts": ["a"], "min_score": False}, 422, "min_score: input should be a number"),
    ({"texts": ["a"], "explain": "yes"}, 422, "explain: "),
    ({"texts": ["a"], "threshold": 0.5}, 409, "threshold: this model is not calibrated"),
    ({"texts": ["a"], "threshold": 2}, 422, "threshold: "),
    ({"texts": ["a"], "include": ["suger"]}, 404, "include: unknown label 'suger'. Did you mean 'sugar'?"),
    ({"texts": ["a"], "exclude": ["\x00'\"<b>"]}, 404, "exclude: unknown label"),
    ({"texts": ["a"], "include": ["t1"], "exclude": ["t1"]}, 422, "no label is left to suggest"),
    ({"texts": ["a"], "explain": ["nothing"]}, 404, "explain: unknown label 'nothing'"),
    ({"texts": ["a"] * 60, "explain": ["t1", "t2"]}, 422, "explain: 60 texts × 2 labels are too many"),
    ({"texts": ["a"], "kk": 3}, 422, "kk: no such field"),
]


@pytest.mark.parametrize(("body", "status", "sentence"), MISTAKES)
def test_a_mistake_is_told_in_a_sentence(server: Served, body: dict[str, Any], status: int, sentence: str) -> None:
    assert refused(server, status, **body).startswith(sentence)


def test_unknown_models_and_addresses(server: Served) -> None:
    assert refused(server, 404, "frist", texts=["a"]) == "model 'frist' not found. Did you mean 'first'?"
    assert problem_of(server.client.get("/v1/models/nope/labels"), 404).startswith("model 'nope' not found.")
    assert problem_of(server.client.get("/v1/modells"), 404).startswith("no such address")
    assert "use POST" in problem_of(server.client.get("/v1/models/first/suggest"), 405)
    assert problem_of(server.client.get("/static/../app/serve.py"), 404)
    assert problem_of(server.client.get("/static/%2e%2e/serve.py"), 404)


@pytest.mark.parametrize("body", [b"{", b"", b"\xff\xfe", b"[" * 100_000, b"1" * 10_000, b'"\\ud800"', b"null", b"[]"])
def test_a_body_that_is_not_a_request(server: Served, body: bytes) -> None:
    answer = server.client.post("/v1/models/first/suggest", content=body, headers={"content-type": "application/json"})
    assert problem_of(answer, 422 if body in (b"", b'"\\ud800"', b"null", b"[]") else 400)


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded"])
def test_an_error_names_the_field_without_the_right_content_type(server: Served, kind: str | None) -> None:
    def post(body: bytes) -> Any:
        headers = {} if kind is None else {"content-type": kind}
        return server.client.post("/v1/models/first/suggest", content=body, headers=headers)

    told = problem_of(post(b'{"text": "a"}'), 422)
    assert '{"texts": ["a text to tag"]}' in told
    if kind is None:
        assert told.startswith("texts: this is missing")
        assert post(b'{"texts": ["a"]}').status_code == 200
    else:
        assert "Content-Type: application/json" in told


def test_lone_surrogates_are_refused_not_stumbled_over(server: Served) -> None:
    for body in (
        '{"texts": ["\\ud800"]}',
        '{"texts": ["a"], "include": ["\\ud800"]}',
        '{"texts": ["a"], "\\ud800": 1}',
    ):
        answer = server.client.post(
            "/v1/models/first/suggest", content=body, headers={"content-type": "application/json"}
        )
        assert problem_of(answer, 422)


@pytest.mark.parametrize("declared", [True, False])
def test_an_oversized_body_is_refused(server: Served, declared: bool) -> None:
    body = b'{"texts": ["' + b"a" * (17 * 1024 * 1024) + b'"]}'
    content = body if declared else (body[start : start + 65536] for start in range(0, len(body), 65536))
    answer = server.client.post("/v1/models/first/suggest", content=content)
    assert problem_of(answer, 413).startswith("the body is larger than 16,777,216 bytes")


def test_what_operators_ask(server: Served) -> None:
    assert server.client.get("/healthz").json() == {"status": "ok"}
    assert server.client.get("/readyz").json() == {"status": "ready"}
    suggest(server, texts=["a", "b"], explain=["t1"], k=5)
    answer = server.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    for line in (
        'xmtc_texts_total{model="first"}',
        'xmtc_requests_total{method="POST",route="/v1/models/{name}/suggest",status="200"}',
        'xmtc_queue_texts{model="first"} 0.0',
        'xmtc_explanations_total{model="first"}',
        'xmtc_model_labels{model="two trees"} 5.0',
        'xmtc_batch_texts_bucket{le="2.0",model="first"}',
        'xmtc_request_seconds_count{route="/healthz"}',
        "process_resident_memory_bytes",
    ):
        assert line in answer.text


def test_the_page_is_served_and_nothing_else(server: Served) -> None:
    web = Path(__file__).parents[3] / "src" / "xmtc" / "app" / "web"
    page = server.client.get("/")
    assert page.content == (web / "index.html").read_bytes()
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    types = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
    for file in web.iterdir():
        answer = server.client.get(f"/static/{file.name}")
        assert answer.content == file.read_bytes()
        assert answer.headers["content-type"] == types.get(file.suffix, answer.headers["content-type"])
    again = server.client.get("/", headers={"if-none-match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/", "/v1/models", "/nothing"])
def test_headers_keep_a_browser_from_being_tricked(server: Served, path: str) -> None:
    headers = server.client.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'self'; ")
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_annif_client_works_unchanged(server: Served, model: Path) -> None:
    annif_client = pytest.importorskip("annif_client")
    client = annif_client.AnnifClient(f"{server.address}/v1/")
    assert client.api_info.keys() == {"title", "version"}
    assert [project["project_id"] for project in client.projects] == ["first", "two trees"]
    project = client.get_project("first")
    assert (project["name"], project["backend"], project["is_trained"]) == ("first", {"backend_id": "linear"}, True)
    found = client.suggest("first", TEXT, limit=2)
    named = api.load(model).rank([TEXT], 2).named(api.load(model).labels)[0]
    assert [(result["label"], result["score"]) for result in found] == named
    assert all(result.keys() == {"uri", "label", "notation", "score"} for result in found)
    assert {result["uri"] for result in found} <= TOPICS.keys()
    assert client.suggest("first", TEXT, limit=0) == []
    assert client.suggest("first", TEXT, threshold=found[0]["score"]) == found[:1]
    documents = [{"document_id": "a", "text": TEXT}, {"text": "fish"}]
    batch = client.suggest_batch("first", documents, limit=2)
    assert [(entry["document_id"], len(entry["results"])) for entry in batch] == [("a", 2), (None, 2)]
    assert batch[0]["results"] == found
    with pytest.raises(ValueError, match=r"project 'frist' not found\. Did you mean 'first'\?"):
        client.get_project("frist")
    with pytest.raises(ValueError, match="not found"):
        client.suggest("frist", TEXT)
    with pytest.raises(ValueError, match="not found"):
        client.suggest_batch("frist", documents)


def test_a_text_in_another_language_gets_a_notice(server: Served) -> None:
    strange = "Verordnung über die Einfuhr aus allen Ländern der Gemeinschaft"
    known, unknown = suggest(server, texts=["sugar beet sweet quota fish net", strange])["results"]
    assert "notice" not in known
    assert unknown["notice"] == "the model knows hardly a word of this text; is it in another language?"


def test_annif_s_mistakes_are_400(server: Served) -> None:
    def post(path: str, **how: Any) -> str:
        return problem_of(server.client.post(f"/v1/projects/first/{path}", **how), 400)

    assert post("suggest", data={}) == "text: this is missing"
    assert post("suggest", data={"text": ""}) == "text: this is empty; give a text"
    assert post("suggest", data={"text": "a", "limit": "many"}).startswith("limit: ")
    assert post("suggest", data={"text": "a", "threshold": "nan"}).startswith("threshold: ")
    assert post("suggest-batch", json={"documents": []}).startswith("documents: ")
    assert post("suggest-batch", json={"documents": [{"text": "a"}]}, params={"limit": -1}).startswith("limit: ")
    long = {"text": "ü" * 400_000}  # 2.4 MB as a form has it
    assert server.client.post("/v1/projects/first/suggest", data=long).status_code == 200


def test_openapi_has_examples_that_are_answered(server: Served) -> None:
    schema = server.client.get("/openapi.json").json()
    assert schema["openapi"].startswith("3.")
    for example in schema["components"]["schemas"]["SuggestRequest"]["examples"]:
        answer = server.client.post("/v1/models/first/suggest", json=example)
        assert answer.status_code == 200 or "calibrated" in answer.json()["detail"]
    assert "//" not in json.dumps(list(schema["paths"]))
    used = json.dumps(schema)
    assert all(f"#/components/schemas/{name}" in used for name in schema["components"]["schemas"])


def test_the_schema_holds_whatever_is_sent(server: Served) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, given, settings

    few = settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    # a body that is too large is refused before it is read
    refusals = {"negative_data_rejection": {"expected-statuses": [400, 404, 405, 409, 413, 415, 422]}}
    config = schemathesis.Config.from_dict({"checks": refusals})
    schema = schemathesis.openapi.from_url(f"{server.address}/openapi.json", config=config)
    tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

            @few
            @given(case=operation.as_strategy(generation_mode=mode))
            def send(case: Any) -> None:
                nonlocal tried
                tried += 1
                case.call_and_validate()

            if mode is schemathesis.GenerationMode.POSITIVE or operation.body or operation.query:
                send()
    assert tried > 50
