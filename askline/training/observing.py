"""What the dense layers of an encoder read on real text, layer after layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..engine import graphs
from ..engine.encoder import open_session
from ..engine.pair_windows import Windows
from ..engine.tokenizer import WordPiece
from ..models.cascade_config import CascadeLayout
from ..types import QuestionSet

__all__ = ["observe", "some_pairs"]

FloatArray = NDArray[np.float32]
Pair = tuple[str, str]


def some_pairs(questions: QuestionSet, count: int, *, seed: int = 0) -> list[Pair]:
    """Questions, each with one of its candidates: the answer for every other one that has one."""
    random = np.random.default_rng(seed)
    kept = [question for question in questions if question.candidates]
    picked = random.permutation(len(kept))[:count]
    pairs = []
    for turn, number in enumerate(picked.tolist()):
        question = kept[number]
        answers = [one for one in question.candidates if one.is_answer]
        among = answers if answers and turn % 2 else question.candidates
        pairs.append((question.text, among[int(random.integers(len(among)))].text))
    return pairs


def observe(
    layout: CascadeLayout,
    tensors: Mapping[str, FloatArray],
    tokeniser: WordPiece,
    pairs: Sequence[Pair],
) -> Iterator[dict[str, FloatArray]]:
    """For each layer (tokens, channels) by what is read: input, context, middle, activated."""
    batches = _embedded(layout, tensors, tokeniser, pairs)
    for layer in range(layout.encoder.layers):
        session = open_session(graphs.observer(layout, tensors, layer))
        names = [one.name for one in session.get_outputs()]
        found = [
            dict(zip(names, session.run(None, {"states": one}), strict=True)) for one in batches
        ]
        read = {name: _flat(one[name] for one in found) for name in names if name != "risen"}
        yield {"input": _flat(batches), **read}
        batches = [one["risen"] for one in found]


def _embedded(
    layout: CascadeLayout,
    tensors: Mapping[str, FloatArray],
    tokeniser: WordPiece,
    pairs: Sequence[Pair],
) -> list[FloatArray]:
    session = open_session(graphs.embedder(layout, tensors, 0))
    positions = layout.encoder.positions
    batches = []
    for question, candidate in pairs:
        windows = Windows.of(tokeniser, question, [candidate], positions=positions)
        numbers, kinds = windows.batch(np.zeros(1, np.int64))
        batches.append(session.run(None, {"numbers": numbers, "kinds": kinds})[0])
    return batches


def _flat(batches: Iterator[FloatArray] | Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([one.reshape(-1, one.shape[-1]) for one in batches])
