"""Random score tables: the deeper the classifier, the less noise."""

from __future__ import annotations

import numpy as np

from askline.tuning import ScoreTable

DEPTHS = (2, 4, 6)


def table(
    questions: int = 30,
    size: int = 12,
    *,
    seed: int = 0,
    first_stage: bool = False,
    name: str = "drawn",
) -> ScoreTable:
    random = np.random.default_rng(seed)
    pairs = questions * size
    answers = random.permuted(np.tile(np.arange(size) < 2, (questions, 1)), axis=1).ravel()
    added = (random.random(pairs) < 0.5) & ~answers
    worth = np.where(answers, 2.0, -1.0) + random.normal(0, 0.8, pairs)
    noise = [random.normal(0, 3 / depth, pairs) for depth in DEPTHS]
    return ScoreTable(
        name,
        size,
        "drawn",
        DEPTHS,
        tuple(f"q{number}" for number in range(questions)),
        np.full(questions, size),
        answers,
        added,
        random.integers(5, 40, pairs),
        np.stack([worth + own for own in noise]).astype(np.float32),
        (worth + random.normal(0, 1, pairs)).astype(np.float32) if first_stage else None,
        0.5 if first_stage else 0.0,
    )
