"""`/health`, `/ready` and `/info`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .common import Wire

__all__ = ["Health", "Info"]


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
