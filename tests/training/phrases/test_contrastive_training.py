from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.data.squad import Paragraph
from askline.phrases.phrase_model import PhraseForm, PhraseModel
from askline.training.phrases.contrastive_training import (
    PhraseExample,
    PhraseLoss,
    collate,
    make_example,
    phrase_loss,
    score_batch,
    train_phrases,
)
from askline.training.phrases.phrase_export import export_phrases
from askline.training.phrases.phrase_networks import Extractor, PhraseNetwork
from askline.training.phrases.phrase_training import PhraseRecipe, answer_windows
from askline.training.phrases.phrase_workflow import answer_within
from askline.training.transformer.pair_network import read_encoder


@pytest.fixture
def examples(bert_folder: Path, paragraphs: list[Paragraph], tokenizer: Any) -> list[PhraseExample]:
    torch.manual_seed(0)
    extractor = Extractor(read_encoder(bert_folder, plain=False)[0])
    material = answer_windows(paragraphs, tokenizer, size=128, overlap=80)
    found = extractor.extract([one.window for one in material], limit=12)
    return [
        make_example(one, candidates, paragraphs[one.paragraph].text, normalize=str.lower)
        for one, candidates in zip(material, found, strict=True)
    ]


def _network(folder: Path, form: PhraseForm, **options: Any) -> PhraseNetwork:
    torch.manual_seed(0)
    encoder = read_encoder(folder, plain=False)[0]
    return PhraseNetwork(encoder, form, size=16, **options).eval()


def test_every_question_has_a_right_candidate(examples: list[PhraseExample]) -> None:
    for example in examples:
        assert example.correct.any(1).all()
        assert not (example.correct & example.ambiguous).any()


@pytest.mark.parametrize("limit", [1, 2, 5], ids=str)
def test_no_answer_is_lost_to_a_limit(
    paragraphs: list[Paragraph], tokenizer: Any, examples: list[PhraseExample], limit: int
) -> None:
    (one,) = answer_windows(paragraphs[:1], tokenizer, size=128, overlap=80)
    every = (
        examples[0].spans,
        examples[0].log_probabilities,
    )  # answers among them, wherever they stand
    example = make_example(one, every, paragraphs[0].text, normalize=str.lower, limit=limit)
    assert example.correct.any(1).all()
    assert len(example.spans) == max(2, limit)
    rng = np.random.default_rng(0)
    batch = collate(examples, "cpu", rng=rng, questions=1, candidates=limit)
    assert batch.correct.any(1).all()
    assert len(batch.questions) == len(examples)


def test_the_answers_words_elsewhere_are_neither_right_nor_wrong(
    paragraphs: list[Paragraph], tokenizer: Any
) -> None:
    one = answer_windows([paragraphs[0]], tokenizer, size=128, overlap=80)[0]
    twice = [at for at in range(len(one.window)) if one.window.tokens[at] == one.window.tokens[4]]
    spans = np.array([[at, at] for at in twice], np.int32)
    asked = (replace(one.questions[0], spans=spans[:1]),)
    candidates = spans, np.zeros(len(spans), np.float32)
    example = make_example(
        replace(one, questions=asked), candidates, paragraphs[0].text, normalize=str.lower
    )
    assert example.correct.tolist() == [[True, False]]
    assert example.ambiguous.tolist() == [[False, True]]


@pytest.mark.parametrize("form", ["markers", "span"])
def test_encodings_do_not_depend_on_the_batch(
    bert_folder: Path, examples: list[PhraseExample], form: PhraseForm
) -> None:
    network = _network(bert_folder, form)
    whole = collate(examples, "cpu")
    with torch.no_grad():
        together = network.encode_phrases(whole.tokens, whole.mask, whole.spans)
        for place, example in enumerate(examples):
            one = collate([example], "cpu")
            alone = network.encode_phrases(one.tokens, one.mask, one.spans)
            ours = together.dense[place, : len(example.spans)]
            assert torch.allclose(ours, alone.dense[0], atol=1e-5)


def test_the_text_does_not_see_its_markers(
    bert_folder: Path, examples: list[PhraseExample]
) -> None:
    network = _network(bert_folder, "markers")
    batch = collate(examples[:1], "cpu")
    with torch.no_grad():
        codes = network.encode_phrases(batch.tokens, batch.mask, batch.spans)
        plain = network.encoder(batch.tokens, batch.mask.long()).last_hidden_state
    assert torch.allclose(codes.states, plain, atol=1e-5)


