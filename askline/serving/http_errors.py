"""
What can go wrong with a request, and the shape in which each kind of client wants to be told.

Cohere's client reads `message`, Jina's `detail`, TEI's `error` and `error_type`, vLLM's an `error`
object. One route serves both Jina and TEI; an error before the body was read has all their fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

__all__ = [
    "Fault",
    "Overloaded",
    "TooLate",
    "Unfit",
    "WorkerLost",
    "error_body",
    "fault_response",
    "of_failure",
]


class Fault(Exception):  # noqa: N818 – a status and a sentence for the client
    """A request that is answered with an error."""

    status = 500
    retry_after: int | None = None

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status or self.status


class Unfit(Fault):
    """What came cannot be used."""

    status = 422


class Overloaded(Fault):
    """As many wait as may wait."""

    status = 429

    def __init__(self, waiting: int, retry_after: int) -> None:
        super().__init__(
            f"{waiting} requests are waiting, as many as may. Try again in {retry_after} s."
        )
        self.retry_after = retry_after


class TooLate(Fault):
    """The deadline has passed, and there is no ranking to give."""

    status = 504

    def __init__(self) -> None:
        super().__init__("The deadline passed before there was a ranking. Allow more time.")


class WorkerLost(Fault):
    """The process that worked on it has ended."""

    status = 503
    retry_after = 1

    def __init__(self) -> None:
        super().__init__("The worker ended before it was done. Another is starting: try again.")


_STATUS = {"input": 422, "corpus": 503, "late": 504, "called off": 499}
_TEI_TYPES = {400: "Empty", 429: "Overloaded", 503: "Unhealthy", 500: "Backend", 504: "Backend"}
_VLLM_TYPES = {401: "AuthenticationError", 404: "NotFoundError", 429: "RateLimitError"}


def of_failure(failed: Mapping[str, Any]) -> Fault:
    """A worker's failure as a fault. What should not have happened keeps its words to the log."""
    kind = failed["kind"]
    if kind == "late":
        return TooLate()
    if kind == "fault":
        return Fault("The request could not be worked on. The service's log says why.")
    fault = Fault(failed["message"], status=failed.get("status") or _STATUS[kind])
    fault.retry_after = 1 if fault.status == 503 else None
    return fault


def error_body(path: str, status: int, message: str, *, body: object = None) -> dict[str, Any]:
    """The error as the clients of that route read it."""
    if path in ("/score", "/v1/score"):
        kind = _VLLM_TYPES.get(status, "BadRequestError" if status < 500 else "InternalServerError")
        inner = {"message": message, "type": kind, "param": None, "code": status}
        return {"object": "error", **inner, "error": inner}
    tei = {"error": message, "error_type": _TEI_TYPES.get(status, "Validation")}
    others = {"message": message, "detail": message}
    if path != "/rerank":
        return others
    if isinstance(body, dict) and "texts" in body:
        return tei
    if isinstance(body, dict) and "documents" in body:
        return others
    return tei | others


def fault_response(path: str, fault: Fault, *, body: object = None) -> Response:
    """The whole response. Escapes let half characters through, which UTF-8 would not."""
    content = json.dumps(error_body(path, fault.status, str(fault), body=body))
    headers = {}
    if fault.retry_after is not None:
        headers["Retry-After"] = str(fault.retry_after)
    if fault.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(content, fault.status, headers, media_type="application/json")
