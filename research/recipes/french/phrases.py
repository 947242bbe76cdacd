"""
Train the French phrase model on a GPU, from the encoder of the French cascade.

    ASKLINE_DATA=DIR python -m research.recipes.french.phrases data --out data.json.gz
    python -m research.recipes.french.phrases start --out start.safetensors
    python -m research.recipes.french.phrases prepare data.json.gz --start start.safetensors \\
        --layers 10 --work WORK
    python -m research.recipes.french.phrases seed 1 --work WORK      # several seeds at once
    python -m research.recipes.french.phrases join --work WORK --out RUN
    ASKLINE_DATA=DIR python -m research.recipes.french.phrases export RUN --out FOLDER

`data` writes the paragraphs: PIAF without the held-out articles, the translated SQuADShifts and
SQuAD paragraphs (`squadshifts-fr`), and the held-out articles of PIAF as dev. `start` writes the
encoder and the reader of `cascade-fr` with word embeddings in 4 bits. The training is that of the
English phrase model: an extractor and two readers, which are trained on half of the paragraphs each
and score the other half (`prepare`), then extractor and phrase encoder together (`seed`). The
readers also mark the answers of translated questions whose answer was lost in translation; the
sentence of the answer is known. `join` writes one seed or the mean of their weights, the better one
on dev.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from askline.data.squad import AnswerSpan, Paragraph, SpanQuestion
from askline.engine.adapter import float_tensors
from askline.engine.quantization import pack_int4, quantize_rows, unpack_int4
from askline.evaluation.measures import Language, PhraseScores, normalize_phrase
from askline.models.encoder_config import EncoderConfig
from askline.phrases.tokenization import load_tokenizer
from askline.rankers.cascade import shipped_folder
from askline.training.checkpoint import Epoch, average_weights
from askline.training.phrases.contrastive_training import (
    PhraseExample,
    make_example,
    train_phrases,
)
from askline.training.phrases.phrase_export import bert_encoder, export_phrases
from askline.training.phrases.phrase_extractor import Extractor, train_extractor
from askline.training.phrases.phrase_network import PhraseNetwork
from askline.training.phrases.phrase_teacher import (
    PairText,
    PhraseTeacher,
    TeacherTables,
    cross_train_teachers,
    mark_answers,
)
from askline.training.phrases.phrase_training import AnswerWindow, PhraseRecipe, TrainingCallbacks
from askline.training.phrases.phrase_workflow import PhraseRun, answer_within, candidate_recall

Tensors = dict[str, NDArray[Any]]
LANGUAGE: Language = "fr"
EXTRACTOR = PhraseRecipe(epochs=5, learning_rate=1e-4, batch_size=32)
TEACHER = PhraseRecipe(epochs=3, learning_rate=1e-4, batch_size=32)
ENCODER = PhraseRecipe(epochs=10, learning_rate=1.5e-4, batch_size=64)
REPEATED = 2
"""How often the windows of PIAF occur in an epoch; its questions were asked in French."""
WORDS = 40  # context words per phrase; chosen on dev among 24, 40 and 64
ARTICLES = ("le", "la", "les", "du", "des", "au", "aux", "un", "une", "l")
PARAGRAPHS, QUESTIONS = 60, 45  # texts that the int8 scales are fitted to
PARTS = 4  # files of a run
WEIGHTS = "weights.safetensors"
PREPARED = "prepared.pt"


# Data


def write_data(out: Path) -> None:
    """Paragraphs with questions as plain lists, for a machine without the datasets."""
    from .folder import piaf

    rows = {
        "piaf": [_row(one) for one in piaf(held_out=False)],
        "translated": [_row(one) for one in translated()],
        "lost": [[one.text, list(one.questions)] for one in lost_answers()],
        "dev": [_row(one) for one in piaf(held_out=True)],
    }
    with gzip.open(out, "wt", encoding="utf-8") as stream:
        json.dump(rows, stream, ensure_ascii=False)
    print({name: (len(own), sum(len(one[1]) for one in own)) for name, own in rows.items()})


def _row(paragraph: Paragraph) -> list[Any]:
    asked = [
        [question.text, sorted({(answer.start, answer.end) for answer in question.answers})]
        for question in paragraph.questions
        if question.answers
    ]
    return [paragraph.text, asked]


def translated() -> Iterator[Paragraph]:
    """Translated paragraphs with the questions whose answer was found in its sentence."""
    from .arrays import translated_items

    for number, item in enumerate(translated_items()):
        text, starts = joined(item.passage.sentences)
        asked = []
        for place, question in enumerate(item.passage.questions):
            for at, start, end in question.spans[:1]:
                begin = starts[at] + start
                span = AnswerSpan(text[begin : starts[at] + end], begin, starts[at] + end)
                asked.append(SpanQuestion(f"t{number}-{place}", question.text, (span,)))
        if asked:
            yield Paragraph(f"t{number}", item.kind, text, tuple(asked))


def lost_answers() -> Iterator[PairText]:
    """Translated paragraphs with the other questions, of which the sentence is known."""
    from .arrays import translated_items

    for number, item in enumerate(translated_items()):
        text, starts = joined(item.passage.sentences)
        asked = tuple(
            (f"l{number}-{place}", question.text, (starts[at], starts[at] + len(sentence)))
            for place, question in enumerate(item.passage.questions)
            if not question.spans
            for at in question.answers[:1]
            for sentence in (item.passage.sentences[at],)
        )
        if asked:
            yield PairText(text, asked)


def joined(sentences: Sequence[str]) -> tuple[str, list[int]]:
    """The sentences with a space between, and where each of them starts."""
    starts, length = [], 0
    for sentence in sentences:
        starts.append(length)
        length += len(sentence) + 1
    return " ".join(sentences), starts


def _paragraphs(name: str, rows: Sequence[Any]) -> list[Paragraph]:
    found = []
    for number, (text, asked) in enumerate(rows):
        questions = tuple(
            SpanQuestion(
                f"{name}{number}-{place}",
                question,
                tuple(AnswerSpan(text[start:end], start, end) for start, end in spans),
            )
            for place, (question, spans) in enumerate(asked)
        )
        found.append(Paragraph(f"{name}{number}", name, text, questions))
    return found


def _pair_texts(rows: Sequence[Any]) -> list[PairText]:
    return [
        PairText(text, tuple((name, question, tuple(place)) for name, question, place in asked))
        for text, asked in rows
    ]


# Weights


def write_start(out: Path) -> None:
    """The encoder and the reader of the French cascade, small enough to be copied around."""
    stored = load_file(shipped_folder(LANGUAGE) / WEIGHTS)
    exact = float_tensors(stored)
    kept = {
        name: value
        for name, value in exact.items()
        if not name.startswith(("classifiers.", "context."))
    }
    save_file(packed(kept), out)


def packed(tensors: Mapping[str, NDArray[Any]]) -> Tensors:
    """Matrices in int8 by rows, word embeddings in 4 bits, all else in half precision."""
    made: Tensors = {}
    for name, value in tensors.items():
        if name == "words.weight":
            made[f"{name}.q4"], made[f"{name}.q4s"] = pack_int4(value)
        elif value.ndim == 2 and min(value.shape) > 2 and name != "positions.weight":
            made[f"{name}.q8"], made[f"{name}.q8s"] = quantize_rows(value)
        else:
            made[name] = value.astype(np.float16)
    return made


def unpacked(stored: Mapping[str, NDArray[Any]]) -> Tensors:
    """The float tensors of `packed`."""
    made: Tensors = {}
    for name, value in stored.items():
        stem, _, kind = name.rpartition(".")
        if kind == "q8":
            made[stem] = value.astype(np.float32) * stored[f"{name}s"].astype(np.float32)[:, None]
        elif kind == "q4":
            made[stem] = unpack_int4(value, stored[f"{name}s"])
        elif kind not in ("q8s", "q4s"):
            made[name] = value.astype(np.float32)
    return made


def new_encoder(tensors: Tensors, layers: int) -> Any:
    """A BERT encoder of the lowest layers, in torch."""
    vocabulary, width = tensors["words.weight"].shape
    positions = len(tensors["positions.weight"])
    return bert_encoder(EncoderConfig(layers, width, 12, 1536, vocabulary, positions), tensors)


# Training


@dataclass(frozen=True)
class Options:
    """Options of a run."""

    layers: int
    shorten: float
    """The share of the epochs of every training, for trials."""
    device: str
    few: int | None
    """Paragraphs of each kind, for trials."""

    def recipe(self, recipe: PhraseRecipe, seed: int = 1) -> PhraseRecipe:
        epochs = max(1, round(recipe.epochs * self.shorten))
        return replace(recipe, epochs=epochs, seed=seed)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the trainings of all seeds start from."""

    options: Options
    tokenizer: Path
    network: PhraseNetwork
    """With the trained extractor, and new layers for the vectors."""
    examples: Sequence[PhraseExample]
    dev: Sequence[Paragraph]
    figures: Mapping[str, Any]

    def run(self) -> PhraseRun:
        return PhraseRun(load_tokenizer(self.tokenizer), self.options.device, LANGUAGE)


