"""Requests and responses of `/v1/ask` and `/v1/documents`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, Tag

from .common_schemas import DeadlineMs, NotEmpty, QuestionText, Schema, Text, as_integer

__all__ = [
    "AddRequest",
    "AddResponse",
    "AddedDocument",
    "AnswerSchema",
    "AskRequest",
    "AskResponse",
    "AskStreamLine",
    "AskStreamRequest",
    "CandidateSchema",
    "DocumentResponse",
    "IndexTotal",
    "ListResponse",
    "ListedDocument",
    "MissingShardSchema",
    "NamedText",
    "PhraseSchema",
    "PlaceSchema",
    "QuestionError",
    "RemoveResponse",
    "SentenceSchema",
    "SourceSchema",
    "StageSchema",
    "StageScoreSchema",
]


DocumentId = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=1_000,
        description="Without control characters and line breaks.",
        # The corpus refuses these characters, whoever adds the document.
        json_schema_extra={"pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$"},
    ),
]


# The bounds come before the validator, so that they are part of the JSON Schema.
_QuestionText = Annotated[QuestionText, Field(max_length=10_000)]
_RankerSpec = Annotated[
    Text | None,
    Field(
        max_length=200,
        description=(
            "A ranker that `/info` lists, or a pipeline of them such as `jaccard % 20 >> cosinet`."
        ),
    ),
]
_TopK = Annotated[
    int,
    Field(ge=1, le=100),
    BeforeValidator(as_integer),
    Field(description="Return the N best answers."),
]
_Retrieved = Annotated[
    int,
    Field(ge=1, le=1_000),
    BeforeValidator(as_integer),
    Field(description="Number of sentences retrieved from the index."),
]
_Threshold = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="Probability below which a sentence is not an answer; 0 never refuses. "
        "Default: the ranker's own. Ignored by rankers without probabilities.",
    ),
]


class NamedText(Schema):
    """A text and the client's id for it."""

    id: DocumentId
    text: Text


_TextOrNamedText = (
    Annotated[Text, Tag("a string")] | Annotated[NamedText, Tag("an object with 'id' and 'text'")]
)


class AskRequest(Schema):
    """A question about the index, or about the documents in the request."""

    question: _QuestionText
    documents: Annotated[
        Annotated[list[_TextOrNamedText], NotEmpty] | None,
        Field(description="Texts to answer from; default: the index."),
    ] = None
    split: Annotated[
        bool,
        Field(description="Rank the sentences of the documents; if false, rank whole documents."),
    ] = True
    ranker: _RankerSpec = None
    top_k: _TopK = 3
    retrieved: _Retrieved = 100
    threshold: _Threshold = None
    explain: Annotated[
        bool,
        Field(description="Also return the score and rank that each stage gave each candidate."),
    ] = False
    deadline_ms: DeadlineMs = None


class AskStreamRequest(Schema):
    """Many questions about the index."""

    questions: Annotated[list[_QuestionText], NotEmpty]
    ranker: _RankerSpec = None
    top_k: _TopK = 3
    retrieved: _Retrieved = 100
    threshold: _Threshold = None
    deadline_ms: DeadlineMs = None


class SourceSchema(Schema):
    """The place of an answer: `text[start:end]` of the document's text."""

    document: str
    title: str
    start: int
    end: int
    unit: Annotated[
        str,
        Field(
            description="What `number` counts: `line`, `page`, `paragraph`, `cell`, `message` or "
            "`document`."
        ),
    ]
    number: int
    heading: Annotated[
        str, Field(description="The nearest heading above, with the column names in a table.")
    ]
    headings: Annotated[
        list[str],
        Field(
            default_factory=list,
            description="The path of headings above, from the highest to the nearest.",
        ),
    ]
    lead_in: Annotated[
        str, Field(description="The sentence that introduces the list or table, or empty.")
    ] = ""
    row: Annotated[int | None, Field(description="Row number in CSV and JSONL files, else null.")]
    record: Annotated[str, Field(description="The id of the row, empty if it has none.")]


class PlaceSchema(Schema):
    """Another place of the same sentence."""

    document: str
    title: str
    start: int
    end: int
    unit: str
    number: int
    heading: str
    headings: list[str]


class PhraseSchema(Schema):
    """The answering phrase: `text[start:end]` of the answer."""

    text: str
    start: int
    end: int


