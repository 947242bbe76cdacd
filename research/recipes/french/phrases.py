"""
Train the French phrase model on a GPU, from the encoder of the French cascade.

    ASKLINE_DATA=DIR python -m research.recipes.french.phrases data --pairs translated.jsonl \\
        --sets sets.jsonl --out data.json.gz
    python -m research.recipes.french.phrases start --out start.safetensors
    python -m research.recipes.french.phrases teacher 0 data.json.gz --start start.safetensors \\
        --everything --work WORK                                      # and 1, at once
    python -m research.recipes.french.phrases prepare data.json.gz --start start.safetensors \\
        --everything --work WORK
    python -m research.recipes.french.phrases seed 1 --work WORK      # several seeds at once
    python -m research.recipes.french.phrases join --work WORK --out RUN
    ASKLINE_DATA=DIR python -m research.recipes.french.phrases export RUN --out FOLDER

`data` writes the paragraphs: PIAF without the held-out articles, the translated SQuADShifts and
SQuAD paragraphs (`squadshifts-fr`), sets and SQuAD pairs that `research.recipes.french.text`
translated, and the held-out articles of PIAF as dev. Pairs whose question is in a set are left out.
`start` writes the encoder and the reader of `cascade-fr` with word embeddings in 4 bits. The
training is that of the English phrase model: two readers, which are trained on half of the
paragraphs each and score the other half (`teacher`), an extractor (`prepare`), then extractor and
phrase encoder together (`seed`). The readers also mark the answers of the pairs and of translated
questions whose answer was lost in translation; the sentence of the answer is known. The extractor
learns soft answers: `--soft` of the weight of each answer is on the spans that the readers find
most probable. `join` writes the mean of the seeds' weights, measured on dev. With `--everything`,
for the weights that ship, the held-out articles are trained on as well; figures on them then say
nothing, and a run without it measures the recipe. `export` writes the folder; with `--former`, of
the mean of this run and of a folder that was trained before.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from askline.data.squad import AnswerSpan, Paragraph, SpanQuestion
from askline.engine.adapter import float_tensors
from askline.engine.quantization import pack_int4, quantize_rows, unpack_int4
from askline.evaluation.measures import Language, PhraseScores, normalize_phrase
from askline.models.encoder_config import EncoderConfig
from askline.phrases.phrase_model import minor_tokens
from askline.phrases.tokenization import load_tokenizer
from askline.rankers.cascade import shipped_folder
from askline.training.checkpoint import Epoch, average_weights
from askline.training.phrases.contrastive_training import (
    PhraseExample,
    make_example,
    train_phrases,
)
from askline.training.phrases.phrase_export import bert_encoder, export_phrases
from askline.training.phrases.phrase_networks import Extractor, PhraseNetwork, train_extractor
from askline.training.phrases.phrase_teacher import (
    PairText,
    PhraseTeacher,
    TeacherTables,
    cross_tables,
    join_pairs,
    mark_answers,
    soften_answers,
    train_on_half,
)
from askline.training.phrases.phrase_training import AnswerWindow, PhraseRecipe, TrainingCallbacks
from askline.training.phrases.phrase_workflow import PhraseRun, answer_within, candidate_recall

if TYPE_CHECKING:
    from .arrays import Item

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
SOFT = 0.6  # chosen on dev among 0, 0.3, 0.6 and 0.9
_LONGEST_SENTENCE = 1200
_WORDS = "embeddings.word_embeddings.weight"
_TRIAL_STEPS = 24  # steps whose time tells how many epochs fit
_SPARE = 0.9  # the share of the time that epochs may take by that estimate


# Data


def write_data(out: Path, pairs: Path | None, sets: Path | None) -> None:
    """Paragraphs with questions as plain lists, for a machine without the datasets."""
    from .arrays import set_items, translated_items
    from .folder import piaf

    items = [*translated_items(), *set_items(sets)]
    known = {question for item in items for question in item.questions if question}
    rows = {
        "piaf": [_row(one) for one in piaf(held_out=False)],
        "translated": [_row(one) for one in with_answers(items)],
        "lost": [[one.text, list(one.questions)] for one in lost_answers(items)],
        "pairs": [[one.text, list(one.questions)] for one in translated_pairs(pairs, known)],
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


def with_answers(items: Iterable[Item]) -> Iterator[Paragraph]:
    """Translated paragraphs with the questions whose answer was found in its sentence."""
    for number, item in enumerate(items):
        text, starts = joined(item.passage.sentences)
        asked = []
        for place, question in enumerate(item.passage.questions):
            for at, start, end in question.spans[:1]:
                begin = starts[at] + start
                span = AnswerSpan(text[begin : starts[at] + end], begin, starts[at] + end)
                asked.append(SpanQuestion(f"t{number}-{place}", question.text, (span,)))
        if asked:
            yield Paragraph(f"t{number}", item.kind, text, tuple(asked))


def lost_answers(items: Iterable[Item]) -> Iterator[PairText]:
    """Translated paragraphs with the other questions, of which the sentence is known."""
    for number, item in enumerate(items):
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


def translated_pairs(path: Path | None, known: Collection[str] = ()) -> list[PairText]:
    """
    The translated SQuAD pairs, with their sentences joined to paragraphs.

    Pairs whose English question is known, without regard to case and spaces, are left out.
    """
    left_out = set(map(_letters, known))
    by_sentence: dict[str, list[tuple[str, str]]] = {}
    for line in path.read_text("utf-8").splitlines() if path else ():
        row = json.loads(line)
        fits = 0 < len(row["sentence"]) <= _LONGEST_SENTENCE
        if fits and row["question"] and _letters(row.get("english_question", "")) not in left_out:
            pair = row["question"], row["sentence"]
            by_sentence.setdefault(row["english_sentence"], []).append(pair)
    return join_pairs(pair for own in by_sentence.values() for pair in own)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


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
    exact = float_tensors(load_file(shipped_folder(LANGUAGE) / WEIGHTS))
    kept = {
        name: value
        for name, value in exact.items()
        if not name.startswith(("classifiers.", "context."))
    }
    save_file(packed(kept), out)


def start_tensors() -> Tensors:
    """The float tensors of the French cascade, rounded as `write_start` does."""
    return unpacked(packed(float_tensors(load_file(shipped_folder(LANGUAGE) / WEIGHTS))))


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
    soft: float
    """The weight of each answer that the extractor learns on the readers' probable spans."""
    everything: bool
    """Whether the held-out articles are trained on."""

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

    def check(self, seconds: float) -> None:
        """Raise TimeoutError once `seconds` have passed since the start."""
        if self.seconds > seconds:
            raise TimeoutError

    def callbacks(self, name: str) -> TrainingCallbacks:
        def on_epoch(epoch: Epoch) -> None:
            self(f"{name}, loss {epoch.loss:.4f}")

        return TrainingCallbacks(on_epoch)


