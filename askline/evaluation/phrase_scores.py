"""
Exact match and F1 of answer phrases, as defined by SQuAD.

A phrase is lowercased, loses its punctuation and articles, and is split at white space; the best
match over the gold phrases counts. A question without an answer has no gold phrase, and the correct
prediction for it is the empty text (SQuAD 2.0). English follows SQuAD's own script exactly.

French drops le, la, les, l', du, des, au, aux, un and une. `l'` is dropped before the punctuation,
because it is recognized by its apostrophe. Typographic marks (’ « » …) count as punctuation, unlike
in SQuAD's script, and accents are composed (NFC). This rule has not been compared with the script
of FQuAD's authors; published French results should say so.
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
    """One fraction per question, 0 to 1, in the order of the gold answers."""

    exact_match: FloatArray
    f1: FloatArray

    @property
    def percent(self) -> dict[str, float]:
        """The means in percent, with the names `EM` and `F1`."""
        return {"EM": 100 * float(self.exact_match.mean()), "F1": 100 * float(self.f1.mean())}


def normalize_phrase(phrase: str, *, language: Language = "en") -> str:
    """Two phrases match exactly if their normalized forms are equal."""
    if language not in get_args(Language):
        raise UnknownNameError("language", language, get_args(Language))
    text = phrase.lower()
    if language == "fr":
        text = unicodedata.normalize("NFC", text)
        text = "".join(filter(_is_not_punctuation, _ELIDED.sub(" ", text)))
    else:
        text = text.translate(_ASCII_PUNCTUATION)
    return " ".join(_ARTICLES[language].sub(" ", text).split())


def exact_match(prediction: str, golds: Sequence[str], *, language: Language = "en") -> float:
    """1 if the normalized prediction equals a normalized gold phrase, else 0."""
    return _best_score(
        lambda gold, predicted: float(gold == predicted), prediction, golds, language
    )


def f1(prediction: str, golds: Sequence[str], *, language: Language = "en") -> float:
    """The harmonic mean of token precision and recall; the best over the gold phrases."""
    return _best_score(_token_f1, prediction, golds, language)


def score_phrases(
    predictions: Mapping[str, str],
    golds: Mapping[str, Sequence[str]],
    *,
    language: Language = "en",
) -> PhraseScores:
    """Score predictions by question id. Each question needs one, which may be empty."""
    missing = [question for question in golds if question not in predictions]
    if missing or not golds:
        raise InputError(
            f"Expected a prediction for each of {len(golds)} questions (at least one), "
            f"got none for {len(missing)}: {', '.join(map(repr, missing[:5])) or 'none'}. "
            f'Predict "" for no answer.'
        )
    pairs = [(predictions[question], phrases) for question, phrases in golds.items()]
    return PhraseScores(
        exact_match=np.array([exact_match(*pair, language=language) for pair in pairs]),
        f1=np.array([f1(*pair, language=language) for pair in pairs]),
    )


def _best_score(
    score: Callable[[str, str], float], prediction: str, golds: Sequence[str], language: Language
) -> float:
    predicted = normalize_phrase(prediction, language=language)
    normalized = [normalize_phrase(gold, language=language) for gold in golds]
    # As in SQuAD 2.0: gold phrases of nothing but articles and punctuation are ignored.
    return max(score(gold, predicted) for gold in [gold for gold in normalized if gold] or [""])


def _token_f1(gold: str, predicted: str) -> float:
    gold_tokens, predicted_tokens = gold.split(), predicted.split()
    if not gold_tokens or not predicted_tokens:
        return float(gold_tokens == predicted_tokens)
    common = sum((Counter(gold_tokens) & Counter(predicted_tokens)).values())
    return 2 * common / (len(gold_tokens) + len(predicted_tokens))


def _is_not_punctuation(character: str) -> bool:
    if character in string.punctuation:
        return False
    return not unicodedata.category(character).startswith("P")
