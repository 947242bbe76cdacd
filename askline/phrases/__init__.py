"""Phrases that answer: found in a text, encoded once, searched by a question's vector."""

from __future__ import annotations

from .phrase_answers import PhraseAnswer, judged, nearest
from .phrase_index import PhraseHit, PhraseIndex
from .phrase_model import EncodedPhrases, EncodedQuestion, PhraseModel, PhraseSpan

__all__ = [
    "EncodedPhrases",
    "EncodedQuestion",
    "PhraseAnswer",
    "PhraseHit",
    "PhraseIndex",
    "PhraseModel",
    "PhraseSpan",
    "judged",
    "nearest",
]
