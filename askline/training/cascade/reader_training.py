"""
Training of a reader for a finished cascade, and the cascade's folder with the reader in it.

Examples are paragraphs in the tokens of the cascade's folder. What is trained is a low-rank adapter
on some of the layers, their biases and norms, and the reader's output layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ... import data
from ...data.datasets import data_license
from ...data.squad import Paragraph
from ...engine.adapter import float_tensors
from ...engine.quantization import refit_input_quantization
from ...engine.tokenizer import WordPiece
from ...errors import InputError
from ...models.cascade_config import Adapter, CascadeConfig, check_cascade_tensors, reader_tensors
from ...models.encoder_config import DENSE_INPUTS
from ...models.folder import ModelFolder, write_folder
from ..checkpoint import Epoch
from ..loop import (
    SeededOnceTask,
    TrainingProgress,
    TrainingRecipe,
    TrainingStep,
    check_positive,
    run_training,
)
from ..optimizer import AdamW, Optimizer, ParameterGroup, slanted_triangular
from ..packing import PairTemplate, pack
from ..post_training_quantization import Pair, activation_statistics, quantize_adapter
from .adapter_networks import AdapterReader
from .cascade_examples import span_examples
from .span_reading import SpanBatch, SpanExamples, span_distillation_loss, span_loss

__all__ = [
    "ReaderPlan",
    "ReaderRecipe",
    "WordPieceTokenizer",
    "answer_examples",
    "average_readers",
    "build_reader",
    "low_rank_factors",
    "train_reader",
    "transfer_reader",
    "word_piece_template",
    "write_reader",
]


@dataclass(frozen=True, slots=True)
class WordPieceTokenizer:
    """The engine's tokenizer with the interface of a Hugging Face tokenizer."""

    tokenizer: WordPiece

    def __call__(self, texts: Sequence[str], **_: object) -> dict[str, list[list[object]]]:
        """Token ids and character offsets of each text, without special tokens."""
        found = [self.tokenizer.tokens_with_offsets(text) for text in texts]
        return {
            "input_ids": [[number for number, _, _ in pieces] for pieces in found],
            "offset_mapping": [[(start, end) for _, start, end in pieces] for pieces in found],
        }


def word_piece_template(tokenizer: WordPiece) -> PairTemplate:
    """How the engine joins question and text."""
    first, between = (np.array([mark]) for mark in (tokenizer.cls_id, tokenizer.sep_id))
    return PairTemplate(first, between, between, (0, 0, 0, 1, 1), has_segments=True, padding=0)


def answer_examples(
    paragraphs: Sequence[Paragraph], tokenizer: WordPiece, *, positions: int
) -> SpanExamples:
    """One example per answer of an annotator, so that all answers count the same."""
    found = span_examples(list(_one_answer_each(paragraphs)), WordPieceTokenizer(tokenizer))
    return replace(found, limit=min(found.limit, positions))


def _one_answer_each(paragraphs: Sequence[Paragraph]) -> Iterator[Paragraph]:
    for paragraph in paragraphs:
        questions = [
            replace(question, answers=(answer,))
            for question in paragraph.questions
            for answer in question.answers
        ]
        yield replace(paragraph, questions=tuple(questions))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderRecipe(TrainingRecipe):
    """AdamW with a slanted triangular learning rate that falls to 0."""

    epochs: int = 3
    learning_rate: float = 1e-3
    """The peak for the low-rank matrices."""
    small_rate: float = 1e-4
    """The peak for biases, norms and the output layer."""
    batch_size: int = 32
    """Paragraphs per step."""
    wrong: float = 0.1
    """The share of questions that get a paragraph without their answer."""
    distillation: float = 0.5
    """The share of the teachers in the loss, if there are any; the rest is that of the labels."""
    rise: float = 0.06
    """The share of the steps in which the learning rate rises."""
    max_gradient_norm: float = 1.0

    def __post_init__(self) -> None:
        TrainingRecipe.__post_init__(self)
        check_positive(self, "small_rate", "rise")


class _Part(NamedTuple):
    """Some examples of a step."""

    examples: SpanBatch
    share: float
    """Of the step's loss."""


