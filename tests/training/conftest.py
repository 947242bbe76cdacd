from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from askline.models.word_vectors import WordVectors
from askline.types import Candidate, Question, QuestionSet

# Every test of this package needs torch: `pip install 'askline[train]'`.
collect_ignore_glob = [] if find_spec("torch") else ["*"]

WORDS = tuple(f"w{number}" for number in range(60))


def overlapping_questions(name: str, *, count: int, seed: int) -> QuestionSet:
    """Questions whose answer is the one candidate with three words of theirs, in any place."""
    random = np.random.default_rng(seed)
    return QuestionSet(name, tuple(_question(str(row), random) for row in range(count)))


def _question(name: str, random: np.random.Generator) -> Question:
    asked = random.choice(WORDS, 5, replace=False)
    answer = int(random.integers(5))
    texts = [random.choice(WORDS, random.integers(1, 9)) for _ in range(5)]
    texts[answer] = np.concatenate([asked[:3], random.choice(WORDS, 3)])
    candidates = [
        Candidate(f"{name}-{place}", " ".join(text), place == answer)
        for place, text in enumerate(texts)
    ]
    return Question(name, " ".join(asked), tuple(candidates))


@pytest.fixture(scope="session")
def vectors() -> WordVectors:
    random = np.random.default_rng(1)
    rows = random.standard_normal((len(WORDS), 16)).astype(np.float32)
    return WordVectors.from_rows(WORDS, rows, name="tiny")


@pytest.fixture(scope="session")
def train_questions() -> QuestionSet:
    return overlapping_questions("tiny:train", count=60, seed=2)


@pytest.fixture(scope="session")
def dev_questions() -> QuestionSet:
    return overlapping_questions("tiny:dev", count=20, seed=3)
