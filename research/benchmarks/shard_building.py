"""
An index built in shards by two executors of Spark, against one process, from the same texts.

    .venv/spark/bin/python -m research.benchmarks.shard_building [--megabytes 1350] [--shards 8]

The texts are articles made of sentences of SQuAD dev v1.1, in Parquet files. One process on one
core adds them to a corpus (`Corpus.add`); two executors of one core each (`local-cluster[2,1,...]`)
build shards of them (`build_index` with `shuffle=False`), and so do two processes with
`write_shard`. The start of the cluster is timed apart. The machine must have two cores. Needs the
environment of `make test-spark`. Writes research/results/shard_building.json. `--megabytes` is the
size of the texts; 1350 make an index of about 2 GB. Its size is in the results.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from askline.corpus import Corpus, ShardInfo, finish_shards, write_shard
from askline.text.sentences import split_sentences

from .common import data_root, save
from .processes import cpu_seconds

_FILES = 16
_ROWS_PER_GROUP = 500  # a row group is never split, so that small ones make even partitions
_ARTICLE_SENTENCES = 60
_QUESTION = "When was the railway line opened?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--megabytes", type=float, default=1_350)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--work", type=Path, help="a folder with space; a temporary one by default")
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(dir=options.work) as place:
        texts, count = Path(place) / "texts", options.shards
        documents = _write_texts(texts, int(options.megabytes * 1e6))
        rows = {
            "one process on one core": _timed(lambda: _one_process(texts, Path(place) / "one")),
            "two processes, write_shard": _timed(
                lambda: _two_processes(texts, Path(place) / "pool", count)
            ),
            **_on_spark(texts, Path(place) / "spark", count),
        }
        sizes = {name: _size(Path(place) / name) for name in ("one", "pool", "spark")}
        counts = {name: _documents(Path(place) / name) for name in sizes}
    one = rows["one process on one core"]["seconds"]
    for row in rows.values():
        row["times as fast as one process"] = round(one / row["seconds"], 2)
    figures = {
        "text MB": options.megabytes,
        "documents": documents,
        "documents found": counts,
        "shards": count,
        "index GB": {name: round(size / 1e9, 3) for name, size in sizes.items()},
        "rows": rows,
    }
    print(json.dumps(figures, indent=1))
    print(save("shard_building", figures, "pyspark", "tantivy"))


def _write_texts(folder: Path, size: int) -> int:
    folder.mkdir()
    content = json.loads((data_root() / "squad/dev-v1.1.json").read_text("utf-8"))["data"]
    sentences = [
        paragraph["context"][start:end]
        for article in content
        for paragraph in article["paragraphs"]
        for start, end in split_sentences(paragraph["context"])
    ]
    rng, written, number = random.Random(0), 0, 0
    for file in range(_FILES):
        ids, texts = [], []
        while written < size * (file + 1) / _FILES:
            chosen = rng.choices(sentences, k=_ARTICLE_SENTENCES)
            groups = [chosen[at : at + 6] for at in range(0, len(chosen), 6)]
            texts.append("\n\n".join(" ".join(group) for group in groups))
            ids.append(f"article {number}")
            written, number = written + len(texts[-1].encode()), number + 1
        table = pa.table({"id": ids, "text": texts})
        pq.write_table(table, folder / f"{file:03d}.parquet", row_group_size=_ROWS_PER_GROUP)
    return number


def _rows(folder: Path, shard: int = 0, shards: int = 1) -> Iterator[tuple[str, str]]:
    """Every row, or those of one file in so many."""
    for path in sorted(folder.glob("*.parquet"))[shard::shards]:
        for batch in pq.ParquetFile(path).iter_batches(500):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _one_process(texts: Path, out: Path) -> None:
    process = get_context("spawn").Process(target=_on_one_core, args=(texts, out))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"The one process ended with exit code {process.exitcode}.")


def _on_one_core(texts: Path, out: Path) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with Corpus.open(out, ranker=None) as corpus:
        corpus.add(_rows(texts))


def _shard(texts: Path, out: Path, number: int, shards: int) -> ShardInfo:
    return write_shard(out, number, _rows(texts, number, shards))


def _two_processes(texts: Path, out: Path, shards: int) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(_shard, texts, out, number, shards) for number in range(shards)]
        finish_shards(out, [task.result() for task in tasks])


def _on_spark(texts: Path, out: Path, shards: int) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    from askline.integrations import spark as on_spark

    started = time.perf_counter()
    session = (
        SparkSession.builder.master("local-cluster[2,1,2048]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.files.openCostInBytes", "0")
        .config("spark.sql.files.maxPartitionBytes", str(2**23))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.range(2).repartition(2).count()
    start_seconds = time.perf_counter() - started
    frame = session.read.parquet(str(texts))
    row = _timed(lambda: on_spark.build_index(frame, out, shards=shards, shuffle=False))
    session.stop()
    return {"two executors of Spark": {**row, "start of Spark, s": round(start_seconds, 1)}}


def _timed(work: Any) -> dict[str, Any]:
    started, cpu = time.perf_counter(), cpu_seconds(os.getpid())
    work()
    seconds, cpu = time.perf_counter() - started, cpu_seconds(os.getpid()) - cpu
    return {"seconds": round(seconds, 1), "CPU s": round(cpu, 1)}


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _documents(folder: Path) -> int:
    with Corpus.open(folder, ranker=None) as corpus:
        assert corpus.ask(_QUESTION).answers
        return corpus.status().documents


if __name__ == "__main__":
    main()
