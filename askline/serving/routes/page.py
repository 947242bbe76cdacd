"""
`/`, `/page/…` and `/docs`: the web page, its files, and the reference of all routes.

The reference is rendered from the OpenAPI description, as HTML here and as Markdown for the
documentation (docs/reference/http.md).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ..http_errors import ServiceError

__all__ = ["as_html", "as_markdown", "router"]

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
    content = template.replace("<!-- reference -->", as_html(request.app.openapi()))
    return Response(content, media_type=_MEDIA_TYPES["docs.html"])


def _file(name: str) -> Response:
    return Response(
        _content(name), media_type=_MEDIA_TYPES[name], headers={"Cache-Control": "no-cache"}
    )


@cache
def _content(name: str) -> bytes:
    return (files("askline.serving") / "page" / name).read_bytes()


JsonObject = dict[str, Any]

_MARK = "\x00"  # around the name of a schema, which becomes a link
_MARKED = re.compile(f"{_MARK}([^{_MARK}]+){_MARK}")


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    text: str
    table: tuple[tuple[str, ...], ...] = ()
    """Rows; the first is the header."""
    level: int = 2


def as_html(api: JsonObject) -> str:
    """Render the routes of an OpenAPI description, then the schemas of their bodies, as HTML."""
    parts = []
    for section in _sections(api):
        anchor = section.title.strip("`").replace(" ", "-")
        level = section.level
        parts.append(f'<h{level} id="{html.escape(anchor)}">{_inline(section.title)}</h{level}>')
        parts.append(f"<p>{_inline(section.text)}</p>" if section.text else "")
        if section.table:
            header, *rows = section.table
            head = "".join(f"<th>{_inline(cell)}</th>" for cell in header)
            lines = ["".join(f"<td>{_inline(cell)}</td>" for cell in row) for row in rows]
            body = "".join(f"<tr>{line}</tr>" for line in lines)
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    page = "\n".join(filter(None, parts))
    return _link_schemas(page, api, lambda name: f'<a href="#{name}">{name}</a>')


def as_markdown(api: JsonObject) -> str:
    """Render the same as Markdown, for docs/reference/http.md."""
    parts = []
    for section in _sections(api):
        parts += [f"{'#' * section.level} {section.title}", section.text]
        if section.table:
            header, *rows = section.table
            lines = [header, ("---",) * len(header), *rows]
            cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
            parts.append("\n".join(f"| {' | '.join(line)} |" for line in cells))
    page = "\n\n".join(filter(None, parts)) + "\n"
    return _link_schemas(page, api, lambda name: f"[{name}](#{name.lower()})")


def _link_schemas(page: str, api: JsonObject, link: Callable[[str], str]) -> str:
    """Replace marked names of schemas by links to their sections, or by the name alone."""
    schemas = api["components"]["schemas"]
    has_section = {name for name, schema in schemas.items() if "properties" in schema}
    return _MARKED.sub(lambda found: link(found[1]) if found[1] in has_section else found[1], page)


def _sections(api: JsonObject) -> Iterator[_Section]:
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            yield _route(method.upper(), path, route)
    yield _Section("Schemas", "Fields without a default are required.")
    for name, schema in api["components"]["schemas"].items():
        if "properties" in schema:
            yield _Section(name, schema.get("description", ""), _fields(schema), 3)


def _route(method: str, path: str, route: JsonObject) -> _Section:
    text = f"{route['summary']}. {route.get('description', '')}".strip()
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    if body:
        text += f" Body: {_type(body['schema'])}."
    contents = route["responses"].get("200", {}).get("content", {})
    for media_type, content in contents.items():
        text += f" Response: {_response(media_type, content['schema'])}."
    codes = sorted(code for code in route["responses"] if code != "200")
    if codes:
        text += f" Errors: {', '.join(codes)}."
    rows = tuple(_parameter(each) for each in route.get("parameters", ()))
    header = ("parameter", "type", "default", "meaning")
    return _Section(f"`{method} {path}`", text, (header, *rows) if rows else ())


def _response(media_type: str, schema: JsonObject) -> str:
    if media_type == "application/json":
        return _type(schema)
    if media_type == "application/x-ndjson":
        return f"{media_type}, each line {_type(schema)}"
    return media_type


def _parameter(parameter: JsonObject) -> tuple[str, ...]:
    schema = parameter["schema"]
    description = parameter.get("description", schema.get("description", ""))
    return (f"`{parameter['name']}`", _type(schema), _default(schema), description)


def _fields(schema: JsonObject) -> tuple[tuple[str, ...], ...]:
    required = schema.get("required", [])
    rows = [
        (
            f"`{name}`",
            _type(field),
            "" if name in required else _default(field),
            field.get("description", ""),
        )
        for name, field in schema["properties"].items()
    ]
    return (("field", "type", "default", "meaning"), *rows)


def _default(schema: JsonObject) -> str:
    if "default" not in schema:
        return "null" if "anyOf" in schema else ""
    return json.dumps(schema["default"]) if schema["default"] != "" else "empty"


def _type(schema: JsonObject) -> str:
    if "$ref" in schema:
        return _MARK + str(schema["$ref"]).rpartition("/")[2] + _MARK
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[union]))
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    bounds = [
        f"{sign} {_number(schema[key])}"
        for key, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
        )
        if key in schema
    ]
    return " ".join([str(schema.get("type", "any")), *bounds])


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else str(value)


def _inline(text: str) -> str:
    """Escape text for HTML, with `code` in <code> elements."""
    parts = html.escape(text).split("`")
    return "".join(
        f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts)
    )
