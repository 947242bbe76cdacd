"""Schemas that several routes share, and those of `/health`, `/ready`, `/info`, `/v1/models`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Tag

__all__ = [
    "QUESTION_SCHEMA",
    "DeadlineMs",
    "DocumentSchema",
    "ErrorSchema",
    "HealthResponse",
    "InfoResponse",
    "Integer",
    "LimitsSchema",
    "ListedModel",
    "ModelListResponse",
    "ModelSchema",
    "NotEmpty",
    "PositiveInteger",
    "QuestionText",
    "Schema",
    "Text",
    "TextOrDocument",
    "as_integer",
    "check_question",
    "document_text",
    "new_response_id",
]


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can carry and UTF-8 cannot. The length stays the same."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def check_question(question: str) -> str:
    """Return the question, or raise ValueError if it is empty or blank."""
    if not question.strip():
        raise ValueError("Question must not be empty or only whitespace")
    return question


def as_integer(value: object) -> object:
    """Return 2 for 2.0: JSON does not tell them apart."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integer = Annotated[int, BeforeValidator(as_integer)]
PositiveInteger = Annotated[int, Field(ge=1), BeforeValidator(as_integer)]
NotEmpty = Field(json_schema_extra={"minItems": 1})
"""Of a list that must have an entry. The routes check this, with status 400."""
Text = Annotated[str, AfterValidator(_replace_surrogates)]
"""A string. Clients that cut strings inside a surrogate pair are tolerated."""
# Python counts these control characters as white space, other regular expressions do not.
QUESTION_SCHEMA = Field(
    json_schema_extra={"minLength": 1, "pattern": "[^\\s\\u001c-\\u001f\\u0085]"}
)
QuestionText = Annotated[
    Text,
    AfterValidator(check_question),
    QUESTION_SCHEMA,
]
"""A question. Every route refuses an empty one with status 422."""
DeadlineMs = Annotated[
    float | None,
    Field(
        ge=1,
        le=3_600_000,
        description=(
            "Milliseconds until the response is needed; the best ranking ready by then is "
            "returned. If the header X-Deadline-Ms is also given, the shorter one counts."
        ),
    ),
]


class Schema(BaseModel):
    """
    Base of all request and response bodies.

    Types are strict (a number is not accepted as a string) and unknown fields are ignored.
    """

    model_config = ConfigDict(strict=True, extra="ignore", populate_by_name=True)


class DocumentSchema(Schema):
    """A document with a text and other fields. At least one field to rank by must be there."""

    model_config = ConfigDict(extra="allow")

    text: Annotated[
        Text | None, Field(description="The text to rank. Needed, unless `rank_fields` is given.")
    ] = None


# The tags of the choices are what an error says was expected: `expected a string or an object`.
TextOrDocument = (
    Annotated[Text, Tag("a string")] | Annotated[DocumentSchema, Tag("an object with 'text'")]
)


def document_text(document: TextOrDocument, fields: Sequence[str] | None = None) -> str:
    """
    Return the text to rank: the named fields joined by newlines, or `text` without names.

    ValueError if the document has none of the fields, or one that is not a string.
    """
    if isinstance(document, str):
        return document
    names = fields or ["text"]
    given = {"text": document.text, **(document.model_extra or {})}
    values = {name: given[name] for name in names if given.get(name) is not None}
    wrong = next((name for name, value in values.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise ValueError(
            f"the field {wrong[:100]!r} must be a string, got {type(values[wrong]).__name__}"
        )
    if not values:
        wanted = " or ".join(repr(name[:100]) for name in names[:5])
        raise ValueError(f"expected a text in the field {wanted}, got none")
    return "\n".join(_replace_surrogates(value) for value in values.values())


def new_response_id() -> str:
    """Return a random id for a response."""
    return secrets.token_hex(12)


class ErrorSchema(Schema):
    """An error. Which fields it has depends on the clients of the route."""

    model_config = ConfigDict(extra="allow")

    message: str | None = None
    detail: str | None = None
    error: Any = None
    error_type: str | None = None


class HealthResponse(Schema):
    """The state of the service."""

    status: str


class ModelSchema(Schema):
    """A ranker that the service was started with."""

    id: str
    threshold: Annotated[
        float | None,
        Field(
            description="A probability below it means no answer; null if not calibrated. Answers "
            "from the index may have another, which is `threshold` in the response of `/v1/ask`."
        ),
    ]


class ListedModel(Schema):
    """A ranker in the format of the OpenAI API."""

    id: str
    object: Literal["model"] = "model"
    created: Annotated[int, Field(description="When the service was started, in Unix time.")]
    owned_by: str = "askline"


class ModelListResponse(Schema):
    """The rankers that the service was started with; the first is the default."""

    object: Literal["list"] = "list"
    data: list[ListedModel]


class LimitsSchema(Schema):
    """The limits of one request, and of the queue."""

    body_bytes: int
    documents: int
    tokens: int
    seconds: float
    queue: int


class InfoResponse(Schema):
    """What the service offers. TEI clients read `model_id` and `max_client_batch_size`."""

    version: str
    model_id: str
    model_type: dict[str, dict[str, dict[str, str]]]
    max_client_batch_size: int
    models: list[ModelSchema]
    rankers: Annotated[list[str], Field(description="Names that a pipeline may contain.")]
    has_index: Annotated[bool, Field(description="`/v1/ask` works without `documents`.")]
    has_documents: Annotated[
        bool, Field(description="Documents can be added, shown and removed here.")
    ]
    workers: int
    limits: LimitsSchema
