"""A reader for a cascade's folder out of labelled paragraphs: what `askline train reader` runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ... import data
from ...data.squad import Paragraph
from ...engine.tokenizer import WordPiece
from ...errors import InputError
from ...models.cascade_config import Adapter, CascadeLayout
from ...models.folder import ModelFolder
from ..card import LICENCES
from .examples import every_answer, template_of
from .fitting import ReaderRecipe, fit_reader
from .network import AdaptedReader, float_tensors
from .storing import carried_over, mean_of, write_reader

__all__ = ["ReaderMaking", "make_reader"]

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
    layout = CascadeLayout.from_config(folder.config, path=folder.path / "config.json")
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


def _read_by(path: str | PathLike[str], own: CascadeLayout) -> dict[str, NDArray[np.float32]]:
    """All tensors of another cascade with a reader, on an encoder of the same shape."""
    folder = ModelFolder.open(path, kind="cascade")
    layout = CascadeLayout.from_config(folder.config, path=folder.path / "config.json")
    if not layout.reader or layout.encoder != own.encoder:
        raise InputError(f"{folder.path} must hold a reader on an encoder of the same shape.")
    return float_tensors(folder.stored())


def _loaded(path: str | PathLike[str]) -> AdaptedReader:
    folder = ModelFolder.open(path, kind="cascade")
    layout = CascadeLayout.from_config(folder.config, path=folder.path / "config.json")
    return AdaptedReader(layout, float_tensors(folder.stored())).eval()


def _start(folder: ModelFolder, layout: CascadeLayout) -> dict[str, NDArray[np.float32]]:
    """The folder's weights in float; without a reader, one that marks nothing yet."""
    found = float_tensors(folder.stored())
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
