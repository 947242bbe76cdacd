"""
From retrieved sentences to ranked ones, with the probability that the order follows.

A ranker that reads passages gets the passages of the retrieved sentences, and ranks all their
sentences in context; it may then read the best of them once more, alone. Any other ranker, and any
retriever that knows no passages, has the retrieved sentences ranked one by one, each with its title
context.

The score of a sentence that a calibrated stage has ranked is the log odds of an answer, from the
ranker's score and the retrieval score, and its probability is that of these log odds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..rankers.base import Ranker
from ..rankers.languages import warn_of_language
from ..rankers.probability import UNCALIBRATED, AnswerCalibration, log_odds, probability_of
from ..text.language import detect_language
from ..text.words import split_words
from ..types import Hit, Passage, Ranking, StageReport
from .bm25 import Stemmer
from .passages import MAX_SENTENCE_CHARACTERS
from .results import RetrievedSentence
from .retrieval import HasPassages, Retriever, standard_scores
from .title_context import add_title_context, title_path

__all__ = [
    "LOG_ODDS_BLEND",
    "ChosenPassages",
    "RankedSentences",
    "choose_passages",
    "in_document_order",
    "rank_sentences",
]

LOG_ODDS_BLEND = 0.5
"""Factor of `blend` for a calibrated ranker (research/results/corpus_blend.json)."""
_TYPICAL_RETRIEVAL = 1.25  # standard score of a best answer, which leaves its probability as it is
_FITTED_LIST = 100  # retrieved sentences when the probabilities of passages were fitted
_FIRST_STAGE_WEIGHT = 0.5  # of the first stage beside retrieval, in the choice of passages


class RankedSentences(NamedTuple):
    """Sentences in the order of the ranker and the retrieval."""

    sentences: Sequence[RetrievedSentence]
    """As the ranker got them; `Hit.index` is a position in this list."""
    hits: tuple[Hit, ...]
    """Best first. Retrieval is stage 0."""
    stages: tuple[StageReport, ...]
    ranker_stage: int = 1
    """The position in `stages` of the ranker's first stage."""
    threshold: float | None = None
    """The probability below which a sentence is not an answer; None if not calibrated."""


def rank_sentences(
    question: str, retriever: Retriever, ranker: Ranker | None, *, retrieved: int, blend: float
) -> RankedSentences:
    """Rank what a retriever finds; without a ranker, in the order of the retrieval."""
    start, total = time.perf_counter(), len(retriever)
    sentences = retriever.retrieve(question, retrieved)
    seconds = time.perf_counter() - start
    report = StageReport(f"{retriever} % {retrieved}", total, len(sentences), seconds)
    ranker = ranker and _ranker_for_texts(question, sentences, ranker)
    if ranker is None:
        hits = tuple(Hit(at, each.score) for at, each in enumerate(sentences))
        return RankedSentences(sentences, hits, (report,))
    if ranker.context is not None and isinstance(retriever, HasPassages) and sentences:
        chosen = choose_passages(question, retriever, sentences, ranker, ranker.context.enter)
        return _rank_passages(question, sentences, chosen, ranker, blend, report)
    sentences = in_document_order(sentences)
    texts = [each.text for each in add_title_context(question, sentences)]
    ranking = ranker.trace(question, texts)
    hits = _after(1, _blend_scores(ranking, sentences, blend))
    return RankedSentences(sentences, hits, (report, *ranking.stages), 1, ranker.threshold)


def _ranker_for_texts(
    question: str, sentences: Sequence[RetrievedSentence], ranker: Ranker
) -> Ranker | None:
    """The ranker for the language of the texts; None if no model can read it."""
    language = detect_language([question, *(each.text for each in sentences)])
    own = ranker.for_language(language)
    if own is None:
        warn_of_language(language)
    return own


