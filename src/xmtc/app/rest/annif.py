"""Annif's REST API, for its clients: a model is a project, and a label's id is its URI.

Scores are probabilities if the model is calibrated, else its scores; both are clipped to 0 to 1, as Annif's are. Labels
have no notation. Names are in the requested language if the vocabulary has them. A vocabulary with one language does
not store which one it is; it is reported as "und".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from xmtc import __version__
from xmtc.app.rest.answers import Kept, Limits, to_bytes
from xmtc.app.rest.jobs import Explained, SuggestJob
from xmtc.app.rest.middleware import MAX_BODY
from xmtc.app.rest.models import LoadedModel, Models
from xmtc.app.rest.schemas import MAX_K, MAX_TEXTS, Probability, Text
from xmtc.app.rest.wire import client_gone, documented
from xmtc.core.labels import LabelSet

_UNKNOWN = "und"
_LANGUAGE_HELP = "Language of label names, such as de. A label without a name in it gets its usual name."
Shape = Callable[[list[list[dict[str, Any]]]], Any]  # results of each text → the response

Limit = Annotated[int, Field(ge=0, description=f"Maximum number of results; at most {MAX_K} are returned.")]
Threshold = Annotated[Probability, Field(description="Minimum score of a result.")]


class Wanted(NamedTuple):
    """The options of a request."""

    limit: int
    threshold: float
    language: str | None


class ApiInfo(BaseModel):
    """Title and version of the API."""

    title: str
    version: str


class Backend(BaseModel):
    """The method of a project."""

    backend_id: str


class Vocabulary(BaseModel):
    """The labels of a project."""

    vocab_id: str
    languages: list[str]
    size: int
    loaded: bool


class Project(BaseModel):
    """A model."""

    project_id: str
    name: str
    language: str
    backend: Backend
    vocab: Vocabulary
    vocab_language: str
    is_trained: bool
    modification_time: str | None = None


class Projects(BaseModel):
    """All models."""

    projects: list[Project]


class Form(BaseModel):
    """A text to tag, as form fields."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "A quick brown fox", "limit": 3}]})

    text: Text
    limit: Limit = 10
    threshold: Threshold = 0.0
    language: Annotated[str | None, Field(max_length=100, description=_LANGUAGE_HELP)] = None


class Document(BaseModel):
    """A text of a batch."""

    text: Text
    document_id: str | None = None
    metadata: Annotated[dict[str, str] | None, Field(description="Ignored.")] = None


class Batch(BaseModel):
    """Texts to tag."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"documents": [{"document_id": "doc-1", "text": "A quick brown fox"}]}]}
    )

    documents: Annotated[list[Document], Field(min_length=1, max_length=MAX_TEXTS)]


class Result(BaseModel):
    """One label of a text."""

    uri: str
    label: str
    notation: str | None
    score: Probability


class Results(BaseModel):
    """The labels of a text, best first."""

    results: list[Result]


class DocumentResults(Results):
    """The labels of one text of a batch."""

    document_id: str | None


def annif_router(models: Models) -> APIRouter:
    """Return Annif's routes."""
    router = APIRouter(tags=["annif"])

    @router.get("/v1/", response_model=ApiInfo, responses=documented(401))
    async def show_info() -> dict[str, str]:
        return {"title": "Annif REST API, by xmtc", "version": __version__}

    @router.get("/v1/projects", response_model=Projects, responses=documented(401))
    async def list_projects() -> dict[str, Any]:
        return {"projects": [_project(loaded) for loaded in models.all()]}

    @router.get("/v1/projects/{project_id}", response_model=Project, responses=documented(401, 404))
    async def show_project(project_id: str) -> dict[str, Any]:
        return _project(models.get(project_id, "project"))

    @router.post(
        "/v1/projects/{project_id}/suggest",
        responses={200: {"model": Results}, **documented(400, 401, 404, 408, 413, 503, 504)},
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/x-www-form-urlencoded": {"schema": Form.model_json_schema()}},
            }
        },
    )
    async def suggest(project_id: str, request: Request) -> Response:
        models.get(project_id, "project")  # report an unknown project before other errors
        async with request.form(max_part_size=MAX_BODY) as fields:
            form = Form.model_validate({key: value for key, value in fields.items() if key in Form.model_fields})
        loaded = models.get(project_id, "project")
        wanted = Wanted(form.limit, form.threshold, form.language)
        job = _job(loaded, [form.text], wanted, lambda results: {"results": results[0]})
        return await _answer(models, loaded, job, request)

    @router.post(
        "/v1/projects/{project_id}/suggest-batch",
        responses={200: {"model": list[DocumentResults]}, **documented(400, 401, 404, 408, 413, 503, 504)},
    )
    async def suggest_batch(
        project_id: str,
        batch: Batch,
        request: Request,
        limit: Annotated[Limit, Query()] = 10,
        threshold: Annotated[Threshold, Query()] = 0.0,
        language: Annotated[str | None, Query(max_length=100, description=_LANGUAGE_HELP)] = None,
    ) -> Response:
        def shape(results: list[list[Any]]) -> Any:
            pairs = zip(batch.documents, results, strict=True)
            return [{"document_id": document.document_id, "results": found} for document, found in pairs]

        loaded = models.get(project_id, "project")
        texts = [document.text for document in batch.documents]
        return await _answer(models, loaded, _job(loaded, texts, Wanted(limit, threshold, language), shape), request)

    return router


def _project(loaded: LoadedModel) -> dict[str, Any]:
    languages = loaded.labels.languages or (_UNKNOWN,)
    return {
        "project_id": loaded.name,
        "name": loaded.name,
        "language": languages[0],
        "backend": {"backend_id": loaded.model.manifest.method},
        "vocab": {
            "vocab_id": loaded.name,
            "languages": languages,
            "size": loaded.n_ranked,
            "loaded": True,
        },
        "vocab_language": languages[0],
        "is_trained": True,
        "modification_time": None,
    }


def _job(loaded: LoadedModel, texts: list[str], wanted: Wanted, shape: Shape) -> SuggestJob:
    k = min(wanted.limit, MAX_K)
    labels = loaded.labels

    def write(kept: Sequence[Sequence[Kept]], explained: Explained) -> bytes:
        results = [list_results(of_text[:k], labels, wanted.threshold, wanted.language) for of_text in kept]
        return to_bytes(shape(results))

    return SuggestJob(texts=texts, limits=Limits(max(1, k)), write=write)


def list_results(
    kept: Sequence[Kept], labels: LabelSet, threshold: float, language: str | None = None
) -> list[dict[str, Any]]:
    """Return the labels of one text, sorted by the score that is shown, with names in a language if available.

    The order of probabilities may differ from the ranking, because labels in different bins are calibrated separately.
    """
    scored = sorted(((one.entry, _score(one)) for one in kept), key=lambda pair: -pair[1])
    return [
        {"uri": labels.ids[entry], "label": labels.name_in(language, entry), "notation": None, "score": score}
        for entry, score in scored
        if score >= threshold
    ]


def _score(one: Kept) -> float:
    return min(1.0, max(0.0, one.score if one.probability is None else one.probability))


async def _answer(models: Models, loaded: LoadedModel, job: SuggestJob, request: Request) -> Response:
    content = await models.submit(loaded, job, client_gone(request))
    return Response(content, media_type="application/json")
