from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from askline.corpus import Corpus
from askline.corpus.lock import writer_lock

from ..text.readers.samples import make_slow_pdf
from .conftest import Run


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "notes"
    folder.mkdir()
    _write(folder / "rock.txt", "The lamp was lit in 1698. It burns.")
    _write(folder / "bread.txt", "Yeast makes dough rise.")
    return folder


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}")  # so that a watcher sees the whole file
    draft.write_text(text, encoding="utf-8")
    os.utime(draft, (time.time() - 60, time.time() - 60))
    draft.replace(path)


def test_index_prints_counts(run: Run, notes: Path) -> None:
    first = run("index", "notes", "--out", "index")
    assert first.exit_code == 0
    assert first.stdout.startswith("2 added: 3 sentences in ")
    (notes / "bread.txt").unlink()
    again = run("index", "notes", "--out", "index")
    assert again.stdout.startswith("1 removed, 1 unchanged: 0 sentences in ")


def test_index_stops_reading_at_the_limits(run: Run, notes: Path) -> None:
    (notes / "slow.pdf").write_bytes(make_slow_pdf())
    limits = ("--read-seconds", "0.5", "--read-megabytes", "2000")
    result = run("index", "notes", "--out", "index", *limits)
    assert result.exit_code == 3
    assert result.stdout.startswith("2 added, 1 failed: 3 sentences in ")
    assert "slow.pdf: Reading took longer than 0.5 seconds. " in result.stderr


def test_index_follows_links_out_of_the_folder_only_on_request(run: Run, notes: Path) -> None:
    outside = notes.parent / "outside.txt"
    _write(outside, "The key is under the stone.")
    (notes / "key.txt").symlink_to(outside)
    result = run("index", "notes", "--out", "index")
    assert result.exit_code == 3
    assert "key.txt: It is a link to a place outside the given folders" in result.stderr
    result = run("index", "notes", "--out", "index", "--follow-links")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 added, 2 unchanged: ")


def test_index_json_is_the_report(run: Run) -> None:
    record = json.loads(run("index", "notes", "--out", "index", "--json").stdout)
    assert (record["added"], record["sentences"], record["problems"]) == (2, 3, [])


def test_index_reports_unreadable_files_and_indexes_the_others(run: Run, notes: Path) -> None:
    (notes / "image.txt").write_bytes(b"\x89PNG\x00\x01")
    result = run("index", "notes", "--out", "index")
    assert result.exit_code == 3
    assert result.stdout.startswith("2 added, 1 failed: 3 sentences")
    assert "image.txt: It contains an image and no text." in result.stderr
    assert run("index", "notes", "--out", "index").exit_code == 3  # the file is still there


def test_index_remove(run: Run, notes: Path) -> None:
    run("index", "notes", "--out", "index")
    result = run("index", "notes/bread.txt", "--out", "index", "--remove")
    assert (result.stdout, result.stderr) == ("bread.txt\n", "1 removed\n")
    assert run("index", "x", "--out", "nowhere", "--remove").exit_code == 1


def _damage(index: str, text: bytes) -> None:
    """Flip a bit of a text in the store."""
    store = Path(index, "store.sqlite")
    data = bytearray(store.read_bytes())
    data[data.index(text)] ^= 1
    store.write_bytes(data)


def test_index_verify_reads_damaged_files_again(run: Run) -> None:
    run("index", "notes", "--out", "index")
    assert run("index", "--verify", "--out", "index").stdout.startswith("2 checked, 0 damaged: ")
    _damage("index", b"Yeast makes")
    result = run("index", "--verify", "--out", "index")
    assert result.exit_code == 0
    assert result.stdout.startswith("2 checked, 1 damaged, 1 read again, 0 lost: ")


def test_index_verify_lists_lost_documents_and_adds_paths(run: Run, notes: Path) -> None:
    run("index", "notes", "--out", "index")
    (notes / "bread.txt").rename(notes / "loaf.txt")
    _damage("index", b"Yeast makes")
    result = run("index", "notes", "--verify", "--out", "index", "--json")
    verified, added = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 3
    assert (verified["lost"], added["added"], added["removed"]) == (["bread.txt"], 1, 1)


@pytest.mark.parametrize("arguments", [[], ["--watch", "--verify"], ["x", "--verify", "--remove"]])
def test_index_refuses_options_that_do_not_fit(run: Run, arguments: list[str]) -> None:
    assert run("index", *arguments, "--out", "index").exit_code == 2
    assert not Path("index").exists()


def test_index_names_the_process_that_is_writing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askline.corpus.storage._LOCK_TIMEOUT_SECONDS", 0.0)
    Corpus.open("index").close()
    with writer_lock(Path("index")):
        result = run("index", "notes", "--out", "index")
    assert result.exit_code == 1
    assert f"is being written by process {os.getpid()}" in result.stderr


