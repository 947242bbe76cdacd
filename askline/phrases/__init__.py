"""Phrases that answer: found in a text, encoded once, searched by a question's vector."""

from __future__ import annotations

from .answers import PhraseAnswer, judged, nearest
from .index import PhraseHit, PhraseIndex
from .model import CodedPhrases, CodedQuestion, Phrase, PhraseModel

__all__ = [
    "CodedPhrases",
    "CodedQuestion",
    "Phrase",
    "PhraseAnswer",
    "PhraseHit",
    "PhraseIndex",
    "PhraseModel",
    "judged",
    "nearest",
]
