"""The sets that transformers are measured on, and those they adapt to, read and tokenised once."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from askline import data
from askline.training.transformer.pair_network import PairNetwork, measure
from askline.training.transformer.pair_sets import PairSet, encode_pairs
from askline.types import QuestionSet

PADDED_TO = 400

# Name of the row → (set, its filter, padded or not, how many questions at most, drawn with seed 0).
DEV = {
    "WikiQA": ("wikiqa:dev", "answerable", False, None),
    "TrecQA": ("trecqa-clean:dev", "both", False, None),
    "SelQA": ("selqa:dev", "answerable", False, None),
    "SQuADShifts": ("squadshifts:dev", "both", False, 1200),
    "WikiQA 400": ("wikiqa:dev", "answerable", True, None),
    "TrecQA 400": ("trecqa-clean:dev", "both", True, None),
    "SelQA 400": ("selqa:dev", "answerable", True, 150),
    "SQuADShifts 400": ("squadshifts:dev", "both", True, 150),
}
TEST = {
    "WikiQA": ("wikiqa:test", "answerable", False, None),
    "WikiQA 400": ("wikiqa:test", "answerable", True, None),
    "TrecQA": ("trecqa-clean:test", "both", False, None),
    "TrecQA 400": ("trecqa-clean:test", "both", True, None),
    "SQuAD-sent": ("squad1:dev", "answerable", False, None),
    "SQuAD-sent 400": ("squad1:dev", "answerable", True, 500),
}
Spec = tuple[str, str, bool, int | None]
Figures = dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False)
class Measured:
    """A set with its tokens."""

    questions: QuestionSet
    pairs: PairSet

    def measure(self, network: PairNetwork) -> dict[str, float]:
        found = measure(network, self.questions, self.pairs)
        return {name: round(value, 2) for name, value in found.items()}


class Sets:
    """Loads what is asked for and keeps it; `few` is how many questions of each set to take."""

    def __init__(self, root: Path, tokeniser: Any, few: int | None) -> None:
        self.root, self.tokeniser, self.few = root, tokeniser, few
        self._loaded: dict[tuple[str, bool], QuestionSet] = {}
        self._measured: dict[Spec, Measured] = {}

    def measured(self, spec: Spec) -> Measured:
        if spec not in self._measured:
            name, which, padded, most = spec
            questions = data.filter_questions(self._load(name, padded), which)
            if most is not None:
                questions = sample(questions, most)
            self._measured[spec] = self._encoded(questions)
        return self._measured[spec]

    def training(self, name: str) -> Measured:
        """Every question that has candidates."""
        full = self._load(name, padded=False)
        kept = tuple(question for question in full if question.candidates)
        return self._encoded(replace(full, questions=kept))

    def all(self, specs: dict[str, Spec], network: PairNetwork) -> Figures:
        return {name: self.measured(spec).measure(network) for name, spec in specs.items()}

    def prepare(self, specs: Iterable[Spec]) -> Iterator[str]:
        """Read what will be measured, saying what came."""
        for spec in specs:
            found = self.measured(spec)
            yield f"{spec}: {len(found.questions)} questions, {len(found.pairs.tokens)} pairs"

    def _load(self, name: str, padded: bool) -> QuestionSet:
        if (name, padded) not in self._loaded:
            if padded:
                # TrecQA's own series too: the harder lists, by which all recipes were chosen.
                to = 10 if self.few else PADDED_TO
                found = data.pad(self._load(name, False), to=to, same_topic=True)
            else:
                found = data.load_dataset(name, root=self.root)
            if self.few and not padded:
                found = replace(found, questions=found.questions[: self.few])
            self._loaded[name, padded] = found
        return self._loaded[name, padded]

    def _encoded(self, questions: QuestionSet) -> Measured:
        return Measured(questions, encode_pairs(questions, self.tokeniser))


def sample(questions: QuestionSet, most: int) -> QuestionSet:
    """At most so many questions, drawn with seed 0."""
    drawn = list(questions)
    random.Random(0).shuffle(drawn)
    return replace(questions, questions=tuple(drawn[:most]))
