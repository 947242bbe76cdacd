"""
A million rows of Parquet ranked on two cores by Spark, and Spark against a plain process pool.

    .venv/spark/bin/python -m research.benchmarks.spark_ranking [--rows 1000000] [--compare 100000]

The rows are questions of SQuAD dev v1.1, each with the sentences of its paragraph, in random order.
First a pool of two processes and Spark with two cores (`local[2,4]`) rank the same part of the
rows, both warm: models are loaded and the JVM has compiled its code. Compared are the CPU seconds
of all processes. Then Spark ranks all rows into a folder (`write_parquet`), while the memory of the
Python workers is sampled, and the ids of the result are counted. Needs the environment of
`make test-spark`. Writes research/results/spark_ranking.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from askline.integrations.arrow import BatchRanker
from askline.text.sentences import split_sentences

from .common import data_root, save
from .processes import MemorySampler, cpu_seconds

_FILES = 40
_RANKER = "cosinet"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--compare", type=int, default=100_000)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as place:
        rows, part = Path(place) / "rows", Path(place) / "part"
        _write_rows(rows, options.rows)
        _write_rows(part, options.compare)
        figures = {
            "ranker": _RANKER,
            "cores": 2,
            "pool": _pool(part),
            **_spark(part, rows, Path(place) / "out"),
        }
    figures["CPU, Spark / pool"] = round(
        figures["spark"]["CPU s per 1,000 rows"] / figures["pool"]["CPU s per 1,000 rows"], 3
    )
    print(json.dumps(figures, indent=1))
    print(save("spark_ranking", figures, "pyspark", "pyarrow"))


def _write_rows(folder: Path, rows: int) -> None:
    """The same rows for the same number, in forty files."""
    folder.mkdir()
    content = json.loads((data_root() / "squad/dev-v1.1.json").read_text("utf-8"))["data"]
    requests = [
        (each["question"], sentences)
        for article in content
        for paragraph in article["paragraphs"]
        for sentences in [_sentences(paragraph["context"])]
        for each in paragraph["qas"]
    ]
    rng, per_file = random.Random(0), -(-rows // _FILES)
    for first in range(0, rows, per_file):
        ids = list(range(first, min(rows, first + per_file)))
        chosen = rng.choices(requests, k=len(ids))
        table = pa.table(
            {
                "id": ids,
                "question": [question for question, _ in chosen],
                "documents": [sentences for _, sentences in chosen],
            }
        )
        pq.write_table(table, folder / f"{first:08d}.parquet")


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


def _rank_file(path: str, out: str) -> int:
    """In a process of the pool."""
    ranker = BatchRanker(_RANKER)
    with pq.ParquetFile(path) as file:
        with pq.ParquetWriter(out, ranker.schema(file.schema_arrow)) as writer:
            for batch in ranker.map(file.iter_batches(1_000)):
                writer.write_batch(batch)
        return int(file.metadata.num_rows)


def _pool(part: Path) -> dict[str, Any]:
    files = sorted(map(str, part.glob("*.parquet")))
    with (
        tempfile.TemporaryDirectory() as out,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
    ):
        outs = [f"{out}/{number}" for number in range(len(files))]
        list(pool.map(_rank_file, files[:2], outs[:2]))  # warm
        return _timed(lambda: sum(pool.map(_rank_file, files, outs)))


def _timed(work: Any) -> dict[str, Any]:
    started, cpu = time.perf_counter(), cpu_seconds(os.getpid())
    rows = work()
    seconds, cpu = time.perf_counter() - started, cpu_seconds(os.getpid()) - cpu
    return {
        "rows": rows,
        "seconds": round(seconds, 1),
        "rows per second": round(rows / seconds, 1),
        "CPU s per 1,000 rows": round(1000 * cpu / rows, 4),
    }


def _spark(part: Path, rows: Path, out: Path) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    from askline.integrations import spark as on_spark

    started = time.perf_counter()
    session = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.files.openCostInBytes", "0")
        .config("spark.sql.files.maxPartitionBytes", str(2**20))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
        .getOrCreate()
    )
    start_seconds = time.perf_counter() - started

    def rank_part() -> int:
        frame = on_spark.rank(session.read.parquet(str(part)), ranker=_RANKER)
        frame.write.mode("overwrite").parquet(str(part.with_name("ranked")))
        return int(session.read.parquet(str(part)).count())

    rank_part()  # warm
    compared = _timed(rank_part)
    sampler = MemorySampler()
    sampler.start()
    total = int(pq.ParquetDataset(rows).read(["id"]).num_rows)

    def rank_all() -> int:
        frame = session.read.parquet(str(rows))
        on_spark.write_parquet(frame, BatchRanker(_RANKER), out, key="id", partitions=40)
        return total

    whole = _timed(rank_all)
    samples = sampler.stop()
    session.stop()
    ids = pa.concat_arrays(_ids(out))
    return {
        "start of Spark, s": round(start_seconds, 1),
        "spark": compared,
        "all rows": {
            **whole,
            "ids": len(ids),
            "different ids": int(pc.count_distinct(ids).as_py()),
            "MB of Python workers, by fifths of the time": _fifths(samples),
        },
    }


def _ids(folder: Path) -> Iterator[pa.Array]:
    for path in sorted(folder.glob("part-*.parquet")):
        yield from pq.read_table(path, columns=["id"])["id"].chunks


def _fifths(samples: list[float]) -> list[float]:
    size = max(1, len(samples) // 5)
    parts = [samples[at * size : (at + 1) * size] for at in range(5)]
    return [round(statistics.median(part), 1) for part in parts if part]


if __name__ == "__main__":
    main()