class Material:
    """The windows that are trained on, and dev."""

    def __init__(self, data: Path, start: Path, tokenizer_folder: Path, options: Options) -> None:
        with gzip.open(data, "rt", encoding="utf-8") as stream:
            rows = json.load(stream)
        if options.few:
            rows = {name: own[: options.few] for name, own in rows.items()}
        self.options, self.tokenizer_folder = options, tokenizer_folder
        self.tensors = unpacked(load_file(start))
        self.run = PhraseRun(load_tokenizer(tokenizer_folder), options.device, LANGUAGE)
        self.dev = _paragraphs("dev", rows["dev"])
        native = [*_paragraphs("piaf", rows["piaf"]), *(self.dev if options.everything else ())]
        self.paragraphs = [*native, *_paragraphs("translated", rows["translated"])]
        self.native = {one.text for one in native}
        self.windows = [one for one in self.run.windows(self.paragraphs) if one.questions]
        self.pairs = _pair_texts([*rows["lost"], *rows["pairs"]])

    @property
    def questions(self) -> int:
        return sum(len(one.questions) for one in self.windows)

    def new_teacher(self) -> PhraseTeacher:
        """The encoder and the reader of the cascade."""
        network = PhraseTeacher(new_encoder(self.tensors, 12))
        with torch.no_grad():
            network.ends.weight.copy_(torch.from_numpy(self.tensors["reader.weight"]))
            network.ends.bias.copy_(torch.from_numpy(self.tensors["reader.bias"]))
        return network.to(self.options.device)


