from __future__ import annotations

from askline.corpus.bm25 import Stemmer
from askline.corpus.connectors.sentence_retrieval import (
    SentenceWithNeighbors,
    ServerText,
    best_sentences,
)

ROCK = "The rock is far out. Its lighthouse was lit in 1698.\nA storm took it."
QUESTION = "When was the lighthouse lit?"


def _best(*texts: ServerText, k: int = 100) -> list[SentenceWithNeighbors]:
    found = best_sentences(QUESTION, texts, k, Stemmer())
    return [each for each in found if isinstance(each, SentenceWithNeighbors)]


def test_sentences_slice_the_text_they_came_from() -> None:
    found = _best(ServerText("rock", ROCK, "Rocks", 2.0))
    assert {each.text for each in found} == {
        "The rock is far out.",
        "Its lighthouse was lit in 1698.",
        "A storm took it.",
    }
    assert all(ROCK[each.start : each.end] == each.text for each in found)
    assert {(each.document, each.title, each.unit) for each in found} == {("rock", "Rocks", "line")}
    assert {each.text: each.number for each in found}["A storm took it."] == 2


def test_the_sentence_with_the_words_comes_first_with_its_neighbors() -> None:
    best = _best(ServerText("rock", ROCK, "", 2.0))[0]
    assert best.text == "Its lighthouse was lit in 1698."
    assert SentenceWithNeighbors.neighbors_of(best) == ("The rock is far out.", "A storm took it.")
    assert SentenceWithNeighbors.neighbors_of(best, 0) == ("", "")


def test_the_servers_score_decides_between_equal_sentences() -> None:
    texts = [
        ServerText("a", "It was lit in May.", "", 1.0),
        ServerText("b", "It was lit in May.", "", 3.0),
    ]
    assert [each.document for each in _best(*texts)] == ["b", "a"]


def test_titles_lend_their_words() -> None:
    text = "It burns oil."
    texts = [ServerText("a", text, "", 1.0), ServerText("b", text, "The lighthouse", 1.0)]
    assert [each.document for each in _best(*texts)] == ["b", "a"]


def test_at_most_k_and_no_repeated_question() -> None:
    texts = [
        ServerText("faq", f"{QUESTION} Nobody knows.", "", 1.0),
        ServerText("rock", ROCK, "", 0.5),
    ]
    found = _best(*texts)
    assert QUESTION not in {each.text for each in found}
    assert len(found) == 4
    assert _best(*texts, k=2) == found[:2]


def test_texts_without_sentences_give_none() -> None:
    assert _best() == []
    assert _best(ServerText("a", "", "", 1.0), ServerText("b", " \n", "", 1.0)) == []
