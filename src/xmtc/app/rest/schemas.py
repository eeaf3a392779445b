"""JSON schemas of requests, which are validated here, and of responses, which are described here for OpenAPI.

Independent of models and HTTP. The schema contains the limits, so that clients can read them. Positions in texts are
counted in Unicode code points; JavaScript counts UTF-16 units, so a page must count code points (`Array.from(text)`).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

MAX_TEXTS = 256  # texts per request
MAX_CHARACTERS = 500_000  # characters per text
MAX_K = 200  # labels per text
MAX_EXPLAINED = 100  # explained labels per request: each costs at least as much as ranking a text
MAX_STEERED = 1000  # labels in include or exclude
MAX_FOUND = 100  # labels per search


def _number(value: object) -> object:
    """Reject values that Python accepts as numbers and JSON does not: true is not 1, "5" is not 5."""
    if isinstance(value, bool | str):
        raise ValueError("input should be a number")
    return value


_STRICT = BeforeValidator(_number)
Text = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]
LabelId = Annotated[str, Field(min_length=1, max_length=10_000)]
LabelIds = Annotated[list[LabelId], Field(max_length=MAX_STEERED)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class SuggestRequest(BaseModel):
    """Texts to tag, with options."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"texts": ["Council regulation on sugar imports"], "k": 5},
                {"texts": ["Council regulation on sugar imports"], "k": 3, "threshold": 0.2, "explain": True},
            ]
        },
    )

    texts: Annotated[
        list[Text], Field(min_length=1, max_length=MAX_TEXTS, description="Texts to tag; none may be empty.")
    ]
    k: Annotated[int, Field(ge=1, le=MAX_K, description="Maximum labels per text."), _STRICT] = 10
    threshold: Annotated[
        Probability | None,
        Field(description="Minimum probability of a label; the model must be calibrated."),
        _STRICT,
    ] = None
    min_score: Annotated[Number | None, Field(description="Minimum score of a label."), _STRICT] = None
    include: Annotated[
        LabelIds | None,
        Field(description="Suggest only these labels (ids or names) and their descendants; [] means all."),
    ] = None
    exclude: Annotated[
        LabelIds | None, Field(description="Never suggest these labels (ids or names) or their descendants.")
    ] = None
    explain: Annotated[
        StrictBool | LabelIds,
        Field(
            description="true: explain every returned label; k is then limited so that a response has at most "
            f"{MAX_EXPLAINED} labels. Or a list of labels (ids or names): explain those of them that are returned."
        ),
    ] = False


class NamedLabel(BaseModel):
    """A label and its name."""

    label: str
    name: str


class Neighbour(BaseModel):
    """A training document similar to the text."""

    id: str
    similarity: float
    labels: list[NamedLabel]


class Explained(BaseModel):
    """Why a label was suggested; parts that a method does not provide are empty."""

    spans: Annotated[
        list[tuple[int, int, float]],
        Field(description="[start, end, weight] of words, in Unicode code points; words never overlap."),
    ]
    path: Annotated[list[tuple[str, float]], Field(description="[name, score] of clusters from the root to the label.")]
    neighbours: list[Neighbour]
    scope: Annotated[
        list[tuple[str, float]] | None,
        Field(description="[name, weight] of the labels that the text was read with; absent if there are none."),
    ] = None


class Suggestion(BaseModel):
    """One label of a text."""

    label: Annotated[str, Field(description="The label's id.")]
    name: str
    score: float
    probability: Annotated[Probability | None, Field(description="Absent unless the model is calibrated.")] = None
    count: Annotated[int, Field(ge=0, description="Training documents that have this label.")]
    parents: list[NamedLabel]
    explanation: Annotated[Explained | None, Field(description="Absent unless asked for.")] = None


class Suggestions(BaseModel):
    """The labels of one text, best first."""

    labels: list[Suggestion]
    notice: Annotated[str | None, Field(description="Absent unless the model knows hardly a word of the text.")] = None


class SuggestResponse(BaseModel):
    """The response to a SuggestRequest: one result per text, in order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "eurlex",
                    "results": [
                        {
                            "labels": [
                                {
                                    "label": "4314",
                                    "name": "sugar",
                                    "score": 0.93,
                                    "probability": 0.88,
                                    "count": 412,
                                    "parents": [{"label": "100164", "name": "sugar industry"}],
                                    "explanation": {
                                        "spans": [[22, 27, 1.31], [28, 35, 0.22]],
                                        "path": [["sugar · sugar product · beet", 1.2], ["sugar", 0.9]],
                                        "neighbours": [],
                                    },
                                }
                            ]
                        }
                    ],
                }
            ]
        }
    )

    model: str
    results: list[Suggestions]


class ModelFacts(BaseModel):
    """Facts about a loaded model."""

    name: str
    method: str
    n_labels: Annotated[int, Field(ge=0, description="Labels and concepts that the model can suggest.")]
    n_documents: Annotated[int, Field(ge=0, description="Training documents.")]
    calibrated: Annotated[bool, Field(description="Whether its labels come with a probability.")]
    explains: Annotated[bool, Field(description="Whether the model can explain a label.")]
    hierarchy: Annotated[bool, Field(description="Whether any label has a parent.")]


class ModelList(BaseModel):
    """All loaded models."""

    models: list[ModelFacts]


class FoundLabel(BaseModel):
    """A label found by its name."""

    label: str
    name: str
    count: Annotated[int, Field(ge=0)]
    parents: list[NamedLabel]


class FoundLabels(BaseModel):
    """Labels found by name: those that begin with the query first."""

    labels: list[FoundLabel]


class Problem(BaseModel):
    """An error in the format of RFC 9457."""

    type: str = "about:blank"
    title: Annotated[str, Field(description="The status in words.")]
    status: Annotated[int, Field(ge=400, le=599)]
    detail: Annotated[str, Field(description="One sentence: what is wrong and what to do.")]


class Health(BaseModel):
    """Whether the server runs."""

    status: str
