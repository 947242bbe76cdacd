"""
From passages with questions to a cascade that reads passages in context.

`build_context` trains one network per seed, averages them, and writes the cascade's folder with the
new adapter, reader and sentence classifiers. Everything else in the folder stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
import torch

from ... import data
from ...data.datasets import data_license
from ...engine.adapter import float_tensors
from ...engine.tokenizer import WordPiece
from ...errors import InputError
from ...models.cascade_config import Adapter, CascadeConfig, ContextConfig
from ...models.folder import ModelFolder
from ...types import Passage
from ..loop import TrainingProgress
from .adapter_networks import ContextNetwork, WindowFormat, widen_adapter
from .context_examples import (
    ContextExamples,
    PassageQuestion,
    TrainingPassage,
    paragraph_passages,
    read_passages,
)
from .context_export import write_context
from .context_training import ContextRecipe, train_context
from .question_variants import add_unanswerable, add_variants
from .reader_training import average_readers, seed_checkpoint

__all__ = ["ContextData", "ContextPlan", "build_context", "load_training_passages"]

_CALIBRATION_WINDOWS = 96


@dataclass(frozen=True, slots=True)
class ContextData:
    """What a context pass is trained on."""

    sets: tuple[str, ...] = ()
    """Datasets: paragraphs in SQuAD's format, or questions whose answers stand alone."""
    files: tuple[str, ...] = ()
    """Files of passages, as `read_passages` reads them."""
    root: Path | None = None
    unanswerable: float = 0.5
    """The share of the sets' questions that get an unanswerable variant."""
    variants: float = 0.12
    """The share of all questions that get a keyword or a misspelled variant."""


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """The shape of the context pass, its recipe and its seeds."""

    adapter: Adapter
    depths: tuple[int, ...]
    recipe: ContextRecipe = field(default_factory=ContextRecipe)
    seeds: tuple[int, ...] = (0,)
    """The result is the mean of their networks."""


def load_training_passages(source: ContextData) -> list[TrainingPassage]:
    """The passages of all sets and files, with variants of their questions."""
    passages: list[TrainingPassage] = []
    for name in source.sets:
        paragraphs = data.load_paragraphs(name, root=source.root)
        passages += paragraph_passages(paragraphs)
    passages = add_unanswerable(passages, share=source.unanswerable)
    for name in source.sets:
        if not data.load_paragraphs(name, root=source.root):
            passages += _single_sentences(name, source.root)
    passages += [passage for path in source.files for passage in read_passages(path)]
    if not any(passage.questions for passage in passages):
        raise InputError("Expected passages with questions to train on, got none.")
    return add_variants(passages, share=source.variants)


def _single_sentences(name: str, root: Path | None) -> list[TrainingPassage]:
    """The answers of a set without paragraphs, each a passage of its own."""
    made = []
    for question in data.load_dataset(name, root=root):
        for candidate in question.candidates:
            if candidate.is_answer:
                spans = tuple(
                    (0, at, at + len(answer))
                    for answer in question.answers[:1]
                    if (at := candidate.text.lower().find(answer.lower())) >= 0
                )
                asked = PassageQuestion(question.text, (0,), spans)
                made.append(TrainingPassage(question.id, (candidate.text,), (asked,)))
    return made


def build_context(
    model: str | PathLike[str],
    plan: ContextPlan,
    source: ContextData,
    out: str | PathLike[str],
    *,
    device: str = "cpu",
    command: str = "",
    checkpoint: Path | None = None,
    progress: TrainingProgress | None = None,
) -> Path:
    """
    Train the context pass of the cascade in folder `model`, and write the folder with it to `out`.

    The adapter of the folder's reader is the start, if it has one. With `checkpoint`, a path, every
    seed keeps its state beside it and can be resumed.
    """
    progress = progress or TrainingProgress()
    folder = ModelFolder.open(model, kind="cascade")
    config = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    tokenizer = WordPiece.load(folder.path / "tokenizer.json")
    passages = load_training_passages(source)
    examples = ContextExamples.of(passages, tokenizer)
    context = ContextConfig(plan.depths, max_length=min(384, config.encoder.positions))
    form = WindowFormat(
        tokenizer.cls_id, tokenizer.sep_id, context.marker, context.max_length, context.max_title
    )
    adapted = replace(config, reader=True, adapter=plan.adapter, context=None)
    start = _initial_tensors(folder, config)
    trained = []
    for seed in plan.seeds:
        torch.manual_seed(seed)  # the new weights are drawn from it
        network = ContextNetwork(
            adapted, widen_adapter(start, plan.adapter.rank, seed), plan.depths
        ).to(device)
        train_context(
            network,
            examples,
            form,
            replace(plan.recipe, seed=seed),
            checkpoint=None if checkpoint is None else seed_checkpoint(checkpoint, seed),
            on_epoch=partial(progress.on_epoch, f"seed {seed}"),
            on_step=partial(progress.on_step, f"seed {seed}"),
            on_note=progress.on_note,
        )
        trained.append(network.tensors())
    own = trained[0] if len(trained) == 1 else average_readers(trained, plan.adapter.rank)
    card = _card(folder, plan, source, command)
    windows = sample_windows(passages, plan.seeds[0])
    return write_context(folder, own, context, plan.adapter, out, windows=windows, card=card)


def sample_windows(passages: Sequence[TrainingPassage], seed: int) -> list[tuple[str, Passage]]:
    """Questions with their passages, to fit the int8 scales to."""
    pairs = [
        (question.text, Passage(passage.sentences, passage.title))
        for passage in passages
        for question in passage.questions
    ]
    chosen = np.random.default_rng(seed).permutation(len(pairs))[:_CALIBRATION_WINDOWS]
    return [pairs[at] for at in chosen.tolist()]


def _initial_tensors(folder: ModelFolder, config: CascadeConfig) -> dict[str, np.ndarray]:
    """The folder's weights in float; if it has no reader, one whose outputs are all zero."""
    start = float_tensors(folder.stored_tensors())
    if not config.reader:
        start["reader.weight"] = np.zeros((2, config.encoder.width), np.float32)
        start["reader.bias"] = np.zeros(2, np.float32)
    return start


def _card(folder: ModelFolder, plan: ContextPlan, source: ContextData, command: str) -> str:
    """The cascade's card with a section about the context pass."""
    before = folder.path / "README.md"
    text = before.read_text(encoding="utf-8").rstrip() if before.is_file() else "# cascade"
    trained_on = [f"{name} ({data_license(name)})" for name in source.sets]
    trained_on += [Path(path).name for path in source.files]
    depths, seeds = (", ".join(map(str, each)) for each in (plan.depths, plan.seeds))
    return (
        f"{text}\n\n## Passages in context\n\nAn adapter of rank {plan.adapter.rank}, sentence "
        f"classifiers after layers {depths}, and the reader, trained on {', '.join(trained_on)}; "
        f"seeds {seeds}. The encoder and its classifiers are unchanged.\n\n```\n{command}\n```\n"
    )
