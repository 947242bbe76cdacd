"""The HTTP reference out of the OpenAPI: as Markdown for docs/http.md, as HTML for `/docs`."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "as_html",
    "as_markdown",
]

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    text: str
    table: tuple[tuple[str, ...], ...] = ()
    """Rows, the first of them the header."""
    level: int = 2


def as_markdown(api: Schema) -> str:
    """Routes, then the records they take and give."""
    parts = []
    for section in _sections(api):
        parts += [f"{'#' * section.level} {section.title}", section.text]
        if section.table:
            header, *rows = section.table
            lines = [header, ("---",) * len(header), *rows]
            cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
            parts.append("\n".join(f"| {' | '.join(line)} |" for line in cells))
    return "\n\n".join(filter(None, parts)) + "\n"


def as_html(api: Schema) -> str:
    """The same as a page that loads nothing but the service's own style."""
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
    return "\n".join(filter(None, parts))


def _sections(api: Schema) -> Iterator[_Section]:
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            yield from _route(method.upper(), path, route)
    yield _Section("Records", "Fields without a default must be there.")
    for name, schema in api["components"]["schemas"].items():
        if "properties" in schema:
            yield _Section(name, schema.get("description", ""), _fields(schema), 3)


def _route(method: str, path: str, route: Schema) -> Iterator[_Section]:
    text = f"{route['summary']}. {route.get('description', '')}".strip()
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    if body:
        text += f" Takes {_kind(body['schema'])}."
    given = route["responses"].get("200", {}).get("content", {})
    for kind, content in given.items():
        named = _kind(content["schema"]) if kind == "application/json" else kind
        text += f" Gives {named}."
    codes = sorted(code for code in route["responses"] if code != "200")
    if codes:
        text += f" Errors: {', '.join(codes)}."
    rows = tuple(_parameter(each) for each in route.get("parameters", ()))
    head = ("parameter", "kind", "default", "meaning")
    yield _Section(f"`{method} {path}`", text, (head, *rows) if rows else ())


def _parameter(parameter: Schema) -> tuple[str, ...]:
    schema = parameter["schema"]
    about = parameter.get("description", schema.get("description", ""))
    return (f"`{parameter['name']}`", _kind(schema), _default(schema), about)


def _fields(schema: Schema) -> tuple[tuple[str, ...], ...]:
    wanted = schema.get("required", [])
    rows = [
        (
            f"`{name}`",
            _kind(own),
            "" if name in wanted else _default(own),
            own.get("description", ""),
        )
        for name, own in schema["properties"].items()
    ]
    return (("field", "kind", "default", "meaning"), *rows)


def _default(schema: Schema) -> str:
    if "default" not in schema:
        return "null" if "anyOf" in schema else ""
    return json.dumps(schema["default"]) if schema["default"] != "" else "empty"


def _kind(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_kind(each) for each in schema[several]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    bounds = [
        f"{sign} {schema[key]:,}"
        for key, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
        )
        if key in schema
    ]
    return " ".join([str(schema.get("type", "any")), *bounds])


def _inline(text: str) -> str:
    """Escaped, with `code` as code."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
