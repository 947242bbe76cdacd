"""The question sets of the light rankers' tables, as texts and as numbers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from askline import data
from askline.models.light_config import Layout
from askline.models.word_vectors import WordVectors
from askline.training.light.encoded_questions import EncodedSet, encode
from askline.types import QuestionSet

from .report import data_root

__all__ = ["Source", "encoded", "questions", "word_vectors"]


@dataclass(frozen=True)
class Source:
    """Where numbers come from and go to."""

    vectors: str
    """A file that WordVectors.save wrote."""
    device: str
    folder: str
    """Encoded sets are kept here for the other processes: encoding outlasts many a training."""


@cache
def questions(name: str) -> QuestionSet:
    """The questions of a set that have an answer; several sets by names with plus signs between."""
    parts = [data.load_dataset(part, root=data_root()) for part in name.split("+")]
    found = (question for part in parts for question in data.filter_questions(part, "answerable"))
    return QuestionSet(name, tuple(found))


@cache
def word_vectors(path: str) -> WordVectors:
    """Read once a process."""
    return WordVectors.load(path)


@cache
def encoded(name: str, layout: Layout, source: Source) -> EncodedSet:
    """A set as numbers on the device, made by whichever process needs it first."""
    reads = "_".join(layout.reads) or "words"
    file = Path(source.folder) / f"{name.replace(':', '-')}_{reads}_{layout.vector_scale:g}.pt"
    if not file.exists():
        found = encode(questions(name), word_vectors(source.vectors), layout)
        half = file.with_suffix(f".{os.getpid()}")
        torch.save(found, half)
        half.replace(file)
    kept: EncodedSet = torch.load(file, weights_only=False)
    return kept.to(source.device)
