"""
Rank, ask, evaluate and build indexes on Spark, over the Arrow batch functions.

    >>> ranked = rank(spark.read.parquet("questions"), ranker="cosinet")      # doctest: +SKIP
    >>> build_index(spark.read.parquet("texts"), "index", shards=64)          # doctest: +SKIP
    >>> answers = ask(spark.read.parquet("questions"), "index")               # doctest: +SKIP

Every Python worker loads its model once and keeps it for all its tasks. Folders must be paths that
all executors reach. askline must be installed where the executors run, and `PYSPARK_PYTHON` must
name that Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpus.shard_building import finish_shards, write_shard
from ..corpus.shards import ShardInfo
from ..errors import InputError, require_extra
from ..evaluation.measures import DEFAULT_MEASURES, parse_measures, score_run
from ..evaluation.runs import RankedList, Run
from ..rankers.base import Ranker
from ..text.atomic_write import atomic_write
from .arrow import BatchAsker, BatchRanker
from .common import DEFAULT_SPEC

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame
else:
    require_extra("pyspark", purpose="The Spark integration", extra="spark")
    pa = require_extra("pyarrow", purpose="The Spark integration", extra="spark")
    pq = require_extra("pyarrow.parquet", purpose="The Spark integration", extra="spark")

__all__ = ["ask", "build_index", "evaluate", "rank", "write_parquet"]

_Batches = Iterable[pa.RecordBatch]
_RUN_NAME = "_run.json"  # Spark does not read files whose names start with _ or a dot
_DONE_NAME = "_SUCCESS"
_SHARD_SCHEMA = (
    "number int, name string, identity string, documents long, sentences long, characters long"
)


def rank(
    frame: DataFrame,
    *,
    ranker: str | Ranker = DEFAULT_SPEC,
    question: str = "question",
    documents: str = "documents",
    text: str = "text",
    top_k: int | None = None,
    deadline_ms: float | None = None,
    prefix: str = "",
) -> DataFrame:
    """
    Rank the documents of each row: `frame` with the columns of `BatchRanker`.

    Nothing is computed before the result is read or written, as usual in Spark.
    """
    return _map(frame, BatchRanker(ranker, question, documents, text, top_k, deadline_ms, prefix))


def ask(
    frame: DataFrame,
    corpus: str | os.PathLike[str],
    *,
    ranker: str | Ranker | None = DEFAULT_SPEC,
    question: str = "question",
    top_k: int = 5,
    threshold: float | None = None,
    prefix: str = "",
) -> DataFrame:
    """
    Answer the question of each row from the index in a folder: `frame` and those of `BatchAsker`.

    Every Python worker opens the index once. It may be a folder of shards.
    """
    return _map(frame, BatchAsker(corpus, ranker, question, top_k, threshold, prefix))


def evaluate(
    frame: DataFrame,
    *,
    question: str = "question_id",
    candidate: str = "candidate_id",
    score: str = "score",
    label: str = "label",
    measures: str | Iterable[str] = DEFAULT_MEASURES,
) -> DataFrame:
    """
    The measures of a run: a row per question, with a column per measure.

    `frame` has a row per question and candidate. Equal scores are ordered by the id of the
    candidate, descending, as trec_eval does. A question without an answer counts 0. The mean over
    all questions is `evaluate(...).agg(...)`.
    """
    from pyspark.sql import functions as f

    names = [each.name for each in parse_measures(measures)]
    rows = f.struct(
        f.col(candidate).cast("string").alias("candidate"),
        f.col(score).cast("double").alias("score"),
        f.col(label).cast("int").alias("label"),
    )
    grouped = frame.groupBy(f.col(question).alias(question)).agg(f.collect_list(rows).alias("run"))
    columns = ", ".join(f"`{name}` double" for name in names)
    kind = grouped.schema[question].dataType.simpleString()
    return grouped.mapInArrow(_Evaluator(question, tuple(names)), f"`{question}` {kind}, {columns}")


def write_parquet(
    frame: DataFrame,
    function: BatchRanker | BatchAsker,
    folder: str | os.PathLike[str],
    *,
    key: str | Sequence[str],
    partitions: int,
) -> None:
    """
    Rank or answer into a folder of Parquet files, which a later call continues after a failure.

    The rows are distributed over `partitions` files by the columns `key`, which together identify a
    row. A task writes its file under a temporary name and renames it when it is complete, so that a
    repeated task leaves one file. The rows of each task are counted before, and a task that got
    fewer, because its executor was killed, leaves no file. If the driver is killed, call it again
    with the same arguments: files that are complete are kept. InputError if the folder has files of
    other arguments.
    """
    target = Path(folder).expanduser()
    keys = [key] if isinstance(key, str) else list(key)
    schema = function.schema(_arrow_schema(frame))
    described = {
        "keys": keys,
        "partitions": partitions,
        "function": repr(function),
        "schema": hashlib.sha256(str(schema).encode()).hexdigest(),
    }
    _prepare_run(target, described)
    rows = _rows_by_partition(frame.select(*keys).repartition(partitions, *keys))
    task = _WriteTask(function, str(target.absolute()), schema, rows)
    frame.repartition(partitions, *keys).mapInArrow(task, "number int, rows long").collect()
    for number in range(partitions):  # Spark may leave out a task that has no rows
        if not (path := _part_path(target, number)).exists():
            _write_part(path, schema, [])
    (target / _DONE_NAME).touch()
    for left in target.glob(".part-*"):
        left.unlink(missing_ok=True)


def build_index(
    frame: DataFrame,
    folder: str | os.PathLike[str],
    *,
    shards: int,
    id: str = "id",  # noqa: A002 – the name of the column
    text: str = "text",
    build: str = "",
    phrases: bool = False,
    shuffle: bool = True,
) -> list[ShardInfo]:
    """
    Build a sharded index of the texts of a frame, one shard per task; `Corpus.open` reads it.

    The ids must be unique. Texts go to shards by their ids. A task that is repeated, or that runs
    twice, leaves one shard. If the driver is killed, call it again: shards of the same `build` are
    kept. Give another `build`, such as a date, when the texts have changed: the old index is read
    until the new one is complete. With `phrases`, the phrases are encoded too.

    With `shuffle=False`, texts go to shards by the files that they are in, and are not sent between
    the executors. This is for a frame that only reads files, because each attempt of a task must
    get the same texts. There are at most `shards` shards with texts, as even as the files are.
    """
    if shards < 1:
        raise InputError(f"shards must be at least 1, got {shards}.")
    if not shuffle:
        build = f"{build} {_file_partitions(frame)}"
    target = os.path.abspath(os.path.expanduser(os.fspath(folder)))
    columns = frame.select(frame[id].cast("string").alias("id"), frame[text].alias("text"))

    def parted(own: DataFrame) -> DataFrame:
        return own.repartition(shards, "id") if shuffle else own.coalesce(shards)

    counts = _rows_by_partition(parted(columns.select("id")))
    task = partial(_write_shards, folder=target, build=build, phrases=phrases, counts=counts)
    rows = parted(columns).mapInArrow(task, _SHARD_SCHEMA).collect()
    found = {row[0]: ShardInfo(*row[1:]) for row in rows}
    for number in range(shards):  # Spark may leave out a task that has no rows
        if number not in found:
            found[number] = write_shard(target, number, [], build=build, phrases=phrases)
    infos = [found[number] for number in range(shards)]
    finish_shards(target, infos)
    return infos


def _map(frame: DataFrame, function: BatchRanker | BatchAsker) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(function.schema(_arrow_schema(frame)))
    return frame.mapInArrow(function.map, schema)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)


def _file_partitions(frame: DataFrame) -> str:
    """A digest of all that decides which files Spark reads in which partition."""
    files = sorted(frame.inputFiles())
    if not files:
        raise InputError(
            "With shuffle=False, the frame must read files, such as spark.read.parquet(...). "
            "Leave out shuffle=False."
        )
    session = frame.sparkSession
    names = ("maxPartitionBytes", "openCostInBytes", "minPartitionNum", "maxPartitionNum")
    settings = [session.conf.get(f"spark.sql.files.{name}", None) for name in names]
    parallelism = session.sparkContext.defaultParallelism
    described = json.dumps([files, settings, parallelism])
    return hashlib.sha256(described.encode()).hexdigest()


def _partition() -> int:
    """The number of the partition that this task works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("Expected to run in a task of Spark.")
    return int(context.partitionId())


