"""`/rerank` as Hugging Face's text-embeddings-inference speaks it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .common import DeadlineMs, Text, Wire

__all__ = ["TeiItem", "TeiRequest"]


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
