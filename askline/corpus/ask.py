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
from .results import Answer, AnswerPhrase, Answers, RetrievedSentence
from .retrieval import HasNeighbors, Retriever, standard_scores
from .title_context import SentenceInContext, TitledSentence, add_title_context

__all__ = [
    "DEFAULT_BLEND",
    "DEFAULT_RANKER",
    "DEFAULT_RETRIEVED",
    "LOG_ODDS_BLEND",
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
DEFAULT_RETRIEVED = 100
"""Sentences to rank: 100 contained the answer nearly as often as 200."""


def answer(
    question: str,
    retriever: Retriever,
    ranker: Ranker | None = None,
    *,
    top_k: int = 5,
    retrieved: int = DEFAULT_RETRIEVED,
    blend: float = DEFAULT_BLEND,
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
    """
    check_question(question)
    if top_k < 1 or retrieved < top_k:
        raise InputError(
            "top_k must be at least 1 and at most retrieved, "
            f"got top_k={top_k}, retrieved={retrieved}."
        )
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
    answers = [
        _to_answer(sentences[hit.index], hit, hit.stage + first_stage, retriever)
        for hit in ranking.hits[:top_k]
    ]
    if ranker is not None and answers:
        phrase = read_phrase(ranker, question, answers[0])
        answers[0] = replace(answers[0], phrase=phrase or answers[0].phrase)
    return Answers(
        question,
        tuple(answers),
        (report, *ranking.stages),
        time.perf_counter() - start,
        None if ranker is None else ranker.threshold,
    )


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


def _to_answer(sentence: RetrievedSentence, hit: Hit, stage: int, retriever: Retriever) -> Answer:
    before, after = "", ""
    if isinstance(retriever, HasNeighbors):
        before, after = retriever.neighbors(sentence)
    return Answer(
        text=sentence.text,
        score=hit.score,
        stage=stage,
        probability=hit.probability,
        document=sentence.document,
        title=sentence.title,
        start=sentence.start,
        end=sentence.end,
        unit=sentence.unit,
        number=sentence.number,
        heading=sentence.heading,
        before=before,
        after=after,
        row=sentence.row,
        record=sentence.record,
        phrase=sentence.phrase,
    )
