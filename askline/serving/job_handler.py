"""What a worker does with a job: look up its ranker, weigh what was brought, do the task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..corpus import Corpus
from ..errors import InputError
from ..rankers.base import prepare
from ..rankers.pipeline import answer_threshold, trace
from ..rankers.probability import log_odds
from ..rankers.registry import DEFAULT_SPEC
from ..text.words import split_words
from ..types import Ranker, Ranking
from .allowed_rankers import BUILT_IN, WEIGHTY, Roster
from .ask_jobs import Remote, ask_documents, ask_index
from .document_jobs import Missing, add, browse, remove, show
from .messages import Frame
from .relevance import chance_stages, relevance
from .worker import failure

__all__ = [
    "FEW",
    "Desk",
    "TooMuch",
]

FEW = 16
"""
Candidates of a request that shares, at most. Lists up to ten save a tenth to a quarter of the time
that way; twenty fill batches of their own, and would only wait
(research/results/service_batches.json).
"""


class TooMuch(InputError):  # noqa: N818 – what the client sees is its status
    """More than the service takes in one request."""

    status = 413


@runtime_checkable
class Together(Protocol):
    """A ranker that is faster with several questions at a time. Optional; never different."""

    def trace_many(self, requests: Sequence[tuple[str, Sequence[str]]]) -> list[Ranking]:
        """What `trace` gives for each."""
        ...


class Desk:
    """One worker's rankers and its view of the index."""

    def __init__(
        self, roster: Roster, index: Corpus | Remote | None, *, tokens: int, batch: int
    ) -> None:
        self.roster = roster
        self.index = index
        self._tokens = tokens
        self.batch = batch if isinstance(roster.ranker(None), Together) else 1
        self._tasks: dict[str, Callable[[Frame], Frame]] = {
            "rank": self._rank,
            "score": self._score,
            "ask": self._ask,
            "add": lambda job: add(self._corpus(), job),
            "remove": lambda job: remove(self._corpus(), job),
            "browse": lambda job: browse(self._corpus(), job),
            "show": lambda job: show(self._corpus(), job),
        }

    @classmethod
    def open(cls, plan: dict[str, Any]) -> Desk:
        """Load the models and open the index, which a first start makes."""
        roster = Roster(plan["models"] or [DEFAULT_SPEC])
        index = _index(plan)
        for spec in roster.models:  # the first question finds everything in memory
            ranker = roster.ranker(spec)
            ranker.rank("Which lamp burns?", ["The lamp burns.", "It rains."])
            prepare(ranker)
        return cls(roster, index, tokens=plan["tokens"], batch=plan["batch"])

    def about(self) -> Frame:
        """What `/info` says of the rankers."""
        models = [
            {"id": spec, "threshold": answer_threshold(self.roster.ranker(spec))}
            for spec in self.roster.models
        ]
        return {"models": models, "rankers": _usable(), "batch": self.batch}

    def shares(self, job: Frame) -> bool:
        """Whether it is ranked together with others: few candidates, the default, no deadline."""
        if job["task"] != "rank" or job["until"] is not None or len(job["candidates"]) > FEW:
            return False
        return self.roster.served(job["model"]) is self.roster.ranker(None)

    def perform(self, jobs: list[Frame]) -> list[Frame]:
        """A result for each job, in order. More than one only of those that share."""
        if len(jobs) > 1:
            with suppress(Exception):  # one of them is wrong; apart, the others are not
                return self._rank_many(jobs)
        return [self._one(job) for job in jobs]

    def _one(self, job: Frame) -> Frame:
        try:
            return {"done": self._tasks[job["task"]](job)}
        except Exception as error:
            return failure(error)

    def _rank(self, job: Frame) -> Frame:
        tokens = self._weighed([job["question"], *job["candidates"]])
        ranker = self.roster.served(job.get("model"))
        ranking = trace(ranker, job["question"], job["candidates"], job.get("deadline_ms"))
        return _ranked(ranker, ranking, tokens)

    def _rank_many(self, jobs: list[Frame]) -> list[Frame]:
        tokens = [self._weighed([job["question"], *job["candidates"]]) for job in jobs]
        ranker = self.roster.ranker(None)
        assert isinstance(ranker, Together)  # or batches would have one job
        found = ranker.trace_many([(job["question"], job["candidates"]) for job in jobs])
        return [
            {"done": _ranked(ranker, ranking, count)}
            for ranking, count in zip(found, tokens, strict=True)
        ]

    def _score(self, job: Frame) -> Frame:
        """Pairs, those of one question ranked together; scores in the order of the pairs."""
        tokens = self._weighed([text for pair in job["pairs"] for text in pair])
        ranker = self.roster.served(job.get("model"))
        by_question: dict[str, list[int]] = {}
        for place, (question, _) in enumerate(job["pairs"]):
            by_question.setdefault(question, []).append(place)
        scores = [0.0] * len(job["pairs"])
        for question, places in by_question.items():
            texts = [job["pairs"][place][1] for place in places]
            ranking = trace(ranker, question, texts, job.get("deadline_ms"))
            values = relevance(ranking.hits, chance_stages(ranking))
            for hit, score in zip(ranking.hits, values, strict=True):
                scores[places[hit.index]] = score
        return {"scores": scores, "tokens": tokens, "model": str(ranker)}

    def _ask(self, job: Frame) -> Frame:
        ranker = self.roster.ranker(job["ranker"])
        if job["documents"] is None:
            return ask_index(self._index(), ranker, job)
        self._weighed([job["question"], *(text for _, text in job["documents"])])
        return ask_documents(ranker, job)

    def _index(self) -> Corpus | Remote:
        if self.index is None:
            raise Missing("This service has no index. Start it with --index DIR.")
        return self.index

    def _corpus(self) -> Corpus:
        index = self._index()
        if isinstance(index, Remote):
            raise Missing(f"The texts are in {index}, and are added, shown and taken out there.")
        return index

    def _weighed(self, texts: Sequence[str]) -> int:
        tokens = sum(len(split_words(text)) for text in texts)
        if tokens > self._tokens:
            raise TooMuch(
                f"The texts must have at most {self._tokens:,} words together, got {tokens:,}."
            )
        return tokens


def _index(plan: dict[str, Any]) -> Corpus | Remote | None:
    if plan["retriever"] is not None:
        return Remote(plan["retriever"])
    if plan["index"] is None:
        return None
    corpus = Corpus.open(Path(plan["index"]), ranker=None)
    corpus.retriever()  # what a killed process left undone is done now
    return corpus


def _ranked(ranker: Ranker, ranking: Ranking, tokens: int) -> Frame:
    hits, chances = ranking.hits, chance_stages(ranking)
    scores = relevance(hits, chances)
    last = max((hit.stage for hit in hits), default=0)
    return {
        "order": [hit.index for hit in hits],
        "scores": scores,
        "raw": [
            hit.score if hit.stage == last and last not in chances else log_odds(score)
            for hit, score in zip(hits, scores, strict=True)
        ],
        "tokens": tokens,
        "model": str(ranker),
        "skipped": ranking.skipped,
    }


def _usable() -> list[str]:
    """Names that a request may use; without those whose weights did not come with askline."""
    shipped = files("askline.models") / "shipped"
    return [name for name in BUILT_IN if name not in WEIGHTY or (shipped / name).is_dir()]
