"""`/score` and `/v1/score` as vLLM speaks it: pairs in, scores in the same order out."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from .common import DeadlineMs, Text, Wire
from .rerank import Model, Usage

__all__ = ["ScoreItem", "ScoreRequest", "ScoreResponse"]

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
