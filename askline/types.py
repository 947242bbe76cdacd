"""
Frozen records that all packages share.

A `Question` of a labelled set has `Candidate`s. A ranker returns `Hit`s; a `Ranking` is hits with a
`StageReport` for each stage that had a part in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

__all__ = [
    "Candidate",
    "Cost",
    "Document",
    "Hit",
    "Passage",
    "Question",
    "QuestionSet",
    "Ranking",
    "Source",
    "Span",
    "StageReport",
]

_HTML_ROWS = 20


@dataclass(frozen=True, slots=True)
class Passage:
    """
    Sentences that follow each other in a text. A ranker ranks them one by one.

    A ranker that reads in context scores each sentence with the others in sight, which is worth
    most where a sentence leaves out what it is about ("It opened in 1932.").
    """

    sentences: Sequence[str]
    title: str = ""
    """The heading or title above the sentences; it is read with them and never ranked."""


Document = str | Mapping[str, Any] | Passage
"""
What a ranker ranks: a string, or a mapping with its text under a key the caller names.

In a list of passages, the sentences of all passages are ranked.
"""


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a text that the reader points at: `text[start:end]`."""

    start: int
    end: int
    score: float
    """The log probability that the answer starts and ends there, if it is in this text."""
    no_answer: float
    """The log probability that there is no answer; show no span that scores below it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One document in a ranking; its rank is its position in the list of hits."""

    index: int
    """Position in the caller's list of documents; of passages, the number of the sentence."""
    score: float
    """Higher is better. Comparable within a stage, not between stages."""
    stage: int = 0
    """The stage of the pipeline that decided this document's rank, from 0."""
    probability: float | None = None
    """The probability that the document answers; None if the stage is not calibrated."""
    document: Document = field(default="", repr=False, compare=False)
    """The caller's own object: the string, the mapping, or the sentence's passage."""
    text: str = field(default="", compare=False)
    """The text that was ranked."""
    span: Span | None = field(default=None, compare=False)
    """What a reader that read the text in its passage points at; None if it points at nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    """
    Encoder layers computed, and the number at full depth: every candidate through every layer.

    Counted per candidate and per token; the latter is closer to time. Costs of stages add up, with
    the full depth of the deepest encoder among them.
    """

    candidate_layers: float
    token_layers: float
    full_candidate_layers: float
    full_token_layers: float

    @property
    def candidate_share(self) -> float:
        """Candidate-layers as a share of full depth, which is 1."""
        return self.candidate_layers / self.full_candidate_layers

    @property
    def token_share(self) -> float:
        """Token-layers as a share of full depth, which is 1."""
        return self.token_layers / self.full_token_layers

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.candidate_layers + other.candidate_layers,
            self.token_layers + other.token_layers,
            max(self.full_candidate_layers, other.full_candidate_layers),
            max(self.full_token_layers, other.full_token_layers),
        )

    def relative_to(self, scale: float) -> Cost:
        """The same work, relative to `scale` times as many candidates of the same length."""
        full = (self.full_candidate_layers * scale, self.full_token_layers * scale)
        return Cost(self.candidate_layers, self.token_layers, *full)


@dataclass(frozen=True, slots=True)
class StageReport:
    """What one stage of a ranker did with the documents it got."""

    ranker: str
    """The stage as a spec text."""
    entered: int
    kept: int
    """Documents passed on to the next stage; for the last stage, those ranked first."""
    seconds: float
    skipped: int = 0
    """Documents that entered and were not scored, because time was up."""
    cost: Cost | None = None
    """None for a stage without encoder layers."""
    calibrated: bool = False
    """Whether the scores of this stage are probabilities."""
    depth: int | None = None
    """The encoder layer after which this stage scored; None for a stage without encoder layers."""
    in_context: bool = False
    """Whether the sentences of passages were scored in context."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits, best first, and the stages that made them, first stage first."""

    hits: tuple[Hit, ...]
    stages: tuple[StageReport, ...]
    unscored: int = 0
    """The number of hits at the end that no stage scored, because time was up; their score is 0."""

    @property
    def cost(self) -> Cost | None:
        """The sum over all stages with encoder layers; None if there is no such stage."""
        costs = [stage.cost for stage in self.stages if stage.cost is not None]
        return sum(costs[1:], costs[0]) if costs else None

    @property
    def skipped(self) -> int:
        """Scores that were not computed, over all stages; 0 if there was time for all."""
        return sum(stage.skipped for stage in self.stages)

    def _repr_html_(self) -> str:
        """A table of the best hits, for notebooks."""
        rows = "".join(
            f"<tr><td>{rank}</td><td>{_html_score(hit)}</td>"
            f"<td style='text-align:left'>{escape(hit.text)}</td></tr>"
            for rank, hit in enumerate(self.hits[:_HTML_ROWS], start=1)
        )
        more = len(self.hits) - _HTML_ROWS
        caption = f"<caption>and {more:,} more</caption>" if more > 0 else ""
        header = "<tr><th></th><th>score</th><th style='text-align:left'>text</th></tr>"
        return f"<table>{caption}<thead>{header}</thead><tbody>{rows}</tbody></table>"


def _html_score(hit: Hit) -> str:
    return f"{hit.score:.4g}" if hit.probability is None else f"{hit.probability:.1%}"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a text stands: `document_text[start:end]` is the text, to the character."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence (or paragraph) that may answer its question."""

    id: str
    text: str
    is_answer: bool = False
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its labelled candidates, in their original order."""

    id: str
    text: str
    candidates: tuple[Candidate, ...]
    answers: tuple[str, ...] = ()
    """The gold phrases, where the dataset has them."""
    topic: str = ""
    """What it shares with other questions of its set, as in TrecQA's series; mostly nothing."""

    @property
    def texts(self) -> list[str]:
        """The candidates as a ranker takes them."""
        return [candidate.text for candidate in self.candidates]

    @property
    def answerable(self) -> bool:
        """Whether at least one candidate answers the question."""
        return any(candidate.is_answer for candidate in self.candidates)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Labelled questions under the name they are reported by. Ids are unique within a set."""

    name: str
    questions: tuple[Question, ...]

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    @property
    def candidate_count(self) -> int:
        """Candidates over all questions, repeated ones counted each time."""
        return sum(len(question.candidates) for question in self.questions)
