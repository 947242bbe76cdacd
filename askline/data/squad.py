"""
SQuAD 1.1 and 2.0 and the sets in their format: paragraphs with questions and answer spans.

SQuADShifts, PIAF and FQuAD have that format; `squad_sentences` makes question sets of it. Read too
is a plain list of paragraphs, `[{"context": …, "qas": [{"question": …, "answer": …}]}]`, whose
answers are texts without offsets: there the first occurrence in the context is the span.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from os import PathLike

from ..errors import Problem
from .files import DataFile
from .records import Record, RowError, Unique, array, as_record, integer, text

__all__ = ["AnswerSpan", "Paragraph", "ParagraphSet", "SpanQuestion", "read_paragraphs"]


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
        self._ids = Unique("question")
        self._sizes: Counter[str] = Counter()  # paragraphs so far of each article

    def read(self, document: object) -> list[Paragraph]:
        """The paragraphs of an object with articles under "data", or of a plain list."""
        if isinstance(document, list):
            return self._file.each(document, "", partial(self._paragraph, article=""))
        if not isinstance(document, dict) or not isinstance(document.get("data"), list):
            self._file.fail(0, "Expected a JSON object with a list under 'data', or a plain list.")
        articles = self._file.each(document["data"], "data", self._article)
        return [paragraph for article in articles for paragraph in article]

    def _article(self, record: Record, place: str, _: int) -> list[Paragraph]:
        title = text(record, "title") if "title" in record else ""
        parse = partial(self._paragraph, article=title)
        return self._file.each(array(record, "paragraphs"), f"{place}.paragraphs", parse)

    def _paragraph(self, record: Record, place: str, _: int, *, article: str) -> Paragraph:
        number = self._sizes[article]
        self._sizes[article] += 1
        name = f"{'_'.join(article.split())}#{number}" if article else f"P{number}"
        context = text(record, "context")
        parse = partial(self._question, paragraph=name, context=context)
        questions = self._file.each(array(record, "qas"), f"{place}.qas", parse)
        return Paragraph(name, article, context, tuple(questions))

    def _question(
        self, record: Record, place: str, number: int, *, paragraph: str, context: str
    ) -> SpanQuestion:
        name = text(record, "id") if "id" in record else f"{paragraph}-Q{number}"
        self._ids.take(name, place)
        return SpanQuestion(name, text(record, "question"), self._answers(record, place, context))

    def _answers(self, record: Record, place: str, context: str) -> tuple[AnswerSpan, ...]:
        if "answers" not in record and "answer" in record:
            return (_first(text(record, "answer"), context),)
        answers = [as_record(item, "An answer") for item in array(record, "answers")]
        if answers and record.get("is_impossible"):
            raise RowError("'is_impossible' is true, but there are 'answers'. Remove one of them.")
        return tuple(self._span(answer, place, context) for answer in answers)

    def _span(self, record: Record, place: str, context: str) -> AnswerSpan:
        answer, start = text(record, "text"), integer(record, "answer_start")
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
