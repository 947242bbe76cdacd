"""Spare words and far positions are left out, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from askline.engine.quantization import pack_int4, unpack_int4
from askline.training.phrases.phrase_export import freeze_words, prune_positions, prune_words
from askline.training.phrases.phrase_networks import PhraseNetwork
from askline.training.transformer.pair_network import read_encoder

WORDS = "embeddings.word_embeddings.weight"
VOCABULARY = ["[PAD]", "[unused0]", "[unused12]", "[UNK]", "[CLS]", "[SEP]", "[", "unused0", "cat"]


def tokenizer() -> str:
    numbers = {word: at for at, word in enumerate(VOCABULARY)}
    special = {mark: {"id": mark, "ids": [numbers[mark]]} for mark in ("[CLS]", "[SEP]")}
    entries = {
        "added_tokens": [{"id": numbers["[UNK]"], "content": "[UNK]"}],
        "post_processor": {"special_tokens": special},
        "model": {"type": "WordPiece", "vocab": numbers},
    }
    return json.dumps(entries)


def test_spare_words_go_and_each_other_keeps_its_vector() -> None:
    table = np.arange(len(VOCABULARY), dtype=np.float32)[:, None]
    state, said = prune_words({WORDS: table, "other": table}, tokenizer())
    entries = json.loads(said)
    found = entries["model"]["vocab"]
    assert list(found) == [word for word in VOCABULARY if not word.startswith("[unused")]
    assert sorted(found.values()) == list(range(7))
    assert {word: state[WORDS][at, 0] for word, at in found.items()} == {
        word: float(VOCABULARY.index(word)) for word in found
    }
    assert entries["added_tokens"][0]["id"] == found["[UNK]"]
    marks = entries["post_processor"]["special_tokens"]
    assert marks["[SEP]"]["ids"] == [found["[SEP]"]]
    assert state["other"] is table


def test_added_tokens_outside_the_vocabulary_go() -> None:
    entries = json.loads(tokenizer())
    entries["added_tokens"].append({"id": len(VOCABULARY), "content": "[SENTENCE]"})
    table = np.zeros((len(VOCABULARY) + 1, 1), np.float32)
    state, said = prune_words({WORDS: table}, json.dumps(entries))
    assert [mark["content"] for mark in json.loads(said)["added_tokens"]] == ["[UNK]"]
    assert len(state[WORDS]) == 7


def test_a_frame_of_another_kind_is_numbered_anew_too() -> None:
    entries = json.loads(tokenizer())
    entries["post_processor"] = {"type": "BertProcessing", "sep": ["[SEP]", 5], "cls": ["[CLS]", 4]}
    table = np.zeros((len(VOCABULARY), 1), np.float32)
    found = json.loads(prune_words({WORDS: table}, json.dumps(entries))[1])
    vocabulary = found["model"]["vocab"]
    assert found["post_processor"]["sep"] == ["[SEP]", vocabulary["[SEP]"]]
    assert found["post_processor"]["cls"] == ["[CLS]", vocabulary["[CLS]"]]


def test_positions_are_cut_at_the_window() -> None:
    name = "embeddings.position_embeddings.weight"
    state = prune_positions({name: np.ones((8, 2), np.float32)}, 5)
    assert state[name].shape == (5, 2)


def test_other_families_come_back_as_they_are() -> None:
    table = np.ones((2, 2), np.float32)
    said = json.dumps({"model": {"type": "Unigram", "vocab": [["[unused1]", -1.0], ["a", -2.0]]}})
    state, same = prune_words({WORDS: table}, said)
    assert state[WORDS] is table
    assert same == said


def test_held_words_fit_into_4_bits_and_stay(bert_folder: Path) -> None:
    network = PhraseNetwork(read_encoder(bert_folder, plain=False)[0], "span")
    table = network.encoder.get_input_embeddings().weight
    before = table.detach().clone()
    freeze_words(network)
    found = table.detach().numpy()
    assert not table.requires_grad
    assert np.array_equal(unpack_int4(*pack_int4(found)), found)
    assert 0 < float(torch.abs(table - before).max()) < float(before.abs().max()) / 7
