"""
Teach the context pass of a cascade by a larger network: MPNet-base, trained on the same windows.

    export ASKLINE_DATA=DIR
    P="python -m research.recipes.context_teacher"
    $P prepare CASCADE --passages FILE --out EXAMPLES
    $P teacher EXAMPLES --encoder MPNET --minutes 8 --out teacher.pt
    $P student EXAMPLES CASCADE --encoder MPNET --teacher teacher.pt --out own.safetensors
    $P export CASCADE own.safetensors --passages FILE --out FOLDER

`prepare` tokenizes the training passages of `ContextData` and two dev sets: held-out SQuADShifts
and, with --dev, mined questions of other packages. `teacher` trains MPNet-base to score sentences
and to read. `student` goes on from the adapter of CASCADE, with the teacher's probabilities for the
same windows beside the labels, or without a teacher on labels alone. `export` writes the mean of
several students as int8. MPNet-base is `sentence-transformers/all-mpnet-base-v2` (Apache-2.0).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from askline import data
from askline.engine.adapter import float_tensors
from askline.engine.tokenizer import WordPiece
from askline.models.cascade_config import CascadeConfig
from askline.models.folder import ModelFolder
from askline.training.cascade.adapter_networks import (
    ContextNetwork,
    ContextOutput,
    SentenceClassifier,
    WindowBatch,
    WindowFormat,
)
from askline.training.cascade.context_examples import (
    ContextExamples,
    paragraph_passages,
    read_passages,
)
from askline.training.cascade.context_export import write_context
from askline.training.cascade.context_training import (
    ContextRecipe,
    measure_context,
    train_context,
)
from askline.training.cascade.context_workflow import (
    ContextData,
    load_training_passages,
    sample_windows,
)
from askline.training.cascade.reader_training import average_readers
from askline.training.loop import TrainingStep

from .general import SETS

__all__ = ["MPNetTeacher"]

_SHIFT = 4
_DROPOUT = 0.1
_LENGTHS = (96, 160, 256, 384)
"""Windows are padded in groups of at most these lengths."""


class MPNetTeacher(nn.Module):
    """
    Packed windows → a logit per sentence, start and end logits per token.

    It has the interface of `ContextNetwork` with one depth, so the same loop trains both. MPNet's
    vocabulary is that of BERT with four tokens before it.
    """

    depths = (12,)
    adapter = "mpnet"

    def __init__(self, encoder: Any, *, cls_id: int, sep_id: int) -> None:
        """`encoder` is an `MPNetModel` of transformers."""
        super().__init__()
        self.encoder = encoder
        encoder.encoder.relative_attention_bias.weight.requires_grad_(False)
        width = encoder.config.hidden_size
        self.classifier, self.reader = SentenceClassifier(width), nn.Linear(width, 2)
        nn.init.zeros_(self.reader.weight)
        nn.init.zeros_(self.reader.bias)
        self.cls_id, self.sep_id = cls_id, sep_id

    def score(self, batch: WindowBatch, *, deepest: int | None = None) -> ContextOutput:  # noqa: ARG002
        states = self._states(batch)
        total = states.new_zeros(batch.sentences + 1, states.shape[1])
        total = total.index_add(0, batch.sentence_of, states)[:-1]
        scores = self.classifier(total / batch.sizes.unsqueeze(1))
        return ContextOutput(scores[None], self.reader(states))

    def _states(self, batch: WindowBatch) -> Tensor:
        """(tokens, width)"""
        packed = batch.packed
        tokens = packed.tokens + _SHIFT
        tokens[packed.tokens == self.cls_id] = 0
        tokens[packed.tokens == self.sep_id] = 2
        sizes = (packed.starts[1:] - packed.starts[:-1]).long()
        width = self.encoder.config.hidden_size
        states = torch.zeros(len(tokens), width, device=tokens.device)
        low = 0
        for high in _LENGTHS:
            chosen = torch.nonzero((sizes > low) & (sizes <= high))[:, 0]
            low = high
            if not len(chosen):
                continue
            length = int(sizes[chosen].max())
            place = torch.arange(length, device=tokens.device)
            inside = place < sizes[chosen, None]  # (windows, length)
            rows = (packed.starts[:-1].long()[chosen, None] + place)[inside]
            padded = tokens.new_ones(inside.shape)
            padded[inside] = tokens[rows]
            with torch.autocast("cuda", torch.bfloat16, enabled=tokens.is_cuda):
                found = self._encode(padded, inside)
            states = states.index_put((rows,), found[inside].float())
        return states

    def _encode(self, tokens: Tensor, inside: Tensor) -> Tensor:
        """(windows, length) → (windows, length, width)"""
        whole = self.encoder
        states: Tensor = whole.embeddings(input_ids=tokens)
        bias = whole.encoder.compute_position_bias(states[:1])  # (1, heads, length, length)
        shut = torch.where(inside, 0.0, -1e4)[:, None, None, :]
        mask = (bias + shut).to(torch.bfloat16 if states.is_cuda else states.dtype)
        for layer in whole.encoder.layer:
            own = layer.attention.attn
            heads = (*states.shape[:2], own.num_attention_heads, -1)
            query, key, value = (
                each(states).view(heads).transpose(1, 2) for each in (own.q, own.k, own.v)
            )
            mixed = F.scaled_dot_product_attention(query, key, value, mask.to(query.dtype))
            mixed = own.o(mixed.transpose(1, 2).reshape(states.shape))
            mixed = F.dropout(mixed, _DROPOUT, self.training)
            states = layer.attention.LayerNorm(mixed + states)
            inner = layer.output.dense(layer.intermediate(states))
            inner = F.dropout(inner, _DROPOUT, self.training)
            states = layer.output.LayerNorm(inner + states)
        return states

    def low_rank_parameters(self) -> list[nn.Parameter]:
        """The encoder, which is trained whole."""
        return [each for each in self.encoder.parameters() if each.requires_grad]

    def other_parameters(self) -> list[nn.Parameter]:
        return list(self.reader.parameters())

    def classifier_parameters(self) -> list[nn.Parameter]:
        return list(self.classifier.parameters())


def load_teacher(given: argparse.Namespace, weights: Path | None = None) -> MPNetTeacher:
    """The network with the encoder of a folder; `weights` are those that `teacher` saved."""
    from transformers import MPNetModel

    encoder = MPNetModel.from_pretrained(given.encoder, add_pooling_layer=False)
    form = _form(given.cascade)
    network = MPNetTeacher(encoder, cls_id=form.cls_id, sep_id=form.sep_id)
    if weights is not None:
        network.load_state_dict(torch.load(weights, weights_only=True))
    return network.to(given.device)


def prepare(given: argparse.Namespace) -> None:
    tokenizer = WordPiece.load(given.cascade / "tokenizer.json")
    given.out.mkdir(parents=True, exist_ok=True)
    passages = load_training_passages(_source(given))
    ContextExamples.of(passages, tokenizer).save(given.out / "train.npz")
    dev = {"squadshifts": paragraph_passages(data.load_paragraphs("squadshifts:dev"))}
    dev["mined"] = read_passages(given.dev) if given.dev else []
    for name, held_out in dev.items():
        if held_out:
            ContextExamples.of(held_out, tokenizer).save(given.out / f"dev-{name}.npz")


def train_teacher(given: argparse.Namespace) -> None:
    torch.manual_seed(given.seed)
    network = load_teacher(given)
    recipe = ContextRecipe(
        learning_rate=given.learning_rate or 4e-5,
        small_rate=1e-3,
        head_rate=3e-4,
        epochs=given.epochs,
        batch_size=given.batch_size,
        seed=given.seed,
        max_seconds=60 * given.minutes,
        max_tokens=given.max_tokens,
    )
    _train(network, given, recipe)
    torch.save({name: one.half() for name, one in network.state_dict().items()}, given.out)


def train_student(given: argparse.Namespace) -> None:
    torch.manual_seed(given.seed)
    folder = ModelFolder.open(given.cascade, kind="cascade")
    config = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    assert config.context is not None
    network = ContextNetwork(
        replace(config, context=None), float_tensors(folder.stored_tensors()), config.context.depths
    ).to(given.device)
    teacher = None
    if given.teacher is not None:
        teacher = load_teacher(given, given.teacher)
        teacher.eval().requires_grad_(False)
    recipe = ContextRecipe(
        learning_rate=given.learning_rate or 5e-4,
        epochs=given.epochs,
        batch_size=given.batch_size,
        seed=given.seed,
        max_seconds=60 * given.minutes,
        max_tokens=given.max_tokens,
    )
    _train(network, given, recipe, teacher)
    save_file(network.tensors(), given.out)


def _train(
    network: Any,
    given: argparse.Namespace,
    recipe: ContextRecipe,
    teacher: MPNetTeacher | None = None,
) -> None:
    """Train in place, and print the loss and the dev figures before and after."""
    examples = ContextExamples.load(given.examples / "train.npz")
    form = _form(given.cascade)
    began, losses = time.monotonic(), list[Tensor]()

    def report(step: TrainingStep) -> None:
        losses.append(step.loss.detach())
        if step.done % 200 == 0:
            loss = float(torch.stack(losses[-200:]).mean())
            print(f"{step.done} {time.monotonic() - began:.0f} s, loss {loss:.4f}", flush=True)

    if teacher is not None:
        _report_dev("teacher", teacher, given, form)
        _report_dev("before", network, given, form)
    train_context(
        network,
        examples,
        form,
        recipe,
        teacher=None if teacher is None else teacher.score,
        on_step=report,
        on_note=print,
    )
    _report_dev("after", network, given, form)


def _report_dev(name: str, network: Any, given: argparse.Namespace, form: WindowFormat) -> None:
    for path in sorted(given.examples.glob("dev-*.npz")):
        found = measure_context(network, ContextExamples.load(path), form)
        rounded = {key: round(value, 2) for key, value in found.items()}
        print(name, path.stem, json.dumps(rounded), flush=True)


def export(given: argparse.Namespace) -> None:
    folder = ModelFolder.open(given.cascade, kind="cascade")
    config = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    assert config.context is not None
    assert config.adapter is not None
    own = [load_file(path) for path in given.own]
    mean = own[0] if len(own) == 1 else average_readers(own, config.adapter.rank)
    windows = sample_windows(load_training_passages(_source(given)), given.seed)
    card = (folder.path / "README.md").read_text(encoding="utf-8")
    write_context(
        folder, mean, config.context, config.adapter, given.out, windows=windows, card=card
    )


def _form(cascade: Path) -> WindowFormat:
    """The windows of the cascade's context pass."""
    folder = ModelFolder.open(cascade, kind="cascade")
    context = CascadeConfig.from_config(folder.config, path=folder.path / "config.json").context
    assert context is not None
    tokenizer = WordPiece.load(folder.path / "tokenizer.json")
    return WindowFormat(
        tokenizer.cls_id, tokenizer.sep_id, context.marker, context.max_length, context.max_title
    )


