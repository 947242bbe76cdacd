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
        {
            "index": 1,
            "score": 1.0,
            "probability": None,
            "stage": 1,
            "text": "Jane Austen wrote Emma.",
        },
        {
            "index": 0,
            "score": 1.0,
            "probability": None,
            "stage": 0,
            "text": "Emma is a novel.",
        },
    ]
    assert [(stage["ranker"], stage["entered"], stage["kept"]) for stage in record["stages"]] == [
        ("wo+rr % 1", 2, 1),
        ("rr", 1, 1),
    ]


def test_rank_explain_lists_the_stages(run: Run) -> None:
    spec = "wo+rr % 1 >> rr"
    lines = run("rank", "?", "--ranker", spec, "--explain", stdin=LINES).stdout.splitlines()
    assert lines[2].split() == ["stage", "in", "kept", "ms"]
    assert lines[3].split()[:5] == ["wo+rr", "%", "1", "2", "1"]


def test_rank_requests_prints_one_object_per_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_text(
        '{"question": "Who wrote Emma?", "candidates": ["Emma.", "Austen wrote Emma."]}\n'
        '{"question": "When?", "candidates": ["", "When it rained."]}\n',
        encoding="utf-8",
    )
    result = run("rank", "--requests", str(file), "--ranker", "wo+rr", "--top", "1")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["hits"][0]["index"] for answer in answers] == [1, 1]


def test_rank_requests_reports_all_bad_lines_and_ranks_none(run: Run, tmp_path: Path) -> None:
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
def test_rank_needs_a_question_or_requests(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Give either a QUESTION or --requests FILE." in result.stderr


@pytest.mark.parametrize("question", ["", "  "], ids=["empty", "blank"])
def test_rank_refuses_an_empty_question(run: Run, question: str) -> None:
    result = run("rank", question, stdin="Emma is a novel.\n")
    assert result.exit_code == 2
    assert "QUESTION must not be empty." in result.stderr


def test_rank_of_no_candidates_is_empty(run: Run) -> None:
    result = run("rank", "Who?", "--json", stdin="")
    assert (result.exit_code, json.loads(result.stdout)["hits"]) == (0, [])


def test_rank_refuses_bytes_that_are_not_utf_8(run: Run) -> None:
    result = run("rank", "Who?", stdin=b"good\nbad \xff\n")
    assert result.exit_code == 2
    assert ":2: Byte 0xff at offset 9 is not UTF-8" in result.stderr


def test_rank_names_a_missing_file(run: Run) -> None:
    result = run("rank", "Who?", "nowhere.txt")
    assert result.exit_code == 2
    assert "nowhere.txt" in result.stderr


def test_rank_suggests_a_similar_ranker_name(run: Run) -> None:
    result = run("rank", "Who?", "--ranker", "jacard", stdin=LINES)
    assert result.exit_code == 2
    assert "Did you mean 'jaccard'?" in result.stderr


DEADLINE = ["--ranker", "wo+rr % 1 >> rr", "--deadline-ms", "0.001"]


def test_rank_reports_candidates_skipped_at_the_deadline(run: Run) -> None:
    result = run("rank", "Who wrote Emma?", *DEADLINE, stdin=LINES)
    assert result.stdout.splitlines()[0] == "1  2.0000  Jane Austen wrote Emma."
    assert "The deadline passed before 1 scores were computed." in result.stderr


def test_rank_explain_shows_the_stage_that_skipped(run: Run) -> None:
    lines = run("rank", "Who?", *DEADLINE, "--explain", stdin=LINES).stdout.splitlines()
    assert lines[2].split() == ["stage", "in", "kept", "ms", "skipped"]
    assert lines[4].split() == ["rr", "1", "1", "0.00", "1"]


def test_rank_json_counts_skipped_candidates(run: Run) -> None:
    record = json.loads(run("rank", "Who?", *DEADLINE, "--json", stdin=LINES).stdout)
    assert (record["skipped"], record["cost"]) == (1, None)


def test_rank_refuses_a_deadline_of_zero(run: Run) -> None:
    result = run("rank", "Who?", "--deadline-ms", "0", stdin=LINES)
    assert result.exit_code == 2
    assert "must be greater than 0, got 0." in result.stderr
