"""`askline index --to` and the commands that read such an index, with a real PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..phrases.models import make_folder
from ..postgres_server import PostgresServer
from .conftest import Run

pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow


def test_index_ask_and_status_take_a_url(
    run: Run, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = postgres_server.url(schema="commands")
    (tmp_path / "rock.txt").write_text("The first lighthouse was lit in 1698. It sank.\n")
    (tmp_path / "bread.txt").write_text("Yeast makes dough rise.\n")
    assert run("ask", "Who?", "--index", url).exit_code == 1
    indexed = run("index", str(tmp_path), "--to", url)
    assert (indexed.exit_code, indexed.stdout[:8]) == (0, "2 added:")
    question = "When was the first lighthouse lit?"
    asked = run("ask", question, "--index", url, "--ranker", "bm25", "--json")
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout)["answers"][0]["document"] == "rock.txt"
    assert "documents   2\n" in run("status", url).stdout
    assert "2 checked, 0 damaged" in run("index", "--verify", "--to", url).stdout
    assert run("index", "--remove", str(tmp_path), "--to", url).stdout == "bread.txt\nrock.txt\n"


def test_phrases_are_encoded_into_a_database(
    run: Run, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = postgres_server.url(schema="phrase_commands")
    model = make_folder(tmp_path / "model")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "emma.txt").write_text("Jane Austen wrote Emma. It is a novel.\n")
    indexed = run("index", str(tmp_path / "texts"), "--to", url, "--phrase-model", str(model))
    assert indexed.exit_code == 0, indexed.output
    assert "up to date" in run("status", url).stdout.partition("phrases")[2]
    for options in (["--phrases", "--ranker", "bm25"], ["--nearest"]):
        asked = run("ask", "Who wrote Emma?", "--index", url, *options, "--json")
        assert asked.exit_code == 0, asked.output
        assert json.loads(asked.stdout)["answers"][0]["document"] == "emma.txt"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Give either --out DIR or --to URL."),
        (["--out", "x", "--to", "postgresql://h/d"], "Give either --out DIR or --to URL."),
        (["--to", "mysql://me:secret@h/d"], "--to must be postgresql://HOST/DATABASE"),
        (["--to", "postgresql://h/d", "--shards", "2"], "Shards are kept only in folders"),
    ],
)
def test_wrong_places_are_refused(run: Run, options: list[str], message: str) -> None:
    refused = run("index", ".", *options)
    assert refused.exit_code == 2
    assert message in refused.output
    assert "secret" not in refused.output