def _source(given: argparse.Namespace) -> ContextData:
    return ContextData((*SETS, *given.on), tuple(map(str, given.passages)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    for run in (prepare, train_teacher, train_student, export):
        own = commands.add_parser(run.__name__.removeprefix("train_"))
        own.set_defaults(run=run)
        own.add_argument("cascade", type=Path)
        if run in (train_teacher, train_student):
            own.add_argument("examples", type=Path)
        if run is export:
            own.add_argument("own", type=Path, nargs="+")
        if run in (prepare, export):
            own.add_argument("--on", action="append", default=[], help="more sets to train on")
            own.add_argument("--passages", type=Path, action="append", default=[])
        if run is prepare:
            own.add_argument("--dev", type=Path)
        if run in (train_teacher, train_student):
            own.add_argument("--encoder", type=Path, required=run is train_teacher)
            own.add_argument("--learning-rate", type=float)
            own.add_argument("--minutes", type=float, default=8.0)
            own.add_argument("--epochs", type=int, default=4)
            own.add_argument("--batch-size", type=int, default=64)
            own.add_argument("--max-tokens", type=float, default=2**16)
            own.add_argument("--device", default="cuda")
        if run is train_student:
            own.add_argument("--teacher", type=Path)
        own.add_argument("--seed", type=int, default=0)
        own.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.run(given)


if __name__ == "__main__":
    main()
