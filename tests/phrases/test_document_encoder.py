from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.errors import InputError, ModelError
from askline.phrases.phrase_encoder import PhraseEncoder
from askline.phrases.phrase_index import PhraseIndex
from askline.phrases.phrase_model import (
    PhraseModel,
    document_tensors,
    read_phrase_folder,
    write_phrase_folder,
)

from .models import make_config, make_folder, make_tensors

TEXT = "Jane Austen wrote Emma. Dune is a novel of Frank Herbert, born in 1920."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "documents", document_layers=1, document_inner=24)


@pytest.mark.parametrize("form", ["markers", "span"])
def test_equal_layers_encode_as_one_encoder_does(tmp_path: Path, tokenizer: Any, form: Any) -> None:
    one = make_config(tokenizer, form=form)
    tensors = make_tensors(one)
    both = make_config(tokenizer, form=form, document_layers=2, document_inner=32)
    layers = {f"documents.{k}": v for k, v in tensors.items() if k.startswith("layers.")}
    models: list[PhraseModel] = []
    for config, more in ((one, {}), (both, layers)):
        path = tmp_path / str(len(models))
        text = tokenizer.to_str()
        write_phrase_folder(
            path, config=config, tensors={**tensors, **more}, tokenizer=text, card="# x\n"
        )
        models.append(PhraseModel.load(path))
    first, second = (model.encode(TEXT) for model in models)
    assert first.phrases == second.phrases
    assert np.array_equal(first.dense, second.dense)
    assert np.array_equal(first.weights, second.weights)
    assert first.model != second.model


def test_questions_do_not_go_through_the_layers_of_documents(
    folder: Path, model: PhraseModel
) -> None:
    other = PhraseModel.load(folder)
    question = "who wrote emma ?"
    assert other.config.document_encoder.layers == 1
    assert np.array_equal(
        other.encode_question(question).dense, model.encode_question(question).dense
    )
    assert not np.array_equal(other.encode(TEXT).dense[:5], model.encode(TEXT).dense[:5])


def test_an_index_refuses_vectors_of_the_model_without_document_encoder(
    tmp_path: Path, folder: Path, model: PhraseModel
) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    index.add([("a", TEXT, model.encode(TEXT))])
    with pytest.raises(InputError, match="model"):
        index.add([("b", TEXT, PhraseModel.load(folder).encode(TEXT))])


def test_a_folder_without_the_layers_of_its_documents_is_refused(
    tmp_path: Path, tokenizer: Any
) -> None:
    config = make_config(tokenizer, document_layers=1, document_inner=24)
    tensors = make_tensors(config)
    del tensors["documents.layers.0.inner.bias"]
    text = tokenizer.to_str()
    write_phrase_folder(tmp_path, config=config, tensors=tensors, tokenizer=text, card="# x\n")
    with pytest.raises(ModelError, match=r"documents\.layers\.0\.inner\.bias"):
        read_phrase_folder(tmp_path)


@pytest.mark.parametrize(
    "sizes",
    [
        {"document_layers": 0},
        {"document_inner": -1},
        {"document_block": 8, "form": "markers"},
        {"document_block": 8, "form": "span", "document_layers": 0, "document_inner": 0},
    ],
)
def test_sizes_of_documents_must_fit(folder: Path, sizes: dict[str, Any]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **sizes}), "utf-8")
    with pytest.raises(ModelError, match="valid sizes"):
        PhraseModel.load(folder)


@pytest.mark.parametrize(("tokens", "most"), [(5, 8), (8, 8), (20, 8), (21, 8), (127, 50)])
def test_layers_with_an_even_number_attend_within_blocks(
    tokenizer: Any, tokens: int, most: int
) -> None:
    """127 tokens in blocks of 43 need 129 positions, and the encoder has 128."""
    config = make_config(tokenizer, form="span", document_layers=1, document_inner=24)
    config = replace(config, document_block=most)
    encoder = PhraseEncoder(config.document_encoder, document_tensors(make_tensors(config)))
    text = np.random.default_rng(0).integers(4, 12, (2, tokens)).astype(np.int32)
    changed = text.copy()
    changed[:, -1] += 1
    states, others = encoder.encode_batch(text), encoder.encode_batch(changed)
    block = -(-tokens // -(-tokens // most))
    first = (tokens - 1) // block * block
    assert states.shape == (2, tokens, config.encoder.width)
    assert np.array_equal(states[:, :first], others[:, :first])
    assert not np.isclose(states[:, first:], others[:, first:]).all(2).any()
    assert np.array_equal(states[1:], encoder.encode_batch(text[1:]))
