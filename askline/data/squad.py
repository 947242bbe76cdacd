"""
SQuAD 1.1 and 2.0 and the sets in their format: paragraphs with questions and answer spans.

SQuADShifts, PIAF and FQuAD have that format; `squad_sentences` makes question sets of it. Read too
is a plain list of paragraphs, `[{"context": …, "qas": [{"question": …, "answer": …}]}]`, whose
answers are texts without offsets: there the first occurrence in the context is the span.

SQuAD-sent: from paragraphs with answer spans to questions over the paragraph's sentences.

The rule for labels: every gold span makes one sentence an answer, the one that holds most of the
span's characters, the earlier one where two hold the same. That is the sentence which contains the
span, save where the splitter cut through it. So a question with a gold span always has an answer
sentence, and annotators who marked different sentences give it more than one; `gold="first"` looks
at the first span only, as for the published SQuAD-sent, which has at most one answer sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from os import PathLike
from typing import Literal

from ..errors import Problem
from ..text.sentences import split_sentences
from ..types import Candidate, Question, QuestionSet, Source
from .data_files import (
    DataFile,
    JsonObject,
    RowError,
    UniqueIds,
    check_object,
    get_integer,
    get_list,
    get_text,
)

__all__ = [
    "AnswerSpan",
    "Paragraph",
    "ParagraphSet",
    "SpanQuestion",
    "Splitter",
    "hold_out",
    "read_paragraphs",
    "read_squad",
    "to_question_set",
]


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """`paragraph.text[start:end]` is the answer, to the character."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SpanQuestion:
    """A question about one paragraph; one that the paragraph does not answer has no answers."""

    id: str
    text: str
    answers: tuple[AnswerSpan, ...]
    """One for each annotator, so equal spans may repeat."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of an article with the questions asked about it."""

    id: str
    """The article and the place in it; where there are no articles, P and the place in the file."""
    article: str
    """The title, or nothing in a file without articles."""
    text: str
    questions: tuple[SpanQuestion, ...]


@dataclass(frozen=True, slots=True)
class ParagraphSet:
    """A file's paragraphs in order, and the offsets that had to be mended on the way."""

    name: str
    paragraphs: tuple[Paragraph, ...]
    repairs: tuple[Problem, ...] = ()

    @property
    def question_count(self) -> int:
        """Questions over all paragraphs."""
        return sum(len(paragraph.questions) for paragraph in self.paragraphs)


def read_paragraphs(path: str | PathLike[str], *, name: str | None = None) -> ParagraphSet:
    """
    Every paragraph, question and span of a file in SQuAD's format.

    A span whose offset does not point at its text is mended where the context has the text, by the
    occurrence nearest to the offset, and entered in `repairs`; otherwise it is a problem. PIAF 1.1
    has one such span. In the dev files that come without their original offsets, `answer_start`
    is the first occurrence of the text, which is taken as it stands.
    """
    file = DataFile(path)
    reader = _Reader(file)
    paragraphs = reader.read(file.document())
    if not paragraphs:
        file.problem(0, "The file has no paragraphs. Check that it is the right one, and whole.")
    file.check()
    return ParagraphSet(name or file.path.name, tuple(paragraphs), tuple(reader.repairs))


class _Reader:
    """One reading of one file."""

    def __init__(self, file: DataFile) -> None:
        self.repairs: list[Problem] = []
        self._file = file
        self._ids = UniqueIds("question")
        self._sizes: Counter[str] = Counter()  # paragraphs so far of each article

    def read(self, document: object) -> list[Paragraph]:
        """The paragraphs of an object with articles under "data", or of a plain list."""
        if isinstance(document, list):
            return self._file.each(document, "", partial(self._paragraph, article=""))
        if not isinstance(document, dict) or not isinstance(document.get("data"), list):
            self._file.fail(0, "Expected a JSON object with a list under 'data', or a plain list.")
        articles = self._file.each(document["data"], "data", self._article)
        return [paragraph for article in articles for paragraph in article]

    def _article(self, record: JsonObject, place: str, _: int) -> list[Paragraph]:
        title = get_text(record, "title") if "title" in record else ""
        parse = partial(self._paragraph, article=title)
        return self._file.each(get_list(record, "paragraphs"), f"{place}.paragraphs", parse)

    def _paragraph(self, record: JsonObject, place: str, _: int, *, article: str) -> Paragraph:
        number = self._sizes[article]
        self._sizes[article] += 1
        name = f"{'_'.join(article.split())}#{number}" if article else f"P{number}"
        context = get_text(record, "context")
        parse = partial(self._question, paragraph=name, context=context)
        questions = self._file.each(get_list(record, "qas"), f"{place}.qas", parse)
        return Paragraph(name, article, context, tuple(questions))

    def _question(
        self, record: JsonObject, place: str, number: int, *, paragraph: str, context: str
    ) -> SpanQuestion:
        name = get_text(record, "id") if "id" in record else f"{paragraph}-Q{number}"
        self._ids.take(name, place)
        return SpanQuestion(
            name, get_text(record, "question"), self._answers(record, place, context)
        )

    def _answers(self, record: JsonObject, place: str, context: str) -> tuple[AnswerSpan, ...]:
        if "answers" not in record and "answer" in record:
            return (_first(get_text(record, "answer"), context),)
        answers = [check_object(item, "An answer") for item in get_list(record, "answers")]
        if answers and record.get("is_impossible"):
            raise RowError("'is_impossible' is true, but there are 'answers'. Remove one of them.")
        return tuple(self._span(answer, place, context) for answer in answers)

    def _span(self, record: JsonObject, place: str, context: str) -> AnswerSpan:
        answer, start = get_text(record, "text"), get_integer(record, "answer_start")
        if start < 0 or not context.startswith(answer, start):
            found = _nearest(answer, start, context)
            note = (
                f"{place}: {answer!r:.60} stands at {found}, not at {start}; the offset is mended."
            )
            self.repairs.append(Problem(str(self._file.path), 0, note))
            start = found
        return AnswerSpan(answer, start, start + len(answer))


def _first(answer: str, context: str) -> AnswerSpan:
    start = context.find(answer)
    if start < 0:
        raise RowError(f"The answer {answer!r:.60} is not in the context. Correct it.")
    return AnswerSpan(answer, start, start + len(answer))


def _nearest(answer: str, start: int, context: str) -> int:
    starts = [match.start() for match in re.finditer(re.escape(answer), context)]
    if not starts:
        raise RowError(
            f"The answer {answer!r:.60} is neither at {start} nor elsewhere in the context. "
            "Correct its text or its offset."
        )
    return min(starts, key=lambda found: abs(found - start))


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
    return to_question_set(read_paragraphs(path, name=name), splitter=splitter, gold=gold)


def to_question_set(
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
