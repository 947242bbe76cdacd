"""
Runs (the rankings of one ranker for many questions), qrels, and TREC's file formats for both.

A run file has rows `question Q0 candidate rank score tag`, a qrels file
`question 0 candidate relevance`. Columns are separated by ASCII white space, so an id that contains
white space cannot be written. It is refused, not changed, because a changed id would no longer
match the other file. Files are UTF-8 and are written atomically.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from ..errors import DataError, InputError, Problem, RankerError, UnknownNameError
from ..text.atomic_write import atomic_write
from ..types import Hit, Question

__all__ = [
    "Qrels",
    "RankedList",
    "Run",
    "TieRule",
    "make_qrels",
    "read_qrels",
    "read_run",
    "write_qrels",
    "write_run",
]

Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""Question id → candidate id → relevance. Above 0 is an answer; a missing candidate is not one."""

TieRule: TypeAlias = Literal["docno", "rank"]
"""How `read_run` orders equal scores."""

_T = TypeVar("_T")

_RUN_COLUMNS = ("question", "Q0", "candidate", "rank", "score", "tag")
_QRELS_COLUMNS = ("question", "0", "candidate", "relevance")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_UNWRITABLE = re.compile(r"[\x00\t-\r \ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class RankedList:
    """Candidate ids of one question, best first. The order counts; scores may tie or rise."""

    ids: tuple[str, ...]
    scores: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.scores):
            raise InputError(
                f"Expected one score per candidate, "
                f"got {len(self.ids)} candidates and {len(self.scores)} scores."
            )
        if len(set(self.ids)) != len(self.ids):
            repeated = next(id_ for id_ in self.ids if self.ids.count(id_) > 1)
            raise InputError(
                f"Candidate ids must be unique within a question, got {repeated!r} twice. "
                f"Give each candidate its own id."
            )
        if not all(map(math.isfinite, self.scores)):
            raise InputError("Scores must be finite numbers, got NaN or infinity.")

    @classmethod
    def from_hits(cls, question: Question, hits: Sequence[Hit]) -> RankedList:
        """The ids in the order of the hits. Checks that each candidate occurs once."""
        indexes = [hit.index for hit in hits]
        scores = tuple([float(hit.score) for hit in hits])
        _check_permutation(question, indexes)
        if not all(map(math.isfinite, scores)):
            raise RankerError(
                f"Question {question.id!r}: scores must be finite, got NaN or infinity."
            )
        candidates = question.candidates
        return cls(tuple([candidates[index].id for index in indexes]), scores)


@dataclass(frozen=True, slots=True)
class Run:
    """Rankings by question id, with the name of the ranker."""

    name: str
    rankings: Mapping[str, RankedList]

    @classmethod
    def from_hits(cls, name: str, ranked: Iterable[tuple[Question, Sequence[Hit]]]) -> Run:
        """A run from questions with their hits. Question ids must be unique."""
        rankings: dict[str, RankedList] = {}
        for question, hits in ranked:
            if question.id in rankings:
                raise InputError(
                    f"Question ids must be unique within a run, got {question.id!r} twice."
                )
            rankings[question.id] = RankedList.from_hits(question, hits)
        return cls(name, rankings)


def make_qrels(questions: Iterable[Question]) -> dict[str, dict[str, int]]:
    """The labels of all candidates as qrels, with relevance 1 or 0."""
    return {
        question.id: {candidate.id: int(candidate.is_answer) for candidate in question.candidates}
        for question in questions
    }


@dataclass(frozen=True, slots=True)
class _Row:
    candidate: str
    rank: int
    score: float


def read_run(path: str | os.PathLike[str], *, ties: TieRule) -> Run:
    """
    Read a run file; the name of the run is the tag of its first row.

    Candidates are sorted by score, not by their order in the file. `ties` orders equal scores:
    "docno" as in trec_eval (scores compared as float32, then candidate ids in descending order),
    "rank" by the rank column and then by the order in the file (scores compared as written).
    """
    if ties not in get_args(TieRule):
        raise UnknownNameError("tie rule", ties, get_args(TieRule))
    rows: dict[str, dict[str, _Row]] = {}
    tag = ""

    def keep(columns: Sequence[str]) -> None:
        nonlocal tag
        question, _, candidate, rank, score, row_tag = columns
        row = _Row(candidate, _integer("rank", rank), _number("score", score))
        _keep_once(rows, question, candidate, row)
        tag = tag or row_tag

    _read_rows(Path(path), _RUN_COLUMNS, keep)
    return Run(tag, {question: _sorted(found.values(), ties) for question, found in rows.items()})


def read_qrels(path: str | os.PathLike[str]) -> dict[str, dict[str, int]]:
    """Read a qrels file. Relevance is an integer; above 0 means an answer."""
    qrels: dict[str, dict[str, int]] = {}

    def keep(columns: Sequence[str]) -> None:
        question, _, candidate, relevance = columns
        _keep_once(qrels, question, candidate, _integer("relevance", relevance))

    _read_rows(Path(path), _QRELS_COLUMNS, keep)
    return qrels


