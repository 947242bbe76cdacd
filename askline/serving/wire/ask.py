"""`/v1/ask`: a question in, the line that answers it out, with its place and the way it came."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .common import DeadlineMs, Text, Wire

__all__ = ["AskDocument", "AskRequest", "AskResponse"]


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
        bool, Field(description="Also what each stage thought of each candidate.")
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
    confidence: Annotated[
        float | None, Field(description="The chance that it answers; null if not calibrated.")
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


class StageThought(Wire):
    """What one stage thought of a candidate."""

    stage: int
    score: float
    place: Annotated[int, Field(description="Rank within the stage, from 1.")]


class Candidate(Wire):
    """A candidate on its way through the stages."""

    index: int
    text: str
    document: str
    thoughts: list[StageThought]


class AskResponse(Wire):
    """Answers, best first, and the funnel they came through."""

    id: str
    question: str
    ranker: str
    no_answer: Annotated[
        bool,
        Field(description="Nothing was found, or the best confidence is below the threshold."),
    ]
    threshold: float | None
    answers: list[Answer]
    funnel: list[Stage]
    skipped: int
    ms: float
    candidates: list[Candidate] | None = None
