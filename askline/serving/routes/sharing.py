"""What routes say alike: their errors in the OpenAPI, and the limit on documents."""

from __future__ import annotations

from typing import Any

from ..common_schemas import Problem
from ..http_errors import Fault
from ..service import Service

__all__ = ["ERRORS", "check_count", "errors"]

_MEANINGS = {
    400: "The body is no JSON, or empty where it may not be.",
    401: "A key is needed.",
    404: "There is no such document, or no index.",
    408: "The body did not arrive in time.",
    413: "More than the service takes in one request.",
    415: "The body is not application/json.",
    422: "What came cannot be used.",
    429: "The queue is full; Retry-After says when to come again.",
    503: "No worker, or the index is busy; Retry-After says when to come again.",
    504: "The deadline passed before there was a ranking.",
}


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """For `responses` of a route."""
    return {code: {"model": Problem, "description": _MEANINGS[code]} for code in codes}


ERRORS = errors(400, 401, 408, 413, 415, 422, 429, 503, 504)


def check_count(service: Service, count: int, *, name: str) -> None:
    """413 for too many, 400 for none."""
    limit = service.settings.limits.documents
    if count > limit:
        raise Fault(f"{name} must have at most {limit:,} entries, got {count:,}.", status=413)
    if count == 0:
        raise Fault(f"{name} must have at least one entry, got none.", status=400)
