"""The check that a body is plain JSON, made after routing, so that a wrong method gets 405."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from .http_errors import ServiceError

__all__ = ["JsonRoute"]

_JSON = re.compile(r"application/([\w.-]+\+)?json")


class JsonRoute(APIRoute):
    """A route that refuses a body that is compressed or not declared as JSON, with status 415."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route, with the check before it."""
        handler = super().get_route_handler()
        if "POST" not in (self.methods or ()):
            return handler

        async def checked(request: Request) -> Response:
            _check_media_type(request)
            return await handler(request)

        return checked


def _check_media_type(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise ServiceError(
            f"The body must not be compressed, got Content-Encoding: {encoding[:50]}. Send the "
            "JSON as it is, without Content-Encoding.",
            status=415,
            headers={"Accept-Encoding": "identity"},
        )
    # Browsers do not send this type from a form, so no other site can post on a user's behalf.
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not _JSON.fullmatch(media_type):
        raise ServiceError("The body must be JSON: Content-Type: application/json.", status=415)
