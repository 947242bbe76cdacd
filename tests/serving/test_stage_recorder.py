from __future__ import annotations

import askline
from askline.rankers import Cascade
from askline.rankers.base import Pipeline
from askline.rankers.deadline import Deadline, Throughput
from askline.rankers.requests import Request
from askline.rankers.schedule import KeepCounts, Step
from askline.serving.stage_recorder import StageRecorder, StageScore

from ..rankers.layerwise_encoders import WordEncoder

TEXTS = ["Emma is a novel.", "It rains.", "Jane Austen wrote Emma.", "Who wrote it?"]
QUESTION = "Who wrote Emma?"


def test_returns_the_ranking_of_the_wrapped_ranker() -> None:
    ranker = askline.load("jaccard % 2 >> bm25")
    assert StageRecorder(ranker).rank(QUESTION, TEXTS) == ranker.rank(QUESTION, TEXTS)
    assert str(StageRecorder(ranker)) == "jaccard % 2 >> bm25"


def test_each_stage_scores_the_candidates_that_reached_it() -> None:
    recorder = StageRecorder(askline.load("jaccard % 2 >> bm25"))
    recorder.rank(QUESTION, TEXTS)
    scores = recorder.stage_scores()
    assert {index: [each.stage for each in own] for index, own in scores.items()} == {
        0: [0],
        1: [0],
        2: [0, 1],
        3: [0, 1],
    }
    alone = askline.load("jaccard").rank(QUESTION, TEXTS)
    expected = [StageScore(0, hit.score, at) for at, hit in enumerate(alone, start=1)]
    assert [scores[hit.index][0] for hit in alone] == expected


def test_indices_refer_to_the_whole_list_in_nested_pipelines() -> None:
    recorder = StageRecorder(askline.load("(jaccard % 3 >> bm25 % 2) % 2 >> rr"))
    hits = recorder.rank(QUESTION, TEXTS)
    last = [own for own, scores in recorder.stage_scores().items() if scores[-1].stage == 2]
    assert sorted(last) == sorted(hit.index for hit in hits[:2])


def test_equal_texts_are_recorded_separately() -> None:
    recorder = StageRecorder(askline.load("rr % 2 >> bm25"))
    recorder.rank("lamp", ["lamp", "lamp", "lamp"])
    assert [len(recorder.stage_scores()[index]) for index in range(3)] == [2, 2, 1]


def test_a_passed_deadline_skips_later_stages() -> None:
    recorder = StageRecorder(askline.load("jaccard % 2 >> bm25"), Deadline(0.0))
    recorder.rank(QUESTION, TEXTS)
    assert recorder.ranking.skipped == 2
    assert {len(own) for own in recorder.stage_scores().values()} == {1}


DEEP = ["x x a b c d", "a x x x x x", "x x x x x x", "a b x x x x", "a x b c x x", "x a x x b c"]
"""Words of the question that each has at depths 2, 4 and 6: 024, 111, 000, 222, 133, 113."""


def test_each_depth_of_a_cascade_is_a_stage() -> None:
    cascade = Cascade(WordEncoder(), KeepCounts((2, 4, 6), (Step(2, 4), Step(4, 2))))
    recorder = StageRecorder(cascade)
    assert recorder.rank("a b c d", DEEP) == cascade.rank("a b c d", DEEP)
    scores = recorder.stage_scores()
    # Depth 2: 3, then 1, 4 and 5, then 0 and 2. Depth 4: 4, 3, then 1 and 5. Depth 6: 4, 3.
    assert {index: [(each.stage, each.rank) for each in own] for index, own in scores.items()} == {
        0: [(0, 5)],
        1: [(0, 2), (1, 3)],
        2: [(0, 6)],
        3: [(0, 1), (1, 2), (2, 2)],
        4: [(0, 3), (1, 1), (2, 1)],
        5: [(0, 4), (1, 4)],
    }


def test_depths_are_numbered_after_the_stages_before_the_cascade() -> None:
    cascade = Cascade(WordEncoder(), KeepCounts((2, 4, 6), (Step(2, 2),)))
    recorder = StageRecorder(Pipeline((askline.load("wo % 3"), cascade)))
    recorder.rank("a b c d", DEEP)
    stages = {index: [each.stage for each in own] for index, own in recorder.stage_scores().items()}
    # Three have three or four words of the question; of these depth 2 knows one word of 4 and of 5.
    assert stages == {0: [0, 1], 1: [0], 2: [0], 3: [0], 4: [0, 1, 2], 5: [0, 1, 2]}


def test_scores_of_a_cascade_are_probabilities() -> None:
    cascade = Cascade(WordEncoder(), KeepCounts((2, 4, 6), (Step(2, 1),)))
    recorder = StageRecorder(cascade)
    hits = recorder.rank("a b", ["a b", "x x"])
    scores = recorder.stage_scores()
    assert [each.score for each in scores[0]] == [hits[0].score] * 2
    assert all(0 < each.score < 1 for own in scores.values() for each in own)


def test_an_interrupted_depth_records_the_candidates_it_reached() -> None:
    answers = iter([False, False, True])
    recorder = StageRecorder(
        Cascade(WordEncoder(batch=2), KeepCounts((2, 4, 6))), lambda: next(answers)
    )
    recorder.rank("a b c d", DEEP)
    assert sorted(recorder.stage_scores()) == [0, 1, 2, 3]


def test_indices_refer_to_the_whole_list_when_only_some_candidates_begin() -> None:
    cascade = Cascade(WordEncoder(), KeepCounts((2, 4, 6)), throughput=Throughput(1.0))
    # A pair has 18 characters, and 6 layers: there is time for one.
    recorder = StageRecorder(cascade, Deadline(220.0, lambda: 0.0))
    request = Request("a b c d", DEEP, [4, 3, 2, 1, 0, 5])
    (ranking,) = recorder.run_batch([request], None)
    assert sorted(recorder.stage_scores()) == [4]
    assert [hit.index for hit in ranking.hits] == [4, 3, 2, 1, 0, 5]