class _Log:
    """Prints lines with the time since the start."""

    def __init__(self, name: str) -> None:
        self.name, self.begun = name, time.monotonic()

    def __call__(self, said: object) -> None:
        print(f"{self.seconds:6.1f} s  {self.name}: {said}", flush=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    def callbacks(self, name: str) -> TrainingCallbacks:
        def on_epoch(epoch: Epoch) -> None:
            self(f"{name}, loss {epoch.loss:.4f}")

        return TrainingCallbacks(on_epoch)


def prepare(
    data: Path, start: Path, tokenizer_folder: Path, options: Options, log: _Log
) -> Prepared:
    """Train the extractor and the readers, and make the examples of the phrase encoder."""
    with gzip.open(data, "rt", encoding="utf-8") as stream:
        rows = json.load(stream)
    if options.few:
        rows = {name: own[: options.few] for name, own in rows.items()}
    tensors = unpacked(load_file(start))
    tokenizer = load_tokenizer(tokenizer_folder)
    run = PhraseRun(tokenizer, options.device, LANGUAGE)
    native = _paragraphs("piaf", rows["piaf"])
    paragraphs = [*native, *_paragraphs("translated", rows["translated"])]
    dev = _paragraphs("dev", rows["dev"])
    windows = [one for one in run.windows(paragraphs) if one.questions]
    figures: dict[str, Any] = {
        "layers": options.layers,
        "questions": sum(len(one.questions) for one in windows),
    }
    log(f"{len(windows)} windows, {figures['questions']} questions")
    torch.manual_seed(1)
    extractor = Extractor(new_encoder(tensors, options.layers)).to(options.device)
    recipe = options.recipe(EXTRACTOR)
    train_extractor(extractor, windows, recipe, callbacks=log.callbacks("extractor"))
    dev_windows = run.windows(dev)
    found = extractor.extract([one.window for one in dev_windows])
    held = candidate_recall(dev_windows, found, dev, language=LANGUAGE)
    figures["extractor alone"] = _percent(held)
    log(figures["extractor alone"])

    def teacher() -> PhraseTeacher:
        network = PhraseTeacher(new_encoder(tensors, 12))
        with torch.no_grad():
            network.ends.weight.copy_(torch.from_numpy(tensors["reader.weight"]))
            network.ends.bias.copy_(torch.from_numpy(tensors["reader.bias"]))
        return network.to(options.device)

    teachers, tables = cross_train_teachers(
        teacher, windows, options.recipe(TEACHER), callbacks=log.callbacks
    )
    marked = mark_answers(teachers, _pair_texts(rows["lost"]), tokenizer)
    figures["marked"] = sum(len(one.window.questions) for one in marked)
    log(f"{figures['marked']} lost answers marked")
    texts = [paragraphs[one.paragraph].text for one in windows]
    every = merged(
        [
            *zip(windows, texts, tables, strict=True),
            *((one.window, one.text, one.tables) for one in marked),
        ]
    )
    candidates = extractor.extract([one.window for one, _, _ in every])
    normalize = partial(normalize_phrase, language=LANGUAGE)
    french = {one.text for one in native}
    examples: list[PhraseExample] = []
    for (one, text, table), own in zip(every, candidates, strict=True):
        example = make_example(one, own, text, normalize=normalize, teacher=table)
        examples += [example] * (REPEATED if text in french else 1)
    log(f"{len(examples)} windows an epoch")
    torch.manual_seed(1)  # all seeds have the same new layers, so that they can be averaged
    network = PhraseNetwork(extractor.encoder, "span")
    assert network.spans is not None
    network.spans.load_state_dict(extractor.spans.state_dict())
    figures["seconds, prepared"] = round(log.seconds)
    return Prepared(options, tokenizer_folder, network.cpu(), examples, dev, figures)


_Taught = tuple[AnswerWindow, str, TeacherTables]


def merged(rows: Sequence[_Taught]) -> list[_Taught]:
    """Each window once, with all of its questions."""
    found: dict[tuple[str, bytes], _Taught] = {}
    for one, text, tables in rows:
        key = (text, one.window.tokens.tobytes())
        if key in found:
            before, _, old = found[key]
            one = replace(before, questions=(*before.questions, *one.questions))
            tables = [*old, *tables]
        found[key] = one, text, tables
    return list(found.values())


def train_seed(prepared: Prepared, seed: int, log: _Log) -> dict[str, torch.Tensor]:
    """The weights of one seed."""
    options = prepared.options
    network = deepcopy(prepared.network).to(options.device)
    recipe = options.recipe(ENCODER, seed)
    train_phrases(network, prepared.examples, recipe, callbacks=log.callbacks(f"seed {seed}"))
    log(measured(prepared, network))
    return {name: one.detach().cpu() for name, one in network.state_dict().items()}


def join(prepared: Prepared, states: Mapping[int, Mapping[str, torch.Tensor]], out: Path) -> None:
    """Measure every seed and their mean on dev, and write the best by exact match plus F1."""
    log = _Log(out.name)
    figures: dict[str, Any] = {**prepared.figures, "dev": {}}
    ways = {f"seed {seed}": state for seed, state in states.items()}
    if len(states) > 1:
        ways["mean of seeds"] = average_weights([*states.values()])
    network = deepcopy(prepared.network).to(prepared.options.device)
    for name, state in ways.items():
        network.load_state_dict(dict(state))
        figures["dev"][name] = measured(prepared, network)
        log(f"{name} {figures['dev'][name]}")
    best = max(ways, key=lambda name: sum(figures["dev"][name]["nearest"]))
    network.load_state_dict(dict(ways[best]))
    save_run(network, out, figures | {"chosen": best})


def measured(prepared: Prepared, network: PhraseNetwork) -> dict[str, list[float]]:
    """Exact match and F1 on dev."""
    run, dev = prepared.run(), prepared.dev
    windows = run.windows(dev)
    assert network.spans is not None
    extractor = Extractor.sharing(network.encoder, network.spans)
    candidates = extractor.extract([one.window for one in windows])
    held = candidate_recall(windows, candidates, dev, language=LANGUAGE)
    nearest = answer_within(network, windows, candidates, dev, run.tokenizer, language=LANGUAGE)
    return {"candidates hold it": _percent(held), "nearest": _percent(nearest)}


def _percent(scores: PhraseScores) -> list[float]:
    return [round(value, 2) for value in scores.percent.values()]


def save_run(network: PhraseNetwork, out: Path, figures: Mapping[str, Any]) -> None:
    """Weights in half precision, in files of similar size; words are rounded already."""
    out.mkdir(parents=True, exist_ok=True)
    state = {name: one.detach().cpu().numpy() for name, one in network.state_dict().items()}
    words = "encoder.embeddings.word_embeddings.weight"
    made: Tensors = {name: one.astype(np.float16) for name, one in state.items() if name != words}
    made[f"{words}.q4"], made[f"{words}.q4s"] = pack_int4(state[words])
    sizes, parts = [0] * PARTS, [Tensors() for _ in range(PARTS)]
    for name, value in sorted(made.items(), key=lambda pair: -pair[1].nbytes):
        at = int(np.argmin(sizes))
        sizes[at] += value.nbytes
        parts[at][name] = value
    for at, own in enumerate(parts):
        save_file(own, out / f"part-{at}.safetensors")
    (out / "figures.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


# Export


def load_run(run: Path) -> PhraseNetwork:
    """The network that `train` wrote."""
    stored: Tensors = {}
    for path in sorted(run.glob("part-*.safetensors")):
        stored |= load_file(path)
    state = unpacked(stored)
    layers = json.loads((run / "figures.json").read_text("utf-8"))["layers"]
    start = unpacked(packed(float_tensors(load_file(shipped_folder(LANGUAGE) / WEIGHTS))))
    network = PhraseNetwork(new_encoder(start, layers), "span")
    network.load_state_dict({name: torch.from_numpy(one) for name, one in state.items()})
    return network.eval()


def export(run: Path, out: Path, card: str) -> None:
    """The int8 folder, with scales fitted to paragraphs and questions of PIAF."""
    from .folder import piaf

    paragraphs = piaf(held_out=False)
    drawn = np.random.default_rng(0).permutation(len(paragraphs))
    texts = [paragraphs[at].text for at in drawn[:PARAGRAPHS].tolist()]
    asked = [paragraphs[at] for at in drawn[PARAGRAPHS:].tolist() if paragraphs[at].questions]
    texts += [one.questions[0].text for one in asked[:QUESTIONS]]
    tokenizer = (shipped_folder(LANGUAGE) / "tokenizer.json").read_text("utf-8")
    export_phrases(
        load_run(run),
        tokenizer,
        out,
        card=card,
        words=WORDS,
        texts=texts,
        bits=4,
        articles=ARTICLES,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("data", "start"):
        commands.add_parser(name).add_argument("--out", type=Path, required=True)
    one = commands.add_parser("prepare")
    one.add_argument("data", type=Path)
    one.add_argument("--start", type=Path, required=True)
    one.add_argument("--tokenizer", type=Path, help="folder of tokenizer.json  [cascade-fr]")
    one.add_argument("--layers", type=int, default=12)
    one.add_argument("--shorten", type=float, default=1.0, help="share of all epochs")
    one.add_argument("--few", type=int, help="paragraphs of each kind, for a trial")
    one.add_argument("--device", default="cuda")
    one.add_argument("--work", type=Path, required=True)
    two = commands.add_parser("seed")
    two.add_argument("seed", type=int)
    two.add_argument("--work", type=Path, required=True)
    three = commands.add_parser("join")
    three.add_argument("--work", type=Path, required=True)
    three.add_argument("--out", type=Path, required=True)
    four = commands.add_parser("export")
    four.add_argument("run", type=Path)
    four.add_argument("--out", type=Path, required=True)
    _call(parser.parse_args())


def _call(given: argparse.Namespace) -> None:
    if given.command == "data":
        write_data(given.out)
    elif given.command == "start":
        write_start(given.out)
    elif given.command == "export":
        export(given.run, given.out, "# phrases-fr\n")
    elif given.command == "prepare":
        options = Options(given.layers, given.shorten, given.device, given.few)
        folder = given.tokenizer or shipped_folder(LANGUAGE)
        prepared = prepare(given.data, given.start, folder, options, _Log(given.work.name))
        given.work.mkdir(parents=True, exist_ok=True)
        torch.save(prepared, given.work / PREPARED)
    else:
        prepared = torch.load(given.work / PREPARED, weights_only=False)  # our own file
        if given.command == "seed":
            state = train_seed(prepared, given.seed, _Log(given.work.name))
            torch.save(state, given.work / f"seed-{given.seed}.pt")
        else:
            paths = sorted(given.work.glob("seed-*.pt"))
            join(prepared, {int(path.stem[5:]): torch.load(path) for path in paths}, given.out)


if __name__ == "__main__":
    main()
