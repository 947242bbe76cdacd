from __future__ import annotations

import codecs
import hashlib
import io
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import DataError
from askline.text.readers import MAX_FILE_BYTES, iter_sentences, read_document
from askline.text.readers.files import read_plain_text
from askline.text.readers.offsets import line_starts

from .samples import check, originals, read, refusal, shown

FRENCH = "Le fleuve prend sa source près de l'étang. Il traverse la forêt où l'on récoltait jadis."
POLISH = "Wieża ciśnień została zbudowana w środku miasta. Później przebudowano ją na muzeum."
RUSSIAN = (
    "Железная дорога была открыта в начале века. "
    "Она проходит через восемь часовых поясов и соединяет столицу с океаном."
)
JAPANESE = "鉄道は二十世紀の初めに開通した。首都と海を結び、八つの時間帯を通る。"


def test_plain_text_is_its_own_original(tmp_path: Path) -> None:
    content = "One sentence. Another\r\none.\r\n\r\nA third."
    document = read(tmp_path, "notes.txt", content)
    assert document.text == content
    assert document.title == "notes"
    assert document.sha256 == hashlib.sha256(content.encode()).hexdigest()
    assert originals(document) == ["One sentence.", "Another\r\none.", "A third."]
    assert [str(document.place(s.start)) for s in iter_sentences(document)] == [
        "line 1",
        "line 1",
        "line 4",
    ]
    check(document)


@given(st.text(st.sampled_from("ab .\n\r\u2028\x0cÉ#-1"), max_size=80))
def test_every_character_has_its_line(text: str) -> None:
    starts = line_starts(text)
    assert list(read_plain_text(text).starts) == list(starts)
    ended = io.StringIO(text, newline=None).read() + "x"  # every line end as \n
    assert len(starts) == ended.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "codec", "expected"),
    [
        (FRENCH, "utf-8", "utf-8"),
        (FRENCH, "utf-8-sig", "utf-8-sig"),
        (FRENCH, "utf-16", "utf-16"),
        (FRENCH, "utf-32", "utf-32"),
        (FRENCH, "latin-1", "cp1252"),
        ("Café fermé.", "latin-1", "cp1252"),
        (POLISH, "cp1250", "cp1250"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8-r", "koi8_r"),
        (JAPANESE, "shift_jis", "cp932"),
    ],
)
def test_encodings(tmp_path: Path, text: str, codec: str, expected: str) -> None:
    document = read(tmp_path, "a.txt", text.encode(codec))
    assert (document.text, document.encoding) == (text, expected)
    assert "".join(originals(document)) == text.replace(". ", ".")


def test_html_may_declare_its_encoding(tmp_path: Path) -> None:
    page = '<meta charset="iso-8859-15"><p>10 €.'.encode("iso-8859-15")
    assert read(tmp_path, "a.html", page).text == "10 €.\n"
    assert "10" in read(tmp_path, "b.html", page.replace(b"iso-8859-15", b"base64")).text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "It is empty or has no text. Leave it out."),
        (b"text\0\0\1\2", "It is named as text and holds binary data. Leave it out or convert it."),
        (b"\1\2\3\4" * 9, "It is named as text and holds binary data."),
        (b"%PDF-1.4 text", "It is named as text and holds a pdf. Give it its own suffix."),
        (b"PK\x03\x04 text", "It is named as text and holds a zip archive or an office document."),
        (codecs.BOM_UTF8 + b"\xff", "It starts as UTF-8 and does not go on so. Save it as"),
        (b"a\n" + bytes(range(129, 160)), "2: Byte 0x81 at offset 2 is not UTF-8, and no other"),
    ],
    ids=["empty", "nul", "controls", "pdf", "zip", "broken-mark", "unknown-encoding"],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, content: bytes, message: str) -> None:
    assert refusal(tmp_path, "a.txt", content).startswith(message)


def test_only_white_space_is_no_sentence(tmp_path: Path) -> None:
    assert shown(read(tmp_path, "a.txt", " \n ")) == []


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as stream:
        stream.truncate(500_000_000)
    with pytest.raises(DataError, match="It has 500,000,000 bytes or more and at most 268,435,456"):
        read_document(path)
    assert path.stat().st_size > MAX_FILE_BYTES


def test_a_line_of_a_million_characters_is_read(tmp_path: Path) -> None:
    document = read(tmp_path, "a.txt", "word " * 200_000)
    assert [(kind, len(text)) for kind, text in shown(document)] == [("sentence", 999_999)]


@pytest.mark.parametrize("suffix", ["txt", "md", "html", "csv"])
def test_memory_stays_in_proportion(tmp_path: Path, suffix: str) -> None:
    row = "A short sentence, <b>marked</b> *twice* or not. And another one follows it here.\n\n"
    path = tmp_path / f"a.{suffix}"
    path.write_text(("text\n" if suffix == "csv" else "") + row.replace(",", "") * 2_000)
    tracemalloc.start()
    document = read_document(path)
    count = sum(1 for _ in iter_sentences(document))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count >= 4_000
    assert peak < 10 * path.stat().st_size


def test_standard_input_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (7, 6):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A line.")))
        if limit == 6:
            with pytest.raises(DataError, match="It has 7 bytes or more and at most 6 are read."):
                read_document("-", max_bytes=limit)
        else:
            document = read_document("-", max_bytes=limit)
            assert document.title == "standard input"
            assert (document.path, document.text) == ("-", "A line.")


def test_a_missing_file_and_a_folder_are_problems(tmp_path: Path) -> None:
    for path in (tmp_path / "no.txt", tmp_path):
        with pytest.raises(DataError, match="It cannot be read: "):
            read_document(path)


def test_long_texts_are_split_as_short_ones(tmp_path: Path) -> None:
    paragraph = "Dr. Smith came in 1931. He left\nsoon after.\n\n"
    document = read(tmp_path, "a.txt", paragraph * 5_000)
    found = [text for _, text in shown(document)]
    assert found == ["Dr. Smith came in 1931.", "He left\nsoon after."] * 5_000
