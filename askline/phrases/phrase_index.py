"""
The phrase index: a folder of segments and a manifest, and the answers that are found in it.

The manifest names the current segments. Adding writes a segment and then the manifest; deleting
writes the manifest only. The manifest is replaced atomically, so a process that is killed at any
moment leaves the index as it was before or as it is after. `optimize` merges segments, drops
deleted documents, and builds inverted lists if exact search would be slow; `compact` does this only
if there are many small segments. One process may write at a time; any number may read.

`nearest_phrases` is the method of the paper: the nearest phrase is the answer. `ranked_phrases`
lets a ranker choose among the sentences of the nearest phrases, and returns the phrase in each.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorpusError, InputError
from ..text.atomic_write import atomic_write
from .index_segments import Segment, SegmentData, faiss_installed, merge_segments, write_segment
from .phrase_model import EncodedPhrases, EncodedQuestion, PhraseModel

if TYPE_CHECKING:  # encoding phrases needs no ranker
    from ..rankers.base import Ranker

__all__ = [
    "Manifest",
    "PhraseAnswer",
    "PhraseHit",
    "PhraseIndex",
    "nearest_phrases",
    "ranked_phrases",
]

EXACT_SEARCH_ROWS = 200_000
"""Phrases up to which search stays exact: those of about 2,000 paragraphs."""
SHORTLIST = 4_000
"""Nearest phrases by vector that are scored again with the words around them."""
_MAX_SMALL_SEGMENTS = 8  # segments without inverted lists, before they are merged
_MANIFEST_NAME = "phrases.json"
_MANIFEST_FORMAT = 1


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
    """An opened index. It searches what was there when it was opened or last written to."""

    def __init__(self, folder: Path, manifest: Manifest, signature: object = None) -> None:
        self.folder = folder
        self._manifest = manifest
        self._segments = {name: Segment(folder / name) for name in manifest.segments}
        self._signature = signature

    @classmethod
    def open(cls, folder: str | PathLike[str], *, create: bool = False) -> PhraseIndex:
        """The index in a folder; with `create`, an empty one if there is none."""
        path = Path(folder).expanduser()
        signature = Manifest.signature(path)  # before reading, so that a later change is noticed
        manifest = Manifest.read(path)
        if manifest is None:
            if not create:
                raise CorpusError(f"No phrase index in {path}. Create one first.")
            path.mkdir(parents=True, exist_ok=True)
            return cls(path, Manifest())
        try:
            return cls(path, manifest, signature)
        except CorpusError:
            if Manifest.signature(path) == signature:
                raise
            return cls.open(path)  # a writer has just merged its segments

    def __len__(self) -> int:
        """The number of phrases, including those of deleted documents until `optimize`."""
        return sum(map(len, self._segments.values()))

    def __contains__(self, name: str) -> bool:
        return any(
            position is not None and position not in self._deleted(key)
            for key, segment in self._segments.items()
            for position in [segment.position(name)]
        )

    @property
    def documents(self) -> list[str]:
        """The names of the documents, in the order in which they were added."""
        return [
            name
            for key, segment in self._segments.items()
            for position, name in enumerate(segment.names)
            if position not in self._deleted(key)
        ]

    @property
    def size_bytes(self) -> int:
        """The size on disk."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    @property
    def stamp(self) -> dict[str, Any]:
        """The caller's own data about the state of the index, as last written."""
        return {**self._manifest.stamp}

    def is_current(self) -> bool:
        """Whether no other process has written since the index was opened or last written to."""
        return Manifest.signature(self.folder) == self._signature

    def search(
        self,
        question: EncodedQuestion,
        k: int = 10,
        *,
        shortlist: int = SHORTLIST,
        probes: int = 64,
    ) -> list[PhraseHit]:
        """
        The `k` best phrases, best first.

        The `shortlist` nearest phrases by vector are scored again with the words around them. On
        WikiQA dev, a shorter list loses answers, and a longer one finds no more. `probes` is the
        number of inverted lists to search in large segments.
        """
        if k < 1:
            raise InputError(f"k must be at least 1, got {k}.")
        self._check_model([question.model])
        parts = [(segment, self._deleted(key)) for key, segment in self._segments.items()]
        rows = _search_segments(parts, question, k, shortlist=max(k, shortlist), probes=probes)
        return [self._to_hit(parts[part][0], row, score) for part, row, score in rows]

    def text(self, name: str) -> str:
        """The text of a document."""
        for key, segment in self._segments.items():
            position = segment.position(name)
            if position is not None and position not in self._deleted(key):
                return segment.text(position)
        raise InputError(f"No document {name!r} in {self.folder}.")

    def add(
        self,
        documents: Iterable[tuple[str, str, EncodedPhrases]],
        *,
        stamp: dict[str, Any] | None = None,
    ) -> None:
        """
        Add documents as (name, text, phrases); each replaces a document of the same name.

        A document without phrases is not stored. A `stamp` is written together with them.
        """
        batch = list(documents)
        names = [name for name, _, _ in batch]
        if len({*names}) < len(batch):
            raise InputError("Each document may occur once per call, got a name twice.")
        nonempty = [document for document in batch if len(document[2])]
        model = self._check_model(phrases.model for _, _, phrases in nonempty)
        # The segment is written first, because that may fail.
        new_key = self._add_segment(SegmentData.quantize(nonempty)) if nonempty else None
        self._mark_deleted(names, except_in=new_key)
        self._manifest.model = model
        self._commit(stamp)

    def delete(self, names: Iterable[str], *, stamp: dict[str, Any] | None = None) -> None:
        """Delete documents; unknown names are ignored."""
        self._mark_deleted(names)
        self._commit(stamp)

    def optimize(self, *, exact: int = EXACT_SEARCH_ROWS) -> None:
        """
        Merge everything into one segment, with inverted lists if it has over `exact` phrases.

        Without faiss there are no inverted lists, and search stays exact.
        """
        self._merge(list(self._segments), exact)

    def compact(self, *, exact: int = EXACT_SEARCH_ROWS) -> None:
        """
        Merge the segments without inverted lists if they are many or have over `exact` phrases.

        A segment with inverted lists is kept, so that a growing index is not rewritten again and
        again, until half of it is deleted.
        """
        small = {
            key: len(segment) for key, segment in self._segments.items() if not segment.has_lists
        }
        is_many = len(small) > _MAX_SMALL_SEGMENTS
        is_large = sum(small.values()) > exact and faiss_installed()
        half_deleted = {
            key
            for key, segment in self._segments.items()
            if 2 * segment.count_phrases(self._deleted(key)) > len(segment)
        }
        old = half_deleted | (set(small) if is_many or is_large else set())
        if old:
            self._merge([key for key in self._segments if key in old], exact)

    def _merge(self, old: Sequence[str], exact: int) -> None:
        data = (
            merge_segments([(self._segments[key], self._deleted(key)) for key in old])
            if old
            else None
        )
        new_key = None if data is None else self._add_segment(data)
        if new_key is not None and len(self._segments[new_key]) > exact and faiss_installed():
            try:
                self._segments[new_key].build_lists()
            except BaseException:
                del self._segments[new_key], self._manifest.segments[new_key]
                raise
        for key in old:
            del self._segments[key], self._manifest.segments[key]
        self._commit()
        for key in old:
            shutil.rmtree(self.folder / key, ignore_errors=True)

    @staticmethod
    def _to_hit(segment: Segment, row: int, score: float) -> PhraseHit:
        document, start, end = map(int, segment.places[row])
        text = segment.text(document)[start:end]
        return PhraseHit(segment.names[document], text, start, end, score)

    def _deleted(self, key: str) -> set[int]:
        """Positions of the deleted documents of a segment."""
        return set(self._manifest.segments[key])

    def _mark_deleted(self, names: Iterable[str], *, except_in: str | None = None) -> None:
        """Mark documents as deleted in every segment, except in one."""
        wanted = list(names)
        for key, segment in self._segments.items():
            positions = {at for name in wanted if (at := segment.position(name)) is not None}
            if positions and key != except_in:
                self._manifest.segments[key] = sorted(self._deleted(key) | positions)

    def _check_model(self, models: Iterable[str]) -> str:
        """The one model of the index and of `models`; empty if unknown."""
        known = {self._manifest.model if self._segments else "", *models} - {""}
        if len(known) > 1:
            raise InputError(
                f"All vectors in {self.folder} must be of one model, got "
                f"{' and '.join(sorted(known))}. Load the model of the index, or create the index "
                "again."
            )
        return known.pop() if known else ""

    def _add_segment(self, data: SegmentData) -> str:
        key = f"{self._manifest.next:06d}"
        shutil.rmtree(self.folder / key, ignore_errors=True)  # of a writer that was killed
        write_segment(self.folder / key, data)
        self._manifest.next += 1
        self._manifest.segments[key] = []
        self._segments[key] = Segment(self.folder / key)
        return key

    def _commit(self, stamp: dict[str, Any] | None = None) -> None:
        if stamp is not None:
            self._manifest.stamp = stamp
        self._manifest.write(self.folder)
        self._signature = Manifest.signature(self.folder)


