from __future__ import annotations

import askline
from askline.rankers import Cascade
from askline.rankers.deadline import Deadline
from askline.rankers.pipeline import Pipeline
from askline.rankers.schedule import Keeps, Step
from askline.rankers.throughput import Pace
from askline.serving.stage_recorder import Noting, Thought

from ..rankers.staged_encoders import WordEncoder

TEXTS = ["Emma is a novel.", "It rains.", "Jane Austen wrote Emma.", "Who wrote it?"]
QUESTION = "Who wrote Emma?"


def test_ranks_as_the_ranker_does() -> None:
    ranker = askline.load("jaccard % 2 >> bm25")
    assert Noting(ranker).rank(QUESTION, TEXTS) == ranker.rank(QUESTION, TEXTS)
    assert str(Noting(ranker)) == "jaccard % 2 >> bm25"


def test_each_stage_has_a_thought_of_what_it_saw() -> None:
    noting = Noting(askline.load("jaccard % 2 >> bm25"))
    noting.rank(QUESTION, TEXTS)
    thoughts = noting.thoughts()
    assert {place: [each.stage for each in own] for place, own in thoughts.items()} == {
        0: [0],
        1: [0],
        2: [0, 1],
        3: [0, 1],
    }
    alone = askline.load("jaccard").rank(QUESTION, TEXTS)
    expected = [Thought(0, hit.score, at) for at, hit in enumerate(alone, start=1)]
    assert [thoughts[hit.index][0] for hit in alone] == expected


def test_places_are_those_of_the_whole_list_in_nested_sequences_too() -> None:
    noting = Noting(askline.load("(jaccard % 3 >> bm25 % 2) % 2 >> rr"))
    hits = noting.rank(QUESTION, TEXTS)
    last = [own for own, thoughts in noting.thoughts().items() if thoughts[-1].stage == 2]
    assert sorted(last) == sorted(hit.index for hit in hits[:2])


def test_equal_texts_are_told_apart() -> None:
    noting = Noting(askline.load("rr % 2 >> bm25"))
    noting.rank("lamp", ["lamp", "lamp", "lamp"])
    assert [len(noting.thoughts()[place]) for place in range(3)] == [2, 2, 1]


def test_a_deadline_that_has_passed_leaves_later_stages_out() -> None:
    noting = Noting(askline.load("jaccard % 2 >> bm25"), Deadline(0.0))
    noting.rank(QUESTION, TEXTS)
    assert noting.ranking.skipped == 2
    assert {len(own) for own in noting.thoughts().values()} == {1}


DEEP = ["x x a b c d", "a x x x x x", "x x x x x x", "a b x x x x", "a x b c x x", "x a x x b c"]
"""At depths 2, 4 and 6 they have so many words of the question: 024, 111, 000, 222, 133, 113."""


def test_each_depth_of_a_cascade_has_a_thought() -> None:
    cascade = Cascade(WordEncoder(), Keeps((2, 4, 6), (Step(2, 4), Step(4, 2))))
    noting = Noting(cascade)
    assert noting.rank("a b c d", DEEP) == cascade.rank("a b c d", DEEP)
    thoughts = noting.thoughts()
    # Depth 2: 3, then 1, 4 and 5, then 0 and 2. Depth 4: 4, 3, then 1 and 5. Depth 6: 4, 3.
    assert {
        place: [(each.stage, each.place) for each in own] for place, own in thoughts.items()
    } == {
        0: [(0, 5)],
        1: [(0, 2), (1, 3)],
        2: [(0, 6)],
        3: [(0, 1), (1, 2), (2, 2)],
        4: [(0, 3), (1, 1), (2, 1)],
        5: [(0, 4), (1, 4)],
    }


def test_depths_are_counted_behind_the_stages_before() -> None:
    cascade = Cascade(WordEncoder(), Keeps((2, 4, 6), (Step(2, 2),)))
    noting = Noting(Pipeline((askline.load("wo % 3"), cascade)))
    noting.rank("a b c d", DEEP)
    stages = {place: [each.stage for each in own] for place, own in noting.thoughts().items()}
    # Three have three or four words of the question; of these depth 2 knows one word of 4 and of 5.
    assert stages == {0: [0, 1], 1: [0], 2: [0], 3: [0], 4: [0, 1, 2], 5: [0, 1, 2]}


def test_thoughts_of_a_cascade_are_chances() -> None:
    cascade = Cascade(WordEncoder(), Keeps((2, 4, 6), (Step(2, 1),)))
    noting = Noting(cascade)
    hits = noting.rank("a b", ["a b", "x x"])
    said = noting.thoughts()
    assert [each.score for each in said[0]] == [hits[0].score] * 2
    assert all(0 < each.score < 1 for own in said.values() for each in own)


def test_a_depth_that_was_cut_short_has_thoughts_of_what_it_reached() -> None:
    asked = iter([False, False, True])
    noting = Noting(Cascade(WordEncoder(batch=2), Keeps((2, 4, 6))), lambda: next(asked))
    noting.rank("a b c d", DEEP)
    assert sorted(noting.thoughts()) == [0, 1, 2, 3]


def test_where_time_lets_only_some_begin_their_places_are_those_of_the_whole_list() -> None:
    cascade = Cascade(WordEncoder(), Keeps((2, 4, 6)), pace=Pace(1.0))
    noting = Noting(cascade, Deadline(220.0, lambda: 0.0))  # one has 18 characters, 6 layers
    asked = noting.trace_until("a b c d", DEEP, None, [4, 3, 2, 1, 0, 5])
    assert sorted(noting.thoughts()) == [4]
    assert [hit.index for hit in asked.hits] == [4, 3, 2, 1, 0, 5]
