"""From a question to its answers: retrieve sentences, rank them, find the phrase in the best."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ..errors import InputError
from ..rankers.base import Ranker
from ..rankers.probability import log_odds
from ..rankers.registry import DEFAULT_SPEC
from ..rankers.requests import check_question
from ..types import Hit, Ranking, StageReport
from .results import Answer, AnswerPhrase, AnswerPlace, Answers, RetrievedSentence
from .retrieval import HasNeighbors, Retriever, standard_scores
from .title_context import SentenceInContext, TitledSentence, add_title_context

__all__ = [
    "DEFAULT_BLEND",
    "DEFAULT_RANKER",
    "DEFAULT_RETRIEVED",
    "LOG_ODDS_BLEND",
    "MAX_JOINED_CHARACTERS",
    "answer",
    "in_document_order",
    "read_phrase",
]

DEFAULT_RANKER: str | None = DEFAULT_SPEC
"""Lexical rankers after retrieval do worse than retrieval alone, which has read the passage."""
DEFAULT_BLEND = 1.0
"""Weight of the retrieval score. Retrieval reads the passage and the ranker the sentence."""
LOG_ODDS_BLEND = 0.5
"""Factor of `blend` for a calibrated ranker (research/results/corpus_blend.json)."""
MIN_COPY_CHARACTERS = 60
"""A sentence of this length says the same wherever it stands; a shorter one may not."""
DEFAULT_RETRIEVED = 100
"""Sentences to rank: 100 contained the answer nearly as often as 200."""
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

    The ranker gets the sentences of a document next to each other and in their order, documents
    with the best sentence first, each sentence with its title context (`add_title_context`). What
    its last stage ranks is sorted by the sum of the ranker's score and `blend` times the standard
    score of the retrieval. The ranker's score counts as a standard score, or as log odds if it is a
    probability, in which case `blend` counts half. With `blend=0`, the order is the ranker's.
    Without a ranker, the order is that of the retrieval.

    The best answer has the phrase that the ranker reads in it, if the ranker can read. Other
    answers have their nearest phrase, if the retriever searches phrases.

    Each answer has `context` sentences before and after it, if the retriever knows them.
    `threshold` replaces the ranker's own, from 0, which never refuses, to 1. With `join`, sentences
    that follow each other and all reach the threshold are one answer. The same sentence in several
    places is one answer, whose `also_at` has the other places.
    """
    check_question(question)
    if top_k < 1 or retrieved < top_k:
        raise InputError(
            "top_k must be at least 1 and at most retrieved, "
            f"got top_k={top_k}, retrieved={retrieved}."
        )
    if context < 0:
        raise InputError(f"context must not be negative, got {context}.")
    threshold = _threshold(ranker, threshold)
    start = time.perf_counter()
    total = len(retriever)
    sentences = retriever.retrieve(question, retrieved)
    report = StageReport(
        f"{retriever} % {retrieved}", total, len(sentences), time.perf_counter() - start
    )
    if ranker is None:
        ranking = Ranking(tuple(Hit(at, each.score) for at, each in enumerate(sentences)), ())
    else:
        sentences = in_document_order(sentences)
        texts = [each.text for each in add_title_context(question, sentences)]
        ranking = ranker.trace(question, texts)
        ranking = replace(ranking, hits=_blend_scores(ranking, sentences, blend))
    first_stage = 0 if ranker is None else 1  # retrieval is stage 0
    # A threshold of 0 would join whole sections.
    joined_from = (threshold or ranker.threshold) if join and ranker is not None else None
    hits, copies = _merge_copies(ranking.hits, sentences)
    groups = _group_hits(hits, sentences, top_k, joined_from)
    if ranker is not None and groups:
        best = groups[0][0].index
        phrase = read_phrase(ranker, question, sentences[best])
        sentences = list(sentences)
        sentences[best] = replace(sentences[best], phrase=phrase or sentences[best].phrase)
    answers = [
        replace(
            _to_answer(group, sentences, first_stage + group[0].stage, retriever, context),
            also_at=tuple(map(_to_place, copies.get(group[0].index, ()))),
        )
        for group in groups
    ]
    return Answers(
        question,
        tuple(answers),
        (report, *ranking.stages),
        time.perf_counter() - start,
        threshold,
    )


def _threshold(ranker: Ranker | None, given: float | None) -> float | None:
    """The threshold to use; None if there are no probabilities."""
    own = None if ranker is None else ranker.threshold
    if given is None:
        return own
    if not 0 <= given <= 1:
        raise InputError(f"threshold must be a probability from 0 to 1, got {given}.")
    if own is None and given:
        raise InputError(
            "A threshold needs a ranker with probabilities, such as cascade, got "
            f"{'no ranker' if ranker is None else ranker}. Leave out the threshold."
        )
    return None if own is None else given


def in_document_order(sentences: Sequence[RetrievedSentence]) -> list[RetrievedSentence]:
    """Documents in the order of their best sentence, and the sentences of each in text order."""
    rank: dict[str, int] = {}
    for sentence in sentences:
        rank.setdefault(sentence.document, len(rank))
    return sorted(sentences, key=lambda sentence: (rank[sentence.document], sentence.ordinal))


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


def _blend_scores(
    ranking: Ranking, sentences: Sequence[RetrievedSentence], blend: float
) -> tuple[Hit, ...]:
    """Add retrieval scores to those of the last stage; other hits keep their positions."""
    hits = ranking.hits
    last_stage = max((hit.stage for hit in hits), default=0)
    last_hits = [hit for hit in hits if hit.stage == last_stage]
    calibrated = bool(last_hits) and ranking.stages[last_stage].calibrated
    ranker_scores = (
        [log_odds(hit.score) for hit in last_hits]
        if calibrated
        else standard_scores([hit.score for hit in last_hits])
    )
    retrieval_scores = standard_scores([sentences[hit.index].score for hit in last_hits])
    if not blend or ranker_scores is None or retrieval_scores is None:
        return hits
    weight = blend * LOG_ODDS_BLEND if calibrated else blend
    blended = [
        replace(hit, score=ranker_score + weight * retrieval_score)
        for hit, ranker_score, retrieval_score in zip(
            last_hits, ranker_scores, retrieval_scores, strict=True
        )
    ]
    # The sort is stable: equal scores keep the ranker's order.
    return (*sorted(blended, key=lambda hit: -hit.score), *hits[len(last_hits) :])


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
    it in the same section and row if both reach the threshold.
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
    if threshold is None or not all((one.probability or 0) >= threshold for one in (hit, *group)):
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
    stage: int,
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
        stage=stage,
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
