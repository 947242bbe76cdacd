"""
What the corpus says: sentences found, answers, and what became of each file.

Frozen records without behaviour; nothing in them refers back to the store, which may change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..errors import Problem
from ..types import StageReport

__all__ = [
    "AddReport",
    "Answer",
    "AnswerPhrase",
    "Answers",
    "CorpusStatus",
    "DocumentInfo",
    "DocumentSentence",
    "FileReport",
    "Outcome",
    "RetrievedSentence",
    "Unit",
]

Unit = Literal["line", "page", "paragraph"]
Outcome = Literal["added", "changed", "unchanged", "removed", "failed"]


@dataclass(frozen=True, slots=True)
class RetrievedSentence:
    """A sentence that retrieval found, with the place it stands at."""

    document: str
    """The path of the file, or the id under which a text was added."""
    ordinal: int
    """Which sentence of its document this is, from 0."""
    text: str
    start: int
    end: int
    """Characters of the decoded file, or of the extracted text where there is none (pdf, docx)."""
    unit: Unit
    number: int
    """The line, page or paragraph, from 1."""
    heading: str
    """The nearest heading above, empty where there is none."""
    title: str
    score: float
    """Of the retrieval: higher is better, comparable within one question."""
    row: int | None = None
    """In csv, as a spreadsheet counts; in jsonl, the line; None in what has no rows."""
    record: str = ""
    """The row's own id, empty where it has none."""
    phrase: AnswerPhrase | None = None
    """The nearest to the question of those in the sentence, where phrases were searched."""


@dataclass(frozen=True, slots=True)
class AnswerPhrase:
    """The words of an answer that say it: `answer.text[start:end]`."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A sentence that may answer, its place in the source, and what stands around it."""

    text: str
    score: float
    """Higher is better; comparable with answers of the same `stage` to the same question."""
    stage: int
    """The stage of the ranker that decided this answer's place."""
    probability: float | None
    """The chance that this answers the question; None from a ranker that is not calibrated."""
    document: str
    title: str
    start: int
    end: int
    """Characters of the decoded file, or of the extracted text where there is none (pdf, docx)."""
    unit: Unit
    number: int
    heading: str
    before: str
    after: str
    """The neighbouring sentences, empty at either end of the document."""
    row: int | None = None
    """In csv, as a spreadsheet counts; in jsonl, the line; None in what has no rows."""
    record: str = ""
    """The row's own id, empty where it has none."""
    phrase: AnswerPhrase | None = None
    """What the ranker read, or the nearest phrase; None where neither has any."""

    @property
    def place(self) -> str:
        """`notes.md:12`, `paper.pdf, page 3`, or `faq.csv:12, row 9, id q7`."""
        place = f"{self.document}, {self.unit} {self.number}"
        if self.unit == "line":
            place = f"{self.document}:{self.number}"
        row = f", row {self.row}" if self.row not in (None, self.number) else ""
        return f"{place}{row}, id {self.record}" if self.record else place + row


@dataclass(frozen=True, slots=True)
class Answers:
    """The best answers to a question, best first, and the funnel they came through."""

    question: str
    answers: tuple[Answer, ...]
    stages: tuple[StageReport, ...]
    """Retrieval first, which starts from every sentence of the corpus, then the ranker's stages."""
    seconds: float
    threshold: float | None = None
    """The probability below which a sentence is no answer; None from a ranker without any."""

    @property
    def best(self) -> Answer | None:
        """The first answer; None where no sentence shares a word with the question."""
        return self.answers[0] if self.answers else None

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    @property
    def answered(self) -> bool:
        """Whether the best is worth calling an answer, or only the sentence that comes nearest."""
        if self.best is None:
            return False
        if self.threshold is None or self.best.probability is None:
            return True
        return self.best.probability >= self.threshold


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document of the corpus, without its text."""

    name: str
    title: str
    kind: str
    unit: Unit
    sentences: int
    characters: int
    problem: str | None
    """Why it could not be read."""


@dataclass(frozen=True, slots=True)
class DocumentSentence:
    """A sentence of a document, or one of its headings."""

    ordinal: int
    text: str
    start: int
    end: int
    number: int
    """The line, page or paragraph, from 1."""
    heading: str
    is_heading: bool


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file or text. Given out once the store has it for good."""

    document: str
    outcome: Outcome
    problems: tuple[Problem, ...] = ()
    """Why it failed; rows that were left out where others could be read."""
    sentences: int = 0


@dataclass(frozen=True, slots=True)
class AddReport:
    """What became of everything that was added."""

    added: int
    changed: int
    unchanged: int
    removed: int
    failed: int
    sentences: int
    """Of the files added and changed."""
    problems: tuple[Problem, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class CorpusStatus:
    """What a corpus holds."""

    folder: str | None
    documents: int
    sentences: int
    characters: int
    unreadable: tuple[Problem, ...]
    """Files that were tried and could not be read."""
    generation: int
    """Counts the changes of the store."""
    searchable: bool
    """Whether the search index has all of them."""
    store_bytes: int
    search_bytes: int
    writer: int | None
    """The process that is writing just now."""
    phrases: int | None = None
    """In the phrase index; None where there is none."""
    phrase_bytes: int = 0
    encoded: bool = False
    """Whether the phrase index has all changes of the store."""
