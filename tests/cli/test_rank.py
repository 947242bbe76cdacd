from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run

LINES = "Emma is a novel.\n\nJane Austen wrote Emma.\n"


def test_rank_shows_the_best_line_first(run: Run) -> None:
    result = run("rank", "Who wrote Emma?", "--ranker", "wo+rr", stdin=LINES)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "1  2.0000  Jane Austen wrote Emma.",
        "2  1.0000  Emma is a novel.",
    ]


def test_rank_reads_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text(LINES, encoding="utf-8")
    result = run("rank", "Who wrote Emma?", str(file), "--ranker", "wo+rr", "--top", "1")
    assert result.stdout == "1  2.0000  Jane Austen wrote Emma.\n"


def test_rank_json_has_hits_and_stages(run: Run) -> None:
    result = run("rank", "Who wrote Emma?", "--ranker", "wo+rr % 1 >> rr", "--json", stdin=LINES)
    record = json.loads(result.stdout)
    assert record["question"] == "Who wrote Emma?"
    assert record["hits"] == [
        {"index": 1, "score": 1.0, "stage": 1, "text": "Jane Austen wrote Emma."},
        {"index": 0, "score": 1.0, "stage": 0, "text": "Emma is a novel."},
    ]
    assert [(stage["ranker"], stage["entered"], stage["kept"]) for stage in record["stages"]] == [
        ("wo+rr % 1", 2, 1),
        ("rr", 1, 1),
    ]


def test_rank_explain_shows_the_funnel(run: Run) -> None:
    spec = "wo+rr % 1 >> rr"
    lines = run("rank", "?", "--ranker", spec, "--explain", stdin=LINES).stdout.splitlines()
    assert lines[2].split() == ["stage", "in", "kept", "ms"]
    assert lines[3].split()[:5] == ["wo+rr", "%", "1", "2", "1"]


def test_rank_requests_answers_line_by_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_text(
        '{"question": "Who wrote Emma?", "candidates": ["Emma.", "Austen wrote Emma."]}\n'
        '{"question": "When?", "candidates": ["", "When it rained."]}\n',
        encoding="utf-8",
    )
    result = run("rank", "--requests", str(file), "--ranker", "wo+rr", "--top", "1")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["hits"][0]["index"] for answer in answers] == [1, 1]


def test_rank_requests_reports_all_bad_lines_and_answers_none(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_text('{"question": "A?", "candidates": ["a"]}\n{}\nnot json\n', encoding="utf-8")
    result = run("rank", "--requests", str(file))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "requests.jsonl:2: " in result.stderr
    assert "requests.jsonl:3: Not JSON" in result.stderr


@pytest.mark.parametrize(
    "arguments", [["rank"], ["rank", "A question?", "--requests", "x.jsonl"]], ids=["none", "both"]
)
def test_rank_wants_one_source_of_questions(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Give either a QUESTION or --requests FILE." in result.stderr


@pytest.mark.parametrize("question", ["", "  "], ids=["empty", "blank"])
def test_rank_wants_a_question_with_words(run: Run, question: str) -> None:
    result = run("rank", question, stdin="Emma is a novel.\n")
    assert result.exit_code == 2
    assert "The QUESTION has no words in it." in result.stderr


def test_rank_of_nothing_is_nothing(run: Run) -> None:
    result = run("rank", "Who?", "--json", stdin="")
    assert (result.exit_code, json.loads(result.stdout)["hits"]) == (0, [])


def test_rank_refuses_bytes_that_are_no_text(run: Run) -> None:
    result = run("rank", "Who?", stdin=b"good\nbad \xff\n")
    assert result.exit_code == 2
    assert ":2: Byte 0xff at offset 9 is not UTF-8" in result.stderr


def test_rank_names_a_missing_file(run: Run) -> None:
    result = run("rank", "Who?", "nowhere.txt")
    assert result.exit_code == 2
    assert "nowhere.txt" in result.stderr


def test_rank_suggests_the_ranker_that_was_meant(run: Run) -> None:
    result = run("rank", "Who?", "--ranker", "jacard", stdin=LINES)
    assert result.exit_code == 2
    assert "Did you mean 'jaccard'?" in result.stderr


DEADLINE = ["--ranker", "wo+rr % 1 >> rr", "--deadline-ms", "0.001"]


def test_rank_by_a_deadline_says_what_was_left_out(run: Run) -> None:
    result = run("rank", "Who wrote Emma?", *DEADLINE, stdin=LINES)
    assert result.stdout.splitlines()[0] == "1  2.0000  Jane Austen wrote Emma."
    assert "Time was up: 1 judgements were left out." in result.stderr


def test_rank_by_a_deadline_explains_at_which_stage(run: Run) -> None:
    lines = run("rank", "Who?", *DEADLINE, "--explain", stdin=LINES).stdout.splitlines()
    assert lines[2].split() == ["stage", "in", "kept", "ms", "skipped"]
    assert lines[4].split() == ["rr", "1", "1", "0.00", "1"]


def test_rank_by_a_deadline_tells_json_what_was_skipped(run: Run) -> None:
    record = json.loads(run("rank", "Who?", *DEADLINE, "--json", stdin=LINES).stdout)
    assert (record["skipped"], record["cost"]) == (1, None)


def test_rank_refuses_a_deadline_in_the_past(run: Run) -> None:
    result = run("rank", "Who?", "--deadline-ms", "0", stdin=LINES)
    assert result.exit_code == 2
    assert "x>0" in result.stderr
