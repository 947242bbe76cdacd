"""PyTerrier: the transformer in a pipeline and in an experiment."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pyterrier as pt
import pytest

import askline
from askline.integrations.pyterrier import AsklineReranker

from .conftest import QUESTION, TEXTS

# PyTerrier 1.1 uses a keyword that pandas 3.1 deprecates.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
    pytest.mark.filterwarnings("ignore:There are shared pipeline components"),
]


def results() -> pd.DataFrame:
    rows = [
        {"qid": "q1", "query": QUESTION, "docno": f"d{at}", "text": text, "score": -at, "page": at}
        for at, text in enumerate(TEXTS)
    ]
    other = {"qid": "q2", "query": "When did it open?", "score": 1.0, "page": 7}
    rows += [
        {**other, "docno": "e0", "text": "The bridge is long."},
        {**other, "docno": "e1", "text": "It opened in 1932."},
    ]
    return pd.DataFrame(rows)


def test_ranks_are_those_of_rank() -> None:
    found = AsklineReranker().transform(results())
    first = found[found.qid == "q1"].sort_values("rank")
    hits = askline.load().rank(QUESTION, TEXTS)
    assert list(first.docno) == [f"d{hit.index}" for hit in hits]
    assert list(first["rank"]) == list(range(len(TEXTS)))
    assert list(first.page) == [hit.index for hit in hits]
    assert first.score.between(0, 1).all()
    assert list(found[found.qid == "q2"].sort_values("rank").docno) == ["e1", "e0"]


def test_the_frame_of_the_caller_is_not_changed() -> None:
    given = results()
    before = given.copy(deep=True)
    AsklineReranker("jaccard").transform(given)
    pd.testing.assert_frame_equal(given, before)


def test_an_empty_frame_stays_empty() -> None:
    found = AsklineReranker().transform(results().iloc[:0])
    assert len(found) == 0
    assert {"score", "rank"} <= set(found.columns)


def test_it_composes_in_a_pipeline_and_an_experiment() -> None:
    source = pt.Transformer.from_df(results(), uniform=False)
    pipeline = source >> AsklineReranker() % 1
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": [QUESTION, "When did it open?"]})
    assert sorted(pipeline.transform(topics).docno) == ["d2", "e1"]
    qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d2", "e1"], "label": [1, 1]})
    table = pt.Experiment([source, pipeline], topics, qrels, ["recip_rank"])
    before, after = table["recip_rank"]
    assert before < after == 1.0


def test_another_text_field() -> None:
    given = results().rename(columns={"text": "body"})
    found = AsklineReranker("jaccard", text_field="body").transform(given)
    assert found[found.qid == "q1"].sort_values("rank").docno.iloc[0] == "d2"
    with pytest.raises(Exception, match="text"):
        AsklineReranker("jaccard").transform(given)


def test_a_missing_package_names_the_install_command(
    error_without: Callable[[str, str], str],
) -> None:
    message = error_without("pyterrier", "askline.integrations.pyterrier")
    assert "PyTerrier integration needs more packages. Run: " in message
    assert "[pyterrier]" in message


def test_the_docs_run(run_docs: Callable[[str], None]) -> None:
    run_docs("PyTerrier")
