"""From a question to its answers: retrieve sentences, rank them, find the phrase in the best."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real

from ..errors import InputError
from ..rankers.base import Ranker
from ..rankers.requests import check_count, check_question
from ..types import Hit
from .ask_defaults import DEFAULT_BLEND, DEFAULT_RANKER, DEFAULT_RETRIEVED
from .results import Answer, AnswerPhrase, AnswerPlace, Answers, RetrievedSentence
from .retrieval import HasNeighbors, Retriever
from .sentence_ranking import (
    RankedSentences,
    SentenceInContext,
    TitledSentence,
    add_title_context,
    rank_sentences,
)

__all__ = [
    "DEFAULT_BLEND",
    "DEFAULT_RANKER",
    "DEFAULT_RETRIEVED",
    "MAX_JOINED_CHARACTERS",
    "answer",
    "answers_from",
    "read_phrase",
]

MIN_COPY_CHARACTERS = 60
"""A sentence of this length says the same wherever it stands; a shorter one may not."""
JOINED_SHARE = 0.75
"""Least share of an answer's probability for a neighbor to join it; with less it is context."""
MAX_JOINED_CHARACTERS = 600
"""Upper limit of an answer of several sentences; longer ones are a passage and not an answer."""


def answer(
    question: str,
    retriever: Retriever,
    ranker: Ranker | None = None,
    *,
    top_k: int = 5,
    retrieved: int = DEFAULT_RETRIEVED,
    blend: float = DEFAULT_BLEND,
    context: int = 1,
    threshold: float | None = None,
    join: bool = False,
) -> Answers:
    """
    The best `top_k` answers out of `retrieved` sentences.

    A ranker that reads passages reads the retrieved sentences alone, then the passages of the best
    in context, and ranks by both readings. Any other ranker gets the retrieved sentences of a
    document next to each other and in their order, documents with the best sentence first. A
    sentence alone has its title context (`add_title_context`). `sentence_ranking.py` has the rules.

    The order is that of the sum of the ranker's score and `blend` times the retrieval score. The
    score of a calibrated ranker counts as log odds, and the probability of an answer is that of the
    sum, so that the order follows it. With `blend=0`, the order is the ranker's. Without a ranker,
    it is that of the retrieval.

    Answers that were read in their passage at full depth have the phrase that the ranker found in
    them. The best of other answers has the phrase that the ranker reads in it. All others have
    their nearest phrase, if the retriever searches phrases.

    Each answer has `context` sentences before and after it, if the retriever knows them.
    `threshold` replaces the ranker's own, from 0, which never refuses, to 1. With `join`, sentences
    that follow each other, reach the threshold and are about equally probable are one answer. The
    same sentence in several places is one answer, whose `also_at` has the other places.
    """
    check_question(question)
    top_k, retrieved = check_count("top_k", top_k), check_count("retrieved", retrieved)
    if retrieved < top_k:
        raise InputError(
            f"top_k must be at most retrieved, got top_k={top_k}, retrieved={retrieved}."
        )
    context = check_count("context", context, least=0)
    _check_threshold(ranker, threshold)
    start = time.perf_counter()
    ranked = rank_sentences(question, retriever, ranker, retrieved=retrieved, blend=blend)
    answers = answers_from(
        ranked,
        question,
        retriever,
        ranker,
        top_k=top_k,
        context=context,
        threshold=threshold,
        join=join,
    )
    return replace(answers, seconds=time.perf_counter() - start)


def answers_from(
    ranked: RankedSentences,
    question: str,
    retriever: Retriever,
    ranker: Ranker | None,
    *,
    top_k: int,
    context: int = 1,
    threshold: float | None = None,
    join: bool = False,
) -> Answers:
    """The answers of `answer`, from sentences that are ranked already."""
    start = time.perf_counter()
    own = ranked.threshold
    threshold = own if threshold is None or own is None else threshold
    # A threshold of 0 would join whole sections.
    hits, copies = _merge_copies(ranked.hits, ranked.sentences)
    groups = _group_hits(hits, ranked.sentences, top_k, (threshold or own) if join else None)
    sentences = list(ranked.sentences)
    for place, (hit, *_) in enumerate(groups):
        phrase = _phrase_of(hit, sentences[hit.index], threshold)
        if place == 0 and ranker is not None and hit.index not in ranked.in_context:
            phrase = read_phrase(ranker, ranked.question or question, sentences[hit.index])
        if phrase is not None:
            sentences[hit.index] = replace(sentences[hit.index], phrase=phrase)
    answers = [
        replace(
            _to_answer(group, sentences, retriever, context),
            also_at=tuple(map(_to_place, copies.get(group[0].index, ()))),
        )
        for group in groups
    ]
    seconds, read_as = time.perf_counter() - start, ranked.question or question
    return Answers(question, tuple(answers), ranked.stages, seconds, threshold, read_as=read_as)


def _check_threshold(ranker: Ranker | None, given: float | None) -> None:
    if given is None:
        return
    if not isinstance(given, Real) or not 0 <= given <= 1:
        raise InputError(f"threshold must be a probability from 0 to 1, got {given!r}.")
    if given and (ranker is None or ranker.threshold is None):
        raise InputError(
            "A threshold needs a ranker with probabilities, such as cascade, got "
            f"{'no ranker' if ranker is None else ranker}. Leave out the threshold."
        )


