from __future__ import annotations

import sys
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import InputError, MissingExtraError, UnknownNameError
from askline.evaluation import (
    Measure,
    RankedList,
    Run,
    exact_match,
    f1,
    normalize_phrase,
    parse_measure,
    parse_measures,
    score_phrases,
    score_run,
)
from askline.evaluation.measures import Language

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


@pytest.mark.parametrize(
    ("language", "phrase", "normal"),
    [
        ("en", "The  Old\tMill.", "old mill"),
        ("en", "an apple a day", "apple day"),
        ("en", "Theatre of Anhalt", "theatre of anhalt"),
        ("en", "U.S. $5-6", "us 56"),
        ("en", "“quoted”", "“quoted”"),
        ("en", "le Havre", "le havre"),
        ("en", "the", ""),
        ("fr", "L'eau de la Seine", "eau de seine"),
        ("fr", "l’Hôtel des Invalides", "hôtel invalides"),
        ("fr", "au musée du Louvre", "musée louvre"),
        ("fr", "« Les Misérables »", "misérables"),
        ("fr", "aujourd'hui", "aujourdhui"),
        ("fr", "d'Orléans", "dorléans"),
        ("fr", "une lampe, un lit", "lampe lit"),
        ("fr", "là-bas", "làbas"),
        ("fr", "l'e\u0301cole", "école"),
        ("fr", "the a", "the a"),
        ("fr", "", ""),
    ],
)
def test_normalize_phrase(language: Language, phrase: str, normal: str) -> None:
    assert normalize_phrase(phrase, language=language) == normal


@pytest.mark.parametrize(
    ("language", "prediction", "golds", "exact", "overlap"),
    [
        ("en", "the red fox", ["Red fox!"], 1, 1),
        ("en", "a quick red fox", ["the red fox"], 0, 2 * 2 / (3 + 2)),
        ("en", "blue whale", ["red fox"], 0, 0),
        ("en", "fox", ["red fox", "fox"], 1, 1),
        ("en", "red red fox", ["red fox fox"], 0, 2 * 2 / 6),
        ("en", "fox red", ["red fox"], 0, 1),
        ("en", "", [], 1, 1),
        ("en", "fox", [], 0, 0),
        ("en", "", ["fox"], 0, 0),
        ("en", "the", [], 1, 1),
        ("en", "fox", ["the", "fox"], 1, 1),
        ("en", "", ["the", "fox"], 0, 0),
        ("en", "an", ["the"], 1, 1),
        ("fr", "l'Académie", ["Académie"], 1, 1),
        ("fr", "la rivière d’argent", ["une rivière"], 0, 2 * 1 / (2 + 1)),
        ("fr", "du sel", ["des sels"], 0, 0),
    ],
    ids=[
        "articles and marks",
        "part",
        "nothing shared",
        "best gold",
        "repeated tokens",
        "order",
        "no answer, none said",
        "no answer, one said",
        "answer, none said",
        "said nothing but an article",
        "empty gold left out",
        "empty gold is no answer",
        "only empty golds",
        "fr elision",
        "fr part",
        "fr plural",
    ],
)
def test_exact_match_and_f1_of_examples(
    language: Language, prediction: str, golds: list[str], exact: float, overlap: float
) -> None:
    assert exact_match(prediction, golds, language=language) == exact
    assert f1(prediction, golds, language=language) == pytest.approx(overlap)


@given(
    st.text(max_size=20), st.lists(st.text(max_size=20), max_size=3), st.sampled_from(["en", "fr"])
)
def test_f1_is_a_fraction_and_at_least_exact_match(
    prediction: str, golds: list[str], language: Language
) -> None:
    assert (
        exact_match(prediction, golds, language=language)
        <= f1(prediction, golds, language=language)
        <= 1
    )


def test_score_phrases_reports_percent() -> None:
    golds = {"q1": ["red fox"], "q2": [], "q3": ["owl"]}
    scores = score_phrases({"q1": "the fox", "q2": "", "q3": "", "extra": "x"}, golds)
    assert scores.exact_match.tolist() == [0, 1, 0]
    assert scores.f1.tolist() == [pytest.approx(2 / 3), 1, 0]
    assert scores.percent == {"EM": pytest.approx(100 / 3), "F1": pytest.approx(500 / 9)}


def test_score_phrases_needs_a_prediction_per_question() -> None:
    with pytest.raises(InputError, match=r"got none for 1: 'q2'\. Predict \"\""):
        score_phrases({"q1": "fox"}, {"q1": ["fox"], "q2": []})
    with pytest.raises(InputError, match="at least one"):
        score_phrases({}, {})


def test_unknown_language_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="No language 'de'. Known: en, fr"):
        f1("a", ["b"], language=cast(Language, "de"))
