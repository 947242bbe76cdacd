"""
Requests and responses of the rerank and score routes, in the formats of other rerankers.

- `/v2/rerank`: Cohere API version 2.
- `/v1/rerank`: Cohere API version 1, Jina, vLLM. `/rerank`: Jina, vLLM.
- `/rerank` with `texts`: Hugging Face text-embeddings-inference (TEI).
- `/infinity/rerank`: Infinity, where a document is returned as a string.
- `/score`, `/v1/score`: vLLM.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from .common_schemas import (
    QUESTION_SCHEMA,
    DeadlineMs,
    Integer,
    NotEmpty,
    PositiveInteger,
    QuestionText,
    Schema,
    Text,
    TextOrDocument,
    check_question,
    document_text,
)

__all__ = [
    "CohereApiVersion",
    "CohereMeta",
    "InfinityItem",
    "InfinityResponse",
    "RankedText",
    "RerankItem",
    "RerankItemWithDocument",
    "RerankRequest",
    "RerankRequestV2",
    "RerankResponse",
    "RerankResponseV2",
    "ScoreItem",
    "ScoreRequest",
    "ScoreResponse",
    "TeiItem",
    "TeiRequest",
    "Usage",
]

Query = Annotated[QuestionText, Field(description="The question.")]
Model = Annotated[
    Text | None,
    Field(
        max_length=1_000,
        description="A ranker that `/info` lists; any other name selects the default.",
    ),
]
TopN = Annotated[
    PositiveInteger | None, Field(description="Return the N best results; default: all.")
]


class RerankRequestV2(Schema):
    """Cohere API version 2: documents are strings and are not returned."""

    model: Model = None
    query: Query
    documents: Annotated[list[Text], NotEmpty]
    top_n: TopN = None
    max_tokens_per_doc: Annotated[
        PositiveInteger | None, Field(description="Ignored: documents are never truncated.")
    ] = None
    priority: Integer | None = None
    deadline_ms: DeadlineMs = None

    def texts(self) -> list[str]:
        """Return the texts to rank."""
        return self.documents


class RerankRequest(Schema):
    """Cohere API version 1, Jina and vLLM."""

    model: Model = None
    query: Query
    documents: Annotated[list[TextOrDocument], NotEmpty]
    top_n: TopN = None
    rank_fields: Annotated[
        list[str] | None,
        Field(
            description=(
                "Fields to rank by; default: `text`. Each document must have one of them, and a "
                "field that it has must be a string."
            )
        ),
    ] = None
    return_documents: Annotated[
        bool | None,
        Field(description="Default: true for Jina clients, false for Cohere clients."),
    ] = None
    max_chunks_per_doc: Annotated[
        PositiveInteger | None, Field(description="Ignored: documents are never truncated.")
    ] = None
    deadline_ms: DeadlineMs = None

    def texts(self) -> list[str]:
        """Return the texts to rank, or raise ValueError with the position of a wrong document."""
        texts = []
        for position, document in enumerate(self.documents):
            try:
                texts.append(document_text(document, self.rank_fields))
            except ValueError as error:
                raise ValueError(f"documents.{position}: {error}.") from None
        return texts


class RerankItem(Schema):
    """One document of the ranking."""

    index: Annotated[int, Field(description="Position in the request.")]
    relevance_score: Annotated[float, Field(description="From 0 to 1, in descending order.")]


class RankedText(Schema):
    """The text that was ranked."""

    text: str


class RerankItemWithDocument(RerankItem):
    """One document of the ranking, with its text if `return_documents` is set."""

    document: RankedText | None = None


class CohereApiVersion(Schema):
    """The version of Cohere's API that the route implements."""

    version: str


class CohereBilledUnits(Schema):
    """A constant that Cohere clients expect."""

    search_units: float = 1


class CohereMeta(Schema):
    """The `meta` object of Cohere's responses."""

    api_version: CohereApiVersion
    billed_units: CohereBilledUnits = Field(default_factory=CohereBilledUnits)


class Usage(Schema):
    """Tokens in the request, as the ranker counts them."""

    total_tokens: int
    prompt_tokens: int


class RerankResponseV2(Schema):
    """Results, best first, as Cohere API version 2 returns them."""

    id: str
    results: list[RerankItem]
    meta: CohereMeta


