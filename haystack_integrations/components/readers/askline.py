"""
Haystack: an extractive reader that points at the words in documents that answer the query.

Sentences are ranked in the context of their document. An answer has its exact offsets in it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from askline.errors import InputError, MissingExtraError
from askline.integrations.common import DEFAULT_SPEC, loaded_ranker
from askline.rankers.probability import ranking_relevance
from askline.text.sentences import split_sentences
from askline.types import Hit, Passage, Span

try:
    from haystack import Document, ExtractedAnswer, component
except ImportError as error:
    raise MissingExtraError("The Haystack integration", "haystack") from error

from haystack_integrations.components.rankers.askline import AsklineComponent

__all__ = ["AsklineReader"]


@dataclass(frozen=True)
class _Sentence:
    document: Document
    start: int
    end: int


@component
class AsklineReader(AsklineComponent):
    """
    Extracts answers from documents, best first.

    `data` of an answer is the phrase, or the whole sentence if the ranker points at no phrase;
    `context` is the sentence; `score` is a probability from 0 to 1. With `no_answer`, an answer
    without data is added, whose score is the probability that no other answer is right.
    """

    def __init__(
        self,
        ranker: str = DEFAULT_SPEC,
        top_k: int = 5,
        score_threshold: float | None = None,
        no_answer: bool = True,
    ) -> None:
        """
        `ranker` is the spec text of a ranker, `top_k` the most answers.

        Answers that score below `score_threshold` are left out.
        """
        if top_k < 1:
            raise InputError(f"top_k must be a positive integer, got {top_k}.")
        self.ranker = ranker
        self.top_k = top_k
        self.score_threshold = score_threshold
        self.no_answer = no_answer

    @component.output_types(answers=list[ExtractedAnswer])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[ExtractedAnswer]]:
        """Return answers, best first."""
        sentences, passages = _split(documents)
        answers: list[ExtractedAnswer] = []
        if sentences:
            ranker = loaded_ranker(self.ranker)
            ranking = ranker.trace(query, passages)
            scored = zip(ranking.hits, ranking_relevance(ranking), strict=True)
            kept = [
                (hit, score)
                for hit, score in scored
                if self.score_threshold is None or score >= self.score_threshold
            ][: self.top_k if top_k is None else top_k]
            read = ranker.read(query, [hit.text for hit, _ in kept])
            answers = [
                _answer(query, sentences[hit.index], hit, score, _best_span(hit, alone))
                for (hit, score), alone in zip(kept, read, strict=True)
            ]
        if self.no_answer:
            wrong = 1.0
            for answer in answers:
                wrong *= 1 - answer.score
            answers.append(ExtractedAnswer(query=query, score=wrong, data=None))
            answers.sort(key=lambda answer: -answer.score)
        return {"answers": answers}

    @component.output_types(answers=list[ExtractedAnswer])
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[ExtractedAnswer]]:
        """`run` in a thread."""
        return await asyncio.to_thread(self.run, query, documents, top_k)


def _split(documents: list[Document]) -> tuple[list[_Sentence], list[Passage]]:
    """Each sentence with its place, and one passage per document, in the same order."""
    sentences, passages = list[_Sentence](), list[Passage]()
    for document in documents:
        content = document.content or ""
        spans = split_sentences(content)
        sentences += [_Sentence(document, start, end) for start, end in spans]
        title = document.meta.get("title")
        passages.append(
            Passage(
                [content[start:end] for start, end in spans],
                title if isinstance(title, str) else "",
            )
        )
    return sentences, passages


def _best_span(hit: Hit, alone: Span | None) -> Span | None:
    """What the ranker pointed at in the passage, or else in the sentence alone."""
    if hit.span is not None and hit.span.score > hit.span.no_answer:
        return hit.span
    return alone


def _answer(
    query: str, place: _Sentence, hit: Hit, score: float, span: Span | None
) -> ExtractedAnswer:
    start, end = (0, len(hit.text)) if span is None else (span.start, span.end)
    return ExtractedAnswer(
        query=query,
        score=score,
        data=hit.text[start:end],
        document=place.document,
        context=hit.text,
        document_offset=ExtractedAnswer.Span(place.start + start, place.start + end),
        context_offset=ExtractedAnswer.Span(start, end),
        meta={},
    )
