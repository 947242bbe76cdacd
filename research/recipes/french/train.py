"""
Train the French cascade on a GPU: taught by the English one, then on labels alone.

    python -m research.recipes.french.train data.npz --out first --minutes 6.7
    python -m research.recipes.french.train data.npz --out x --init first --minutes 6.75 --seed 5

The encoder starts from the layers that the English cascade reads passages with; the embeddings of
the French pieces are means of those of aligned English pieces. One encoder learns to score pairs
and to read passages. A step has three parts:

- parallel text: the states of a French token come near those of the aligned English token, and the
  mean state of a text near that of its translation, at seven layers;
- passages: list and point losses of the sentences, the reader's loss, and the divergence from the
  English cascade on the translation;
- pairs: the same losses without a reader, beside the English cascade on the translated pair.

What the teacher adds fades to 0.4 of its weight. With `--init`, there is no teacher. The learning
rate falls with the time, so that a run ends when its minutes are over.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from askline.engine.adapter import float_tensors, merged_weight
from askline.models.encoder_config import DENSE_INPUTS
from askline.models.folder import ModelFolder
from askline.rankers.cascade import shipped_folder
from askline.training.cascade.adapter_networks import WindowBatch, WindowFormat
from askline.training.cascade.context_examples import ContextExamples, Window
from askline.training.cascade.context_training import fit_window
from askline.training.cascade.span_reading import span_loss
from askline.training.losses import segment_log_softmax
from askline.training.packing import PackedBatch, PairTemplate, TokenTable, bert_layer, pack

from .arrays import KINDS

Arrays = Mapping[str, NDArray[Any]]
CONTEXT_DEPTHS, PAIR_DEPTHS = (2, 4, 6, 8, 10, 12), (2, 4, 6, 8, 10)
TAUGHT_LAYERS = (1, 2, 4, 6, 8, 10, 12)
FRENCH = WindowFormat(cls_id=3, sep_id=4, marker=1)
ENGLISH = WindowFormat(cls_id=101, sep_id=102, marker=1, max_length=512)
WEIGHTS = dict(zip(KINDS, (1.3, 1.3, 0.6, 0.6, 2.0, 0.8), strict=True))
"""How often a question is drawn, by its source: forum posts and reviews less, PIAF more often."""
_CONTEXT_WEIGHTS, _PAIR_WEIGHTS = (0.3, 0.3, 0.4, 0.5, 0.7, 1.0), (0.4, 0.5, 0.6, 0.8, 1.0)
_WIDTH, _HEADS, _EPSILON = 384, 12, 1e-12


class Network(nn.Module):
    """A BERT encoder and its heads, with the names of a model folder."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.own = nn.ParameterDict(
            {
                name.replace(".", "/"): nn.Parameter(torch.from_numpy(value.astype(np.float32)))
                for name, value in tensors.items()
            }
        )

    def get(self, name: str) -> Tensor:
        found: Tensor = self.own[name.replace(".", "/")]
        return found

    def dense(self, name: str, inputs: Tensor) -> Tensor:
        return F.linear(inputs, self.get(f"{name}.weight"), self.get(f"{name}.bias"))

    def states(self, batch: PackedBatch, *, layers: int = 12) -> list[Tensor]:
        """The states (tokens, hidden) of the embedding and after every layer."""
        states = F.embedding(batch.tokens, self.get("words.weight"))
        states = states + self.get("positions.weight")[batch.positions]
        states = states + self.get("kinds.weight")[batch.segments]
        norm = self.get("norm.weight"), self.get("norm.bias")
        states = F.layer_norm(states, (_WIDTH,), *norm, _EPSILON)
        if states.is_cuda:
            states = states.bfloat16()
        found = [F.dropout(states, self.dropout, self.training)]
        for number in range(layers):
            found.append(bert_layer(self._layer(number), found[-1], batch))
        return found

    def context_logits(self, depth: int, mean: Tensor) -> Tensor:
        hidden = torch.tanh(self.dense(f"context.{depth}.dense", mean))
        hidden = F.dropout(hidden, 0.1, self.training)
        return self.dense(f"context.{depth}.out", hidden)[:, 0]

    def pair_logits(self, depth: int, mean: Tensor) -> Tensor:
        for number in range(3):
            mean = torch.tanh(self.dense(f"classifiers.{depth}.layers.{number}", mean))
            mean = F.dropout(mean, 0.1, self.training)
        return self.dense(f"classifiers.{depth}.out", mean)[:, 0]

    def _layer(self, number: int) -> Any:
        stem = f"layers.{number}"
        dropped = SimpleNamespace(p=self.dropout, training=self.training)
        parts = {name: self._part(f"{stem}.{name}") for name in DENSE_INPUTS}
        norms = [self._part(f"{stem}.{name}_norm") for name in ("attention", "output")]
        own = SimpleNamespace(**parts, num_attention_heads=_HEADS)
        output = SimpleNamespace(dense=parts["attended"], LayerNorm=norms[0], dropout=dropped)
        return SimpleNamespace(
            attention=SimpleNamespace(self=own, output=output),
            intermediate=SimpleNamespace(dense=parts["inner"], intermediate_act_fn=F.gelu),
            output=SimpleNamespace(dense=parts["outer"], LayerNorm=norms[1], dropout=dropped),
        )

    def _part(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(
            weight=self.get(f"{name}.weight"),
            bias=self.get(f"{name}.bias"),
            normalized_shape=(_WIDTH,),
            eps=_EPSILON,
        )


def english_tensors() -> tuple[dict[str, Any], dict[str, Any]]:
    """The shipped English cascade in float: as it scores pairs, and as it reads passages."""
    stored = ModelFolder.open(shipped_folder("en"), kind="cascade").stored_tensors()
    exact = float_tensors(stored)
    own = ("adapter.", "context.", "reader.")
    pairs = {name: one for name, one in exact.items() if not name.startswith(own)}
    passages = {
        name: one
        for name, one in exact.items()
        if not name.startswith(("adapter.", "classifiers."))
    }
    for name, one in exact.items():
        if name.startswith("adapter.") and not name.endswith((".up.weight", ".down.weight")):
            passages[name.removeprefix("adapter.")] = one
    for layer in range(12):
        for dense in DENSE_INPUTS:
            stem = f"layers.{layer}.{dense}"
            passages[f"{stem}.weight"] = merged_weight(stored, stem)
    return pairs, passages


def initial_tensors(arrays: Arrays) -> dict[str, Any]:
    """The English passage reader with French embeddings and the classifiers of pairs."""
    pairs, passages = english_tensors()
    numbers, weights = arrays["map_i"].astype(np.int64), arrays["map_w"].astype(np.float32)
    table = pairs["words.weight"]
    words = (table[numbers] * weights[:, :, None]).sum(1)
    # A mean of several embeddings is shorter than each: half of the loss is made good.
    usual = (np.linalg.norm(table, axis=1)[numbers] * weights).sum(1, keepdims=True)
    length = np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-6)
    stems = tuple(f"classifiers.{depth}." for depth in PAIR_DEPTHS)
    heads = {name: one for name, one in pairs.items() if name.startswith(stems)}
    return passages | heads | {"words.weight": words * (0.5 + 0.5 * usual / length)}


