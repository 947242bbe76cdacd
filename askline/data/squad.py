"""
SQuAD 1.1 and 2.0, and sets in their format: paragraphs with questions and answer spans.

SQuADShifts, PIAF and FQuAD have this format. A plain list of paragraphs is read too:
`[{"context": …, "qas": [{"question": …, "answer": …}]}]`. Its answers have no offsets, so the first
occurrence in the context is the span.

`read_squad` and `to_question_set` make SQuAD-sent of it: questions over the sentences of their
paragraph. Each gold span makes one sentence an answer: the one with most of the span's characters,
or the first of equal ones. That is the sentence that contains the span, unless the splitter cut
through it. So a question with a gold span always has an answer sentence, and it has several if
annotators marked different sentences. `gold="first"` uses the first span only, as in the published
SQuAD-sent, which has at most one answer sentence per question.
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


Splitter = Callable[[str], list[tuple[int, int]]]
"""A function from a text to the offsets of its sentences, in order."""


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """`paragraph.text[start:end]` is the answer."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SpanQuestion:
    """A question about one paragraph; it has no answers if the paragraph does not answer it."""

    id: str
    text: str
    answers: tuple[AnswerSpan, ...]
    """One per annotator, so spans may repeat."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of an article with its questions."""

    id: str
    """The title, `#` and the position in the article; without articles, `P` and the position."""
    article: str
    """The title of the article; empty in a file without articles."""
    text: str
    questions: tuple[SpanQuestion, ...]


@dataclass(frozen=True, slots=True)
class ParagraphSet:
    """The paragraphs of a file in order, and the answer offsets that were corrected."""

    name: str
    paragraphs: tuple[Paragraph, ...]
    repairs: tuple[Problem, ...] = ()

    @property
    def question_count(self) -> int:
        """Questions over all paragraphs."""
        return sum(len(paragraph.questions) for paragraph in self.paragraphs)


def read_squad(
    path: str | PathLike[str],
    *,
    name: str | None = None,
    splitter: Splitter = split_sentences,
    gold: Literal["all", "first"] = "all",
) -> QuestionSet:
    """Read a file in SQuAD's format as SQuAD-sent: `read_paragraphs`, then `to_question_set`."""
    return to_question_set(read_paragraphs(path, name=name), splitter=splitter, gold=gold)


def read_paragraphs(path: str | PathLike[str], *, name: str | None = None) -> ParagraphSet:
    """
    Read every paragraph, question and span of a file in SQuAD's format.

    If the offset of a span does not point at its text, the occurrence nearest to the offset is
    used and listed in `repairs`; if the context does not have the text, it is a problem. PIAF 1.1
    has one such span. In dev files without the original offsets, `answer_start` is the first
    occurrence of the text, which is used unchanged.
    """
    file = DataFile(path)
    reader = _SquadReader(file)
    paragraphs = reader.read(file.document())
    if not paragraphs:
        file.add_problem(0, "The file has no paragraphs. Check that it is the right file.")
    file.check()
    return ParagraphSet(name or file.path.name, tuple(paragraphs), tuple(reader.repairs))


def to_question_set(
    paragraphs: ParagraphSet,
    *,
    splitter: Splitter = split_sentences,
    gold: Literal["all", "first"] = "all",
) -> QuestionSet:
    """
    Each question with all sentences of its paragraph in order, and its distinct gold phrases.

    The source of a candidate is the id of the paragraph with the offsets in its text.
    """
    questions: list[Question] = []
    for paragraph in paragraphs.paragraphs:
        candidates = _sentences(paragraph, splitter)
        for question in paragraph.questions:
            spans = question.answers if gold == "all" else question.answers[:1]
            questions.append(_label_candidates(question, spans, candidates))
    return QuestionSet(paragraphs.name, tuple(questions))


def hold_out(paragraphs: ParagraphSet, *, share: float = 0.1) -> tuple[ParagraphSet, ParagraphSet]:
    """
    Split a set into a train part and a held-out part of at most `share` of the questions.

    No article is in both parts; in a set of a single article, no paragraph text is. The split
    depends on the titles (or texts) only: in the order of their SHA-256, each is held out if its
    questions still fit. Both parts keep the order of the set.
    """
    articles = {paragraph.article for paragraph in paragraphs.paragraphs}
    keys = [
        paragraph.article if len(articles) > 1 else paragraph.text
        for paragraph in paragraphs.paragraphs
    ]
    sizes: dict[str, int] = {}
    for key, paragraph in zip(keys, paragraphs.paragraphs, strict=True):
        sizes[key] = sizes.get(key, 0) + len(paragraph.questions)
    held_out_keys: set[str] = set()
    questions_left = int(paragraphs.question_count * share)
    for key in sorted(sizes, key=lambda key: sha256(key.encode()).digest()):
        if sizes[key] <= questions_left:
            held_out_keys.add(key)
            questions_left -= sizes[key]
    pairs = list(zip(keys, paragraphs.paragraphs, strict=True))
    train = tuple(paragraph for key, paragraph in pairs if key not in held_out_keys)
    held_out = tuple(paragraph for key, paragraph in pairs if key in held_out_keys)
    return replace(paragraphs, paragraphs=train), replace(paragraphs, paragraphs=held_out)


