"""
Distil the document encoder of the phrase model: fewer layers that give the same states.

    ASKLINE_DATA=DIR python -m research.recipes.phrase_documents prepare TEXT… --out EXAMPLES
    ASKLINE_DATA=DIR python -m research.recipes.phrase_documents train EXAMPLES \\
        --layers 1,3,5,7,9,11 --inner 768 --seconds 1500 --device cuda --out LAYERS
    ASKLINE_DATA=DIR python -m research.recipes.phrase_documents export LAYERS \\
        --card FILE --out FOLDER

`prepare` tokenizes the training paragraphs of the phrase model with their questions, the SQuAD
train pairs, and files of plain text. The student starts with some layers of the shipped encoder and
with the feed-forward neurons that add most to them. It learns the teacher's states, spans, vectors
and word weights, and its scores of candidates for the questions of a window and for others. The
embeddings and everything that encodes questions stay as they are. `export` adds the layers to the
shipped model in int8.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from askline.data.squad import Paragraph
from askline.engine.adapter import float_tensors
from askline.engine.quantization import unpack_int4
from askline.models.folder import shipped_model_folder
from askline.models.huggingface import from_huggingface_names
from askline.phrases.phrase_encoder import PhraseEncoder
from askline.phrases.phrase_model import (
    PhraseConfig,
    PhraseModel,
    document_tensors,
    read_phrase_folder,
)
from askline.phrases.tokenization import (
    MAX_PHRASE_TOKENS,
    TokenWindow,
    cut_windows,
    load_tokenizer,
    tokenize_question,
)
from askline.training.loop import SeededOnceTask, TrainingRecipe, run_training
from askline.training.optimizer import AdamW, Optimizer, ParameterGroup
from askline.training.phrases.phrase_export import add_document_encoder, bert_encoder, layer_inputs
from askline.training.phrases.phrase_networks import (
    MASKED,
    Extractor,
    PhraseNetwork,
    QuestionCodes,
    attend_within_blocks,
)
from askline.training.phrases.phrase_training import device_of, prefetch
from askline.training.phrases.phrase_workflow import PhraseRun, answer_within, candidate_recall
from askline.training.transformer.pair_network import autocast
from research.benchmarks.common import data_root
from research.benchmarks.phrase_extractor import split

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]

LOSSES = {
    "states": 2.0,
    "between": 1.0,  # of the layers below; falls to 0 during the training
    "starts": 0.5,
    "ends": 0.5,
    "vectors": 2.0,
    "words": 1.0,
    "any dense": 0.25,  # scores of all questions, without and with the weights of words
    "any whole": 0.25,
    "own dense": 0.5,  # scores of the questions about a window
    "own whole": 1.0,
    "batch dense": 0.25,  # the same, over the candidates of all windows
    "batch whole": 0.25,
}
SIZES = {96: 8, 128: 15, 160: 20, 192: 17, 224: 12, 256: 12, 320: 8, 384: 8}
"""Tokens of a window, special tokens included, with their percentage of the batches."""
QUESTIONS, OTHERS = 4, 32
"""Questions per window, and questions about other texts per step."""
STARTS, CANDIDATES = 48, 64
QUESTION_TOKENS = 40
SHORTEST = 60
"""Tokens of a document that is drawn because of its questions."""
STEPS_PER_EPOCH = 500


# Examples


@dataclass(frozen=True, slots=True, eq=False)
class DistillationExamples:
    """Documents as one stream of tokens, and questions about some of them."""

    tokens: Ints
    opens: Flags
    """Whether a phrase may start at a token."""
    closes: Flags
    offsets: NDArray[np.int64]
    """Document i has the tokens from offsets[i] up to offsets[i + 1]."""
    questions: Ints
    """(questions, QUESTION_TOKENS), padded with -1."""
    owners: NDArray[np.int64]
    """The document of each question."""
    special: Ints
    """The tokens before and after a text."""

    @classmethod
    def of(
        cls, documents: Iterable[tuple[str, Sequence[str]]], tokenizer: Any
    ) -> DistillationExamples:
        """Tokenize texts with their questions; texts of less than five tokens are left out."""
        windows, questions, owners = list[TokenWindow](), list[Ints](), list[int]()
        for text, asked in documents:
            for window in cut_windows(text, tokenizer, size=10**9):  # at most one
                if len(window) >= 7:
                    owners += [len(windows)] * len(asked)
                    questions += [_padded(tokenize_question(one, tokenizer)) for one in asked]
                    windows.append(window)
        return cls(
            np.concatenate([one.tokens[1:-1] for one in windows]),
            np.concatenate([one.may_start[1:-1] for one in windows]),
            np.concatenate([one.may_end[1:-1] for one in windows]),
            np.cumsum([0, *(len(one) - 2 for one in windows)]),
            np.stack(questions),
            np.array(owners),
            windows[0].tokens[[0, -1]],
        )

    def save(self, path: Path) -> None:
        """Write one compressed file of arrays."""
        with path.open("wb") as stream:
            np.savez_compressed(stream, **{name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def load(cls, path: Path) -> DistillationExamples:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as found:
            return cls(**{name: found[name] for name in cls.__slots__})


def _padded(question: Ints) -> Ints:
    """The end of a long question is cut."""
    kept = np.append(question[: QUESTION_TOKENS - 1], question[-1])[: len(question)]
    return np.pad(kept, (0, QUESTION_TOKENS - len(kept)), constant_values=-1)


def training_documents(texts: Sequence[Path]) -> Iterator[tuple[str, Sequence[str]]]:
    """The paragraphs and pairs that the phrase model was trained on, and files of plain text."""
    paragraphs, held = split(data_root())
    for paragraph in paragraphs:
        yield paragraph.text, [question.text for question in paragraph.questions]
    unseen = " ".join({paragraph.text for paragraph in held})
    with (data_root() / "squad/train-pairs.jsonl").open(encoding="utf-8") as lines:
        for pair in map(json.loads, lines):
            if pair["sentence"] not in unseen:
                yield pair["sentence"], [pair["question"]]
    for path in texts:
        yield path.read_text("utf-8"), []


# Batches


class Batch(NamedTuple):
    """Windows of about the same length, and questions: first those about them, then others."""

    tokens: Tensor  # (windows, tokens)
    mask: Tensor
    padded: Tensor
    """The mask with up to three more last tokens, as the engine adds them to fill blocks."""
    opens: Tensor
    closes: Tensor
    questions: Tensor  # (questions, QUESTION_TOKENS)
    asked: Tensor  # (questions, QUESTION_TOKENS): whether there is a token
    home: Tensor  # (own questions,): the window of each question about one


class WindowSampler:
    """Draws windows of one piece of a document or of several pieces, at most `longest` tokens."""

    def __init__(self, examples: DistillationExamples, tokens: int, *, longest: int) -> None:
        self._examples, self._tokens = examples, tokens
        self._sizes = [size for size in SIZES if size <= longest]
        self._shares = np.array([SIZES[size] for size in self._sizes], float)
        self._asked: list[list[int]] = [[] for _ in examples.offsets[1:]]
        for question, owner in enumerate(examples.owners.tolist()):
            self._asked[owner].append(question)
        lengths = enumerate(np.diff(examples.offsets))
        asked = [at for at, length in lengths if self._asked[at] and length > SHORTEST]
        self._with_questions = np.array(asked)

    def batch(self, random: np.random.Generator) -> Batch:
        """A batch of about `tokens` tokens, padding included."""
        examples = self._examples
        size = int(random.choice(self._sizes, p=self._shares / self._shares.sum()))
        rows = max(1, self._tokens // size)
        tokens = np.zeros((rows, size), np.int64)
        mask, padded, opens, closes = (np.zeros((rows, size), bool) for _ in range(4))
        asked, home = list[int](), list[int]()
        for row in range(rows):
            pieces = self._window(random, size)
            body = np.concatenate([np.arange(first, last) for first, last, _ in pieces])
            inner = slice(1, len(body) + 1)
            tokens[row, inner] = examples.tokens[body]
            end = len(body) + 2 + int(random.integers(4))
            tokens[row, 0], tokens[row, len(body) + 1 : end] = examples.special
            mask[row, : len(body) + 2] = padded[row, :end] = True
            opens[row, inner], closes[row, inner] = examples.opens[body], examples.closes[body]
            own = [question for _, _, document in pieces for question in self._asked[document]]
            for at in random.permutation(len(own))[:QUESTIONS].tolist():
                asked.append(own[at])
                home.append(row)
        asked += random.integers(len(examples.questions), size=OTHERS).tolist()
        questions = examples.questions[asked].astype(np.int64)
        arrays = (tokens, mask, padded, opens, closes, questions.clip(0), questions >= 0)
        return Batch(*map(torch.from_numpy, (*arrays, np.array(home, np.int64))))

    def _window(self, random: np.random.Generator, size: int) -> list[tuple[int, int, int]]:
        """Token ranges and their documents, for a window of at most `size` tokens."""
        room, pieces = size - 2, list[tuple[int, int, int]]()
        single = random.random() < 0.5  # small files have several paragraphs of one kind
        while room > 24 and len(pieces) < 13:
            pieces.append(self._piece(random, room))
            room -= pieces[-1][1] - pieces[-1][0]
            if single and room < 0.5 * size:
                break
        return pieces

    def _piece(self, random: np.random.Generator, most: int) -> tuple[int, int, int]:
        """A range of at most `most` tokens, cut between words, and its document."""
        examples = self._examples
        if random.random() < 0.5:
            document = int(random.choice(self._with_questions))
        else:  # by tokens, so that a long document is read as a whole
            token = random.integers(len(examples.tokens))
            document = int(np.searchsorted(examples.offsets[1:], token, side="right"))
        begin, end = examples.offsets[document : document + 2].tolist()
        if end - begin <= most:
            return begin, end, document
        if random.random() < 0.4:  # as the first window of a text
            return begin, begin + most, document
        first = int(random.integers(begin, end - most + 1))
        while first > begin and not examples.opens[first]:
            first -= 1
        last = min(end, first + most)
        while last > first + 1 and not examples.closes[last - 1]:
            last -= 1
        return first, last, document


# Networks


def read_tensors(folder: Path) -> tuple[PhraseConfig, dict[str, Floats]]:
    """The config and all tensors of a phrase model, in float."""
    config, stored, heads = read_phrase_folder(folder)
    tensors = float_tensors(stored)
    if stored["words.weight"].dtype == np.uint8:
        tensors["words.weight"] = unpack_int4(stored["words.weight"], stored["words.scale"])
    return config, {**tensors, **heads}


class DocumentNetwork(PhraseNetwork):
    """Encoder and heads of a phrase model; a student leaves questions to its teacher."""

    def __init__(
        self,
        config: PhraseConfig,
        tensors: Mapping[str, Floats],
        teacher: PhraseNetwork | None = None,
    ) -> None:
        encoder = bert_encoder(config.encoder, tensors, dropout=0.0)
        self._block = config.encoder.block
        if self._block:
            attend_within_blocks(encoder, self._block)
        super().__init__(encoder, "span", size=config.size)
        heads = {name: torch.from_numpy(tensors[name]) for name in config.head_shapes()}
        self.load_state_dict(heads, strict=False)
        self._teacher = (teacher,)  # in a tuple: its weights are not those of the student
        fixed = ("encoder.embeddings.", "question.", "trust.", "lexical.own.", "lexical.expand.")
        for name, value in self.named_parameters():
            value.requires_grad_(
                teacher is not None and not name.startswith((*fixed, "lexical.threshold"))
            )

    def encode_questions(self, tokens: Tensor, mask: Tensor) -> QuestionCodes:
        """By the teacher, if there is one."""
        teacher = self._teacher[0]
        if teacher is None:
            return super().encode_questions(tokens, mask)
        return teacher.encode_questions(tokens, mask)

    def all_states(self, batch: Batch) -> list[Tensor]:
        """The states (windows, tokens, width) after each layer."""
        with autocast(device_of(self)):
            mask = (batch.padded if self._block else batch.mask).long()
            found = self.encoder(batch.tokens, attention_mask=mask, output_hidden_states=True)
        return [states.float() for states in found.hidden_states[1:]]

    def score_spans(self, states: Tensor, batch: Batch, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Log P(start) (windows, tokens), and log P(end | start) for starts (windows, starts)."""
        rows = torch.arange(len(starts), device=starts.device).repeat_interleave(starts.shape[1])
        ends = self.spans.score_ends(states, batch.closes, rows, starts.flatten())
        return self.spans.score_starts(states, batch.opens), ends.view(*starts.shape, -1)

    def codes(self, states: Tensor, batch: Batch, spans: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors (windows, spans, size) and weights (windows, spans, tokens) of words."""
        assert self.lexical is not None
        rows = torch.arange(len(states), device=states.device)[:, None, None]
        joined = states[rows, spans].flatten(2)
        return self.phrase(joined), self.lexical.phrase(joined, states, batch.mask)

    def question_codes(self, batch: Batch) -> tuple[QuestionCodes, Tensor]:
        """Codes, and weights (questions, windows, tokens) of the words of windows."""
        words, places = torch.unique(batch.tokens, return_inverse=True)
        table = self.encoder.get_input_embeddings().weight[words]
        with autocast(device_of(self)):
            codes = self.encode_questions(batch.questions, batch.asked)
        assert self.lexical is not None
        assert codes.seeks is not None
        assert codes.own is not None
        wanted = self.lexical.wanted(codes.seeks, codes.own, batch.questions, words, table)
        return codes, wanted[:, places]


def student_tensors(
    tensors: Mapping[str, Floats], activations: Sequence[Floats], layers: Sequence[int], inner: int
) -> dict[str, Floats]:
    """
    The tensors with these layers alone, and with `inner` feed-forward neurons in each.

    Neurons are kept that add most to the states: the mean activation times the output weights.
    """
    found = {name: value for name, value in tensors.items() if not name.startswith("layers.")}
    for at, layer in enumerate(layers):
        stem = f"layers.{layer}."
        own = {name[len(stem) :]: tensors[name] for name in tensors if name.startswith(stem)}
        size = activations[layer] * np.linalg.norm(own["outer.weight"], axis=0)
        kept = np.sort(np.argsort(-size, kind="stable")[:inner])
        own["inner.weight"], own["inner.bias"] = own["inner.weight"][kept], own["inner.bias"][kept]
        own["outer.weight"] = own["outer.weight"][:, kept]
        found |= {f"layers.{at}.{name}": value for name, value in own.items()}
    return found


def started_tensors(folder: Path, layers: Sequence[int]) -> dict[str, Floats]:
    """The heads of a phrase model, and these layers of its document encoder."""
    config, tensors = read_tensors(folder)
    documents = document_tensors(tensors)
    found = {name: tensors[name] for name in config.head_shapes()}
    for at, layer in enumerate(layers):
        stem = f"layers.{layer}."
        for name in documents:
            if name.startswith(stem):
                found[f"layers.{at}.{name.removeprefix(stem)}"] = documents[name]
    return found


# Training


class Distillation(SeededOnceTask[Batch]):
    """
    Training of a student with AdamW; the learning rate rises over 100 steps and falls to 0.

    `layers` are those of the teacher whose states the student's layers shall give.
    """

    def __init__(
        self,
        student: DocumentNetwork,
        teacher: DocumentNetwork,
        layers: Sequence[int],
        sampler: WindowSampler,
        recipe: TrainingRecipe,
    ) -> None:
        self.network, self.recipe, self._teacher = student, recipe, teacher
        self._student, self._layers, self._sampler = student, layers, sampler
        self._variances: list[Tensor] = []  # of the teacher's states in the first batch, (width,)
        self._progress, self._steps = 0.0, 0

    @property
    def steps_per_epoch(self) -> int:
        return STEPS_PER_EPOCH

    def new_optimizer(self) -> Optimizer:
        values = [value for value in self.network.parameters() if value.requires_grad]
        rate, most = self.recipe.learning_rate, self.recipe.max_gradient_norm
        groups = [
            ParameterGroup([one for one in values if one.dim() > 1], rate, 0.01),
            ParameterGroup([one for one in values if one.dim() < 2], rate),
        ]
        return AdamW(self.network, groups, max_gradient_norm=most, betas=(0.9, 0.98))

    def schedule(self, progress: float) -> float:
        """Called once before each step."""
        self._progress, self._steps = progress, self._steps + 1
        return min((self._steps - 1) / 100, 1.0, (1 - progress) / 0.95)

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[Batch]:  # noqa: ARG002
        device = device_of(self.network)
        drawn = (self._sampler.batch(random) for _ in range(self.steps_per_epoch))
        for batch in prefetch(drawn):
            yield Batch(*(one.to(device, non_blocking=True) for one in batch))

    def loss(self, part: Batch) -> Tensor:
        losses = self.losses(part)
        losses["between"] = losses["between"] * (1 - self._progress)
        return torch.stack([LOSSES[name] * one for name, one in losses.items()]).sum()

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """The losses by the names in LOSSES; without questions about the windows not all."""
        with torch.no_grad():
            every = self._teacher.all_states(batch)
            goals = [every[layer] for layer in self._layers]
            if not self._variances:
                self._variances = [one[batch.mask].var(0).clamp(min=1e-4) for one in goals]
            opens = self._teacher.spans.score_starts(goals[-1], batch.opens)
            top = opens.topk(min(STARTS, opens.shape[1]), -1).indices  # (windows, starts)
            goal_starts, goal_ends = self._teacher.score_spans(goals[-1], batch, top)
            log = goal_starts.gather(1, top)[..., None] + goal_ends
            log = log.masked_fill(~_possible_ends(batch.closes, top), -1e6)
            noisy = log + 0.5 * torch.randn_like(log)
            places = noisy.flatten(1).topk(CANDIDATES, -1).indices  # (windows, candidates)
            goal_log = log.flatten(1).gather(1, places)
            filled = goal_log > MASKED / 2
            first = top.gather(1, places // MAX_PHRASE_TOKENS)
            last = (first + places % MAX_PHRASE_TOKENS).clamp(max=opens.shape[1] - 1)
            spans = torch.stack([first, last], -1)
            goal_codes = self._teacher.codes(goals[-1], batch, spans)
            questions, wanted = self._teacher.question_codes(batch)
            goal_scores = _scores(questions, wanted, goal_codes, goal_log.clamp(min=-30))
        states = self._student.all_states(batch)
        starts, ends = self._student.score_spans(states[-1], batch, top)
        codes = self._student.codes(states[-1], batch, spans)
        log = (starts.gather(1, top)[..., None] + ends).flatten(1).gather(1, places)
        scores = _scores(questions, wanted, codes, log.clamp(min=-30))
        *between, final = (
            ((one - goal).square() / variance).mean(-1)[batch.mask].mean()
            for one, goal, variance in zip(states, goals, self._variances, strict=True)
        )
        weights = goal_starts.gather(1, top).exp()
        found = {
            "states": final,
            "between": torch.stack(between).mean() if between else final * 0,
            "starts": _divergence(starts, goal_starts).mean(),
            "ends": (_divergence(ends, goal_ends) * weights).sum() / len(top),
        }
        for name, one, goal in zip(("vectors", "words"), codes, goal_codes, strict=True):
            size = goal[filled].square().sum(-1).mean().clamp(min=1e-6)
            found[name] = (one - goal)[filled].square().sum(-1).mean() / size
        own = (torch.arange(len(batch.home), device=batch.home.device), batch.home)
        for name in scores:
            one, goal = (each[name].masked_fill(~filled, MASKED) for each in (scores, goal_scores))
            found[f"any {name}"] = _softmax_divergence(one, goal)
            if len(batch.home):
                found[f"own {name}"] = _softmax_divergence(one[own], goal[own])
                rows = slice(len(batch.home))
                found[f"batch {name}"] = _softmax_divergence(
                    one[rows].flatten(1), goal[rows].flatten(1)
                )
        return found


def _scores(
    questions: QuestionCodes, wanted: Tensor, codes: tuple[Tensor, Tensor], log: Tensor
) -> dict[str, Tensor]:
    """Scores (questions, windows, candidates), without and with the weights of words."""
    dense = torch.einsum("qd,pad->qpa", questions.dense.float(), codes[0])
    dense = dense + questions.trust[:, None, None] * log
    return {"dense": dense, "whole": dense + torch.einsum("qpt,pat->qpa", wanted, codes[1])}


def _possible_ends(closes: Tensor, starts: Tensor) -> Tensor:
    """Whether a phrase may end (windows, starts, lengths) after these starts."""
    after = F.pad(closes, (0, MAX_PHRASE_TOKENS - 1)).unfold(1, MAX_PHRASE_TOKENS, 1)
    return after[torch.arange(len(starts), device=starts.device)[:, None], starts]


def _divergence(student: Tensor, teacher: Tensor) -> Tensor:
    """KL divergence of log-probabilities over the last axis."""
    return (teacher.exp() * (teacher - student)).sum(-1)


def _softmax_divergence(student: Tensor, teacher: Tensor) -> Tensor:
    return _divergence(student.log_softmax(-1), teacher.log_softmax(-1)).mean()


def some_texts(paragraphs: Sequence[Paragraph]) -> list[str]:
    """Training texts on which the sizes of activations are measured."""
    order = np.random.default_rng(0).permutation(len(paragraphs))
    return [paragraphs[at].text for at in order[:60]]


def train(given: argparse.Namespace) -> None:
    """Train, measure on the held-out paragraphs after each epoch, write the student's tensors."""
    layers, device = [int(layer) for layer in given.layers.split(",")], given.device
    recipe = TrainingRecipe(
        epochs=-(-given.steps // STEPS_PER_EPOCH),
        learning_rate=given.rate,
        max_gradient_norm=1.0,
        max_seconds=given.seconds,
        max_steps=given.steps,
    )
    torch.set_float32_matmul_precision("high")
    config, tensors = read_tensors(given.model)
    tokenizer = load_tokenizer(given.model)
    teacher = DocumentNetwork(config, tensors).to(device).eval()
    paragraphs, dev = split(data_root())
    encoder = PhraseEncoder(config.encoder, tensors)
    heads = {name: tensors[name] for name in config.head_shapes()}
    model = PhraseModel(config, encoder, heads, tokenizer)
    reads = layer_inputs(model, encoder, some_texts(paragraphs))
    activations = [np.abs(read["activated"]).mean(0) for read in reads]
    shape = replace(config.encoder, layers=len(layers), inner=given.inner, block=given.block)
    chosen = student_tensors(tensors, activations, layers, given.inner)
    if given.start:
        own = given.start_layers or ",".join(map(str, range(len(layers))))
        chosen |= started_tensors(given.start, [int(layer) for layer in own.split(",")])
    student = DocumentNetwork(replace(config, encoder=shape), chosen, teacher).to(device)
    windows = PhraseRun(tokenizer, window=config.window).windows(dev)

    def measure(network: DocumentNetwork = student) -> dict[str, float]:
        extractor = Extractor.sharing(network.encoder, network.spans)
        found = extractor.extract([one.window for one in windows])
        figures = {
            "nearest": answer_within(network, windows, found, dev, tokenizer).percent,
            "candidates": candidate_recall(windows, found, dev).percent,
        }
        return {f"{name}, {own}": figures[name][own] for name in figures for own in figures[name]}

    print("teacher", measure(teacher), flush=True)
    examples = DistillationExamples.load(given.examples)
    sampler = WindowSampler(examples, given.tokens, longest=config.window)
    task = Distillation(student, teacher, layers, sampler, recipe)
    run_training([task], evaluate=measure, on_epoch=lambda epoch: print(epoch, flush=True))
    state = {name: value.float().cpu().numpy() for name, value in student.state_dict().items()}
    renamed = {name.removeprefix("encoder."): value for name, value in state.items()}
    found = from_huggingface_names(renamed, len(layers)) | state
    kept = ("layers.", "phrase.", "spans.", "lexical.")
    save_file({name: found[name] for name in found if name.startswith(kept)}, given.out)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--model", type=Path, help="by default the shipped one")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("prepare")
    one.add_argument("texts", type=Path, nargs="*", help="files of plain text")
    two = commands.add_parser("train")
    two.add_argument("examples", type=Path)
    two.add_argument("--layers", default="1,3,5,7,9,11", help="of the teacher, counted from 0")
    two.add_argument("--inner", type=int, default=768, help="feed-forward size")
    two.add_argument("--block", type=int, default=0, help="of `EncoderConfig`")
    two.add_argument("--start", type=Path, help="a folder whose document encoder is trained on")
    two.add_argument("--start-layers", help="of its document encoder [default: the first]")
    two.add_argument("--steps", type=int, default=100_000)
    two.add_argument("--seconds", type=float, default=float("inf"))
    two.add_argument("--tokens", type=int, default=16_384, help="per step, padding included")
    two.add_argument("--rate", type=float, default=5e-4)
    two.add_argument("--device", default="cpu")
    three = commands.add_parser("export")
    three.add_argument("layers", type=Path)
    three.add_argument("--block", type=int, default=0, help="as in the training")
    three.add_argument("--card", type=Path, required=True)
    for command in (one, two, three):
        command.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.model = given.model or shipped_model_folder("phrases")
    if given.command == "prepare":
        tokenizer = load_tokenizer(given.model)
        DistillationExamples.of(training_documents(given.texts), tokenizer).save(given.out)
    elif given.command == "train":
        train(given)
    else:
        texts = some_texts(split(data_root())[0])
        card, state = given.card.read_text("utf-8"), load_file(given.layers)
        add_document_encoder(
            *(given.model, state, given.out), card=card, texts=texts, block=given.block
        )


if __name__ == "__main__":
    main()