@dataclass(frozen=True)
class Examples:
    """French examples, the English text of each number, and parallel text of packages."""

    french: ContextExamples
    english: ContextExamples
    alignment: NDArray[Any]
    packages: tuple[TokenTable, TokenTable, NDArray[Any]]
    draw: NDArray[np.float64]
    """The probability of each question."""
    answers: list[tuple[int, ...]]
    spans: list[list[tuple[int, int, int]]]
    has_english: NDArray[np.bool_]
    """By text."""

    @classmethod
    def of(cls, arrays: Arrays) -> Examples:
        names = ContextExamples.__slots__
        french = ContextExamples(**{name: arrays[f"ex_{name}"] for name in names})
        english = ContextExamples(
            **{name: arrays[f"ex_{name}"] for name in names}
            | {"tokens": arrays["en_tokens"], "offsets": arrays["en_offsets"]}
        )
        tables = [
            TokenTable(arrays[f"{name}_tokens"], arrays[f"{name}_offsets"])
            for name in ("tfr", "ten")
        ]
        answers = french.answer_lists()
        weights = np.array([list(WEIGHTS.values())[kind] for kind in arrays["kinds"]])
        draw = weights[french.question_passages] * np.array([bool(own) for own in answers])
        return cls(
            french,
            english,
            arrays["al"],
            (tables[0], tables[1], arrays["tal"]),
            draw / draw.sum(),
            answers,
            french.span_lists(),
            np.diff(arrays["en_offsets"]) > 0,
        )

    def in_english(self, question: int, passage: int) -> bool:
        first = int(self.french.passage_texts[passage])
        asked = int(self.french.question_texts[question])
        return bool(self.has_english[first] and self.has_english[asked])


