"""Plain text: the text is the original, and the sentence splitter reads its lines."""

from __future__ import annotations

from .content import Content
from .document import Blocks
from .offsets import line_starts

__all__ = ["read_plain"]


def read_plain(source: str) -> Content:
    """One block, offsets as they are."""
    blocks = Blocks()
    blocks.add(0, len(source), "text")
    return Content(source, blocks, "line", line_starts(source))
