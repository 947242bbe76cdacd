"""
A million rows of Parquet ranked on two cores by Spark, with kills, and beside a process pool.

    .venv/spark/bin/python -m research.benchmarks.spark_ranking [--rows 1000000] [--compare 20000]

The rows are questions of SQuAD dev v1.1, each with the sentences of its paragraph, in random order.
First a pool of two processes and Spark with two cores (`local[2,4]`) rank the same part of the
rows, both warm: models are loaded and the JVM has compiled its code. Compared are the CPU seconds
of all processes.

Then two executors of one core each (`local-cluster[2,1,1024]`) rank all rows into a folder
(`write_parquet`), while the memory of the Python workers is sampled. A Python worker, then an
executor, and then the driver with all its processes are killed with SIGKILL; the driver is started
again with the same arguments. At the end the ids of the result are counted.

Needs the environment of `make test-spark`, and takes about as many CPU seconds as there are
thousands of rows. Writes research/results/spark_ranking.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
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
from pyspark.sql import SparkSession

from askline.integrations import spark as on_spark
from askline.integrations.arrow import BatchRanker
from askline.text.sentences import split_sentences

from .common import data_root, save
from .processes import MemorySampler, command, cpu_seconds, descendants

_FILES = 40
_PARTITIONS = 100
_RANKER = "cosinet"
_KILLS = ((0.15, "Python worker"), (0.3, "executor"), (0.45, "driver"))
"""What is killed once this share of the files is complete."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--compare", type=int, default=20_000)
    parser.add_argument("--drive", nargs=2, metavar=("ROWS", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread per process, two processes
    if options.drive:
        _drive(*options.drive)
        return
    with tempfile.TemporaryDirectory() as place:
        rows, part = Path(place) / "rows", Path(place) / "part"
        _write_rows(rows, options.rows)
        _write_rows(part, options.compare)
        figures = {
            "ranker": _RANKER,
            "cores": 2,
            "pool": _pool(part),
            **_spark(part),
            "all rows": _rank_all(rows, Path(place) / "out", options.rows),
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


def _session(master: str) -> SparkSession:
    return (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.files.openCostInBytes", "0")
        .config("spark.sql.files.maxPartitionBytes", str(2**20))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )


def _spark(part: Path) -> dict[str, Any]:
    started = time.perf_counter()
    session = _session("local[2,4]")
    start_seconds = time.perf_counter() - started
    rows = int(session.read.parquet(str(part)).count())

    def rank_part() -> int:
        frame = on_spark.rank(session.read.parquet(str(part)), ranker=_RANKER)
        frame.write.mode("overwrite").parquet(str(part.with_name("ranked")))
        return rows

    rank_part()  # warm
    compared = _timed(rank_part)
    session.stop()
    return {"start of Spark, s": round(start_seconds, 1), "spark": compared}


# All rows, with kills


def _drive(rows: str, out: str) -> None:
    """The driver, a process of its own."""
    session = _session("local-cluster[2,1,1024]")
    frame = session.read.parquet(rows)
    ranker = BatchRanker(_RANKER)
    on_spark.write_parquet(frame, ranker, out, key="id", partitions=_PARTITIONS)
    session.stop()


def _rank_all(rows: Path, out: Path, total: int) -> dict[str, Any]:
    program = [sys.executable, "-m", __spec__.name, "--drive", str(rows), str(out)]
    started = time.perf_counter()
    sampler = MemorySampler()
    sampler.start()
    driver = subprocess.Popen(program)
    kills = []
    for share, name in _KILLS:
        _wait_for_parts(out, share, driver)
        victims = _victims(name, driver.pid)
        for victim in victims:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
        kills.append({"killed": name, "files complete": len(_parts(out))})
        if name == "driver":
            driver.wait()
            driver = subprocess.Popen(program)
    if code := driver.wait():
        raise SystemExit(f"The driver ended with exit code {code}.")
    seconds = time.perf_counter() - started
    samples = sampler.stop()
    ids = pa.concat_arrays(_ids(out))
    return {
        "rows": total,
        "seconds": round(seconds, 1),
        "rows per second": round(total / seconds, 1),
        "kills": kills,
        "files": len(_parts(out)),
        "ids": len(ids),
        "different ids": int(pc.count_distinct(ids).as_py()),
        "MB of Python workers, by fifths of the time": _fifths(samples),
        "MB of Python workers, most": round(max(samples, default=0.0), 1),
    }


def _parts(out: Path) -> list[Path]:
    return sorted(out.glob("part-*.parquet"))


def _wait_for_parts(out: Path, share: float, driver: subprocess.Popen[bytes]) -> None:
    while len(_parts(out)) < share * _PARTITIONS:
        if driver.poll() is not None:
            raise SystemExit(f"The driver ended early, with exit code {driver.returncode}.")
        time.sleep(0.1)


def _victims(name: str, driver: int) -> list[int]:
    below = descendants(driver)
    if name == "driver":
        return [driver, *below]
    if name == "executor":
        return [each for each in below if "CoarseGrainedExecutorBackend" in command(each)][:1]
    daemons = [each for each in below if "pyspark.daemon" in command(each)]
    workers = [each for own in daemons for each in descendants(own)]
    return workers[:1]


def _ids(folder: Path) -> Iterator[pa.Array]:
    for path in _parts(folder):
        yield from pq.read_table(path, columns=["id"])["id"].chunks


def _fifths(samples: list[float]) -> list[float]:
    size = max(1, len(samples) // 5)
    parts = [samples[at * size : (at + 1) * size] for at in range(5)]
    return [round(statistics.median(part), 1) for part in parts if part]


if __name__ == "__main__":
    main()