def test_index_refuses_a_folder_that_is_not_an_index(run: Run) -> None:
    result = run("index", "notes", "--out", "notes")
    assert result.exit_code == 1
    assert "Choose an empty or new folder." in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_index_watch_follows_changes_until_interrupted(notes: Path) -> None:
    # Where the tests run in the background, SIGINT is ignored, and children would ignore it too.
    handle = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{handle}; from askline.cli import main; main()"
    arguments = ["index", "notes", "--out", "index", "--watch", "--every", "0.1"]
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.readline().startswith("2 added")
        _write(notes / "salt.txt", "Salt slows the yeast.")
        assert watcher.stdout.readline().startswith("1 added, 2 unchanged: 1 sentences")
        (notes / "salt.txt").unlink()
        assert watcher.stdout.readline().startswith("1 removed, 2 unchanged")
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(20) == 0


@pytest.fixture
def phrase_model(tmp_path: Path) -> Path:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    from ..phrases.models import make_folder

    return make_folder(tmp_path / "tiny")


@pytest.mark.slow
def test_index_keeps_phrases_up_to_date(run: Run, notes: Path, phrase_model: Path) -> None:
    run("index", "notes", "--out", "i")
    assert "phrases     none" in run("status", "i").stdout
    result = run("index", "notes", "--out", "i", "--phrase-model", str(phrase_model))
    assert result.exit_code == 0, result.output
    _write(notes / "sand.txt", "Sand is a planet.")
    run("index", "notes", "--out", "i")
    status = run("status", "i").stdout
    assert "up to date" in status.split("phrases")[1]
    asked = json.loads(run("ask", "what is sand ?", "--index", "i", "--nearest", "--json").stdout)
    assert all(answer["phrase"] for answer in asked["answers"])
    phrase = asked["answers"][0]["phrase"]["text"]
    assert f"“{phrase}” · " in run("ask", "what is sand ?", "--index", "i", "--nearest").stdout
    both = json.loads(run("ask", "what is sand ?", "--index", "i", "--phrases", "--json").stdout)
    assert both["stages"][0]["ranker"] == "(passages + phrases) % 100"


def test_index_of_missing_paths_creates_nothing(run: Run, notes: Path) -> None:
    result = run("index", "absent", "gone.txt", "--out", "i")
    assert result.exit_code == 2
    assert "No file or folder absent, gone.txt. Check the paths." in result.stderr
    assert not Path("i").exists()
    assert run("index", "absent", str(notes), "--out", "i").exit_code == 3  # one of them exists


def test_index_refuses_a_missing_phrase_model_before_reading(run: Run, notes: Path) -> None:
    assert notes.is_dir()
    result = run("index", "notes", "--out", "i", "--phrase-model", "nowhere")
    assert result.exit_code == 1
    assert "No model folder at nowhere" in result.stderr
    assert not Path("i").exists()


def test_index_counts_what_was_not_read(run: Run, notes: Path) -> None:
    for name in ("a.png", "b.png", "old.doc"):
        (notes / name).write_bytes(b"\x89")
    (notes / "data.unknown").write_bytes(b"\0\1\2")
    (notes / "empty.py").write_text("")
    (notes / ".gitignore").write_text("build/\n")
    (notes / "build").mkdir()
    result = run("index", "notes", "--out", "index")
    assert result.exit_code == 0
    assert result.stdout.startswith("2 added: 3 sentences in ")
    assert result.stderr.splitlines() == [
        "Not read (7):",
        "  3  binary data              .png 2, .unknown 1",
        "  1  no text                  .py 1",
        "  1  hidden                   no suffix 1",
        "  1  in .gitignore            folder 1",
        "  1  format without a reader  .doc 1",
    ]
    record = json.loads(run("index", "notes", "--out", "index", "--json").stdout)
    assert (record["unchanged"], record["skipped"], record["failed"]) == (2, 7, 0)
    assert [each["reason"] for each in record["not_read"]][:2] == ["binary", "binary"]


def test_index_fails_if_nothing_was_read(run: Run, notes: Path) -> None:
    (notes / "rock.txt").unlink()
    (notes / "bread.txt").unlink()
    (notes / "a.png").write_bytes(b"\x89PNG")
    result = run("index", "notes", "--out", "index")
    assert result.exit_code == 2
    assert "No file was read in notes. Found: 1 binary data (.png 1)." in result.stderr
    result = run("index", "notes", "--out", "index", "--exclude", "*.png")
    assert "Found: 1 left out by options (.png 1)." in result.stderr


def test_index_includes_and_excludes_files(run: Run, notes: Path) -> None:
    (notes / "a.md").write_text("A page.")
    result = run("index", "notes", "--out", "index", "--include", "*.txt", "--exclude", "bread.*")
    assert result.stdout.startswith("1 added: ")
    assert "2  left out by options  .md 1, .txt 1" in result.stderr
    again = run("index", "notes", "--out", "index", "--exclude", "*.txt")
    assert again.stdout.startswith("1 added, 1 removed: "), "what is excluded now is removed"
    (notes / ".gitignore").write_text("a.md\n")
    (notes / ".hidden.txt").write_text("A secret.")
    assert run("index", "notes", "--out", "index").stdout.startswith("2 added, 1 removed: ")
    assert run("index", "notes", "--out", "index", "--no-ignore").stdout.startswith("3 added, ")


