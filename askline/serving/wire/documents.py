"""`/v1/documents`: what is in the index."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .common import Text, Wire

__all__ = [
    "AddRequest",
    "AddResponse",
    "DocumentResponse",
    "ListResponse",
    "RemoveResponse",
]

DocumentId = Annotated[Text, Field(min_length=1, max_length=1_000)]


class NewDocument(Wire):
    """A text; one with a known id takes the place of the old."""

    id: DocumentId
    text: Text


class AddRequest(Wire):
    """Texts for the index."""

    documents: Annotated[list[NewDocument], Field(min_length=1)]


class Outcome(Wire):
    """What became of one."""

    id: str
    outcome: Literal["added", "changed", "unchanged"]
    sentences: int


class AddResponse(Wire):
    """Sent when all of it is on disk."""

    documents: list[Outcome]
    added: int
    changed: int
    unchanged: int
    sentences: int


class Listed(Wire):
    """A document of the index."""

    id: str
    title: str
    kind: str
    sentences: int
    characters: int
    problem: Annotated[str | None, Field(description="Why a file could not be read.")]


class Total(Wire):
    """Of the whole index."""

    documents: int
    sentences: int


class ListResponse(Wire):
    """Documents in the order of their ids."""

    documents: list[Listed]
    next: Annotated[str | None, Field(description="Give it as `after` for the next page.")]
    total: Total


class SentenceRecord(Wire):
    """A sentence or a heading, with its place in the source."""

    ordinal: int
    text: str
    start: int
    end: int
    number: int
    heading: str
    is_heading: bool


class DocumentResponse(Wire):
    """Some sentences of a document."""

    id: str
    sentences: list[SentenceRecord]


class RemoveResponse(Wire):
    """It has been taken out."""

    id: str
    removed: bool
