from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askline.cli.answer_output import print_answers
from askline.cli.output import display_width
from askline.corpus import Answer, AnswerPhrase, AnswerPlace, Answers, Corpus
from askline.engine import graph_cache

from ..corpus.connectors.engine import Engine
from .conftest import Run

ROCK = "The rock is far out.\nIts first lighthouse was lit in 1698. A storm took it in 1703.\n"
QUESTION = "When was the first lighthouse lit?"


@pytest.fixture(autouse=True)
def notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Two files in the current folder, a minute old, and an own cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    graphs = tmp_path_factory.getbasetemp() / "graphs"  # 50 MB, once for all tests
    monkeypatch.setattr(graph_cache, "graph_cache_root", lambda: graphs)
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in {"rock.txt": ROCK, "bread.txt": "Yeast makes dough rise.\n"}.items():
        (folder / name).write_text(text, encoding="utf-8")
        os.utime(folder / name, (time.time() - 60, time.time() - 60))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.slow
def test_ask_shows_the_answer_with_its_neighbors_and_place(run: Run) -> None:
    result = run("ask", QUESTION, "notes")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:3] == [
        "  The rock is far out.",
        "> Its first lighthouse was lit in 1698.",
        "  A storm took it in 1703.",
    ]
    assert "  “1698” · notes/rock.txt:2 · sure (" in result.stdout
    assert re.fullmatch(
        r"\d answers? in \d+\.\d\d s from 4 sentences(, after \d+\.\d s to load)?\n", result.stderr
    )


@pytest.mark.slow
def test_one_sentence_is_counted_in_the_singular(run: Run, notes: Path) -> None:
    (notes / "one.txt").write_text("The first lighthouse was lit in 1698.\n", encoding="utf-8")
    assert " s from 1 sentence" in run("ask", QUESTION, "notes/one.txt").stderr
    assert " s from 1 sentences" not in run("ask", QUESTION, "notes/one.txt").stderr


@pytest.mark.slow
def test_ask_json_has_offsets_in_the_file(run: Run, notes: Path) -> None:
    record = json.loads(run("ask", QUESTION, "notes", "--json", "--top", "2").stdout)
    best = record["answers"][0]
    assert ROCK[best["start"] : best["end"]] == best["text"]
    assert (best["document"], best["path"]) == ("rock.txt", str(Path("notes", "rock.txt")))
    assert (len(record["answers"]), record["problems"]) == (2, [])
    assert record["stages"][0]["ranker"] == "passages % 100"


def test_ask_explain_lists_the_stages(run: Run) -> None:
    lines = run("ask", QUESTION, "notes", "--ranker", "wo % 2 >> bm25", "--explain").stdout
    assert [line.split()[0] for line in lines.splitlines()[-4:]] == [
        "stage",
        "passages",
        "wo",
        "bm25",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["-"], []], ids=["named", "alone"])
def test_ask_reads_standard_input(run: Run, arguments: list[str]) -> None:
    result = run("ask", QUESTION, *arguments, stdin=ROCK)
    assert result.exit_code == 0
    assert "  “1698” · standard input:2 · sure (" in result.stdout


@pytest.mark.slow
def test_ask_uses_the_cache(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("ask", QUESTION, "notes")
    # Calling it would fail.
    monkeypatch.setattr("askline.text.readers.isolation.ReaderPool.submit_prepared", None)
    again = run("ask", QUESTION, "notes")
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    assert len(list((tmp_path / "cache").rglob("store.sqlite"))) == 1


@pytest.mark.slow
def test_ask_drops_deleted_files_from_the_cache(run: Run, notes: Path) -> None:
    run("ask", QUESTION, "notes")
    (notes / "rock.txt").unlink()
    assert run("ask", QUESTION, "notes").exit_code == 4


@pytest.mark.slow
def test_ask_no_cache_writes_no_cache(run: Run, tmp_path: Path) -> None:
    assert run("ask", QUESTION, "notes", "--no-cache").exit_code == 0
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False])
def test_graphs_are_kept_unless_there_is_no_cache(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, keep: bool
) -> None:
    monkeypatch.setattr(graph_cache, "graph_cache_root", lambda: tmp_path / "graphs")
    result = run("ask", QUESTION, "notes", *(() if keep else ("--no-cache",)))
    assert result.exit_code == 0
    for thread in threading.enumerate():
        if thread.name == "askline-load":
            thread.join()
    assert (tmp_path / "graphs").exists() == keep
    if keep:
        assert run("ask", QUESTION, "notes").stdout == result.stdout  # from the files