def train_teacher(material: Material, half: int, log: _Log) -> dict[str, torch.Tensor]:
    """The weights of the reader that is trained on one half of the paragraphs."""
    torch.manual_seed(1 + half)
    log(f"{len(material.windows)} windows, {material.questions} questions")
    teacher = train_on_half(
        material.new_teacher(),
        half,
        material.windows,
        material.options.recipe(TEACHER),
        callbacks=log.callbacks(f"teacher {half}"),
    )
    return {name: one.detach().cpu() for name, one in teacher.state_dict().items()}


def prepare(
    material: Material, states: Sequence[Mapping[str, torch.Tensor]], log: _Log
) -> Prepared:
    """Train the extractor, and make the examples of the phrase encoder; `states` are readers."""
    options, run, windows = material.options, material.run, material.windows
    figures: dict[str, Any] = {
        "layers": options.layers,
        "soft": options.soft,
        "everything": options.everything,
        "questions": material.questions,
    }
    teachers = [material.new_teacher() for _ in states]
    for teacher, state in zip(teachers, states, strict=True):
        teacher.load_state_dict(dict(state))
    tables = cross_tables(teachers, windows)
    log("windows scored by the readers")
    marked = mark_answers(teachers, material.pairs, run.tokenizer)
    figures["marked"] = sum(len(one.window.questions) for one in marked)
    log(
        f"{figures['marked']} answers marked in {sum(len(one.questions) for one in material.pairs)}"
    )
    texts = [material.paragraphs[one.paragraph].text for one in windows]
    every = merged(
        [
            *zip(windows, texts, tables, strict=True),
            *((one.window, one.text, one.tables) for one in marked),
        ]
    )
    if options.soft:
        every = [(soften_answers(one, own, options.soft), text, own) for one, text, own in every]
    torch.manual_seed(1)
    extractor = Extractor(new_encoder(material.tensors, options.layers)).to(options.device)
    learned = [one for one, _, _ in every]
    callbacks = log.callbacks("extractor")
    train_extractor(extractor, learned, options.recipe(EXTRACTOR), callbacks=callbacks)
    figures["extractor alone"] = _held(run, extractor, material.dev)
    log(figures["extractor alone"])
    candidates = extractor.extract([one.window for one in learned])
    normalize = partial(normalize_phrase, language=LANGUAGE)
    examples: list[PhraseExample] = []
    for (one, text, table), own in zip(every, candidates, strict=True):
        example = make_example(one, own, text, normalize=normalize, teacher=table)
        examples += [example] * (REPEATED if text in material.native else 1)
    log(f"{len(examples)} windows an epoch")
    torch.manual_seed(1)  # all seeds have the same new layers, so that they can be averaged
    network = PhraseNetwork(extractor.encoder, "span")
    network.spans.load_state_dict(extractor.spans.state_dict())
    figures["seconds, prepared"] = round(log.seconds)
    folder = material.tokenizer_folder
    return Prepared(options, folder, network.cpu(), examples, material.dev, figures)


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


def train_seed(
    prepared: Prepared, seed: int, log: _Log, seconds: float | None = None
) -> dict[str, torch.Tensor]:
    """
    The weights of one seed.

    With `seconds` since the start of the log, there are only as many epochs as fit, and training
    stops when they have passed.
    """
    options = prepared.options
    network = deepcopy(prepared.network).to(options.device)
    recipe, callbacks = options.recipe(ENCODER, seed), log.callbacks(f"seed {seed}")
    if seconds is not None:
        own = _step_seconds(prepared, network) * len(prepared.examples) / recipe.batch_size
        fitting = int(_SPARE * (seconds - log.seconds) / own)
        recipe = replace(recipe, epochs=max(1, min(recipe.epochs, fitting)))
        callbacks = replace(callbacks, on_step=lambda _: log.check(seconds))
        log(f"seed {seed}, {own:.1f} s an epoch, {recipe.epochs} epochs")
    try:
        train_phrases(network, prepared.examples, recipe, callbacks=callbacks)
    except TimeoutError:
        log(f"seed {seed} stopped before its last epoch was over")
    log(f"seed {seed} is trained")
    return {name: one.detach().cpu() for name, one in network.state_dict().items()}


