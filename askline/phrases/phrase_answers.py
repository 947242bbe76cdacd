"""
From a question to answer phrases, over a phrase index.

`nearest_phrases` is the method of the paper: the nearest phrase is the answer. `ranked_phrases`
lets a ranker choose among the sentences of the nearest phrases, and returns the phrase in each.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError
from ..rankers.base import Ranker
from ..text.sentences import split_sentences
from .phrase_index import PhraseHit, PhraseIndex
from .phrase_model import PhraseModel

__all__ = [
    "PhraseAnswer",
    "nearest_phrases",
    "ranked_phrases",
]

_CONTEXT_CHARACTERS = 4_000  # on each side of a phrase, to find its sentence


@dataclass(frozen=True, slots=True)
class PhraseAnswer:
    """A phrase and its sentence, both as places in the text of the document."""

    phrase: PhraseHit
    sentence: str
    start: int
    """The first character of the sentence in its document."""
    score: float
    """The ranker's score of the sentence, or the score of the phrase without a ranker."""


def nearest_phrases(
    question: str, model: PhraseModel, index: PhraseIndex, *, top_k: int = 1
) -> list[PhraseAnswer]:
    """The `top_k` nearest phrases, each with its sentence, nearest first."""
    hits = index.search(model.encode_question(question), top_k)
    return [PhraseAnswer(hit, *_find_sentence(hit, index), hit.score) for hit in hits]


def ranked_phrases(
    question: str,
    model: PhraseModel,
    index: PhraseIndex,
    ranker: Ranker,
    *,
    top_k: int = 1,
    retrieved: int = 100,
    read: bool = True,
) -> list[PhraseAnswer]:
    """
    The sentences of the `retrieved` nearest phrases, in the ranker's order, each with one phrase.

    The ranker gets the sentences in the order of their nearest phrase. With `read`, a ranker that
    can read chooses the phrase in a sentence, which then has the ranker's score; otherwise it is
    the nearest phrase.
    """
    if retrieved < 1:
        raise InputError(f"retrieved must be at least 1, got {retrieved}.")
    nearest: dict[tuple[str, int], tuple[PhraseHit, str]] = {}
    for hit in index.search(model.encode_question(question), retrieved):
        sentence, start = _find_sentence(hit, index)
        nearest.setdefault((hit.document, start), (hit, sentence))
    places = list(nearest)
    ranking = ranker.rank(question, [nearest[place][1] for place in places])[:top_k]
    sentences = [nearest[places[ranked.index]][1] for ranked in ranking]
    spans = ranker.read(question, sentences) if read else [None] * len(sentences)
    answers = []
    for ranked, span in zip(ranking, spans, strict=True):
        document, start = places[ranked.index]
        phrase, sentence = nearest[document, start]
        if span is not None:
            text = sentence[span.start : span.end]
            phrase = PhraseHit(document, text, start + span.start, start + span.end, span.score)
        answers.append(PhraseAnswer(phrase, sentence, start, ranked.score))
    return answers


def _find_sentence(hit: PhraseHit, index: PhraseIndex) -> tuple[str, int]:
    """The sentence in which a phrase starts, and its first character in the document."""
    text = index.text(hit.document)
    first = max(0, hit.start - _CONTEXT_CHARACTERS)  # a long document is not split as a whole
    for start, end in split_sentences(text[first : hit.end + _CONTEXT_CHARACTERS]):
        if start <= hit.start - first < end:
            return text[first + start : first + end], first + start
    return hit.text, hit.start