# Tasks. They are pickled, and run in the Python workers of the executors.


def _rows_by_partition(parted: DataFrame) -> dict[int, int]:
    """The number of rows of each partition that has any."""
    from pyspark.sql.functions import spark_partition_id

    rows = parted.groupBy(spark_partition_id().alias("number")).count().collect()
    return {int(number): int(count) for number, count in rows}


def _all_rows(batches: _Batches, expected: int) -> Iterator[pa.RecordBatch]:
    """
    The batches; RuntimeError at their end if rows are missing.

    If an executor is killed, its Python worker reads the end of the stream as if all batches had
    come. Without this check it would write a part of the rows as a complete file.
    """
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        yield batch
    if rows != expected:
        raise RuntimeError(f"Expected {expected} rows in this task, got {rows}.")


def _write_shards(
    batches: _Batches, *, folder: str, build: str, phrases: bool, counts: Mapping[int, int]
) -> Iterator[pa.RecordBatch]:
    """Write the shard of this partition."""
    number = _partition()
    texts = _texts(_all_rows(batches, counts.get(number, 0)))
    info = write_shard(folder, number, texts, build=build, phrases=phrases)
    fields = {
        "number": pa.array([number], pa.int32()),
        "name": [info.name],
        "identity": [info.identity],
        "documents": [info.documents],
        "sentences": [info.sentences],
        "characters": [info.characters],
    }
    yield pa.RecordBatch.from_pydict(fields)


