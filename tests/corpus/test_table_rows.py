"""Answers out of csv and jsonl name their row and its own id, and slice the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from askline.corpus import Answer, Corpus

from .conftest import write

CSV = (
    "id,title,text\r\n"
    'lamp-1,Lamps,"The lamp was called ""Bess"".\nIt was lit in 1698 by a keeper."\r\n'
    "\r\n"
    ",Bread,Yeast makes dough rise within 2 hours.\r\n"
)
CAFE = 'The caf\\u00e9 \\"Bess\\" was opened in 1698.'
JSONL = f'{{"id": 7, "text": "{CAFE}"}}\n\n{{"text": "Its stove was bought in 1701."}}\n'


def _best(folder: Path, question: str) -> Answer:
    with Corpus.open(folder / "index", ranker=None) as corpus:
        corpus.add(folder / "pages")
        best = corpus.ask(question).best
    assert best is not None
    return best


@pytest.mark.parametrize(
    ("name", "question", "row", "record", "line", "original"),
    [
        (
            "faq.csv",
            "When was it lit by a keeper?",
            2,
            "lamp-1",
            3,
            "It was lit in 1698 by a keeper.",
        ),
        ("faq.csv", "What was the lamp called?", 2, "lamp-1", 2, 'The lamp was called ""Bess"".'),
        ("faq.csv", "What makes dough rise?", 4, "", 5, "Yeast makes dough rise within 2 hours."),
        ("a.jsonl", "When was the café opened?", 1, "7", 1, CAFE),
        ("a.jsonl", "When was its stove bought?", 3, "", 3, "Its stove was bought in 1701."),
    ],
)
def test_the_answer_names_its_row(
    tmp_path: Path, name: str, question: str, row: int, record: str, line: int, original: str
) -> None:
    file = write(tmp_path / "pages" / name, CSV if name == "faq.csv" else JSONL)
    best = _best(tmp_path, question)
    assert (best.row, best.record, best.unit, best.number) == (row, record, "line", line)
    assert file.read_bytes().decode()[best.start : best.end] == original


@pytest.mark.parametrize(
    ("name", "question", "place"),
    [
        ("faq.csv", "When was it lit by a keeper?", "faq.csv:3, row 2, id lamp-1"),
        ("faq.csv", "What makes dough rise?", "faq.csv:5, row 4"),
        ("a.jsonl", "When was the café opened?", "a.jsonl:1, id 7"),
        ("a.jsonl", "When was its stove bought?", "a.jsonl:3"),
    ],
)
def test_its_place_in_words(tmp_path: Path, name: str, question: str, place: str) -> None:
    write(tmp_path / "pages" / name, CSV if name == "faq.csv" else JSONL)
    assert _best(tmp_path, question).place == place


@pytest.mark.parametrize(
    ("question", "before", "after"),
    [
        ("When was it lit by a keeper?", 'The lamp was called "Bess".', ""),
        ("What makes dough rise?", "", ""),
    ],
    ids=["inside the row", "another row"],
)
def test_neighbors_are_in_the_same_row(
    tmp_path: Path, question: str, before: str, after: str
) -> None:
    write(tmp_path / "pages" / "faq.csv", CSV)
    best = _best(tmp_path, question)
    assert (best.before, best.after) == (before, after)


@pytest.mark.slow
def test_skipped_rows_are_reported_again_while_the_file_is_unchanged(tmp_path: Path) -> None:
    file = write(tmp_path / "pages" / "a.jsonl", JSONL + "no json\n")
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        first = corpus.add(tmp_path / "pages")
        again = corpus.add(tmp_path / "pages")
        os.utime(file, (1e9, 1e9))  # another date, which has the file looked into
        touched = corpus.add(tmp_path / "pages")
        write(file, JSONL)
        mended = corpus.add(tmp_path / "pages")
    (problem,) = first.problems
    assert (problem.line, problem.message[:8]) == (4, "Not JSON")
    assert (first.added, again.unchanged, touched.unchanged, mended.changed) == (1, 1, 1, 1)
    assert again.problems == touched.problems == first.problems
    assert mended.problems == ()


def test_other_files_have_no_rows(tmp_path: Path) -> None:
    write(tmp_path / "pages" / "a.txt", "Yeast makes dough rise.")
    best = _best(tmp_path, "What makes dough rise?")
    assert (best.row, best.record) == (None, "")


def test_texts_in_memory_have_no_rows() -> None:
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add_texts({"note": "Yeast makes dough rise."})
        best = corpus.ask("What makes dough rise?").best
    assert best is not None
    assert (best.row, best.record) == (None, "")
