from __future__ import annotations

from askline.serving.routes.page import as_html, as_markdown

API = {
    "paths": {
        "/lamp/{id}": {
            "get": {
                "summary": "Light it",
                "description": "With `oil` & wick.",
                "parameters": [
                    {
                        "name": "hours",
                        "schema": {"type": "integer", "minimum": 0, "maximum": 5000, "default": 0},
                        "description": "How long | at most.",
                    }
                ],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/c/Lamp"}}}},
                    "404": {},
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Lamp": {
                "description": "A <lamp>.",
                "required": ["oil"],
                "properties": {
                    "oil": {"type": "array", "items": {"type": "string"}},
                    "colour": {"enum": ["red", "green"], "default": "red"},
                    "age": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                },
            }
        }
    },
}


def test_markdown_has_routes_and_schemas() -> None:
    assert as_markdown(API) == (
        "## `GET /lamp/{id}`\n\n"
        "Light it. With `oil` & wick. Response: [Lamp](#lamp). Errors: 404.\n\n"
        "| parameter | type | default | meaning |\n"
        "| --- | --- | --- | --- |\n"
        "| `hours` | integer ≥ 0 ≤ 5,000 | 0 | How long \\| at most. |\n\n"
        "## Schemas\n\n"
        "Fields without a default are required.\n\n"
        "### Lamp\n\n"
        "A <lamp>.\n\n"
        "| field | type | default | meaning |\n"
        "| --- | --- | --- | --- |\n"
        "| `oil` | list of string |  |  |\n"
        '| `colour` | `red` or `green` | "red" |  |\n'
        "| `age` | number or null | null |  |\n"
    )


def test_html_is_escaped() -> None:
    page = as_html(API)
    assert "<p>A &lt;lamp&gt;.</p>" in page
    assert 'Response: <a href="#Lamp">Lamp</a>.' in page
    assert '<h3 id="Lamp">' in page
    assert "With <code>oil</code> &amp; wick." in page
    assert '<h2 id="GET-/lamp/{id}"><code>GET /lamp/{id}</code></h2>' in page


def test_a_schema_without_a_section_is_no_link() -> None:
    api = {**API, "components": {"schemas": {"Lamp": {"enum": ["red"]}}}}
    assert "Response: Lamp." in as_markdown(api)
    assert "Response: Lamp." in as_html(api)