class RerankResponse(Schema):
    """Results, best first, with the fields of Cohere API version 1, Jina and vLLM."""

    id: str
    object: str = "list"
    model: str
    usage: Usage
    results: list[RerankItemWithDocument]
    meta: CohereMeta


class InfinityItem(RerankItem):
    """One document of the ranking, with its text if `return_documents` is set."""

    document: str | None = None


class InfinityResponse(Schema):
    """Results, best first, as Infinity returns them."""

    id: str
    object: str = "rerank"
    model: str
    usage: Usage
    results: list[InfinityItem]
    created: int


ScoreInput = Text | Annotated[list[Text], NotEmpty]
_FIELD_PAIRS = (("queries", "documents"), ("text_1", "text_2"), ("data_1", "data_2"))
_ONE_FIELD_PAIR: JsonDict = {
    "oneOf": [
        {
            "required": list(pair),
            "properties": {
                name: {"not": {"type": "null"}} if name in pair else {"type": "null"}
                for names in _FIELD_PAIRS
                for name in names
            },
        }
        for pair in _FIELD_PAIRS
    ]
}
"""The part of the rule for the pairs that JSON Schema can express."""
_ScoreQuestionText = Annotated[Text, QUESTION_SCHEMA]
_ScoreQuestion = _ScoreQuestionText | Annotated[list[_ScoreQuestionText], NotEmpty]


class ScoreRequest(Schema):
    """
    Questions and texts, under one of three pairs of names.

    Either one question for all texts, or as many questions as texts.
    """

    model_config = ConfigDict(json_schema_extra=_ONE_FIELD_PAIR)

    model: Model = None
    queries: _ScoreQuestion | None = None
    documents: ScoreInput | None = None
    text_1: _ScoreQuestion | None = None
    text_2: ScoreInput | None = None
    data_1: _ScoreQuestion | None = None
    data_2: ScoreInput | None = None
    deadline_ms: DeadlineMs = None

    @model_validator(mode="after")
    def _check_pairs(self) -> ScoreRequest:
        self.pairs()
        return self

    def pairs(self) -> list[tuple[str, str]]:
        """Return (question, text) for each pair, or raise ValueError."""
        inputs = [(getattr(self, left), getattr(self, right)) for left, right in _FIELD_PAIRS]
        given = [pair for pair in inputs if pair != (None, None)]
        if len(given) != 1 or None in given[0]:
            names = " or ".join(f"{left} and {right}" for left, right in _FIELD_PAIRS)
            found = [
                name for pair in _FIELD_PAIRS for name in pair if getattr(self, name) is not None
            ]
            raise ValueError(f"expected {names}, got {', '.join(found) or 'none of them'}")
        questions, texts = ([side] if isinstance(side, str) else side for side in given[0])
        for question in questions:
            check_question(question)
        if len(questions) == 1:
            questions = questions * len(texts)
        if len(questions) != len(texts):
            raise ValueError(
                "expected one question or as many questions as texts, "
                f"got {len(questions)} and {len(texts)}"
            )
        return list(zip(questions, texts, strict=True))


class ScoreItem(Schema):
    """The score of one pair."""

    index: int
    object: str = "score"
    score: Annotated[float, Field(description="From 0 to 1.")]


class ScoreResponse(Schema):
    """Scores, in the order of the pairs, as vLLM returns them."""

    id: str
    object: str = "list"
    created: int
    model: str
    data: list[ScoreItem]
    usage: Usage


class TeiRequest(Schema):
    """A request of TEI clients."""

    query: Query
    texts: Annotated[list[Text], NotEmpty]
    raw_scores: Annotated[
        bool,
        Field(description="Return the scores of the ranker (log odds if calibrated), not 0 to 1."),
    ] = False
    return_text: bool = False
    truncate: Annotated[bool | None, Field(description="Ignored: texts are never truncated.")] = (
        None
    )
    truncation_direction: Literal["left", "right", "Left", "Right"] | None = None
    deadline_ms: DeadlineMs = None


class TeiItem(Schema):
    """One text of the ranking. TEI responses are a list of these, best first."""

    index: int
    score: float
    text: str | None = None