@dataclass(slots=True)
class Manifest:
    """The file that names the current segments. It is replaced atomically."""

    next: int = 0
    """The number of the next segment; numbers are never reused."""
    segments: dict[str, list[int]] = field(default_factory=dict)
    """The current segments, each with the positions of its deleted documents."""
    stamp: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    """The identity of the model of the vectors; empty if unknown."""

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of the index in a folder; None if there is no index."""
        path = folder / _MANIFEST_NAME
        try:
            entries = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CorpusError(f"{path} is damaged ({error}).") from error
        types = {"next": int, "segments": dict}
        if not isinstance(entries, dict) or any(
            not isinstance(entries.get(name), kind) for name, kind in types.items()
        ):
            raise CorpusError(f"{path} is damaged (it names no segments).")
        if entries.pop("format", None) != _MANIFEST_FORMAT:
            raise CorpusError(f"{path} was written by another version of askline.")
        try:
            return cls(**entries)
        except TypeError as error:
            raise CorpusError(f"{path} is damaged ({error}).") from error

    def write(self, folder: Path) -> None:
        """Replace the manifest of the index in a folder."""
        with atomic_write(folder / _MANIFEST_NAME) as stream:
            stream.write(json.dumps({"format": _MANIFEST_FORMAT, **asdict(self)}).encode())

    @staticmethod
    def signature(folder: Path) -> tuple[int, int, int] | None:
        """A value that differs between two manifests, because each is a new file."""
        try:
            state = (folder / _MANIFEST_NAME).stat()
        except OSError:
            return None
        return state.st_ino, state.st_mtime_ns, state.st_size


def _search_segments(
    parts: Sequence[tuple[Segment, Collection[int]]],
    question: EncodedQuestion,
    k: int,
    *,
    shortlist: int,
    probes: int,
) -> list[tuple[int, int, float]]:
    """
    The segment, row and score of the `k` best phrases, best first.

    Each segment comes with the positions of its deleted documents. The shortlist is taken over all
    segments together, so with exact search the result does not depend on the segments.
    """
    if not parts:
        return []
    nearest = [
        segment.nearest(question.dense, shortlist, probes=probes, deleted=deleted)
        for segment, deleted in parts
    ]
    owners = np.repeat(np.arange(len(nearest)), [len(rows) for rows, _ in nearest])
    rows, scores = map(np.concatenate, zip(*nearest, strict=True))
    kept = np.argsort(-scores, kind="stable")[:shortlist]
    rows, scores, owners = rows[kept], scores[kept], owners[kept]
    words, weights = _context_words([segment for segment, _ in parts], owners, rows)
    scores = scores + question.lexical(words, weights)
    best = np.argsort(-scores, kind="stable")[:k]
    return [(int(owners[at]), int(rows[at]), float(scores[at])) for at in best]


def _context_words(
    segments: Sequence[Segment], owners: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The words around these phrases and their weights, (rows, k)."""
    size = segments[0].words.shape[1]
    words = np.zeros((len(rows), size), np.int32)
    weights = np.zeros((len(rows), size), np.float32)
    for owner in np.unique(owners).tolist():
        own = owners == owner
        words[own], weights[own] = segments[owner].context_words(rows[own])
    return words, weights


