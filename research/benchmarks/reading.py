"""
How well the shipped reader reads, and what it costs.

    python -m research.benchmarks.reading quality [--model DIR] [--limit N] [--keep DIR] [--shard I/N]
    python -m research.benchmarks.reading held-out --model DIR --name NAME
    python -m research.benchmarks.reading sentences [--model DIR --name NAME]
    python -m research.benchmarks.reading tries RUN
    python -m research.benchmarks.reading timings [--limit N]

`quality`: exact match and F1 within the paragraph, on the engine, and how often it points at
nothing where SQuAD v2 says that there is nothing. With `--keep`, what was read lies in that folder,
and is not read again; `--shard 0/4` reads the first quarter, keeps it, and measures nothing.
`held-out`: EM and F1 of another folder's reader, of the held-out questions alone.
`sentences`: the same inside sentences, of 400 held-out questions the answer's and another of its
paragraph; another folder's figures stand under its name. `tries` takes over what a training run
measured: a folder with one JSON file for each reader, its settings and EM and F1 on held-out
questions. `timings`: reading the first three sentences of a list, with the adapter and as a line on
the encoder's last layer, one after the other in one process. Each writes its part of
`research/results/reading.json` and leaves the others.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from askline import data
from askline.data.squad import SpanQuestion
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.evaluation import score_phrases
from askline.models.folder import ModelFolder
from askline.rankers.cascade import shipped_folder

from .common import data_root, load_or_empty, save

TOP = 3
ROUNDS = 5
NOTHING = 2_000  # questions of SQuAD v2, with and without an answer, that are asked
AT_ONCE = 16
HELD_OUT = "squadshifts:dev"
SENTENCES = 400  # questions that are asked of two sentences each


class Reply(NamedTuple):
    """What was read: the best span's words, and the log-chances of it and of none."""

    text: str
    score: float
    none: float


Asked = tuple[SpanQuestion, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["quality", "held-out", "sentences", "tries", "timings"])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--name", default="shipped")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--shard", default="0/1")
    given = parser.parse_args()
    folder = ModelFolder.open(given.model or shipped_folder(), kind="cascade")
    if given.part == "tries":
        figures = tries(given.run)
    elif given.part == "timings":
        figures = {"timings": timings(folder, given.limit)}
    elif given.part == "held-out":
        asked = asked_of(HELD_OUT)[: given.limit]
        replies = replied(load_encoder(folder), asked, None, "")
        figures = {f"held out, {given.name}": right(asked, replies)}
        print(figures)
    elif given.part == "sentences":
        figures = {f"sentences, {given.name}": inside_sentences(load_encoder(folder))}
    else:
        shard, shards = map(int, given.shard.split("/"))
        figures = quality(folder, given.limit, given.keep, shard, shards)
        if shards > 1:
            return
    before = load_or_empty("reading")
    kept = {name: own for name, own in before.items() if name != "environment"}
    print(save("reading", {**kept, **figures}, "onnxruntime"))


def quality(
    folder: ModelFolder, limit: int | None, keep: Path | None, shard: int, shards: int
) -> dict[str, Any]:
    """Within the paragraph."""
    encoder = load_encoder(folder)
    made: dict[str, Any] = {"adapter": folder.config.get("adapter")}
    for name in (HELD_OUT, "squad1:dev", "squad2:dev"):
        asked = asked_of(name)
        if name == "squad2:dev":
            order = np.random.default_rng(0).permutation(len(asked))[:NOTHING]
            asked = [asked[at] for at in order.tolist()]
        asked = asked[:limit][shard::shards]
        stem = f"{name.replace(':', '-')}"
        path = keep and keep / (f"{stem}-{shard}.json" if shards > 1 else f"{stem}.json")
        replies = replied(encoder, asked, path, stem)
        made[name] = said_nothing(asked, replies) if name == "squad2:dev" else right(asked, replies)
    return made


def asked_of(name: str) -> list[Asked]:
    """Each question of a set with its paragraph."""
    paragraphs = data.load_paragraphs(name, root=data_root())
    return [(question, each.text) for each in paragraphs for question in each.questions]


def replied(
    encoder: OnnxEncoder, asked: Sequence[Asked], path: Path | None, stem: str
) -> dict[str, Reply]:
    """By question; what lies beside `path` is taken from there."""
    found: dict[str, Reply] = {}
    for file in sorted(path.parent.glob(f"{stem}*.json")) if path else ():
        found |= {key: Reply(*one) for key, one in json.loads(file.read_text("utf-8")).items()}
    left = [each for each in asked if each[0].id not in found]
    for first in range(0, len(left), AT_ONCE):
        some = left[first : first + AT_ONCE]
        run = encoder.begin_many([(question.text, [text]) for question, text in some])
        spans = run.read(np.arange(len(some)))
        for (question, text), span in zip(some, spans, strict=True):
            found[question.id] = (
                Reply(text[span.start : span.end], span.score, span.no_answer)
                if span
                else Reply("", -np.inf, 0.0)
            )
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(found), "utf-8")
    return found


