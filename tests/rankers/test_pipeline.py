from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import InputError, RankerError
from askline.rankers import Cut, Jaccard, OriginalOrder, Pipeline, Ranker
from askline.rankers.requests import ScoreArray
from askline.types import Hit


@dataclass(frozen=True)
class ByNumber(Ranker):
    """Candidates are numbers; the one nearest to `near` is best."""

    name: ClassVar[str] = "by-number"
    near: int = 0

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        return np.asarray(-np.abs(np.array([float(text) for text in texts]) - self.near))


class Lossy(Ranker):
    def score_texts(self, question: str, texts: Sequence[str]) -> list[float]:
        return [1.0]


class Recorder(Ranker):
    """Records what it gets to rank: what a stage passes on is part of the contract."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def score_texts(self, question: str, texts: Sequence[str]) -> list[float]:
        self.seen.append(list(texts))
        return [-float(place) for place in range(len(texts))]


NUMBERS = ["5", "1", "9", "3", "7", "2"]


def indices(hits: Sequence[Hit]) -> list[int]:
    return [hit.index for hit in hits]


def test_survivors_are_handed_on_in_original_order() -> None:
    last = Recorder()
    (ByNumber(near=9) % 3 >> last).rank("?", NUMBERS)
    assert last.seen == [["5", "9", "7"]]


def test_dropped_candidates_follow_in_the_order_of_the_stage_that_dropped_them() -> None:
    ranking = (ByNumber(near=9) % 4 >> ByNumber(near=0) % 2 >> ByNumber(near=9)).rank("?", NUMBERS)
    # 9 7 5 3 | 2 1 leave the first stage; 3 5 | 7 9 the second; the third turns 3 5 round.
    assert [NUMBERS[hit.index] for hit in ranking] == ["5", "3", "7", "9", "2", "1"]
    assert [hit.stage for hit in ranking] == [2, 2, 1, 1, 0, 0]


def test_scores_are_those_of_the_stage_that_decided() -> None:
    hits = (ByNumber(near=9) % 1 >> ByNumber(near=0)).rank("?", ["9", "8"])
    assert hits == [Hit(0, -9.0, 1), Hit(1, -1.0, 0)]


def test_a_cut_alone_still_ranks_everything() -> None:
    assert (ByNumber(near=9) % 1).rank("?", NUMBERS) == ByNumber(near=9).rank("?", NUMBERS)


def test_a_stage_without_a_cut_hands_everything_on() -> None:
    assert indices((Jaccard() >> ByNumber()).rank("?", NUMBERS)) == indices(
        ByNumber().rank("?", NUMBERS)
    )


def test_a_cut_over_a_pipeline_keeps_the_head_of_the_whole() -> None:
    last = Recorder()
    ((ByNumber(near=9) % 2 >> ByNumber()) % 3 >> last).rank("?", NUMBERS)
    assert last.seen == [["5", "9", "7"]]


def test_nested_pipelines_are_one_long_pipeline() -> None:
    a, b, c = ByNumber(1) % 4, ByNumber(2) % 2, ByNumber(3)
    assert (a >> b) >> c == a >> (b >> c) == Pipeline((a, b, c))
    assert len(((a >> b) >> c).stages) == 3


def test_a_stage_must_be_a_ranker() -> None:
    with pytest.raises(InputError, match=r"must be a Ranker, got function.*Ranker.from_function"):
        ByNumber() >> max_score  # type: ignore[operator]


def max_score(question: str, texts: Sequence[str]) -> list[float]:
    return [1.0] * len(texts)


def test_words_say_the_same_as_operators() -> None:
    assert ByNumber(1).top(4).then(ByNumber(2)) == ByNumber(1) % 4 >> ByNumber(2)


def test_trace_reports_candidates_and_seconds_for_each_stage() -> None:
    ranking = (ByNumber(near=9) % 4 >> ByNumber() % 2 >> ByNumber(near=9)).trace("?", NUMBERS)
    assert [(stage.ranker, stage.entered, stage.kept) for stage in ranking.stages] == [
        ("by-number(near=9) % 4", 6, 4),
        ("by-number % 2", 4, 2),
        ("by-number(near=9)", 2, 2),
    ]
    assert all(stage.seconds >= 0 for stage in ranking.stages)


def test_trace_of_a_plain_ranker_is_one_stage_named_after_its_class() -> None:
    ranking = Recorder().trace("?", NUMBERS)
    assert [(stage.ranker, stage.kept) for stage in ranking.stages] == [("Recorder", 6)]


def test_stages_of_a_nested_cut_are_counted_through() -> None:
    inner = (ByNumber(near=9) % 3 >> ByNumber()) % 2
    ranking = (inner >> ByNumber(near=9)).trace("?", NUMBERS)
    assert [stage.ranker for stage in ranking.stages] == [
        "by-number(near=9) % 3",
        "by-number % 2",
        "by-number(near=9)",
    ]
    assert [hit.stage for hit in ranking.hits] == [2, 2, 1, 0, 0, 0]


def test_a_ranker_that_loses_documents_is_named() -> None:
    with pytest.raises(RankerError, match="Lossy must return 6 scores, one per text, got 1"):
        (Lossy() >> OriginalOrder()).rank("?", NUMBERS)


@pytest.mark.parametrize("keep", [0, -1])
def test_cut_refuses_to_keep_nothing(keep: int) -> None:
    with pytest.raises(InputError, match=f"keep must be a positive integer, got {keep}"):
        OriginalOrder() % keep


@pytest.mark.parametrize("keep", [1.5, True, "3"])
def test_cut_refuses_what_is_no_whole_number(keep: object) -> None:
    with pytest.raises(InputError, match="keep must be a positive integer"):
        Cut(OriginalOrder(), keep)  # type: ignore[arg-type]


def test_pipeline_refuses_to_be_empty() -> None:
    with pytest.raises(InputError, match="at least one ranker"):
        Pipeline(())


@pytest.mark.parametrize(
    ("question", "documents", "message"),
    [
        (None, ["a"], "question must be a string, got NoneType"),
        ("", ["a"], "question must not be empty, got ''"),
        (" ", [], "question must not be empty, got ' '"),
        ("q", "abc", "must be a list, got one string"),
        ("q", {"text": "abc"}, "must be a list, got one mapping"),
        ("q", ["a", 3], "Document 1 must be a string, a mapping or a Passage, got int"),
        ("q", [{"body": "a"}], r"Document 0 must have its text under 'text', got 'body'"),
        ("q", [{"text": 3}], "Document 0 must have a string under 'text', got int"),
        ("q", None, "must be a list, got NoneType"),
    ],
)
@pytest.mark.parametrize("ranker", [OriginalOrder(), OriginalOrder() >> Jaccard()], ids=str)
def test_rank_refuses_wrong_input(
    ranker: Ranker, question: str, documents: list[str], message: str
) -> None:
    for call in (ranker.rank, ranker.trace, ranker.score, ranker.read):
        with pytest.raises(InputError, match=message):
            call(question, documents)


@pytest.mark.parametrize("ranker", [Jaccard(), OriginalOrder() >> Jaccard()], ids=str)
def test_every_ranker_takes_a_deadline(ranker: Jaccard) -> None:
    assert ranker.rank("a", ["b", "a"], deadline_ms=1e6) == ranker.rank("a", ["b", "a"])
    with pytest.raises(InputError, match="deadline_ms must be a positive number, got 0"):
        ranker.rank("a", ["b", "a"], deadline_ms=0)


@given(
    st.lists(st.integers(0, 9).map(str), max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), min_size=1, max_size=4),
)
def test_pipeline_is_a_permutation_whose_head_shrinks_as_cut(
    numbers: list[str], stages: list[tuple[int, int]]
) -> None:
    pipeline = Pipeline(tuple(ByNumber(near) % keep for near, keep in stages))
    ranking = pipeline.trace("?", numbers)
    assert sorted(indices(ranking.hits)) == list(range(len(numbers)))
    going = len(numbers)
    for (_, keep), report in zip(stages, ranking.stages, strict=True):
        assert (report.entered, report.kept) == (going, min(keep, going))
        going = report.kept
    stages_of_hits = [hit.stage for hit in ranking.hits]
    assert stages_of_hits == sorted(stages_of_hits, reverse=True)


@given(st.lists(st.integers(0, 9).map(str), max_size=12), st.integers(1, 14))
def test_a_cut_that_keeps_all_changes_nothing(numbers: list[str], keep: int) -> None:
    if keep >= len(numbers):
        piped = ByNumber(near=9) % keep >> ByNumber()
        assert indices(piped.rank("?", numbers)) == indices(ByNumber().rank("?", numbers))
