"""`askline rank --requests FILE.parquet --out FILE.parquet`, streamed and resumable."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from askline.errors import InputError
from askline.integrations.arrow import BatchRanker
from askline.integrations.parquet import ParquetRun

from .conftest import Run

ROWS = 3_000
RANKED = ["ranking", "relevance_scores", "best_text", "best_score"]


def write_requests(path: Path, rows: int, row_group_size: int = 700) -> pa.Table:
    table = pa.table(
        {
            "id": list(range(rows)),
            "question": [f"Who wrote book {row}?" for row in range(rows)],
            "candidates": [
                [f"Book {row} is a novel.", f"Person {row} wrote book {row}.", ""]
                for row in range(rows)
            ],
        }
    )
    pq.write_table(table, path, row_group_size=row_group_size)
    return table


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    path = tmp_path / "requests.parquet"
    write_requests(path, 150)
    return path


def test_rows_are_written_with_ranked_columns(run: Run, requests: Path, tmp_path: Path) -> None:
    out = tmp_path / "ranked.parquet"
    result = run("rank", "--requests", str(requests), "--out", str(out), "--ranker", "jaccard")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Wrote 150 rows" in result.stderr
    before, after = pq.read_table(requests), pq.read_table(out)
    assert after.column_names == [*before.column_names, *RANKED]
    assert after.select(before.column_names).equals(before)
    assert after["ranking"].to_pylist() == [[1, 0, 2]] * 150
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, requests.name]


def test_the_default_ranker_gives_the_order_of_the_jsonl_output(
    run: Run, requests: Path, tmp_path: Path
) -> None:
    write_requests(requests, 3)
    out = tmp_path / "ranked.parquet"
    assert run("rank", "--requests", str(requests), "--out", str(out)).exit_code == 0
    printed = run("rank", "--requests", str(requests))
    orders = [
        [hit["index"] for hit in json.loads(line)["hits"]] for line in printed.stdout.splitlines()
    ]
    assert pq.read_table(out)["ranking"].to_pylist() == orders


def test_other_columns_and_top(run: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = pa.table({"q": ["Who wrote Emma?", None], "texts": [["Emma.", "He wrote Emma."], []]})
    pq.write_table(table, source)
    names = ("--question-column", "q", "--candidates-column", "texts", "--ranker", "jaccard")
    files = ("--requests", str(source), "--out", str(out))
    assert run("rank", *files, *names, "--top", "1").exit_code == 0
    assert pq.read_table(out)["ranking"].to_pylist() == [[1], None]


def test_jsonl_takes_other_columns_too(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"q": "Who wrote Emma?", "texts": ["Emma.", "He wrote Emma."]}\n', "utf-8")
    names = ("--question-column", "q", "--candidates-column", "texts", "--ranker", "jaccard")
    result = run("rank", "--requests", str(source), *names)
    assert json.loads(result.stdout)["hits"][0]["index"] == 1


def test_a_file_without_rows_gives_a_file_without_rows(run: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    write_requests(source, 1)
    pq.write_table(pq.read_table(source).slice(1), source)
    assert run("rank", "--requests", str(source), "--out", str(out)).exit_code == 0
    assert pq.read_table(out).num_rows == 0
    assert pq.read_table(out).column_names[-4:] == RANKED


RUN = """
import sys
from pathlib import Path
from askline.integrations.arrow import BatchRanker
from askline.integrations.parquet import ParquetRun
ranker = BatchRanker("cosinet", documents="candidates")
ParquetRun(Path(sys.argv[1]), Path(sys.argv[2]), ranker, part_seconds=0.02).run()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_run_goes_on_and_every_row_is_there_once(tmp_path: Path) -> None:
    source, out, whole = (tmp_path / name for name in ("in.parquet", "out.parquet", "all.parquet"))
    write_requests(source, ROWS)
    command = [sys.executable, "-c", RUN, str(source)]
    parts = tmp_path / "out.parquet.parts"
    reached = list[int]()
    for _ in range(2):
        before = len(list(parts.glob("rows-*.parquet")))
        process = subprocess.Popen([*command, str(out)])
        give_up = time.monotonic() + 60
        while len(list(parts.glob("rows-*.parquet"))) < before + 3:
            assert process.poll() is None, "the run ended before it was killed"
            assert time.monotonic() < give_up
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not out.exists()
        run = ParquetRun(source, out, BatchRanker("cosinet", documents="candidates"))
        done, total = run.rows()
        assert total == ROWS
        reached.append(done)
    assert 0 < reached[0] < reached[1] < ROWS
    subprocess.run([*command, str(out)], check=True)
    subprocess.run([*command, str(whole)], check=True)
    assert pq.read_table(out)["id"].to_pylist() == list(range(ROWS))
    assert pq.read_table(out).equals(pq.read_table(whole))
    assert not parts.exists()


