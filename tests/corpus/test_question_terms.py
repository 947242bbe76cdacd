from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from askline.corpus.bm25 import Stemmer
from askline.corpus.question_terms import (
    RetrievalOptions,
    TermIndex,
    correct_question,
    question_terms,
)
from askline.corpus.similar_words import load_similar_words

PLAIN = RetrievalOptions(stop_words=0.0, titles=0.0, derived=0.0, joined=0.0, corrected=0.0)


def _index(*words: str) -> TermIndex:
    """An index of these words; the first are the most frequent."""
    stem = Stemmer().stem
    weights = {stem(word): 1.0 + at for at, word in enumerate(words)}

    def known(terms: Iterable[str]) -> dict[str, float]:
        return {term: weights[term] for term in terms if term in weights}

    return TermIndex(stem, known)


def _factors(question: str, index: TermIndex, options: RetrievalOptions) -> dict[str, float]:
    return question_terms(question, index, load_similar_words(), options).factors


def test_stop_words_are_searched_only_if_nothing_else_is_known() -> None:
    index = _index("what", "is", "the", "lamp")
    assert _factors("What is the lamp?", index, PLAIN) == {"lamp": 1.0}
    assert _factors("What is the unheard?", index, PLAIN).keys() == {"what", "is", "the"}
    assert _factors("Unheard?", index, PLAIN) == {}


def test_stop_words_count_a_little_in_sentences() -> None:
    index = _index("the", "lamp")
    terms = question_terms("the lamp", index, None, replace(PLAIN, stop_words=0.2))
    assert terms.factors == {"lamp": 1.0}
    assert terms.weights == {"lamp": 2.0, "the": 0.2}


def test_own_terms_include_stop_words_and_weights_the_frequencies() -> None:
    terms = question_terms("Is the lamp lit?", _index("lamp", "lit"), None, PLAIN)
    assert terms.own == {"is", "the", "lamp", "lit"}
    assert terms.weights == {"lamp": 1.0, "lit": 2.0}
    assert terms.words == {"lamp": 1.0, "lit": 2.0}


def test_identifiers_are_searched_by_their_parts_and_whole() -> None:
    index = _index("retry", "policy", "dryrun", "retrypolicy")
    found = _factors("Does RetryPolicy allow --dry-run?", index, PLAIN)
    assert found.keys() == {"retri", "polici", "dryrun", "retrypolici"}
    without = replace(PLAIN, identifiers=False)
    assert _factors("Does RetryPolicy allow --dry-run?", index, without).keys() == {"retrypolici"}


def test_derivations_count_less_than_the_word() -> None:
    index = _index("founder", "founded", "number", "numb")
    options = replace(PLAIN, derived=0.5)
    found = _factors("Who was the founder?", index, options)
    assert found["founder"] == 1.0
    assert 0.1 < found["found"] < 0.5
    assert "numb" not in _factors("Which number?", index, options)


def test_words_are_searched_together_and_apart() -> None:
    options = replace(PLAIN, joined=0.7)
    assert _factors("log in twice", _index("login", "twice"), options)["login"] == 0.7
    found = _factors("the workspace", _index("work", "space"), options)
    assert found == {"work": 0.7, "space": 0.7}
    assert "to" not in _factors("tower", _index("tower", "to", "wer"), options)


@pytest.mark.parametrize(
    ("misspelled", "term"),
    [
        ("univercity", "universiti"),
        ("libary", "librari"),
        ("configuartion", "configur"),
        ("enviroment", "environ"),
        ("recieve", "receiv"),
        ("occurence", "occurr"),
        ("parralel", "parallel"),
    ],
)
def test_an_unknown_word_is_corrected_by_the_index(misspelled: str, term: str) -> None:
    words = ("university library configuration environment receive occurrence parallel").split()
    found = _factors(f"the {misspelled}", _index(*words), replace(PLAIN, corrected=0.8))
    best = max(found, key=lambda each: found[each])
    assert (best, found[best]) == (term, 0.8)


def test_a_known_word_and_a_short_word_are_not_corrected() -> None:
    options = replace(PLAIN, corrected=0.8)
    assert _factors("form", _index("from", "form", "farm"), options) == {"form": 1.0}
    assert _factors("frm", _index("from", "form"), options) == {}
    assert _factors("x" * 50, _index("x" * 49), options) == {}


def test_a_frequent_word_is_likelier_than_a_rare_one() -> None:
    found = _factors("lamq", _index("lamp", "lama", "lame"), replace(PLAIN, corrected=0.8))
    assert max(found, key=lambda each: found[each]) == "lamp"


@pytest.mark.parametrize(
    ("question", "read_as"),
    [
        ("minimun age of the hedder", "minimum age of the header"),
        ("Minimun age?", "Minimum age?"),
        ("Was it servd at nine?", "Was it serve at nine?"),  # both are forms of the term
        ("Who was Hedder, of the HEDDER?", "Who was Hedder, of the HEDDER?"),  # names
        ("What is the nemo of the age?", "What is the nemo of the age?"),  # it has a vector
        ("the hdr and the kubectl", "the hdr and the kubectl"),  # nothing is near
    ],
)
def test_a_ranker_reads_the_question_without_misspelled_words(question: str, read_as: str) -> None:
    index, similar = _index("minimum", "header", "served", "demo", "age"), load_similar_words()
    corrected = question_terms(question, index, similar, RetrievalOptions()).corrected
    assert correct_question(question, corrected, index, similar) == read_as
