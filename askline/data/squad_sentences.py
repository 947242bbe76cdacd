"""
SQuAD-sent: from paragraphs with answer spans to questions over the paragraph's sentences.

The rule for labels: every gold span makes one sentence an answer, the one that holds most of the
span's characters, the earlier one where two hold the same. That is the sentence which contains the
span, save where the splitter cut through it. So a question with a gold span always has an answer
sentence, and annotators who marked different sentences give it more than one; `gold="first"` looks
at the first span only, as for the published SQuAD-sent, which has at most one answer sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from os import PathLike
from typing import Literal

from ..text.sentences import split_sentences
from ..types import Candidate, Question, QuestionSet, Source
from .squad import AnswerSpan, Paragraph, ParagraphSet, SpanQuestion, read_paragraphs

__all__ = ["Splitter", "hold_out", "read_squad", "to_sentences"]

Splitter = Callable[[str], list[tuple[int, int]]]
"""From a text to the offsets of its sentences, in order."""


def read_squad(
    path: str | PathLike[str],
    *,
    name: str | None = None,
    splitter: Splitter = split_sentences,
    gold: Literal["all", "first"] = "all",
) -> QuestionSet:
    """A file in SQuAD's format as SQuAD-sent; `read_paragraphs` and `to_sentences` in one."""
    return to_sentences(read_paragraphs(path, name=name), splitter=splitter, gold=gold)


def to_sentences(
    paragraphs: ParagraphSet,
    *,
    splitter: Splitter = split_sentences,
    gold: Literal["all", "first"] = "all",
) -> QuestionSet:
    """
    Each question with all sentences of its paragraph, in order, and the different gold phrases.

    A candidate's source is the paragraph's id with the exact offsets in its text.
    """
    questions: list[Question] = []
    for paragraph in paragraphs.paragraphs:
        candidates = _sentences(paragraph, splitter)
        for question in paragraph.questions:
            spans = question.answers if gold == "all" else question.answers[:1]
            questions.append(_labelled(question, spans, candidates))
    return QuestionSet(paragraphs.name, tuple(questions))


def hold_out(paragraphs: ParagraphSet, *, share: float = 0.1) -> tuple[ParagraphSet, ParagraphSet]:
    """
    Two parts of a set, the second with at most `share` of the questions and close to it.

    No article is in both parts; in a set of a single article, no paragraph text is. The choice
    hangs on the titles (or texts) alone: in the order of their SHA-256, each joins the second part
    if its questions still fit. Order within the parts is that of the set.
    """
    articles = {paragraph.article for paragraph in paragraphs.paragraphs}
    keys = [
        paragraph.article if len(articles) > 1 else paragraph.text
        for paragraph in paragraphs.paragraphs
    ]
    sizes: dict[str, int] = {}
    for key, paragraph in zip(keys, paragraphs.paragraphs, strict=True):
        sizes[key] = sizes.get(key, 0) + len(paragraph.questions)
    held: set[str] = set()
    room = int(paragraphs.question_count * share)
    for key in sorted(sizes, key=lambda key: sha256(key.encode()).digest()):
        if sizes[key] <= room:
            held.add(key)
            room -= sizes[key]
    pairs = list(zip(keys, paragraphs.paragraphs, strict=True))
    rest = tuple(paragraph for key, paragraph in pairs if key not in held)
    part = tuple(paragraph for key, paragraph in pairs if key in held)
    return replace(paragraphs, paragraphs=rest), replace(paragraphs, paragraphs=part)


def _sentences(paragraph: Paragraph, splitter: Splitter) -> list[Candidate]:
    return [
        Candidate(
            f"{paragraph.id}-{place}",
            paragraph.text[start:end],
            source=Source(paragraph.id, start, end),
        )
        for place, (start, end) in enumerate(splitter(paragraph.text))
    ]


def _labelled(
    question: SpanQuestion, spans: Sequence[AnswerSpan], sentences: list[Candidate]
) -> Question:
    """Sentences that are no answer are shared between the paragraph's questions."""
    candidates = list(sentences)
    for place in {_holder(span, sentences) for span in spans}:
        if place is not None:
            candidates[place] = replace(sentences[place], is_answer=True)
    answers = dict.fromkeys(span.text for span in question.answers)
    return Question(question.id, question.text, tuple(candidates), tuple(answers))


def _holder(span: AnswerSpan, sentences: list[Candidate]) -> int | None:
    """The sentence that holds most of a span; None where the splitter left the span out."""
    best, most = None, 0
    for place, candidate in enumerate(sentences):
        source = candidate.source
        assert source is not None  # `_sentences` gave it
        held = min(span.end, source.end) - max(span.start, source.start)
        if held > most:
            best, most = place, held
    return best
