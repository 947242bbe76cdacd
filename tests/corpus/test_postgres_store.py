"""A corpus in PostgreSQL, against a real server, beside the embedded one."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from askline.corpus import Corpus, connect
from askline.corpus.passages import split_passages
from askline.corpus.postgres_postings import PostgresPostings, quantized_length
from askline.corpus.postgres_store import PostgresStore
from askline.corpus.retrieval import LexicalRetriever
from askline.corpus.schema import DocumentRecord
from askline.corpus.search_index import SearchIndex
from askline.errors import CorpusError, InputError

from ..postgres_server import PostgresServer
from .conftest import PAGES, write

psycopg = pytest.importorskip("psycopg")

pytestmark = pytest.mark.slow

QUESTION = "When was the first lighthouse lit?"
_schemas = count()


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    """The URL of a schema that does not exist yet."""
    return postgres_server.url(schema=f"corpus{next(_schemas)}")


@pytest.fixture
def corpus(url: str) -> Iterator[Corpus]:
    with Corpus.open(url, ranker=None) as corpus:
        yield corpus


def _run(server: PostgresServer, *statements: str) -> list[Any]:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def _schema(url: str) -> str:
    return url.rpartition("schema=")[2]


def _sentence_texts(words: int, seed: int, texts: int) -> dict[str, str]:
    """Texts of one to thirty sentences, some with headings and identifiers."""
    rng = random.Random(seed)
    vocabulary = [f"wort{number}" for number in range(words)] + ["max_retry_count", "lamps"]
    weights = [1 / (1 + at) for at in range(len(vocabulary))]

    def sentence() -> str:
        chosen = rng.choices(vocabulary, weights, k=rng.randint(3, 40))
        return " ".join(chosen).capitalize() + "."

    return {
        f"text {number}": "\n\n".join(sentence() for _ in range(rng.randint(1, 30)))
        for number in range(texts)
    }


# --- The same as in a folder ---


def test_answers_and_places_are_those_of_a_folder(
    corpus: Corpus, tmp_path: Path, pages: Path
) -> None:
    write(pages / "table.csv", "id,text\nr1,The lamp was lit in May.\nr2,The lamp was sold.\n")
    with Corpus.open(tmp_path / "index", ranker=None) as embedded:
        for each in (corpus, embedded):
            report = each.add(pages)
            assert (report.added, report.failed) == (4, 0)
        questions = [QUESTION, "Who built the stepped lens?", "Which lamp was sold?", "xyzzy"]
        for question in questions:
            ours, theirs = corpus.ask(question), embedded.ask(question)
            assert [(a.document, a.start, a.end, a.before, a.after, a.record) for a in ours] == [
                (a.document, a.start, a.end, a.before, a.after, a.record) for a in theirs
            ]
            scores = [answer.score for answer in theirs]
            assert [answer.score for answer in ours] == pytest.approx(scores, abs=1e-4)
        assert corpus.documents() == embedded.documents()
        for name in PAGES:
            assert corpus.sentences(name) == embedded.sentences(name)
        status, other = corpus.status(), embedded.status()
        assert (status.documents, status.sentences) == (other.documents, other.sentences)
        assert status.searchable
        assert status.store_bytes > 0


def test_files_are_followed_and_removed(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    assert corpus.add(pages).unchanged == 3
    write(pages / "bread.txt", "Dough rises because of the lighthouse.", age=30)
    (pages / "lamps" / "rock.txt").unlink()
    report = corpus.add(pages)
    assert (report.changed, report.removed, report.unchanged) == (1, 1, 1)
    (best, *_) = corpus.ask(QUESTION)
    assert best.text == "Dough rises because of the lighthouse."
    assert corpus.remove([pages / "lamps"]) == ["lamps/lens.md"]
    assert [each.name for each in corpus.documents()] == ["bread.txt"]


def test_scores_are_those_of_tantivy(corpus: Corpus) -> None:
    texts = _sentence_texts(400, 1, 150)
    names = list(texts)
    with Corpus.in_memory(ranker=None) as embedded:
        embedded.add(texts)
        for first in range(0, len(names), 7):  # many small transactions, so segments are merged
            corpus.add({name: texts[name] for name in names[first : first + 7]})
        ours, theirs = corpus._storage.search_index(), embedded._storage.search_index()
        assert isinstance(ours, PostgresPostings)
        assert isinstance(theirs, SearchIndex)
        assert len(ours._segments()) < 8 + 8
        terms = [ours.stem(f"wort{number}") for number in range(0, 400, 3)]
        terms += [ours.stem("lamps"), ours.stem("retry"), "unknown"]
        assert ours.term_weights(terms) == pytest.approx(dict(theirs.term_weights(terms)))
        rng = random.Random(2)
        for _ in range(40):
            factors = {term: rng.choice([1.0, 0.5]) for term in rng.sample(terms, 5)}
            found = ours.search(factors, 50, titles=0.15)
            expected = theirs.search(factors, 50, titles=0.15)
            assert [hit.score for hit in found] == pytest.approx(
                [hit.score for hit in expected], rel=1e-5
            )
            assert [_place(corpus, hit) for hit in found[:3]] == [
                _place(embedded, hit) for hit in expected[:3]
            ]


def _place(corpus: Corpus, hit: Any) -> tuple[str, int, int]:
    header = corpus._store.document(hit.document_id)
    assert header is not None
    return header.name, hit.first, hit.last


@pytest.mark.parametrize(
    ("length", "kept"), [(0, 0), (39, 39), (41, 40), (55, 54), (57, 56), (145, 144), (1048, 1048)]
)
def test_lengths_are_rounded_down_as_in_lucene(length: int, kept: int) -> None:
    code = quantized_length(length)
    assert quantized_length(kept) == code
    assert quantized_length(kept - 1) == code - 1


def test_removed_passages_leave_the_index_when_segments_merge(corpus: Corpus) -> None:
    texts = _sentence_texts(100, 3, 60)
    for name, text in texts.items():
        corpus.add({name: text})
    corpus.remove(list(texts)[::2])
    left = {name: text for name, text in texts.items() if name not in list(texts)[::2]}
    for name, text in left.items():
        corpus.add({name: f"{text} Again."})  # merges the segments of the old versions
    store = corpus._store
    assert isinstance(store, PostgresStore)
    expected = {
        (store.document_id(name), first, last)
        for name in left
        for first, last, _ in split_passages(store.iter_sentences(store.document_id(name) or 0))
    }
    hits = store.postings.search({store.postings.stem("wort0"): 1.0}, 10_000)
    found = [(hit.document_id, hit.first, hit.last) for hit in hits]
    assert len(found) == len(set(found))
    assert set(found) <= expected
    assert {each[0] for each in found} == {each[0] for each in expected}


# --- Many writers and readers ---


def test_writers_of_the_same_documents_do_not_lose_or_mix_any(url: str, corpus: Corpus) -> None:
    failures: list[BaseException] = []

    def replace(writer: int) -> None:
        try:
            with Corpus.open(url, ranker=None) as own:
                for turn in range(12):
                    text = " ".join(f"Lamp of writer {writer} turn {turn}." for _ in range(5))
                    own.add({f"shared {number}": text for number in (turn % 3, 3, 4)})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=replace, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for info in corpus.documents():
        sentences = corpus.sentences(info.name)
        assert sentences is not None
        assert len({sentence.text for sentence in sentences}) == 1
        assert len(sentences) == 5
    assert corpus.verify().damaged == ()


def test_a_question_sees_one_state(url: str, corpus: Corpus) -> None:
    corpus.add({"rock": "The rock is far out. Its first lighthouse was lit in 1698."})
    with Corpus.open(url, ranker=None) as other, corpus.snapshot():
        before = corpus.ask(QUESTION)
        other.add({"rock": "The lighthouse is gone."})
        assert corpus.ask(QUESTION).answers == before.answers
        assert len(other.ask(QUESTION).answers) == 1
    assert [answer.text for answer in corpus.ask(QUESTION)] == ["The lighthouse is gone."]


def test_a_writer_killed_inside_its_transaction_leaves_nothing(url: str, corpus: Corpus) -> None:
    corpus.add({"first": "The lamp burns."})
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_die, args=(url,))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert [info.name for info in corpus.documents()] == ["first"]
    assert [answer.document for answer in corpus.ask("Which lamp burns?")] == ["first"]
    corpus.add({"second": "The second lamp burns."})
    assert len(corpus.documents()) == 2


def _die(url: str) -> None:
    """Be killed after the sentences of a document are written and before it is indexed."""
    setattr(PostgresPostings, "add", lambda *_: os.kill(os.getpid(), signal.SIGKILL))  # noqa: B010
    with Corpus.open(url, ranker=None) as corpus:
        corpus.add({"second": "The second lamp burns.", "first": "The lamp is out."})


def test_a_lost_connection_is_replaced(corpus: Corpus, postgres_server: PostgresServer) -> None:
    corpus.add({"rock": "The lighthouse was lit in 1698."})
    _run(
        postgres_server,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'askline'",
    )
    assert corpus.ask(QUESTION).best is not None


def test_files_of_other_writers_are_not_replaced(corpus: Corpus, tmp_path: Path) -> None:
    store = corpus._store
    assert isinstance(store, PostgresStore)
    path = write(tmp_path / "rock.txt", "The lighthouse was lit in 1698.")
    corpus.add(path)
    other = DocumentRecord("rock.txt", "aa", "1", path="/elsewhere/rock.txt")
    with pytest.raises(CorpusError, match="Another writer has just added"):
        store.put([other])
    assert corpus.ask(QUESTION).best is not None


# --- Rights, versions, damage ---


def test_the_right_to_read_suffices_for_asking(
    url: str, corpus: Corpus, postgres_server: PostgresServer
) -> None:
    corpus.add({"rock": "Its first lighthouse was lit in 1698."})
    schema = _schema(url)
    role = f"reader_{schema}"
    _run(
        postgres_server,
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
        f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    )
    with Corpus.open(postgres_server.url(user=role, schema=schema), ranker=None) as reader:
        assert reader.ask(QUESTION).best is not None
        assert reader.status().documents == 1
        with pytest.raises(CorpusError, match="permission denied"):
            reader.add({"more": "No."})
    assert len(corpus.documents()) == 1


def test_a_newer_version_and_foreign_tables_are_refused(
    url: str, corpus: Corpus, postgres_server: PostgresServer
) -> None:
    _run(postgres_server, f"UPDATE {_schema(url)}.settings SET value = '99' WHERE name = 'version'")
    with pytest.raises(CorpusError, match="written by a newer askline: version 99"):
        Corpus.open(url)
    _run(postgres_server, "CREATE SCHEMA foreign_one", "CREATE TABLE foreign_one.books (id int)")
    with pytest.raises(CorpusError, match="tables of another program"):
        Corpus.open(postgres_server.url(schema="foreign_one"))


def test_another_index_format_is_refused_until_it_is_verified(
    url: str, corpus: Corpus, postgres_server: PostgresServer
) -> None:
    corpus.add({"rock": "The lighthouse was lit in 1698."})
    _run(postgres_server, f"UPDATE {_schema(url)}.settings SET value = '1' WHERE name = 'format'")
    with pytest.raises(CorpusError, match="askline index --verify --to URL"):
        corpus.ask(QUESTION)
    with pytest.raises(CorpusError, match="askline index --verify --to URL"):
        corpus.add({"more": "No."})
    assert corpus.verify().search_rebuilt
    assert corpus.ask(QUESTION).best is not None


def test_a_missing_corpus_is_an_error_where_it_must_exist(url: str) -> None:
    with pytest.raises(CorpusError, match="No corpus in the schema"):
        Corpus.open(url, must_exist=True)


def test_damage_is_found_and_files_are_read_again(
    url: str, corpus: Corpus, pages: Path, postgres_server: PostgresServer
) -> None:
    corpus.add(pages)
    corpus.add({"note": "A lighthouse burned."})
    schema = _schema(url)
    _run(
        postgres_server,
        f"UPDATE {schema}.sentences SET text = replace(text, 'first', 'last') "
        f"WHERE text LIKE '%%lighthouse was lit%%'",
        f"UPDATE {schema}.sentences SET text = 'A lighthouse sank.' WHERE text LIKE 'A light%%'",
    )
    with pytest.raises(CorpusError, match="is damaged in the index"):
        corpus.ask(QUESTION, context=3)
    report = corpus.verify()
    assert sorted(report.damaged) == ["lamps/rock.txt", "note"]
    assert (report.restored, report.lost) == (("lamps/rock.txt",), ("note",))
    best = corpus.ask(QUESTION).best
    assert best is not None
    assert best.text == "Its first lighthouse was lit in November 1698."


def test_characters_that_the_server_cannot_store_are_replaced(corpus: Corpus) -> None:
    text = "The lamp\0 burns. It was lit in May."
    corpus.add({"lamp": text})
    best = corpus.ask("Which lamp burns?").answers[0]
    assert best.text == "The lamp\N{REPLACEMENT CHARACTER} burns."
    assert text[best.start : best.end] == "The lamp\0 burns."
    assert corpus.add({"lamp": text}).unchanged == 1
    assert corpus.verify().damaged == ()


# --- The public API ---


def test_it_is_pickled_by_its_url(corpus: Corpus) -> None:
    corpus.add({"rock": "The lighthouse was lit in 1698."})
    with closing(pickle.loads(pickle.dumps(corpus))) as copy:
        assert copy.ask(QUESTION).best == corpus.ask(QUESTION).best
    assert isinstance(corpus.retriever(), LexicalRetriever)


def test_a_corpus_and_a_table_are_told_apart(postgres_server: PostgresServer) -> None:
    with pytest.raises(InputError, match="--retriever URL"):
        Corpus.open(postgres_server.url(table="books"))
    with pytest.raises(InputError, match="--index URL"):
        connect(postgres_server.url())


def test_an_unreachable_server_is_an_error_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="cannot be reached") as caught:
        Corpus.open(f"postgresql://me:secret@/library?host={tmp_path}")
    assert "secret" not in str(caught.value)