MEMORY = """
import resource, sys
from pathlib import Path
from askline.integrations.arrow import BatchRanker
from askline.integrations.parquet import ParquetRun
run = ParquetRun(Path(sys.argv[1]), Path(sys.argv[2]), BatchRanker("rr", documents="candidates"))
run.run()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in kB on Linux")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak_megabytes(rows: int) -> float:
        source = tmp_path / f"{rows}.parquet"
        texts = [[f"{row} " + "novel " * 1_000, "wrote " * 1_000] for row in range(200)]
        table = pa.table({"question": ["Who wrote it?"] * 200, "candidates": texts})
        with pq.ParquetWriter(source, table.schema, compression="none") as writer:
            for _ in range(rows // 200):
                writer.write_table(table)
        command = [sys.executable, "-c", MEMORY, str(source), str(tmp_path / "out.parquet")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout) / 1024

    small, large = peak_megabytes(6_000), peak_megabytes(24_000)  # 75 and 300 MB of text
    assert large < small + 60


def unfinished(requests: Path, out: Path, **options: Any) -> ParquetRun:
    """A run that was stopped after its first part."""
    ranker = BatchRanker("jaccard", documents="candidates", **options)
    run = ParquetRun(requests, out, ranker, part_seconds=0)

    def stop() -> None:
        if run.rows()[0]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.run(stop)
    return run


def test_the_command_says_where_it_goes_on(run: Run, requests: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    unfinished(requests, out)
    result = run("rank", "--requests", str(requests), "--out", str(out), "--ranker", "jaccard")
    assert "Continuing after 64 of 150 rows." in result.stderr
    assert pq.read_table(out)["id"].to_pylist() == list(range(150))


def test_other_options_do_not_continue_a_run(run: Run, requests: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    unfinished(requests, out)
    result = run("rank", "--requests", str(requests), "--out", str(out), "--ranker", "bm25")
    assert result.exit_code == 2
    assert "unfinished run with ranker 'jaccard', got 'bm25'" in result.stderr
    assert "delete the folder" in result.stderr


def test_another_input_does_not_continue_a_run(requests: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    stopped = unfinished(requests, out)
    write_requests(requests, 151)
    with pytest.raises(InputError, match="unfinished run with input"):
        stopped.run()


def test_two_runs_into_one_file_are_refused(requests: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    ranker = BatchRanker("jaccard", documents="candidates")
    other = ParquetRun(requests, out, ranker)

    def start_another() -> None:
        with pytest.raises(InputError, match="Another process is writing"):
            other.run()

    ParquetRun(requests, out, ranker).run(start_another)
    assert pq.read_table(out).num_rows == 150


def test_strings_and_lists_of_every_kind_survive(tmp_path: Path) -> None:
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    schema = pa.schema(
        [
            pa.field("question", pa.dictionary(pa.int32(), pa.string())),
            pa.field("candidates", pa.large_list(pa.large_string())),
            pa.field("note", pa.string_view()),
        ],
        metadata={"made": "by hand"},
    )
    rows = [{"question": "Who?", "candidates": ["He.", "Who?"], "note": None}] * 130
    pq.write_table(pa.Table.from_pylist(rows, schema), source)
    ranker = BatchRanker("jaccard", documents="candidates")
    ParquetRun(source, out, ranker, part_seconds=0).run()
    found = pq.read_table(out)
    assert found["ranking"].to_pylist() == [[1, 0]] * 130
    assert found.select(schema.names).to_pylist() == rows
    assert found.schema.metadata[b"made"] == b"by hand"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--requests", "in.jsonl", "--out", "out.parquet"], "needs --requests FILE.parquet"),
        (["Who?", "--out", "out.parquet"], "needs --requests FILE.parquet"),
        (["--requests", "in.parquet", "--out", "out.json"], "--out FILE.parquet needs"),
        (["--requests", "in.parquet", "--out", "in.parquet"], "must not be the file"),
        (["--requests", "no.parquet", "--out", "out.parquet"], "no.parquet"),
        (["--requests", "bad.parquet", "--out", "out.parquet"], "must be a Parquet file"),
        (
            ["--requests", "in.parquet", "--out", "o.parquet", "--question-column", "q"],
            "must have a column 'q', got 'id', 'question', 'candidates'",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    run: Run,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_requests(Path("in.parquet"), 2)
    Path("bad.parquet").write_bytes(b"no parquet")
    result = run("rank", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_null_question_cannot_be_printed(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"question": ["Who?", None], "candidates": [["a"], ["b"]]}), source)
    result = run("rank", "--requests", str(source), "--ranker", "jaccard")
    assert result.exit_code == 2
    assert "row 2 must have a 'question', got null" in result.stderr
