from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from askline.corpus import Corpus, FileReport, document_records, ingest
from askline.corpus.results import AddReport, CorpusStatus
from askline.corpus.schema import DocumentRecord
from askline.errors import InputError
from askline.text.readers import ReaderPool

from ..text.readers.samples import lines, make_pdf, make_slow_pdf
from .conftest import storage_of, write


@pytest.fixture
def corpus() -> Iterator[Corpus]:
    with Corpus.in_memory() as corpus:
        yield corpus


def _sums(report: AddReport) -> tuple[int, int, int, int, int]:
    return report.added, report.changed, report.unchanged, report.removed, report.failed


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make reading a file an error; looking at its size and date is allowed."""

    def refuse(pool: ReaderPool, path: Path, state: os.stat_result) -> None:
        raise AssertionError(f"{path} was read again")

    monkeypatch.setattr(ReaderPool, "submit_prepared", refuse)


def test_every_file_is_reported_once_and_counted(corpus: Corpus, pages: Path) -> None:
    reports: list[FileReport] = []
    report = corpus.add(pages, on_file=reports.append)
    assert _sums(report) == (3, 0, 0, 0, 0)
    assert [Path(each.document).name for each in reports] == ["bread.txt", "lens.md", "rock.txt"]
    assert report.sentences == sum(each.sentences for each in reports) == 10
    assert corpus.status().documents == 3


def test_a_report_comes_after_its_file_is_stored(corpus: Corpus, pages: Path) -> None:
    def check(report: FileReport) -> None:
        assert report.document in storage_of(corpus).store.names()

    corpus.add(pages, on_file=check)


def test_unchanged_files_are_not_read_again(
    corpus: Corpus, pages: Path, request: pytest.FixtureRequest
) -> None:
    corpus.add(pages)
    request.getfixturevalue("no_reading")
    assert _sums(corpus.add(pages)) == (0, 0, 3, 0, 0)


def test_a_new_date_alone_is_not_a_change(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    generation = corpus.status().generation
    os.utime(pages / "bread.txt", (1_000_000_000, 1_000_000_000))
    assert _sums(corpus.add(pages)) == (0, 0, 3, 0, 0)
    assert corpus.status().generation == generation
    known = corpus._store.file_state("bread.txt")
    assert known is not None
    assert known.modified == 10**18


@pytest.mark.slow
def test_a_changed_file_is_read_alone(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    write(pages / "bread.txt", "Rye bread keeps for a week.", age=30)
    changed: list[str] = []
    report = corpus.add(
        pages, on_file=lambda each: changed.append(each.document) if each.sentences else None
    )
    assert _sums(report) == (0, 1, 2, 0, 0)
    assert changed == ["bread.txt"]
    assert corpus.ask("Why does dough rise?").best is None
    assert corpus.ask("How long does rye keep?").best is not None


def test_a_change_within_the_clocks_tick_is_seen(corpus: Corpus, tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "Red.", age=0)
    then = file.stat().st_mtime_ns
    corpus.add(file)
    file.write_text("Tan.", encoding="utf-8")
    os.utime(file, ns=(then, then))  # the same size and the same date
    assert corpus.add(file).changed == 1


def test_deleted_files_are_removed_only_with_their_own_folder(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    (pages / "bread.txt").unlink()
    (pages / "lamps" / "rock.txt").unlink()
    assert corpus.add(pages / "lamps").removed == 1
    assert corpus.status().documents == 2
    assert corpus.add(pages).removed == 1
    assert corpus.status().documents == 1


def test_nothing_is_removed_when_the_folder_itself_is_out_of_reach(
    corpus: Corpus, pages: Path
) -> None:
    corpus.add(pages)
    pages.rename(pages.with_name("unplugged"))
    report = corpus.add(pages)
    assert _sums(report) == (0, 0, 0, 0, 1)
    assert "no such file" in str(report.problems[0])
    assert corpus.status().documents == 3


def test_only_removes_what_is_not_under_the_paths(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    assert corpus.add(pages / "lamps", only=True).removed == 1
    assert corpus.status().documents == 2


def test_a_file_that_cannot_be_read_does_not_stop_the_others(corpus: Corpus, pages: Path) -> None:
    write(pages / "image.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    report = corpus.add(pages)
    assert _sums(report) == (3, 0, 0, 0, 1)
    assert "image.txt: It contains an image and no text." in str(report.problems[0])
    assert [problem.path for problem in corpus.status().unreadable] == ["image.txt"]


def test_a_bad_file_is_reported_again_and_not_read_again(
    corpus: Corpus, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = write(pages / "bad.txt", b"\x00\x01\x02")
    first = corpus.add(pages)
    monkeypatch.setattr(ReaderPool, "submit_prepared", None)  # calling it would fail
    again = corpus.add(pages)
    assert again.problems == first.problems
    assert again.failed == 1
    monkeypatch.undo()
    write(bad, "Mended.", age=30)
    assert _sums(corpus.add(pages)) == (0, 1, 3, 0, 0)
    assert corpus.status().unreadable == ()


def test_a_file_that_becomes_unreadable_no_longer_answers(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    write(pages / "bread.txt", b"\x00\x01\x02", age=30)
    assert corpus.add(pages).failed == 1
    assert corpus.ask("Why does dough rise?").best is None


def test_a_file_deleted_while_it_is_read_is_a_problem(
    corpus: Corpus, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(pool: ReaderPool, path: Path, state: os.stat_result) -> object:
        if path.name == "bread.txt":
            path.unlink()
        return submit(pool, path, state)

    submit = ReaderPool.submit_prepared
    monkeypatch.setattr(ReaderPool, "submit_prepared", read)
    report = corpus.add(pages)
    assert _sums(report) == (2, 0, 0, 0, 1)
    assert "bread.txt: It cannot be read: No such file" in str(report.problems[0])
    assert corpus.status().unreadable == ()  # no verdict on what was not seen


def test_rows_that_are_left_out_are_problems_of_a_file_that_is_added(
    corpus: Corpus, tmp_path: Path
) -> None:
    file = write(tmp_path / "rows.jsonl", '{"text": "Salt keeps fish."}\nnot json\n')
    report = corpus.add(file)
    assert _sums(report) == (1, 0, 0, 0, 0)
    assert [problem.line for problem in report.problems] == [2]


def test_a_file_name_that_is_not_utf8_is_a_problem(corpus: Corpus, tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    try:
        Path(os.fsdecode(folder + b"/bad\xff.txt")).write_text("Text.", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes UTF-8 names alone")
    report = corpus.add(tmp_path)
    assert report.failed == 1
    assert "Rename it" in str(report.problems[0])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such file names")
def test_a_file_name_with_a_line_break_is_a_problem(corpus: Corpus, pages: Path) -> None:
    write(pages / "two\nlines.txt", "Text.")
    report = corpus.add(pages)
    assert _sums(report) == (3, 0, 0, 0, 1)
    assert "Its name contains the control character U+000A. Rename it." in str(report.problems[0])


def test_an_id_with_a_line_break_of_an_earlier_version_can_be_removed(corpus: Corpus) -> None:
    storage_of(corpus).store.put([DocumentRecord("a\nb", "aa", "1", is_file=False)])
    assert corpus.remove("a\nb") == ["a\nb"]
    storage_of(corpus).store.put([DocumentRecord("a\nb", "aa", "1", is_file=False)])
    assert corpus.remove_document("a\nb")


@pytest.mark.slow
def test_texts_are_added_under_ids_and_replaced_by_them(corpus: Corpus) -> None:
    assert _sums(corpus.add({"a": "Salt is cheap.", "b": "Gold is dear."})) == (2, 0, 0, 0, 0)
    assert _sums(corpus.add([("a", "Salt is cheap."), ("b", "Gold is heavy.")])) == (0, 1, 1, 0, 0)
    assert _sums(corpus.add_texts({"a": "Salt is cheap."})) == (0, 0, 1, 0, 0)
    best = corpus.ask("What is gold?").best
    assert best is not None
    assert (best.document, best.text) == ("b", "Gold is heavy.")


def test_the_last_text_of_an_id_wins(corpus: Corpus) -> None:
    corpus.add_texts({"a": "One."})
    assert _sums(corpus.add_texts([("a", "Two."), ("a", "One.")])) == (0, 2, 0, 0, 0)
    assert [each.text for each in corpus.sentences("a") or []] == ["One."]
    assert _sums(corpus.add_texts([("b", "One."), ("b", "One."), ("b", "Two.")])) == (1, 1, 1, 0, 0)
    assert [each.text for each in corpus.sentences("b") or []] == ["Two."]
    assert corpus.status().documents == 2


def test_a_stream_of_texts_is_stored_while_it_comes(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "_BATCH_FILES", 2)
    seen: list[str] = []

    def stream() -> Iterator[tuple[str, str]]:
        for number in range(5):
            assert len(seen) >= number - 1  # at most two of them wait
            yield f"note {number}", f"Lamp {number} burns."

    report = corpus.add(stream(), on_file=lambda each: seen.append(each.document))
    assert seen == [f"note {number}" for number in range(5)]
    assert (report.added, report.sentences) == (5, 5)


@pytest.mark.slow
def test_an_interrupted_stream_keeps_what_was_reported(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "_BATCH_FILES", 1)

    def stream() -> Iterator[tuple[str, str]]:
        yield "a", "Salt is cheap."
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        corpus.add(stream())
    assert [each.name for each in corpus.documents()] == ["a"]
    assert corpus.ask("What is salt?").best is not None


def test_paths_may_come_as_a_stream_too(corpus: Corpus, pages: Path) -> None:
    assert corpus.add(path for path in (pages / "lamps", pages / "bread.txt")).added == 3


@pytest.mark.parametrize("source", [[], {}, iter(())], ids=["list", "mapping", "iterator"])
def test_nothing_can_be_added(corpus: Corpus, source: Iterable[str]) -> None:
    assert _sums(corpus.add(source)) == (0, 0, 0, 0, 0)


def test_only_these_texts_are_kept(corpus: Corpus) -> None:
    corpus.add({"a": "Salt is cheap.", "b": "Gold is dear."})
    assert _sums(corpus.add({"b": "Gold is dear.", "c": "Tin is soft."}, only=True)) == (
        (1, 0, 1, 1, 0)
    )
    assert [each.name for each in corpus.documents()] == ["b", "c"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([("a", "Salt."), "pages"], r"Expected a pair \(id, text\), got 'pages'"),
        ([("a", "Salt.", 3)], r"Expected a pair \(id, text\), got \('a', 'Salt.', 3\)"),
        ([("a", b"Salt.")], r"Expected a pair \(id, text\), got \('a', b'Salt.'\)"),
        ([("", "Salt.")], "The id of a text must be a non-empty string, got ''"),
        ({7: "Salt."}, "The id of a text must be a non-empty string, got 7"),
        ([("\ud800", "Salt.")], "The id of a text must be UTF-8"),
        ({"a\nb": "Salt."}, r"without control characters and line breaks, got 'a\\nb'.*U\+000A"),
        ([("a\u2028b", "Salt.")], r"contains the control character U\+2028"),
        ([("a\x7f", "Salt.")], r"contains the control character U\+007F"),
        ([Path("pages"), ("a", "Salt.")], "Expected a path, got .* in two calls"),
        ([b"pages"], "Expected a path, got b'pages'"),
    ],
)
def test_invalid_inputs_are_refused(corpus: Corpus, source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        corpus.add(source)


@pytest.mark.slow
def test_a_lone_surrogate_is_stored_as_a_question_mark(corpus: Corpus) -> None:
    corpus.add({"a": "The lamp \ud800 burns."})
    best = corpus.ask("What of the lamp?").best
    assert best is not None
    assert best.text == "The lamp ? burns."


def test_remove_accepts_ids_files_and_folders(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    corpus.add({"note": "A lamp note."})
    removed = corpus.remove(["note", pages / "lamps", "unheard of"])
    assert [Path(name).name for name in removed] == ["lens.md", "rock.txt", "note"]
    assert corpus.status().documents == 1
    assert corpus.ask("Which lamp?").best is None


def test_files_and_texts_are_read_again_when_the_reader_version_changes(
    corpus: Corpus, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus.add(pages)
    corpus.add({"note": "The lift is out of order."})
    monkeypatch.setattr(document_records, "READER_VERSION", "another")
    assert corpus.add(pages).changed == 3
    assert corpus.add({"note": "The lift is out of order."}).changed == 1
    assert corpus.add({"note": "The lift is out of order."}).unchanged == 1


def test_a_file_over_a_limit_is_reported_and_read_again_when_the_limit_changes(
    corpus: Corpus, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = write(pages / "slow.pdf", make_slow_pdf())
    report = corpus.add(pages, read_seconds=0.5)
    assert _sums(report) == (3, 0, 0, 0, 1)
    [problem] = report.problems
    assert problem.path == str(slow)
    assert problem.message.startswith("Reading took longer than 0.5 seconds. ")
    assert [each.message for each in corpus.status().unreadable] == [problem.message]

    submitted: list[str] = []
    submit = ReaderPool.submit_prepared

    def record(pool: ReaderPool, path: Path, state: os.stat_result) -> object:
        submitted.append(path.name)
        return submit(pool, path, state)

    monkeypatch.setattr(ReaderPool, "submit_prepared", record)
    assert corpus.add(pages, read_seconds=0.5).problems == (problem,)
    assert submitted == []
    [problem] = corpus.add(pages, read_seconds=0.75).problems
    assert problem.message.startswith("Reading took longer than 0.75 seconds. ")
    assert submitted == ["slow.pdf"]


def test_comments_by_the_thousand_do_not_stop_the_indexing_of_their_folder(
    corpus: Corpus, pages: Path
) -> None:
    write(pages / "comments.md", "<!--a-->" * 490)
    report = corpus.add(pages)
    assert _sums(report) == (3, 0, 0, 0, 0)
    assert report.skipped == 1
    [found] = report.not_read
    assert (found.reason, found.kind, found.count) == ("empty", ".md", 1)


def test_links_out_of_the_folder_are_skipped_and_reported(corpus: Corpus, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "key.txt", "The key is under the stone.")
    folder = tmp_path / "pages"
    write(folder / "a.txt", "Salt is cheap.")
    (folder / "file.txt").symlink_to(outside)
    (folder / "folder").symlink_to(outside.parent)
    (folder / "same.txt").symlink_to(folder / "a.txt")
    (folder / "program.so").symlink_to(outside)  # would not be read without the link either
    report = corpus.add(folder)
    assert _sums(report) == (1, 0, 0, 0, 2)
    assert [Path(each.path).name for each in report.problems] == ["file.txt", "folder"]
    assert "It is a link to a place outside the given folders" in report.problems[0].message
    assert [each.name for each in corpus.documents()] == ["a.txt"]

    assert _sums(corpus.add(folder, follow_links=True)) == (1, 0, 1, 0, 0)
    assert [each.name for each in corpus.documents()] == ["a.txt", "file.txt"]
    assert _sums(corpus.add(folder)) == (0, 0, 1, 1, 2)
    assert [each.name for each in corpus.documents()] == ["a.txt"]
    assert _sums(corpus.add([folder, outside.parent])) == (1, 0, 1, 0, 0)


def test_a_given_link_is_followed(corpus: Corpus, tmp_path: Path) -> None:
    write(tmp_path / "pages" / "a.txt", "Salt is cheap.")
    (tmp_path / "link").symlink_to(tmp_path / "pages")
    assert corpus.add(tmp_path / "link").added == 1


def _not_read(found: AddReport | CorpusStatus) -> list[tuple[str, str, int]]:
    return [(each.reason, each.kind, each.count) for each in found.not_read]


def test_what_is_not_read_is_counted_and_stored(corpus: Corpus, pages: Path) -> None:
    write(pages / "a.png", b"\x89PNG")
    write(pages / "sub" / "b.PNG", b"\x89PNG")
    write(pages / "c.bin", bytes(range(256)))
    write(pages / "empty.txt", "")
    write(pages / "code.py", "x = 1\n")
    write(pages / "bad.docx", b"no")
    write(pages / "large.pdf", make_pdf([lines("Locked.")], locked=True))
    write(pages / ".hidden", "A secret.")
    write(pages / ".gitignore", "*.tmp.md\n")
    write(pages / "x.tmp.md", "Ignored.")
    reports: list[FileReport] = []
    report = corpus.add(pages, on_file=reports.append, exclude=["sub/"])
    assert (report.added, report.failed, report.skipped) == (3, 2, 8)
    assert sorted(_not_read(report)) == [
        ("binary", ".bin", 1),
        ("binary", ".png", 1),
        ("damaged", ".docx", 1),
        ("empty", ".py", 1),
        ("empty", ".txt", 1),
        ("excluded", "folder", 1),
        ("hidden", "no suffix", 2),
        ("ignored", ".md", 1),
        ("password", ".pdf", 1),
    ]
    assert Counter(each.reason for each in reports if each.outcome == "skipped") == {
        "binary": 2,
        "empty": 2,
        "hidden": 2,
        "ignored": 1,
        "excluded": 1,
    }
    assert all(each.reason is not None for each in reports if each.outcome == "failed")
    assert _not_read(corpus.status()) == _not_read(report)
    assert sorted(each.path for each in corpus.status().unreadable) == ["bad.docx", "large.pdf"]
    assert corpus.add(pages, exclude=["sub/"]).not_read == report.not_read, "also if unchanged"


def test_counts_of_other_folders_are_kept(corpus: Corpus, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name / "a.txt", "Salt is cheap.")
        write(tmp_path / name / "a.png", b"\x89PNG")
        corpus.add(tmp_path / name)
    assert _not_read(corpus.status()) == [("binary", ".png", 2)]
    (tmp_path / "one" / "a.png").unlink()
    corpus.add(tmp_path / "one")
    assert _not_read(corpus.status()) == [("binary", ".png", 1)]
    corpus.remove(tmp_path / "two")
    assert corpus.status().not_read == ()


def test_an_empty_file_that_is_named_is_a_problem(corpus: Corpus, tmp_path: Path) -> None:
    file = write(tmp_path / "empty.txt", "")
    report = corpus.add(file)
    assert (report.failed, report.skipped) == (1, 0)
    assert "It is empty or has no text" in report.problems[0].message


def test_files_that_are_left_out_now_are_removed(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    before = {each.name for each in corpus.documents()}
    report = corpus.add(pages, exclude=["bread.txt"])
    assert report.removed == 1
    assert before - {each.name for each in corpus.documents()} == {"bread.txt"}
    write(pages / ".gitignore", "*\n")
    assert corpus.add(pages).removed == 2
    assert corpus.add(pages, no_ignore=True, include=["bread.*"]).added == 1


def test_columns_of_tables_are_read_again_when_they_change(corpus: Corpus, tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "name,about\nAnn,She keeps the lamp.\n")
    write(tmp_path / "a.jsonl", '{"name": "Bo", "about": "He winds the clock."}\n')
    write(tmp_path / "a.txt", "Salt is cheap.")
    assert _sums(corpus.add(tmp_path)) == (2, 0, 0, 0, 1)
    assert _sums(corpus.add(tmp_path, columns=["about"])) == (0, 2, 1, 0, 0)
    assert _sums(corpus.add(tmp_path, columns=["about"])) == (0, 0, 3, 0, 0)
    best = corpus.ask("Who keeps the lamp?").best
    assert best is not None
    assert best.text == "She keeps the lamp."
    assert _sums(corpus.add(tmp_path, columns=["name", "about"])) == (0, 2, 1, 0, 0)


def test_lists_of_patterns_must_be_lists(corpus: Corpus, pages: Path) -> None:
    with pytest.raises(InputError, match=r"`include` must be a list of strings, got '\*.md'."):
        corpus.add(pages, include="*.md")
