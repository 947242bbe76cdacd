"""
From a question to a phrase, over an index.

`nearest` is the paper's way: the nearest phrase is the answer. `judged` lets a ranker choose among
the sentences that the nearest phrases stand in, and answers with the best phrase of that sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError
from ..rankers.base import Ranker
from ..text.sentences import split_sentences
from .phrase_index import PhraseHit, PhraseIndex
from .phrase_model import EncodedQuestion, PhraseModel

__all__ = [
    "PhraseAnswer",
    "judged",
    "nearest",
]

_AROUND = 4_000  # characters on each side of a phrase in which its sentence is looked for


@dataclass(frozen=True, slots=True)
class PhraseAnswer:
    """A phrase in its sentence; both are places in the document's text."""

    phrase: PhraseHit
    sentence: str
    start: int
    """First character of the sentence in its document."""
    score: float
    """The ranker's of the sentence, or the phrase's own where no ranker judged."""


def nearest(
    question: str, model: PhraseModel, index: PhraseIndex, *, k: int = 1
) -> list[PhraseAnswer]:
    """The `k` nearest phrases, each with its sentence."""
    hits = index.search(_coded(question, model), k)
    return [PhraseAnswer(hit, *_sentence(hit, index), hit.score) for hit in hits]


def judged(
    question: str,
    model: PhraseModel,
    index: PhraseIndex,
    ranker: Ranker,
    *,
    k: int = 1,
    phrases: int = 100,
    read: bool = True,
) -> list[PhraseAnswer]:
    """
    Sentences of the `phrases` nearest, in the ranker's order, each with its nearest phrase.

    Sentences reach the ranker in the order of their nearest phrase. A ranker that can read says
    itself what in a sentence answers, unless `read` is off; its phrase has its own score.
    """
    if phrases < 1:
        raise InputError(f"phrases must be at least 1, got {phrases}.")
    best: dict[tuple[str, int], tuple[PhraseHit, str]] = {}
    for near in index.search(_coded(question, model), phrases):
        sentence, start = _sentence(near, index)
        best.setdefault((near.document, start), (near, sentence))
    places = list(best)
    ranked = ranker.rank(question, [best[place][1] for place in places])[:k]
    texts = [best[places[hit.index]][1] for hit in ranked]
    spans = ranker.read(question, texts) if read else [None] * len(texts)
    answers = []
    for hit, span in zip(ranked, spans, strict=True):
        (document, start), (phrase, sentence) = places[hit.index], best[places[hit.index]]
        if span is not None:
            said = sentence[span.start : span.end]
            phrase = PhraseHit(document, said, start + span.start, start + span.end, span.score)
        answers.append(PhraseAnswer(phrase, sentence, start, hit.score))
    return answers


def _coded(question: str, model: PhraseModel) -> EncodedQuestion:
    if not question.strip():
        raise InputError("Expected a question, got none.")
    return model.encode_question(question)


def _sentence(hit: PhraseHit, index: PhraseIndex) -> tuple[str, int]:
    """The sentence that a phrase begins in, and where it begins."""
    text = index.text(hit.document)
    first = max(0, hit.start - _AROUND)  # a long document is not split for one phrase
    for start, end in split_sentences(text[first : hit.end + _AROUND]):
        if start <= hit.start - first < end:
            return text[first + start : first + end], first + start
    return hit.text, hit.start
