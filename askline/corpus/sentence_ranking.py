"""
From retrieved sentences to ranked ones, with the probability that the order follows.

A ranker that reads passages reads the retrieved sentences alone, each with its title context: the
title, headings and lead-in that it needs in front. Then it reads the passages of the best of them
in context. Any other ranker, and any retriever that knows no passages, has the retrieved sentences
ranked one by one only.

The score of a sentence that a calibrated stage has ranked is the log odds of an answer, from the
ranker's score and the retrieval score, and its probability is that of these log odds.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple, Protocol

from ..rankers.base import Ranker
from ..rankers.languages import warn_of_language
from ..rankers.probability import AnswerCalibration, log_odds, probability_of
from ..text.language import detect_language
from ..text.words import STOP_WORDS, split_words
from ..types import Hit, Passage, Ranking, StageReport
from .bm25 import Stemmer
from .passages import HEADING_SEPARATOR, MAX_SENTENCE_CHARACTERS
from .results import RetrievedSentence
from .retrieval import HasCorrections, HasPassages, Retriever, standard_scores

__all__ = [
    "LOG_ODDS_BLEND",
    "RankedSentences",
    "SentenceInContext",
    "TitledSentence",
    "add_title_context",
    "in_document_order",
    "most_promising",
    "passage_key",
    "rank_sentences",
    "sentence_key",
    "standard_by_score",
    "title_path",
    "whole_passage",
]

LOG_ODDS_BLEND = 0.5
"""Factor of `blend` for a calibrated ranker (research/results/corpus_blend.json)."""
_TYPICAL_RETRIEVAL = 1.25  # standard score of a best answer, which leaves its probability as it is
_FITTED_LIST = 100  # retrieved sentences when the probabilities of passages were fitted
_FIRST_STAGE_WEIGHT = 0.5  # of the first stage beside retrieval, in the choice of sentences
_UNFITTED = AnswerCalibration(retrieval=LOG_ODDS_BLEND, bias=-LOG_ODDS_BLEND * _TYPICAL_RETRIEVAL)
_MAX_TITLE_CHARACTERS = 200
_FILE_SUFFIX = re.compile(r"(?<=\w)\.[A-Za-z]{2,5}$")
_FILE_NAME_SEPARATORS = re.compile(r"[_-]+")


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
    context_stage: int = 0
    """The position in `stages` of the first stage that read passages."""
    in_context: Sequence[int] = ()
    """The sentences that were read in context, as the ranker got them."""
    question: str = ""
    """The question as the ranker read it, with misspelled words corrected; empty without one."""


def rank_sentences(
    question: str, retriever: Retriever, ranker: Ranker | None, *, retrieved: int, blend: float
) -> RankedSentences:
    """Rank what a retriever finds; without a ranker, in the order of the retrieval."""
    start, total = time.perf_counter(), len(retriever)
    sentences = retriever.retrieve(question, retrieved)
    seconds = time.perf_counter() - start
    report = StageReport(f"{retriever} % {retrieved}", total, len(sentences), seconds)
    ranker = ranker and _ranker_for_texts(question, sentences, ranker)
    if ranker is not None and isinstance(retriever, HasCorrections):
        question = retriever.corrected(question)
    if ranker is None:
        hits = tuple(Hit(at, each.score) for at, each in enumerate(sentences))
        return RankedSentences(sentences, hits, (report,))
    if ranker.context is not None and isinstance(retriever, HasPassages) and sentences:
        return _ContextRanking(question, retriever, sentences, ranker, blend, report).run()
    sentences = in_document_order(sentences)
    texts = [each.text for each in add_title_context(question, sentences)]
    ranking = ranker.trace(question, texts)
    hits = _after(1, _blend_scores(ranking, sentences, blend))
    stages = (report, *ranking.stages)
    return RankedSentences(sentences, hits, stages, 1, ranker.threshold, question=question)


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


# --- Sentences alone, then passages in context ---


def most_promising(
    question: str, sentences: Sequence[RetrievedSentence], first: Ranker | None
) -> list[RetrievedSentence]:
    """
    The retrieved sentences, most promising first.

    By the sum of two standard scores: that of the retrieval and that of the first stage of a
    pipeline, if there is one.
    """
    promise = standard_scores([each.score for each in sentences]) or [0.0] * len(sentences)
    if first is not None:
        texts = [each.text for each in add_title_context(question, sentences)]
        scores = standard_scores(first.score(question, texts).tolist())
        for at, score in enumerate(scores or ()):
            promise[at] += _FIRST_STAGE_WEIGHT * score
    return [sentences[at] for at in sorted(range(len(sentences)), key=lambda at: -promise[at])]


class _ContextRanking:
    """
    One question to a ranker that reads single sentences and passages.

    A passage shows what a sentence is about, and alone it must carry the answer itself: the two
    readings make different mistakes. Reading alone compares sentences of many passages, so it
    comes first; the passages of the best sentences are then read in context.
    """

    def __init__(
        self,
        question: str,
        retriever: HasPassages,
        retrieved: Sequence[RetrievedSentence],
        ranker: Ranker,
        blend: float,
        report: StageReport,
    ) -> None:
        assert ranker.context is not None
        self._question, self._retriever, self._ranker = question, retriever, ranker
        self._ask = ranker.context.ask
        self._stages = [report]
        standard = standard_by_score([each.score for each in retrieved])
        # A sentence that was not retrieved counts as the worst one that was.
        self._lowest = min(each.score for each in retrieved)
        self._retrieval = {score: blend * value for score, value in standard.items()}
        start = time.perf_counter()
        promising = most_promising(question, retrieved, ranker.first_stage)
        self._sentences = promising[: self._ask.sentences]
        """Those that are read alone; sentences that are only read in context follow."""
        self._others = promising[self._ask.sentences :]
        if ranker.first_stage is not None:
            name = f"{ranker.first_stage} % {self._ask.sentences}"
            seconds, kept = time.perf_counter() - start, len(self._sentences)
            self._stages.append(StageReport(name, len(retrieved), kept, seconds))
        self._alone: dict[int, float] = {}
        """By sentence, the log odds alone at the last depth."""
        self._context: dict[int, Hit] = {}
        """By sentence, what the ranker found in the passage."""

    def run(self) -> RankedSentences:
        first = len(self._stages)
        alone = self._read_alone()
        context_stage = len(self._stages)
        in_context = self._read_in_context(self._best_passages(alone))
        self._read_more_alone(in_context)
        hits = self._final_hits()
        ranked = {hit.index for hit in hits}
        hits += [replace(hit, stage=hit.stage + first) for hit in alone if hit.index not in ranked]
        hits += self._context_only({hit.index for hit in hits})
        repeats = _repetition_check(self._question)
        hits = [hit for hit in hits if not repeats(self._sentences[hit.index].text)]
        count = len(self._sentences)
        hits += [Hit(count + at, one.score, first - 1) for at, one in enumerate(self._others)]
        threshold = self._ask.threshold
        return RankedSentences(
            [*self._sentences, *self._others],
            _falling_probabilities(hits),
            tuple(self._stages),
            first,
            self._ranker.threshold if threshold is None else threshold,
            context_stage,
            in_context,
            self._question,
        )

    def _read_alone(self) -> list[Hit]:
        """The sentences that were read alone, with the probability that this reading gives them."""
        ranker = self._ranker.alone
        assert ranker is not None
        ranking = ranker.trace(self._question, self._texts(range(len(self._sentences))))
        self._stages += ranking.stages
        deepest = max((hit.stage for hit in ranking.hits if hit.probability is not None), default=0)
        is_last = deepest == len(ranking.stages) - 1
        hits = list[Hit]()
        for hit in ranking.hits:
            if hit.probability is not None:
                alone, depth = log_odds(hit.score), ranking.stages[hit.stage].depth
                weights = self._ask.answer.get(depth or 0, _UNFITTED)
                odds = weights.log_odds(alone, self._retrieval_of(hit.index))
                if hit.stage == deepest and is_last:
                    self._alone[hit.index] = alone
                hit = replace(hit, score=odds, probability=probability_of(odds))
            hits.append(hit)
        return hits

    def _best_passages(self, alone: Sequence[Hit]) -> list[list[int]]:
        """The passages of the best sentences, each by its sentences in their order."""
        best = sorted(
            (hit for hit in alone if hit.probability is not None), key=lambda hit: -hit.score
        )
        keys = dict.fromkeys(passage_key(self._sentences[hit.index]) for hit in best)
        passages = {key: list[RetrievedSentence]() for key in list(keys)[: self._ask.passages]}
        for each in (*self._sentences, *self._others):
            if (key := passage_key(each)) in passages:
                passages[key].append(each)
        number = {sentence_key(each): at for at, each in enumerate(self._sentences)}
        found = list[list[int]]()
        for own in passages.values():
            rows = list[int]()
            for each in whole_passage(self._retriever, own):
                at = number.setdefault(sentence_key(each), len(self._sentences))
                if at == len(self._sentences):
                    self._sentences.append(replace(each, score=max(each.score, self._lowest)))
                rows.append(at)
            found.append(rows)
        added = set(map(sentence_key, self._sentences))
        self._others = [each for each in self._others if sentence_key(each) not in added]
        return found

    def _read_in_context(self, passages: Sequence[Sequence[int]]) -> list[int]:
        """Read these passages; the sentences that were read, as the ranker got them."""
        if not passages:
            return []
        documents = [
            Passage(
                [self._sentences[at].text[:MAX_SENTENCE_CHARACTERS] for at in own],
                title_path(self._sentences[own[0]]),
            )
            for own in passages
        ]
        rows = [at for own in passages for at in own]
        ranking = self._ranker.trace(self._question, documents)
        self._context = {
            rows[hit.index]: replace(
                hit, index=rows[hit.index], stage=len(self._stages) + hit.stage
            )
            for hit in ranking.hits
            if hit.probability is not None
        }
        self._stages += ranking.stages
        return rows if len(self._context) == len(rows) else []

    def _read_more_alone(self, in_context: Sequence[int]) -> None:
        """Read the best sentences in context alone too, if there is time left."""
        ranker = self._ranker.full_depth
        new = [at for at in in_context if at not in self._alone]
        new = sorted(new, key=lambda at: -self._context[at].score)[: self._ask.more]
        if ranker is None or not new or not self._alone:
            return
        ranking = ranker.trace(self._question, self._texts(new))
        self._stages += ranking.stages
        self._alone |= {new[hit.index]: log_odds(hit.score) for hit in ranking.hits}

    def _final_hits(self) -> list[Hit]:
        """The sentences that were read alone to the last depth, by both readings."""
        last, hits = len(self._stages) - 1, list[Hit]()
        for at, alone in self._alone.items():
            found = self._context.get(at)
            context = log_odds(found.score) if found is not None else None
            odds = self._ask.both.log_odds(alone, context, self._retrieval_of(at))
            span = found.span if found is not None else None
            hits.append(Hit(at, odds, last, probability_of(odds), span=span))
        return sorted(hits, key=lambda hit: -hit.score)  # stable

    def _context_only(self, known: set[int]) -> list[Hit]:
        """Sentences that were not retrieved, by the reading in context."""
        new = [hit for at, hit in self._context.items() if at not in known]
        return sorted(new, key=lambda hit: -hit.score)  # stable

    def _retrieval_of(self, at: int) -> float:
        return self._retrieval[self._sentences[at].score]

    def _texts(self, rows: Sequence[int]) -> list[str]:
        found = add_title_context(self._question, [self._sentences[at] for at in rows])
        return [each.text for each in found]


def passage_key(sentence: RetrievedSentence) -> tuple[object, ...]:
    place = sentence.passage or (sentence.ordinal, sentence.ordinal)  # without one, alone
    return sentence.document, place, sentence.row


def sentence_key(sentence: RetrievedSentence) -> tuple[object, ...]:
    return sentence.document, sentence.ordinal, sentence.row


def whole_passage(
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


def standard_by_score(scores: Sequence[float]) -> dict[float, float]:
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


class TitledSentence(Protocol):
    """A sentence, the title of its document, the headings above it, and the lead-in of its list."""

    @property
    def text(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def heading(self) -> str: ...

    @property
    def headings(self) -> Sequence[str]: ...

    @property
    def lead_in(self) -> str: ...


class SentenceInContext(NamedTuple):
    """A sentence with its context in front: `text[sentence_start:]` is the sentence."""

    text: str
    sentence_start: int


def add_title_context(
    question: str, sentences: Sequence[TitledSentence]
) -> list[SentenceInContext]:
    """
    Each sentence, at most 4,000 characters of it, with the titles and headings it needs.

    Under a title or heading, a sentence need not name its subject: "MIT." is enough below
    "License". What contains words of the question that the sentence and the nearer headings lack
    is put in front of the sentence (research/decisions/corpus-store.md has the figures).
    """
    stem = Stemmer().stem

    def terms(text: str) -> frozenset[str]:
        return frozenset(stem(word) for word in split_words(text) if word not in STOP_WORDS)

    question_terms = terms(question)
    # Cached, because most sentences share their title and heading with others.
    shared_terms = cache(lambda title: question_terms & terms(title))
    contexts = []
    for sentence in sentences:
        text = sentence.text[:MAX_SENTENCE_CHARACTERS]
        titles = [title for title in _titles(sentence) if shared_terms(title)]
        needed = []
        if titles:
            known = terms(text)
            for title in titles:
                if not shared_terms(title) <= known:
                    needed.append(title)
                    known |= shared_terms(title)
        context = f"{' · '.join(reversed(needed)).removesuffix(':')}: " if needed else ""
        contexts.append(SentenceInContext(context + text, len(context)))
    return contexts


def title_path(sentence: TitledSentence) -> str:
    """
    The title and the headings above a sentence, from the highest to the nearest.

    The highest are left out of a path of more than 200 characters.
    """
    titles = _readable_title(sentence.title), *sentence.headings[:-1], sentence.heading
    parts = list(dict.fromkeys(title for title in titles if title))
    while len(parts) > 1 and len(HEADING_SEPARATOR.join(parts)) > _MAX_TITLE_CHARACTERS:
        del parts[0]
    return HEADING_SEPARATOR.join(parts)[:_MAX_TITLE_CHARACTERS]


def _titles(sentence: TitledSentence) -> Iterable[str]:
    """The lead-in, the headings from the nearest to the highest, and the title; each once."""
    above = reversed(sentence.headings[:-1])
    titles = sentence.lead_in, sentence.heading, *above, _readable_title(sentence.title)
    return dict.fromkeys(title[:_MAX_TITLE_CHARACTERS] for title in titles if title)


def _readable_title(title: str) -> str:
    """Turn a file name into words: `travel-policy.txt` into `travel policy`."""
    if " " in title:
        return title
    return _FILE_NAME_SEPARATORS.sub(" ", _FILE_SUFFIX.sub("", title))
