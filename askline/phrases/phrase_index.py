"""
The manifest of a phrase index: which segments count, and which of their documents are gone.

The best phrases among those of several segments, by their vectors and the words around them.

The phrase index: a folder of segments and a manifest that names those that count.

Adding writes a segment, then the manifest; deleting writes the manifest alone. The manifest is put
in place whole, so a process killed at any moment leaves the index as it was before or as it is
after. `optimize` joins segments, forgets what was deleted, and builds inverted lists where exact
search would be slow; `compact` does so only where there are many small ones. One
process writes at a time; any number may read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorpusError, InputError
from ..text.atomic_write import atomic_write
from .index_segments import Segment, SegmentData, joined, write_segment
from .inverted_lists import faiss_installed
from .phrase_model import EncodedPhrases, EncodedQuestion

__all__ = [
    "Manifest",
    "PhraseHit",
    "PhraseIndex",
    "search_segments",
]

_NAME = "phrases.json"
_FORMAT = 1


@dataclass(slots=True)
class Manifest:
    """Put in place whole, so that whoever opens the index finds one state or the next."""

    next: int = 0
    """Number of the segment that is written next; none is given twice."""
    segments: dict[str, list[int]] = field(default_factory=dict)
    """The segments that count, each with the places of its documents that are gone."""
    stamp: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    """The identity of the model that the vectors are of; empty where it is not known."""

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """That of the index in a folder; None where there is none."""
        path = folder / _NAME
        try:
            entries = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CorpusError(f"{path} is damaged ({error}).") from error
        kinds = {"next": int, "segments": dict}
        if not isinstance(entries, dict) or any(
            not isinstance(entries.get(name), kind) for name, kind in kinds.items()
        ):
            raise CorpusError(f"{path} is damaged (it names no segments).")
        if entries.pop("format", None) != _FORMAT:
            raise CorpusError(f"{path} is of another version of askline.")
        try:
            return cls(**entries)
        except TypeError as error:
            raise CorpusError(f"{path} is damaged ({error}).") from error

    def write(self, folder: Path) -> None:
        """In place of the one before."""
        with atomic_write(folder / _NAME) as stream:
            stream.write(json.dumps({"format": _FORMAT, **asdict(self)}).encode())

    @staticmethod
    def signature(folder: Path) -> tuple[int, int, int] | None:
        """What tells one manifest from the next: each is a file of its own."""
        try:
            found = (folder / _NAME).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


Places = NDArray[np.int64]


def search_segments(
    parts: Sequence[tuple[Segment, Collection[int]]],
    question: EncodedQuestion,
    k: int,
    *,
    near: int,
    probes: int,
) -> list[tuple[int, int, float]]:
    """
    Segment, row and score of the `k` best, best first; none of the documents gone from a segment.

    Of all segments together the `near` nearest by their vectors are put in order with their words:
    what is found does not depend on how the phrases are dealt out, where search is exact.
    """
    if not parts:
        return []
    found = [
        segment.nearest(question.dense, near, probes=probes, gone=gone) for segment, gone in parts
    ]
    owners = np.repeat(np.arange(len(found)), [len(rows) for rows, _ in found])
    rows, scores = map(np.concatenate, zip(*found, strict=True))
    kept = np.argsort(-scores, kind="stable")[:near]
    rows, scores, owners = rows[kept], scores[kept], owners[kept]
    words, weights = _words([segment for segment, _ in parts], owners, rows)
    scores = scores + question.lexical(words, weights)
    best = np.argsort(-scores, kind="stable")[:k]
    return [(int(owners[at]), int(rows[at]), float(scores[at])) for at in best]


def _words(
    segments: Sequence[Segment], owners: Places, rows: Places
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Words around these phrases and their weights, (rows, k)."""
    size = segments[0].words.shape[1]
    words = np.zeros((len(rows), size), np.int32)
    weights = np.zeros((len(rows), size), np.float32)
    for owner in np.unique(owners).tolist():
        own = owners == owner
        words[own], weights[own] = segments[owner].lexical(rows[own])
    return words, weights


EXACT = 200_000
"""Phrases up to which `optimize` leaves search exact: those of about 2,000 paragraphs."""
_MANY = 8  # segments without lists, before they are joined


@dataclass(frozen=True, slots=True)
class PhraseHit:
    """A phrase of a document: `document_text[start:end]`."""

    document: str
    text: str
    start: int
    end: int
    score: float
    """Higher is better; comparable within a question."""


