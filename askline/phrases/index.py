"""
The phrase index: a folder of segments and a manifest that names those that count.

Adding writes a segment, then the manifest; deleting writes the manifest alone. The manifest is put
in place whole, so a process killed at any moment leaves the index as it was before or as it is
after. `optimise` joins segments, forgets what was deleted, and builds inverted lists where exact
search would be slow; `tidy` does so only where many small segments have come together. One process
writes at a time; any number may read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CorpusError, InputError
from ..text.writing import replacing
from .model import CodedPhrases, CodedQuestion
from .segments import Rows, Segment, build_lists, can_build_lists, joined, write_segment

__all__ = ["PhraseHit", "PhraseIndex"]

EXACT = 200_000
"""Phrases up to which `optimise` leaves search exact: those of about 2,000 paragraphs."""
_MANIFEST = "phrases.json"
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

    def __init__(self, folder: Path, manifest: dict[str, Any], seen: object = None) -> None:
        self.folder = folder
        self._manifest = manifest
        self._segments = {name: Segment(folder / name) for name in manifest["segments"]}
        self._seen = seen

    @classmethod
    def open(cls, folder: str | PathLike[str], *, create: bool = False) -> PhraseIndex:
        """The index in a folder; with `create`, an empty one where there is none."""
        path = Path(folder).expanduser()
        seen = _signature(path)  # before it is read: what comes in between is noticed
        try:
            manifest = json.loads((path / _MANIFEST).read_text("utf-8"))
        except FileNotFoundError:
            if not create:
                raise CorpusError(f"No phrase index at {path}. Make one first.") from None
            path.mkdir(parents=True, exist_ok=True)
            return cls(path, {"format": 1, "next": 0, "segments": {}, "stamp": {}})
        except (OSError, ValueError) as error:
            raise CorpusError(f"{path / _MANIFEST} is damaged ({error}).") from error
        if not isinstance(manifest, dict) or {"next", "segments"} - manifest.keys():
            raise CorpusError(f"{path / _MANIFEST} is damaged (it names no segments).")
        if manifest.get("format") != 1:
            raise CorpusError(f"{path / _MANIFEST} is of another version of askline.")
        return cls(path, manifest, seen)

    def __len__(self) -> int:
        """Phrases, those of deleted documents included until `optimise`."""
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
    def bytes(self) -> int:
        """Size on disk."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    @property
    def stamp(self) -> dict[str, Any]:
        """What the last writer left about the index, such as what it has all of."""
        return {**self._manifest.get("stamp", {})}

    def is_current(self) -> bool:
        """Whether nobody else has written since it was opened or last written to."""
        return _signature(self.folder) == self._seen

    def add(
        self,
        documents: Iterable[tuple[str, str, CodedPhrases]],
        *,
        stamp: dict[str, Any] | None = None,
    ) -> None:
        """
        Name, text and phrases of each; one with a known name takes the place of the old.

        A `stamp` is put in place together with them.
        """
        batch = list(documents)
        texts = {name: text for name, text, _ in batch}
        if len(texts) < len(batch):
            raise InputError("Expected each document once, got a name twice in one call.")
        self._mark(texts)
        coded = [phrases for _, _, phrases in batch]
        places = [
            (place, phrase.start, phrase.end)
            for place, phrases in enumerate(coded)
            for phrase in phrases.phrases
        ]
        if places:
            rows = Rows.of(
                np.concatenate([phrases.dense for phrases in coded]),
                np.concatenate([phrases.words for phrases in coded]),
                np.concatenate([phrases.weights for phrases in coded]),
                np.array(places),
                texts,
            )
            self._put(rows)
        self._commit(stamp)

    def delete(self, names: Iterable[str], *, stamp: dict[str, Any] | None = None) -> None:
        """Take documents out; names that are not there are passed over."""
        self._mark(names)
        self._commit(stamp)

    def optimise(self, *, exact: int = EXACT) -> None:
        """
        One segment of all that is left, with inverted lists where it has over `exact` rows.

        Without faiss there are no lists, and search stays exact.
        """
        self._join(list(self._segments), exact)

    def tidy(self, *, exact: int = EXACT) -> None:
        """
        Join the segments without lists where there are many of them, or over `exact` rows in them.

        What has lists stays as it is, so that a growing index is not written again and again.
        """
        plain = {name: len(one) for name, one in self._segments.items() if not one.has_lists}
        if len(plain) > _MANY or (sum(plain.values()) > exact and can_build_lists()):
            self._join(list(plain), exact)

    def _join(self, old: Sequence[str], exact: int) -> None:
        parts = [(self._segments[name], self._gone(name)) for name in old]
        rows = joined(parts) if parts else None
        for name in old:
            del self._segments[name], self._manifest["segments"][name]
        if rows is not None:
            name = self._put(rows)
            if len(rows) > exact and can_build_lists():
                build_lists(self.folder / name)
                self._segments[name] = Segment(self.folder / name)
        self._commit()
        for name in old:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def search(
        self, question: CodedQuestion, k: int = 10, *, shortlist: int = 1000, probes: int = 64
    ) -> list[PhraseHit]:
        """
        The `k` best phrases, best first.

        The nearest `shortlist` by their vectors, then put in order with the words around them too.
        """
        if k < 1:
            raise InputError(f"k must be at least 1, got {k}.")
        found: list[tuple[float, str, int]] = []
        for key, segment in self._segments.items():
            rows, scores = segment.nearest(question.dense, max(k, shortlist), probes=probes)
            gone = self._gone(key)
            if gone:
                kept = ~np.isin(segment.places[rows, 0], list(gone))
                rows, scores = rows[kept], scores[kept]
            scores = scores + question.lexical(*segment.lexical(rows))
            order = np.argsort(-scores, kind="stable")[:k]
            found += [(float(scores[at]), key, int(rows[at])) for at in order]
        best = sorted(found, key=lambda one: -one[0])[:k]
        return [self._hit(key, row, score) for score, key, row in best]

    def _hit(self, key: str, row: int, score: float) -> PhraseHit:
        segment = self._segments[key]
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
        return set(self._manifest["segments"][key])

    def _mark(self, names: Iterable[str]) -> None:
        wanted = list(names)
        for key, segment in self._segments.items():
            found = {place for name in wanted if (place := segment.number(name)) is not None}
            if found:
                self._manifest["segments"][key] = sorted(self._gone(key) | found)

    def _put(self, rows: Rows) -> str:
        name = f"{self._manifest['next']:06d}"
        shutil.rmtree(self.folder / name, ignore_errors=True)  # what a killed writer left
        write_segment(self.folder / name, rows)
        self._manifest["next"] += 1
        self._manifest["segments"][name] = []
        self._segments[name] = Segment(self.folder / name)
        return name

    def _commit(self, stamp: dict[str, Any] | None = None) -> None:
        if stamp is not None:
            self._manifest["stamp"] = stamp
        with replacing(self.folder / _MANIFEST) as stream:
            stream.write(json.dumps(self._manifest).encode())
        self._seen = _signature(self.folder)


def _signature(folder: Path) -> tuple[int, int, int] | None:
    """What tells one manifest from the next: each is a file of its own."""
    try:
        found = (folder / _MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
