"""Spark, on a real local cluster: every row exactly once, whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

os.environ["PYSPARK_PYTHON"] = sys.executable  # before Spark is imported

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import askline
from askline import Corpus, InputError
from askline.evaluation.measures import score_run
from askline.evaluation.runs import RankedList, Run
from askline.integrations import spark as on_spark
from askline.integrations.arrow import BatchAsker, BatchRanker

_T = TypeVar("_T")

ROWS = 240
WORDS = "lamp oil wick glass flame tower keeper ship rock storm light lens".split()


def _requests(count: int) -> pa.Table:
    """Questions with eight candidates each, one of which names the right number."""
    return pa.table(
        {
            "id": list(range(count)),
            "question": [f"Which lamp is in house {at}?" for at in range(count)],
            "documents": [
                [f"The {word} of house {at + shift} is {word}." for shift, word in enumerate(WORDS)]
                for at in range(count)
            ],
        }
    )


def _session(master: str, **settings: str) -> SparkSession:
    builder = SparkSession.builder.master(master).appName("askline tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = _session("local[2,4]")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of eight Parquet files."""
    folder = tmp_path_factory.mktemp("requests")
    table = _requests(ROWS)
    for part in range(8):
        size = ROWS // 8
        pq.write_table(table.slice(part * size, size), folder / f"{part}.parquet")
    return str(folder)


def _frame(session: SparkSession, folder: str) -> DataFrame:
    return session.read.parquet(folder)


def _texts(folder: Path) -> dict[str, str]:
    return {
        f"house {at}": f"The keeper of house {at} is number {at}. It stands on rock {at % 7}."
        for at in range(60)
    }


# What it computes


def test_a_ranked_frame_is_that_of_rank(spark: SparkSession, requests: str) -> None:
    ranked = on_spark.rank(_frame(spark, requests), ranker="bm25").orderBy("id").collect()
    assert [row["id"] for row in ranked] == list(range(ROWS))
    ranker = askline.load("bm25")
    for row in ranked[::17]:
        expected = ranker.rank(row["question"], row["documents"])
        assert row["ranking"] == [hit.index for hit in expected]
        assert row["best_text"] == expected[0].text


def test_a_wrong_column_is_said_on_the_driver(spark: SparkSession, requests: str) -> None:
    with pytest.raises(InputError, match="must have a column 'query'"):
        on_spark.rank(_frame(spark, requests), question="query")


