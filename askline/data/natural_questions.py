"""
Natural Questions in its simplified JSON lines, as NQ-LA: which paragraph of a page answers?

Candidates are the top-level paragraphs of the page (`<P>`) in page order, without their tags;
tables and lists are left out. A paragraph is an answer when an annotator, one or more, chose it as
the long answer.

ASNQ: rows of question, sentence and label without a header, where label 4 is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from os import PathLike

from ..types import Candidate, Question, QuestionSet, Source
from .data_files import (
    DataFile,
    JsonObject,
    RowError,
    UniqueIds,
    check_object,
    get_field,
    get_integer,
    get_list,
    get_text,
)

__all__ = [
    "read_asnq",
    "read_natural_questions",
]

Span = tuple[int, int]  # first token, token after the last


def read_natural_questions(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Ids are those of the examples; sources are offsets into `document_text`, to the character.

    Left out, because its answer is not to be found among paragraphs: a question whose annotators
    chose tables, lists or inner paragraphs only, and a page without a top-level paragraph. A
    question that nobody found an answer to stays, with negatives only. `answers` are the short
    answers.
    """
    file = DataFile(path)
    unique = UniqueIds("question")

    def parse(line: int, record: JsonObject) -> Question | None:
        unique.take(str(get_integer(record, "example_id")), f"line {line}")
        return _question(record)

    questions = file.collect(file.records(), parse)
    return file.question_set(name, questions)


@dataclass(frozen=True, slots=True)
class _Page:
    """A page's text, cut at single spaces, which is how the dataset counts tokens."""

    text: str
    tokens: list[str]
    starts: list[int]  # of each token in the text, and one more past the end

    @classmethod
    def of(cls, text: str) -> _Page:
        tokens = text.split(" ")
        return cls(text, tokens, list(accumulate((len(token) + 1 for token in tokens), initial=0)))

    def span(self, record: JsonObject) -> Span:
        """The tokens that a candidate or an answer names; (-1, -1) where it names none."""
        start, end = get_integer(record, "start_token"), get_integer(record, "end_token")
        if start < 0:
            return -1, -1
        if not start < end <= len(self.tokens):
            raise RowError(
                f"Tokens {start} to {end} do not lie in 'document_text', which has "
                f"{len(self.tokens)}. Fetch the file again."
            )
        return start, end

    def characters(self, span: Span) -> tuple[int, int]:
        """Offsets of a span of tokens, without white space around it."""
        start, end = self.starts[span[0]], self.starts[span[1]] - 1
        inner = self.text[start:end]
        return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())


def _question(record: JsonObject) -> Question | None:
    page = _Page.of(get_text(record, "document_text"))
    question = get_text(record, "question_text")
    notes = [check_object(note, "An annotation") for note in get_list(record, "annotations")]
    chosen = {
        page.span(check_object(get_field(note, "long_answer"), "'long_answer'")) for note in notes
    }
    chosen.discard((-1, -1))
    example = str(get_integer(record, "example_id"))
    candidates = _paragraphs(record, example, page, chosen)
    answered = any(candidate.is_answer for candidate in candidates)
    if not candidates or (chosen and not answered):
        return None
    return Question(example, question, tuple(candidates), _short_answers(notes, page))


def _paragraphs(
    record: JsonObject, example: str, page: _Page, chosen: set[Span]
) -> list[Candidate]:
    document = str(record.get("document_url") or example)
    found = []
    for place, item in enumerate(get_list(record, "long_answer_candidates")):
        box = check_object(item, "A long answer candidate")
        span = page.span(box)
        if not box.get("top_level", True) or span[0] < 0 or page.tokens[span[0]] != "<P>":
            continue
        closed = page.tokens[span[1] - 1] == "</P>"
        start, end = page.characters((span[0] + 1, span[1] - closed))
        if start < end:
            at = Source(document, start, end)
            is_answer = span in chosen
            found.append(Candidate(f"{example}-{place}", page.text[start:end], is_answer, at))
    return found


def _short_answers(notes: list[JsonObject], page: _Page) -> tuple[str, ...]:
    answers: dict[str, None] = {}
    for note in notes:
        for item in get_list(note, "short_answers") if "short_answers" in note else ():
            span = page.span(check_object(item, "A short answer"))
            if span[0] >= 0:
                start, end = page.characters(span)
                answers[page.text[start:end]] = None
    return tuple(answers)


_ANSWER = "4"  # in the long answer, with the short answer; 1 to 3 lack one or both of these
_LABELS = frozenset("1234")


def read_asnq(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Rows are grouped by the question's text, which is all that names a question here.

    Questions get the ids Q1, Q2, … by first appearance. No quoting is undone. The whole train file
    (20 million rows) becomes some eight gigabytes of candidates.
    """
    file = DataFile(path)
    drafts: dict[str, list[tuple[str, bool]]] = {}
    for line, row in file.lines():
        fields = row.split("\t")
        if len(fields) != 3:
            if row:
                file.problem(line, _columns(len(fields)))
            continue
        question, sentence, label = fields
        if label not in _LABELS:
            file.problem(line, f"Label must be 1, 2, 3 or 4, got {label!r:.40}.")
        elif not question.strip() or not sentence.strip():
            file.problem(line, "The question or the sentence is empty. Remove the row.")
        else:
            drafts.setdefault(question, []).append((sentence, label == _ANSWER))
    questions = [
        _question_asnq(f"Q{number}", asked, rows)
        for number, (asked, rows) in enumerate(drafts.items(), 1)
    ]
    return file.question_set(name, questions)


def _question_asnq(name: str, text: str, rows: list[tuple[str, bool]]) -> Question:
    candidates = (
        Candidate(f"{name}-{place}", sentence, is_answer)
        for place, (sentence, is_answer) in enumerate(rows)
    )
    return Question(name, text, tuple(candidates))


def _columns(found: int) -> str:
    return (
        f"Expected question, sentence and label, separated by tabs, got {found} columns. "
        "Add the missing ones, or remove the row."
    )