def test_index_reads_the_columns_that_are_named(run: Run, notes: Path) -> None:
    (notes / "staff.csv").write_text("name,about,place\nAnn,She is old.,Rye\n")
    (notes / "numbers.csv").write_text("day,value\n1,2.5\n")
    result = run("index", "notes", "--out", "index")
    assert result.exit_code == 3
    assert "Found: 'day', 'value'. Name the one that holds the text" in result.stderr
    assert "(--column NAME)" in result.stderr
    (notes / "numbers.csv").unlink()
    assert run("index", "notes", "--out", "index").exit_code == 0
    result = run("index", "notes", "--out", "index", "--column", "about")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 changed, 2 unchanged: 1 sentences in ")
    both = run("index", "notes", "--out", "index", "--column", "about", "--column", "place")
    assert both.stdout.startswith("1 changed, 2 unchanged: 2 sentences in ")
    wrong = run("index", "notes", "--out", "index", "--column", "nothing")
    assert "No column 'nothing'. Found: 'name', 'about', 'place'." in wrong.stderr


@pytest.mark.slow
def test_shards_are_built_asked_and_missed(run: Run, notes: Path) -> None:
    built = run("index", "notes", "--shards", "2", "--processes", "2", "--out", "index")
    assert built.exit_code == 0, built.output
    assert built.stdout.startswith("2 added: 3 sentences in ")
    again = run("index", "notes", "--shards", "2", "--out", "index")
    assert again.stdout.startswith("2 unchanged: 0 sentences in ")
    assert "shards      2" in run("status", "index").stdout
    changed = run("index", "notes", "--out", "index")
    assert changed.exit_code != 0
    assert "is a sharded index" in changed.stderr
    question = ("When was the lamp lit?", "--ranker", "bm25", "--index", "index")
    assert "1698" in run("ask", *question).stdout
    with Corpus.open("index", ranker=None) as corpus:
        found = {part.store.counts()[0]: part.place for part in corpus._storage.parts}
    lost = Path(found[max(found)] or "")
    lost.rename("elsewhere")
    failed = run("ask", *question)
    assert failed.exit_code != 0
    assert f"1 of 2 shards of index cannot be read. {lost.name}: The folder is missing." in (
        failed.stderr
    )
    partial = run("ask", *question, "--allow-partial", "--json")
    assert [each["name"] for each in json.loads(partial.stdout)["missing_shards"]] == [lost.name]
    assert f"Not searched: {lost.name}." in run("ask", *question, "--allow-partial").stderr
    status = run("status", "index", "--allow-partial")
    assert f"Not searched: {lost.name}." in status.stdout


def test_options_of_shards_are_checked(run: Run, notes: Path) -> None:
    for options in (["--shards", "2", "--watch"], ["--processes", "2"], ["--shards", "0"]):
        assert run("index", "notes", *options, "--out", "index").exit_code == 2


def test_status_shows_counts_and_unreadable_files(run: Run, notes: Path) -> None:
    (notes / "image.txt").write_bytes(b"\x89PNG\x00\x01")
    run("index", "notes", "--out", "index")
    result = run("status", "index")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:2] == ["documents   2", "sentences   3"]
    assert "up to date" in result.stdout
    assert lines[-4] == "unreadable  1"
    assert "image.txt: It contains an image and no text." in lines[-3]
    assert lines[-2:] == ["Not read (1):", "  1  binary data  .txt 1"]
    record = json.loads(run("status", "index", "--json").stdout)
    assert (record["documents"], record["searchable"]) == (2, True)


def test_status_counts_what_was_not_read(run: Run, notes: Path) -> None:
    (notes / "a.png").write_bytes(b"\x89PNG")
    (notes / "b.png").write_bytes(b"\x89PNG")
    (notes / ".hidden").mkdir()
    (notes / "empty.md").write_text("")
    run("index", "notes", "--out", "index")
    assert run("status", "index").stdout.splitlines()[-4:] == [
        "Not read (4):",
        "  2  binary data  .png 2",
        "  1  no text      .md 1",
        "  1  hidden       folder 1",
    ]
    record = json.loads(run("status", "index", "--json").stdout)
    assert record["unreadable"] == []
    assert record["not_read"][0] == {
        "reason": "binary",
        "kind": ".png",
        "count": 2,
        "example": str(notes / "a.png"),
    }
    (notes / "a.png").unlink()
    (notes / "empty.md").write_text("Now it has text.")
    run("index", "notes", "--out", "index")
    assert "1  binary data  .png 1" in run("status", "index").stdout
    assert "no text" not in run("status", "index").stdout


def test_status_of_a_missing_index_is_an_error(run: Run) -> None:
    result = run("status", "nowhere")
    assert result.exit_code == 1
    assert "No index in nowhere." in result.stderr