@pytest.mark.slow
def test_ask_works_without_a_usable_cache_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder", encoding="utf-8")
    result = run("ask", QUESTION, "notes")
    assert result.exit_code == 0
    assert "The cache cannot be used: " in result.stderr


@pytest.mark.slow
def test_ask_reports_that_no_answer_was_found(run: Run) -> None:
    result = run("ask", "Zeppelins?", "notes")
    assert result.exit_code == 4
    assert result.stdout.startswith("No answer found")
    record = json.loads(run("ask", "Zeppelins?", "notes", "--json").stdout)
    assert record["answers"] == []


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["nowhere"], "Error: No file or folder nowhere. Check the path.\n"),
        (["empty"], "No text was found in empty. Name files, or folders with txt"),
        (["empty", "nowhere"], "No text was found in empty, nowhere."),
        (["nowhere", "none"], "Error: No file or folder nowhere, none. Check the paths.\n"),
        (["-"], "No text was found in standard input."),
    ],
    ids=["missing", "empty", "both", "two missing", "standard input"],
)
def test_ask_without_any_text_is_an_error(
    run: Run, tmp_path: Path, paths: list[str], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    result = run("ask", QUESTION, *paths)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (
            ["When", "was", "it", "lit?", "notes"],
            "Put the question in quotation marks: askline ask 'When was it lit?' notes",
        ),
        (["When", "was"], "Put a question of several words in quotation marks."),
        (["notes", QUESTION], f"The question comes first: askline ask '{QUESTION}' notes"),
    ],
    ids=["without quotation marks", "without a file", "question last"],
)
def test_ask_explains_where_the_question_goes(run: Run, arguments: list[str], hint: str) -> None:
    result = run("ask", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert hint in " ".join(result.stderr.split())


def test_ask_counts_what_was_not_read(run: Run, notes: Path) -> None:
    (notes / "a.png").write_bytes(b"\x89PNG")
    (notes / "faq.csv").write_text("Question,Answer\nWho lit it?,Winstanley lit the lamp.\n")
    options = ("--ranker", "bm25", "--no-cache")
    result = run("ask", "Who lit the lamp?", "notes", *options)
    assert "Not read: 1 binary data (.png 1)." in result.stderr
    assert "Winstanley lit the lamp." in result.stdout
    record = json.loads(run("ask", "Who lit the lamp?", "notes", *options, "--json").stdout)
    assert record["answers"][0]["heading"] == "Who lit it?"
    assert [(each["kind"], each["count"]) for each in record["not_read"]] == [(".png", 1)]
    nothing = run("ask", "Who?", "notes", *options, "--include", "*.png")
    assert nothing.exit_code == 2
    assert "No text was found in notes. Found: 3 left out by options (" in nothing.stderr
    assert ".txt 2, .csv 1), 1 binary data (.png 1). Name files" in nothing.stderr


def test_ask_reads_other_files_with_other_options(run: Run, notes: Path) -> None:
    (notes / "staff.csv").write_text("name,about\nAnn,She keeps the lamp.\n")
    question = ("ask", "Who keeps the lamp?", "notes", "--ranker", "bm25")
    assert "Ann | She keeps the lamp." in run(*question).stdout  # the row of a table
    column = run(*question, "--column", "about").stdout
    assert "She keeps the lamp." in column
    assert "Ann" not in column
    assert "She keeps the lamp." not in run(*question, "--exclude", "*.csv").stdout


def test_ask_finds_no_answer_in_an_empty_index(run: Run) -> None:
    with Corpus.open("index"):
        pass
    assert run("ask", QUESTION, "--index", "index").exit_code == 4


@pytest.mark.slow
def test_ask_separates_answers_below_the_threshold(run: Run) -> None:
    lines = run("ask", QUESTION, "notes").stdout.splitlines()
    titles = [re.fullmatch(r"Below the threshold of [\d.]+%", line) is not None for line in lines]
    below = lines[titles.index(True) + 1 :]
    assert below
    assert all(re.search(r" · <?\d+%\]$", line) for line in below)
    strict = run("ask", QUESTION, "notes", "--threshold", "1")
    assert strict.exit_code == 4
    assert strict.stdout.startswith("No answer found. The closest sentence:\n")
    assert "· doubtful (" in strict.stdout
    assert "Below" not in strict.stdout


@pytest.mark.slow
def test_ask_always_shows_an_answer(run: Run) -> None:
    question = "Which rock band sang of a storm in Lima?"
    result = run("ask", question, "notes", "--always", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["answered"] is True
    lines = run("ask", question, "notes", "--always").stdout.splitlines()
    assert any(line.startswith("> ") for line in lines)
    assert any("· doubtful (" in line for line in lines)


@pytest.mark.slow
def test_ask_context_is_the_number_of_neighbors(run: Run) -> None:
    none = run("ask", QUESTION, "notes", "--context", "0", "--top", "1").stdout.splitlines()
    assert none[0] == "> Its first lighthouse was lit in 1698."
    assert none[1].startswith("  “1698” · ")
    assert "must not be negative" in run("ask", QUESTION, "notes", "--context", "-1").stderr


@pytest.mark.slow
def test_colors_follow_option_and_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = ("ask", QUESTION, "notes")
    plain, colored = run(*asking).stdout, run(*asking, "--color", "always").stdout
    assert "\x1b[" not in plain
    assert "\x1b[32m\x1b[1m1698\x1b[0m" in colored
    assert "> " not in colored
    assert run("--color", "always", *asking).stdout == colored
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(*asking).stdout == colored
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(*asking).stdout == plain
    assert run(*asking, "--color", "always").stdout == colored


@pytest.mark.slow
def test_places_are_links_where_the_terminal_supports_them(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    shown = run("ask", QUESTION, "notes").stdout
    url = f"file://{socket.gethostname()}{notes / 'rock.txt'}#2"
    assert f"\x1b]8;;{url}\x1b\\notes/rock.txt:2\x1b]8;;\x1b\\" in shown


@pytest.mark.slow
def test_ask_answers_each_line_of_a_pipe(run: Run) -> None:
    questions = f"{QUESTION}\n\nWhat makes dough rise?\n"
    result = run("ask", "notes", "--top", "1", stdin=questions)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == QUESTION
    assert "> Its first lighthouse was lit in 1698." in lines
    assert lines[lines.index("What makes dough rise?") + 1] == "> Yeast makes dough rise."
    records = run("ask", "notes", "--json", stdin=questions + "Zeppelins?\n")
    assert records.exit_code == 4
    answered = [json.loads(line)["answered"] for line in records.stdout.splitlines()]
    assert answered == [True, True, False]


def test_ask_without_a_question_needs_a_source(run: Run) -> None:
    result = run("ask", stdin=QUESTION)
    assert result.exit_code == 2
    assert "Give PATHs to read, --index DIR or --retriever URL, or set `index`" in " ".join(
        result.stderr.split()
    )
    result = run("ask", "-", stdin=QUESTION)
    assert result.exit_code == 2
    assert "PATH must not be -" in result.stderr


@pytest.mark.parametrize("path", ["missing.txt", "notes/missing", "missing.pdf"])
def test_a_path_that_does_not_exist_is_not_a_question(run: Run, path: str) -> None:
    result = run("ask", path, stdin=QUESTION)
    assert result.exit_code == 2
    assert result.stderr == f"Error: No file or folder {path}. Check the path.\n"


@pytest.mark.slow
def test_ask_answers_when_some_files_cannot_be_read(run: Run, notes: Path) -> None:
    (notes / "broken.pdf").write_bytes(b"\x00\x01\x02\x03")
    result = run("ask", QUESTION, "notes", "missing.txt")
    assert result.exit_code == 3
    assert "Its first lighthouse was lit in 1698." in result.stdout
    assert result.stderr.splitlines()[0] == "Could not read (2):"
    assert "missing.txt: There is no such file." in result.stderr


@pytest.mark.slow
def test_ask_shows_few_unreadable_files_beside_an_answer(run: Run, notes: Path) -> None:
    for number in range(5):
        (notes / f"broken{number}.pdf").write_bytes(b"\x00\x01\x02\x03")
    result = run("ask", QUESTION, "notes")
    assert result.stderr.count("broken") == 3
    assert "  … and 2 more.\n" in result.stderr
    assert len(json.loads(run("ask", QUESTION, "notes", "--json").stdout)["problems"]) == 5


@pytest.mark.slow
def test_ask_searches_an_index(run: Run, tmp_path: Path) -> None:
    with Corpus.open("index") as corpus:
        corpus.add("notes")
    assert run("ask", QUESTION, "--index", "index").exit_code == 0
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("second", [["--index", "index"], ["--retriever", "opensearch://h/i"]])
def test_ask_refuses_two_sources(run: Run, second: list[str]) -> None:
    result = run("ask", QUESTION, "notes", *second)
    assert result.exit_code == 2
    assert "Give either PATHs to read, --index DIR or --retriever URL." in result.stderr


@pytest.mark.slow
def test_ask_searches_a_server(run: Run) -> None:
    with Engine({"notes": {"rock": {"body": ROCK}}}) as engine:
        url = f"opensearch://ann:sesame@localhost:{engine.port}/notes"
        result = run("ask", QUESTION, "--retriever", url, "--explain")
        record = json.loads(run("ask", QUESTION, "--retriever", url, "--json").stdout)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:3] == [
        "  The rock is far out.",
        "> Its first lighthouse was lit in 1698.",
        "  A storm took it in 1703.",
    ]
    assert "rock:2 · sure (" in result.stdout
    assert "opensearch/notes % 100" in result.stdout
    assert "sesame" not in result.output
    best = record["answers"][0]
    assert (best["document"], ROCK[best["start"] : best["end"]]) == ("rock", best["text"])


def test_ask_names_an_unreachable_server(run: Run) -> None:
    result = run("ask", QUESTION, "--retriever", "opensearch://ann:sesame@localhost:9/notes")
    assert result.exit_code == 1
    assert "opensearch://localhost:9/notes: It cannot be reached" in result.stderr
    assert "sesame" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--retriever", "notes"], "No kind of server ''. Known: elasticsearch, opensearch"),
        (["--retriever", "opensearch://h/i", "--encode", "json:lods"], "must be MODULE:FUNCTION"),
        (
            ["--retriever", "opensearch://h/i", "--encode", "json:loads"],
            "only for a PostgreSQL table",
        ),
        (["notes", "--encode", "json:loads"], "--encode needs --retriever URL"),
        (
            ["--retriever", "opensearch://h/i", "--phrases"],
            "--phrases and --nearest cannot be used with --retriever",
        ),
        (["notes", "--nearest", "--ranker", "bm25"], "--nearest uses no ranker"),
    ],
)
def test_ask_refuses_options_that_do_not_fit(run: Run, arguments: list[str], message: str) -> None:
    result = run("ask", QUESTION, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_ask_names_a_missing_index(run: Run) -> None:
    result = run("ask", QUESTION, "--index", "nowhere")
    assert result.exit_code == 1
    assert "No index in nowhere. Create one: askline index" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "  ", "notes"], "must not be empty"),
        (["ask", "Who?", "notes", "--ranker", "jacard"], "Did you mean 'jaccard'?"),
    ],
    ids=["blank question", "unknown ranker"],
)
def test_ask_refuses_bad_input(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.slow
def test_ask_clips_a_very_long_sentence(run: Run) -> None:
    result = run("ask", "lamp", "-", stdin="The lamp " + "burns " * 50_000)
    assert max(map(len, result.stdout.splitlines())) < 700


@pytest.mark.slow
def test_ask_json_has_the_phrase(run: Run) -> None:
    record = json.loads(run("ask", QUESTION, "notes", "--json").stdout)
    best = record["answers"][0]
    phrase = best["phrase"]
    assert (record["answered"], phrase["text"]) == (True, "1698")
    assert best["text"][phrase["start"] : phrase["end"]] == "1698"


@pytest.mark.slow
def test_ask_shows_the_closest_sentence_when_none_answers(run: Run) -> None:
    result = run("ask", "Which rock band sang of a storm in Lima?", "notes")
    assert result.exit_code == 4
    assert result.stdout.startswith("No answer found. The closest sentence:\n")
    assert "· doubtful (" in result.stdout


def test_ask_shows_the_score_of_an_uncalibrated_ranker(run: Run) -> None:
    result = run("ask", QUESTION, "notes", "--ranker", "bm25")
    assert "notes/rock.txt:2 · score " in result.stdout


def test_a_phrase_far_inside_a_long_sentence_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "a list, " * 200 + "the duck Gustav and " + "so on, " * 200
    at = text.index("Gustav")
    best = Answer(
        *(text, 1.0, 1, 0.9, "a.txt", "", 0, len(text), "line", 1, "", "x " * 500 + "end.", ""),
        phrase=AnswerPhrase("Gustav", at, at + 6),
    )
    print_answers(Answers("Which duck?", (best,), (), 0.1, 0.5), explain=False)
    before, shown, place = capsys.readouterr().out.splitlines()
    assert before.startswith("  … x x")
    assert before.endswith(" end.")
    assert shown.startswith("> … a list, a list,")
    assert "the duck Gustav and so on" in shown
    assert max(len(before), len(shown)) < 620
    assert place == "  “Gustav” · a.txt:1 · sure (90%)"


@pytest.mark.slow
def test_control_characters_of_a_file_are_not_printed(run: Run) -> None:
    result = run("ask", "lamp", "-", stdin="The lamp \x1b]0;mine\x07 burns. " + "It is old. " * 20)
    assert "The lamp ]0;mine burns." in result.stdout
    assert "\x1b" not in result.stdout


def _answer(text: str, probability: float | None, **changes: Any) -> Answer:
    best = Answer(
        text, 1.0, 1, probability, "a.txt", "", 0, len(text), "line", 1, "", "Before.", "After."
    )
    return replace(best, **changes)


@pytest.mark.parametrize(
    ("probability", "threshold", "shown"),
    [
        (0.95, 0.4, "sure (95%)"),
        (0.899, 0.4, "likely (89%)"),
        (0.69, 0.4, "perhaps (69%)"),
        (0.35, 0.3, "perhaps (35%)"),
        (0.75, 0.8, "doubtful (75%)"),
        (0.499, 0.5, "doubtful (49%)"),
        (0.004, 0.5, "doubtful (<1%)"),
        (0.3, 0.0, "doubtful (30%)"),
        (0.999, 0.5, "sure (99%)"),
    ],
)
def test_words_agree_with_the_threshold(
    capsys: pytest.CaptureFixture[str], probability: float, threshold: float, shown: str
) -> None:
    answers = Answers("Which?", (_answer("It.", probability),), (), 0.1, threshold)
    print_answers(answers, explain=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"  a.txt:1 · {shown}"
    refused = probability < threshold
    assert (lines[0] == "No answer found. The closest sentence:") is refused
    assert ("> It." in lines) is not refused
    assert ("  Before." in lines) is not refused  # nothing tells it from a sentence that is refused


def test_an_answer_below_the_threshold_is_never_among_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = [_answer(f"{at}.", at / 10, number=at) for at in (9, 6, 4, 1)]
    print_answers(Answers("Which?", tuple(shown), (), 0.1, 0.5), explain=False)
    assert capsys.readouterr().out.splitlines()[4:] == [
        "Next best",
        "  6.  [a.txt:6 · 60%]",
        "Below the threshold of 50%",
        "  4.  [a.txt:4 · 40%]",
        "  1.  [a.txt:1 · 10%]",
    ]


def test_heading_path_lead_in_and_copies_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    copy = AnswerPlace("b.txt", "", 0, 3, "line", 7, "", ())
    best = _answer(
        "Tea.",
        0.9,
        headings=("Menu", "Drinks"),
        lead_in="We serve:",
        before="Milk.",
        also_at=(copy, copy),
    )
    print_answers(Answers("Which?", (best,), (), 0.1, 0.5), explain=False)
    assert capsys.readouterr().out.splitlines() == [
        "  We serve: … Milk.",
        "> Tea.",
        "  After.",
        "  a.txt:1 · Menu › Drinks · sure (90%) · also b.txt:7 and 1 more",
    ]


def test_a_terminal_of_80_columns_gets_hanging_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")  # a terminal without color
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    wide = "東京タワーは赤い。" * 20
    shown = (_answer(wide, 0.9, number=1), _answer("One two three " * 20, 0.8, number=2))
    print_answers(Answers("Which?", shown, (), 0.1, 0.5), explain=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(display_width, lines)) <= 80
    assert [line[:2] for line in lines if "東京" in line] == ["> "] + ["  "] * (
        sum("東京" in line for line in lines) - 1
    )
    assert all(line.startswith("  ") for line in lines[lines.index("Next best") + 1 :])
    assert lines[-1].endswith("[a.txt:2 · 80%]")


def test_code_beside_an_answer_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(f"    line {number}" for number in range(20))
    best = _answer(
        "Tea.", 0.9, before="    a = 1\n\n      b = 2\nThen this.", after=f"Run:\n{code}"
    )
    print_answers(Answers("Which?", (best,), (), 0.1, 0.5), explain=False)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "      a = 1",
        "",
        "        b = 2",
        "  Then this.",
        "> Tea.",
        "  Run:",
        *(f"      line {number}" for number in range(8)),
        "      …",
        "  a.txt:1 · sure (90%)",
    ]