def write_run(run: Run, path: str | os.PathLike[str]) -> None:
    """
    Write a run so that trec_eval, and `read_run` with either tie rule, read the same ranking.

    If the scores of a question do not fall strictly as float32 (because of ties, or because stages
    have different scales), the score column counts down to 1 instead. White space in the name
    becomes `_`. A question without candidates has no row.
    """
    _check_ids((question, ranked.ids) for question, ranked in run.rankings.items())
    tag = _UNWRITABLE.sub("_", run.name) or "run"
    _write_lines(path, _run_lines(run, tag))


def write_qrels(qrels: Qrels, path: str | os.PathLike[str]) -> None:
    """Write a qrels file. A question without candidates is refused: it would have no row."""
    empty = [question for question, relevance in qrels.items() if not relevance]
    if empty:
        raise InputError(
            f"Expected at least one judged candidate per question, got none for "
            f"{', '.join(map(repr, empty[:5]))}. Leave these questions out."
        )
    _check_ids(qrels.items())
    lines = (
        f"{question} 0 {candidate} {relevance}\n"
        for question, judged in qrels.items()
        for candidate, relevance in judged.items()
    )
    _write_lines(path, lines)


def _check_permutation(question: Question, indexes: Sequence[int]) -> None:
    count = len(question.candidates)
    if sorted(indexes) == list(range(count)):
        return
    times = Counter(indexes)
    missing = [index for index in range(count) if index not in times]
    repeated = [index for index, occurrences in times.items() if occurrences > 1]
    out_of_range = [index for index in times if not 0 <= index < count]
    raise RankerError(
        f"Question {question.id!r}: a ranking must have each of the {count} candidates once, "
        f"got {len(indexes)} hits; missing: {_list_some(missing)}; "
        f"repeated: {_list_some(repeated)}; out of range: {_list_some(out_of_range)}."
    )


def _list_some(indexes: Sequence[int]) -> str:
    shown = ", ".join(map(str, sorted(indexes)[:5]))
    return (shown + ", …" if len(indexes) > 5 else shown) or "none"


def _sorted(rows: Iterable[_Row], ties: TieRule) -> RankedList:
    if ties == "docno":
        # Code points sort in the order of their UTF-8 bytes, so this is the C library's strcmp.
        by_id = sorted(rows, key=lambda row: row.candidate, reverse=True)
        ordered = sorted(by_id, key=lambda row: -_as_float32(row.score))
    else:
        ordered = sorted(rows, key=lambda row: (-row.score, row.rank))
    return RankedList(tuple(row.candidate for row in ordered), tuple(row.score for row in ordered))


def _as_float32(score: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(score))


def _run_lines(run: Run, tag: str) -> Iterator[str]:
    for question, ranked in run.rankings.items():
        scores = _strictly_falling(ranked.scores)
        for rank, (candidate, score) in enumerate(zip(ranked.ids, scores, strict=True), start=1):
            yield f"{question} Q0 {candidate} {rank} {float(score)!r} {tag}\n"


def _strictly_falling(scores: Sequence[float]) -> Sequence[float]:
    with np.errstate(over="ignore"):
        float32 = np.asarray(scores, dtype=np.float32)
    if np.isfinite(float32).all() and (np.diff(float32) < 0).all():
        return scores
    return [float(value) for value in range(len(scores), 0, -1)]


def _read_rows(path: Path, columns: Sequence[str], keep: Callable[[Sequence[str]], None]) -> None:
    """Pass the columns of each row to `keep`; collect the ValueErrors and raise them together."""
    problems: list[Problem] = []
    rows = 0
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            parts = line.removeprefix(b"\xef\xbb\xbf").split() if number == 1 else line.split()
            if not parts:
                continue
            rows += 1
            try:
                if len(parts) != len(columns):
                    raise ValueError(
                        f"expected {len(columns)} columns ({' '.join(columns)}), got {len(parts)}."
                    )
                keep([part.decode("utf-8") for part in parts])
            except UnicodeDecodeError:
                problems.append(Problem(str(path), number, "not UTF-8. Convert the file to UTF-8."))
            except ValueError as error:
                problems.append(Problem(str(path), number, str(error)))
    if not rows:
        problems.append(Problem(str(path), 0, f"expected rows of {' '.join(columns)}, got none."))
    if problems:
        raise DataError(problems)


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError([Problem(str(path), 0, f"cannot be read: {error.strerror}.")]) from error


def _keep_once(table: dict[str, dict[str, _T]], question: str, candidate: str, value: _T) -> None:
    found = table.setdefault(question, {})
    if candidate in found:
        raise ValueError(
            f"candidate {_short(candidate)} occurs twice for question {_short(question)}. "
            f"Keep one row."
        )
    found[candidate] = value


def _integer(column: str, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{column} must be an integer, got {_short(text)}.")
    return int(text)


def _number(column: str, text: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else float("nan")
    if not np.isfinite(value):
        raise ValueError(f"{column} must be a finite number, got {_short(text)}.")
    return value


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")


def _check_ids(table: Iterable[tuple[str, Iterable[str]]]) -> None:
    ids = (id_ for question, candidates in table for id_ in (question, *candidates))
    bad = list(dict.fromkeys(id_ for id_ in ids if not id_ or _UNWRITABLE.search(id_)))
    if bad:
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        raise InputError(
            "In TREC files, white space separates columns: ids must not be empty or contain any; "
            f"got {', '.join(map(_short, bad[:5]))}{more}. Rename these ids."
        )


def _write_lines(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    with atomic_write(path) as stream:
        stream.writelines(line.encode() for line in lines)
