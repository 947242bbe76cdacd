"""CSV and JSONL: files whose rows are documents."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import DataError
from askline.text.readers import ParsedDocument, iter_sentences, read_document
from askline.text.readers.csv import read_csv
from askline.text.readers.document import UnreadableError
from askline.text.readers.jsonl import read_jsonl

from .samples import check, originals, read, refusal, shown

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


def parts(document: ParsedDocument) -> list[tuple[int, str, str, str]]:
    return [(p.row, p.id, p.title, document.text[p.start : p.end]) for p in document.parts]


def test_jsonl_lines_are_documents(tmp_path: Path) -> None:
    rows = [
        '{"id": 7, "title": "Bridges", "text": "It \\u00e9tait \\"old\\".\\nIt fell."}',
        "",
        '{"n": [{"text": "no"}], "Body": "Second \\ud83d\\ude00 one."}',
    ]
    document = read(tmp_path, "a.jsonl", "\n".join(rows))
    assert parts(document) == [
        (1, "7", "Bridges", 'It était "old".\nIt fell.'),
        (3, "", "", "Second 😀 one."),
    ]
    assert originals(document) == [
        'It \\u00e9tait \\"old\\".',
        "It fell.",
        "Second \\ud83d\\ude00 one.",
    ]
    assert [(document.place(s.start).number, s.heading) for s in iter_sentences(document)] == [
        (1, "Bridges"),
        (1, "Bridges"),
        (3, ""),
    ]
    assert (document.parts[-1].row, document.parts[-1].id) == (3, "")
    check(document)


def test_bad_jsonl_lines_are_reported_and_skipped(tmp_path: Path) -> None:
    rows = [
        '{"text": "Good."}',
        '{"text": ',
        "[1]",
        '{"text": 5}',
        '{"a": 1}',
        '{"text": "\\ud800"}',
    ]
    document = read(tmp_path, "a.jsonl", "\n".join(rows))
    assert [text for _, text in shown(document)] == ["Good."]
    assert [(p.path, p.line, p.message[:38]) for p in document.problems] == [
        (document.path, 2, "Not JSON: Expecting value at column 10"),
        (document.path, 3, "Not JSON: Expecting '{' at column 1."),
        (document.path, 4, "'text' must be a string, got 5."),
        (document.path, 5, "No field is named text, content, body,"),
        (document.path, 6, "'text' has half of a surrogate pair. W"),
    ]


def test_jsonl_with_only_bad_lines_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "a.jsonl", "\n{").startswith("2: Not JSON: ")


CSV = (
    'id;Title;text\r\n1;One;"He said ""no"".\nThen; he left."\r\n\r\n2;;Plain text.\r\n3;Three;\r\n'
)


def test_csv_rows_are_documents(tmp_path: Path) -> None:
    document = read(tmp_path, "a.csv", CSV)
    assert parts(document) == [
        (2, "1", "One", 'He said "no".\nThen; he left.'),
        (4, "2", "", "Plain text."),
    ]
    assert originals(document) == ['He said ""no"".', "Then; he left.", "Plain text."]
    assert [document.place(s.start).number for s in iter_sentences(document)] == [2, 3, 5]
    check(document)


def test_text_column_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("name,about\nBridge,Old and long.\n")
    assert read_document(path, columns=["About"]).text == "Old and long.\n"
    with pytest.raises(DataError, match="No column 'abuot'. Found: 'name', 'about'."):
        read_document(path, columns=["abuot"])


TABLE = (
    'product,price,remark\nLamp,19.90,"Small, of ""brass"".\nTakes one bulb."\n,,\nChair, 89.00 ,\n'
)


def test_csv_without_a_column_of_text_is_a_table(tmp_path: Path) -> None:
    document = read(tmp_path, "a.csv", TABLE)
    assert shown(document) == [
        ("columns", "product\nprice\nremark"),
        ("row", 'Lamp\n19.90\nSmall, of "brass". Takes one bulb.'),
        ("row", "Chair\n89.00"),
    ]
    assert [each.heading for each in iter_sentences(document)][1:] == [
        "product | price | remark"
    ] * 2
    assert [part.row for part in document.parts] == [1, 2, 4]
    assert originals(document)[1].startswith('Lamp,19.90,"Small')
    assert [document.place(each.start).number for each in iter_sentences(document)] == [1, 2, 5]
    check(document)


def test_csv_without_names_of_columns_is_a_table_too(tmp_path: Path) -> None:
    document = read(tmp_path, "a.csv", "2024-01-05;Bakery;4.20\n2024-01-06;Tram;2.80\n")
    assert [text for _, text in shown(document)] == [
        "2024-01-05\nBakery\n4.20",
        "2024-01-06\nTram\n2.80",
    ]


def test_a_row_of_a_table_may_have_other_fields(tmp_path: Path) -> None:
    document = read(tmp_path, "a.csv", "name,age\nAnn,41\nBo,7,left\n")
    assert [text for _, text in shown(document)][1:] == ["Ann\n41", "Bo\n7\nleft"]
    assert document.problems == ()


@pytest.mark.parametrize(
    "rows",
    ["1,0xff\n2.5,7e3", "", "\n,", "a,b,c\na,b,c\nd,e"],
    ids=["numbers", "none", "empty", "other fields"],
)
def test_a_table_without_words_is_refused(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"date,value\n{rows}")
    with pytest.raises(DataError, match="No column is named text, .* 'value'. Name") as caught:
        read_document(path)
    assert caught.value.problems[0].reason == "no column"


def test_jsonl_without_a_field_of_text_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(DataError, match="No field is named text") as caught:
        read_document(path)
    assert caught.value.problems[0].reason == "no column"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "The first row is empty. Put"),
        ('id,text\n1,"open', "2: A quotation mark is not closed, or"),
        ('id,text\n1,"a"b', "2: A quotation mark is not closed, or"),
        ("id,text\n1,a,b", "2: Expected 2 fields as in the header, got 3."),
    ],
    ids=["empty", "open", "inside", "fields"],
)
def test_unreadable_csv_gives_the_reason(tmp_path: Path, content: str, message: str) -> None:
    assert refusal(tmp_path, "a.csv", content).startswith(message)


def test_csv_row_with_too_many_fields_is_skipped(tmp_path: Path) -> None:
    document = read(tmp_path, "a.tsv", "id\ttext\n1\tGood.\n2\ta\tb\n")
    assert [text for _, text in shown(document)] == ["Good."]
    assert [(p.line, p.message) for p in document.problems] == [
        (3, "Expected 2 fields as in the header, got 3.")
    ]


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
def test_csv_agrees_with_the_standard_library(rows: list[tuple[str, str]]) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([("n", "text"), *rows])
    content = read_csv(written.getvalue())
    assert [content.text[p.start : p.end] for p in content.parts] == [text for _, text in rows]


@given(st.lists(TEXT, min_size=1, max_size=5), st.booleans())
def test_jsonl_agrees_with_the_standard_library(texts: list[str], ascii_only: bool) -> None:
    rows = [json.dumps({"n": 1.5, "text": text}, ensure_ascii=ascii_only) for text in texts]
    source = "\n".join(rows)
    content = read_jsonl(source)
    assert [content.text[p.start : p.end] for p in content.parts] == texts
    assert content.segments is not None
    for part, text in zip(content.parts, texts, strict=True):
        start, end = content.segments.span(part.start, part.end)
        assert json.loads(f'"{source[start:end]}"') == text


def test_at_most_a_hundred_bad_rows_are_reported(tmp_path: Path) -> None:
    document = read(tmp_path, "a.jsonl", '{"text": "One."}\n' + "bad\n" * 1_234)
    assert len(document.problems) == 101
    assert (document.problems[-1].line, document.problems[-1].message) == (
        0,
        "1,134 more rows were left out.",
    )


@pytest.mark.parametrize("piece", ['""', '"', ",", '"a""b",', 'x"y,'])
def test_long_csv_rows_take_little_time_and_memory(piece: str) -> None:
    source = 'text,id\n"' + piece * (1_000_000 // len(piece))
    start = time.process_time()
    with contextlib.suppress(UnreadableError):
        read_csv(source)
    assert time.process_time() - start < 4