def _loads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rank, and report this process and the number of rankers that it has loaded."""
    from askline.integrations import common

    for _ in BatchRanker("bm25").map(batches):
        pass
    fields = {"pid": [os.getpid()], "loaded": [len(common._rankers)]}
    yield pa.RecordBatch.from_pydict(fields)


def test_a_worker_loads_its_model_once(spark: SparkSession, requests: str) -> None:
    frame = _frame(spark, requests).repartition(12)
    found = frame.mapInArrow(_loads, "pid long, loaded long").collect()
    assert len(found) == 12
    assert len({row["pid"] for row in found}) <= 4  # two at a time; a worker may be replaced
    assert {row["loaded"] for row in found} == {1}


def test_an_index_is_built_and_asked(spark: SparkSession, tmp_path: Path) -> None:
    texts = _texts(tmp_path)
    frame = spark.createDataFrame(list(texts.items()), "id string, text string")
    infos = on_spark.build_index(frame, tmp_path / "index", shards=3)
    assert sum(info.documents for info in infos) == len(texts)
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        assert [each.name for each in corpus.documents(limit=100)] == sorted(texts)
        questions = [f"What number is the keeper of house {at}?" for at in range(20)]
        expected = [[each.document for each in corpus.ask(question)] for question in questions]
    asked = spark.createDataFrame([(each,) for each in questions], "question string")
    rows = on_spark.ask(asked, tmp_path / "index", ranker=None).collect()
    found = {row["question"]: [each["document"] for each in row["answers"]] for row in rows}
    assert [found[question] for question in questions] == expected
    assert on_spark.build_index(frame, tmp_path / "index", shards=3) == infos  # kept


def test_an_index_is_built_without_a_shuffle(spark: SparkSession, tmp_path: Path) -> None:
    texts, folder = _texts(tmp_path), tmp_path / "texts"
    folder.mkdir()
    names = list(texts)
    for part in range(6):
        own = names[part * 10 : part * 10 + 10]
        table = pa.table({"id": own, "text": [texts[name] for name in own]})
        pq.write_table(table, folder / f"{part}.parquet")
    frame = spark.read.parquet(str(folder))
    infos = on_spark.build_index(frame, tmp_path / "index", shards=3, shuffle=False)
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        assert [each.name for each in corpus.documents(limit=100)] == sorted(texts)
    again = on_spark.build_index(frame, tmp_path / "index", shards=3, shuffle=False)
    assert again == infos  # kept
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1000")
    try:  # other partitions would have other texts, so no shard may be kept
        other = on_spark.build_index(frame, tmp_path / "index", shards=3, shuffle=False)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert not {each.name for each in other} & {each.name for each in infos}
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        assert [each.name for each in corpus.documents(limit=100)] == sorted(texts)
    with pytest.raises(InputError, match="the frame must read files"):
        on_spark.build_index(spark.range(3), tmp_path / "no", shards=1, text="id", shuffle=False)


def test_a_task_without_rows_has_an_empty_shard(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", "One lamp is lit.")], "id string, text string")
    infos = on_spark.build_index(frame, tmp_path / "index", shards=4)
    assert sorted(info.documents for info in infos) == [0, 0, 0, 1]
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        assert corpus.ask("Which lamp is lit?").answers


def test_measures_are_those_of_score_run(spark: SparkSession) -> None:
    rows = [
        (question, f"c{candidate}", float((candidate * 7 + question) % 5), int(candidate == 3))
        for question in range(30)
        for candidate in range(9)
    ]
    frame = spark.createDataFrame(
        rows, "question_id int, candidate_id string, score double, label int"
    )
    found = {row["question_id"]: row for row in on_spark.evaluate(frame).collect()}
    for question in range(30):
        own = sorted((row for row in rows if row[0] == question), key=lambda row: (row[2], row[1]))
        own.reverse()
        ranked = RankedList(tuple(row[1] for row in own), tuple(row[2] for row in own))
        expected = score_run(Run("", {"q": ranked}), {"q": {row[1]: row[3] for row in own}})
        for name, values in expected.items():
            assert found[question][name] == pytest.approx(values[0])
    mean = on_spark.evaluate(frame, measures="MRR").agg(f.avg("MRR")).collect()[0][0]
    assert mean == pytest.approx(sum(row["MRR"] for row in found.values()) / 30)


def test_a_run_writes_one_file_per_partition(
    spark: SparkSession, requests: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ranker = BatchRanker("bm25")
    on_spark.write_parquet(_frame(spark, requests), ranker, out, key="id", partitions=5)
    _check_once(out)
    assert len(list(out.glob("part-*.parquet"))) == 5
    assert (out / "_SUCCESS").exists()
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    (out / "part-00002.parquet").unlink()
    on_spark.write_parquet(_frame(spark, requests), ranker, out, key="id", partitions=5)
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert {name for name in before if before[name] != after[name]} == {"part-00002.parquet"}
    _check_once(out)
    assert spark.read.parquet(str(out)).count() == ROWS
    with pytest.raises(InputError, match="with partitions 5, got 6"):
        on_spark.write_parquet(_frame(spark, requests), ranker, out, key="id", partitions=6)


def _check_once(folder: Path, rows: int = ROWS) -> None:
    """All ids exactly once, each with its own ranking."""
    table = pq.ParquetDataset(sorted(folder.glob("part-*.parquet"))).read()
    assert sorted(table["id"].to_pylist()) == list(range(rows))
    assert table["best_text"].null_count == 0
    assert not list(folder.glob(".part-*"))


# What happens when something is killed


def test_a_task_whose_rows_end_early_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a Python worker reads when its executor is killed: batches, and then the end."""
    monkeypatch.setattr(on_spark, "_partition", lambda: 0)
    requests, ranker = _requests(40), BatchRanker("bm25")
    schema = ranker.schema(requests.schema)
    some = requests.slice(0, 20).to_batches()
    task = on_spark._WriteTask(ranker, str(tmp_path), schema, {0: 40})
    with pytest.raises(RuntimeError, match="Expected 40 rows in this task, got 20"):
        list(task(some))
    assert not list(tmp_path.iterdir())
    texts = pa.RecordBatch.from_pydict({"id": ["a"], "text": ["Emma is a novel."]})
    options: dict[str, Any] = {"folder": str(tmp_path), "build": "", "phrases": False}
    with pytest.raises(RuntimeError, match="Expected 2 rows in this task, got 1"):
        list(on_spark._write_shards([texts], **options, counts={0: 2}))
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
    (info,) = on_spark._write_shards([texts], **options, counts={0: 1})
    assert info["documents"].to_pylist() == [1]


class SlowRanker(BatchRanker):
    """Waits a moment for each batch, so that there is time to kill something."""

    def _columns(self, batch: pa.RecordBatch) -> Any:
        time.sleep(0.4)
        return super()._columns(batch)


def _descendants(process: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *_descendants(child)]
    return found


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _python_workers(process: int) -> list[int]:
    """Processes that `pyspark.daemon` has forked."""
    daemons = [each for each in _descendants(process) if "pyspark.daemon" in _command(each)]
    return [each for each in daemons if not _descendants(each) and _parent(each) in daemons]


def _parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _executors(process: int) -> list[int]:
    return [
        each
        for each in _descendants(process)
        if "CoarseGrainedExecutorBackend" in _command(each) and "java" in _command(each)
    ]


def _wait_for(condition: Callable[[], _T], seconds: float = 120.0) -> _T:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)
    return found


class _Job(threading.Thread):
    """`write_parquet` in a thread, while something else is killed."""

    def __init__(self, frame: DataFrame, out: Path) -> None:
        super().__init__()
        self._frame, self._out = frame, out
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            ranker = SlowRanker("bm25")
            on_spark.write_parquet(self._frame, ranker, self._out, key="id", partitions=6)
        except BaseException as error:
            self.error = error


