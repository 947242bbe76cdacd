"""Damage in the store is found, at the start, while answering and by `verify`, and repaired."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from askline.corpus import Corpus
from askline.corpus import store as store_module
from askline.corpus.schema import MIGRATIONS, SentenceRecord
from askline.corpus.storage import STORE_NAME
from askline.corpus.storage_errors import DamagedDocumentError
from askline.errors import CorpusError
from askline.text.readers.sentence_blocks import SentenceBlocks, unpack_block

from .conftest import store_a_row_per_sentence, write

QUESTION = "Why does dough rise?"
TEXTS = {"note": "Yeast needs sugar to make dough rise. It dies in hot water.", "plain": "Nothing."}
ANSWER = b"Dough rises because yeast makes gas."


@pytest.fixture
def index(tmp_path: Path, pages: Path) -> Path:
    write(pages / "faq.csv", "id,text\nq1,The library opens at nine.\nq2,Books are lent.\n")
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        corpus.add(pages)
        corpus.add(TEXTS)
    return tmp_path / "index"


def _open(index: Path, *, check: bool = True) -> Corpus:
    return Corpus.open(index, ranker=None, must_exist=True, check=check)


def _flip_bit(index: Path, within: bytes, *, bit: int = 8) -> None:
    """Flip one bit of a text in the file of the store; the text occurs once."""
    store = index / STORE_NAME
    data = bytearray(store.read_bytes())
    assert data.count(within) == 1
    at = data.index(within) + bit // 8
    data[at] ^= 1 << (bit % 8)
    store.write_bytes(data)


def _change(index: Path, statement: str) -> None:
    with closing(sqlite3.connect(index / STORE_NAME)) as connection, connection:
        connection.execute(statement)


def _change_sentences(
    index: Path, name: str, change: Callable[[SentenceRecord], SentenceRecord]
) -> None:
    """Change the sentences of a document of one block, whose checksum stays the same."""
    with closing(sqlite3.connect(index / STORE_NAME)) as connection, connection:
        ((block_id, data),) = connection.execute(
            "SELECT b.id, data FROM sentence_blocks b JOIN documents d ON b.id = d.id << 32 "
            "WHERE name = ?",
            (name,),
        )
        (block,) = SentenceBlocks.of(map(change, unpack_block(data, 0))).blocks
        assert block != data
        connection.execute("UPDATE sentence_blocks SET data = ? WHERE id = ?", (block, block_id))


def test_an_intact_index_stays_as_it_is(index: Path) -> None:
    with _open(index) as corpus:
        generation = corpus.status().generation
        report = corpus.verify()
        assert (report.documents, report.damaged, report.checksums_added) == (6, (), 0)
        assert not report.store_rebuilt
        assert not report.search_rebuilt
        assert corpus.status().generation == generation


def test_a_damaged_document_is_an_error_and_not_a_wrong_answer(index: Path) -> None:
    _flip_bit(index, ANSWER)
    with _open(index) as corpus:
        message = r"'bread.txt' is damaged .* Run `askline index --verify --out DIR`"
        with pytest.raises(DamagedDocumentError, match=message):
            corpus.ask(QUESTION)
        with pytest.raises(DamagedDocumentError):
            corpus.sentences("bread.txt")
        assert (
            corpus.ask("Who built the stepped lens?", top_k=3).best is not None
        )  # of another document


def test_text_that_is_no_longer_utf8_names_its_document(index: Path) -> None:
    _flip_bit(index, ANSWER, bit=15)
    with _open(index) as corpus, pytest.raises(DamagedDocumentError, match=r"'bread\.txt'"):
        corpus.ask(QUESTION)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET title = 'other' WHERE name = 'bread.txt'",
        "UPDATE sentences SET last = last + 8 WHERE text LIKE 'Dough%'",
        "UPDATE sentences SET place = place + 8 WHERE text LIKE 'Dough%'",
    ],
)
def test_damage_beside_the_text_of_an_earlier_version_is_found(index: Path, statement: str) -> None:
    store_a_row_per_sentence(index / STORE_NAME)
    _change(index, statement)
    with _open(index) as corpus, pytest.raises(DamagedDocumentError, match=r"'bread\.txt'"):
        corpus.ask(QUESTION)


@pytest.mark.parametrize("field", ["end", "number", "heading", "lead_in"])
def test_damage_beside_the_text_is_an_error_too(index: Path, field: str) -> None:
    def change(sentence: SentenceRecord) -> SentenceRecord:
        value = getattr(sentence, field)
        return sentence._replace(**{field: value + ("x" if isinstance(value, str) else 8)})

    _change_sentences(index, "bread.txt", change)
    with _open(index) as corpus, pytest.raises(DamagedDocumentError, match=r"'bread\.txt'"):
        corpus.ask(QUESTION)


@pytest.mark.parametrize("data", ["'text'", "x''", "x'ffffffffffffffff'", "substr(data, 1, 30)"])
def test_a_block_without_its_structure_stops_no_question(index: Path, data: str) -> None:
    _change(
        index,
        f"UPDATE sentence_blocks SET data = {data} "
        "WHERE id = (SELECT id << 32 FROM documents WHERE name = 'bread.txt')",
    )
    with _open(index) as corpus:
        best = corpus.ask(QUESTION).best
        assert best is not None
        assert best.document == "note"
        with pytest.raises(DamagedDocumentError):
            corpus.sentences("bread.txt")
        assert corpus.verify().restored == ("bread.txt",)


def test_verify_reads_files_again_and_reports_texts_as_lost(index: Path, pages: Path) -> None:
    _flip_bit(index, ANSWER)
    _flip_bit(index, b"It dies in hot water.")
    _flip_bit(index, b"It threw the light twenty miles.")
    (pages / "lamps" / "lens.md").unlink()
    with _open(index, check=False) as corpus:
        report = corpus.verify()
        assert sorted(report.damaged) == ["bread.txt", "lamps/lens.md", "note"]
        assert report.restored == ("bread.txt",)
        assert sorted(report.lost) == ["lamps/lens.md", "note"]
        best = corpus.ask(QUESTION).best
        assert best is not None
        assert best.text.encode() == ANSWER
        assert {each.path for each in corpus.status().unreadable} == {"lamps/lens.md", "note"}
        assert corpus.verify().damaged == ()
        assert corpus.add(TEXTS).changed == 1  # the lost text is restored, the other unchanged
        assert [each.path for each in corpus.status().unreadable] == ["lamps/lens.md"]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("UPDATE documents SET name = 'broad.txt' WHERE name = 'bread.txt'", "broad.txt"),
        (
            "DELETE FROM sentence_blocks WHERE id = "
            "(SELECT id << 32 FROM documents WHERE name = 'bread.txt')",
            "bread.txt",
        ),
        (
            "INSERT INTO sentence_blocks SELECT id + 99, data, checksum FROM sentence_blocks "
            "WHERE id = (SELECT id << 32 FROM documents WHERE name = 'lamps/lens.md')",
            "lamps/lens.md",
        ),
        ("UPDATE records SET row = row + 1 WHERE id = 'q2'", "faq.csv"),
        ("DELETE FROM records WHERE id = 'q2'", "faq.csv"),
    ],
)
def test_verify_finds_changes_outside_of_sentences(index: Path, statement: str, name: str) -> None:
    _change(index, statement)
    with _open(index) as corpus:
        report = corpus.verify()
        assert (report.damaged, report.restored) == ((name,), (name,))
        names = [each.name for each in corpus.documents()]
        assert names == sorted(
            ["bread.txt", "faq.csv", "lamps/lens.md", "lamps/rock.txt", "note", "plain"]
        )
        assert corpus.verify().damaged == ()


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("DELETE FROM sentences WHERE text LIKE 'Salt slows%'", "bread.txt"),
        ("UPDATE headings SET text = 'The stopped lens' WHERE number = 1", "lamps/lens.md"),
    ],
)
def test_verify_finds_changes_in_a_store_of_an_earlier_version(
    index: Path, statement: str, name: str
) -> None:
    store_a_row_per_sentence(index / STORE_NAME)
    with _open(index) as corpus:
        assert corpus.verify().damaged == ()
        assert corpus.ask(QUESTION).best is not None
    _change(index, statement)
    with _open(index) as corpus:
        report = corpus.verify()
        assert (report.damaged, report.restored) == ((name,), (name,))
        assert corpus.verify().damaged == ()


def test_fifty_flipped_bits_are_found_and_repaired(tmp_path: Path) -> None:
    """Afterwards the store holds what the files say."""
    pages, index = tmp_path / "many", tmp_path / "index"
    for number in range(60):
        text = "".join(f"The lamp {number} of row {row} burns.\n\n" for row in range(40))
        write(pages / f"{number}.txt", text)
    with Corpus.open(index, ranker=None) as corpus:
        corpus.add(pages)
    intact = (index / STORE_NAME).read_bytes()
    for seed in range(10):
        rng = random.Random(seed)
        data = bytearray(intact)
        for _ in range(50):  # beyond the first page, without which SQLite opens nothing
            data[rng.randrange(4096, len(data))] ^= 1 << rng.randrange(8)
        (index / STORE_NAME).write_bytes(data)
        with _open(index, check=False) as corpus:
            report = corpus.verify()
            assert report.damaged or report.store_rebuilt
            corpus.add(pages)  # documents whose rows could not be read at all
            assert corpus.status().documents == 60
            for each in corpus.documents(limit=1_000):
                sentences = corpus.sentences(each.name)
                assert sentences is not None
                assert len(sentences) == 40
                own_number = each.name.removesuffix(".txt")
                assert sentences[7].text == f"The lamp {own_number} of row 7 burns."
            assert corpus.ask("Which lamp burns?").best is not None


def test_a_store_of_an_earlier_version_gets_checksums(index: Path, pages: Path) -> None:
    store_a_row_per_sentence(index / STORE_NAME)
    _change(index, "UPDATE sentences SET checksum = NULL")
    _change(index, "UPDATE records SET checksum = NULL")
    _change(index, "UPDATE documents SET checksum = NULL, table_rows = NULL")
    _change(index, "UPDATE settings SET value = 100 WHERE name = 'unchecked_until'")
    with _open(index) as corpus:
        assert corpus.ask(QUESTION).best is not None
        report = corpus.verify()
        assert (report.damaged, report.checksums_added) == ((), 6)
        assert corpus.verify().checksums_added == 0
        assert corpus.add(pages).unchanged == 4
    _flip_bit(index, b"It dies in hot water.")
    with _open(index) as corpus:
        assert corpus.verify().lost == ("note",)
    assert len(MIGRATIONS) >= 5  # the one that added the columns


def test_every_start_checks_the_structure(index: Path) -> None:
    data = bytearray((index / STORE_NAME).read_bytes())
    data[5 * 4096 : 6 * 4096] = bytes(4096)
    (index / STORE_NAME).write_bytes(data)
    with pytest.raises(CorpusError, match=r"is damaged: .* Run: askline index --verify --out "):
        _open(index)


def test_a_large_store_is_sampled(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_QUICK_CHECK_BYTES", 0)
    _open(index).close()
    _flip_bit(index, ANSWER)
    with pytest.raises(CorpusError, match=r"'bread\.txt' is damaged"):
        _open(index)


def test_a_damaged_search_index_is_rebuilt_by_verify(index: Path) -> None:
    file = next((index / "search").glob("*.idx"))
    data = bytearray(file.read_bytes())
    data[10] ^= 4
    file.write_bytes(data)
    with _open(index) as corpus:
        assert corpus.verify().search_rebuilt
        assert not corpus.verify().search_rebuilt
        assert corpus.ask(QUESTION).best is not None
