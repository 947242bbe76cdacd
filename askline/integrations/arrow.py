"""
Rank and answer in Arrow record batches: pandas, polars, DuckDB, pyarrow, `datasets` and Spark.

    >>> import pyarrow as pa
    >>> table = pa.table({"question": ["Who wrote Emma?"],
    ...                   "documents": [["Emma is a novel.", "Jane Austen wrote Emma."]]})
    >>> rank_table(table).read_all()["best_text"].to_pylist()
    ['Jane Austen wrote Emma.']

`BatchRanker` and `BatchAsker` are functions from a record batch to a record batch with more
columns. They pickle by their options and load their ranker once per process. `rank_table` and
`ask_table` apply them to a stream: they take everything that has `__arrow_c_stream__`, and what
they return has it too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..corpus.corpus import Corpus
from ..corpus.results import Answer, Answers
from ..errors import InputError, require_extra
from ..rankers.base import Ranker
from ..rankers.probability import ranking_relevance
from ..rankers.requests import check_top_k
from ..types import Ranking
from .common import DEFAULT_SPEC, answer_relevance, loaded_corpus, loaded_ranker

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = require_extra("pyarrow", purpose="The Arrow integration", extra="arrow")
    pc = require_extra("pyarrow.compute", purpose="The Arrow integration", extra="arrow")

__all__ = [
    "BatchAsker",
    "BatchRanker",
    "ask_table",
    "check_columns",
    "rank_table",
    "request_rows",
]

_ROWS_RANKED_TOGETHER = 32  # requests that share a batch of the encoder
_ROWS_PER_BATCH = 1_024  # of a stream: results appear while a large table is ranked
_ANSWER = pa.struct(
    [
        pa.field("text", pa.string()),
        pa.field("relevance_score", pa.float64()),
        pa.field("phrase", pa.string()),
        pa.field("document", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("place", pa.string()),
        pa.field("heading", pa.string()),
    ]
)


@dataclass(frozen=True)
class _BatchFunction:
    """What the two batch functions share: new columns at the end of a batch."""

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the output for that schema of the input; InputError if it does not fit."""
        self._check(schema)
        new = self._fields()
        for field in new:
            if field.name in schema.names:
                raise InputError(
                    f"The input has a column {field.name!r} already. "
                    "Rename it, or give a prefix for the new columns: prefix='askline_'."
                )
        return pa.schema([*schema, *new], schema.metadata)

    def map(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Apply the function to each batch; the shape that Spark's `mapInArrow` takes."""
        for batch in batches:
            yield self._batch(batch)

    def __call__(self, batch: Any) -> Any:
        """
        Return the batch with the new columns: a RecordBatch or a Table, as it was given.

        From a mapping of lists, which `datasets.map(batched=True)` gives, the new columns alone.
        """
        if isinstance(batch, pa.RecordBatch):
            return self._batch(batch)
        if isinstance(batch, pa.Table):
            schema = self.schema(batch.schema)
            return pa.Table.from_batches(map(self._batch, batch.to_batches()), schema)
        if isinstance(batch, Mapping):
            columns = self._arguments()
            given = pa.table({name: _plain_list(batch, name) for name in columns})
            return self(given).drop_columns(columns).to_pydict()
        raise InputError(
            "A batch must be a pyarrow RecordBatch or Table, or a mapping of lists, "
            f"got {type(batch).__name__}. rank_table and ask_table take other tables."
        )

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        schema = self.schema(batch.schema)
        parts = [
            self._columns(batch.slice(first, _ROWS_RANKED_TOGETHER))
            for first in range(0, batch.num_rows, _ROWS_RANKED_TOGETHER)
        ]
        new = [
            pa.array([value for part in parts for value in part[at]], field.type)
            for at, field in enumerate(self._fields())
        ]
        return pa.RecordBatch.from_arrays([*batch.columns, *new], schema=schema)

    def _check(self, schema: pa.Schema) -> None:
        raise NotImplementedError

    def _arguments(self) -> list[str]:
        """The names of the columns that are read."""
        raise NotImplementedError

    def _fields(self) -> list[pa.Field]:
        raise NotImplementedError

    def _columns(self, batch: pa.RecordBatch) -> Sequence[Sequence[Any]]:
        """The values of the new columns."""
        raise NotImplementedError


@dataclass(frozen=True)
class BatchRanker(_BatchFunction):
    """
    Rank the documents of each row for the question of the row.

    New columns: `ranking`, the positions of the documents, best first; `relevance_scores`, from 0
    to 1 in the same order; `best_text` and `best_score` of the first. The order is that of `rank`.

    The question is a column of strings. The documents are a column of lists of strings, or of lists
    of structs with the text in the field `text`; every kind of Arrow list and string will do. A
    null or blank question and a null list give nulls. A null document counts as an empty text.

    `ranker` is a spec text, which is loaded once per process, or a Ranker. `deadline_ms` is for
    each row.
    """

    ranker: str | Ranker = DEFAULT_SPEC
    question: str = "question"
    documents: str = "documents"
    text: str = "text"
    top_k: int | None = None
    deadline_ms: float | None = None
    prefix: str = ""

    def __post_init__(self) -> None:
        check_top_k(self.top_k)

    def _arguments(self) -> list[str]:
        return [self.question, self.documents]

    def _check(self, schema: pa.Schema) -> None:
        check_columns(schema, self.question, self.documents, self.text)

    def _fields(self) -> list[pa.Field]:
        return [
            pa.field(f"{self.prefix}ranking", pa.list_(pa.int32())),
            pa.field(f"{self.prefix}relevance_scores", pa.list_(pa.float64())),
            pa.field(f"{self.prefix}best_text", pa.string()),
            pa.field(f"{self.prefix}best_score", pa.float64()),
        ]

    def _columns(self, batch: pa.RecordBatch) -> Sequence[Sequence[Any]]:
        requests = {
            row: (question, texts)
            for row, (question, texts) in enumerate(
                request_rows(batch, self.question, self.documents, self.text)
            )
            if question and question.strip() and texts is not None
        }
        found = dict(zip(requests, self._rank(list(requests.values())), strict=True))
        values = [_ranked_values(found.get(row), self.top_k) for row in range(batch.num_rows)]
        return list(zip(*values, strict=True))

    def _rank(self, requests: Sequence[tuple[str, Sequence[str]]]) -> list[Ranking]:
        ranker = loaded_ranker(self.ranker)
        if self.deadline_ms is None:
            return ranker.trace_many(requests)
        return [ranker.trace(*request, deadline_ms=self.deadline_ms) for request in requests]


@dataclass(frozen=True)
class BatchAsker(_BatchFunction):
    """
    Answer the question of each row from a corpus.

    New columns: `answers`, a list of structs, best first, each with its text, relevance score,
    phrase, document, offsets and place; `answered`, whether one of them reaches the threshold. A
    null or blank question gives nulls.

    `corpus` is the folder of an index, which is opened once per process, or a Corpus. `ranker` is
    for a folder: a spec text, a Ranker, or None for the order of the retrieval.
    """

    corpus: str | os.PathLike[str] | Corpus
    ranker: str | Ranker | None = DEFAULT_SPEC
    question: str = "question"
    top_k: int = 5
    threshold: float | None = None
    prefix: str = ""

    def __post_init__(self) -> None:
        check_top_k(self.top_k)

    def _arguments(self) -> list[str]:
        return [self.question]

    def _check(self, schema: pa.Schema) -> None:
        _check_strings(schema, self.question)

    def _fields(self) -> list[pa.Field]:
        return [
            pa.field(f"{self.prefix}answers", pa.list_(_ANSWER)),
            pa.field(f"{self.prefix}answered", pa.bool_()),
        ]

    def _columns(self, batch: pa.RecordBatch) -> Sequence[Sequence[Any]]:
        corpus = loaded_corpus(self.corpus, self.ranker)
        found: list[Answers | None] = [
            corpus.ask(question, top_k=self.top_k, threshold=self.threshold)
            if question and question.strip()
            else None
            for question in _strings(batch.column(self.question))
        ]
        return (
            [answers and [_answer_struct(answer) for answer in answers] for answers in found],
            [answers and answers.answered for answers in found],
        )


def rank_table(
    data: Any,
    *,
    ranker: str | Ranker = DEFAULT_SPEC,
    question: str = "question",
    documents: str = "documents",
    text: str = "text",
    top_k: int | None = None,
    deadline_ms: float | None = None,
    prefix: str = "",
) -> pa.RecordBatchReader:
    """
    Rank the documents of each row: the columns of `BatchRanker` are added to those of `data`.

    `data` is anything with `__arrow_c_stream__`: a DataFrame of pandas or polars, a relation of
    DuckDB, a table or a reader of pyarrow. It is read as a stream, and is not changed. The rows are
    ranked while the result is read: `rank_table(frame).read_pandas()`,
    `polars.DataFrame(rank_table(frame))`, `rank_table(relation).read_all()`.
    """
    function = BatchRanker(ranker, question, documents, text, top_k, deadline_ms, prefix)
    return _apply(function, data)


def ask_table(
    data: Any,
    corpus: str | os.PathLike[str] | Corpus,
    *,
    ranker: str | Ranker | None = DEFAULT_SPEC,
    question: str = "question",
    top_k: int = 5,
    threshold: float | None = None,
    prefix: str = "",
) -> pa.RecordBatchReader:
    """Answer the question of each row from a corpus, as `rank_table`, by `BatchAsker`."""
    return _apply(BatchAsker(corpus, ranker, question, top_k, threshold, prefix), data)


def check_columns(schema: pa.Schema, question: str, documents: str, text: str = "text") -> None:
    """Raise InputError if a schema has no column of questions or of documents."""
    _check_strings(schema, question)
    kind = _column_type(schema, documents)
    inner = kind.value_type if _is_list(kind) else None
    if inner is not None and pa.types.is_struct(inner):
        at = inner.get_field_index(text)
        if at < 0:
            known = ", ".join(repr(field.name) for field in inner) or "no field"
            raise InputError(
                f"The structs of column {documents!r} must have their text in the field "
                f"{text!r}, got {known}. Name the field: text='body'."
            )
        inner = inner.field(at).type
    if not pa.types.is_null(kind) and (inner is None or not _is_text(inner)):
        raise InputError(
            f"Column {documents!r} must hold lists of strings, or of structs with a "
            f"string field {text!r}, got {kind}."
        )


def request_rows(
    batch: pa.RecordBatch, question: str, documents: str, text: str = "text"
) -> list[tuple[str | None, list[str] | None]]:
    """The question and the texts of each row."""
    questions = _strings(batch.column(question))
    return list(zip(questions, _text_lists(batch.column(documents), text), strict=True))


def _apply(function: _BatchFunction, data: Any) -> pa.RecordBatchReader:
    if not hasattr(data, "__arrow_c_stream__"):
        raise InputError(
            "The data must have __arrow_c_stream__, as the tables of pandas, polars, DuckDB and "
            f"pyarrow have, got {type(data).__name__}."
        )
    reader = pa.RecordBatchReader.from_stream(data)
    schema = function.schema(reader.schema)
    return pa.RecordBatchReader.from_batches(schema, function.map(_small_batches(reader)))


def _small_batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        for first in range(0, batch.num_rows, _ROWS_PER_BATCH):
            yield batch.slice(first, _ROWS_PER_BATCH)


def _ranked_values(ranking: Ranking | None, top_k: int | None) -> tuple[Any, Any, Any, Any]:
    if ranking is None:
        return None, None, None, None
    order = [hit.index for hit in ranking.hits[:top_k]]
    scores = ranking_relevance(ranking)[:top_k]
    if not order:
        return order, scores, None, None
    return order, scores, ranking.hits[0].text, scores[0]


def _answer_struct(answer: Answer) -> dict[str, Any]:
    return {
        "text": answer.text,
        "relevance_score": answer_relevance(answer),
        "phrase": answer.phrase and answer.phrase.text,
        "document": answer.document,
        "start": answer.start,
        "end": answer.end,
        "place": answer.place,
        "heading": answer.heading,
    }


def _plain_list(batch: Mapping[str, Any], name: str) -> Any:
    if name not in batch:
        raise InputError(_missing_column(name, list(batch)))
    return batch[name]


def _missing_column(name: str, known: Sequence[str]) -> str:
    names = ", ".join(map(repr, known)) or "no column"
    return f"The input must have a column {name!r}, got {names}."


def _column_type(schema: pa.Schema, name: str) -> pa.DataType:
    if schema.names.count(name) != 1:
        raise InputError(_missing_column(name, schema.names))
    return schema.field(name).type


def _check_strings(schema: pa.Schema, name: str) -> None:
    kind = _column_type(schema, name)
    if not _is_text(kind):
        raise InputError(f"Column {name!r} must hold strings, got {kind}.")


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return pa.types.is_null(kind) or any(test(kind) for test in tests)


def _is_list(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_fixed_size_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
    )
    return any(test(kind) for test in tests)


def _strings(column: pa.Array) -> list[str | None]:
    values: list[str | None] = column.to_pylist()
    return values


def _text_lists(column: pa.Array, field: str) -> list[list[str] | None]:
    """The texts of each row. Only the text of a struct becomes a Python object."""
    if pa.types.is_null(column.type):
        return [None] * len(column)
    flat = column.flatten()
    if pa.types.is_struct(flat.type):
        flat = pc.struct_field(flat, field)
    texts = iter([text or "" for text in _strings(flat)])
    return [
        None if length is None else [next(texts) for _ in range(length)]
        for length in pc.list_value_length(column).to_pylist()
    ]
