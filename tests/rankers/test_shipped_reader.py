"""The reader that ships: it reads, and the cascade is what it was before there was one."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.models.folder import ModelFolder
from askline.rankers.cascade import Cascade, shipped_folder

# Of encoder and classifiers, as they were measured: every published ranking rests on these bytes.
MEASURED = "83fe449395cf0bd96b2532392153ebc24643aac91316e2310098e7c9f57b453e"

_OWN = ("adapter.", "reader.", "context.")
QUESTION = "Who wrote Emma?"
TEXTS = [
    "Emma is a novel that Jane Austen wrote in Chawton.",
    "The bridge was closed for repairs in the spring of 1998.",
]


@pytest.fixture(scope="module")
def shipped() -> ModelFolder:
    return ModelFolder.open(shipped_folder(), kind="cascade")


def test_encoder_and_classifiers_are_those_that_were_measured(shipped: ModelFolder) -> None:
    digest = hashlib.sha256()
    for name, value in sorted(shipped.stored_tensors().items()):
        if not name.startswith(_OWN):
            digest.update(name.encode() + value.tobytes())
    assert digest.hexdigest() == MEASURED


def test_the_folder_is_at_most_forty_five_megabytes(shipped: ModelFolder) -> None:
    assert sum(file.stat().st_size for file in shipped.path.iterdir()) <= 45_000_000


@pytest.mark.slow
def test_the_adapter_changes_no_score(shipped: ModelFolder) -> None:
    adapted = load_encoder(shipped, threads=1)
    layout = replace(adapted.config, reader=False, adapter=None, context=None)
    tensors = {name: one for name, one in adapted.tensors.items() if not name.startswith(_OWN)}
    scores = []
    for encoder in (adapted, OnnxEncoder(layout, tensors, adapted.tokenizer, adapted.workers)):
        run, rows = encoder.begin(QUESTION, TEXTS), np.arange(len(TEXTS))
        scores.append([run.advance(rows, depth).tobytes() for depth in encoder.depths])
    assert scores[0] == scores[1]


@pytest.mark.slow
def test_it_points_at_the_answer_and_at_nothing_where_there_is_none() -> None:
    first, second = Cascade.load().read(QUESTION, TEXTS)
    assert first is not None
    assert TEXTS[0][first.start : first.end] == "Jane Austen"
    assert second is None