def test_another_family_of_encoders_works_too(roberta: Any, examples: list[PhraseExample]) -> None:
    network = PhraseNetwork(roberta, "markers", size=16).eval()
    batch = collate(examples[:2], "cpu")
    with torch.no_grad():
        codes = network.encode_phrases(batch.tokens, batch.mask, batch.spans)
        plain = roberta(batch.tokens[:1, :10]).last_hidden_state
        marked = network.encode_phrases(
            batch.tokens[:1, :10], torch.ones(1, 10, dtype=torch.bool), batch.spans[:1] * 0 + 3
        )
    assert torch.isfinite(codes.dense).all()
    assert torch.allclose(marked.states, plain, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "lexical"),
    [("markers", True), ("markers", False), ("span", True)],
    ids=["markers", "markers-dense", "span"],
)
def test_it_learns_which_phrase_answers(
    bert_folder: Path,
    examples: list[PhraseExample],
    paragraphs: list[Paragraph],
    tokenizer: Any,
    form: PhraseForm,
    lexical: bool,
) -> None:
    network = _network(bert_folder, form, lexical=lexical)
    recipe = PhraseRecipe(epochs=25, learning_rate=1e-3, batch_size=4)
    history = train_phrases(network, examples, recipe)
    assert history[-1].loss < history[0].loss / 2
    material = answer_windows(paragraphs, tokenizer, size=128, overlap=80)
    candidates = [(example.spans, example.log_probabilities) for example in examples]
    scores = answer_within(network, material, candidates, paragraphs, tokenizer)
    assert scores.percent["EM"] >= 60


def test_distillation_moves_the_scores_to_those_of_the_teacher(
    bert_folder: Path, examples: list[PhraseExample]
) -> None:
    network = _network(bert_folder, "markers")
    rng = np.random.default_rng(0)
    teacher_scores = [
        replace(one, teacher_scores=rng.normal(size=one.correct.shape).astype(np.float32))
        for one in examples
    ]
    batch, plain = collate(teacher_scores, "cpu"), collate(examples, "cpu")
    with torch.no_grad():
        alone = float(phrase_loss(network, plain, PhraseLoss(teacher_scores=0)))
        assert float(phrase_loss(network, plain, PhraseLoss())) == pytest.approx(alone)
        assert float(phrase_loss(network, batch, PhraseLoss())) > alone


@pytest.mark.parametrize("form", ["markers", "span"])
def test_the_runtime_scores_as_training_does(
    tmp_path: Path, bert_folder: Path, tokenizer: Any, paragraphs: list[Paragraph], form: PhraseForm
) -> None:
    network = _network(bert_folder, form)
    folder = export_phrases(network, tokenizer.to_str(), tmp_path / "m", card="# x\n", words=100)
    model = PhraseModel.load(folder)
    text, question = paragraphs[0].text, paragraphs[0].questions[0]
    coded, asked = model.encode(text, limit=10), model.encode_question(question.text)
    ours = coded.dense @ asked.dense + asked.lexical(coded.words, coded.weights)
    (one,) = answer_windows([paragraphs[0]], tokenizer, size=128, overlap=80)
    found = Extractor.sharing(network.encoder, network.spans)
    candidates = found.extract([one.window], limit=10)[0]
    batch = collate([make_example(one, candidates, text, normalize=str.lower, limit=10)], "cpu")
    batch = replace(batch, spans=torch.from_numpy(candidates[0])[None].long())
    batch = replace(
        batch, log_probabilities=torch.from_numpy(candidates[1])[None], filled=batch.filled[:, :10]
    )
    with torch.no_grad():
        phrases = network.encode_phrases(batch.tokens, batch.mask, batch.spans)
        questions = network.encode_questions(batch.questions, batch.asked)
        _, whole = score_batch(network, batch, phrases, questions)
    # int8 rounds the weights, so likelihoods of equal phrases may trade places.
    theirs = dict(zip(map(tuple, candidates[0].tolist()), whole[0, 0].tolist(), strict=True))
    window = one.window
    starts = {int(start): at for at, start in enumerate(window.starts) if window.may_start[at]}
    ends = {int(end): at for at, end in enumerate(window.ends) if window.may_end[at]}
    pairs = [
        (score, theirs.get((starts[phrase.start], ends[phrase.end])))
        for phrase, score in zip(coded.phrases, ours.tolist(), strict=True)
    ]
    shared = [(score, other) for score, other in pairs if other is not None]
    assert len(shared) >= 8
    assert [one for one, _ in shared] == pytest.approx([other for _, other in shared], abs=0.5)
