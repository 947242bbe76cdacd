"""
What a reader learns from, in the tokens of the folder that it is fitted to.

The reader learns where answers start and end; research/notes/cascade.md has what it came to.

What a reader learnt → beside the cascade it was fitted to, in a folder.

A reader for a cascade's folder out of labelled paragraphs: what `askline train reader` runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ... import data
from ...data.squad import Paragraph
from ...engine.quantization import quantize_rows, refit_input_quantization
from ...engine.tokenizer import WordPiece
from ...errors import InputError
from ...models.cascade_config import Adapter, CascadeConfig, check_cascade_tensors, reader_tensors
from ...models.encoder_config import DENSE_INPUTS
from ...models.folder import ModelFolder, write_folder
from ..cascade.cascade_examples import reading_set
from ..cascade.span_reading import Reading, ReadingSet, reading_loss, taught_loss
from ..model_card import LICENCES
from ..packing import Packed, PairTemplate, pack
from ..post_training_quantization import Pair, observe
from .reader_network import AdaptedReader, float_tensors

__all__ = [
    "Pieces",
    "ReaderMaking",
    "ReaderRecipe",
    "carried_over",
    "cut",
    "every_answer",
    "fit_reader",
    "make_reader",
    "mean_of",
    "template_of",
    "write_reader",
]


@dataclass(frozen=True, slots=True)
class Pieces:
    """The runtime's tokeniser, called as training calls one."""

    tokeniser: WordPiece

    def __call__(self, texts: Sequence[str], **_: object) -> dict[str, list[list[object]]]:
        """Of each text the numbers and the places of its pieces, without marks."""
        found = [self.tokeniser.tokens_with_offsets(text) for text in texts]
        return {
            "input_ids": [[number for number, _, _ in pieces] for pieces in found],
            "offset_mapping": [[(start, end) for _, start, end in pieces] for pieces in found],
        }


def template_of(tokeniser: WordPiece) -> PairTemplate:
    """How the runtime joins question and text."""
    first, between = (np.array([mark]) for mark in (tokeniser.cls_id, tokeniser.sep_id))
    return PairTemplate(first, between, between, (0, 0, 0, 1, 1), has_segments=True, padding=0)


def every_answer(
    paragraphs: Sequence[Paragraph], tokeniser: WordPiece, *, positions: int
) -> ReadingSet:
    """An example for each answer that an annotator gave, so that all of them count the same."""
    found = reading_set(list(_one_answer_each(paragraphs)), Pieces(tokeniser))
    return replace(found, limit=min(found.limit, positions))


def _one_answer_each(paragraphs: Sequence[Paragraph]) -> Iterator[Paragraph]:
    for paragraph in paragraphs:
        questions = [
            replace(question, answers=(answer,))
            for question in paragraph.questions
            for answer in question.answers
        ]
        yield replace(paragraph, questions=tuple(questions))


@dataclass(frozen=True, slots=True)
class ReaderRecipe:
    """AdamW under a triangular rate."""

    epochs: int = 3
    rate: float = 1e-3
    """The peak of the learning rate of the thin matrices."""
    small_rate: float = 1e-4
    """The same of biases, norms and the last line."""
    batch: int = 32
    """Paragraphs a step."""
    wrong: float = 0.1
    """The share of questions that get a paragraph without their answer."""
    taught: float = 0.5
    """How much teachers count, where there are any; the labels count the rest."""
    rising: float = 0.06
    """The part of all steps in which the rate rises."""
    seconds: float = math.inf
    """When the rate is at its lowest and the training ends, whatever is left of it."""
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "rate", "small_rate", "batch", "rising", "seconds", "clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}.")


