"""The ids of files are relative to the folders that were given, and stay the same."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from askline.corpus import Corpus
from askline.corpus.document_records import id_problem
from askline.corpus.schema import MIGRATIONS, migrate
from askline.corpus.storage import STORE_NAME

from .conftest import store_a_row_per_sentence, write

LAST_WITH_ABSOLUTE_IDS = 3  # the number of migrations of such a store


@pytest.fixture
def corpus() -> Iterator[Corpus]:
    with Corpus.in_memory(ranker=None) as corpus:
        yield corpus


def _ids(corpus: Corpus) -> list[str]:
    return [each.name for each in corpus.documents()]


def test_ids_are_relative_to_the_folder(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    assert _ids(corpus) == ["bread.txt", "lamps/lens.md", "lamps/rock.txt"]
    assert corpus.source_path("lamps/rock.txt") == str(pages / "lamps" / "rock.txt")


def test_no_answer_and_no_report_contains_the_folder(corpus: Corpus, pages: Path) -> None:
    write(pages / "image.txt", b"\x89PNG\x00\x01")
    reports: list[str] = []
    corpus.add(pages, on_file=lambda report: reports.append(report.document))
    shown = [*reports, *map(str, corpus.ask("Why does dough rise?"))]
    shown += [str(corpus.documents()), str(corpus.status().unreadable)]
    assert not [text for text in shown if str(pages) in text]


def test_ids_begin_with_the_name_of_the_folder_if_there_are_several(
    corpus: Corpus, tmp_path: Path
) -> None:
    for folder in ("old", "new", "more/new"):
        write(tmp_path / folder / "a.txt", f"The {folder} lamp.")
    corpus.add([tmp_path / "old", tmp_path / "new"])
    assert _ids(corpus) == ["new/a.txt", "old/a.txt"]
    corpus.add(tmp_path / "more" / "new")  # its id is taken
    assert _ids(corpus) == ["more/new/a.txt", "new/a.txt", "old/a.txt"]
    write(tmp_path / "old" / "b.txt", "Another lamp.")
    corpus.add(tmp_path / "old")  # alone, and its ids still begin with its name
    assert "old/b.txt" in _ids(corpus)


def test_a_second_folder_does_not_replace_files_of_the_first(
    corpus: Corpus, tmp_path: Path
) -> None:
    write(tmp_path / "one" / "a.txt", "The first lamp.")
    write(tmp_path / "one" / "two" / "a.txt", "The second lamp.")
    write(tmp_path / "two" / "a.txt", "The third lamp.")
    assert corpus.add(tmp_path / "one").added == 2
    assert corpus.add(tmp_path / "two").added == 1
    folder = tmp_path.name
    assert _ids(corpus) == sorted(["a.txt", "two/a.txt", f"{folder}/two/a.txt"])


def test_files_have_the_path_as_given(
    corpus: Corpus, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pages)
    corpus.add("./lamps/rock.txt")
    corpus.add(pages / "lamps" / "lens.md")
    monkeypatch.chdir(pages / "lamps")
    corpus.add("../bread.txt")
    assert _ids(corpus) == ["bread.txt", "lamps/rock.txt", "lens.md"]
    assert corpus.add(pages).unchanged == 3  # and they keep these ids
    assert _ids(corpus) == ["bread.txt", "lamps/rock.txt", "lens.md"]


def test_a_file_in_a_known_folder_has_the_id_of_that_folder(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    write(pages / "lamps" / "wick.txt", "A wick of cotton.")
    assert corpus.add(pages / "lamps" / "wick.txt").added == 1
    assert corpus.add(pages / "lamps").unchanged == 3
    assert corpus.add(pages).unchanged == 4
    assert "lamps/wick.txt" in _ids(corpus)


def test_a_file_does_not_replace_a_text_of_the_same_id(corpus: Corpus, pages: Path) -> None:
    corpus.add({"bread.txt": "A text about bread."})
    corpus.add(pages)
    assert _ids(corpus) == ["bread.txt", "lamps/lens.md", "lamps/rock.txt", "pages/bread.txt"]


def test_files_are_removed_by_id_and_by_path(corpus: Corpus, pages: Path) -> None:
    corpus.add(pages)
    assert corpus.remove("lamps/rock.txt") == ["lamps/rock.txt"]
    assert corpus.remove(pages / "bread.txt") == ["bread.txt"]
    assert corpus.remove(pages / "lamps") == ["lamps/lens.md"]


def _old_index(folder: Path, pages: Path) -> None:
    """An index of the version before, in which ids were absolute paths."""
    with Corpus.open(folder.with_name("new"), ranker=None) as corpus:
        corpus.add(pages)
    store_a_row_per_sentence(folder.with_name("new") / STORE_NAME)
    folder.mkdir()
    old = sqlite3.connect(folder / STORE_NAME, isolation_level=None)
    migrate(old, MIGRATIONS[:LAST_WITH_ABSOLUTE_IDS])
    old.execute("ATTACH ? AS new", (str(folder.with_name("new") / STORE_NAME),))
    for table in ("documents", "sentences", "headings"):
        columns = ", ".join(row[1] for row in old.execute(f"PRAGMA main.table_info({table})"))
        old.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}")
    old.execute(
        "UPDATE documents SET name = (SELECT path FROM new.documents n WHERE n.id = documents.id)"
    )
    old.close()
    shutil.rmtree(folder.with_name("new"))


def test_an_index_with_absolute_ids_keeps_them(tmp_path: Path, pages: Path) -> None:
    folder = tmp_path / "index"
    _old_index(folder, pages)
    before = sorted(str(path) for path in pages.rglob("*.*"))
    with Corpus.open(folder, ranker=None, must_exist=True) as corpus:
        assert _ids(corpus) == before
        assert corpus.add(pages).unchanged == 3
        assert _ids(corpus) == before
        assert corpus.ask("Why does dough rise?").best is not None
        (pages / "bread.txt").unlink()
        write(pages / "salt.txt", "Salt slows the yeast.")
        report = corpus.add(pages)
        assert (report.added, report.removed, report.unchanged) == (1, 1, 2)
        assert _ids(corpus) == [*before[1:], "salt.txt"]
        assert len(corpus.remove(pages)) == 3


@pytest.mark.parametrize("name", ["a", "notes/a b.txt", "caf\u00e9 \U0001f600\u200d", "a\u00a0b"])
def test_ordinary_ids_are_allowed(name: str) -> None:
    assert id_problem(name) is None
