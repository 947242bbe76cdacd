"""
`/v1/rerank`, `/v2/rerank` and `/rerank` as Cohere, Jina and vLLM speak it.

`/score` and `/v1/score` as vLLM speaks it: pairs in, scores in the same order out.

`/rerank` as Hugging Face's text-embeddings-inference speaks it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .common_schemas import DeadlineMs, Text, TextOrDocument, Wire, document_text

__all__ = [
    "ApiVersion",
    "Meta",
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

Query = Annotated[Text, Field(description="The question.")]
Model = Annotated[
    Text | None,
    Field(
        max_length=1_000,
        description="A ranker that `/info` lists; any other name stands for the default.",
    ),
]
TopN = Annotated[int | None, Field(ge=1, description="How many results to give; all without it.")]


class RerankRequestV2(Wire):
    """Cohere's second version: documents are texts, and none comes back."""

    model: Model = None
    query: Query
    documents: list[Text]
    top_n: TopN = None
    max_tokens_per_doc: Annotated[
        int | None, Field(ge=1, description="Taken and not needed: documents are read whole.")
    ] = None
    priority: int | None = None
    deadline_ms: DeadlineMs = None

    def texts(self) -> list[str]:
        """What is ranked."""
        return self.documents


class RerankRequest(Wire):
    """Cohere's first version, Jina's and vLLM's."""

    model: Model = None
    query: Query
    documents: list[TextOrDocument]
    top_n: TopN = None
    rank_fields: Annotated[
        list[str] | None, Field(description="Fields of the documents to rank by; else `text`.")
    ] = None
    return_documents: Annotated[
        bool | None,
        Field(description="Without it, as the client is used to: Jina's true, Cohere's false."),
    ] = None
    max_chunks_per_doc: Annotated[
        int | None, Field(ge=1, description="Taken and not needed: documents are read whole.")
    ] = None
    deadline_ms: DeadlineMs = None

    def texts(self) -> list[str]:
        """What is ranked."""
        return [document_text(document, self.rank_fields) for document in self.documents]


class RerankItem(Wire):
    """One document's place."""

    index: Annotated[int, Field(description="Position in the list that came.")]
    relevance_score: Annotated[float, Field(description="From 0 to 1, never rising.")]


class RankedText(Wire):
    """A document as it was ranked."""

    text: str


class RerankItemWithDocument(RerankItem):
    """One document's place, and the document where it was asked for."""

    document: RankedText | None = None


class ApiVersion(Wire):
    """Which of Cohere's versions this is."""

    version: str


class BilledUnits(Wire):
    """Nobody is billed; clients read it."""

    search_units: float = 1


class Meta(Wire):
    """As Cohere has it."""

    api_version: ApiVersion
    billed_units: BilledUnits = Field(default_factory=BilledUnits)


class Usage(Wire):
    """Words read, by askline's own count."""

    total_tokens: int
    prompt_tokens: int


class RerankResponseV2(Wire):
    """Best first."""

    id: str
    results: list[RerankItem]
    meta: Meta


class RerankResponse(Wire):
    """Best first; the fields of Cohere, Jina and vLLM together."""

    id: str
    object: str = "list"
    model: str
    usage: Usage
    results: list[RerankItemWithDocument]
    meta: Meta


Side = Text | list[Text]
_NAMES = (("queries", "documents"), ("text_1", "text_2"), ("data_1", "data_2"))


class ScoreRequest(Wire):
    """Two sides under one of three pairs of names; one text with many, or as many with as many."""

    model: Model = None
    queries: Side | None = None
    documents: Side | None = None
    text_1: Side | None = None
    text_2: Side | None = None
    data_1: Side | None = None
    data_2: Side | None = None
    deadline_ms: DeadlineMs = None

    @model_validator(mode="after")
    def _sides_match(self) -> ScoreRequest:
        self.pairs()
        return self

    def pairs(self) -> list[tuple[str, str]]:
        """Question and text of each pair."""
        sides = [(getattr(self, one), getattr(self, other)) for one, other in _NAMES]
        given = [(one, other) for one, other in sides if one is not None and other is not None]
        if len(given) != 1:
            names = " or ".join(f"{one} and {other}" for one, other in _NAMES)
            raise ValueError(f"expected {names}, got {len(given)} of these pairs")
        questions, texts = ([side] if isinstance(side, str) else side for side in given[0])
        if len(questions) == 1:
            questions = questions * len(texts)
        if len(questions) != len(texts):
            raise ValueError(
                "expected one text or as many on either side, "
                f"got {len(questions)} and {len(texts)}"
            )
        return list(zip(questions, texts, strict=True))


class ScoreItem(Wire):
    """One pair's score."""

    index: int
    object: str = "score"
    score: Annotated[float, Field(description="From 0 to 1.")]


class ScoreResponse(Wire):
    """Scores in the order of the pairs."""

    id: str
    object: str = "list"
    created: int
    model: str
    data: list[ScoreItem]
    usage: Usage


class TeiRequest(Wire):
    """A question and texts."""

    query: Annotated[Text, Field(description="The question.")]
    texts: list[Text]
    raw_scores: Annotated[
        bool, Field(description="The ranker's own scores (log odds of chances), not 0 to 1.")
    ] = False
    return_text: bool = False
    truncate: Annotated[
        bool | None, Field(description="Taken and not needed: texts are read whole.")
    ] = None
    truncation_direction: Literal["left", "right", "Left", "Right"] | None = None
    deadline_ms: DeadlineMs = None


class TeiItem(Wire):
    """One text's place; the list is best first."""

    index: int
    score: float
    text: str | None = None
