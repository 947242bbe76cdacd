"""
Exact match and F1 of answer phrases, as SQuAD counts them.

A phrase is lowered, loses its punctuation and its articles, and is parted at white space; the best
match over the gold phrases counts. A question without an answer has no gold phrase, and the right
prediction for it is the empty text (SQuAD 2.0). English follows SQuAD's own rule to the letter.

French drops le, la, les, l', du, des, au, aux, un and une. `l'` goes before the punctuation does,
for without its apostrophe it is no longer seen; and typographic marks (’ « » …) count as
punctuation, which SQuAD's rule for English does not know. An accent is the same in one character
as in two. This rule has not been held against the
script of FQuAD's authors: say so beside a French figure.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from ..errors import InputError, UnknownNameError
from .measures import FloatArray

__all__ = [
    "Language",
    "PhraseScores",
    "exact_match",
    "f1",
    "normalize_phrase",
    "score_phrases",
]

Language: TypeAlias = Literal["en", "fr"]

_ARTICLES: dict[Language, re.Pattern[str]] = {
    "en": re.compile(r"\b(a|an|the)\b"),
    "fr": re.compile(r"\b(le|la|les|du|des|au|aux|un|une)\b"),
}
_ELIDED = re.compile(r"\bl['’]")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True, eq=False)
class PhraseScores:
    """Fractions 0 to 1 for each question, in the order of the gold answers."""

    exact_match: FloatArray
    f1: FloatArray

    @property
    def percent(self) -> dict[str, float]:
        """The means in percent, under the names `EM` and `F1`."""
        return {"EM": 100 * float(self.exact_match.mean()), "F1": 100 * float(self.f1.mean())}


def normalize_phrase(phrase: str, *, language: Language = "en") -> str:
    """What two phrases must share to match exactly."""
    if language not in get_args(Language):
        raise UnknownNameError("language", language, get_args(Language))
    text = phrase.lower()
    if language == "fr":
        text = unicodedata.normalize("NFC", text)
        text = "".join(filter(_is_kept, _ELIDED.sub(" ", text)))
    else:
        text = text.translate(_ASCII_PUNCTUATION)
    return " ".join(_ARTICLES[language].sub(" ", text).split())


def exact_match(prediction: str, golds: Sequence[str], *, language: Language = "en") -> float:
    """1 if the prediction is one of the gold phrases once both are normalised, else 0."""
    return _best(lambda gold, said: float(gold == said), prediction, golds, language)


def f1(prediction: str, golds: Sequence[str], *, language: Language = "en") -> float:
    """The best harmonic mean of token precision and recall over the gold phrases."""
    return _best(_token_f1, prediction, golds, language)


def score_phrases(
    predictions: Mapping[str, str],
    golds: Mapping[str, Sequence[str]],
    *,
    language: Language = "en",
) -> PhraseScores:
    """Score predictions by question id; each question needs one, if only the empty text."""
    missing = [question for question in golds if question not in predictions]
    if missing or not golds:
        raise InputError(
            f"Expected a prediction for each of {len(golds)} questions (at least one), "
            f"{len(missing)} are missing: {', '.join(map(repr, missing[:5])) or 'none'}. "
            f'Predict "" where there is no answer.'
        )
    pairs = [(predictions[question], phrases) for question, phrases in golds.items()]
    return PhraseScores(
        exact_match=np.array([exact_match(*pair, language=language) for pair in pairs]),
        f1=np.array([f1(*pair, language=language) for pair in pairs]),
    )


def _best(
    score: Callable[[str, str], float], prediction: str, golds: Sequence[str], language: Language
) -> float:
    said = normalize_phrase(prediction, language=language)
    normal = [normalize_phrase(gold, language=language) for gold in golds]
    # As SQuAD 2.0 does: gold phrases of nothing but articles and marks are not gold phrases.
    return max(score(gold, said) for gold in [gold for gold in normal if gold] or [""])


def _token_f1(gold: str, said: str) -> float:
    gold_tokens, said_tokens = gold.split(), said.split()
    if not gold_tokens or not said_tokens:
        return float(gold_tokens == said_tokens)
    common = sum((Counter(gold_tokens) & Counter(said_tokens)).values())
    return 2 * common / (len(gold_tokens) + len(said_tokens))


def _is_kept(character: str) -> bool:
    return character not in string.punctuation and not unicodedata.category(character).startswith(
        "P"
    )
