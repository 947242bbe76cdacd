from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askline.errors import InputError
from askline.training.transformer.pair_sets import PairSet
from askline.training.transformer.sampled_lists import (
    Negatives,
    SampledLists,
    SamplingPart,
    SamplingPlan,
    mine_negatives,
    sentence_pool,
)
from askline.types import Candidate, Question, QuestionSet

PLAN = SamplingPlan(own=1, hard=1, lone=1, near=0, elsewhere=2, drawn=6)


def _long(questions: QuestionSet) -> tuple[Question, ...]:
    """The questions with an answer, with one more whose only candidate is its answer."""
    lone = Question("lone", "where is france ?", (Candidate("l", "paris in france .", True),))
    return (*(question for question in questions if question.answerable), lone)


@pytest.fixture
def asked(questions: QuestionSet) -> tuple[Question, ...]:
    return _long(questions)


@pytest.fixture
def negatives(asked: tuple[Question, ...]) -> Negatives:
    """Made by hand: every question's hard one is the first sentence that is not its own."""
    pool = sentence_pool(asked)
    hard = [
        [place for place, text in enumerate(pool) if text not in question.texts][:3]
        for question in asked
    ]
    return Negatives(np.array(hard, np.int32), np.full((len(asked), 1), -1, np.int32), "")


@pytest.fixture
def lists(asked: tuple[Question, ...], negatives: Negatives, tokenizer: Any) -> SampledLists:
    return SampledLists("tiny", [SamplingPart(asked, PLAN)], negatives, tokenizer)


def _score(pairs: PairSet) -> np.ndarray:
    """The longer the better."""
    return np.array([len(row) for row in pairs.tokens], float)


def test_a_list_has_its_answers_first_and_as_many_others_as_planned(lists: SampledLists) -> None:
    drawn = lists.one(0, np.random.default_rng(0))
    assert drawn.labels == [1, 0, 0]  # the answer, one of its own, a hard one
    (pool,) = drawn.pools
    assert pool.keep == 2
    assert pool.texts
    assert not set(pool.texts) & {drawn.candidates[0]}


def test_a_lone_answer_gets_more_hard_ones(lists: SampledLists) -> None:
    assert lists.one(3, np.random.default_rng(0)).labels == [1, 0, 0]


def test_the_highest_scoring_strangers_are_kept(lists: SampledLists) -> None:
    chosen = np.array([0, 3])
    random = np.random.default_rng(1)
    expected = [lists.one(place, random) for place in chosen]
    pairs = lists.draw(chosen, np.random.default_rng(1), _score)
    assert len(pairs) == 2
    for number, drawn in enumerate(expected):
        kept = pairs.lengths(pairs.rows([number]))[len(drawn.candidates) :]
        pool = lists.texts.pairs([(drawn.question, drawn.pools[0].texts)])
        assert kept.tolist() == sorted(map(len, pool.tokens), reverse=True)[:2]
    assert pairs.labels.tolist() == [1, 0, 0, 0, 0] * 2


def test_hard_ones_can_be_chosen_by_score_too(
    asked: tuple[Question, ...], negatives: Negatives, tokenizer: Any
) -> None:
    plan = SamplingPlan(own=1, hard=1, lone=1, near=0, elsewhere=0, drawn=0, hard_drawn=3)
    lists = SampledLists("chosen", [SamplingPart(asked, plan)], negatives, tokenizer)
    first, lone = (lists.one(place, np.random.default_rng(0)) for place in (0, 3))
    assert [len(first.candidates), len(lone.candidates)] == [2, 1]  # no hard one yet
    assert [(len(pool.texts), pool.keep) for pool in (*first.pools, *lone.pools)] == [
        (3, 1),
        (3, 2),  # a lone answer gets more, and the file has three
    ]
    pairs = lists.draw(np.array([0, 3]), np.random.default_rng(0), _score)
    for number, drawn in enumerate((first, lone)):
        kept = pairs.lengths(pairs.rows([number]))[len(drawn.candidates) :]
        pool = lists.texts.pairs([(drawn.question, drawn.pools[0].texts)])
        assert kept.tolist() == sorted(map(len, pool.tokens), reverse=True)[: number + 1]


def test_the_same_seed_draws_the_same(lists: SampledLists) -> None:
    first, again, other = (
        lists.draw(np.arange(4), np.random.default_rng(seed), _score) for seed in (1, 1, 2)
    )
    assert all(map(np.array_equal, first.tokens, again.tokens))
    assert not all(np.array_equal(a, b) for a, b in zip(first.tokens, other.tokens, strict=True))


def test_lists_without_random_negatives_need_no_scores(
    asked: tuple[Question, ...], negatives: Negatives, tokenizer: Any
) -> None:
    plan = SamplingPlan(own=5, hard=0, lone=0, near=0, elsewhere=0, drawn=0)
    lists = SampledLists("own", [SamplingPart(asked, plan)], negatives, tokenizer)

    def refuse(pairs: PairSet) -> Any:
        raise AssertionError("asked for scores")

    pairs = lists.draw(np.arange(4), np.random.default_rng(0), refuse)
    assert np.diff(pairs.offsets).tolist() == [3, 2, 2, 1]


def test_strangers_come_from_the_same_part(
    asked: tuple[Question, ...], negatives: Negatives, tokenizer: Any
) -> None:
    parts = [SamplingPart(asked[:2], PLAN), SamplingPart(asked[2:], PLAN)]
    lists = SampledLists("two", parts, negatives, tokenizer)
    pool = sentence_pool(asked)
    own = {pool.index(text) for text in sentence_pool(asked[:2])}
    for seed in range(5):
        assert set(lists.one(0, np.random.default_rng(seed)).pools[0].texts) <= own


def test_mined_negatives_fit(asked: tuple[Question, ...], tokenizer: Any) -> None:
    lists = SampledLists("mined", [SamplingPart(asked, PLAN)], mine_negatives(asked), tokenizer)
    assert len(lists) == 4
    assert "Plan(own=1" in lists.name


def test_questions_without_an_answer_are_refused(
    questions: QuestionSet, negatives: Negatives, tokenizer: Any
) -> None:
    with pytest.raises(InputError, match="only for questions with an answer"):
        SampledLists("all", [SamplingPart(questions.questions, PLAN)], negatives, tokenizer)


def test_negatives_of_fewer_questions_are_refused(
    asked: tuple[Question, ...], negatives: Negatives, tokenizer: Any
) -> None:
    with pytest.raises(InputError, match="negatives of 3 questions, got 4"):
        SampledLists("cut", [SamplingPart(asked[:3], PLAN)], negatives, tokenizer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"own": -1}, "own must not be negative"),
        ({"near_drawn": -1}, "near_drawn must not be negative"),
        ({"elsewhere": 4, "drawn": 3}, "drawn must be"),
    ],
    ids=["negative", "negative drawn", "too few drawn"],
)
def test_impossible_plans_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SamplingPlan(**options)
