from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.data.squad import Paragraph
from askline.phrases.phrase_model import (
    PhraseConfig,
    PhraseModel,
    read_phrase_folder,
    write_phrase_folder,
)
from askline.training.phrases.phrase_export import add_document_encoder, quantize_phrases

from ...phrases.models import make_config, make_tensors


def _cosines(one: Any, other: Any) -> Any:
    return (one * other).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)


def _model(folder: Path, config: PhraseConfig, tensors: Any, tokenizer: Any) -> PhraseModel:
    text = tokenizer.to_str()
    write_phrase_folder(folder, config=config, tensors=tensors, tokenizer=text, card="# x\n")
    return PhraseModel.load(folder, threads=1)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("form", ["markers", "span"])
def test_int8_vectors_are_near_the_float_ones(
    tmp_path: Path, tokenizer: Any, paragraphs: list[Paragraph], form: Any, bits: int
) -> None:
    config = make_config(tokenizer, form=form)
    config = replace(config, encoder=replace(config.encoder, width=32, inner=64))
    floats = make_tensors(config)
    texts = [one.text for one in paragraphs] + [one.questions[0].text for one in paragraphs]
    small = quantize_phrases(config, floats, tokenizer, texts, bits=bits)
    assert small["layers.1.inner.weight"].dtype == np.int8
    assert small["words.weight"].dtype == (np.int8 if bits == 8 else np.uint8)
    exact = _model(tmp_path / "float", config, floats, tokenizer)
    near = _model(tmp_path / "int8", config, small, tokenizer)
    assert exact.config.identity != near.config.identity
    for paragraph in paragraphs:
        asked = paragraph.questions[0].text
        both = exact.encode_question(asked).dense, near.encode_question(asked).dense
        assert _cosines(*both) > (0.98 if bits == 8 else 0.9)
        one, other = exact.encode(paragraph.text), near.encode(paragraph.text)
        places = {(phrase.start, phrase.end): at for at, phrase in enumerate(other.phrases)}
        pairs = [
            (at, places[phrase.start, phrase.end])
            for at, phrase in enumerate(one.phrases)
            if (phrase.start, phrase.end) in places
        ]
        assert len(pairs) > len(one) / 2
        first, second = np.array(pairs).T
        cosines = _cosines(one.dense[first, :-1], other.dense[second, :-1])
        assert np.median(cosines) > (0.98 if bits == 8 else 0.9)


def test_a_folder_is_read_as_it_was_written(tmp_path: Path, tokenizer: Any) -> None:
    config = make_config(tokenizer)
    floats = make_tensors(config)
    write_phrase_folder(
        tmp_path, config=config, tensors=floats, tokenizer=tokenizer.to_str(), card="# x\n"
    )
    again, encoder, heads = read_phrase_folder(tmp_path)
    assert again.encoder == config.encoder
    assert encoder.keys() | heads.keys() == floats.keys()
    assert all(np.array_equal(floats[name], value) for name, value in {**encoder, **heads}.items())


def test_a_document_encoder_is_added_in_int8(
    tmp_path: Path, tokenizer: Any, paragraphs: list[Paragraph]
) -> None:
    config = make_config(tokenizer, form="span")
    config = replace(config, encoder=replace(config.encoder, width=32, inner=64))
    tensors = make_tensors(config)
    single = _model(tmp_path / "single", config, tensors, tokenizer)
    texts = [one.text for one in paragraphs]
    layers = {name: value for name, value in tensors.items() if name.startswith("layers.1.")}
    layers = {name.replace("layers.1", "layers.0"): value for name, value in layers.items()}
    folders = [
        add_document_encoder(tmp_path / "single", layers, tmp_path / name, card="# x\n", texts=few)
        for name, few in (("float", []), ("int8", texts))
    ]
    exact, near = map(PhraseModel.load, folders)
    stored = read_phrase_folder(folders[1])[1]
    assert stored["documents.layers.0.inner.weight"].dtype == np.int8
    assert stored["layers.0.inner.weight"].dtype == np.float32
    assert len({model.config.identity for model in (single, exact, near)}) == 3
    asked = paragraphs[0].questions[0].text
    assert np.array_equal(exact.encode_question(asked).dense, single.encode_question(asked).dense)
    one, other = exact.encode(texts[0]), near.encode(texts[0])
    both = {phrase.text for phrase in one.phrases} & {phrase.text for phrase in other.phrases}
    assert len(both) > len(one) / 2
