"""`/`, `/page/…` and `/docs`: the web page, its files, and the HTTP reference."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ..http_errors import ServiceError
from ..openapi_reference import as_html

__all__ = ["router"]

router = APIRouter(include_in_schema=False)

_MEDIA_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "docs.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "app.js": "text/javascript; charset=utf-8",
    "ask.js": "text/javascript; charset=utf-8",
    "compare.js": "text/javascript; charset=utf-8",
    "stages.js": "text/javascript; charset=utf-8",
    "shared.js": "text/javascript; charset=utf-8",
}


@router.head("/")
@router.get("/")
async def page() -> Response:
    """Return the page."""
    return _file("index.html")


@router.get("/page/{name}")
async def page_file(name: str) -> Response:
    """Return a file of the page. The name is looked up in a table, never in the file system."""
    if name not in _MEDIA_TYPES:
        raise ServiceError(f"No file {name[:100]!r}.", status=404)
    return _file(name)


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Return the reference of all routes."""
    template = _content("docs.html").decode()
    html = template.replace("<!-- reference -->", as_html(request.app.openapi()))
    return Response(html, media_type=_MEDIA_TYPES["docs.html"])


def _file(name: str) -> Response:
    return Response(
        _content(name), media_type=_MEDIA_TYPES[name], headers={"Cache-Control": "no-cache"}
    )


@cache
def _content(name: str) -> bytes:
    return (files("askline.serving") / "page" / name).read_bytes()
