"""Arrow streams: pandas, polars, DuckDB, pyarrow and `datasets`, against `Ranker.rank`."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import datasets
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import askline
from askline import Corpus, InputError
from askline.integrations import common
from askline.integrations.arrow import BatchAsker, BatchRanker, ask_table, rank_table
from askline.rankers.probability import ranking_relevance

ROWS: list[dict[str, Any]] = [
    {
        "id": 10,
        "question": "Who wrote Emma?",
        "documents": ["Emma is a novel.", "It sold well.", "Jane Austen wrote Emma in 1815."],
    },
    {
        "id": 20,
        "question": "How long is the Trans-Siberian Railway?",
        "documents": ["It runs through Siberia.", "It measures 9,289 kilometres.", "", "Trains."],
    },
    {"id": 30, "question": "When did the bridge open?", "documents": ["It opened in 1932."]},
    {"id": 40, "question": "Is there anything?", "documents": []},
]
NEW = ["ranking", "relevance_scores", "best_text", "best_score"]


def expected_orders() -> list[list[int]]:
    ranker = askline.load()
    return [[hit.index for hit in ranker.rank(row["question"], row["documents"])] for row in ROWS]


def with_pandas() -> list[Any]:
    frame = rank_table(pd.DataFrame(ROWS)).read_pandas()
    return [list(order) for order in frame["ranking"]]


def with_polars() -> Any:
    return pl.DataFrame(rank_table(pl.DataFrame(ROWS)))["ranking"].to_list()


def with_duckdb() -> list[Any]:
    connection = duckdb.connect()
    table = pa.Table.from_pylist(ROWS)
    connection.register("requests", table)
    ranked = rank_table(connection.sql("select * from requests order by id")).read_all()
    connection.register("ranked", ranked)
    found = connection.sql("select ranking from ranked order by id").fetchall()
    return [order for (order,) in found]


def with_pyarrow() -> Any:
    return rank_table(pa.Table.from_pylist(ROWS)).read_all()["ranking"].to_pylist()


def with_datasets() -> list[Any]:
    ranked = datasets.Dataset.from_list(ROWS).map(BatchRanker(), batched=True, batch_size=3)
    assert ranked.column_names == ["id", "question", "documents", *NEW]
    return list(ranked["ranking"])


def with_datasets_in_arrow_format() -> list[Any]:
    data = datasets.Dataset.from_list(ROWS).with_format("arrow")
    return list(data.map(BatchRanker(), batched=True).with_format(None)["ranking"])


@pytest.mark.parametrize(
    "kind",
    [
        with_pandas,
        with_polars,
        with_duckdb,
        with_pyarrow,
        with_datasets,
        with_datasets_in_arrow_format,
    ],
)
def test_every_kind_of_table_gives_the_order_of_rank(kind: Callable[[], Any]) -> None:
    assert kind() == expected_orders()


def test_one_process_loads_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []

    def counted(spec: str) -> askline.Ranker:
        loads.append(spec)
        return askline.load(spec)

    monkeypatch.setattr("askline.integrations.common.load", counted)
    monkeypatch.setattr(common, "_rankers", {})
    with ThreadPoolExecutor(4) as pool:
        orders = list(pool.map(lambda kind: kind(), [with_pandas, with_polars, with_pyarrow] * 2))
    assert with_duckdb() == orders[0]
    assert loads == [common.DEFAULT_SPEC]


def test_scores_are_probabilities_and_best_is_the_first() -> None:
    rows = rank_table(pa.Table.from_pylist(ROWS)).read_all().to_pylist()
    ranker = askline.load()
    for row, given in zip(rows, ROWS, strict=True):
        ranking = ranker.trace(given["question"], given["documents"])
        assert row["relevance_scores"] == pytest.approx(ranking_relevance(ranking), abs=1e-5)
        assert all(0 <= score <= 1 for score in row["relevance_scores"])
        if given["documents"]:
            assert row["best_text"] == given["documents"][row["ranking"][0]]
            assert row["best_score"] == row["relevance_scores"][0]
        else:
            assert (row["best_text"], row["best_score"]) == (None, None)


def test_bm25_scores_are_between_0_and_1() -> None:
    rows = rank_table(pa.Table.from_pylist(ROWS), ranker="bm25").read_all().to_pylist()
    assert all(0 <= score <= 1 for row in rows for score in row["relevance_scores"])


def test_the_columns_of_the_caller_survive_and_are_not_changed() -> None:
    frame = pd.DataFrame(ROWS, index=["a", "b", "c", "d"])
    before = frame.copy(deep=True)
    ranked = rank_table(frame, ranker="jaccard").read_pandas()
    pd.testing.assert_frame_equal(frame, before)
    assert list(ranked.index) == ["a", "b", "c", "d"]
    assert list(ranked.columns) == [*frame.columns, *NEW]
    assert list(ranked["id"]) == [10, 20, 30, 40]


STRINGS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
]
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]


@pytest.mark.parametrize("strings", STRINGS, ids=str)
@pytest.mark.parametrize("lists", LISTS, ids=lambda kind: kind.__name__)
def test_all_kinds_of_strings_and_lists(strings: Any, lists: Any) -> None:
    questions = pa.array([row["question"] for row in ROWS], strings)
    documents = pa.array([row["documents"] for row in ROWS], lists(strings))
    table = pa.table({"question": questions, "documents": documents})
    ranked = rank_table(table, ranker="jaccard").read_all()
    plain = rank_table(pa.Table.from_pylist(ROWS), ranker="jaccard").read_all()
    assert ranked.select(NEW).equals(plain.select(NEW))


def test_lists_of_fixed_size() -> None:
    documents = pa.array([["Emma.", "Austen wrote Emma."], None], pa.list_(pa.string(), 2))
    table = pa.table({"question": ["Who wrote Emma?", "Who?"], "documents": documents})
    assert rank_table(table, ranker="jaccard").read_all()["ranking"].to_pylist() == [[1, 0], None]


def test_structs_with_a_text_field() -> None:
    documents = [
        [{"body": "Emma is a novel.", "page": 1}, {"body": "Jane Austen wrote Emma.", "page": 2}],
        [None, {"body": None, "page": 3}],
    ]
    table = pa.table({"question": ["Who wrote Emma?", "Who?"], "documents": documents})
    ranked = rank_table(table, ranker="jaccard", text="body").read_all()
    assert ranked["ranking"].to_pylist() == [[1, 0], [0, 1]]
    assert ranked["best_text"].to_pylist() == ["Jane Austen wrote Emma.", ""]
    assert ranked["documents"].to_pylist() == documents


def test_random_tables_equal_the_same_rows_one_by_one() -> None:
    """Nulls at every level, slices with an offset, and several chunks."""
    rng, ranker = random.Random(7), askline.load("jaccard")
    words = ["emma", "novel", "wrote", "austen", "1815", ""]

    def text() -> str | None:
        return rng.choice([None, " ".join(rng.choices(words, k=rng.randrange(4)))])

    rows = [
        {
            "question": text(),
            "documents": rng.choice([None, [text() for _ in range(rng.randrange(5))]]),
        }
        for _ in range(300)
    ]
    schema = pa.schema([("question", pa.string()), ("documents", pa.list_(pa.string()))])
    table = pa.concat_tables(
        pa.Table.from_pylist(rows[first : first + 77], schema).slice(3)
        for first in range(0, 300, 77)
    )
    given = table.to_pylist()
    found = rank_table(table, ranker="jaccard", top_k=3).read_all().to_pylist()
    assert len(found) == len(given)
    for before, after in zip(given, found, strict=True):
        question, documents = before["question"], before["documents"]
        if question is None or not question.strip() or documents is None:
            assert [after[name] for name in NEW] == [None] * 4
        else:
            hits = ranker.rank(question, [one or "" for one in documents], top_k=3)
            assert after["ranking"] == [hit.index for hit in hits]


def test_a_stream_is_read_as_it_is_needed() -> None:
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(1_000):
            read.append(number)
            yield pa.RecordBatch.from_pylist(ROWS)

    schema = pa.RecordBatch.from_pylist(ROWS).schema
    source = pa.RecordBatchReader.from_batches(schema, batches())
    ranked = rank_table(source, ranker="jaccard")
    assert read == []
    ranked.read_next_batch()
    assert len(read) <= 2


def test_a_large_chunk_comes_back_in_small_batches() -> None:
    table = pa.table({"question": ["Who?"] * 5_000, "documents": [["a", "b"]] * 5_000})
    assert max(batch.num_rows for batch in rank_table(table, ranker="rr")) <= 1_024


def test_the_batch_function_fits_mapinarrow() -> None:
    """Spark pickles the function, sends it to its workers, and gives it an iterator."""
    function = BatchRanker("jaccard", top_k=1)
    batch = pa.RecordBatch.from_pylist(ROWS)
    copy = pickle.loads(pickle.dumps(function.map))
    [ranked] = copy(iter([batch]))
    assert ranked.schema == function.schema(batch.schema)
    assert ranked.column("ranking").to_pylist() == [[2], [0], [0], []]


def test_a_process_pool_ranks_with_the_pickled_function() -> None:
    batches = [pa.RecordBatch.from_pylist(ROWS)] * 3
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for ranked in pool.map(BatchRanker(), batches):
            assert ranked.column("ranking").to_pylist() == expected_orders()


def test_a_forked_process_loads_its_own_model() -> None:
    """The threads of the parent's model do not exist in a child."""
    ranked = rank_table(pa.Table.from_pylist(ROWS)).read_all()
    data = datasets.Dataset.from_list(ROWS * 2)
    forked = data.map(BatchRanker(), batched=True, num_proc=2)
    assert list(forked["ranking"]) == ranked["ranking"].to_pylist() * 2