class Lists(NamedTuple):
    """Sentences or pairs of a step, question by question."""

    labels: Tensor
    questions: Tensor
    asked: int
    weights: Tensor
    """Of the depths."""


def list_loss(
    scores: Tensor, lists: Lists, *, none: float, taught: Tensor | None, rows: Tensor, share: float
) -> Tensor:
    """
    Losses of all depths: list, list with "no answer" as the logit 0, point, and distillation.

    Early depths learn from the last one, and all of them from the teacher's scores `taught`
    (depths, rows), with the weight `share`.
    """
    labels, owners, count = lists.labels, lists.questions, lists.asked
    totals = torch.zeros(count, device=scores.device).index_add(0, owners, labels)
    target = labels / totals[owners].clamp(min=1)
    by_list = -(segment_log_softmax(scores, owners, count) * target).sum(1)
    with_none = _log_shares_with_none(scores, owners, count)
    none_target = torch.cat([target, (totals == 0).float()])
    losses = by_list / (totals > 0).sum().clamp(min=1)
    losses = losses - none * (with_none * none_target).sum(1) / count
    expected = labels.expand_as(scores)
    losses = losses + 0.3 * F.binary_cross_entropy_with_logits(
        scores, expected, reduction="none"
    ).mean(1)
    by_last = -(with_none[:-1] * with_none[-1].detach().exp()).sum(1) / count
    losses = torch.cat([0.6 * losses[:-1] + 0.4 * by_last, losses[-1:]])
    if taught is not None and share > 0:
        theirs = _log_shares_with_none(taught, owners[rows], count)
        own = _log_shares_with_none(scores[:, rows], owners[rows], count)
        known = torch.zeros(count, device=scores.device).index_fill(0, owners[rows], 1.0).sum()
        losses = losses + share * (theirs.exp() * (theirs - own)).sum(1) / known.clamp(min=1)
    return (lists.weights * losses).sum()


def _log_shares_with_none(scores: Tensor, owners: Tensor, count: int) -> Tensor:
    everyone = torch.arange(count, device=scores.device)
    padded = torch.cat([scores, scores.new_zeros(len(scores), count)], 1)
    return segment_log_softmax(padded, torch.cat([owners, everyone]), count)


def means(states: Tensor, owners: Tensor, sizes: Tensor) -> Tensor:
    """(groups, hidden) in float32; tokens whose owner is the number of groups are left out."""
    total = states.new_zeros(len(sizes) + 1, states.shape[1], dtype=torch.float32)
    total = total.index_add(0, owners, states.float())[:-1]
    return total / sizes.clamp(min=1).unsqueeze(1)


def relative_distance(found: Tensor, wanted: Tensor) -> Tensor:
    return F.mse_loss(found.float(), wanted.float()) / wanted.float().square().mean()


