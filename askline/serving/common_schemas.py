"""
Pieces that several formats share.

`/health`, `/ready` and `/info`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = [
    "DeadlineMs",
    "Document",
    "Health",
    "Info",
    "Problem",
    "Text",
    "TextOrDocument",
    "Wire",
    "document_text",
]


def mended(text: str) -> str:
    """Without half characters, which JSON can write and UTF-8 cannot; as long as before."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


Text = Annotated[str, AfterValidator(mended)]
"""A text cut in the middle of a character, as programs do, is still a text."""


class Wire(BaseModel):
    """A body. Types are strict, so that a number is never taken for a text."""

    model_config = ConfigDict(strict=True, extra="ignore", populate_by_name=True)


class Document(Wire):
    """A text among other fields. A field that is missing counts as empty."""

    model_config = ConfigDict(extra="allow")

    text: Annotated[Text, Field(description="What is ranked, unless other fields are named.")] = ""


TextOrDocument = Text | Document

DeadlineMs = Annotated[
    float | None,
    Field(
        ge=1,
        le=3_600_000,
        description=(
            "Milliseconds in which an answer is wanted; the best ranking ready by then is given. "
            "The header X-Deadline-Ms says the same; the shorter of both counts."
        ),
    ),
]


class Problem(Wire):
    """An error, as the clients of a route read it."""

    model_config = ConfigDict(extra="allow")

    message: str | None = None
    detail: str | None = None
    error: Any = None
    error_type: str | None = None


def document_text(document: TextOrDocument, fields: Sequence[str] | None = None) -> str:
    """The text of either; of these fields, one under another, where they are named."""
    if isinstance(document, str):
        return document
    if not fields:
        return document.text
    values = [getattr(document, name, None) for name in fields if name in _fields(document)]
    return "\n".join(mended(value) for value in values if isinstance(value, str))


def _fields(document: Document) -> set[str]:
    return {"text", *(document.model_extra or {})}


class Health(Wire):
    """The service answers."""

    status: str


class ModelInfo(Wire):
    """A ranker that the service was started with."""

    id: str
    threshold: Annotated[
        float | None, Field(description="Below it there is no answer; null if not calibrated.")
    ]


class LimitsInfo(Wire):
    """What one request may bring, and how many may wait."""

    body_bytes: int
    documents: int
    tokens: int
    queue: int


class Info(Wire):
    """What is served. `model_id` and `max_client_batch_size` are for TEI's clients."""

    version: str
    model_id: str
    model_type: dict[str, dict[str, dict[str, str]]]
    max_client_batch_size: int
    models: list[ModelInfo]
    rankers: Annotated[list[str], Field(description="Names that a sequence may be made of.")]
    has_index: Annotated[bool, Field(description="A question may come without documents.")]
    has_documents: Annotated[
        bool, Field(description="Documents can be added, shown and taken out.")
    ]
    workers: int
    limits: LimitsInfo
