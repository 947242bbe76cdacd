"""A reader fitted to a folder: what torch reads is what the engine reads, and all else stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.engine.adapter import float_tensors
from askline.engine.encoder import load_encoder
from askline.engine.sequences import best_span
from askline.engine.tokenizer import WordPiece
from askline.errors import InputError
from askline.models.cascade_config import Adapter, CascadeConfig
from askline.models.folder import ModelFolder
from askline.training.cascade.adapter_networks import AdapterReader
from askline.training.cascade.reader_training import (
    ReaderPlan,
    ReaderRecipe,
    WordPieceTokenizer,
    answer_examples,
    average_readers,
    build_reader,
    train_reader,
    transfer_reader,
    word_piece_template,
    write_reader,
)
from askline.training.loop import TrainingProgress
from askline.training.packing import TokenTable, pack

from ...engine.tiny_cascades import CANDIDATES, QUESTION, runtime_folder, tensors
from ...engine.tiny_cascades import tiny_config as tiny
from .reader_folders import PAIRS, folder

__all__ = ["folder"]

ADAPTER = Adapter(1, 4)
TEXTS = [text for text in CANDIDATES if text]


def _reader(folder: ModelFolder, adapter: Adapter = ADAPTER) -> AdapterReader:
    torch.manual_seed(0)
    config = CascadeConfig.from_config(folder.config, path=folder.path)
    made = AdapterReader(
        replace(config, adapter=adapter), float_tensors(folder.stored_tensors())
    ).eval()
    with torch.no_grad():
        for value in made.own.values():  # away from where it starts
            value.add_(0.1 * torch.randn_like(value))
    return made


def _tokenizer(folder: ModelFolder) -> WordPiece:
    return WordPiece.load(folder.path / "tokenizer.json")


def _no_answers(reader: AdapterReader, tokenizer: WordPiece) -> list[float]:
    """By torch, of each text."""
    table = TokenTable.of([QUESTION, *TEXTS], WordPieceTokenizer(tokenizer))
    rows = np.arange(1, len(TEXTS) + 1)
    batch = pack(table, np.zeros_like(rows), rows, word_piece_template(tokenizer), limit=128)
    with torch.no_grad():
        ends = reader(batch).numpy()
    spans = [
        best_span(ends[low:high], int(begin))
        for low, high, begin in zip(batch.starts, batch.starts[1:], batch.second, strict=False)
    ]
    return [span.no_answer for span in spans if span]


@pytest.mark.parametrize("first", [0, 2])
def test_engine_and_torch_give_the_same_spans(
    folder: ModelFolder, tmp_path: Path, first: int
) -> None:
    adapter = Adapter(first, 4)
    reader = _reader(folder, adapter)
    path = write_reader(
        folder, reader.tensors(), adapter, tmp_path / "to", pairs=PAIRS, card="# tiny\n"
    )
    encoder = load_encoder(ModelFolder.open(path, kind="cascade"))
    spans = encoder.begin(QUESTION, TEXTS).read(np.arange(len(TEXTS)))
    found = [span.no_answer for span in spans if span]
    near = 1e-3 if folder.config["precision"] == "float32" else 0.5
    assert np.abs(np.subtract(found, _no_answers(reader, encoder.tokenizer))).max() < near


def test_other_tensors_are_written_unchanged(folder: ModelFolder, tmp_path: Path) -> None:
    own = _reader(folder).tensors()
    path = write_reader(folder, own, ADAPTER, tmp_path / "to", pairs=PAIRS, card="# tiny\n")
    made = ModelFolder.open(path, kind="cascade")
    before, after = folder.stored_tensors(), made.stored_tensors()
    for name in before.keys() - own.keys():
        assert before[name].dtype == after[name].dtype
        assert before[name].tobytes() == after[name].tobytes()
    assert {name.partition(".")[0] for name in after.keys() - before.keys()} == {"adapter"}
    assert made.config == {**folder.config, "adapter": {"first": 1, "rank": 4}}


def test_a_second_reader_replaces_the_first(folder: ModelFolder, tmp_path: Path) -> None:
    own = _reader(folder).tensors()
    one = write_reader(folder, own, ADAPTER, tmp_path / "one", pairs=PAIRS, card="")
    opened = ModelFolder.open(one, kind="cascade")
    other, thin = _reader(folder, Adapter(2, 2)).tensors(), Adapter(2, 2)
    two = write_reader(opened, other, thin, tmp_path / "two", pairs=PAIRS, card="")
    straight = write_reader(folder, other, thin, tmp_path / "straight", pairs=PAIRS, card="")
    assert (two / "weights.safetensors").read_bytes() == (
        straight / "weights.safetensors"
    ).read_bytes()


def test_a_new_reader_starts_from_the_encoder(folder: ModelFolder) -> None:
    config = CascadeConfig.from_config(folder.config, path=folder.path)
    start = float_tensors(folder.stored_tensors())
    tokenizer = _tokenizer(folder)
    fresh = AdapterReader(replace(config, adapter=Adapter(0, 2)), start).eval()
    encoder = load_encoder(folder)
    spans = encoder.begin(QUESTION, TEXTS).read(np.arange(len(TEXTS)))
    near = 1e-3 if config.precision == "float32" else 0.5
    wanted = [span.no_answer for span in spans if span]
    assert np.abs(np.subtract(_no_answers(fresh, tokenizer), wanted)).max() < near


@pytest.mark.slow
def test_only_the_reader_is_trained(folder: ModelFolder, squad_file: Path) -> None:
    reader, tokenizer = _reader(folder), _tokenizer(folder)
    paragraphs = _paragraphs(squad_file)
    examples = answer_examples(paragraphs, tokenizer, positions=128)
    assert len(examples) == 4
    frozen = {name: value.clone() for name, value in reader.frozen.items()}
    before = reader.tensors()
    losses: list[float] = []
    recipe = ReaderRecipe(epochs=30, learning_rate=1e-2, small_rate=1e-3, batch_size=2, wrong=0.0)
    template = word_piece_template(tokenizer)
    train_reader(
        reader,
        examples,
        template,
        recipe,
        on_step=lambda step: losses.append(float(step.loss)),
    )
    assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5])
    assert all(torch.equal(value, frozen[name]) for name, value in reader.frozen.items())
    assert all((before[name] != value).any() for name, value in reader.tensors().items())


def _losses_into(losses: list[float]) -> TrainingProgress:
    return TrainingProgress(on_step=lambda _, step: losses.append(float(step.loss)))


def _paragraphs(path: Path) -> Any:
    from askline.data.squad import read_paragraphs

    return read_paragraphs(path).paragraphs


def test_training_does_not_change_the_initial_tensors(
    folder: ModelFolder, squad_file: Path
) -> None:
    start, tokenizer = float_tensors(folder.stored_tensors()), _tokenizer(folder)
    before = {name: value.copy() for name, value in start.items()}
    config = CascadeConfig.from_config(folder.config, path=folder.path)
    reader = AdapterReader(replace(config, adapter=ADAPTER), start)
    examples = answer_examples(_paragraphs(squad_file), tokenizer, positions=128)
    train_reader(
        reader, examples, word_piece_template(tokenizer), ReaderRecipe(epochs=1, batch_size=2)
    )
    assert all((start[name] == value).all() for name, value in before.items())


def test_the_mean_of_readers_has_the_given_rank(folder: ModelFolder) -> None:
    one = _reader(folder).tensors()
    again = average_readers([one, one], rank=4)
    name = "adapter.layers.1.inner.{}.weight"
    products = [each[name.format("up")].T @ each[name.format("down")] for each in (one, again)]
    assert np.abs(np.subtract(*products)).max() < 1e-5
    assert np.allclose(again["reader.weight"], one["reader.weight"])
    assert average_readers([one, again], rank=2)[name.format("down")].shape == (2, 32)
    with pytest.raises(InputError, match="at least one reader"):
        average_readers([], 2)


def test_a_reader_is_built_from_a_folder_and_a_file(
    folder: ModelFolder, squad_file: Path, tmp_path: Path
) -> None:
    how = ReaderPlan(ADAPTER, ReaderRecipe(epochs=2, batch_size=2), seeds=(0, 1))
    steps: list[tuple[str, int]] = []
    path = build_reader(
        folder.path, how, [f"squad1:{squad_file}"], tmp_path / "made",
        command="askline train reader",
        progress=TrainingProgress(on_step=lambda seed, step: steps.append((seed, step.done))),
    )  # fmt: skip
    assert steps == [(f"seed {seed}", done) for seed in (0, 1) for done in (1, 2, 3, 4)]
    spans = load_encoder(ModelFolder.open(path, kind="cascade")).begin(QUESTION, TEXTS)
    assert None not in spans.read(np.arange(len(TEXTS)))
    card = (path / "README.md").read_text(encoding="utf-8")
    assert "An adapter of rank 4 on all layers from 2 on" in card
    assert "CC BY-SA 4.0" in card


@pytest.mark.slow
def test_a_reader_learns_from_a_teacher(
    folder: ModelFolder, squad_file: Path, tmp_path: Path
) -> None:
    own = _reader(folder).tensors()
    teacher = write_reader(folder, own, ADAPTER, tmp_path / "one", pairs=PAIRS, card="")
    losses: list[float] = []
    how = ReaderPlan(
        ADAPTER,
        ReaderRecipe(epochs=40, learning_rate=1e-2, batch_size=4, distillation=1.0, wrong=0.0),
    )
    build_reader(
        folder.path, how, [f"squad1:{squad_file}"], tmp_path / "two",
        teachers=[teacher], progress=_losses_into(losses),
    )  # fmt: skip
    assert np.mean(losses[-5:]) < losses[0] - 0.1  # what is left is the doubt of the teacher


def test_a_reader_is_transferred_to_another_encoder(
    folder: ModelFolder, squad_file: Path, tmp_path: Path
) -> None:
    own = _reader(folder).tensors()
    before = write_reader(folder, own, ADAPTER, tmp_path / "one", pairs=PAIRS, card="")
    theirs = float_tensors(ModelFolder.open(before, kind="cascade").stored_tensors())
    here = float_tensors(folder.stored_tensors())
    moved = {
        name: one + 0.01 if name.startswith("layers.") and one.ndim == 2 else one
        for name, one in here.items()
    }  # by one and the same number, which is a matrix of rank 1
    wide = Adapter(1, 5)
    found = transfer_reader(theirs, moved, wide)
    config = CascadeConfig.from_config(folder.config, path=folder.path)
    there = AdapterReader(replace(config, adapter=ADAPTER), theirs).eval()
    carried = AdapterReader(replace(config, adapter=wide), moved | found).eval()
    for layer in (1, 2):
        for name in ("query", "outer"):
            stem = f"layers.{layer}.{name}"
            wanted, got = (one._dense(stem) for one in (there, carried))
            assert torch.allclose(got.weight, wanted.weight, atol=1e-4)
            assert torch.equal(got.bias, wanted.bias)
    assert not [name for name in found if name.startswith("adapter.layers.0.")]
    losses: list[float] = []
    how = ReaderPlan(
        wide, ReaderRecipe(epochs=1, learning_rate=1e-9, small_rate=1e-9, batch_size=4)
    )
    for begin in (before, None):
        build_reader(
            folder.path, how, [f"squad1:{squad_file}"], tmp_path / "two",
            init=begin, progress=_losses_into(losses),
        )  # fmt: skip
    assert losses[0] != pytest.approx(losses[1], abs=1e-3)
    with pytest.raises(InputError, match="of the same shape"):
        build_reader(
            folder.path, how, [f"squad1:{squad_file}"], tmp_path / "three",
            init=runtime_folder(tmp_path / "other", other := tiny(reader=False), tensors(other)),
        )  # fmt: skip


def test_a_time_limit_ends_the_training(folder: ModelFolder, squad_file: Path) -> None:
    examples = answer_examples(_paragraphs(squad_file), _tokenizer(folder), positions=128)
    steps: list[int] = []
    recipe = ReaderRecipe(epochs=10_000, batch_size=1, max_seconds=0.3)
    template = word_piece_template(_tokenizer(folder))
    train_reader(
        _reader(folder), examples, template, recipe, on_step=lambda step: steps.append(step.done)
    )
    assert 0 < len(steps) < 40_000


def test_a_config_without_an_adapter_is_refused(folder: ModelFolder) -> None:
    config = CascadeConfig.from_config(folder.config, path=folder.path)
    with pytest.raises(InputError, match="Expected a config of a reader with an adapter"):
        AdapterReader(config, float_tensors(folder.stored_tensors()))
    with pytest.raises(InputError, match="rate must be positive"):
        ReaderRecipe(learning_rate=0)
