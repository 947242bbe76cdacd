from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.data.squad import Paragraph
from askline.errors import ModelError, UnknownNameError
from askline.phrases.phrase_model import minor_tokens
from askline.training.phrases.phrase_export import load_extractor, save_extractor
from askline.training.phrases.phrase_networks import Extractor, SpanHead, train_extractor
from askline.training.phrases.phrase_training import PhraseRecipe, answer_windows
from askline.training.phrases.phrase_workflow import candidate_recall
from askline.training.transformer.pair_network import read_encoder


def _material(paragraphs: list[Paragraph], tokenizer: Any) -> list[Any]:
    return answer_windows(paragraphs, tokenizer, size=128, overlap=80)


def test_material_has_the_answers_as_token_spans(
    paragraphs: list[Paragraph], tokenizer: Any
) -> None:
    material = _material(paragraphs, tokenizer)
    window, (asked, _) = material[0].window, material[0].questions
    ((first, last),) = asked.spans
    assert paragraphs[0].text[window.starts[first] : window.ends[last]] == "Jane Austen"
    spans, shares = material[0].spans()
    assert len(spans) == 2
    assert shares == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("ends", ["conditional", "classic"])
def test_an_extractor_learns_to_find_answers(
    bert_folder: Path, paragraphs: list[Paragraph], tokenizer: Any, ends: Any
) -> None:
    material = _material(paragraphs, tokenizer)
    torch.manual_seed(0)
    network = Extractor(read_encoder(bert_folder, plain=False)[0], ends)
    recipe = PhraseRecipe(epochs=12, learning_rate=2e-3, batch_size=4)
    history = train_extractor(network, material, recipe)
    assert history[-1].loss < history[0].loss / 2
    windows = [one.window for one in material]
    few = candidate_recall(material, network.extract(windows, limit=3), paragraphs)
    assert few.percent["EM"] >= 60
    assert few.percent["F1"] >= few.percent["EM"]


def test_probabilities_of_ends_sum_to_one(tokenizer: Any, paragraphs: list[Paragraph]) -> None:
    head = SpanHead(8)
    window = _material(paragraphs, tokenizer)[0].window
    states = torch.randn(1, len(window), 8)
    closes = torch.from_numpy(window.may_end)[None]
    starts = torch.arange(1, 5)
    ends = head.score_ends(states, closes, torch.zeros_like(starts), starts)
    assert ends.exp().sum(-1).tolist() == pytest.approx([1.0] * 4, abs=1e-5)


def test_an_end_depends_on_its_start_unless_classic(
    tokenizer: Any, paragraphs: list[Paragraph]
) -> None:
    window = _material(paragraphs, tokenizer)[0].window
    states = torch.randn(1, len(window), 8)
    closes = torch.from_numpy(window.may_end)[None]
    rows, starts = torch.zeros(2, dtype=torch.long), torch.tensor([1, 2])
    for ends in ("conditional", "classic"):
        torch.manual_seed(1)
        scores = SpanHead(8, ends).score_ends(states, closes, rows, starts)
        near, far = scores[0, 1:6] - scores[0, 1], scores[1, 0:5] - scores[1, 0]
        same = torch.allclose(near, far, atol=1e-4)
        assert same == (ends == "classic")


def test_an_extractor_survives_its_folder(
    tmp_path: Path, bert_folder: Path, paragraphs: list[Paragraph], tokenizer: Any
) -> None:
    network = Extractor(read_encoder(bert_folder, plain=False)[0])
    folder = save_extractor(network, tokenizer.to_str(), tmp_path / "extractor", card="# x\n")
    windows = [one.window for one in _material(paragraphs, tokenizer)]
    ours, theirs = network.extract(windows), load_extractor(folder).extract(windows)
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(one[0], other[0])
    with pytest.raises(ModelError, match=r"No spans.safetensors in"):
        load_extractor(bert_folder)
    with pytest.raises(UnknownNameError, match="No architecture of ends 'both'"):
        SpanHead(8, "both")  # type: ignore[arg-type]


def test_candidates_that_differ_by_minor_tokens_count_as_one(
    bert_folder: Path, paragraphs: list[Paragraph], tokenizer: Any
) -> None:
    torch.manual_seed(0)
    network = Extractor(read_encoder(bert_folder, plain=False)[0])
    window = _material(paragraphs, tokenizer)[0].window
    minor = minor_tokens(tokenizer, ("a",), tokenizer.get_vocab_size())
    assert minor is not None
    ((every, _),) = network.extract([window], limit=200)
    ((merged, _),) = network.extract([window], limit=200, minor=minor)
    assert 0 < len(merged) < len(every)
    places = [np.flatnonzero(~minor[window.tokens[a : b + 1]]) + a for a, b in merged]
    cores = [(place[0], place[-1]) for place in places if len(place)]
    assert len(set(cores)) == len(cores)
