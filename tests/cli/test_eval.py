from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from askline.cli import cli

from .conftest import Run


def test_eval_json_is_one_object(run: Run, questions: Path) -> None:
    result = run("eval", "wo+rr", "--on", str(questions), "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert {key: record[key] for key in ("MAP", "MRR", "P@1", "nDCG@10")} == {
        "MAP": 100.0,
        "MRR": 100.0,
        "P@1": 100.0,
        "nDCG@10": 100.0,
    }
    assert (record["questions"], record["candidates"], record["ranker"]) == (3, 6, "wo+rr")
    assert set(record["ms_per_question"]) == {"p50", "p95"}


def test_eval_filter_all_counts_the_unanswerable_as_zero(run: Run, questions: Path) -> None:
    result = run("eval", "wo+rr", "--on", str(questions), "--filter", "all", "--json")
    assert json.loads(result.stdout)["MAP"] == 75.0


def test_eval_prints_a_table_within_80_columns(run: Run, questions: Path) -> None:
    result = run("eval", "rr", "wo+rr", "--on", str(questions))
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[-2][:3] == ["rr", "83.33", "83.33"]
    assert rows[-1][:3] == ["wo+rr", "100.00", "100.00"]


def test_eval_pads_with_other_questions(run: Run, questions: Path) -> None:
    result = run("eval", "wo+rr", "--on", str(questions), "--pad-to", "5", "--json")
    assert json.loads(result.stdout)["candidates"] == 15


def test_eval_takes_other_measures(run: Run, questions: Path) -> None:
    arguments = ("--on", str(questions), "--measures", "R@1,Success@2", "--json")
    record = json.loads(run("eval", "rr", *arguments).stdout)
    assert record["R@1"] == pytest.approx(200 / 3)
    assert record["Success@2"] == 100.0


def test_eval_writes_a_run_and_qrels(run: Run, questions: Path, tmp_path: Path) -> None:
    run_file, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run("eval", "rr", "--on", str(questions), "--run", str(run_file), "--qrels", str(qrels))
    assert len(run_file.read_text("utf-8").splitlines()) == 6
    assert len(qrels.read_text("utf-8").splitlines()) == 6


def test_compare_tells_the_difference(run: Run, questions: Path) -> None:
    result = run("compare", "wo+rr", "rr", "--on", str(questions), "--measures", "MAP", "--json")
    record = json.loads(result.stdout)
    assert record["difference"] == pytest.approx(100 / 6)
    assert (record["wins"], record["ties"], record["losses"]) == (1, 2, 0)


def test_compare_prints_a_table_within_80_columns(run: Run, questions: Path) -> None:
    result = run("compare", "wo+rr", "rr", "--on", str(questions))
    assert result.exit_code == 0, result.stderr
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert "+16.67" in result.stdout


def test_data_stats_counts(run: Run, questions: Path) -> None:
    record = json.loads(run("data", "stats", str(questions), "--json").stdout)
    assert (record["questions"], record["candidates"], record["answerable"]) == (4, 8, 3)
    table = run("data", "stats", str(questions)).stdout
    assert all(len(line) <= 80 for line in table.splitlines())


def test_data_export_writes_what_reads_back(run: Run, questions: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    assert run("data", "export", str(questions), "--out", str(copy)).exit_code == 0
    assert run("data", "stats", str(copy), "--json").stdout.count('"answerable": 3') == 1


def test_data_list_and_rankers_print_names(run: Run) -> None:
    assert "wikiqa:test" in run("data", "list").stdout.splitlines()
    assert "bm25" in run("rankers").stdout.splitlines()


BAD_ROWS = """\
{"question": "Fine?", "candidates": ["a"], "labels": [1]}
{"question": "No labels?", "candidates": ["a"]}
{"question": "Wrong label?", "candidates": ["a"], "labels": [2]}
{"question": "Empty candidate?", "candidates": [""], "labels": [1]}
{"question": "None?", "candidates": [], "labels": []}
{"question": "Not JSON
"""


def test_every_bad_row_is_reported_with_its_line(run: Run, tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.jsonl", tmp_path / "out.jsonl"
    bad.write_text(BAD_ROWS, encoding="utf-8")
    for command in (
        ["eval", "rr", "--on", str(bad)],
        ["data", "export", str(bad), "--out", str(out)],
    ):
        result = run(*command)
        assert result.exit_code == 2
        assert result.stdout == ""
        for line in (2, 3, 4, 5, 6):
            assert f"bad.jsonl:{line}: " in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "rr", "--on", "wikqa:test"], "Did you mean 'wikiqa"),
        (["eval", "rr", "--on", "wikiqa:tset"], "wikiqa:test"),
        (["eval", "rr", "--on", "wikiqa:test"], "ASKLINE_DATA"),
        (["eval", "cosnet", "--on", "wikiqa:test"], "No ranker 'cosnet'"),
        (["eval", "rr", "--on", "wikiqa:test", "--measures", "MPA"], "No measure 'MPA'"),
        (["eval", "rr", "--on", "wikiqa:test", "--pad-to", "0"], "0 is not in the range"),
        (["eval", "rr", "jaccard", "--on", "x.jsonl", "--run", "r"], "name one SPEC"),
    ],
    ids=["set", "split", "no data folder", "ranker", "measure", "padding", "two runs"],
)
def test_a_wrong_word_gets_one_clear_message(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(run: Run, shell: str) -> None:
    assert "_ASKLINE_COMPLETE" in run("completion", shell).stdout


def test_demo_answers_with_its_source(run: Run) -> None:
    result = run("demo")
    assert result.exit_code == 0
    assert "  It measures 9,289 kilometres.\n" in result.stdout
    assert "  trans-siberian-railway.txt:3 · sure (" in result.stdout


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(*each, id=each[0]) for each in commands(cli, "askline")]
)
def test_every_command_and_option_is_explained(path: str, command: click.Command) -> None:
    assert command.help, f"{path} has no help"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.name} has no help"


def test_eval_by_a_deadline_names_it(run: Run, questions: Path) -> None:
    result = run("eval", "wo+rr % 1 >> rr", "--on", str(questions), "--deadline-ms", "5000")
    assert "wo+rr % 1 >> rr within 5000 ms" in result.stdout
