"""
The phrase index: a folder of segments and a manifest that names those that count.

Adding writes a segment, then the manifest; deleting writes the manifest alone. The manifest is put
in place whole, so a process killed at any moment leaves the index as it was before or as it is
after. `optimise` joins segments, forgets what was deleted, and builds inverted lists where exact
search would be slow. One process writes at a time; any number may read.
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
from .segments import Rows, Segment, build_lists, write_segment

__all__ = ["PhraseHit", "PhraseIndex"]

EXACT = 200_000
"""Phrases up to which `optimise` leaves search exact: those of about 2,000 paragraphs."""
_MANIFEST = "phrases.json"


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

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self._manifest = manifest
        self._segments = {name: Segment(folder / name) for name in manifest["segments"]}

    @classmethod
    def open(cls, folder: str | PathLike[str], *, create: bool = False) -> PhraseIndex:
        """The index in a folder; with `create`, an empty one where there is none."""
        path = Path(folder).expanduser()
        try:
            manifest = json.loads((path / _MANIFEST).read_text("utf-8"))
        except FileNotFoundError:
            if not create:
                raise CorpusError(f"No phrase index at {path}. Make one first.") from None
            path.mkdir(parents=True, exist_ok=True)
            return cls(path, {"format": 1, "next": 0, "segments": {}})
        except (OSError, ValueError) as error:
            raise CorpusError(f"{path / _MANIFEST} is damaged ({error}).") from error
        if not isinstance(manifest, dict) or manifest.get("format") != 1:
            raise CorpusError(f"{path / _MANIFEST} is of another version of askline.")
        return cls(path, manifest)

    def __len__(self) -> int:
        """Phrases, those of deleted documents included until `optimise`."""
        return sum(map(len, self._segments.values()))

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

    def add(self, documents: Iterable[tuple[str, str, CodedPhrases]]) -> None:
        """Name, text and phrases of each; one with a known name takes the place of the old."""
        batch = list(documents)
        names = [name for name, _, _ in batch]
        if len(set(names)) < len(names):
            raise InputError("Expected each document once, got a name twice in one call.")
        self._mark(names)
        coded = [phrases for _, _, phrases in batch]
        places = [
            (place, phrase.start, phrase.end)
            for place, phrases in enumerate(coded)
            for phrase in phrases.phrases
        ]
        if places:
            rows = Rows(
                np.concatenate([phrases.dense for phrases in coded]),
                np.concatenate([phrases.words for phrases in coded]),
                np.concatenate([phrases.weights for phrases in coded]),
                np.array(places, np.int32),
                names,
                [text for _, text, _ in batch],
            )
            self._put(rows)
        self._commit()

    def delete(self, names: Sequence[str]) -> None:
        """Take documents out; names that are not there are passed over."""
        self._mark(names)
        self._commit()

    def optimise(self, *, exact: int = EXACT) -> None:
        """One segment of all that is left, with inverted lists where it has over `exact` rows."""
        old = list(self._segments)
        rows = self._left()
        self._segments, self._manifest["segments"] = {}, {}
        if rows is not None:
            name = self._put(rows)
            if len(rows.dense) > exact:
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

    def _mark(self, names: Sequence[str]) -> None:
        wanted = set(names)
        for key, segment in self._segments.items():
            gone = self._gone(key)
            gone |= {place for place, name in enumerate(segment.names) if name in wanted}
            self._manifest["segments"][key] = sorted(gone)

    def _put(self, rows: Rows) -> str:
        name = f"{self._manifest['next']:06d}"
        shutil.rmtree(self.folder / name, ignore_errors=True)  # what a killed writer left
        write_segment(self.folder / name, rows)
        self._manifest["next"] += 1
        self._manifest["segments"][name] = []
        self._segments[name] = Segment(self.folder / name)
        return name

    def _commit(self) -> None:
        with replacing(self.folder / _MANIFEST) as stream:
            stream.write(json.dumps(self._manifest).encode())

    def _left(self) -> Rows | None:
        """Everything that is not deleted, documents numbered anew."""
        parts: list[Rows] = []
        before = 0
        for key, segment in self._segments.items():
            gone = self._gone(key)
            kept = [place for place in range(len(segment.names)) if place not in gone]
            number = np.full(len(segment.names), -1, np.int32)
            number[kept] = np.arange(before, before + len(kept))
            rows = np.flatnonzero(number[segment.places[:, 0]] >= 0)
            places = np.array(segment.places[rows])
            places[:, 0] = number[places[:, 0]]
            words, weights = segment.lexical(rows)
            names, texts = [segment.names[at] for at in kept], [segment.text(at) for at in kept]
            parts.append(Rows(segment.real()[rows], words, weights, places, names, texts))
            before += len(kept)
        if not sum(len(part.dense) for part in parts):
            return None
        return Rows(
            np.concatenate([part.dense for part in parts]),
            np.concatenate([part.words for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.places for part in parts]),
            [name for part in parts for name in part.names],
            [text for part in parts for text in part.texts],
        )
