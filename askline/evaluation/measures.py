"""
Measures by name: of rankings, and of answer phrases.

Rankings are measured by trec_eval (through pytrec_eval): `MAP`, `MRR`, `P@k`, `R@k`, `nDCG@k` and
`Success@k`, the same names in code, on the command line and in tables. `R@k` is the share of the
answers among the first k; `Success@k` is 1 if at least one answer is among them. First stages are
measured by `Success@k`, which some papers call recall.

Phrases are measured by exact match and F1, as defined by SQuAD. A phrase is lowercased, loses its
punctuation and articles, and is split at white space; the best match over the gold phrases counts.
A question without an answer has no gold phrase, and the correct prediction for it is the empty text
(SQuAD 2.0). English follows SQuAD's own script exactly.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UnknownNameError, require_extra
from .runs import Qrels, RankedList, Run

__all__ = [
    "DEFAULT_MEASURES",
    "FloatArray",
    "Language",
    "Measure",
    "PhraseScores",
    "exact_match",
    "f1",
    "normalize_phrase",
    "parse_measure",
    "parse_measures",
    "score_phrases",
    "score_run",
]

FloatArray: TypeAlias = NDArray[np.float64]

DEFAULT_MEASURES = ("MAP", "MRR", "P@1", "nDCG@10")

_WITHOUT_CUTOFF = {"MAP": "map", "MRR": "recip_rank"}
_WITH_CUTOFF = {"P": "P", "R": "recall", "Success": "success", "nDCG": "ndcg_cut"}
_KNOWN_NAMES = (*_WITHOUT_CUTOFF, *(f"{name}@k" for name in _WITH_CUTOFF))
_MAX_CUTOFF = 999_999_999


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with its name here and in trec_eval."""

    name: str
    trec_name: str

    def __str__(self) -> str:
        return self.name


def parse_measure(name: str) -> Measure:
    """`"nDCG@10"` → the measure. Names are case-sensitive."""
    if name in _WITHOUT_CUTOFF:
        return Measure(name, _WITHOUT_CUTOFF[name])
    base, at, cutoff = name.partition("@")
    if base not in _WITH_CUTOFF or not at or not re.fullmatch(r"-?[0-9]+", cutoff):
        raise UnknownNameError("measure", name, _KNOWN_NAMES)
    if len(cutoff) > len(str(_MAX_CUTOFF)) or int(cutoff) < 1:
        raise InputError(f"k must be from 1 to {_MAX_CUTOFF}, got {cutoff} in measure {name!r}.")
    return Measure(f"{base}@{int(cutoff)}", f"{_WITH_CUTOFF[base]}_{int(cutoff)}")


def parse_measures(names: str | Iterable[str]) -> tuple[Measure, ...]:
    """Measures from a list of names or a comma-separated text; repeated names count once."""
    parts = names.split(",") if isinstance(names, str) else names
    measures = tuple(dict.fromkeys(parse_measure(part.strip()) for part in parts))
    if not measures:
        known = ", ".join(_KNOWN_NAMES)
        raise InputError(f"Expected at least one measure, got none. Known: {known}.")
    return measures


def score_run(
    run: Run, qrels: Qrels, *, measures: str | Iterable[str] = DEFAULT_MEASURES
) -> dict[str, FloatArray]:
    """
    Measure name → one fraction per question of `qrels`, in their order.

    A question without an answer or without a ranking in the run counts 0 (trec_eval's `-c`);
    questions that are in the run only are ignored.
    """
    wanted = parse_measures(measures)
    pytrec_eval = require_extra("pytrec_eval", purpose="Measuring a ranking", extra="eval")
    gains: dict[str, dict[str, int]] = {}
    scores: dict[str, Mapping[str, float]] = {}
    scores_by_length: dict[int, Mapping[str, float]] = {}
    for row, (question, relevance) in enumerate(qrels.items()):
        ranked = run.rankings.get(question)
        gain = _gains_by_rank(ranked, relevance) if ranked else {}
        if ranked and gain:
            count = len(ranked.ids)
            if count not in scores_by_length:
                scores_by_length[count] = _falling_scores(count)
            gains[str(row)] = gain
            scores[str(row)] = scores_by_length[count]
    evaluator = pytrec_eval.RelevanceEvaluator(gains, {measure.trec_name for measure in wanted})
    results: Mapping[str, Mapping[str, float]] = evaluator.evaluate(scores)
    values = {measure.name: np.zeros(len(qrels)) for measure in wanted}
    for row_text, result in results.items():
        for measure in wanted:
            values[measure.name][int(row_text)] = result[measure.trec_name]
    return values


def _falling_scores(count: int) -> Mapping[str, float]:
    """
    A ranking of `count` candidates for trec_eval, whose ids are their ranks from 0.

    trec_eval sorts by score as float32, and equal scores by id, descending. Strictly falling whole
    numbers leave no ties, and with ranks as ids, all lists of one length share one mapping.
    """
    return {str(rank): float(count - rank) for rank in range(count)}


def _gains_by_rank(ranked: RankedList, relevance: Mapping[str, int]) -> dict[str, int]:
    """Rank → relevance of the answers; answers that were not ranked get ranks past the end."""
    answers = {id_: gain for id_, gain in relevance.items() if gain > 0}
    gains = {str(rank): answers.pop(id_) for rank, id_ in enumerate(ranked.ids) if id_ in answers}
    count = len(ranked.ids)
    return gains | {str(count + extra): gain for extra, gain in enumerate(answers.values())}


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
