from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from askline.corpus.schema import DocumentRecord, RowRecord, SentenceRecord
from askline.corpus.store import Store
from askline.errors import CorpusError


def row(name: str, *texts: str, heading: str = "", sha256: str = "aa") -> DocumentRecord:
    sentences = [
        SentenceRecord(place, 10 * place, 10 * place + len(text), place + 1, 0, heading, text)
        for place, text in enumerate(texts)
    ]
    return DocumentRecord(
        name,
        sha256,
        "1",
        characters=sum(map(len, texts)),
        size=3,
        modified=7,
        sentences=iter(sentences),
    )


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.in_memory()
    yield store
    store.close()


def _number(store: Store, name: str) -> int:
    number = store.document_id(name)
    assert number is not None
    return number


def test_put_stores_documents_and_sentences(store: Store) -> None:
    assert store.put([row("a", "One.", "Two.", heading="Top"), row("b")]) == [2, 0]
    assert store.counts() == (2, 2, 8)
    assert store.file_state("a") == (3, 7, "aa", "1", None, 0, None, None)
    found = store.sentences(_number(store, "a"), 1, 5)
    assert found == [SentenceRecord(1, 10, 14, 2, 0, "Top", "Two.")]


def test_put_takes_the_place_of_a_document_with_the_same_name(store: Store) -> None:
    store.put([row("a", "Old.")])
    old = _number(store, "a")
    store.put([row("a", "New.", "Newer.")])
    assert store.counts() == (1, 2, 10)
    assert store.sentences(old, 0, 9) == []
    assert store.changes(1) == ([old], [_number(store, "a")])


def test_put_is_all_or_nothing(store: Store) -> None:
    def broken() -> Iterator[SentenceRecord]:
        yield SentenceRecord(0, 0, 1, 1, 0, "", "a")
        raise RuntimeError("the file went away")

    with pytest.raises(RuntimeError, match="went away"):
        store.put([row("a", "One."), DocumentRecord("b", "bb", "1", sentences=broken())])
    assert (store.counts(), store.generation) == ((0, 0, 0), 0)
    store.put([row("a", "One.")])  # and the store goes on


def test_every_change_is_a_generation(store: Store) -> None:
    store.put([row("a", "One."), row("b", "Two.")])
    store.touch([("a", 4, 8)])
    assert store.generation == 1  # a new date changes nothing that can be found
    store.remove(["a"])
    assert store.generation == 2
    assert store.changes(0)[1] == [_number(store, "b")]
    store.forget_removals(2)
    assert store.removals_from == 2
    assert store.changes(0)[0] == []


def test_an_id_is_never_given_twice(store: Store) -> None:
    store.put([row("a", "One.")])
    first = _number(store, "a")
    store.remove(["a"])
    store.put([row("a", "One.")])
    assert _number(store, "a") > first


def test_touch_remembers_size_and_date(store: Store) -> None:
    store.put([row("a", "One.")])
    store.touch([("a", 11, None)])
    known = store.file_state("a")
    assert known is not None
    assert (known.size, known.modified) == (11, None)


def test_unreadable_files_are_not_counted_as_documents(store: Store) -> None:
    store.put([DocumentRecord("x.pdf", "", "1", problem="It is encrypted.", problem_line=0)])
    assert store.counts() == (0, 0, 0)
    assert store.unreadable() == [("x.pdf", 0, "It is encrypted.", "damaged")]
    assert store.changes(0) == ([], [])


def test_files_by_prefix_stop_where_the_folder_stops(store: Store) -> None:
    paths = ("/a/b", "/a/c/d", "/ab", "/a-b", "/a/é")
    store.put([replace(row(path[1:]), path=path) for path in paths])
    found = store.files(prefix="/a/")
    assert found == [("a/b", "/a/b"), ("a/c/d", "/a/c/d"), ("a/é", "/a/é")]
    plan = store._all(
        "EXPLAIN QUERY PLAN SELECT name, path FROM documents WHERE path >= ? AND path < ?", "", ""
    )
    assert "documents_by_path" in str(plan)


def test_all_sentences_of_a_long_document_come_in_order(store: Store) -> None:
    store.put([row("a", *(f"Line {number}." for number in range(25_000)))])
    found = list(store.iter_sentences(_number(store, "a")))
    assert [sentence.ordinal for sentence in found] == list(range(25_000))


def test_a_store_is_read_by_many_threads(store: Store) -> None:
    store.put([row(f"{number}", f"Text {number}.") for number in range(50)])
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda n: store.sentences(_number(store, f"{n}"), 0, 0)[0].text, range(50))
        assert list(found) == [f"Text {number}." for number in range(50)]


def test_open_wants_to_migrate_first(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    assert Store.open(path, may_migrate=False) is None
    made = Store.open(path, may_migrate=True)
    assert made is not None
    made.put([row("a", "One.")])
    again = Store.open(path, may_migrate=False)
    assert again is not None
    assert again.counts()[0] == 1  # a second connection reads while the first is open
    made.close()
    again.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no database at all" * 100, r"store.sqlite: file is not a database. It is damaged"),
        (None, "newer askline"),
    ],
    ids=["damaged", "newer"],
)
def test_open_refuses_damaged_and_newer_stores(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "store.sqlite"
    if content is not None:
        path.write_bytes(content)
    else:
        made = Store.open(path, may_migrate=True)
        assert made is not None
        made.close()
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
    with pytest.raises(CorpusError, match=message) as caught:
        Store.open(path, may_migrate=False)
    if content is not None:
        assert f"`askline index --verify --out {tmp_path}`" in str(caught.value)


def test_records_are_found_by_the_offset_of_a_sentence(store: Store) -> None:
    records = [RowRecord(10, 2, "q1"), RowRecord(50, 3, "")]
    store.put([replace(row("a.csv", "One."), rows=iter(records)), row("b.txt", "Two.")])
    number = _number(store, "a.csv")
    assert [store.row_at(number, at) for at in (9, 10, 49, 50, 999)] == [
        None,
        records[0],
        records[0],
        records[1],
        records[1],
    ]
    assert store.row_at(_number(store, "b.txt"), 10) is None
    store.remove(["a.csv"])
    assert store.row_at(number, 10) is None
