"""Count the files that were not read, by reason and kind, for reports and for the store."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..errors import NotReadReason
from ..text.readers import SkippedFile
from .results import NotReadFiles
from .schema import SkippedRecord

__all__ = [
    "NotReadCounts",
    "SkippedCounts",
]


class NotReadCounts:
    """Files that were not read, by reason and kind."""

    def __init__(self) -> None:
        self._counts: dict[tuple[NotReadReason, str], tuple[int, str]] = {}

    def add(
        self,
        path: str,
        reason: NotReadReason,
        *,
        is_folder: bool = False,
        kind: str = "",
        count: int = 1,
    ) -> None:
        """Count one file, or several of a known kind of which `path` is one."""
        key = reason, kind or file_suffix(path, is_folder=is_folder)
        before, example = self._counts.get(key, (0, path))
        self._counts[key] = before + count, example

    def files(self) -> tuple[NotReadFiles, ...]:
        """The counts: the most frequent reason first, and of each reason the most frequent kind."""
        found = [
            NotReadFiles(reason, kind, count, example)
            for (reason, kind), (count, example) in self._counts.items()
        ]
        totals: dict[NotReadReason, int] = {}
        for each in found:
            totals[each.reason] = totals.get(each.reason, 0) + each.count
        found.sort(key=lambda each: (-totals[each.reason], each.reason, -each.count, each.kind))
        return tuple(found)


class SkippedCounts:
    """What was left out below each path that was added."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._roots = set(roots)
        self._counts: dict[str, NotReadCounts] = {}

    def add(self, path: str, skipped: SkippedFile) -> None:
        """Count a file or folder by its absolute path."""
        root = path
        while root not in self._roots and os.path.dirname(root) != root:
            root = os.path.dirname(root)
        counts = self._counts.setdefault(root, NotReadCounts())
        counts.add(path, skipped.reason, is_folder=skipped.is_folder)

    def merged(self, stored: Iterable[SkippedRecord]) -> list[SkippedRecord]:
        """The records of these paths, and the stored ones of others."""
        kept = [record for record in stored if not self._is_covered(record.root)]
        new = [
            SkippedRecord(root, each.reason, each.kind, each.count, each.example)
            for root, counts in self._counts.items()
            for each in counts.files()
        ]
        return sorted([*kept, *new])

    def _is_covered(self, root: str) -> bool:
        """Whether a path, or a folder above it, was added now."""
        while root not in self._roots:
            above = os.path.dirname(root)
            if above == root:
                return False
            root = above
        return True


def file_suffix(path: str, *, is_folder: bool = False) -> str:
    """The kind of a file in reports."""
    if is_folder:
        return "folder"
    name = os.path.basename(path)
    return os.path.splitext(name)[1].lower() or "no suffix"
