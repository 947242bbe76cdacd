"""`/v1/rerank`, `/v2/rerank` and `/rerank` as Cohere, Jina and vLLM speak it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .common import DeadlineMs, Text, TextOrDocument, Wire, document_text

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