def _step_seconds(prepared: Prepared, network: PhraseNetwork) -> float:
    """The time of a step, from a few of them on a copy of the network."""
    recipe = replace(ENCODER, epochs=1)
    drawn = np.random.default_rng(0).permutation(len(prepared.examples))
    some = [prepared.examples[at] for at in drawn[: _TRIAL_STEPS * recipe.batch_size].tolist()]
    steps = -(-len(some) // recipe.batch_size)
    copied, begun = deepcopy(network), 0.0
    for _ in range(2):  # the first time takes longer
        begun = time.monotonic()
        train_phrases(copied, some, recipe)
        if prepared.options.device == "cuda":
            torch.cuda.synchronize()
    return (time.monotonic() - begun) / steps


def join(prepared: Prepared, states: Mapping[int, Mapping[str, torch.Tensor]], out: Path) -> None:
    """Write the mean of the seeds' weights, with its figures on dev and those of each seed."""
    log = _Log(out.name)
    figures: dict[str, Any] = {**prepared.figures, "dev": {}}
    mean = average_weights([*states.values()])
    network = deepcopy(prepared.network).to(prepared.options.device)
    ways = {f"seed {seed}": state for seed, state in states.items()}
    if prepared.options.everything:
        figures["note"] = "dev was trained on"
        ways = {}
    for name, state in [*ways.items(), (f"mean of {len(states)} seeds", mean)]:
        network.load_state_dict(dict(state))
        figures["dev"][name] = measured(prepared, network)
        log(f"{name} {figures['dev'][name]}")
    save_run(network, out, figures)


def measured(prepared: Prepared, network: PhraseNetwork) -> dict[str, list[float]]:
    """Exact match and F1 on dev, with all candidates and without variants of articles."""
    run, dev = prepared.run(), prepared.dev
    windows = run.windows(dev)
    extractor = Extractor.sharing(network.encoder, network.spans)
    found = _held(run, extractor, dev)
    for name, minor in _merging(run).items():
        candidates = extractor.extract([one.window for one in windows], minor=minor)
        nearest = answer_within(network, windows, candidates, dev, run.tokenizer, language=LANGUAGE)
        found[f"nearest, {name}"] = _percent(nearest)
    return found


def _held(run: PhraseRun, extractor: Extractor, dev: Sequence[Paragraph]) -> dict[str, list[float]]:
    """Exact match and F1 of the best of 100 candidates."""
    windows = run.windows(dev)
    found = {}
    for name, minor in _merging(run).items():
        candidates = extractor.extract([one.window for one in windows], minor=minor)
        held = candidate_recall(windows, candidates, dev, language=LANGUAGE)
        found[f"candidates hold it, {name}"] = _percent(held)
    return found


def _merging(run: PhraseRun) -> dict[str, NDArray[np.bool_] | None]:
    """Which tokens make no other candidate, before and after merging."""
    size = run.tokenizer.get_vocab_size()
    return {"all": None, "merged": minor_tokens(run.tokenizer, ARTICLES, size)}


def _percent(scores: PhraseScores) -> list[float]:
    return [round(value, 2) for value in scores.percent.values()]


def save_run(network: PhraseNetwork, out: Path, figures: Mapping[str, Any]) -> None:
    """Weights in half precision, in files of similar size; words are rounded already."""
    out.mkdir(parents=True, exist_ok=True)
    state = {name: one.detach().cpu().numpy() for name, one in network.state_dict().items()}
    words = f"encoder.{_WORDS}"
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
    network = PhraseNetwork(new_encoder(start_tensors(), layers), "span")
    network.load_state_dict({name: torch.from_numpy(one) for name, one in state.items()})
    return network.eval()


def load_exported(folder: Path, start: Tensors, layers: int) -> PhraseNetwork:
    """
    The network of an exported folder, with its weights in float.

    The export left out spare words and positions; they come from `start`.
    """
    stored = load_file(folder / WEIGHTS)
    rest = {name: one for name, one in stored.items() if not name.startswith("words.")}
    tensors: Tensors = {**float_tensors(rest)}
    tensors["words.weight"] = start["words.weight"]
    own = tensors["positions.weight"]
    tensors["positions.weight"] = np.concatenate([own, start["positions.weight"][len(own) :]])
    network = PhraseNetwork(new_encoder(tensors, layers), "span")
    heads = network.state_dict().keys() & tensors.keys()
    network.load_state_dict({name: torch.from_numpy(tensors[name]) for name in heads}, strict=False)
    return network


def export(run: Path, out: Path, card: str, former: Path | None = None) -> None:
    """
    The int8 folder, with scales fitted to paragraphs and questions of PIAF.

    With `former`, a folder of an earlier training, its weights are averaged with those of the run.
    """
    from .folder import piaf

    paragraphs = piaf(held_out=False)
    drawn = np.random.default_rng(0).permutation(len(paragraphs))
    texts = [paragraphs[at].text for at in drawn[:PARAGRAPHS].tolist()]
    asked = [paragraphs[at] for at in drawn[PARAGRAPHS:].tolist() if paragraphs[at].questions]
    texts += [one.questions[0].text for one in asked[:QUESTIONS]]
    tokenizer = (shipped_folder(LANGUAGE) / "tokenizer.json").read_text("utf-8")
    network = load_run(run)
    if former is not None:
        other = load_exported(former, start_tensors(), network.encoder.config.num_hidden_layers)
        network.load_state_dict(average_weights([network.state_dict(), other.state_dict()]))
    export_phrases(
        network,
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
        one = commands.add_parser(name)
        one.add_argument("--out", type=Path, required=True)
        if name == "data":
            one.add_argument("--pairs", type=Path, help="translated SQuAD pairs, one per line")
            one.add_argument("--sets", type=Path, help="translated paragraphs, one per line")
    for name in ("teacher", "prepare"):
        one = commands.add_parser(name)
        if name == "teacher":
            one.add_argument("half", type=int, choices=(0, 1))
        one.add_argument("data", type=Path)
        one.add_argument("--start", type=Path, required=True)
        one.add_argument("--tokenizer", type=Path, help="folder of tokenizer.json  [cascade-fr]")
        one.add_argument("--layers", type=int, default=10)
        one.add_argument("--soft", type=float, default=SOFT, help="weight of soft answers")
        one.add_argument("--everything", action="store_true", help="train on dev as well")
        one.add_argument("--shorten", type=float, default=1.0, help="share of all epochs")
        one.add_argument("--few", type=int, help="paragraphs of each kind, for a trial")
        one.add_argument("--device", default="cuda")
        one.add_argument("--work", type=Path, required=True)
    two = commands.add_parser("seed")
    two.add_argument("seed", type=int)
    two.add_argument("--seconds", type=float, help="most seconds; there are fewer epochs then")
    two.add_argument("--work", type=Path, required=True)
    three = commands.add_parser("join")
    three.add_argument("--work", type=Path, required=True)
    three.add_argument("--out", type=Path, required=True)
    four = commands.add_parser("export")
    four.add_argument("run", type=Path)
    four.add_argument("--former", type=Path, help="folder whose weights are averaged with the run")
    four.add_argument("--out", type=Path, required=True)
    _call(parser.parse_args())


def _call(given: argparse.Namespace) -> None:
    if given.command == "data":
        write_data(given.out, given.pairs, given.sets)
    elif given.command == "start":
        write_start(given.out)
    elif given.command == "export":
        export(given.run, given.out, "# phrases-fr\n", given.former)
    elif given.command in ("teacher", "prepare"):
        _train(given, _Log(given.work.name))
    else:
        log = _Log(given.work.name)
        prepared = torch.load(given.work / PREPARED, weights_only=False)  # our own file
        if given.command == "seed":
            state = train_seed(prepared, given.seed, log, given.seconds)
            torch.save(state, given.work / f"seed-{given.seed}.pt")
        else:
            paths = sorted(given.work.glob("seed-*.pt"))
            join(prepared, {int(path.stem[5:]): torch.load(path) for path in paths}, given.out)


def _train(given: argparse.Namespace, log: _Log) -> None:
    options = Options(
        given.layers, given.shorten, given.device, given.few, given.soft, given.everything
    )
    folder = given.tokenizer or shipped_folder(LANGUAGE)
    material = Material(given.data, given.start, folder, options)
    given.work.mkdir(parents=True, exist_ok=True)
    if given.command == "teacher":
        state = train_teacher(material, given.half, log)
        torch.save(state, given.work / f"teacher-{given.half}.pt")
    else:
        paths = [given.work / f"teacher-{half}.pt" for half in (0, 1)]
        prepared = prepare(material, [torch.load(path) for path in paths], log)
        torch.save(prepared, given.work / PREPARED)


if __name__ == "__main__":
    main()
