"""Phrases of a corpus in PostgreSQL, with pgvector in a real server, beside those of a folder."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from askline.corpus import Corpus
from askline.corpus.connectors.postgres_connection import PostgresPool
from askline.corpus.connectors.server_url import ServerUrl
from askline.corpus.postgres_schema import MIGRATIONS, prepare_schema
from askline.corpus.search_index import FORMAT
from askline.errors import CorpusError

from ..phrases.models import make_folder
from ..postgres_server import PostgresServer

psycopg = pytest.importorskip("psycopg")
postgres_phrases = pytest.importorskip("askline.corpus.postgres_phrases")

pytestmark = pytest.mark.slow

TEXTS = {
    "austen": "Jane Austen wrote Emma. Emma is a novel. Austen was born in 1775.",
    "herbert": "Frank Herbert wrote Dune. Dune is a planet of sand.",
    "paris": "Paris is the capital of France. It is a city.",
}
QUESTION = "who wrote emma ?"
_schemas = count()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    """The URL of a schema that does not exist yet."""
    return postgres_server.url(schema=f"phrases{next(_schemas)}")


@pytest.fixture
def corpus(url: str, model: Path) -> Iterator[Corpus]:
    with Corpus.open(url, ranker=None) as corpus:
        corpus.add(TEXTS)
        corpus.encode_phrases(model)
        yield corpus


def _run(server: PostgresServer, *statements: str) -> list[Any]:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def _schema(url: str) -> str:
    return url.rpartition("schema=")[2]


def _phrases(server: PostgresServer, url: str) -> list[Any]:
    """Each phrase with the name of its document."""
    schema = _schema(url)
    return _run(
        server,
        f"SELECT name, p.first, p.last, start, stop FROM {schema}.phrases p "
        f"JOIN {schema}.documents d ON d.id = p.document ORDER BY 1, 2, 3, 4, 5",
    )


# --- The same as in a folder ---


def test_answers_and_scores_are_those_of_a_folder(
    corpus: Corpus, tmp_path: Path, model: Path
) -> None:
    with Corpus.open(tmp_path / "index", ranker=None) as embedded:
        embedded.add(TEXTS)
        embedded.encode_phrases(model)
        for question in (QUESTION, "what is the capital of france", "when was austen born ?"):
            ours, theirs = corpus.nearest(question, top_k=9), embedded.nearest(question, top_k=9)
            scores = {(each.document, each.start): each.score for each in theirs}
            assert {(each.document, each.start): each.score for each in ours} == pytest.approx(
                scores,
                abs=0.1,  # of the 8 bits of the embedded index: the tiny vectors have few numbers
            )
            for answer in ours:
                assert answer.phrase is not None
                assert answer.text[answer.phrase.start : answer.phrase.end] == answer.phrase.text
            assert ours.answers[0].phrase == theirs.answers[0].phrase
            both = corpus.ask(question, phrases=True), embedded.ask(question, phrases=True)
            assert len({tuple(each.text for each in answers)[:1] for answers in both}) == 1
        assert corpus.status().phrases == embedded.status().phrases
        assert corpus.status().phrase_bytes > 0


def test_the_shipped_model_gives_the_answers_of_a_folder(url: str, tmp_path: Path) -> None:
    questions = ["Who wrote Emma?", "What is the capital of France?", "When was Austen born?"]
    with Corpus.open(url, ranker=None) as shared, Corpus.open(tmp_path, ranker=None) as embedded:
        for each in (shared, embedded):
            each.add(TEXTS)
        for question in questions:
            ours, theirs = shared.nearest(question), embedded.nearest(question)
            assert [(a.document, a.start, a.phrase) for a in ours] == [
                (a.document, a.start, a.phrase) for a in theirs
            ]
            scores = [answer.score for answer in theirs]
            assert [answer.score for answer in ours] == pytest.approx(scores, rel=0.01)


def test_inverted_lists_are_built_for_many_phrases(
    corpus: Corpus, url: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = corpus.nearest(QUESTION, top_k=1).best
    monkeypatch.setattr(postgres_phrases, "EXACT_SEARCH_ROWS", 10)
    monkeypatch.setattr(postgres_phrases, "_LISTS_PER_PROBE", 1)
    corpus.encode_phrases(model)
    with Corpus.open(url, ranker=None) as again:
        assert again._storage.phrases._encoding().lists == 10  # type: ignore[attr-defined]
        assert again.nearest(QUESTION, top_k=1).best == expected
    corpus.encode_phrases(make_folder(model.parent / "other", words=0))
    assert corpus._storage.phrases._encoding().lists == 10  # type: ignore[attr-defined]
    assert corpus.nearest(QUESTION).answers


# --- Changes ---


def test_phrases_appear_and_vanish_with_their_documents(
    corpus: Corpus, url: str, postgres_server: PostgresServer
) -> None:
    assert {row[0] for row in _phrases(postgres_server, url)} == set(TEXTS)
    corpus.add({"paris": "Paris is a city in France.", "sand": "Sand is a planet."})
    corpus.remove("austen")
    assert {row[0] for row in _phrases(postgres_server, url)} == {"herbert"}
    assert not corpus.status().encoded
    done: list[int] = []
    corpus.encode_phrases(on_document=lambda: done.append(1))
    assert len(done) == 2  # the changed one and the new one alone
    assert corpus.status().encoded
    assert {row[0] for row in _phrases(postgres_server, url)} == {"herbert", "paris", "sand"}
    texts = {answer.text for answer in corpus.nearest("who ?", top_k=9)}
    assert "Jane Austen wrote Emma." not in texts
    assert "Paris is a city in France." in texts


def test_a_question_encodes_missing_documents(corpus: Corpus) -> None:
    corpus.add({"sand": "Sand is a planet."})
    assert "sand" in {answer.document for answer in corpus.ask("zebra", phrases=True, top_k=9)}
    corpus.add({"more": "More sand is in paris."})
    with corpus.snapshot():  # nothing is written inside it
        assert "more" not in {answer.document for answer in corpus.nearest("what ?", top_k=9)}
    assert "more" in {answer.document for answer in corpus.nearest("what ?", top_k=9)}


def test_a_question_sees_one_state(corpus: Corpus, url: str) -> None:
    with Corpus.open(url, ranker=None) as other, corpus.snapshot():
        before = corpus.nearest(QUESTION, top_k=9)
        other.remove("austen")
        assert corpus.nearest(QUESTION, top_k=9).answers == before.answers
    assert "austen" not in {answer.document for answer in corpus.nearest(QUESTION, top_k=9)}


def test_a_long_document_is_encoded_in_parts(
    url: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_phrases, "PASSAGES_PER_BATCH", 2)
    long = "\n\n".join(f"Emma is a novel of the year {year}. " * 20 for year in range(1775, 1783))
    texts = {"long": long, "empty": "", **TEXTS}
    with Corpus.open(url, ranker=None) as shared, Corpus.open(tmp_path, ranker=None) as embedded:
        for each in (shared, embedded):
            each.add(texts)
            each.encode_phrases(model)
        assert shared.status().phrases == embedded.status().phrases
        assert shared.status().encoded


def test_an_encoder_that_is_killed_loses_only_its_batch(
    url: str, model: Path, postgres_server: PostgresServer
) -> None:
    with Corpus.open(url, ranker=None) as corpus:
        corpus.add({f"{name} {at}": text for at in range(12) for name, text in TEXTS.items()})
        child = multiprocessing.get_context("spawn").Process(target=_die, args=(url, model))
        child.start()
        child.join(120)
        assert child.exitcode == -signal.SIGKILL
        encoded = {row[0] for row in _phrases(postgres_server, url)}
        assert 0 < len(encoded) < 36
        done: list[int] = []
        corpus.encode_phrases(on_document=lambda: done.append(1))
        assert len(done) == 36 - len(encoded)
        _check_once(postgres_server, url, 36)


def _die(url: str, model: Path) -> None:
    """Be killed between the phrases of the second batch and the end of its transaction."""
    insert, calls = postgres_phrases.PostgresPhrases._insert, count()

    def insert_and_die(*arguments: Any) -> None:
        insert(*arguments)
        if next(calls):
            os.kill(os.getpid(), signal.SIGKILL)

    postgres_phrases.PostgresPhrases._insert = insert_and_die
    with Corpus.open(url, ranker=None) as corpus:
        corpus.encode_phrases(model)


def test_several_encoders_divide_the_documents(
    url: str, model: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_phrases, "_CLAIMED_DOCUMENTS", 3)
    with Corpus.open(url, ranker=None) as corpus:
        corpus.add({f"{name} {at}": text for at in range(10) for name, text in TEXTS.items()})
        corpus.add({"first": "Emma is a novel."})
        corpus.encode_phrases(model)
        corpus.add({f"{name} {at}": text for at in range(20) for name, text in TEXTS.items()})
    done: list[int] = []
    failures: list[BaseException] = []

    def encode() -> None:
        try:
            with Corpus.open(url, ranker=None) as own:
                own.encode_phrases(on_document=lambda: done.append(1))
                assert own.status().encoded
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=encode) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(done) == 30
    _check_once(postgres_server, url, 61)


def _check_once(server: PostgresServer, url: str, documents: int) -> None:
    """Every document has its phrases, each once."""
    rows = _phrases(server, url)
    assert len({row[0] for row in rows}) == documents
    assert len(rows) == len(set(rows))


def test_a_document_removed_while_it_is_encoded_leaves_no_phrases(
    corpus: Corpus, url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus.add({"sand": "Sand is a planet.", "city": "Paris is a city."})
    read = postgres_phrases.PostgresPhrases._next_passages

    def read_and_remove(*arguments: Any) -> Any:
        found = read(*arguments)
        with Corpus.open(url, ranker=None) as other:
            other.remove("sand")
        return found

    monkeypatch.setattr(postgres_phrases.PostgresPhrases, "_next_passages", read_and_remove)
    corpus.encode_phrases()
    assert {row[0] for row in _phrases(postgres_server, url)} == {*TEXTS, "city"}
    assert corpus.status().encoded


# --- Models ---


def test_the_model_is_remembered(corpus: Corpus, url: str, model: Path) -> None:
    with Corpus.open(url, ranker=None) as again:
        again.add({"sand": "Sand is a planet."})
        assert again.nearest(QUESTION, top_k=9).answers
        assert again._storage.phrases._encoding().home == str(model)  # type: ignore[attr-defined]


def test_another_model_replaces_all_phrases(corpus: Corpus, url: str, tmp_path: Path) -> None:
    with Corpus.open(url, ranker=None) as reader:
        assert reader.nearest(QUESTION).answers
        phrases = corpus.status().phrases
        corpus.encode_phrases(make_folder(tmp_path / "other", words=0, size=6))
        assert corpus.status().phrases == phrases
        assert reader.nearest(QUESTION).answers


def test_phrases_of_another_model_are_not_replaced_by_a_question(
    corpus: Corpus, url: str, model: Path, postgres_server: PostgresServer
) -> None:
    _run(
        postgres_server,
        f"UPDATE {_schema(url)}.settings SET value = jsonb_set(value::jsonb, '{{model}}', '\"x\"') "
        "WHERE name = 'phrases'",
    )
    corpus.add({"sand": "Sand is a planet."})
    for call in (corpus.encode_phrases, lambda: corpus.nearest(QUESTION)):
        with pytest.raises(CorpusError, match="The phrases are of the model x"):
            call()
    corpus.encode_phrases(model)
    assert corpus.nearest(QUESTION).answers


# --- Rights, versions ---


def _reader(server: PostgresServer, url: str) -> str:
    """The URL for a role that may read what is there now."""
    schema = _schema(url)
    role = f"reader_{schema}"
    _run(
        server,
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    )
    return server.url(user=role, schema=schema)


def test_the_right_to_read_suffices_for_asking(
    url: str, model: Path, postgres_server: PostgresServer
) -> None:
    with Corpus.open(url, ranker=None) as corpus:
        corpus.add(TEXTS)
        reading = _reader(postgres_server, url)
        with Corpus.open(reading, ranker=None) as reader:
            with pytest.raises(CorpusError, match="this role may not write"):
                reader.nearest(QUESTION)
            corpus.encode_phrases(model)
            expected = corpus.nearest(QUESTION).answers
            assert reader.nearest(QUESTION).answers == expected
            corpus.add({"sand": "Sand is a planet."})  # not encoded yet
            assert reader.nearest(QUESTION).answers == expected
            assert reader.ask(QUESTION, phrases=True).answers
            assert not reader.status().encoded


def test_tables_of_the_first_version_are_migrated(
    url: str, model: Path, postgres_server: PostgresServer
) -> None:
    schema = _schema(url)
    server = ServerUrl.parse(url)
    pool = PostgresPool(server, ("schema",), 30.0, schema)
    prepare_schema(pool, schema, index_format=FORMAT, migrations=MIGRATIONS[:1])
    pool.close()
    reading = _reader(postgres_server, url)
    version = f"SELECT value FROM {schema}.settings WHERE name = 'version'"
    assert _run(postgres_server, version) == [("1",)]
    with pytest.raises(CorpusError, match="The tables are of version 1"):
        Corpus.open(reading)
    with Corpus.open(url, ranker=None) as corpus:
        assert _run(postgres_server, version) == [("2",)]
        assert corpus.status().phrases is None
        corpus.add(TEXTS)
        corpus.encode_phrases(model)
        with Corpus.open(reading, ranker=None) as reader:
            assert reader.nearest(QUESTION).answers == corpus.nearest(QUESTION).answers


def test_a_missing_extension_is_an_error_that_says_what_to_do(
    postgres_server: PostgresServer, model: Path
) -> None:
    _run(
        postgres_server,
        "CREATE ROLE writer LOGIN",
        "CREATE DATABASE plain TEMPLATE template0",
    )
    with psycopg.connect(
        postgres_server.url().replace("/postgres?", "/plain?"), autocommit=True
    ) as connection:
        connection.execute("CREATE SCHEMA askline AUTHORIZATION writer")
    url = postgres_server.url(user="writer").replace("/postgres?", "/plain?")
    with Corpus.open(url, ranker=None) as corpus:
        corpus.add(TEXTS)
        with pytest.raises(CorpusError, match="run in it: CREATE EXTENSION vector"):
            corpus.encode_phrases(model)
        assert corpus.status().phrases is None
        assert corpus.ask("Who wrote Emma?").answers
