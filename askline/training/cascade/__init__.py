"""
The Cascade Transformer: one encoder, a classifier at several depths, and a reader at the last.

`make_cascade` trains one from labelled sets, `save_cascade` writes it as a folder, and
`TorchEncoder.load` runs such a folder in stages, on a GPU or a CPU.
"""

from __future__ import annotations

__all__: list[str] = []