_CONTEXT_CHARACTERS = 4_000  # on each side of a phrase, to find its sentence


@dataclass(frozen=True, slots=True)
class PhraseAnswer:
    """A phrase and its sentence, both as places in the text of the document."""

    phrase: PhraseHit
    sentence: str
    start: int
    """The first character of the sentence in its document."""
    score: float
    """The ranker's score of the sentence, or the score of the phrase without a ranker."""


def nearest_phrases(
    question: str, model: PhraseModel, index: PhraseIndex, *, top_k: int = 1
) -> list[PhraseAnswer]:
    """The `top_k` nearest phrases, each with its sentence, nearest first."""
    hits = index.search(model.encode_question(question), top_k)
    return [PhraseAnswer(hit, *_find_sentence(hit, index), hit.score) for hit in hits]


def ranked_phrases(
    question: str,
    model: PhraseModel,
    index: PhraseIndex,
    ranker: Ranker,
    *,
    top_k: int = 1,
    retrieved: int = 100,
    read: bool = True,
) -> list[PhraseAnswer]:
    """
    The sentences of the `retrieved` nearest phrases, in the ranker's order, each with one phrase.

    The ranker gets the sentences in the order of their nearest phrase. With `read`, a ranker that
    can read chooses the phrase in a sentence, which then has the ranker's score; otherwise it is
    the nearest phrase.
    """
    if retrieved < 1:
        raise InputError(f"retrieved must be at least 1, got {retrieved}.")
    nearest: dict[tuple[str, int], tuple[PhraseHit, str]] = {}
    for hit in index.search(model.encode_question(question), retrieved):
        sentence, start = _find_sentence(hit, index)
        nearest.setdefault((hit.document, start), (hit, sentence))
    places = list(nearest)
    ranking = ranker.rank(question, [nearest[place][1] for place in places])[:top_k]
    sentences = [nearest[places[ranked.index]][1] for ranked in ranking]
    spans = ranker.read(question, sentences) if read else [None] * len(sentences)
    answers = []
    for ranked, span in zip(ranking, spans, strict=True):
        document, start = places[ranked.index]
        phrase, sentence = nearest[document, start]
        if span is not None:
            text = sentence[span.start : span.end]
            phrase = PhraseHit(document, text, start + span.start, start + span.end, span.score)
        answers.append(PhraseAnswer(phrase, sentence, start, ranked.score))
    return answers


def _find_sentence(hit: PhraseHit, index: PhraseIndex) -> tuple[str, int]:
    """The sentence in which a phrase starts, and its first character in the document."""
    from ..text.sentences import split_sentences  # not needed to encode phrases

    text = index.text(hit.document)
    first = max(0, hit.start - _CONTEXT_CHARACTERS)  # a long document is not split as a whole
    for start, end in split_sentences(text[first : hit.end + _CONTEXT_CHARACTERS]):
        if start <= hit.start - first < end:
            return text[first + start : first + end], first + start
    return hit.text, hit.start
