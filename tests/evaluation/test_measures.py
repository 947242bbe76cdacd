from __future__ import annotations

import sys

import numpy as np
import pytest

from askline.errors import InputError, MissingExtraError, UnknownNameError
from askline.evaluation import Measure, RankedList, Run, parse_measure, parse_measures, score_run

EVERY_MEASURE = ("MAP", "MRR", "P@1", "P@2", "R@1", "R@2", "nDCG@2", "Success@1", "Success@2")


def run_of(**rankings: str) -> Run:
    """`run_of(q="bac")`: candidate b first, then a, then c; all scores equal."""
    return Run(
        "hand", {q: RankedList(tuple(ids), (0.0,) * len(ids)) for q, ids in rankings.items()}
    )


@pytest.mark.parametrize(
    ("name", "trec_name"),
    [
        ("MAP", "map"),
        ("MRR", "recip_rank"),
        ("P@1", "P_1"),
        ("R@100", "recall_100"),
        ("nDCG@10", "ndcg_cut_10"),
        ("Success@20", "success_20"),
    ],
)
def test_parse_measure_accepts_each_form(name: str, trec_name: str) -> None:
    assert parse_measure(name) == Measure(name, trec_name)
    assert str(parse_measure(name)) == name


def test_parse_measure_normalizes_the_cutoff() -> None:
    assert parse_measure("P@010") == parse_measure("P@10")


@pytest.mark.parametrize(
    "name", ["", "P", "P@", "P@x", "P@1.5", "P@１", "MAP@10", "AP", "@3", "map"]
)
def test_unknown_measure_lists_the_known_names(name: str) -> None:
    forms = r"Known: MAP, MRR, P@k, R@k, Success@k, nDCG@k\."
    with pytest.raises(UnknownNameError, match=forms):
        parse_measure(name)


def test_unknown_measure_suggests_the_closest_name() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'nDCG@k'"):
        parse_measure("NDCG@10")


@pytest.mark.parametrize("k", ["0", "-1", "1000000000", "9" * 40])
def test_parse_measure_refuses_k_out_of_range(k: str) -> None:
    with pytest.raises(InputError, match=f"k must be from 1 to 999999999, got {k} in"):
        parse_measure(f"P@{k}")


def test_parse_measures_accepts_text_or_list_and_drops_repeats() -> None:
    names = [measure.name for measure in parse_measures("MAP, P@1,MAP")]
    assert names == ["MAP", "P@1"]
    assert parse_measures(["MAP", "P@1"]) == parse_measures("MAP,P@1")


@pytest.mark.parametrize("names", [[], ()], ids=["list", "tuple"])
def test_parse_measures_needs_at_least_one(names: list[str]) -> None:
    with pytest.raises(InputError, match="at least one measure"):
        parse_measures(names)


def test_score_run_of_a_small_example() -> None:
    values = score_run(run_of(q="xaybz"), {"q": {"a": 1, "b": 1, "z": 0}}, measures=EVERY_MEASURE)
    discount = 1 / np.log2(3)
    expected = {
        "MAP": (1 / 2 + 2 / 4) / 2,
        "MRR": 1 / 2,
        "P@1": 0,
        "P@2": 1 / 2,
        "R@1": 0,
        "R@2": 1 / 2,
        "nDCG@2": discount / (1 + discount),
        "Success@1": 0,
        "Success@2": 1,
    }
    assert {name: value.tolist() for name, value in values.items()} == {
        name: [pytest.approx(value)] for name, value in expected.items()
    }


def test_score_run_uses_the_order_not_the_ids() -> None:
    # trec_eval alone would put the last id first among equal scores.
    best, worst = run_of(q="ab"), run_of(q="ba")
    assert score_run(best, {"q": {"a": 1}}, measures="P@1")["P@1"].tolist() == [1]
    assert score_run(worst, {"q": {"a": 1}}, measures="P@1")["P@1"].tolist() == [0]


def test_score_run_uses_the_order_not_the_scores() -> None:
    # Scores of another stage, and a difference that float32 cannot hold.
    run = Run("hand", {"q": RankedList(("a", "b", "c"), (1.0, 1.0 - 1e-12, 7.0))})
    assert score_run(run, {"q": {"a": 1}}, measures="MRR")["MRR"].tolist() == [1]


def test_score_run_follows_the_qrels_and_counts_missing_questions_as_zero() -> None:
    qrels = {"unranked": {"a": 1}, "two": {"b": 1}, "no answer": {"a": 0}, "one": {"a": 1}}
    run = run_of(one="ab", two="ab", unjudged="ab")
    assert score_run(run, qrels, measures="MRR")["MRR"].tolist() == [0, 0.5, 0, 1]


def test_score_run_counts_unranked_answers() -> None:
    values = score_run(run_of(q="ab"), {"q": {"a": 1, "far": 1}}, measures="MAP,R@2,MRR")
    assert {name: value.tolist() for name, value in values.items()} == {
        "MAP": [0.5],
        "R@2": [0.5],
        "MRR": [1],
    }


@pytest.mark.parametrize("qrels", [{}, {"q": {}}, {"q": {"a": 0}}], ids=["none", "empty", "zero"])
def test_score_run_without_any_answer_is_zero(qrels: dict[str, dict[str, int]]) -> None:
    assert score_run(run_of(q="ab"), qrels, measures="MAP")["MAP"].tolist() == [0.0] * len(qrels)


def test_score_run_accepts_any_text_as_an_id() -> None:
    ids = ("a\0b", "a b", "", "\ud800", "a\0c")
    run = Run("hand", {"\0": RankedList(ids, (0.0,) * 5), "": RankedList(ids, (0.0,) * 5)})
    qrels = {"\0": {"a\0c": 1}, "": {"\ud800": 1}}
    assert score_run(run, qrels, measures="MRR")["MRR"].tolist() == [1 / 5, 1 / 4]


def test_score_run_uses_grades_and_ignores_negative_ones() -> None:
    run = run_of(q="abc")
    graded = score_run(run, {"q": {"a": 1, "c": 2, "b": -1}}, measures="nDCG@3,P@3")
    half = 1 / np.log2(3)
    assert graded["nDCG@3"][0] == pytest.approx((1 + 2 / 2) / (2 + half))
    assert graded["P@3"][0] == pytest.approx(2 / 3)


def test_score_run_without_pytrec_eval_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytrec_eval", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[eval\]'"):
        score_run(run_of(q="ab"), {"q": {"a": 1}})
