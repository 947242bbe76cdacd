"""
The errors of the service and the JSON bodies in which the clients of each route read them.

Cohere clients read `message`, Jina clients `detail`, TEI clients `error` and `error_type`, vLLM
clients an `error` object. `/rerank` serves both Jina and TEI; an error that occurs before its body
is read has the fields of both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from .common_schemas import ErrorSchema
from .messages import JobFailure

__all__ = [
    "COMMON_ERRORS",
    "ClientDisconnectedError",
    "DeadlineError",
    "InternalError",
    "InvalidRequestError",
    "NoWorkerFreeError",
    "QueueFullError",
    "ServiceError",
    "ShuttingDownError",
    "TimeLimitError",
    "WorkerLostError",
    "error_body",
    "error_of_failure",
    "error_response",
    "error_responses",
]


class ServiceError(Exception):
    """An error with the HTTP status of its response."""

    status = 500
    retry_after: int | None = None
    """Seconds, for the header Retry-After."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.headers = dict(headers or {})
        self.status = status or self.status
        self.retry_after = retry_after or self.retry_after


class InvalidRequestError(ServiceError):
    """The request has a value that cannot be used."""

    status = 422


class QueueFullError(ServiceError):
    """The queue has reached its maximum length."""

    status = 429

    def __init__(self, queued: int, retry_after: int) -> None:
        super().__init__(
            f"The queue is full: {queued} requests are waiting. Try again in {retry_after} s.",
            retry_after=retry_after,
        )


class ClientDisconnectedError(ServiceError):
    """The client closed the connection before the response."""

    status = 499

    def __init__(self) -> None:
        super().__init__("The client closed the connection.")


class InternalError(ServiceError):
    """A bug or a failing ranker. The cause is in the log only."""

    def __init__(self) -> None:
        super().__init__("The request failed with an internal error. See the log of the service.")


class WorkerLostError(ServiceError):
    """The worker process ended during the job."""

    status = 503
    retry_after = 1

    def __init__(self) -> None:
        super().__init__("The worker process ended during the request. Try again.")


class DeadlineError(ServiceError):
    """The deadline passed before any ranking was ready."""

    status = 504

    def __init__(self) -> None:
        super().__init__("The deadline passed before a ranking was ready. Allow more time.")


class ShuttingDownError(ServiceError):
    """The service is stopped and has no more time for the request."""

    status = 503
    retry_after = 5

    def __init__(self) -> None:
        super().__init__("The service is shutting down. Try again.")


class TimeLimitError(ServiceError):
    """The request took longer than the service allows."""

    status = 504

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The request took longer than {seconds:g} s, which is the limit of this service. "
            "Send fewer or shorter documents, or a deadline to get the ranking that is ready."
        )


class NoWorkerFreeError(ServiceError):
    """No worker was free within the time that the service allows for a request."""

    status = 503

    def __init__(self, seconds: float, retry_after: int) -> None:
        super().__init__(
            f"No worker was free within {seconds:g} s. Try again in {retry_after} s.",
            retry_after=retry_after,
        )


_STATUS_OF_KIND = {"input": 422, "corpus": 503, "cancelled": 499}


def error_of_failure(failure: JobFailure) -> ServiceError:
    """Return the error for the failure of a job. Messages of internal failures are not shown."""
    if failure.kind == "deadline":
        return DeadlineError()
    if failure.kind == "internal":
        return InternalError()
    status = failure.status or _STATUS_OF_KIND[failure.kind]
    return ServiceError(failure.message, status=status, retry_after=1 if status == 503 else None)


# --- Responses ---

_TEI_TYPES = {400: "Empty", 429: "Overloaded", 503: "Unhealthy", 500: "Backend", 504: "Backend"}
_VLLM_TYPES = {401: "AuthenticationError", 404: "NotFoundError", 429: "RateLimitError"}


def error_body(path: str, status: int, message: str, *, body: object = None) -> dict[str, Any]:
    """
    Return the JSON of an error, as the clients of the route read it.

    `body` is the decoded request body, if known: it tells the clients of `/rerank` apart.
    """
    if path in ("/score", "/v1/score"):
        kind = _VLLM_TYPES.get(status, "BadRequestError" if status < 500 else "InternalServerError")
        error = {"message": message, "type": kind, "param": None, "code": status}
        return {"object": "error", **error, "error": error}
    tei = {"error": message, "error_type": _TEI_TYPES.get(status, "Validation")}
    cohere_and_jina = {"message": message, "detail": message}
    if path != "/rerank":
        return cohere_and_jina
    if isinstance(body, dict) and "texts" in body:
        return tei
    if isinstance(body, dict) and "documents" in body:
        return cohere_and_jina
    return tei | cohere_and_jina


def error_response(path: str, error: ServiceError, *, body: object = None) -> Response:
    """Return the response to a request that failed."""
    # json.dumps escapes lone surrogates, which UTF-8 cannot encode.
    content = json.dumps(error_body(path, error.status, str(error), body=body))
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(content, error.status, headers, media_type="application/json")


# --- OpenAPI ---

_DESCRIPTIONS = {
    400: "The body is not JSON, or a list in it is empty.",
    401: "An API key is needed.",
    403: "The API key may not change documents.",
    404: "The document or the ranker does not exist, or the service has no index.",
    408: "The body did not arrive in time.",
    413: "The request is larger than a limit of the service.",
    415: "The body is compressed, or not application/json.",
    422: "A value in the request cannot be used.",
    429: "The queue is full. Retry-After says when to try again.",
    503: "No worker is free, or the index is busy. Retry-After says when to try again.",
    504: "The deadline or the time limit of the service passed before a ranking was ready.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the argument `responses` of a route, for its OpenAPI description."""
    return {
        status: {"model": ErrorSchema, "description": _DESCRIPTIONS[status]} for status in statuses
    }


COMMON_ERRORS = error_responses(400, 401, 408, 413, 415, 422, 429, 503, 504)
"""Of all routes that execute a job."""