def _after(stages: int, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    return tuple(replace(hit, stage=hit.stage + stages) for hit in hits)


def in_document_order(sentences: Sequence[RetrievedSentence]) -> list[RetrievedSentence]:
    """Documents in the order of their best sentence, and the sentences of each in text order."""
    rank: dict[str, int] = {}
    for sentence in sentences:
        rank.setdefault(sentence.document, len(rank))
    return sorted(sentences, key=lambda sentence: (rank[sentence.document], sentence.ordinal))


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
    weight, center = blend, 0.0
    if calibrated:
        weight, center = blend * LOG_ODDS_BLEND, min(_TYPICAL_RETRIEVAL, max(retrieval_scores))
    blended = []
    for hit, ranker_score, retrieval_score in zip(
        last_hits, ranker_scores, retrieval_scores, strict=True
    ):
        score = ranker_score + weight * (retrieval_score - center)
        probability = hit.probability
        if calibrated and probability is not None and score != ranker_score:
            probability = probability_of(score)
        blended.append(replace(hit, score=score, probability=probability))
    # The sort is stable: equal scores keep the ranker's order.
    blended.sort(key=lambda hit: -hit.score)
    return _falling_probabilities([*blended, *hits[len(last_hits) :]])


def _falling_probabilities(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """
    The hits, none with a higher probability than one before it.

    What an earlier stage dropped stands behind what a later stage has ranked, and was judged less
    well: it cannot be more probable.
    """
    made, lowest = list[Hit](), 1.0
    for hit in hits:
        if hit.probability is not None:
            lowest = min(lowest, hit.probability)
            hit = replace(hit, probability=lowest)
        made.append(hit)
    return tuple(made)


# --- Passages ---


@dataclass(frozen=True, slots=True)
class ChosenPassages:
    """The passages that the ranker reads, most promising first, and the sentences of the others."""

    passages: list[list[RetrievedSentence]]
    others: list[RetrievedSentence]
    """Most promising first."""
    stages: tuple[StageReport, ...]


def choose_passages(
    question: str,
    retriever: HasPassages,
    sentences: Sequence[RetrievedSentence],
    ranker: Ranker,
    most: int,
) -> ChosenPassages:
    """
    The passages of the retrieved sentences, at most `most` of them.

    A passage is as promising as its best retrieved sentence, by the sum of two standard scores:
    that of the retrieval and that of the first stage of a pipeline.
    """
    start = time.perf_counter()
    promise = standard_scores([each.score for each in sentences]) or [0.0] * len(sentences)
    first, stages = ranker.first_stage, tuple[StageReport, ...]()
    if first is not None and sentences:
        texts = [each.text for each in add_title_context(question, sentences)]
        scores = standard_scores(first.score(question, texts).tolist())
        for at, score in enumerate(scores or ()):
            promise[at] += _FIRST_STAGE_WEIGHT * score
    by_promise = sorted(range(len(sentences)), key=lambda at: -promise[at])
    passages: dict[tuple[object, ...], list[RetrievedSentence]] = {}
    others = list[RetrievedSentence]()
    for sentence in (sentences[at] for at in by_promise):
        place = sentence.passage or (sentence.ordinal, sentence.ordinal)  # without one, alone
        key = (sentence.document, place, sentence.row)
        if key in passages:
            passages[key].append(sentence)
        elif len(passages) < most:
            passages[key] = [sentence]
        else:
            others.append(sentence)
    whole = [_whole_passage(retriever, found) for found in passages.values()]
    if first is not None:
        count, seconds = sum(map(len, passages.values())), time.perf_counter() - start
        report = StageReport(f"{first} % {most} passages", len(sentences), count, seconds)
        stages = (report,)
    return ChosenPassages(whole, others, stages)


def _whole_passage(
    retriever: HasPassages, found: Sequence[RetrievedSentence]
) -> list[RetrievedSentence]:
    """
    All sentences of a passage in their order, without headings and code.

    A sentence that was not retrieved has the retrieval score minus infinity.
    """
    known = {each.ordinal: each for each in found}
    made = dict(known)
    for each in retriever.passage(found[0]):
        if each.ordinal not in known and not each.is_heading and each.kind != "code":
            made[each.ordinal] = replace(
                found[0],
                ordinal=each.ordinal,
                text=each.text,
                start=each.start,
                end=each.end,
                number=each.number,
                heading=each.heading,
                score=float("-inf"),
                phrase=None,
                lead_in="",
            )
    return [made[ordinal] for ordinal in sorted(made)]


def _rank_passages(
    question: str,
    retrieved: Sequence[RetrievedSentence],
    chosen: ChosenPassages,
    ranker: Ranker,
    blend: float,
    report: StageReport,
) -> RankedSentences:
    """Rank the sentences of the chosen passages; those of the others follow."""
    settings = ranker.context
    assert settings is not None
    # A sentence that was not retrieved counts as the worst one that was.
    lowest = min(each.score for each in retrieved)
    sentences = [
        replace(each, score=max(each.score, lowest))
        for passage in chosen.passages
        for each in passage
    ]
    documents = [
        Passage([each.text[:MAX_SENTENCE_CHARACTERS] for each in passage], title_path(passage[0]))
        for passage in chosen.passages
    ]
    ranking = ranker.trace(question, documents)
    stages = (report, *chosen.stages, *ranking.stages)
    first = 1 + len(chosen.stages)
    repeats = _repetition_check(question)
    standard = _standard_by_score([each.score for each in retrieved])
    hits = list[Hit]()
    for hit in ranking.hits:
        if repeats(sentences[hit.index].text):
            continue
        depth = ranking.stages[hit.stage].context_depth
        if depth is not None and hit.probability is not None:
            calibration = settings.calibration.get(depth, UNCALIBRATED)
            weights = settings.answer.get(depth) or AnswerCalibration(
                calibration.scale,
                LOG_ODDS_BLEND,
                calibration.shift - blend * LOG_ODDS_BLEND * _TYPICAL_RETRIEVAL,
            )
            logit = calibration.logit(hit.probability)
            score = weights.log_odds(logit, blend * standard[sentences[hit.index].score])
            hit = replace(hit, score=score, probability=probability_of(score))
        hits.append(replace(hit, stage=hit.stage + first))
    hits.sort(key=lambda hit: (-hit.stage, hit.probability is None, -hit.score))  # stable
    alone = _read_alone(question, hits, sentences, standard, ranker, blend, stages)
    if alone is not None:
        hits, stages = alone
    rest = [
        Hit(len(sentences) + at, each.score, first - 1) for at, each in enumerate(chosen.others)
    ]
    return RankedSentences(
        [*sentences, *chosen.others],
        _falling_probabilities([*hits, *rest]),
        stages,
        first,
        ranker.threshold if settings.threshold is None else settings.threshold,
    )


def _read_alone(
    question: str,
    hits: Sequence[Hit],
    sentences: Sequence[RetrievedSentence],
    standard: Mapping[float, float],
    ranker: Ranker,
    blend: float,
    stages: tuple[StageReport, ...],
) -> tuple[list[Hit], tuple[StageReport, ...]] | None:
    """
    Read the best sentences once more, alone, and rank them by both readings.

    A passage shows what a sentence is about, and alone it must carry the answer itself: the two
    readings make different mistakes. None if the folder does not ask for it, or for want of time.
    """
    settings, full_depth = ranker.context, ranker.full_depth
    if settings is None or settings.alone is None or full_depth is None or not hits:
        return None
    depth = stages[hits[0].stage].context_depth
    if depth is None or depth not in settings.answer:
        return None
    best = [hit for hit in hits if hit.stage == hits[0].stage and hit.probability is not None]
    best = best[: settings.alone.count]
    texts = [
        each.text for each in add_title_context(question, [sentences[hit.index] for hit in best])
    ]
    ranking = full_depth.trace(question, texts)
    weights, own = settings.answer[depth], list[Hit]()
    for found in ranking.hits:
        hit = best[found.index]
        retrieval = blend * standard[sentences[hit.index].score]
        in_context = (hit.score - weights.retrieval * retrieval - weights.bias) / weights.logit
        score = settings.alone.log_odds(in_context, log_odds(found.score), retrieval)
        own.append(replace(hit, score=score, probability=probability_of(score), stage=len(stages)))
    own.sort(key=lambda hit: -hit.score)
    report = replace(ranking.stages[-1], context_depth=depth)
    return [*own, *hits[len(best) :]], (*stages, report)


def _standard_by_score(scores: Sequence[float]) -> dict[float, float]:
    """
    The standard score of each score; 0 for all if one of them is not finite.

    The best of few scores cannot stand out as far as the best of many: of n normal scores it is
    expected about √(2 ln n) above the mean. What a short list lacks is added to all its scores,
    because the weights of the scores were fitted on lists of `_FITTED_LIST`.
    """
    missing = math.sqrt(2) * (
        math.sqrt(math.log(_FITTED_LIST)) - math.sqrt(math.log(min(len(scores), _FITTED_LIST)))
    )
    standard = standard_scores(scores) or [0.0] * len(scores)
    return {score: own + missing for score, own in zip(scores, standard, strict=True)}


def _repetition_check(question: str) -> Callable[[str], bool]:
    """Whether a sentence has nothing but words of the question, which answers nothing."""
    stem = Stemmer().stem
    known = {stem(word) for word in split_words(question)}
    return lambda sentence: known.issuperset(stem(word) for word in split_words(sentence))
