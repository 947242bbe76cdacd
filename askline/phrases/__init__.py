"""Phrases that may answer a question: extracted and encoded once, then searched by vector."""

from __future__ import annotations

from .phrase_index import PhraseAnswer, PhraseHit, PhraseIndex, nearest_phrases, ranked_phrases
from .phrase_model import EncodedPhrases, EncodedQuestion, PhraseModel, PhraseSpan

__all__ = [
    "EncodedPhrases",
    "EncodedQuestion",
    "PhraseAnswer",
    "PhraseHit",
    "PhraseIndex",
    "PhraseModel",
    "PhraseSpan",
    "nearest_phrases",
    "ranked_phrases",
]
