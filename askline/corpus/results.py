"""
What the corpus returns: retrieved sentences, answers, and reports about files.

All are frozen records. None of them refers back to the store, which may change in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from ..errors import NotReadReason, Problem
from ..text.readers.kinds import PlaceUnit
from ..types import StageReport

__all__ = [
    "AddReport",
    "Answer",
    "AnswerPhrase",
    "AnswerPlace",
    "Answers",
    "CorpusStatus",
    "DocumentInfo",
    "DocumentSentence",
    "FileReport",
    "MissingShard",
    "NotReadFiles",
    "Outcome",
    "RetrievedSentence",
    "VerifyReport",
    "reaches_threshold",
]

Outcome = Literal["added", "changed", "unchanged", "removed", "failed", "skipped"]
"""`failed`: it should have been read. `skipped`: it was left out on purpose, or has no text."""


@dataclass(frozen=True, slots=True)
class AnswerPhrase:
    """The words of a sentence that answer the question: `answer.text[start:end]`."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RetrievedSentence:
    """A sentence that a retriever found, with its place in the document."""

    document: str
    """The id of the document; `Corpus.source_path` has the path of a file."""
    ordinal: int
    """The position of the sentence in its document, from 0."""
    text: str
    start: int
    end: int
    """Characters of the decoded file; of the extracted text for pdf, office files and e-mail."""
    unit: PlaceUnit
    number: int
    """The line, page, paragraph, slide or other unit, from 1."""
    heading: str
    """The nearest heading above; empty if there is none."""
    title: str
    score: float
    """The retrieval score: higher is better, comparable within one question."""
    row: int | None = None
    """In csv the spreadsheet row, in jsonl the line; None in other files."""
    record: str = ""
    """The row's own id; empty if it has none."""
    phrase: AnswerPhrase | None = None
    """The phrase in the sentence that is nearest to the question, if phrases were searched."""
    passage: tuple[int, int] | None = None
    """
    The ordinals of the first and the last sentence of its passage, the unit that was searched; None
    if the retriever has no passages.
    """
    headings: tuple[str, ...] = ()
    """The path of headings above, from the highest to the nearest."""
    lead_in: str = ""
    """The sentence with a colon that introduces the list or table of this sentence."""


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """Another place where the sentence of an answer stands."""

    document: str
    title: str
    start: int
    end: int
    """Characters of the decoded file; of the extracted text for pdf, office files and e-mail."""
    unit: PlaceUnit
    number: int
    """The line, page, paragraph, slide or other unit, from 1."""
    heading: str
    headings: tuple[str, ...]

    @property
    def place(self) -> str:
        """`notes.md:12` or `paper.pdf, page 3`."""
        return _place(self.document, self.unit, self.number)


def _place(document: str, unit: PlaceUnit, number: int) -> str:
    return f"{document}:{number}" if unit == "line" else f"{document}, {unit} {number}"


@dataclass(frozen=True, slots=True)
class Answer:
    """A sentence that may answer the question, its place in the source, and its neighbors."""

    text: str
    score: float
    """Higher is better; comparable with answers of the same `stage` to the same question."""
    stage: int
    """The stage that decided the position of this answer; retrieval is stage 0."""
    probability: float | None
    """The probability that this answers the question; None if the ranker is not calibrated."""
    document: str
    """The id of the document; `Corpus.source_path` has the path of a file."""
    title: str
    start: int
    end: int
    """Characters of the decoded file; of the extracted text for pdf, office files and e-mail."""
    unit: PlaceUnit
    number: int
    """The line, page, paragraph, slide or other unit, from 1."""
    heading: str
    before: str
    after: str
    """
    The neighboring sentences, joined by spaces; empty at either end of the section.

    The lines of a code block stand on lines of their own, indented by four spaces.
    """
    row: int | None = None
    """In csv the spreadsheet row, in jsonl the line; None in other files."""
    record: str = ""
    """The row's own id; empty if it has none."""
    phrase: AnswerPhrase | None = None
    """The phrase that the ranker read, or else the nearest phrase; None if there is neither."""
    sentences: int = 1
    """More than 1 if neighboring sentences that all reach the threshold were joined."""
    headings: tuple[str, ...] = ()
    """The path of headings above, from the highest to the nearest."""
    lead_in: str = ""
    """The sentence with a colon that introduces the list or table of this sentence."""
    also_at: tuple[AnswerPlace, ...] = ()
    """Other places of the same sentence, in the order of the ranking."""

    @property
    def place(self) -> str:
        """`a.md:12`, `a.pdf, page 3`, `a.xlsx, sheet 1, row 4`, or `faq.csv:12, row 9, id q7`."""
        place = _place(self.document, self.unit, self.number)
        # The number of a line, slide or chapter is also that of its row.
        is_own = self.unit == "sheet" or self.row != self.number
        row = f", row {self.row}" if self.row is not None and is_own else ""
        return f"{place}{row}, id {self.record}" if self.record else place + row

    def _repr_html_(self) -> str:
        """The sentence between its neighbors with the phrase in bold, for notebooks."""
        parts = [
            _faint_html(self.before),
            _sentence_html(self),
            _faint_html(self.after),
        ]
        text = " ".join(part for part in parts if part)
        return f"<div><div>{text}</div>{_source_html(self)}</div>"