def _kill_during(job: _Job, out: Path, find: Callable[[], list[int]]) -> None:
    """Kill a process with SIGKILL once a file is complete, and let the job end."""
    job.start()
    _wait_for(lambda: list(out.glob("part-*.parquet")))
    victim = _wait_for(find)[-1]
    os.kill(victim, signal.SIGKILL)
    _wait_for(lambda: not _command(victim))
    assert job.is_alive()
    job.join()
    if job.error is not None:
        raise job.error


def test_a_killed_python_worker_costs_no_row(
    spark: SparkSession, requests: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    job = _Job(_frame(spark, requests), out)
    _kill_during(job, out, lambda: _python_workers(os.getpid()))
    _check_once(out)


PROGRAM = """
    import os, sys
    os.environ["PYSPARK_PYTHON"] = sys.executable
    sys.path[:0] = {path!r}
    from pathlib import Path
    from tests.integrations import test_spark as tests
    from askline.integrations import spark as on_spark
    session = tests._session({master!r}, **{settings!r})
    frame = tests._frame(session, {requests!r})
    {call}
    session.stop()
"""


def _program(requests: str, master: str, call: str, **settings: str) -> list[str]:
    code = textwrap.dedent(PROGRAM).format(
        path=sys.path, master=master, requests=requests, call=call, settings=settings
    )
    return [sys.executable, "-c", code]


def _write_call(out: Path) -> str:
    return (
        f"on_spark.write_parquet(frame, tests.SlowRanker('bm25'), {str(out)!r}, key='id', "
        "partitions=6)"
    )


def test_a_killed_executor_costs_no_row(requests: str, tmp_path: Path) -> None:
    """A cluster of two executor processes on this machine."""
    out = tmp_path / "out"
    master = "local-cluster[2,1,1024]"
    driver = subprocess.Popen(_program(requests, master, _write_call(out)), cwd=tmp_path)
    _wait_for(lambda: list(out.glob("part-*.parquet")))
    victim = _wait_for(lambda: _executors(driver.pid))[0]
    os.kill(victim, signal.SIGKILL)
    assert driver.wait(timeout=300) == 0
    _check_once(out)


def test_a_killed_driver_can_be_started_again(requests: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = _program(requests, "local[2,4]", _write_call(out))
    driver = subprocess.Popen(command, cwd=tmp_path)
    _wait_for(lambda: list(out.glob("part-*.parquet")))
    victims = [driver.pid, *_descendants(driver.pid)]
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
    driver.wait()
    kept = {path.name: path.stat().st_ino for path in out.glob("part-*.parquet")}
    assert 0 < len(kept) < 6
    assert not (out / "_SUCCESS").exists()
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
    _check_once(out)
    assert {name: (out / name).stat().st_ino for name in kept} == kept


def _slow_texts() -> Iterator[tuple[str, str]]:
    for item in _texts(Path()).items():
        time.sleep(0.02)
        yield item


def test_a_killed_build_goes_on(tmp_path: Path) -> None:
    """The driver is killed after the first shard; the second call keeps that shard."""
    texts, out = tmp_path / "texts", tmp_path / "index"
    texts.mkdir()
    rows = [(f"{at}/{name}", text * 50) for at in range(40) for name, text in _texts(out).items()]
    names, contents = zip(*rows, strict=True)
    pq.write_table(pa.table({"id": names, "text": contents}), texts / "0.parquet")
    call = f"on_spark.build_index(frame, {str(out)!r}, shards=6)"
    command = _program(str(texts), "local[2,4]", call)
    driver = subprocess.Popen(command, cwd=tmp_path)
    _wait_for(lambda: list(out.glob("shard-*")))
    for victim in [driver.pid, *_descendants(driver.pid)]:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
    driver.wait()
    kept = {path.name: path.stat().st_ino for path in out.glob("shard-*")}
    assert kept
    assert not (out / "shards.json").exists()
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
    with Corpus.open(out, ranker=None) as corpus:
        assert [each.name for each in corpus.documents(limit=10_000)] == sorted(names)
    assert {name: (out / name).stat().st_ino for name in kept} == kept
    assert len(list(out.glob("shard-*"))) == 6
    assert not list(out.glob(".building-*"))


def test_answers_can_be_continued_too(spark: SparkSession, tmp_path: Path) -> None:
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        corpus.add(_texts(tmp_path))
    questions = [(at, f"What number is the keeper of house {at}?") for at in range(10)]
    frame = spark.createDataFrame(questions, "id int, question string")
    asker = BatchAsker(str(tmp_path / "index"), None)
    for _ in range(2):
        on_spark.write_parquet(frame, asker, tmp_path / "out", key="id", partitions=2)
    found = spark.read.parquet(str(tmp_path / "out")).orderBy("id").collect()
    assert [row["id"] for row in found] == list(range(10))
    assert all(row["answers"] for row in found)