class AnswerSchema(Schema):
    """A sentence that may answer the question."""

    text: str
    score: Annotated[
        float, Field(description="Higher is better; comparable within one stage only.")
    ]
    probability: Annotated[
        float | None, Field(description="Probability that it answers; null if not calibrated.")
    ]
    above_threshold: Annotated[
        bool, Field(description="Whether the probability reaches the threshold.")
    ]
    stage: Annotated[int, Field(description="The stage that decided its rank.")]
    phrase: PhraseSchema | None
    source: SourceSchema
    before: Annotated[
        str,
        Field(
            description="The text before it. For the first answer: up to six sentences of its "
            "paragraph. For later answers from the index, or if the paragraph has no other "
            "sentence there: the nearest sentence of its section. Otherwise empty."
        ),
    ]
    after: Annotated[str, Field(description="The text after it, chosen as `before`.")]
    also_at: Annotated[
        list[PlaceSchema],
        Field(default_factory=list, description="Other places of the same sentence."),
    ]


class StageSchema(Schema):
    """A report of one stage."""

    stage: int
    ranker: str
    entered: Annotated[int, Field(description="Candidates that entered the stage.")]
    kept: Annotated[int, Field(description="Candidates that went on to the next stage.")]
    dropped: int
    skipped: Annotated[int, Field(description="Candidates not scored before the deadline.")]
    calibrated: Annotated[bool, Field(description="Whether its scores are probabilities.")]
    in_context: Annotated[bool, Field(description="Whether it read sentences in their passages.")]
    ms: float


class StageScoreSchema(Schema):
    """The score and rank that one stage gave a candidate."""

    stage: int
    score: float
    rank: Annotated[int, Field(description="Rank within the stage, from 1.")]


class CandidateSchema(Schema):
    """A candidate with the score and rank that each stage gave it."""

    index: int
    text: str
    document: str
    stage_scores: list[StageScoreSchema]


class MissingShardSchema(Schema):
    """A shard of the index that was not searched."""

    name: str
    problem: str


class AskResponse(Schema):
    """Answers, best first, and the stages that ranked them."""

    id: str
    question: str
    ranker: str
    no_answer: Annotated[
        bool,
        Field(description="No candidate was found, or every probability is below the threshold."),
    ]
    threshold: float | None
    answers: list[AnswerSchema]
    stages: list[StageSchema]
    skipped: Annotated[int, Field(description="Candidates not scored, over all stages.")]
    ms: float
    missing_shards: Annotated[
        list[MissingShardSchema],
        Field(default_factory=list, description="Shards of the index that were not searched."),
    ]
    candidates: Annotated[
        list[CandidateSchema] | None, Field(description="Best first; null without `explain`.")
    ] = None


class QuestionError(Schema):
    """Why one question of a stream has no response."""

    status: Annotated[int, Field(description="The status that `/v1/ask` would have given.")]
    message: str


class AskStreamLine(Schema):
    """One line of a stream: the response to a question, or an error."""

    index: Annotated[int, Field(description="The position of the question in the request, from 0.")]
    response: Annotated[AskResponse | None, Field(description="As of `/v1/ask`.")] = None
    error: QuestionError | None = None


class AddRequest(Schema):
    """Documents to add. A document with a known id replaces the old one."""

    documents: Annotated[list[NamedText], NotEmpty]


class AddedDocument(Schema):
    """What was done with one document."""

    id: str
    outcome: Literal["added", "changed", "unchanged"]
    sentences: int


class AddResponse(Schema):
    """The outcome for each document. It is sent when all documents are on disk."""

    documents: list[AddedDocument]
    added: int
    changed: int
    unchanged: int
    sentences: int


class ListedDocument(Schema):
    """A document of the index."""

    id: str
    title: str
    kind: str
    sentences: int
    characters: int
    problem: Annotated[str | None, Field(description="Why a file could not be read.")]


class IndexTotal(Schema):
    """Counts for the whole index."""

    documents: int
    sentences: int


class ListResponse(Schema):
    """One page of documents, ordered by id."""

    documents: list[ListedDocument]
    next: Annotated[
        str | None, Field(description="Pass it as `after` to get the next page; null on the last.")
    ]
    total: IndexTotal


class SentenceSchema(Schema):
    """A sentence or heading, with its place in the document."""

    ordinal: int
    text: str
    start: int
    end: int
    number: int
    heading: str
    is_heading: bool
    kind: str = "sentence"


class DocumentResponse(Schema):
    """Sentences of a document, in order."""

    id: str
    sentences: list[SentenceSchema]


class RemoveResponse(Schema):
    """Confirms that a document was removed."""

    id: str
    removed: bool