def fit_reader(
    reader: AdaptedReader,
    examples: ReadingSet,
    template: PairTemplate,
    recipe: ReaderRecipe,
    *,
    teachers: Sequence[AdaptedReader] = (),
    on_step: Callable[[int, int, float], None] = lambda _done, _of, _loss: None,
) -> AdaptedReader:
    """
    Train in place; the mean of what the teachers hold for likely is learnt beside the labels.

    `on_step` gets the steps done, all steps, and the loss.
    """
    torch.manual_seed(recipe.seed)
    random = np.random.default_rng(recipe.seed)
    device = next(reader.parameters()).device
    groups = [(reader.thin(), recipe.rate), (reader.rest(), recipe.small_rate)]
    optimiser = torch.optim.AdamW(
        [{"params": weights, "peak": rate} for weights, rate in groups],
        lr=recipe.rate, eps=1e-6, weight_decay=0.0,
    )  # fmt: skip
    a_pass = max(1, len(examples) // recipe.batch)
    total, begun = recipe.epochs * a_pass, time.perf_counter()
    reader.train()
    for step in range(total):
        done = max(step / total, (time.perf_counter() - begun) / recipe.seconds)
        if done >= 1:
            break
        if step % a_pass == 0:
            order = random.permutation(len(examples))
        at = step % a_pass * recipe.batch
        drawn = examples.draw(order[at : at + recipe.batch], random, wrong=recipe.wrong)
        share = min(done / recipe.rising, (1 - done) / (1 - recipe.rising))
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * share
        batch = pack(
            examples.table, drawn.questions, drawn.paragraphs, template,
            limit=examples.limit, window=drawn.window, device=device,
        )  # fmt: skip
        loss = _loss(reader, batch, drawn, teachers, recipe.taught)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(reader.own.parameters(), recipe.clip)
        optimiser.step()
        on_step(step + 1, total, float(loss.detach()))
    return reader.eval()


def _loss(
    reader: AdaptedReader,
    batch: Packed,
    drawn: Reading,
    teachers: Sequence[AdaptedReader],
    taught: float,
) -> torch.Tensor:
    spans = torch.from_numpy(drawn.spans).to(batch.tokens.device)
    ends = reader(batch)
    by_label = reading_loss(ends, batch, spans, torch.ones(len(spans), device=ends.device))
    if not teachers:
        return by_label
    with torch.no_grad():
        told = [teacher(batch) for teacher in teachers]
    return (1 - taught) * by_label + taught * taught_loss(ends, batch, told)


FloatArray = NDArray[np.float32]


def mean_of(readers: Sequence[Mapping[str, FloatArray]], rank: int) -> dict[str, FloatArray]:
    """One reader whose differences are the mean of theirs, as near to it as the rank allows."""
    if not readers:
        raise InputError("The mean of no reader at all was asked for.")
    made: dict[str, FloatArray] = {}
    for name, first in readers[0].items():
        if name.endswith(".up.weight"):
            down = name.replace(".up.", ".down.")
            products = [one[name].T @ one[down] for one in readers]
            made[name], made[down] = cut(np.mean(products, axis=0), rank)
        elif not name.endswith(".down.weight"):
            made[name] = np.mean([one[name] for one in readers], axis=0, dtype=first.dtype)
    return made


def carried_over(
    theirs: Mapping[str, FloatArray], own: Mapping[str, FloatArray], adapter: Adapter
) -> dict[str, FloatArray]:
    """
    The reader of another cascade as one on this encoder, as near to it as the rank allows.

    `theirs` has all tensors of that cascade, `own` those of this one. Where both come from one
    start, what the two encoders differ by is small, and most of it fits into the rank too.
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
        thin = cut(whole - weight, adapter.rank)
        for side, one in zip(("up", "down"), thin, strict=True):
            made[f"adapter.{stem}.{side}.weight"] = one
    return made


def cut(difference: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """(outputs, inputs) → the nearest product of `up`, turned, and `down`, each (rank, size)."""
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
    The cascade of `folder` with this reader, under the same config but for the adapter.

    Every other tensor is written as it was, byte for byte. In an int8 folder the thin matrices are
    kept in int8, and the steps of what the reader's layers read are fitted to `pairs`.
    """
    before = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    layout = replace(before, reader=True, adapter=adapter)
    stored = {
        name: one
        for name, one in folder.stored_tensors().items()
        if not name.startswith(("adapter.", "reader."))
    }
    kept: dict[str, NDArray[Any]] = dict(own)
    if layout.precision == "int8":
        tokeniser = WordPiece.load(folder.path / "tokenizer.json")
        kept = _small(own) | _steps(layout, stored, own, tokeniser, pairs)
    check_cascade_tensors(layout, stored | kept, path=folder.path)
    return write_folder(
        to,
        config={**folder.config, **layout.to_config()},
        tensors=stored | kept,
        card=card,
        files={"tokenizer.json": (folder.path / "tokenizer.json").read_bytes()},
    )


def _small(own: Mapping[str, FloatArray]) -> dict[str, NDArray[Any]]:
    """Thin matrices in int8 by their rows, all else in float16."""
    made: dict[str, NDArray[Any]] = {name: one.astype(np.float16) for name, one in own.items()}
    for name in own:
        if name.endswith((".up.weight", ".down.weight")):
            made[name], made[f"{name.removesuffix('weight')}scale"] = quantize_rows(own[name])
    return made


def _steps(
    layout: CascadeConfig,
    stored: Mapping[str, NDArray[Any]],
    own: Mapping[str, FloatArray],
    tokeniser: WordPiece,
    pairs: Sequence[Pair],
) -> dict[str, NDArray[Any]]:
    """The steps of each input of the adapted layers; channels are moved as the encoder has it."""
    if not pairs:
        raise InputError("At least one (question, text) pair is needed to fit the reader's steps.")
    whole, first = float_tensors(stored), layout.adapter.first if layout.adapter else 0
    made: dict[str, NDArray[Any]] = {}
    read = observe(layout, reader_tensors(whole | dict(own)), tokeniser, pairs)
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


_FITTED = 96  # (question, paragraph) pairs that the steps of int8 are fitted to


@dataclass(frozen=True, slots=True)
class ReaderMaking:
    """How a reader is made."""

    adapter: Adapter
    recipe: ReaderRecipe = field(default_factory=ReaderRecipe)
    seeds: tuple[int, ...] = (0,)
    """The mean of their readers is the result."""


def make_reader(
    model: str | PathLike[str],
    how: ReaderMaking,
    sets: Sequence[str],
    to: str | PathLike[str],
    *,
    begin: str | PathLike[str] | None = None,
    teachers: Sequence[str | PathLike[str]] = (),
    root: Path | None = None,
    device: str = "cpu",
    command: str = "",
    on_step: Callable[[int, int, int, float], None] = lambda _seed, _done, _of, _loss: None,
) -> Path:
    """
    Fit a reader to a runtime folder, and write that folder with it.

    `begin` is the folder of another cascade, whose reader is the start, as far as the rank allows.
    `teachers` are folders that this function wrote; their readers are learnt from too.
    `on_step` gets the seed, the steps done, all steps, and the loss.
    """
    folder = ModelFolder.open(model, kind="cascade")
    layout = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    tokeniser = WordPiece.load(folder.path / "tokenizer.json")
    paragraphs = [each for name in sets for each in data.load_paragraphs(name, root=root)]
    examples = every_answer(paragraphs, tokeniser, positions=layout.encoder.positions)
    adapted = replace(layout, reader=True, adapter=how.adapter)
    start = _start(folder, layout)
    if begin is not None:
        start |= carried_over(_read_by(begin, layout), start, how.adapter)
    taught_by = [_loaded(one).to(device) for one in teachers]
    made = []
    for seed in how.seeds:
        torch.manual_seed(seed)  # the thin matrices are drawn from it
        reader = AdaptedReader(adapted, start).to(device)
        recipe = replace(how.recipe, seed=seed)

        def say(done: int, of: int, loss: float, seed: int = seed) -> None:
            on_step(seed, done, of, loss)

        template = template_of(tokeniser)
        fit_reader(reader, examples, template, recipe, teachers=taught_by, on_step=say)
        made.append(reader.tensors())
    own = made[0] if len(made) == 1 else mean_of(made, how.adapter.rank)
    card = _card(folder, how, sets, command)
    pairs = _some(paragraphs, how.seeds[0])
    return write_reader(folder, own, how.adapter, to, pairs=pairs, card=card)


def _read_by(path: str | PathLike[str], own: CascadeConfig) -> dict[str, NDArray[np.float32]]:
    """All tensors of another cascade with a reader, on an encoder of the same shape."""
    folder = ModelFolder.open(path, kind="cascade")
    layout = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    if not layout.reader or layout.encoder != own.encoder:
        raise InputError(f"{folder.path} must hold a reader on an encoder of the same shape.")
    return float_tensors(folder.stored_tensors())


def _loaded(path: str | PathLike[str]) -> AdaptedReader:
    folder = ModelFolder.open(path, kind="cascade")
    layout = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    return AdaptedReader(layout, float_tensors(folder.stored_tensors())).eval()


def _start(folder: ModelFolder, layout: CascadeConfig) -> dict[str, NDArray[np.float32]]:
    """The folder's weights in float; without a reader, one that marks nothing yet."""
    found = float_tensors(folder.stored_tensors())
    start = {name: one for name, one in found.items() if not name.startswith("adapter.")}
    if not layout.reader:
        start["reader.weight"] = np.zeros((2, layout.encoder.width), np.float32)
        start["reader.bias"] = np.zeros(2, np.float32)
    return start


def _some(paragraphs: Sequence[Paragraph], seed: int) -> list[tuple[str, str]]:
    pairs = [(question.text, each.text) for each in paragraphs for question in each.questions]
    if not pairs:
        raise InputError("Expected paragraphs with questions, got none.")
    picked = np.random.default_rng(seed).permutation(len(pairs))[:_FITTED]
    return [pairs[at] for at in picked.tolist()]


def _card(folder: ModelFolder, how: ReaderMaking, sets: Sequence[str], command: str) -> str:
    """The cascade's card, and what the reader is."""
    before = folder.path / "README.md"
    text = before.read_text(encoding="utf-8").rstrip() if before.is_file() else "# cascade"
    licences = [f"{name} ({LICENCES.get(name.partition(':')[0], 'see the data')})" for name in sets]
    first, rank = how.adapter.first + 1, how.adapter.rank
    seeds = ", ".join(map(str, how.seeds))
    return (
        f"{text}\n\n## Reader\n\nAn adapter of rank {rank} on all layers from {first} on, "
        f"trained on {', '.join(licences)}; seeds {seeds}. "
        f"The cascade's own weights are as they were.\n\n```\n{command}\n```\n"
    )
