"""Requests generated from the OpenAPI description are answered without a 500."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, settings

from askline.serving.app import create_app
from askline.serving.monitoring import Metrics
from askline.serving.settings import Settings
from askline.serving.worker_pool import WorkerPool

from .server_process import Server

pytestmark = pytest.mark.slow


def _app() -> FastAPI:
    chosen, metrics = Settings(), Metrics()
    return create_app(chosen, WorkerPool(chosen, metrics), metrics)


schema = schemathesis.openapi.from_dict(json.loads(json.dumps(_app().openapi())))


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank", "/score", "/v1/score"])
def test_the_routes_of_other_rerankers_exist(path: str) -> None:
    assert "post" in _app().openapi()["paths"][path]


def test_errors_of_a_stream_are_documented_as_json() -> None:
    responses = _app().openapi()["paths"]["/v1/ask/stream"]["post"]["responses"]
    media_types = {status: list(own["content"]) for status, own in responses.items()}
    assert media_types.pop("200") == ["application/x-ndjson"]
    assert media_types
    assert all(own == ["application/json"] for own in media_types.values())


def test_the_schema_refuses_every_question_that_is_only_white_space() -> None:
    properties = _app().openapi()["components"]["schemas"]["AskRequest"]["properties"]
    pattern = re.compile(properties["question"]["pattern"], re.ASCII)
    blank = [chr(code) for code in range(256) if chr(code).isspace() and code != 0xA0]
    assert not [each for each in blank if pattern.search(each)]
    assert pattern.search("\x00")
    assert pattern.search("Why?")


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Not the server of other tests: the requests add documents."""
    folder = tmp_path_factory.mktemp("fuzzed") / "index"
    with Server("--index", str(folder), "--model", "cosinet", "--workers", "1") as running:
        yield running


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@pytest.mark.filterwarnings("default")
def test_generated_requests_do_not_break_the_service(
    case: schemathesis.Case[Any], own_server: Server
) -> None:
    response = case.call(base_url=own_server.base)
    assert response.status_code < 500 or response.status_code in (503, 504), (
        response.text,
        own_server.lines[-50:],
    )
    case.validate_response(response, checks=[schemathesis.checks.response_schema_conformance])
