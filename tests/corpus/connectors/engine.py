"""
An HTTP server that answers requests of the search engines with the bodies they document.

Field capabilities, count, search, bulk, delete by query, and the creation of an index:
https://opensearch.org/docs/latest/api-reference/ and
https://www.elastic.co/docs/api/doc/elasticsearch/ have the shapes.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}


@dataclass
class Asked:
    path: str
    options: dict[str, list[str]]
    body: dict[str, Any]
    authorization: str | None


@dataclass
class Engine:
    """Indexes by name, each with documents by id; every request is written down."""

    indexes: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=lambda: {"body": "text", "title": "text"})
    asked: list[Asked] = field(default_factory=list)
    wait: float = 0.0
    failure: tuple[int, dict[str, Any] | str] | None = None
    product: str | None = "Elasticsearch"
    refused: str | None = None
    """The id of a document that a bulk request cannot write."""

    def __enter__(self) -> Engine:
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                engine._answer(self)

            do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        url = urlsplit(request.path)
        data = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        is_bulk = url.path.endswith("/_bulk")
        lines = [json.loads(line) for line in data.splitlines()] if is_bulk else []
        body = {"lines": lines} if is_bulk else json.loads(data) if data else {}
        self.asked.append(
            Asked(url.path, parse_qs(url.query), body, request.headers.get("Authorization"))
        )
        time.sleep(self.wait)
        status, content = self.failure or self._content(request.command, url.path, body)
        plain = isinstance(content, str)
        data = str(content).encode() if plain else json.dumps(content).encode()
        try:
            request.send_response(status)
            request.send_header("Content-Type", "text/plain" if plain else "application/json")
            request.send_header("Content-Length", str(len(data)))
            if self.product:
                request.send_header("X-Elastic-Product", self.product)
            request.end_headers()
            if request.command != "HEAD":
                request.wfile.write(data)
        except OSError:
            pass  # the client did not wait

    def _content(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        pattern, _, verb = path.strip("/").partition("/")
        if method == "PUT" and not verb:
            self.indexes[pattern] = {}
            return 200, {"acknowledged": True, "shards_acknowledged": True, "index": pattern}
        names = [name for name in self.indexes if name.startswith(pattern.rstrip("*"))]
        if not names or (pattern not in names and not pattern.endswith("*")):
            return 404, missing(pattern)
        if method == "HEAD" or verb == "_refresh":
            return 200, {"_shards": SHARDS}
        if verb == "_bulk":
            return 200, self._write_lines(pattern, body["lines"])
        if verb == "_delete_by_query":
            return 200, self._delete(pattern, body["query"]["bool"]["must_not"]["term"])
        if verb == "_field_caps":
            return 200, {"indices": names, "fields": self._fields()}
        documents = [(name, *item) for name in names for item in self.indexes[name].items()]
        if verb == "_count":
            return 200, {"count": len(documents), "_shards": SHARDS}
        hits = [
            {"_index": name, "_id": number, "_score": 9.5 - at, "_source": source}
            for at, (name, number, source) in enumerate(documents[: body["size"]])
        ]
        return 200, {
            "took": 3,
            "timed_out": False,
            "_shards": SHARDS,
            "hits": {"max_score": 9.5 if hits else None, "hits": hits},
        }

    def _write_lines(self, index: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
        items = []
        for action, source in zip(lines[::2], lines[1::2], strict=True):
            name = action["index"]["_id"]
            item: dict[str, Any] = {"_index": index, "_id": name, "status": 201}
            if name == self.refused:
                cause = {"type": "mapper_parsing_exception", "reason": "failed to parse"}
                item |= {"status": 400, "error": cause}
            else:
                self.indexes[index][name] = source
            items.append({"index": item})
        errors = any("error" in item["index"] for item in items)
        return {"took": 3, "errors": errors, "items": items}

    def _delete(self, index: str, kept: dict[str, str]) -> dict[str, Any]:
        ((name, value),) = kept.items()
        stored = self.indexes[index]
        gone = [key for key, source in stored.items() if source.get(name) != value]
        for key in gone:
            del stored[key]
        return {"took": 3, "deleted": len(gone), "failures": []}

    def _fields(self) -> dict[str, Any]:
        return {
            name: {
                kind: {
                    "type": kind,
                    "metadata_field": name.startswith("_"),
                    "searchable": True,
                    "aggregatable": kind != "text",
                }
            }
            for name, kind in {"_id": "_id", "year": "integer", **self.types}.items()
        }


def missing(index: str) -> dict[str, Any]:
    cause = {
        "type": "index_not_found_exception",
        "reason": f"no such index [{index}]",
        "resource.type": "index_or_alias",
        "resource.id": index,
        "index_uuid": "_na_",
        "index": index,
    }
    return {"error": {"root_cause": [cause], **cause}, "status": 404}
