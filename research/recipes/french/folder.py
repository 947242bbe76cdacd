"""
Write the French cascade as a model folder in int8, and calibrate it on held-out PIAF articles.

    ASKLINE_DATA=DIR python -m research.recipes.french.folder write --run WEIGHTS... \\
        [--run WEIGHTS...] --tokenizer FILE --out FOLDER
    ASKLINE_DATA=DIR python -m research.recipes.french.folder calibrate FOLDER

One encoder reads pairs and passages, so there is no adapter. The scales of its inputs are fitted to
both. `calibrate` fits probabilities of pairs and of sentences in context, the schedules and the
thresholds, as `research.recipes.context_calibration` does for English.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from askline import Corpus, data, load
from askline.corpus.results import RetrievedSentence
from askline.data.squad import Paragraph
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.engine.tokenizer import WordPiece
from askline.evaluation.calibration import PlattScaling
from askline.models.cascade_config import CascadeConfig, ContextConfig, check_cascade_tensors
from askline.models.encoder_config import EncoderConfig
from askline.models.folder import ModelFolder, write_folder
from askline.rankers.cascade import Cascade, shipped_folder
from askline.training.cascade.context_examples import TrainingPassage, paragraph_passages
from askline.training.post_training_quantization import quantize_cascade
from askline.types import Passage
from research.benchmarks.common import data_root
from research.recipes import context_calibration
from research.recipes.context_calibration import Task

FloatArray = NDArray[np.float32]
HEADS, INNER, MAX_LENGTH = 12, 1536, 384
DEV_EVERY, DEV_AT = 8, 3
"""Every eighth article of PIAF, from the fourth, is held out."""
SAMPLES = 32
"""Questions with a passage, and twice as many pairs, that the scales are fitted to."""


def piaf(*, held_out: bool) -> list[Paragraph]:
    """The paragraphs of the articles that are held out, or of the others."""
    paragraphs = data.read_paragraphs(data_root() / "piaf" / "piaf-v1.1.json").paragraphs
    articles = list(dict.fromkeys(each.article for each in paragraphs))
    kept = {name for at, name in enumerate(articles) if (at % DEV_EVERY == DEV_AT) == held_out}
    return [each for each in paragraphs if each.article in kept]


def read_weights(paths: Sequence[Path]) -> dict[str, FloatArray]:
    """The float tensors of a run; word embeddings were stored in int8."""
    stored: dict[str, NDArray[Any]] = {}
    for path in paths:
        stored |= load_file(path)
    made = {name: one.astype(np.float32) for name, one in stored.items() if ".q8" not in name}
    for name in [name for name in stored if name.endswith(".q8")]:
        scale = stored[f"{name}s"].astype(np.float32)[:, None]
        made[name.removesuffix(".q8")] = stored[name].astype(np.float32) * scale
    return made


def average(runs: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    return {name: np.mean([own[name] for own in runs], axis=0) for name in runs[0]}


def cascade_config(tensors: dict[str, FloatArray]) -> CascadeConfig:
    """The config that the tensors fit."""
    vocabulary, width = tensors["words.weight"].shape

    def numbers(stem: str) -> tuple[int, ...]:
        found = {int(name.split(".")[1]) for name in tensors if name.startswith(f"{stem}.")}
        return tuple(sorted(found))

    encoder = EncoderConfig(
        len(numbers("layers")), width, HEADS, INNER, vocabulary, len(tensors["positions.weight"])
    )
    context = ContextConfig(numbers("context"), max_length=MAX_LENGTH)
    return CascadeConfig(encoder, numbers("classifiers"), "mean", True, context=context)


def samples(passages: Sequence[TrainingPassage]) -> Iterator[tuple[str, Passage, str]]:
    """A question, its passage, and by turns an answer or another sentence."""
    random = np.random.default_rng(0)
    asked = [(own, each) for own in passages for each in own.questions if each.answers]
    for turn, at in enumerate(random.permutation(len(asked))[:SAMPLES].tolist()):
        passage, question = asked[at]
        other = int(random.integers(len(passage.sentences)))
        sentence = passage.sentences[question.answers[0] if turn % 2 else other]
        yield question.text, Passage(passage.sentences, passage.title), sentence


def write(tensors: dict[str, FloatArray], tokenizer: Path, out: Path, card: str) -> Path:
    """Quantize and write; the schedules are the English ones until `calibrate`."""
    config = cascade_config(tensors)
    drawn = list(samples(paragraph_passages(piaf(held_out=False))))
    pairs = [(question, sentence) for question, _, sentence in drawn]
    windows = [(question, passage) for question, passage, _ in drawn]
    small, stored = quantize_cascade(
        config, tensors, WordPiece.load(tokenizer), [*pairs, *_other_pairs(drawn)], windows
    )
    check_cascade_tensors(small, stored, path=out)
    english = json.loads((shipped_folder() / "config.json").read_text("utf-8"))
    entries: dict[str, Any] = {**small.to_config(), "schedule": _schedule(english, small.depths)}
    files = {"tokenizer.json": _compact(tokenizer)}
    return write_folder(out, config=entries, tensors=stored, card=card, files=files)


def _other_pairs(drawn: Sequence[tuple[str, Passage, str]]) -> list[tuple[str, str]]:
    """Questions with sentences of other questions."""
    return [(question, drawn[(at + 1) % len(drawn)][2]) for at, (question, *_) in enumerate(drawn)]


def _schedule(english: dict[str, Any], depths: Sequence[int]) -> dict[str, Any]:
    """The English schedule at the depths that the French cascade has."""
    rows = [
        {
            "count": row["count"],
            "keeps": {at: keep for at, keep in row["keeps"].items() if int(at) in depths},
        }
        for row in english["schedule"]["rows"]
    ]
    return {name: english["schedule"][name] for name in ("stage", "budget")} | {"rows": rows}


def _compact(tokenizer: Path) -> bytes:
    entries = json.loads(tokenizer.read_text(encoding="utf-8"))
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()


def calibrate(folder: Path, most: int, budget: float) -> None:
    """Fit all probabilities and thresholds, and write them to the folder's config."""
    held_out = paragraph_passages(piaf(held_out=True))
    encoder = load_encoder(ModelFolder.open(folder, kind="cascade"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["calibration"] = _pair_calibration(encoder, held_out)
    config["threshold"] = 0.35  # replaced below; the ranker needs one to load
    _save(folder, config)
    scores = folder / "scores.npz"
    _collect(folder, scores, most)
    context_calibration.fit(folder, scores, budget)
    scores.unlink()
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["threshold"] = _pair_threshold(Cascade.load(folder), held_out)
    _save(folder, config)


def _save(folder: Path, config: dict[str, Any]) -> None:
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / "config.json").write_text(text, encoding="utf-8")


def _pair_calibration(
    encoder: OnnxEncoder, passages: Sequence[TrainingPassage]
) -> dict[str, dict[str, float]]:
    """Per depth, from the sentences of a question's own paragraph and of another one."""
    logits: dict[int, list[FloatArray]] = {depth: [] for depth in encoder.depths}
    labels: list[bool] = []
    for at, passage in enumerate(passages):
        others = passages[(at + 7) % len(passages)].sentences
        for question in passage.questions[:1]:
            sentences = [*passage.sentences, *others]
            run, rows = encoder.begin(question.text, sentences), np.arange(len(sentences))
            for depth in encoder.depths:
                logits[depth].append(run.advance(rows, depth))
            labels += [row in question.answers for row in rows.tolist()]
    made = {}
    for depth, own in logits.items():
        curve = PlattScaling.fit(np.concatenate(own).astype(float), np.array(labels))
        made[str(depth)] = {"scale": curve.scale, "shift": curve.shift}
    return made


def _pair_threshold(cascade: Cascade, passages: Sequence[TrainingPassage]) -> float:
    """The probability that separates questions to their own paragraph from those to another."""
    own, other = [], []
    for at, passage in enumerate(passages):
        for question in passage.questions[:1]:
            own.append(cascade.rank(question.text, passage.sentences)[0].score)
            foreign = passages[(at + 7) % len(passages)].sentences
            other.append(cascade.rank(question.text, foreign)[0].score)
    candidates = np.unique([*own, *other])
    right = [
        float(np.mean(np.array(own) >= at) + np.mean(np.array(other) < at)) for at in candidates
    ]
    return round(float(candidates[int(np.argmax(right))]), 4)


def _collect(folder: Path, out: Path, most: int) -> None:
    ranker = load(f"cosinet % 100 >> cascade({str(folder)!r})")
    cascade = Cascade.load(folder)
    scored = []
    for task in _tasks(most):
        found = context_calibration.score(task, ranker, cascade)
        if found is not None:
            scored.append(found)
    context_calibration.save_scored(scored, out)


def _tasks(most: int) -> Iterator[Task]:
    """Questions to the held-out articles, which are in the corpus, and to articles that are not."""
    held_out, others = piaf(held_out=True), piaf(held_out=False)
    articles = list(dict.fromkeys(each.article for each in others))
    absent = set(articles[::2])
    present = [*held_out, *(each for each in others if each.article not in absent)]
    corpus = Corpus.in_memory()
    names = {id(each): f"{at} {each.article}" for at, each in enumerate(present)}
    corpus.add({names[id(each)]: each.text for each in present})
    passages = paragraph_passages(held_out)
    asked = [
        (paragraph, passage, question)
        for paragraph, passage in zip(held_out, passages, strict=True)
        for question in passage.questions
        if question.answers
    ]
    random = np.random.default_rng(context_calibration.SEED)
    for row in random.permutation(len(asked))[:most].tolist():
        paragraph, passage, question = asked[row]
        gold = {passage.sentences[at] for at in question.answers}
        name = names[id(paragraph)]

        def is_gold(found: RetrievedSentence, gold: set[str] = gold, name: str = name) -> bool:
            return found.document == name and found.text in gold

        yield Task("piaf", question.text, corpus, is_gold, True)
    missing = [
        question.text for each in others if each.article in absent for question in each.questions
    ]
    for row in random.permutation(len(missing))[: most // 2].tolist():
        yield Task("piaf", missing[row], corpus, lambda _: False, False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("write")
    one.add_argument(
        "--run",
        nargs="+",
        type=Path,
        action="append",
        required=True,
        help="safetensors files of one run; several runs are averaged",
    )
    one.add_argument("--tokenizer", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    two = commands.add_parser("calibrate")
    two.add_argument("folder", type=Path)
    two.add_argument("--most", type=int, default=400, help="answerable questions of the fit")
    two.add_argument("--budget", type=float, default=18_000, help="mean token-layers")
    options = parser.parse_args()
    if options.command == "write":
        tensors = average([read_weights(paths) for paths in options.run])
        write(tensors, options.tokenizer, options.out, "# cascade-fr\n")
    else:
        calibrate(options.folder, options.most, options.budget)


if __name__ == "__main__":
    main()
