"""The manifest of a phrase index: which segments count, and which of their documents are gone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import CorpusError
from ..text.writing import replacing

__all__ = ["Manifest"]

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
        with replacing(folder / _NAME) as stream:
            stream.write(json.dumps({"format": _FORMAT, **asdict(self)}).encode())

    @staticmethod
    def signature(folder: Path) -> tuple[int, int, int] | None:
        """What tells one manifest from the next: each is a file of its own."""
        try:
            found = (folder / _NAME).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