def right(asked: Sequence[Asked], replies: dict[str, Reply]) -> dict[str, float]:
    """EM and F1 of the best span, whatever is said about there being none."""
    golds = {one.id: [gold.text for gold in one.answers] for one, _ in asked if one.answers}
    percent = score_phrases({key: replies[key].text for key in golds}, golds).percent
    return {"questions": len(golds), **{name: round(one, 2) for name, one in percent.items()}}


def inside_sentences(encoder: OnnxEncoder) -> dict[str, float]:
    """EM, F1 and, in per cent, how often it points at nothing; held-out questions."""
    root = data_root()
    golds = {
        question.id: [gold.text for gold in question.answers]
        for paragraph in data.load_paragraphs(HELD_OUT, root=root)
        for question in paragraph.questions
    }
    asked = data.filter_questions(data.load_dataset(HELD_OUT, root=root), "both").questions
    random = np.random.default_rng(0)
    found, none = dict[str, str](), list[list[bool]]()
    for question in (asked[at] for at in random.permutation(len(asked))[:SENTENCES].tolist()):
        answer = next(one.text for one in question.candidates if one.is_answer)
        others = [one.text for one in question.candidates if not one.is_answer]
        texts = [answer, others[int(random.integers(len(others)))]]
        spans = encoder.begin(question.text, texts).read(np.arange(2))
        found[question.id] = answer[spans[0].start : spans[0].end] if spans[0] else ""
        none.append([span is None or span.no_answer >= span.score for span in spans])
    percent = score_phrases(found, {key: golds[key] for key in found}).percent
    shares = [round(100 * float(one), 1) for one in np.mean(none, axis=0)]
    return {"questions": len(found), **{name: round(one, 2) for name, one in percent.items()}} | {
        "none, in the answer": shares[0],
        "none, in another": shares[1],
    }


def said_nothing(asked: Sequence[Asked], replies: dict[str, Reply]) -> dict[str, float]:
    """In per cent: how often it points at nothing where there is an answer, and where none is."""
    none: dict[bool, list[bool]] = {True: [], False: []}
    for question, _ in asked:
        reply = replies[question.id]
        none[bool(question.answers)].append(reply.none >= reply.score)
    return {"questions": len(asked)} | {
        name: round(100 * float(np.mean(none[answered])), 1)
        for name, answered in (("none, with an answer", True), ("none, without", False))
    }


def tries(run: Path | None) -> dict[str, Any]:
    """One entry for each reader that was tried."""
    if run is None:
        raise SystemExit("Name the folder of the run.")
    return {
        "tries": {path.stem: json.loads(path.read_text()) for path in sorted(run.glob("*.json"))}
    }


def timings(folder: ModelFolder, limit: int | None) -> dict[str, Any]:
    """Milliseconds of reading the first three sentences, medians over questions and rounds."""
    questions = data.load_dataset("wikiqa:dev", root=data_root()).questions[: limit or 100]
    lists = [(one.text, one.texts[:TOP]) for one in questions if len(one.texts) >= TOP]
    adapted = load_encoder(folder)
    tensors = {name: one for name, one in adapted.tensors.items() if "adapter." not in name}
    whole = (adapted.config.encoder.layers,)
    layout = replace(adapted.config, adapter=None, depths=whole)
    plain = replace(adapted, config=layout, tensors=tensors, _sessions={})
    taken: dict[str, list[float]] = {"with the adapter": [], "a line alone": []}
    for turn in range(ROUNDS + 1):  # the first makes the layers ready
        for question, texts in lists:
            for name, encoder in zip(taken, (adapted, plain), strict=True):
                start = time.perf_counter()
                encoder.begin(question, texts).read(np.arange(len(texts)))
                if turn:
                    taken[name].append(1e3 * (time.perf_counter() - start))
    medians = {name: round(float(np.median(every)), 2) for name, every in taken.items()}
    ratio = medians["with the adapter"] / medians["a line alone"]
    return {"questions": len(lists), "sentences": TOP, "threads": adapted.workers.threads} | {
        "milliseconds": medians,
        "ratio": round(ratio, 2),
    }


if __name__ == "__main__":
    main()