def test_a_deadline_is_for_each_row() -> None:
    table = pa.Table.from_pylist(ROWS)
    ranked = rank_table(table, deadline_ms=0.001).read_all().to_pylist()
    for row in ranked:
        assert sorted(row["ranking"]) == list(range(len(row["documents"])))
        assert all(0 <= score <= 1 for score in row["relevance_scores"])


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"q": ["a"], "documents": [["b"]]}, {}, "must have a column 'question', got 'q', 'doc"),
        ({"question": [1], "documents": [["b"]]}, {}, "'question' must hold strings, got int64"),
        ({"question": ["a"], "documents": ["b"]}, {}, "must hold lists of strings, or of structs"),
        ({"question": ["a"], "documents": [[1]]}, {}, r"got list<\w+: int64>"),
        (
            {"question": ["a"], "documents": [[{"body": "b"}]]},
            {},
            "field 'text', got 'body'",
        ),
        ({"question": ["a"], "documents": [["b"]], "ranking": [1]}, {}, "prefix='askline_'"),
        ({"question": ["a"], "documents": [["b"]]}, {"top_k": 0}, "top_k must be a positive"),
        ({"question": ["a"], "documents": [["b"]]}, {"ranker": "jacard"}, "Did you mean 'jaccard'"),
    ],
)
def test_wrong_input_is_refused(
    columns: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        rank_table(pa.table(columns), **options).read_all()


def test_data_without_a_stream_is_refused() -> None:
    with pytest.raises(InputError, match="must have __arrow_c_stream__.*got list"):
        rank_table(ROWS)
    with pytest.raises(InputError, match="RecordBatch or Table.*got list"):
        BatchRanker()(ROWS)


def test_a_prefix_lets_two_rankers_stand_side_by_side() -> None:
    table = pa.Table.from_pylist(ROWS)
    first = rank_table(table, ranker="jaccard", prefix="jaccard_")
    both = rank_table(first, ranker="bm25", prefix="bm25_").read_all()
    assert {"jaccard_best_text", "bm25_best_text"} <= set(both.column_names)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    with Corpus.open(folder) as corpus:
        corpus.add_texts(TEXTS)
    return folder


TEXTS = {
    "emma": "Emma is a novel. Jane Austen wrote Emma in 1815. It sold well.",
    "bridge": "The bridge is long. It opened in 1932.",
}


def test_questions_are_answered_from_a_corpus(index: Path) -> None:
    questions = ["Who wrote Emma?", None, "What is the price of zinc in Zanzibar?"]
    table = pl.DataFrame({"question": questions, "n": [1, 2, 3]})
    first, second, third = ask_table(table, index).read_all().to_pylist()
    best = first["answers"][0]
    assert best["text"] == "Jane Austen wrote Emma in 1815."
    assert TEXTS[best["document"]][best["start"] : best["end"]] == best["text"]
    assert best["phrase"] == "Jane Austen"
    assert 0.5 < best["relevance_score"] <= 1
    assert (first["answered"], first["n"]) == (True, 1)
    assert (second["answers"], second["answered"]) == (None, None)
    assert third["answered"] is False


def test_the_batch_function_over_a_corpus_pickles_by_its_folder(index: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"question": ["Who wrote Emma?"]})
    function = BatchAsker(index, ranker=None, top_k=1)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        [there] = pool.map(function, [batch])
    assert there.equals(function(batch))
    [answers] = there.column("answers").to_pylist()
    assert [answer["document"] for answer in answers] == ["emma"]
    assert 0 <= answers[0]["relevance_score"] <= 1


def test_a_missing_package_names_the_install_command() -> None:
    code = "import sys; sys.modules['pyarrow'] = None\nimport askline.integrations.arrow"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtraError: The Arrow integration needs more packages. Run: " in (done.stderr)
    assert "[arrow]" in done.stderr


def test_the_docs_run(run_docs: Callable[[str], None]) -> None:
    run_docs("Arrow: pandas, polars, DuckDB, datasets")
