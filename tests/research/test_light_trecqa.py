"""A packed set of `research.benchmarks.light_trecqa` is the encoded set."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from askline.models.light_config import CompareAggregateConfig
from askline.models.word_vectors import WordVectors
from askline.training.light.encoded_questions import encode_questions
from askline.types import Candidate, Question, QuestionSet
from research.benchmarks.light_trecqa import packed, unpacked

TEXTS = ("It is in the north.", "Nobody knows.", "It was built in 1698, of oak.")


def test_an_unpacked_set_gives_the_same_batches() -> None:
    config = CompareAggregateConfig(dimensions=128)
    candidates = tuple(Candidate(str(at), text, at == 1) for at, text in enumerate(TEXTS))
    questions = (
        Question("a", "Where is it?", candidates[:2]),
        Question("b", "When was it built?", candidates),
    )
    encoded = encode_questions(QuestionSet("two", questions), WordVectors.load(), config)
    found = unpacked(packed(encoded), "cpu")
    assert found.sizes.tolist() == encoded.sizes.tolist()
    own, other = (each.batch([1, 0]) for each in (found, encoded))
    assert own.labels.equal(other.labels)
    assert own.candidates.words.equal(other.candidates.words)
    assert own.question_channels.shape == other.question_channels.shape
    np.testing.assert_allclose(own.candidates.vectors, other.candidates.vectors, atol=1e-5)
