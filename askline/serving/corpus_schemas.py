"""
`/v1/ask`: a question in, the line that answers it out, with its place and the way it came.

`/v1/documents`: what is in the index.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .common_schemas import DeadlineMs, Text, Wire

__all__ = [
    "AddRequest",
    "AddResponse",
    "AskDocument",
    "AskRequest",
    "AskResponse",
    "DocumentResponse",
    "ListResponse",
    "RemoveResponse",
]


class AskDocument(Wire):
    """A text to look for the answer in, under an id of the client's own."""

    id: Annotated[Text, Field(min_length=1, max_length=1_000)]
    text: Text


class AskRequest(Wire):
    """A question over the index, or over the documents that come with it."""

    question: Annotated[Text, Field(min_length=1, max_length=10_000)]
    documents: Annotated[
        list[Text | AskDocument] | None,
        Field(description="Texts to answer from; without them, the index."),
    ] = None
    split: Annotated[
        bool, Field(description="Rank the sentences of the documents, or each document whole.")
    ] = True
    ranker: Annotated[
        Text | None,
        Field(
            max_length=200,
            description=(
                "A ranker that `/info` lists, or a sequence of them such as "
                "`jaccard % 20 >> cosinet`."
            ),
        ),
    ] = None
    top: Annotated[int, Field(ge=1, le=100, description="How many answers.")] = 3
    retrieved: Annotated[
        int, Field(ge=1, le=1_000, description="Sentences of the index that go to the ranker.")
    ] = 100
    explain: Annotated[
        bool,
        Field(description="Also return the score and rank that each stage gave each candidate."),
    ] = False
    deadline_ms: DeadlineMs = None


class Source(Wire):
    """Where an answer stands: characters of the document as it was read."""

    document: str
    title: str
    start: int
    end: int
    unit: Annotated[str, Field(description="line, page, paragraph, or document for a whole one.")]
    number: int
    heading: str
    row: Annotated[int | None, Field(description="In csv and jsonl; null elsewhere.")]
    record: Annotated[str, Field(description="The row's own id, where it has one.")]


class Phrase(Wire):
    """The part of an answer that says it: `text[start:end]` of the answer."""

    text: str
    start: int
    end: int


class Answer(Wire):
    """A sentence that may answer."""

    text: str
    score: Annotated[float, Field(description="Comparable with answers of the same stage.")]
    probability: Annotated[
        float | None, Field(description="The probability that it answers; null if not calibrated.")
    ]
    stage: Annotated[int, Field(description="The stage of the funnel that decided its place.")]
    phrase: Phrase | None
    source: Source
    before: str
    after: str


class Stage(Wire):
    """What one stage did."""

    stage: int
    ranker: str
    entered: int
    kept: int
    dropped: int
    skipped: Annotated[int, Field(description="Not judged, because time was up.")]
    calibrated: Annotated[bool, Field(description="Its scores are chances.")]
    ms: float


class StageScoreSchema(Wire):
    """The score and rank that one stage gave a candidate."""

    stage: int
    score: float
    rank: Annotated[int, Field(description="Rank within the stage, from 1.")]


class Candidate(Wire):
    """A candidate on its way through the stages."""

    index: int
    text: str
    document: str
    stage_scores: list[StageScoreSchema]


class AskResponse(Wire):
    """Answers, best first, and the funnel they came through."""

    id: str
    question: str
    ranker: str
    no_answer: Annotated[
        bool,
        Field(description="Nothing was found, or the best probability is below the threshold."),
    ]
    threshold: float | None
    answers: list[Answer]
    funnel: list[Stage]
    skipped: int
    ms: float
    candidates: list[Candidate] | None = None


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
