"""The page, its few files, and the reference. All of it comes with the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ..http_errors import Fault
from ..openapi_reference import as_html

__all__ = ["router"]

router = APIRouter(include_in_schema=False)

_KINDS = {
    "index.html": "text/html; charset=utf-8",
    "docs.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "app.js": "text/javascript; charset=utf-8",
    "ask.js": "text/javascript; charset=utf-8",
    "compare.js": "text/javascript; charset=utf-8",
    "funnel.js": "text/javascript; charset=utf-8",
    "shared.js": "text/javascript; charset=utf-8",
}


@router.head("/")
@router.get("/")
async def page() -> Response:
    """The page."""
    return _file("index.html")


@router.get("/page/{name}")
async def part(name: str) -> Response:
    """One of its files: looked up in a table, never on the disk."""
    if name not in _KINDS:
        raise Fault("There is no such file.", status=404)
    return _file(name)


@router.get("/docs")
async def docs(request: Request) -> Response:
    """The reference of all routes."""
    text = (
        _content("docs.html").decode().replace("<!-- reference -->", as_html(request.app.openapi()))
    )
    return Response(text, media_type=_KINDS["docs.html"])


def _file(name: str) -> Response:
    return Response(_content(name), media_type=_KINDS[name], headers={"Cache-Control": "no-cache"})


@cache
def _content(name: str) -> bytes:
    return (files("askline.serving") / "page" / name).read_bytes()