def _texts(batches: _Batches) -> Iterator[tuple[str, str]]:
    for batch in batches:
        ids, texts = (column.to_pylist() for column in batch.columns)
        for name, text in zip(ids, texts, strict=True):
            if name is None:
                raise InputError("The id of a text must not be null. Fill or filter the column.")
            yield name, text or ""


@dataclass(frozen=True)
class _WriteTask:
    """Writes the file of a partition, unless it is there."""

    function: BatchRanker | BatchAsker
    folder: str
    schema: pa.Schema
    rows: Mapping[int, int]
    """By partition; one without rows is not in it."""

    def __call__(self, batches: _Batches) -> Iterator[pa.RecordBatch]:
        number = _partition()
        path = _part_path(Path(self.folder), number)
        if not path.exists():
            complete = _all_rows(batches, self.rows.get(number, 0))
            _write_part(path, self.schema, self.function.map(complete))
        rows = pq.read_metadata(path).num_rows
        fields = {"number": pa.array([number], pa.int32()), "rows": [rows]}
        yield pa.RecordBatch.from_pydict(fields)


@dataclass(frozen=True)
class _Evaluator:
    """Measures per question, from rows with all candidates of a question."""

    question: str
    measures: tuple[str, ...]

    def __call__(self, batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            questions = batch.column(self.question)
            lists = batch.column("run").to_pylist()
            names = [str(row) for row in range(len(lists))]
            rankings = {name: _ranked(rows) for name, rows in zip(names, lists, strict=True)}
            qrels = {
                name: {row["candidate"]: row["label"] or 0 for row in rows}
                for name, rows in zip(names, lists, strict=True)
            }
            values = score_run(Run("spark", rankings), qrels, measures=self.measures)
            columns = [questions, *(pa.array(values[name]) for name in self.measures)]
            yield pa.RecordBatch.from_arrays(columns, [self.question, *self.measures])


def _ranked(rows: Iterable[dict[str, Any]]) -> RankedList:
    ordered = sorted(rows, key=lambda row: (row["score"], row["candidate"]), reverse=True)
    return RankedList(
        tuple(row["candidate"] for row in ordered), tuple(row["score"] for row in ordered)
    )


# Files of `write_parquet`


def _part_path(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}.parquet"


def _write_part(path: Path, schema: pa.Schema, batches: _Batches) -> None:
    """Write a file as a whole. If two tasks write it, both have the same rows, and one stays."""
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(4)}")
    try:
        with pq.ParquetWriter(temporary, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _prepare_run(folder: Path, described: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _RUN_NAME
    if path.exists():
        known = json.loads(path.read_bytes())
        for name, value in described.items():
            if known.get(name) != value:
                raise InputError(
                    f"{folder} has the files of a run with {name} {known.get(name)!r}, got "
                    f"{value!r}. Use the same arguments, or another folder."
                )
        return
    if other := next(folder.iterdir(), None):
        raise InputError(f"{folder} must be empty, got {other.name}. Choose another folder.")
    with atomic_write(path) as stream:
        stream.write(json.dumps(described, indent=1).encode())