@dataclass(frozen=True, slots=True)
class MissingShard:
    """A shard of a sharded corpus that was not searched."""

    name: str
    problem: str
    """Why it could not be read."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The best answers to a question, best first, and a report for each stage."""

    question: str
    answers: tuple[Answer, ...]
    stages: tuple[StageReport, ...]
    """Retrieval first, which starts from every sentence of the corpus, then the ranker's stages."""
    seconds: float
    threshold: float | None = None
    """The probability below which a sentence is not an answer; None if not calibrated."""
    missing_shards: tuple[MissingShard, ...] = ()
    """What was not searched, in a sharded corpus that was opened with `allow_partial`."""
    read_as: str = ""
    """The question as the ranker read it: with words corrected that the documents do not have."""

    @property
    def best(self) -> Answer | None:
        """
        The first answer that reaches the threshold, or else the first of all.

        None if no sentence shares a word with the question.
        """
        return next(iter(self.above_threshold or self.answers), None)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    @property
    def answered(self) -> bool:
        """Whether at least one answer reaches the threshold."""
        return bool(self.above_threshold)

    @property
    def above_threshold(self) -> tuple[Answer, ...]:
        """The answers that reach the threshold, best first."""
        return tuple(each for each in self.answers if self._reaches_threshold(each))

    @property
    def below_threshold(self) -> tuple[Answer, ...]:
        """The other answers, best first."""
        return tuple(each for each in self.answers if not self._reaches_threshold(each))

    def _reaches_threshold(self, answer: Answer) -> bool:
        first = self.answers[0].probability
        return reaches_threshold(answer.probability, self.threshold, first)

    def _repr_html_(self) -> str:
        """The question and its answers, for notebooks."""
        question = f"<p><b>{escape(self.question)}</b></p>"
        if self.best is None:
            return f"<div>{question}<p>No sentence matches the question.</p></div>"
        if not self.answered:
            note = "<p>No answer found. The nearest sentences:</p>"
            return f"<div>{question}{note}{_list_html(self.answers)}</div>"
        below = ""
        if self.below_threshold:
            below = f"<p>Below the threshold:</p>{_list_html(self.below_threshold)}"
        return f"<div>{question}{_list_html(self.above_threshold)}{below}</div>"


def reaches_threshold(
    probability: float | None, threshold: float | None, first_probability: float | None
) -> bool:
    """
    Whether a probability is high enough for an answer.

    Without a threshold, or with 0, every answer is. A missing probability belongs to a sentence
    that the last stage did not rank; it counts only if even the first answer has none.
    """
    if not threshold:
        return True
    return first_probability is None if probability is None else probability >= threshold


# Neither color is set, so that the text is readable in light and dark notebooks.


def _list_html(answers: Sequence[Answer]) -> str:
    """A list whose first answer has its neighbors."""
    first, *others = answers
    items = [first._repr_html_(), *(_sentence_html(each) + _source_html(each) for each in others)]
    return f"<ol>{''.join(f'<li>{item}</li>' for item in items)}</ol>"


