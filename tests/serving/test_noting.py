from __future__ import annotations

import askline
from askline.rankers.deadline import Deadline
from askline.serving.noting import Noting, Thought

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
