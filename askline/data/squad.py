"""
SQuAD 1.1 and 2.0 and the sets in their format (SQuADShifts, PIAF, FQuAD), as paragraphs with
questions and answer spans. `squad_sentences` makes question sets of them.

Read too: a plain list of paragraphs, `[{"context": …, "qas": [{"question": …, "answer": …}]}]`,
whose answers are texts without offsets. There the first occurrence in the context is the span.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike

from askline.data.files import DataFile
from askline.data.records import Record, RowError, Unique, array, as_record, field, integer, text
from askline.data.records import kind as kind_of
from askline.errors import Problem

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
    reader = _Reader(DataFile(path))
    paragraphs = tuple(reader.paragraphs())
    if not paragraphs:
        reader.file.problem(0, "The file has no paragraphs. Check that it is the right one.")
    reader.file.check()
    return ParagraphSet(name or reader.file.path.name, paragraphs, tuple(reader.repairs))


class _Reader:
    """One reading of one file. Places in messages are JSON paths, for JSON values have no line."""

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.repairs: list[Problem] = []
        self._ids = Unique("question")

    def paragraphs(self) -> Iterator[Paragraph]:
        """All that can be read; what cannot is noted with the file."""
        sizes: Counter[str] = Counter()  # paragraphs so far of each article
        for place, article, item in self._contexts():
            id = f"{'_'.join(article.split())}#{sizes[article]}" if article else place
            sizes[article] += 1
            try:
                record = as_record(item, "A paragraph")
                context = text(record, "context")
                items = list(enumerate(array(record, "qas")))
            except RowError as error:
                self.file.problem(0, f"{place}: {error}")
                continue
            questions = []
            for number, qa in items:
                at = f"{place}.qas[{number}]"
                try:
                    qa = as_record(qa, "A question")
                    questions.append(self._question(qa, context, f"{id}-Q{number}", at))
                except RowError as error:
                    self.file.problem(0, f"{at}: {error}")
            yield Paragraph(id, article, context, tuple(questions))
