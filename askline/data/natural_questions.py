"""
Natural Questions (simplified JSON lines), and ASNQ, the sentence set derived from it.

In Natural Questions the task is NQ-LA: choose the paragraph of a page that answers the question.
Candidates are the top-level paragraphs of the page (`<P>`) in page order, without their tags;
tables and lists are left out. A paragraph is an answer if at least one annotator chose it as the
long answer.

ASNQ has tab-separated rows of question, sentence and label without a header. Label 4 is an answer.
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

TokenSpan = tuple[int, int]
"""The first token, and the token after the last."""

_ASNQ_ANSWER = "4"  # in the long answer and contains the short answer; labels 1 to 3 are not both
_ASNQ_LABELS = frozenset("1234")


def read_natural_questions(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Read Natural Questions. Ids are the example ids; sources are offsets into `document_text`.

    Questions are skipped if their answer is not among the candidates: if annotators chose only
    tables, lists or nested paragraphs, or if the page has no top-level paragraph. Questions for
    which no annotator found an answer are kept, with negatives only. `answers` are the short
    answers.
    """
    file = DataFile(path)
    unique = UniqueIds("question")

    def parse(line: int, record: JsonObject) -> Question | None:
        unique.add(str(get_integer(record, "example_id")), f"line {line}")
        return _question(record)

    questions = file.parse_rows(file.records(), parse)
    return file.question_set(name, questions)


def read_asnq(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Read ASNQ. Rows are grouped by the text of the question, because there are no ids.

    Questions get the ids Q1, Q2, … in order of first appearance. Quotation marks are text. The
    train file (20 million rows) takes about eight gigabytes of memory.
    """
    file = DataFile(path)
    drafts: dict[str, list[tuple[str, bool]]] = {}
    for line, row in file.lines():
        fields = row.split("\t")
        if len(fields) != 3:
            if row:
                file.add_problem(line, _wrong_columns(len(fields)))
            continue
        question, sentence, label = fields
        if label not in _ASNQ_LABELS:
            file.add_problem(line, f"Label must be 1, 2, 3 or 4, got {label!r:.40}.")
        elif not question.strip() or not sentence.strip():
            file.add_problem(line, "The question or the sentence is empty. Remove the row.")
        else:
            drafts.setdefault(question, []).append((sentence, label == _ASNQ_ANSWER))
    questions = [
        _asnq_question(f"Q{number}", question, rows)
        for number, (question, rows) in enumerate(drafts.items(), 1)
    ]
    return file.question_set(name, questions)


@dataclass(frozen=True, slots=True)
class _Page:
    """The text of a page, split at single spaces, as the dataset counts tokens."""

    text: str
    tokens: list[str]
    starts: list[int]  # the offset of each token in the text, and one past the end

    @classmethod
    def of(cls, text: str) -> _Page:
        tokens = text.split(" ")
        return cls(text, tokens, list(accumulate((len(token) + 1 for token in tokens), initial=0)))

    def span(self, record: JsonObject) -> TokenSpan:
        """The tokens of a candidate or an answer; (-1, -1) if it has none."""
        start, end = get_integer(record, "start_token"), get_integer(record, "end_token")
        if start < 0:
            return -1, -1
        if not start < end <= len(self.tokens):
            raise RowError(
                f"Tokens {start} to {end} are outside of 'document_text', which has "
                f"{len(self.tokens)} tokens. Get the file again."
            )
        return start, end

    def characters(self, span: TokenSpan) -> tuple[int, int]:
        """The character offsets of a span of tokens, without surrounding white space."""
        start, end = self.starts[span[0]], self.starts[span[1]] - 1
        inner = self.text[start:end]
        return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())


def _question(record: JsonObject) -> Question | None:
    page = _Page.of(get_text(record, "document_text"))
    question = get_text(record, "question_text")
    annotations = [
        check_object(annotation, "An annotation") for annotation in get_list(record, "annotations")
    ]
    chosen = {
        page.span(check_object(get_field(annotation, "long_answer"), "'long_answer'"))
        for annotation in annotations
    }
    chosen.discard((-1, -1))
    example = str(get_integer(record, "example_id"))
    candidates = _paragraphs(record, example, page, chosen)
    answered = any(candidate.is_answer for candidate in candidates)
    if not candidates or (chosen and not answered):
        return None
    return Question(example, question, tuple(candidates), _short_answers(annotations, page))


def _paragraphs(
    record: JsonObject, example: str, page: _Page, chosen: set[TokenSpan]
) -> list[Candidate]:
    document = str(record.get("document_url") or example)
    found = []
    for index, item in enumerate(get_list(record, "long_answer_candidates")):
        candidate = check_object(item, "A long answer candidate")
        span = page.span(candidate)
        if not candidate.get("top_level", True) or span[0] < 0 or page.tokens[span[0]] != "<P>":
            continue
        closed = page.tokens[span[1] - 1] == "</P>"
        start, end = page.characters((span[0] + 1, span[1] - closed))
        if start < end:
            source = Source(document, start, end)
            is_answer = span in chosen
            found.append(Candidate(f"{example}-{index}", page.text[start:end], is_answer, source))
    return found


def _short_answers(annotations: list[JsonObject], page: _Page) -> tuple[str, ...]:
    answers: dict[str, None] = {}
    for annotation in annotations:
        for item in get_list(annotation, "short_answers") if "short_answers" in annotation else ():
            span = page.span(check_object(item, "A short answer"))
            if span[0] >= 0:
                start, end = page.characters(span)
                answers[page.text[start:end]] = None
    return tuple(answers)


def _asnq_question(name: str, text: str, rows: list[tuple[str, bool]]) -> Question:
    candidates = (
        Candidate(f"{name}-{index}", sentence, is_answer)
        for index, (sentence, is_answer) in enumerate(rows)
    )
    return Question(name, text, tuple(candidates))


def _wrong_columns(found: int) -> str:
    return (
        f"Expected three tab-separated columns (question, sentence, label), got {found}. "
        "Correct or remove the row."
    )
