"""Against a real server, with pgvector where the server brings it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from askline.corpus import HasNeighbors, Retriever, answer, connect
from askline.corpus.connectors import PostgresConnector
from askline.corpus.connectors.postgres import MAX_MATCHES, _rarest_terms
from askline.corpus.connectors.server_url import ServerUrl
from askline.errors import CorpusError, InputError, MissingExtraError

psycopg = pytest.importorskip("psycopg")

ROCK = "The rock 🪨 is far out. Its first lighthouse was lit in 1698.\nA storm took it."
BOOKS = [
    (17, "Rocks", ROCK),
    (18, "Bread", "Yeast makes dough rise. Salt slows it down."),
    (19, "Lamps", "A lamp of the lighthouse burned kerosene."),
    (20, None, None),
    *((100 + at, "Log", f"The lighthouse was lit on day {at}.") for at in range(60)),
]
QUESTION = "When was the first lighthouse lit?"
TABLES = """
DROP SCHEMA IF EXISTS shelf CASCADE; CREATE SCHEMA shelf;
DROP TABLE IF EXISTS books CASCADE;
CREATE TABLE books (
    id int PRIMARY KEY, title text, body text, year int,
    found tsvector GENERATED ALWAYS AS (to_tsvector('english', coalesce(body, ''))) STORED
);
CREATE INDEX books_body ON books USING gin (to_tsvector('english', body));
CREATE TABLE shelf."Odd ""1"" one" ("The key" text, "Le texte" varchar(200));
INSERT INTO shelf."Odd ""1"" one" VALUES ('a.b', 'Les phares furent allumés en mai.');
"""


@pytest.fixture(scope="session")
def place(postgres: str) -> str:
    """The address of a filled database."""
    with _direct(postgres) as connection:
        connection.execute(TABLES)
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO books VALUES (%s, %s, %s)", BOOKS)
        connection.execute("ANALYZE")
    return f"postgresql://postgres@/postgres?host={postgres}"


def _direct(folder: str) -> Any:
    return psycopg.connect(host=folder, user="postgres", autocommit=True)


@pytest.fixture
def books(place: str) -> Iterator[PostgresConnector]:
    with PostgresConnector.connect(ServerUrl.parse(f"{place}&table=books")) as retriever:
        yield retriever


@pytest.mark.slow
def test_the_answer_keeps_id_and_offsets(books: PostgresConnector) -> None:
    found = answer(QUESTION, books)
    best = found.best
    assert best is not None
    assert (best.document, best.title, best.number) == ("17", "Rocks", 1)
    assert best.text == "Its first lighthouse was lit in 1698."
    assert ROCK[best.start : best.end] == best.text
    assert (best.before, best.after) == ("The rock 🪨 is far out.", "A storm took it.")
    assert (found.stages[0].ranker, found.stages[0].entered) == ("postgresql/books % 100", 64)


def test_it_is_a_retriever_that_knows_neighbors(books: PostgresConnector) -> None:
    assert isinstance(books, Retriever)
    assert isinstance(books, HasNeighbors)
    assert len(books) == 64


@pytest.mark.parametrize("options", ["", "&search=found", "&text=body&title=title&id=id"])
def test_rare_words_count_for_more(place: str, options: str) -> None:
    with closing(connect(f"{place}&table=books&texts=3{options}")) as retriever:
        assert retriever.retrieve("Which lighthouse burned kerosene?", 9)[0].document == "19"


@pytest.mark.parametrize(
    ("counts", "terms"),
    [([MAX_MATCHES], 1), ([5, MAX_MATCHES - 5, 1], 2), ([5, 6, MAX_MATCHES], 2), ([1, 2, 3], 3)],
    ids=["one in any case", "just enough", "too many", "all"],
)
def test_texts_are_looked_for_by_the_rarest_words(counts: list[int], terms: int) -> None:
    weights = {f"'{at}'": (1.0, count) for at, count in enumerate(counts)}
    assert _rarest_terms(weights) == list(weights)[:terms]


@pytest.mark.parametrize("question", ["Zeppelins?", "Who is it?", "?!", "\0", "\ud800"])
def test_nothing_is_found_for_unknown_words(books: PostgresConnector, question: str) -> None:
    assert books.retrieve(question, 5) == []


def test_an_empty_question_is_refused(books: PostgresConnector) -> None:
    with pytest.raises(InputError, match="The question must not be empty"):
        books.retrieve(" \n", 5)


def test_a_question_may_be_long_and_strange(books: PostgresConnector) -> None:
    question = "lighthouse o'clock a\\b 'x' & | ! :* <-> (( " + " ".join(map(str, range(500)))
    assert books.retrieve(question, 1)


def test_names_are_quoted_and_languages_known(place: str) -> None:
    table = "table=shelf.Odd%20%221%22%20one&id=The%20key&text=Le%20texte"
    with closing(connect(f"{place}&{table}&language=french")) as retriever:
        best = retriever.retrieve("Quand le phare fut-il allumé ?", 1)[0]
    assert (best.document, best.text) == ("a.b", "Les phares furent allumés en mai.")


def test_an_index_on_the_words_serves(books: PostgresConnector, postgres: str) -> None:
    query = books._queries.by_words(1)
    values = {"query": "'lit'", "term0": "'lit'", "weight0": 1.0, "limit": 5}
    with _direct(postgres) as connection:
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(psycopg.sql.SQL("EXPLAIN ") + query, values).fetchall()
    assert any("books_body" in line for (line,) in plan)


def test_only_reading_is_allowed(books: PostgresConnector) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        books._connection.execute("DELETE FROM books")


def test_several_threads_ask(books: PostgresConnector) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: books.retrieve(QUESTION, 3), range(24)))
    assert all(each == found[0] for each in found)


def test_a_lost_connection_is_opened_again(books: PostgresConnector, postgres: str) -> None:
    with _direct(postgres) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'askline'"
        )
    with pytest.raises(CorpusError, match="cannot be reached: .*terminating connection"):
        books.retrieve(QUESTION, 1)
    assert books.retrieve(QUESTION, 1)


# Vectors


def _encode(question: str) -> Sequence[float]:
    """Whatever rises lies in this direction."""
    return [0.1, 1.0, 0.0] if "rise" in question else [1.0, 0.0, 0.0]


@pytest.fixture(scope="session", params=["vector", "halfvec"])
def vectors(place: str, postgres: str, request: pytest.FixtureRequest) -> str:
    with _direct(postgres) as connection:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("This PostgreSQL has no pgvector")
        connection.execute(
            f"""
            DROP TABLE IF EXISTS points;
            CREATE TABLE points (id int, body text, spot {request.param}(3));
            INSERT INTO points VALUES (1, 'Dough goes up.', '[0, 1, 0]'),
                (2, 'Lamps burn.', '[1, 0, 0]'), (3, 'Nobody knows.', NULL),
                (4, 'Prices rise.', '[0, 0, 1]')
            """
        )
    return f"{place}&table=points&embedding=spot"


@pytest.mark.parametrize("distance", ["cosine", "l2", "inner"])
def test_vectors_find_texts_without_shared_words(vectors: str, distance: str) -> None:
    with closing(connect(f"{vectors}&distance={distance}", encode=_encode)) as retriever:
        found = retriever.retrieve("What will rise?", 9)
    assert [each.document for each in found][:2] in (["4", "1"], ["1", "4"])
    assert "3" not in {each.document for each in found}


@pytest.mark.parametrize(
    ("vector", "message"),
    [([1.0], "different .* dimensions 3 and 1"), ([], "at least 1 dimension")],
    ids=["short", "empty"],
)
def test_a_vector_of_another_length(vectors: str, vector: list[float], message: str) -> None:
    with (
        closing(connect(vectors, encode=lambda _: vector)) as retriever,
        pytest.raises(CorpusError, match=message),
    ):
        retriever.retrieve("What?", 1)


def test_vectors_need_a_column_and_an_encoder(place: str, vectors: str) -> None:
    with pytest.raises(InputError, match="Vectors need both"):
        connect(vectors)
    with pytest.raises(InputError, match="Vectors need both"):
        connect(f"{place}&table=books", encode=_encode)
    with pytest.raises(CorpusError, match="'body' must be a vector or .*, got a text"):
        connect(vectors.replace("spot", "body"), encode=_encode)


# What goes wrong


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("table=bookz", "No table 'bookz'. Known: .*Did you mean 'books'?"),
        ("table=a.b.c.d", "cannot answer: "),
        ("table=books&text=bodi", "No column 'bodi'.*Did you mean 'body'?"),
        ("table=books&text=year", "No column 'year'. Known: body, title"),
        ("table=books&id=isbn", "No id column 'isbn'. Known: body, found, id"),
        ("table=books&title=name", "No column 'name'"),
        ("table=books&search=body", "'body' must be a tsvector, got a text"),
        ("table=books&language=klingon", "No text search language 'klingon'"),
        (
            'table=shelf.Odd%20"1"%20one&id=The%20key',
            "Name the one that holds the text: text=COLUMN",
        ),
    ],
)
def test_a_wrong_name_is_reported_when_connecting(place: str, options: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        connect(f"{place}&{options}")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://h/db", "must name a table"),
        (
            "postgresql://h/db?table=t&distance=far",
            "No distance 'far'. Known: cosine, inner, l2",
        ),
        ("postgresql://h/db?table=t&texts=0", "texts must be a number of at least 1, got '0'"),
        ("postgresql://h/db?table=t&tex=body", "No option 'tex'.*Did you mean 'text'?"),
    ],
)
def test_invalid_options_are_refused(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        connect(url)


def test_a_timeout_is_reported(place: str, postgres: str) -> None:
    with (
        closing(connect(f"{place}&table=books&timeout=0.2")) as retriever,
        _direct(postgres) as other,
        other.transaction(),
    ):
        other.execute("LOCK TABLE books")
        with pytest.raises(CorpusError, match="No answer within 0.2 seconds.*timeout=SECONDS"):
            retriever.retrieve(QUESTION, 1)


def test_a_missing_right_to_read_is_reported(place: str, postgres: str) -> None:
    with _direct(postgres) as connection:
        connection.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(CorpusError, match="permission denied for table books. Grant SELECT"):
        connect(f"{place.replace('postgres@', 'stranger@')}&table=books")


def test_an_unknown_database_or_user(place: str) -> None:
    with pytest.raises(CorpusError, match='database "nowhere" does not exist'):
        connect(f"{place.replace('/postgres?', '/nowhere?')}&table=books")
    with pytest.raises(CorpusError, match='role "nobody" does not exist') as raised:
        connect(f"{place.replace('postgres@', 'nobody:sesame@')}&table=books")
    assert "sesame" not in str(raised.value)


def test_an_unreachable_server_is_reported() -> None:
    with pytest.raises(CorpusError, match="cannot be reached: .*Check host, port") as raised:
        connect("postgresql://ann:sesame@127.0.0.1:9/db?table=books")
    assert "sesame" not in str(raised.value)


@pytest.mark.slow
def test_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(CorpusError, match="No connection within 0.5 seconds"):
            connect(f"postgresql://127.0.0.1:{port}/db?table=books&timeout=0.5")


def test_a_missing_client_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[postgres\]'"):
        connect("postgresql://h/db?table=t")
