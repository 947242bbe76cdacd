from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

import torch

from askline.models.encoder_config import EncoderConfig
from askline.phrases import PhraseModel
from askline.phrases.phrase_encoder import PhraseEncoder
from askline.phrases.phrase_model import write_phrase_folder
from askline.training.loop import TrainingRecipe
from research.recipes import phrase_documents
from research.recipes.phrase_documents import (
    Distillation,
    DistillationExamples,
    DocumentNetwork,
    WindowSampler,
)

from ...phrases.models import make_config, make_tensors, make_tokenizer

TEXT = "Jane Austen wrote Emma. Emma is a novel of 1815. " * 6


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    tokenizer = make_tokenizer()
    shape = EncoderConfig(3, 32, 2, 64, tokenizer.get_vocab_size(), 128)
    config = replace(make_config(tokenizer, form="span"), encoder=shape)
    return write_phrase_folder(
        tmp_path / "phrases",
        config=config,
        tensors=make_tensors(config),
        tokenizer=tokenizer.to_str(),
        card="# tiny\n",
    )


@pytest.fixture
def root(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder with one long paragraph to train on; the article Dune is held out."""
    path = data_folder / "squadshifts/new_wiki_v1.0.json"
    entries: dict[str, Any] = json.loads(path.read_text("utf-8"))
    entries["data"][0]["paragraphs"][0]["context"] = TEXT
    path.write_text(json.dumps(entries), "utf-8")
    monkeypatch.setenv("ASKLINE_DATA", str(data_folder))
    return data_folder


@pytest.mark.slow
def test_a_document_encoder_is_prepared_trained_and_exported(
    tmp_path: Path, root: Path, model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> None:
        phrase_documents.main(["--model", str(model_folder), *arguments])

    (tmp_path / "more.txt").write_text("Paris is the capital of France. " * 30, "utf-8")
    (tmp_path / "card.md").write_text("# card\n", "utf-8")
    files = {name: str(tmp_path / name) for name in ("examples", "layers", "made", "card.md")}
    run("prepare", str(tmp_path / "more.txt"), "--out", files["examples"])
    training = ["--layers", "0,2", "--inner", "32", "--steps", "3", "--tokens", "256"]
    training += ["--block", "32"]
    run("train", files["examples"], *training, "--out", files["layers"])
    assert "candidates" in capsys.readouterr().out
    own = ["--block", "32", "--card", files["card.md"]]
    run("export", files["layers"], *own, "--out", files["made"])
    made, teacher = PhraseModel.load(files["made"]), PhraseModel.load(model_folder)
    assert made.config.document_encoder == replace(
        teacher.config.encoder, layers=2, inner=32, block=32
    )
    again = [*training, "--start", files["made"], "--start-layers", "1,0"]
    run("train", files["examples"], *again, "--out", files["layers"])
    assert "candidates" in capsys.readouterr().out
    tensors = phrase_documents.read_tensors(Path(files["made"]))[1]
    started = phrase_documents.started_tensors(Path(files["made"]), [1, 0])
    for at in (0, 1):
        wanted = tensors[f"documents.layers.{at}.query.weight"]
        assert np.array_equal(started[f"layers.{1 - at}.query.weight"], wanted)
    first, second = (model.encode_question("who wrote emma ?") for model in (made, teacher))
    assert first.dense == pytest.approx(second.dense, abs=0.05)  # the heads are int8 in one
    assert len(made.encode(TEXT)) > 0


def test_the_losses_of_the_teacher_itself_are_zero(root: Path, model_folder: Path) -> None:
    config, tensors = phrase_documents.read_tensors(model_folder)
    documents = phrase_documents.training_documents([])
    tokenizer = make_tokenizer()
    examples = DistillationExamples.of(documents, tokenizer)
    sampler = WindowSampler(examples, 512, longest=128)
    batch = sampler.batch(np.random.default_rng(0))
    teacher = DocumentNetwork(config, tensors)
    student = DocumentNetwork(config, tensors, teacher)
    recipe = TrainingRecipe()
    with torch.no_grad():
        losses = Distillation(student, teacher, range(3), sampler, recipe).losses(batch)
    assert losses.keys() == phrase_documents.LOSSES.keys()
    assert [float(one) for one in losses.values()] == pytest.approx([0.0] * len(losses), abs=1e-4)
    smaller = phrase_documents.student_tensors(tensors, [np.ones(64, np.float32)] * 3, [2], 32)
    assert smaller["layers.0.outer.weight"].shape == (32, 32)
    assert torch.isfinite(batch.tokens).all()


@pytest.mark.parametrize("block", [0, 2])
def test_the_network_gives_the_states_of_the_engine(model_folder: Path, block: int) -> None:
    config, tensors = phrase_documents.read_tensors(model_folder)
    config = replace(config, encoder=replace(config.encoder, block=block))
    tokens = np.array([[2, 9, 6, 7, 3, 3]])
    encoder = DocumentNetwork(config, tensors).encoder.eval()
    with torch.no_grad():
        found = encoder(input_ids=torch.from_numpy(tokens)).last_hidden_state.numpy()
    wanted = PhraseEncoder(config.encoder, tensors).encode_batch(tokens)
    assert found == pytest.approx(wanted, abs=1e-4)


def test_padding_does_not_change_attention_within_blocks(model_folder: Path) -> None:
    config, tensors = phrase_documents.read_tensors(model_folder)
    config = replace(config, encoder=replace(config.encoder, block=2))
    encoder = DocumentNetwork(config, tensors).encoder.eval()
    tokens = torch.tensor([[2, 9, 6, 7, 0, 0, 0, 0], [2, 9, 6, 7, 5, 5, 5, 3]])
    with torch.no_grad():
        padded = encoder(input_ids=tokens, attention_mask=(tokens > 0).long()).last_hidden_state
        alone = encoder(input_ids=tokens[:1, :4]).last_hidden_state
    assert torch.isfinite(padded).all()
    assert padded[0, :4].numpy() == pytest.approx(alone[0].numpy(), abs=1e-5)


def test_windows_hold_whole_words_of_documents(root: Path) -> None:
    documents = list(phrase_documents.training_documents([]))
    examples = DistillationExamples.of(documents, make_tokenizer())
    sampler = WindowSampler(examples, 1024, longest=128)
    batch = sampler.batch(np.random.default_rng(1))
    assert (batch.tokens[:, 0] == int(examples.special[0])).all()
    assert not batch.opens[~batch.mask].any()
    assert batch.asked.any(1).all()
    assert len(batch.questions) == len(batch.home) + phrase_documents.OTHERS