def _phrase_of(
    hit: Hit, sentence: RetrievedSentence, threshold: float | None
) -> AnswerPhrase | None:
    """
    The phrase that the ranker found while it ranked the sentence in its passage.

    The probability decides whether a sentence answers. Only below the threshold, the reader may say
    that there is no phrase.
    """
    if hit.span is None:
        return None
    is_answer = threshold is not None and (hit.probability or 0.0) >= threshold
    if not is_answer and hit.span.score <= hit.span.no_answer:
        return None
    start, end = hit.span.start, hit.span.end
    return AnswerPhrase(sentence.text[start:end], start, end)


def read_phrase(ranker: Ranker, question: str, sentence: TitledSentence) -> AnswerPhrase | None:
    """
    The phrase of the sentence that answers the question; None if the ranker finds none.

    The ranker reads the sentence in its title context. If it points into the context, it reads the
    sentence again without it, because the context is never the answer.
    """
    (context,) = add_title_context(question, [sentence])
    (span,) = ranker.read(question, [context.text])
    if span is not None and span.start < context.sentence_start:
        context = SentenceInContext(context.text[context.sentence_start :], 0)
        (span,) = ranker.read(question, [context.text])
    if span is None:
        return None
    text = context.text[span.start : span.end]
    return AnswerPhrase(
        text, span.start - context.sentence_start, span.end - context.sentence_start
    )


def _merge_copies(
    hits: Sequence[Hit], sentences: Sequence[RetrievedSentence]
) -> tuple[list[Hit], dict[int, list[RetrievedSentence]]]:
    """
    The hits without copies of a better sentence, and the copies of each sentence by its index.

    A short sentence, such as "It has no options.", is a copy only if its title, headings and
    lead-in are equal too.
    """
    kept: dict[tuple[object, ...], Hit] = {}
    copies: dict[int, list[RetrievedSentence]] = {}
    for hit in hits:
        sentence = sentences[hit.index]
        text = " ".join(sentence.text.split()).casefold()
        key: tuple[object, ...] = (text,)
        if len(text) < MIN_COPY_CHARACTERS:
            key = (text, sentence.title, sentence.heading, sentence.headings, sentence.lead_in)
        best = kept.setdefault(key, hit)
        if best is not hit:
            copies.setdefault(best.index, []).append(sentence)
    return list(kept.values()), copies


def _to_place(sentence: RetrievedSentence) -> AnswerPlace:
    return AnswerPlace(
        sentence.document,
        sentence.title,
        sentence.start,
        sentence.end,
        sentence.unit,
        sentence.number,
        sentence.heading,
        sentence.headings,
    )


def _group_hits(
    hits: Sequence[Hit],
    sentences: Sequence[RetrievedSentence],
    most: int,
    threshold: float | None,
) -> list[list[Hit]]:
    """
    At most `most` groups, each with its best hit first, in the order of these.

    Without a threshold, every hit is a group. With one, a hit joins the group of a sentence next to
    it in the same section and row if both reach the threshold and its probability is not much
    lower.
    """
    groups: list[list[Hit]] = []
    for hit in hits:
        group = next((one for one in groups if _belongs(hit, one, sentences, threshold)), None)
        if group is not None:
            group.append(hit)
        elif len(groups) == most:
            break
        else:
            groups.append([hit])
    return groups


def _belongs(
    hit: Hit, group: Sequence[Hit], sentences: Sequence[RetrievedSentence], threshold: float | None
) -> bool:
    if threshold is None:
        return False
    least = max(threshold, JOINED_SHARE * (group[0].probability or 0))
    if not all((one.probability or 0) >= least for one in (hit, *group)):
        return False
    own, others = sentences[hit.index], [sentences[one.index] for one in group]
    section = own.document, own.heading, own.row
    return (
        all((other.document, other.heading, other.row) == section for other in others)
        and any(abs(own.ordinal - other.ordinal) == 1 for other in others)
        and sum(len(each.text) for each in (own, *others)) <= MAX_JOINED_CHARACTERS
    )


def _to_answer(
    group: Sequence[Hit],
    sentences: Sequence[RetrievedSentence],
    retriever: Retriever,
    context: int,
) -> Answer:
    """The sentences of a group as one answer, with the score of the best of them."""
    hit = group[0]
    parts = sorted((sentences[each.index] for each in group), key=lambda each: each.ordinal)
    best, sentence, last = sentences[hit.index], parts[0], parts[-1]
    before, after = "", ""
    if context and isinstance(retriever, HasNeighbors):
        before, after = retriever.neighbors(sentence, context)
        if last is not sentence:
            after = retriever.neighbors(last, context)[1]
    phrase = best.phrase
    if phrase is not None:
        shift = sum(len(part.text) + 1 for part in parts[: parts.index(best)])
        phrase = replace(phrase, start=phrase.start + shift, end=phrase.end + shift)
    return Answer(
        text=" ".join(part.text for part in parts),
        score=hit.score,
        stage=hit.stage,
        probability=hit.probability,
        document=sentence.document,
        title=sentence.title,
        start=sentence.start,
        end=last.end,
        unit=sentence.unit,
        number=sentence.number,
        heading=sentence.heading,
        headings=sentence.headings,
        lead_in=sentence.lead_in,
        before=before,
        after=after,
        row=sentence.row,
        record=sentence.record,
        phrase=phrase,
        sentences=len(parts),
    )