class PhraseIndex:
    """An opened index. It answers from what it saw when it was opened or last written to."""

    def __init__(self, folder: Path, manifest: Manifest, seen: object = None) -> None:
        self.folder = folder
        self._manifest = manifest
        self._segments = {name: Segment(folder / name) for name in manifest.segments}
        self._seen = seen

    @classmethod
    def open(cls, folder: str | PathLike[str], *, create: bool = False) -> PhraseIndex:
        """The index in a folder; with `create`, an empty one where there is none."""
        path = Path(folder).expanduser()
        seen = Manifest.signature(path)  # before it is read: what comes in between is noticed
        manifest = Manifest.read(path)
        if manifest is None:
            if not create:
                raise CorpusError(f"No phrase index at {path}. Make one first.")
            path.mkdir(parents=True, exist_ok=True)
            return cls(path, Manifest())
        try:
            return cls(path, manifest, seen)
        except CorpusError:
            if Manifest.signature(path) == seen:
                raise
            return cls.open(path)  # a writer has joined its segments just now

    def __len__(self) -> int:
        """Phrases, those of deleted documents included until `optimize`."""
        return sum(map(len, self._segments.values()))

    def __contains__(self, name: str) -> bool:
        return any(
            place is not None and place not in self._gone(key)
            for key, segment in self._segments.items()
            for place in [segment.number(name)]
        )

    @property
    def documents(self) -> list[str]:
        """Names of the documents in it, in the order they came."""
        return [
            name
            for key, segment in self._segments.items()
            for place, name in enumerate(segment.names)
            if place not in self._gone(key)
        ]

    @property
    def size_bytes(self) -> int:
        """Size on disk."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    @property
    def stamp(self) -> dict[str, Any]:
        """What the last writer left about the index, such as what it has all of."""
        return {**self._manifest.stamp}

    def is_current(self) -> bool:
        """Whether nobody else has written since it was opened or last written to."""
        return Manifest.signature(self.folder) == self._seen

    def add(
        self,
        documents: Iterable[tuple[str, str, EncodedPhrases]],
        *,
        stamp: dict[str, Any] | None = None,
    ) -> None:
        """
        Name, text and phrases of each; one with a known name takes the place of the old.

        One without phrases is not kept. A `stamp` is put in place together with them.
        """
        batch = list(documents)
        names = [name for name, _, _ in batch]
        if len({*names}) < len(batch):
            raise InputError("Expected each document once, got a name twice in one call.")
        found = [one for one in batch if len(one[2])]
        model = self._one_model(phrases.model for _, _, phrases in found)
        made = (
            self._put(SegmentData.of(found)) if found else None
        )  # first: it may be refused, or fail
        self._mark(names, but=made)
        self._manifest.model = model
        self._commit(stamp)

    def delete(self, names: Iterable[str], *, stamp: dict[str, Any] | None = None) -> None:
        """Take documents out; names that are not there are passed over."""
        self._mark(names)
        self._commit(stamp)

    def optimize(self, *, exact: int = EXACT) -> None:
        """
        One segment of all that is left, with inverted lists where it has over `exact` rows.

        Without faiss there are no lists, and search stays exact.
        """
        self._join(list(self._segments), exact)

    def compact(self, *, exact: int = EXACT) -> None:
        """
        Join the segments without lists where there are many of them, or over `exact` rows in them.

        What has lists stays as it is, so that a growing index is not written again and again,
        until half of it is gone.
        """
        plain = {name: len(one) for name, one in self._segments.items() if not one.has_lists}
        many = len(plain) > _MANY or (sum(plain.values()) > exact and faiss_installed())
        worn = [
            name
            for name, one in self._segments.items()
            if 2 * one.count(self._gone(name)) > len(one)
        ]
        old = {**dict.fromkeys(plain if many else ()), **dict.fromkeys(worn)}
        if old:
            self._join([name for name in self._segments if name in old], exact)

    def _join(self, old: Sequence[str], exact: int) -> None:
        parts = [(self._segments[name], self._gone(name)) for name in old]
        rows = joined(parts) if parts else None
        made = None if rows is None else self._put(rows)
        if made is not None and len(self._segments[made]) > exact and faiss_installed():
            try:
                self._segments[made].build_lists()
            except BaseException:
                del self._segments[made], self._manifest.segments[made]
                raise
        for name in old:
            del self._segments[name], self._manifest.segments[name]
        self._commit()
        for name in old:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def search(
        self, question: EncodedQuestion, k: int = 10, *, shortlist: int = 4000, probes: int = 64
    ) -> list[PhraseHit]:
        """
        The `k` best phrases, best first.

        The nearest `shortlist` by their vectors, then put in order with the words around them too:
        with fewer, answers on WikiQA dev are lost; more find none.
        """
        if k < 1:
            raise InputError(f"k must be at least 1, got {k}.")
        self._one_model([question.model])
        parts = [(segment, self._gone(key)) for key, segment in self._segments.items()]
        near = max(k, shortlist)
        return [
            self._hit(parts[part][0], row, score)
            for part, row, score in search_segments(parts, question, k, near=near, probes=probes)
        ]

    def _hit(self, segment: Segment, row: int, score: float) -> PhraseHit:
        document, start, end = map(int, segment.places[row])
        text = segment.text(document)[start:end]
        return PhraseHit(segment.names[document], text, start, end, score)

    def text(self, name: str) -> str:
        """The text of a document that is in the index."""
        for key, segment in self._segments.items():
            place = segment.number(name)
            if place is not None and place not in self._gone(key):
                return segment.text(place)
        raise InputError(f"No document {name!r} in {self.folder}.")

    def _gone(self, key: str) -> set[int]:
        return set(self._manifest.segments[key])

    def _mark(self, names: Iterable[str], *, but: str | None = None) -> None:
        """Documents of these names as gone from every segment `but` one."""
        wanted = list(names)
        for key, segment in self._segments.items():
            found = {place for name in wanted if (place := segment.number(name)) is not None}
            if found and key != but:
                self._manifest.segments[key] = sorted(self._gone(key) | found)

    def _one_model(self, models: Iterable[str]) -> str:
        """The model of all there is and of these, empty where none is known."""
        known = {self._manifest.model if self._segments else "", *models} - {""}
        if len(known) > 1:
            raise InputError(
                f"Expected vectors of one model in {self.folder}, got those of "
                f"{' and '.join(sorted(known))}. Load the model that the index was made with, or "
                "make it anew."
            )
        return known.pop() if known else ""

    def _put(self, rows: SegmentData) -> str:
        name = f"{self._manifest.next:06d}"
        shutil.rmtree(self.folder / name, ignore_errors=True)  # what a killed writer left
        write_segment(self.folder / name, rows)
        self._manifest.next += 1
        self._manifest.segments[name] = []
        self._segments[name] = Segment(self.folder / name)
        return name

    def _commit(self, stamp: dict[str, Any] | None = None) -> None:
        if stamp is not None:
            self._manifest.stamp = stamp
        self._manifest.write(self.folder)
        self._seen = Manifest.signature(self.folder)
