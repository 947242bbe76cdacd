"""Words as the search index knows them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import tantivy

from ..text.words import words

__all__ = ["Stems"]

_WORD_BYTES = 100  # longer ones are no words but data; tantivy refuses those beyond 65,530


class Stems:
    """
    Words with their accents and endings off, the same for every language.

    English endings: on French questions (PIAF) they did as well as French ones.
    """

    def __init__(self) -> None:
        self.analyser = _analyser()
        self.stem: Callable[[str], str] = lru_cache(2**16)(self._stem)
        """A word as the index knows it; empty for what it leaves out."""

    def terms(self, text: str) -> list[str]:
        """The different terms of a text, as the index knows them, in order."""
        stems = (self.stem(word) for word in words(text))
        return list(dict.fromkeys(stem for stem in stems if stem))

    def _stem(self, word: str) -> str:
        found = self.analyser.analyze(word)
        return found[0] if found else ""


def _analyser() -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    for step in (
        tantivy.Filter.remove_long(_WORD_BYTES),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("English"),
    ):
        builder = builder.filter(step)
    return builder.build()
