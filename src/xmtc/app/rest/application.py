"""The application: all routes of the server, for models already loaded. Independent of sockets and signals."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.openapi.utils import get_openapi

from xmtc import __version__
from xmtc.app.rest.annif import annif_router
from xmtc.app.rest.answers import describe_label, to_bytes
from xmtc.app.rest.batching import CallerGoneError
from xmtc.app.rest.guard import Guard
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.middleware import MAX_HELD, Middleware
from xmtc.app.rest.models import Models
from xmtc.app.rest.pages import page_router
from xmtc.app.rest.problems import install_problems, overloaded
from xmtc.app.rest.rate import RateLimit
from xmtc.app.rest.schemas import MAX_FOUND, FoundLabels, Health, ModelList, Problem, SuggestRequest, SuggestResponse
from xmtc.app.rest.suggest import suggest_job
from xmtc.app.rest.wire import client_gone, documented

_GONE = 499  # as in nginx: the client has left, so nobody reads this response
_DESCRIPTION = (
    "Tags texts with the few most relevant of very many labels. Positions in texts are counted in Unicode code points. "
    "Every error is an application/problem+json with one sentence in `detail`."
)


def build_application(
    models: Models,
    metrics: Metrics,
    token: str | None,
    timeout: float,
    *,
    hosts: Collection[str] | None = None,
    rate: RateLimit | None = None,
    room: int = MAX_HELD,
) -> Middleware:
    """Return the application with its middleware; `Guard` and `Middleware` describe the limits."""
    # disable FastAPI's own pages, which load scripts from other servers
    app = FastAPI(
        title="xmtc",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would go to the host named in the request, which may be another server
        strict_content_type=False,  # a body without Content-Type is read as JSON, so that errors name its fields
    )
    install_problems(app)
    app.add_exception_handler(CallerGoneError, _nobody_reads)
    app.include_router(_model_router(models))
    app.include_router(annif_router(models))
    app.include_router(_operation_router(models, metrics))
    app.include_router(page_router())
    names = [loaded.name for loaded in models.all()]
    app.openapi = lambda: _openapi(app, names, token is not None)  # type: ignore[method-assign]
    return Middleware(app, Guard(token, hosts, rate), timeout, room, metrics)


def _model_router(models: Models) -> APIRouter:
    router = APIRouter(tags=["models"])

    @router.get("/v1/models", response_model=ModelList, responses=documented(401))
    async def list_models() -> dict[str, Any]:
        """List the loaded models."""
        return {"models": [loaded.describe() for loaded in models.all()]}

    @router.post(
        "/v1/models/{name}/suggest",
        responses={200: {"model": SuggestResponse}, **documented(400, 401, 404, 408, 409, 413, 422, 503, 504)},
    )
    async def suggest(name: str, body: SuggestRequest, request: Request) -> Response:
        """Tag texts: return the best labels of each, with explanations on request."""
        loaded = models.get(name)
        content = await models.submit(loaded, suggest_job(loaded, body), client_gone(request))
        return Response(content, media_type="application/json")

    @router.get(
        "/v1/models/{name}/labels", responses={200: {"model": FoundLabels}, **documented(401, 404, 422)}
    )  # not async: a search may take several milliseconds
    def find_labels(
        name: str,
        q: Annotated[
            str,
            Query(max_length=200, description="Part of a name; the most frequent labels if empty.", examples=["sug"]),
        ] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_FOUND)] = 20,
    ) -> Response:
        """Find labels by name: names that begin with the query first, then names that contain it, each by frequency."""
        loaded = models.get(name)
        found = [describe_label(entry, loaded.labels) for entry in loaded.search.find(q, limit)]
        return Response(to_bytes({"labels": found}), media_type="application/json")

    return router


def _operation_router(models: Models, metrics: Metrics) -> APIRouter:
    router = APIRouter(tags=["operation"])

    @router.get("/healthz", response_model=Health)
    async def healthz() -> dict[str, str]:
        """Report that the server runs."""
        return {"status": "ok"}

    @router.get("/readyz", response_model=Health, responses=documented(503))
    async def readyz() -> dict[str, str]:
        """Report whether all models answer."""
        if not models.ready():
            raise overloaded("a model does not answer", 5)
        return {"status": "ready"}

    @router.get(
        "/metrics",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "For Prometheus."},
            **documented(401),
        },
    )
    async def show_metrics() -> Response:
        """Return metrics for Prometheus."""
        return Response(metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    return router


async def _nobody_reads(request: Request, error: Exception) -> Response:
    return Response(status_code=_GONE)


def _openapi(app: FastAPI, names: list[str], with_token: bool) -> dict[str, Any]:
    """Return the schema, with problems instead of FastAPI's own errors, and the token if one is required."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        components = schema["components"]["schemas"]
        components["Problem"] = Problem.model_json_schema()
        for unused in ("HTTPValidationError", "ValidationError"):
            components.pop(unused, None)
        for operations in schema["paths"].values():
            for operation in operations.values():
                _drop_unused_refusal(operation)
                _name_models(operation, names)
        if with_token:
            schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"token": []}]
            for path in ("/healthz", "/readyz"):
                schema["paths"][path]["get"]["security"] = []
        app.openapi_schema = schema
    return app.openapi_schema


def _drop_unused_refusal(operation: dict[str, Any]) -> None:
    """Drop FastAPI's own 422, which it documents for every route with parameters; our routes document their own."""
    refusal = operation["responses"].get("422", {}).get("content", {})
    if "application/json" in refusal:
        del operation["responses"]["422"]


def _name_models(operation: dict[str, Any], names: list[str]) -> None:
    """List the models in the schema, for clients generated from it."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            parameter["schema"]["enum"] = names
            parameter["example"] = names[0]
