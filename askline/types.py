"""
The words of the house, as frozen records, and the one abstraction that all rankers share.

A `Question` brings its `Candidate`s; a `Ranker` puts them in order and answers with `Hit`s; a
`Ranking` is those hits with a `StageReport` for each stage that had a part in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = [
    "Candidate",
    "Cost",
    "Hit",
    "Question",
    "QuestionSet",
    "Ranker",
    "Ranking",
    "Source",
    "StageReport",
]


@dataclass(frozen=True, slots=True)
class Hit:
    """One candidate's place in a ranking, which is its place in the list of hits."""

    index: int
    """Position in the list that the caller gave."""
    score: float
    """Higher is better. Comparable within a stage, not between stages."""
    stage: int = 0
    """The stage of the pipeline that decided this candidate's place."""


@runtime_checkable
class Ranker(Protocol):
    """Anything that puts candidates in order. `askline.testing` holds the contract as tests."""

    def rank(self, question: str, candidates: Sequence[str]) -> list[Hit]:
        """
        Every candidate exactly once, best first.

        The order given is the original rank and carries meaning: a ranker may read it, and
        candidates with equal scores keep it. The ranker and the list are left as they were.
        """
        ...


@dataclass(frozen=True, slots=True)
class Cost:
    """
    Layers computed, and how many full depth would have been: every candidate through every layer.

    Counted by candidates and by their tokens, which is nearer to time. Costs of stages add up; full
    depth is then that of the deepest encoder among them.
    """

    candidate_layers: float
    token_layers: float
    full_candidate_layers: float
    full_token_layers: float

    @property
    def candidate_share(self) -> float:
        """Candidate-layers relative to full depth, which is 1."""
        return self.candidate_layers / self.full_candidate_layers

    @property
    def token_share(self) -> float:
        """Token-layers relative to full depth, which is 1."""
        return self.token_layers / self.full_token_layers

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.candidate_layers + other.candidate_layers,
            self.token_layers + other.token_layers,
            max(self.full_candidate_layers, other.full_candidate_layers),
            max(self.full_token_layers, other.full_token_layers),
        )

    def among(self, times: float) -> Cost:
        """The same work where full depth means so many times as many candidates of this length."""
        full = (self.full_candidate_layers * times, self.full_token_layers * times)
        return Cost(self.candidate_layers, self.token_layers, *full)


@dataclass(frozen=True, slots=True)
class StageReport:
    """What one stage of a pipeline did with what it was given."""

    ranker: str
    """The stage as a spec text."""
    entered: int
    kept: int
    """How many went on to the next stage; for the last stage, how many it put on top."""
    seconds: float
    skipped: int = 0
    """How many of those that entered were not judged, because time was up."""
    cost: Cost | None = None
    """Of the stages that count layers."""
    calibrated: bool = False
    """Whether the scores of those it decided are chances."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits, best first, and the stages that made them, first stage first."""

    hits: tuple[Hit, ...]
    stages: tuple[StageReport, ...]
    unjudged: int = 0
    """So many hits at the end no stage has looked at, because time was up; their score is 0."""

    @property
    def cost(self) -> Cost | None:
        """Of all stages that count layers; None where none does."""
        costs = [stage.cost for stage in self.stages if stage.cost is not None]
        return sum(costs[1:], costs[0]) if costs else None

    @property
    def skipped(self) -> int:
        """Judgements that were not made, over all stages; 0 where time was enough."""
        return sum(stage.skipped for stage in self.stages)


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