class Trainer:
    """The student, its teachers and the drawing of steps."""

    def __init__(
        self,
        examples: Examples,
        network: Network,
        teachers: tuple[Network, Network] | None,
        seed: int,
    ) -> None:
        self.examples, self.network = examples, network
        self.teachers = teachers
        self.random = np.random.default_rng(seed)
        self.device = next(network.parameters()).device

    def draw(self, count: int) -> list[int]:
        draw = self.examples.draw
        return [int(at) for at in self.random.choice(len(draw), count, replace=False, p=draw)]

    def passage_loss(self, questions: Sequence[int], share: float, reading: float) -> Tensor:
        """Sentences of the own passage, of two near ones and of a random one."""
        own, examples, random = self.examples, self.examples.french, self.random
        windows, labels, owners, spans, weights = [], list[float](), list[int](), [], []
        taught, rows = list[Window](), list[int]()
        for number, question in enumerate(questions):
            passage = int(examples.question_passages[question])
            near = examples.near[question]
            near = near[near >= 0]
            absent = random.random() < 0.12 and len(near) > 1
            others = random.choice(near, min(2, len(near)), replace=False).tolist()
            passages = (
                others if absent else [passage, *others, int(random.integers(examples.passages))]
            )
            for at in passages:
                gold = own.answers[question] if at == passage else ()
                first, last = self._crop(examples.sentence_count(at), gold)
                window = Window(question, at, first, last, bool(random.random() < 0.8))
                window = fit_window(examples, window, FRENCH, gold, random)
                inside = range(window.first, window.last)
                if self.teachers and share > 0 and own.in_english(question, at):
                    taught.append(window._replace(has_title=False))
                    rows += range(len(labels), len(labels) + len(inside))
                labels += [float(each in gold) for each in inside]
                owners += [number] * len(inside)
                known = [each for each in own.spans[question] if gold and each[0] in inside]
                spans.append(known[int(random.integers(len(known)))] if known else None)
                weights.append(1.0 if known else 0.0 if gold else 0.05)
                windows.append(window)
        batch = WindowBatch.of(examples, windows, FRENCH, self.device)
        states = self.network.states(batch.packed)
        mean = [means(states[depth], batch.sentence_of, batch.sizes) for depth in CONTEXT_DEPTHS]
        scores = torch.stack(
            [
                self.network.context_logits(depth, each)
                for depth, each in zip(CONTEXT_DEPTHS, mean, strict=True)
            ]
        )
        theirs, near_loss = None, scores.new_zeros(())
        at_rows = torch.tensor(rows, dtype=torch.int64, device=self.device)
        if taught and self.teachers:
            theirs, wanted = self._taught_passages(taught)
            for each, other in zip(mean, wanted, strict=True):
                near_loss = near_loss + relative_distance(each[at_rows], other) / len(mean)
        lists = self._lists(labels, owners, len(questions), _CONTEXT_WEIGHTS)
        loss = list_loss(scores, lists, none=0.3, taught=theirs, rows=at_rows, share=share)
        ends = self.network.dense("reader", states[-1].float())
        targets, used = self._targets(batch, windows, spans, weights)
        return loss + share * near_loss + reading * span_loss(ends, batch.packed, targets, used)

    def _targets(
        self,
        batch: WindowBatch,
        windows: Sequence[Window],
        spans: Sequence[tuple[int, int, int] | None],
        weights: Sequence[float],
    ) -> tuple[Tensor, Tensor]:
        """Per window the tokens of the answer, -1 for none, and the weight of its loss."""
        firsts = batch.packed.starts.cpu().numpy()
        targets = np.full((len(windows), 2), -1, np.int64)
        used = np.array(weights, np.float32)
        sentence = 0
        for at, (window, span) in enumerate(zip(windows, spans, strict=True)):
            if span is not None:
                begin = batch.starts[sentence + span[0] - window.first] - firsts[at]
                targets[at] = begin + span[1], begin + span[2]
                if targets[at, 1] >= firsts[at + 1] - firsts[at] - 1:  # cut off
                    targets[at], used[at] = -1, 0.0
            sentence += window.last - window.first
        return torch.from_numpy(targets).to(self.device), torch.from_numpy(used).to(self.device)

    def _crop(self, count: int, gold: Sequence[int]) -> tuple[int, int]:
        """The whole passage, a run of its sentences, or one of them."""
        random, drawn = self.random, self.random.random()
        if drawn < 0.6 or count < 2:
            return 0, count
        kept = int(random.choice(gold)) if gold else int(random.integers(count))
        if drawn >= 0.88:
            return kept, kept + 1
        return int(random.integers(kept + 1)), int(random.integers(kept + 1, count + 1))

    @torch.no_grad()
    def _taught_passages(self, windows: Sequence[Window]) -> tuple[Tensor, list[Tensor]]:
        assert self.teachers
        teacher = self.teachers[1]
        batch = WindowBatch.of(self.examples.english, windows, ENGLISH, self.device)
        states = teacher.states(batch.packed)
        mean = [means(states[depth], batch.sentence_of, batch.sizes) for depth in CONTEXT_DEPTHS]
        scores = [
            teacher.context_logits(depth, each)
            for depth, each in zip(CONTEXT_DEPTHS, mean, strict=True)
        ]
        return torch.stack(scores), mean

    def pair_loss(self, questions: Sequence[int], share: float) -> Tensor:
        """Sentences of the own paragraph, of near ones and random ones, each alone."""
        own, examples, random = self.examples, self.examples.french, self.random
        first, second, labels, owners, rows = [], [], list[float](), list[int](), list[int]()
        for number, question in enumerate(questions):
            passage = int(examples.question_passages[question])
            gold = own.answers[question]
            near = examples.near[question]
            near = near[near >= 0]
            others = [at for at in range(examples.sentence_count(passage)) if at not in gold]
            chosen = [(passage, int(random.choice(gold)), 1.0)]
            chosen += [(passage, at, 0.0) for at in random.permutation(others)[:5].tolist()]
            count = min(4 if others else 6, len(near))
            elsewhere = random.choice(near, count, replace=False).tolist()
            elsewhere += random.integers(examples.passages, size=2).tolist()
            chosen += [
                (at, int(random.integers(examples.sentence_count(at))), 0.0)
                for at in elsewhere
                if at != passage
            ]
            for at, sentence, label in chosen:
                if self.teachers and share > 0 and own.in_english(question, at):
                    rows.append(len(labels))
                first.append(int(examples.question_texts[question]))
                second.append(int(examples.passage_texts[at]) + sentence)
                labels.append(label)
                owners.append(number)
        pairs = np.array(first), np.array(second)
        scores, theirs = self._pair_scores(self.network, own.french, FRENCH, *pairs), None
        at_rows = torch.tensor(rows, dtype=torch.int64, device=self.device)
        if rows and self.teachers:
            with torch.no_grad():
                chosen_first, chosen_second = (each[np.array(rows)] for each in pairs)
                theirs = self._pair_scores(
                    self.teachers[0], own.english, ENGLISH, chosen_first, chosen_second
                )
        lists = self._lists(labels, owners, len(questions), _PAIR_WEIGHTS)
        return 0.7 * list_loss(scores, lists, none=0.1, taught=theirs, rows=at_rows, share=share)

    def _pair_scores(
        self,
        network: Network,
        texts: ContextExamples,
        form: WindowFormat,
        first: NDArray[Any],
        second: NDArray[Any],
    ) -> Tensor:
        table = TokenTable(texts.tokens, texts.offsets)
        batch = pack(table, first, second, _template(form), device=self.device)
        states = network.states(batch, layers=PAIR_DEPTHS[-1])
        sizes = batch.starts[1:] - batch.starts[:-1]
        return torch.stack(
            [
                network.pair_logits(depth, means(states[depth], batch.owners, sizes))
                for depth in PAIR_DEPTHS
            ]
        )

    def parallel_loss(self, count: int) -> Tensor:
        """Pairs of parallel texts: tokens by their alignment, and means of texts."""
        assert self.teachers
        drawn = [self._parallel_text() for _ in range(2 * count)]
        ours, theirs = (
            TokenTable(np.concatenate(own), np.cumsum([0, *map(len, own)]))
            for own in ([each[side] for each in drawn] for side in (0, 1))
        )
        first, second = np.arange(0, 2 * count, 2), np.arange(1, 2 * count, 2)
        batch = pack(ours, first, second, _template(FRENCH), first_limit=120, device=self.device)
        other = pack(theirs, first, second, _template(ENGLISH), first_limit=120, device=self.device)
        found = self.network.states(batch)
        with torch.no_grad():
            wanted = self.teachers[1].states(other)
        here, there = [], []
        starts, their_starts = batch.starts.tolist(), other.starts.tolist()
        for number in range(count):
            place, their_place = starts[number] + 1, their_starts[number] + 1
            for one, two, aligned in drawn[2 * number : 2 * number + 2]:
                tokens = np.flatnonzero(aligned >= 0)
                here.append(place + tokens)
                there.append(their_place + aligned[tokens].astype(np.int64))
                place, their_place = place + len(one) + 1, their_place + len(two) + 1
        at = torch.from_numpy(np.concatenate(here)).to(self.device)
        to = torch.from_numpy(np.concatenate(there)).to(self.device)
        loss = torch.zeros((), device=self.device)
        for layer in TAUGHT_LAYERS:
            loss = loss + relative_distance(found[layer][at], wanted[layer][to])
            loss = loss + relative_distance(
                _text_means(found[layer], batch), _text_means(wanted[layer], other)
            )
        return 3.0 * loss / len(TAUGHT_LAYERS)

    def _parallel_text(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """French tokens, English tokens, and for each French token the English one or -1."""
        own, random = self.examples, self.random
        if random.random() < 0.6:
            at = int(random.choice(np.flatnonzero(own.has_english)))
            start, end = own.french.offsets[at : at + 2].tolist()
            french, english = own.french.text(at), own.english.text(at)
            aligned = own.alignment[start:end]
        else:
            table, other, alignment = own.packages
            at = int(random.integers(len(table)))
            start, end = table.offsets[at : at + 2].tolist()
            french, aligned = table.tokens[start:end], alignment[start:end]
            english = other.tokens[other.offsets[at] : other.offsets[at + 1]]
        french, english, aligned = french[:120], english[:120], aligned[:120]
        return french, english, np.where(aligned < len(english), aligned, -1)

    def _lists(
        self, labels: Sequence[float], owners: Sequence[int], asked: int, weights: Sequence[float]
    ) -> Lists:
        numbers = torch.tensor(owners, dtype=torch.int64, device=self.device)
        depth_weights = torch.tensor(weights, device=self.device)
        return Lists(torch.tensor(labels, device=self.device), numbers, asked, depth_weights)


def _template(form: WindowFormat) -> PairTemplate:
    begin, end = np.array([form.cls_id], np.int32), np.array([form.sep_id], np.int32)
    return PairTemplate(begin, end, end, (0, 0, 0, 1, 1), True, 0)


def _text_means(states: Tensor, batch: PackedBatch) -> Tensor:
    """The mean state of each first and each second text, special tokens included."""
    owners = 2 * batch.owners + batch.segments
    return means(states, owners, torch.bincount(owners, minlength=2 * len(batch)))


def train(trainer: Trainer, options: argparse.Namespace) -> Iterator[str]:
    """Train in place; a line about each hundred steps."""
    network, start, step = trainer.network, time.monotonic(), 0
    words = [network.get("words.weight")]
    stems = ("classifiers", "context", "reader")
    heads = [value for name, value in network.own.items() if name.startswith(stems)]
    known = {id(value) for value in (*words, *heads)}
    body = [value for value in network.parameters() if id(value) not in known]
    rates = (options.rate, options.word_rate, options.head_rate)
    groups = [
        {"params": own, "lr": rate, "weight_decay": decay, "peak": rate}
        for own, rate, decay in zip((body, words, heads), rates, (0.01, 0.0, 0.01), strict=True)
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-6)
    network.train()
    while (progress := (time.monotonic() - start) / (60 * options.minutes)) < 1:
        factor = min(progress / 0.04, (1 - progress) / 0.96)
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * max(factor, 0.005)
        share = max(0.4, 1 - 0.7 * progress) if trainer.teachers else 0.0
        if share:
            torch.autograd.backward(share * trainer.parallel_loss(options.parallel))
        passages = trainer.draw(options.passages)
        loss = trainer.passage_loss(passages, share, options.reading)
        torch.autograd.backward(loss)
        torch.autograd.backward(trainer.pair_loss(trainer.draw(options.pairs), share))
        nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if step % 100 == 1:
            yield f"step {step}, {time.monotonic() - start:.0f} s: loss {loss.item():.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("data", type=Path, help="made by research.recipes.french.arrays")
    parser.add_argument("--out", type=Path, required=True, help="a safetensors file")
    parser.add_argument("--init", type=Path, help="a safetensors file to go on from")
    parser.add_argument("--minutes", type=float, default=6.7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1e-4, help="peak, of the layers")
    parser.add_argument("--word-rate", type=float, default=8e-4)
    parser.add_argument("--head-rate", type=float, default=5e-4)
    parser.add_argument("--reading", type=float, default=1.0, help="weight of the reader")
    parser.add_argument("--passages", type=int, default=64, help="questions per step")
    parser.add_argument("--pairs", type=int, default=40, help="questions per step")
    parser.add_argument("--parallel", type=int, default=400, help="pairs of texts per step")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    with np.load(options.data) as found:
        arrays = dict(found)
    tensors = load_file(options.init) if options.init else initial_tensors(arrays)
    network = Network(tensors, 0.1).to(options.device)
    teachers = None
    if not options.init:
        one, other = (Network(own, 0.0).to(options.device).eval() for own in english_tensors())
        teachers = (one.requires_grad_(False), other.requires_grad_(False))
    for line in train(Trainer(Examples.of(arrays), network, teachers, options.seed), options):
        print(line, flush=True)
    trained = {
        name.replace("/", "."): value.detach().cpu().numpy().astype(np.float16)
        for name, value in network.own.items()
    }
    save_file(trained, options.out)


if __name__ == "__main__":
    main()