class _ReaderTask(SeededOnceTask[_Part]):
    """Paragraphs with the span that answers a question; the last incomplete batch is left out."""

    network: AdapterReader
    recipe: ReaderRecipe

    def __init__(
        self,
        network: AdapterReader,
        examples: SpanExamples,
        template: PairTemplate,
        recipe: ReaderRecipe,
        teachers: Sequence[AdapterReader],
    ) -> None:
        self.network, self.recipe = network, recipe
        self._examples, self._template, self._teachers = examples, template, teachers
        self._device = next(network.parameters()).device

    @property
    def steps_per_epoch(self) -> int:
        return max(1, len(self._examples) // self.recipe.batch_size)

    def new_optimizer(self) -> Optimizer:
        groups = [
            ParameterGroup(self.network.low_rank_parameters(), self.recipe.learning_rate),
            ParameterGroup(self.network.other_parameters(), self.recipe.small_rate),
        ]
        limit = self.recipe.max_gradient_norm
        return AdamW(self.network, groups, max_gradient_norm=limit, epsilon=1e-6)

    def schedule(self, progress: float) -> float:
        return slanted_triangular(progress, rise=self.recipe.rise, lowest=0.0)

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[_Part]:  # noqa: ARG002
        order, size = random.permutation(len(self._examples)), self.recipe.batch_size
        for step in range(self.steps_per_epoch):
            rows = order[step * size : (step + 1) * size]
            yield _Part(self._examples.draw(rows, random, wrong=self.recipe.wrong), 1.0)

    def count_tokens(self, batch: _Part) -> int:
        return int(batch.examples.window.length.sum())

    def split(self, batch: _Part, max_tokens: float) -> list[_Part]:
        size = len(batch.examples.questions)
        count = min(size, max(1, math.ceil(self.count_tokens(batch) / max_tokens)))
        if count == 1:
            return [batch]
        ends = np.linspace(0, size, count + 1).astype(int)
        return [
            _Part(batch.examples.part(slice(start, end)), (end - start) / size)
            for start, end in pairwise(ends.tolist())
        ]

    def loss(self, part: _Part) -> torch.Tensor:
        drawn = part.examples
        batch = pack(
            self._examples.table,
            drawn.questions,
            drawn.paragraphs,
            self._template,
            limit=self._examples.limit,
            window=drawn.window,
            device=self._device,
        )
        spans = torch.from_numpy(drawn.spans).to(self._device)
        ends = self.network(batch)
        weights = torch.ones(len(spans), device=self._device)
        of_labels = span_loss(ends, batch, spans, weights)
        if not self._teachers:
            return of_labels * part.share
        with torch.no_grad():
            found = [teacher(batch) for teacher in self._teachers]
        of_teachers = span_distillation_loss(ends, batch, found)
        share = self.recipe.distillation
        return ((1 - share) * of_labels + share * of_teachers) * part.share


def train_reader(
    reader: AdapterReader,
    examples: SpanExamples,
    template: PairTemplate,
    recipe: ReaderRecipe,
    *,
    teachers: Sequence[AdapterReader] = (),
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[TrainingStep], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> AdapterReader:
    """Train in place on the labels and, if there are teachers, on the mean of their outputs."""
    run_training(
        [_ReaderTask(reader, examples, template, recipe, teachers)],
        settings=f"{reader.adapter}; {recipe}; {len(examples)} examples, {len(teachers)} teachers",
        checkpoint=checkpoint,
        on_epoch=on_epoch,
        on_step=on_step,
        on_note=on_note,
    )
    return reader


FloatArray = NDArray[np.float32]


def average_readers(
    readers: Sequence[Mapping[str, FloatArray]], rank: int
) -> dict[str, FloatArray]:
    """The mean of readers; its weight differences are approximated at the given rank."""
    if not readers:
        raise InputError("Expected at least one reader to average, got none.")
    made: dict[str, FloatArray] = {}
    for name, first in readers[0].items():
        if name.endswith(".up.weight"):
            down = name.replace(".up.", ".down.")
            products = [one[name].T @ one[down] for one in readers]
            made[name], made[down] = low_rank_factors(np.mean(products, axis=0), rank)
        elif not name.endswith(".down.weight"):
            made[name] = np.mean([one[name] for one in readers], axis=0, dtype=first.dtype)
    return made


def transfer_reader(
    theirs: Mapping[str, FloatArray], own: Mapping[str, FloatArray], adapter: Adapter
) -> dict[str, FloatArray]:
    """
    The reader of another cascade for this encoder, approximated at the adapter's rank.

    `theirs` has all tensors of that cascade, `own` those of this one. If both come from the same
    start, the difference between the encoders is small and most of it fits into the rank.
    """
    made = {name: one for name, one in theirs.items() if name.startswith("reader.")}
    read = reader_tensors(theirs)
    for name, weight in own.items():
        layer = name.partition(".")[2].partition(".")[0]
        if not name.startswith("layers.") or int(layer) < adapter.first:
            continue
        if weight.ndim == 1:
            made[f"adapter.{name}"] = read[name]
            continue
        stem = name.removesuffix(".weight")
        whole = read[name]
        if f"{stem}.up.weight" in read:
            whole = whole + read[f"{stem}.up.weight"].T @ read[f"{stem}.down.weight"]
        thin = low_rank_factors(whole - weight, adapter.rank)
        for side, one in zip(("up", "down"), thin, strict=True):
            made[f"adapter.{stem}.{side}.weight"] = one
    return made


def low_rank_factors(difference: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """(outputs, inputs) → `up` and `down`, both (rank, size), with the closest `up.T @ down`."""
    left, sizes, right = np.linalg.svd(difference, full_matrices=False)
    roots = np.sqrt(sizes[:rank])[:, None]
    return (left.T[:rank] * roots).astype(np.float32), (right[:rank] * roots).astype(np.float32)


def write_reader(
    folder: ModelFolder,
    own: Mapping[str, FloatArray],
    adapter: Adapter,
    to: str | PathLike[str],
    *,
    pairs: Sequence[Pair],
    card: str,
) -> Path:
    """
    Write the cascade of `folder` with this reader; of the config only the adapter changes.

    All other tensors are written unchanged, except for a `context`, which belongs to the adapter
    that is replaced and is left out. In an int8 folder the low-rank matrices are stored in
    int8, and the input scales of the reader's layers are fitted to `pairs`.
    """
    before = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    config = replace(before, reader=True, adapter=adapter, context=None)
    stored = {
        name: one
        for name, one in folder.stored_tensors().items()
        if not name.startswith(("adapter.", "reader.", "context."))
    }
    kept: dict[str, NDArray[Any]] = dict(own)
    if config.precision == "int8":
        tokenizer = WordPiece.load(folder.path / "tokenizer.json")
        kept = quantize_adapter(own) | _input_scales(config, stored, own, tokenizer, pairs)
    check_cascade_tensors(config, stored | kept, path=folder.path)
    return write_folder(
        to,
        config={**_without_context(folder.config), **config.to_config()},
        tensors=stored | kept,
        card=card,
        files={"tokenizer.json": (folder.path / "tokenizer.json").read_bytes()},
    )


def _without_context(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in config.items() if name != "context"}


def _input_scales(
    config: CascadeConfig,
    stored: Mapping[str, NDArray[Any]],
    own: Mapping[str, FloatArray],
    tokenizer: WordPiece,
    pairs: Sequence[Pair],
) -> dict[str, NDArray[Any]]:
    """Scale and zero point of each input of the adapted layers, smoothed as in the encoder."""
    if not pairs:
        raise InputError("At least one (question, text) pair is needed to fit the reader's scales.")
    whole, first = float_tensors(stored), config.adapter.first if config.adapter else 0
    made: dict[str, NDArray[Any]] = {}
    read = activation_statistics(config, reader_tensors(whole | dict(own)), tokenizer, pairs)
    for layer, points in enumerate(read):
        for point, inputs in points.items() if layer >= first else ():
            stem = f"layers.{layer}"
            names = [
                f"{stem}.{dense}.weight" for dense, reads in DENSE_INPUTS.items() if reads == point
            ]
            weight = np.concatenate([whole[name] for name in names])
            steps = refit_input_quantization(inputs, weight, stored.get(f"{stem}.{point}.smooth"))
            made[f"adapter.{stem}.{point}.scale"] = np.array(steps.scale, np.float32)
            made[f"adapter.{stem}.{point}.zero"] = np.array(steps.zero, np.uint8)
    return made


_CALIBRATION_PAIRS = 96


@dataclass(frozen=True, slots=True)
class ReaderPlan:
    """The shape of a reader, its recipe and its seeds."""

    adapter: Adapter
    recipe: ReaderRecipe = field(default_factory=ReaderRecipe)
    seeds: tuple[int, ...] = (0,)
    """The result is the mean of their readers."""


def build_reader(
    model: str | PathLike[str],
    plan: ReaderPlan,
    sets: Sequence[str],
    out: str | PathLike[str],
    *,
    init: str | PathLike[str] | None = None,
    teachers: Sequence[str | PathLike[str]] = (),
    root: Path | None = None,
    device: str = "cpu",
    command: str = "",
    checkpoint: Path | None = None,
    progress: TrainingProgress | None = None,
) -> Path:
    """
    Train a reader for the cascade in folder `model`, and write that folder with it to `out`.

    `init` is the folder of another cascade whose reader is the start, as far as the rank allows.
    `teachers` are folders that this function wrote; their readers are learned from as well. With
    `checkpoint`, a path, every seed keeps its state beside it and can be resumed.
    """
    progress = progress or TrainingProgress()
    folder = ModelFolder.open(model, kind="cascade")
    config = _config(folder)
    tokenizer = WordPiece.load(folder.path / "tokenizer.json")
    paragraphs = [each for name in sets for each in data.load_paragraphs(name, root=root)]
    examples = answer_examples(paragraphs, tokenizer, positions=config.encoder.positions)
    adapted = replace(config, reader=True, adapter=plan.adapter)
    start = _initial_tensors(folder, config)
    if init is not None:
        start |= transfer_reader(_tensors_with_reader(init, config), start, plan.adapter)
    loaded_teachers = [_load_reader(one).to(device) for one in teachers]
    trained = []
    for seed in plan.seeds:
        torch.manual_seed(seed)  # the low-rank matrices are drawn from it
        reader = AdapterReader(adapted, start).to(device)
        train_reader(
            reader,
            examples,
            word_piece_template(tokenizer),
            replace(plan.recipe, seed=seed),
            teachers=loaded_teachers,
            checkpoint=None if checkpoint is None else seed_checkpoint(checkpoint, seed),
            on_epoch=partial(progress.on_epoch, f"seed {seed}"),
            on_step=partial(progress.on_step, f"seed {seed}"),
            on_note=progress.on_note,
        )
        trained.append(reader.tensors())
    own = trained[0] if len(trained) == 1 else average_readers(trained, plan.adapter.rank)
    card = _card(folder, plan, sets, command)
    pairs = _sample_paragraphs(paragraphs, plan.seeds[0])
    return write_reader(folder, own, plan.adapter, out, pairs=pairs, card=card)


def seed_checkpoint(checkpoint: Path, seed: int) -> Path:
    """The checkpoint file of one seed."""
    return checkpoint.with_name(f"{checkpoint.name}.{seed}.pt")


def _config(folder: ModelFolder) -> CascadeConfig:
    return CascadeConfig.from_config(folder.config, path=folder.path / "config.json")


def _tensors_with_reader(
    path: str | PathLike[str], own: CascadeConfig
) -> dict[str, NDArray[np.float32]]:
    """All tensors of another cascade with a reader, on an encoder of the same shape."""
    folder = ModelFolder.open(path, kind="cascade")
    config = _config(folder)
    if not config.reader or config.encoder != own.encoder:
        raise InputError(f"{folder.path} must hold a reader on an encoder of the same shape.")
    return float_tensors(folder.stored_tensors())


def _load_reader(path: str | PathLike[str]) -> AdapterReader:
    folder = ModelFolder.open(path, kind="cascade")
    return AdapterReader(_config(folder), float_tensors(folder.stored_tensors())).eval()


def _initial_tensors(folder: ModelFolder, config: CascadeConfig) -> dict[str, NDArray[np.float32]]:
    """The folder's weights in float; if it has no reader, one whose outputs are all zero."""
    found = float_tensors(folder.stored_tensors())
    start = {name: one for name, one in found.items() if not name.startswith("adapter.")}
    if not config.reader:
        start["reader.weight"] = np.zeros((2, config.encoder.width), np.float32)
        start["reader.bias"] = np.zeros(2, np.float32)
    return start


def _sample_paragraphs(paragraphs: Sequence[Paragraph], seed: int) -> list[tuple[str, str]]:
    """(question, paragraph) pairs to fit the int8 scales to."""
    pairs = [(question.text, each.text) for each in paragraphs for question in each.questions]
    if not pairs:
        raise InputError("Expected paragraphs with questions, got none.")
    chosen = np.random.default_rng(seed).permutation(len(pairs))[:_CALIBRATION_PAIRS]
    return [pairs[at] for at in chosen.tolist()]


def _card(folder: ModelFolder, plan: ReaderPlan, sets: Sequence[str], command: str) -> str:
    """The cascade's card with a section about the reader."""
    before = folder.path / "README.md"
    text = before.read_text(encoding="utf-8").rstrip() if before.is_file() else "# cascade"
    trained_on = ", ".join(f"{name} ({data_license(name)})" for name in sets)
    seeds = ", ".join(map(str, plan.seeds))
    return (
        f"{text}\n\n## Reader\n\nAn adapter of rank {plan.adapter.rank} on all layers from "
        f"{plan.adapter.first + 1} on, trained on {trained_on}; seeds {seeds}. The weights of the "
        f"cascade are unchanged.\n\n```\n{command}\n```\n"
    )