def _sentence_html(answer: Answer) -> str:
    if answer.phrase is None:
        return escape(answer.text)
    start, end = answer.phrase.start, answer.phrase.end
    before, phrase, after = answer.text[:start], answer.text[start:end], answer.text[end:]
    return f"{escape(before)}<b>{escape(phrase)}</b>{escape(after)}"


def _faint_html(text: str) -> str:
    return f'<span style="opacity:0.6">{escape(text)}</span>' if text else ""


def _source_html(answer: Answer) -> str:
    probability = "" if answer.probability is None else f" · {answer.probability:.0%}"
    return f'<div style="opacity:0.6"><small>{escape(answer.place)}{probability}</small></div>'


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document of the corpus, without its text."""

    name: str
    title: str
    kind: str
    unit: PlaceUnit
    sentences: int
    characters: int
    problem: str | None
    """Why it could not be read; None if it was read."""


@dataclass(frozen=True, slots=True)
class DocumentSentence:
    """A sentence of a document, or one of its headings."""

    ordinal: int
    text: str
    start: int
    end: int
    number: int
    """The line, page, paragraph, slide or other unit, from 1."""
    heading: str
    is_heading: bool
    kind: str = "sentence"
    """One of `askline.corpus.schema.SENTENCE_KINDS`."""
    headings: tuple[str, ...] = ()
    """The path of headings above, from the highest to the nearest."""


@dataclass(frozen=True, slots=True)
class NotReadFiles:
    """Files of one kind that were not read for one reason."""

    reason: NotReadReason
    kind: str
    """The suffix in lower case, such as `.png`; `no suffix`, or `folder`."""
    count: int
    """A folder counts as one."""
    example: str
    """The path of one of them."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """The outcome for one file or text, reported once it is stored durably."""

    document: str
    outcome: Outcome
    problems: tuple[Problem, ...] = ()
    """Why the file failed, or which of its rows were skipped."""
    sentences: int = 0
    reason: NotReadReason | None = None
    """Why the file failed or was skipped; None for others."""
    size: int = 0
    """Bytes of a file that is stored; 0 for texts and for files that are not."""


@dataclass(frozen=True, slots=True)
class AddReport:
    """The outcome of one call of `Corpus.add`."""

    added: int
    changed: int
    unchanged: int
    removed: int
    failed: int
    sentences: int
    """Sentences of the files that were added or changed."""
    problems: tuple[Problem, ...]
    seconds: float
    skipped: int = 0
    """Files and folders that were left out on purpose or have no text."""
    not_read: tuple[NotReadFiles, ...] = ()
    """Failed and skipped files, counted by reason and kind, the most frequent first."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `Corpus.verify` found, and what it did about it."""

    documents: int
    """Documents that were checked."""
    damaged: tuple[str, ...]
    """Ids of documents that differed from their checksums."""
    restored: tuple[str, ...]
    """Ids of damaged documents whose files were read again."""
    lost: tuple[str, ...]
    """Ids of damaged documents that have no file to read; they answer no longer."""
    checksums_added: int
    """Documents of an earlier version that have checksums now."""
    store_rebuilt: bool
    """Whether the structure of the store was damaged, and the store was written anew."""
    search_rebuilt: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class CorpusStatus:
    """What a corpus contains, and whether its indexes are up to date."""

    folder: str | None
    documents: int
    sentences: int
    characters: int
    unreadable: tuple[Problem, ...]
    """Files that could not be read."""
    generation: int
    """The number of changes of the store."""
    searchable: bool
    """Whether the search index contains all changes."""
    store_bytes: int
    search_bytes: int
    writer: int | None
    """The id of the process that is writing; None if there is none."""
    phrases: int | None = None
    """The number of phrases in the phrase index; None if there is no phrase index."""
    phrase_bytes: int = 0
    encoded: bool = False
    """Whether the phrase index contains all changes."""
    not_read: tuple[NotReadFiles, ...] = ()
    """What was not read when files were added, counted by reason and kind."""
    shards: int | None = None
    """The number of shards, missing ones included; None if the corpus is not sharded."""
    missing_shards: tuple[MissingShard, ...] = ()