class _SquadReader:
    """Reads one file and collects the repairs."""

    def __init__(self, file: DataFile) -> None:
        self.repairs: list[Problem] = []
        self._file = file
        self._ids = UniqueIds("question")
        self._sizes: Counter[str] = Counter()  # number of paragraphs so far, by article

    def read(self, document: object) -> list[Paragraph]:
        """The paragraphs of an object with articles under "data", or of a plain list."""
        if isinstance(document, list):
            return self._file.parse_items(document, "", partial(self._paragraph, article=""))
        if not isinstance(document, dict) or not isinstance(document.get("data"), list):
            self._file.fail(0, "Expected a JSON object with a list under 'data', or a plain list.")
        articles = self._file.parse_items(document["data"], "data", self._article)
        return [paragraph for article in articles for paragraph in article]

    def _article(self, record: JsonObject, path: str, _: int) -> list[Paragraph]:
        title = get_text(record, "title") if "title" in record else ""
        parse = partial(self._paragraph, article=title)
        return self._file.parse_items(get_list(record, "paragraphs"), f"{path}.paragraphs", parse)

    def _paragraph(self, record: JsonObject, path: str, _: int, *, article: str) -> Paragraph:
        number = self._sizes[article]
        self._sizes[article] += 1
        name = f"{'_'.join(article.split())}#{number}" if article else f"P{number}"
        context = get_text(record, "context")
        parse = partial(self._question, paragraph=name, context=context)
        questions = self._file.parse_items(get_list(record, "qas"), f"{path}.qas", parse)
        return Paragraph(name, article, context, tuple(questions))

    def _question(
        self, record: JsonObject, path: str, number: int, *, paragraph: str, context: str
    ) -> SpanQuestion:
        name = get_text(record, "id") if "id" in record else f"{paragraph}-Q{number}"
        self._ids.add(name, path)
        return SpanQuestion(
            name, get_text(record, "question"), self._answers(record, path, context)
        )

    def _answers(self, record: JsonObject, path: str, context: str) -> tuple[AnswerSpan, ...]:
        if "answers" not in record and "answer" in record:
            return (_first_occurrence(get_text(record, "answer"), context),)
        answers = [check_object(item, "An answer") for item in get_list(record, "answers")]
        if answers and record.get("is_impossible"):
            raise RowError("'is_impossible' is true, but there are 'answers'. Remove one of them.")
        return tuple(self._span(answer, path, context) for answer in answers)

    def _span(self, record: JsonObject, path: str, context: str) -> AnswerSpan:
        answer, start = get_text(record, "text"), get_integer(record, "answer_start")
        if start < 0 or not context.startswith(answer, start):
            found = _nearest_occurrence(answer, start, context)
            message = (
                f"{path}: {answer!r:.60} is at {found}, not at {start}; the offset was corrected."
            )
            self.repairs.append(Problem(str(self._file.path), 0, message))
            start = found
        return AnswerSpan(answer, start, start + len(answer))


def _first_occurrence(answer: str, context: str) -> AnswerSpan:
    start = context.find(answer)
    if start < 0:
        raise RowError(f"The answer {answer!r:.60} is not in the context. Correct it.")
    return AnswerSpan(answer, start, start + len(answer))


def _nearest_occurrence(answer: str, start: int, context: str) -> int:
    starts = [match.start() for match in re.finditer(re.escape(answer), context)]
    if not starts:
        raise RowError(
            f"The answer {answer!r:.60} is neither at {start} nor elsewhere in the context. "
            "Correct its text or its offset."
        )
    return min(starts, key=lambda found: abs(found - start))


def _sentences(paragraph: Paragraph, splitter: Splitter) -> list[Candidate]:
    return [
        Candidate(
            f"{paragraph.id}-{index}",
            paragraph.text[start:end],
            source=Source(paragraph.id, start, end),
        )
        for index, (start, end) in enumerate(splitter(paragraph.text))
    ]


def _label_candidates(
    question: SpanQuestion, spans: Sequence[AnswerSpan], sentences: list[Candidate]
) -> Question:
    """Candidates that are not answers are shared between the questions of the paragraph."""
    candidates = list(sentences)
    for index in {_best_sentence(span, sentences) for span in spans}:
        if index is not None:
            candidates[index] = replace(sentences[index], is_answer=True)
    answers = dict.fromkeys(span.text for span in question.answers)
    return Question(question.id, question.text, tuple(candidates), tuple(answers))


def _best_sentence(span: AnswerSpan, sentences: list[Candidate]) -> int | None:
    """The index of the sentence with most of a span; None if no sentence overlaps it."""
    best, most = None, 0
    for index, candidate in enumerate(sentences):
        source = candidate.source
        assert source is not None  # set by `_sentences`
        overlap = min(span.end, source.end) - max(span.start, source.start)
        if overlap > most:
            best, most = index, overlap
    return best
