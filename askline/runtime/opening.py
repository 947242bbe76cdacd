"""A cascade's folder → the engine that runs it."""

from __future__ import annotations

from ..models.cascade_layout import CascadeLayout, check_tensors
from ..models.folder import ModelFolder
from .batches import Crew
from .encoder import OnnxEncoder
from .wordpiece import WordPiece

__all__ = ["open_encoder"]


def open_encoder(folder: ModelFolder, *, threads: int | None = None) -> OnnxEncoder:
    """
    An encoder with every weight checked; `threads` is how many batches run at once.

    Without `threads`, as many as the process has cores.
    """
    layout = CascadeLayout.from_config(folder.config, path=folder.path / "config.json")
    tensors = folder.stored()
    check_tensors(layout, tensors, path=folder.path)
    tokeniser = WordPiece.load(folder.path / "tokenizer.json")
    return OnnxEncoder(layout, tensors, tokeniser, Crew(threads))
