"""
Rank the requests of a Parquet file into another Parquet file, with little memory.

A run can be killed at any time. Finished rows are in parts, files in a folder beside the output,
and the next run with the same input and options goes on after the last part. At the end the parts
are joined to the output file, which appears as a whole, with each row of the input once and in the
order of the input.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpus.lock import BusyError, writer_lock
from ..errors import InputError, require_extra
from ..text.atomic_write import atomic_write
from .arrow import BatchRanker, check_columns, request_rows

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa = require_extra("pyarrow", purpose="Reading Parquet files", extra="arrow")
    pq = require_extra("pyarrow.parquet", purpose="Reading Parquet files", extra="arrow")

__all__ = ["ParquetRun", "read_requests"]

_PARTS_SUFFIX = ".parts"
_RUN_NAME = "run.json"
_BATCH_ROWS = 64
_PART_BYTES = 32 << 20
_ROW_GROUP_BYTES = 64 << 20
_ROW_GROUP_ROWS = 100_000


def read_requests(
    path: str | os.PathLike[str], *, question: str, documents: str
) -> Iterator[tuple[str, list[str]]]:
    """The question and the documents of each row; InputError at a row without one of them."""
    with _open(path) as file:
        check_columns(file.schema_arrow, question, documents)
        batches = file.iter_batches(_BATCH_ROWS, columns=[question, documents])
        rows = (row for batch in batches for row in request_rows(batch, question, documents))
        for number, (text, texts) in enumerate(rows, start=1):
            if text is None or texts is None:
                missing = question if text is None else documents
                raise InputError(f"{path}: row {number} must have a {missing!r}, got null.")
            yield text, texts


@dataclass(frozen=True)
class ParquetRun:
    """Ranks the rows of one Parquet file into another."""

    source: Path
    target: Path
    ranker: BatchRanker
    part_seconds: float = 10.0
    """A part is written when so many seconds have passed: the work that a kill can cost."""

    @property
    def parts(self) -> Path:
        """The folder of the parts; it is removed at the end."""
        return self.target.with_name(self.target.name + _PARTS_SUFFIX)

    def rows(self) -> tuple[int, int]:
        """The number of rows that an earlier run has finished, and of all rows."""
        with _open(self.source) as file:
            self.ranker.schema(file.schema_arrow)
            total: int = file.metadata.num_rows
            done = self._finished() if self._matches(file) else 0
        return done, total

    def run(self, on_row: Callable[[], None] | None = None) -> None:
        """Rank the rows that are not finished, and write the output; `on_row` is called per row."""
        with _open(self.source) as file:
            schema = self.ranker.schema(file.schema_arrow)
            self.parts.mkdir(parents=True, exist_ok=True)
            try:
                with writer_lock(self.parts):
                    self._prepare(file)
                    self._rank(file, schema, on_row)
                    self._join(schema, file.metadata.num_rows)
                    # Parts without this description are of no run, and are not used.
                    (self.parts / _RUN_NAME).unlink()
            except BusyError as error:
                raise InputError(
                    f"Another process is writing {self.target}. Wait for it, or choose another "
                    "output file."
                ) from error
        shutil.rmtree(self.parts, ignore_errors=True)

    def _prepare(self, file: pq.ParquetFile) -> None:
        if self._matches(file):
            return
        for stale in self.parts.glob("rows-*.parquet"):
            stale.unlink()
        with atomic_write(self.parts / _RUN_NAME) as stream:
            stream.write(json.dumps(self._description(file), indent=1).encode())

    def _matches(self, file: pq.ParquetFile) -> bool:
        """Whether there are parts of this run; InputError if they are of another one."""
        path = self.parts / _RUN_NAME
        if not path.exists():
            return False
        there, here = json.loads(path.read_text("utf-8")), self._description(file)
        for name, value in here.items():
            if there.get(name) != value:
                raise InputError(
                    f"{self.parts} holds an unfinished run with {name} {there.get(name)!r}, got "
                    f"{value!r}. Use the same input and options, or delete the folder."
                )
        return True

    def _description(self, file: pq.ParquetFile) -> dict[str, Any]:
        """What must not change between a run and its continuation."""
        options = {each.name: getattr(self.ranker, each.name) for each in fields(self.ranker)}
        state = self.source.stat()
        schema = hashlib.sha256(str(file.schema_arrow).encode()).hexdigest()
        return {
            **options,
            "ranker": str(self.ranker.ranker),
            "input": [state.st_size, state.st_mtime_ns, file.metadata.num_rows, schema],
        }

    def _finished(self) -> int:
        """The number of rows in parts that follow each other from the first row on."""
        done = 0
        while (path := self._part(done)).exists():
            done += pq.read_metadata(path).num_rows
        return done

    def _part(self, first_row: int) -> Path:
        return self.parts / f"rows-{first_row:012}.parquet"

    def _rank(
        self, file: pq.ParquetFile, schema: pa.Schema, on_row: Callable[[], None] | None
    ) -> None:
        first = self._finished()
        ready: list[pa.RecordBatch] = []
        due = time.monotonic() + self.part_seconds
        for batch in _batches(file, first):
            ready.append(self.ranker(batch))
            if on_row is not None:
                for _ in range(batch.num_rows):
                    on_row()
            size = sum(each.nbytes for each in ready)
            if time.monotonic() >= due or size >= _PART_BYTES:
                first = self._write_part(first, ready, schema)
                ready, due = [], time.monotonic() + self.part_seconds
        if ready:
            self._write_part(first, ready, schema)

    def _write_part(self, first: int, ready: list[pa.RecordBatch], schema: pa.Schema) -> int:
        table = pa.Table.from_batches(ready, schema)
        with atomic_write(self._part(first)) as stream:
            pq.write_table(table, stream)
        return first + int(table.num_rows)

    def _join(self, schema: pa.Schema, rows: int) -> None:
        done = 0
        with atomic_write(self.target) as stream, pq.ParquetWriter(stream, schema) as writer:
            group: list[pa.Table] = []
            while done < rows:
                with pq.ParquetFile(self._part(done)) as part:
                    table = part.read()
                done += table.num_rows
                group.append(table)
                size = sum(each.nbytes for each in group)
                count = sum(each.num_rows for each in group)
                if size >= _ROW_GROUP_BYTES or count >= _ROW_GROUP_ROWS or done == rows:
                    writer.write_table(pa.concat_tables(group), row_group_size=_ROW_GROUP_ROWS)
                    group = []


def _open(path: str | os.PathLike[str]) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} must be a Parquet file: {error}.") from error


def _batches(file: pq.ParquetFile, first_row: int) -> Iterator[pa.RecordBatch]:
    """The rows from `first_row` on; row groups before it are not read."""
    start = 0
    for number in range(file.metadata.num_row_groups):
        count = file.metadata.row_group(number).num_rows
        skip = max(0, first_row - start)
        start += count
        if skip >= count:
            continue
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=[number]):
            if skip < batch.num_rows:
                yield batch.slice(skip)
            skip = max(0, skip - batch.num_rows)
