"""
Quality and time of the shipped reader.

    ASKLINE_DATA=DIR python -m research.benchmarks.reading quality [--keep DIR] [--shard I/N]
    ASKLINE_DATA=DIR python -m research.benchmarks.reading held-out --model DIR --name NAME
    ASKLINE_DATA=DIR python -m research.benchmarks.reading timings [--limit N]

`quality`: exact match and F1 within the paragraph on the engine, and how often the reader abstains
on SQuAD v2. With `--keep`, answers are stored in that folder and not computed again; `--shard 0/4`
computes the first quarter and measures nothing. `held-out`: EM and F1 of another folder's reader
on held-out questions. `timings`: reading the first three sentences of a list, with the adapter and
with a linear reader. Each part updates its entry of research/results/reading.json.
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
from askline.engine.sessions import SessionCache
from askline.evaluation import score_phrases
from askline.models.folder import ModelFolder
from askline.rankers.cascade import shipped_folder

from .common import data_root, load_or_empty, save

TOP = 3
ROUNDS = 5
NOTHING = 2_000  # questions of SQuAD v2, with and without an answer
AT_ONCE = 16
HELD_OUT = "squadshifts:dev"


class Reply(NamedTuple):
    """The best span's text, and the log-probabilities of it and of no answer."""

    text: str
    score: float
    none: float


Asked = tuple[SpanQuestion, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["quality", "held-out", "timings"])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--name", default="shipped")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--shard", default="0/1")
    given = parser.parse_args()
    folder = ModelFolder.open(given.model or shipped_folder(), kind="cascade")
    if given.part == "timings":
        figures = {"timings": timings(folder, given.limit)}
    elif given.part == "held-out":
        asked = asked_of(HELD_OUT)[: given.limit]
        replies = replied(load_encoder(folder), asked, None, "")
        figures = {f"held out, {given.name}": right(asked, replies)}
        print(figures)
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
    """Figures within the paragraph."""
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
    """Replies by question id; those already stored beside `path` are reused."""
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
    """EM and F1 of the best span, whether or not the reader abstains."""
    golds = {one.id: [gold.text for gold in one.answers] for one, _ in asked if one.answers}
    percent = score_phrases({key: replies[key].text for key in golds}, golds).percent
    return {"questions": len(golds), **{name: round(one, 2) for name, one in percent.items()}}


def said_nothing(asked: Sequence[Asked], replies: dict[str, Reply]) -> dict[str, float]:
    """How often the reader abstains, with and without an answer, in percent."""
    none: dict[bool, list[bool]] = {True: [], False: []}
    for question, _ in asked:
        reply = replies[question.id]
        none[bool(question.answers)].append(reply.none >= reply.score)
    return {"questions": len(asked)} | {
        name: round(100 * float(np.mean(none[answered])), 1)
        for name, answered in (("none, with an answer", True), ("none, without", False))
    }


def timings(folder: ModelFolder, limit: int | None) -> dict[str, Any]:
    """Milliseconds of reading the first three sentences, medians over questions and rounds."""
    questions = data.load_dataset("wikiqa:dev", root=data_root()).questions[: limit or 100]
    lists = [(one.text, one.texts[:TOP]) for one in questions if len(one.texts) >= TOP]
    adapted = load_encoder(folder)
    tensors = {name: one for name, one in adapted.tensors.items() if "adapter." not in name}
    whole = (adapted.config.encoder.layers,)
    layout = replace(adapted.config, adapter=None, depths=whole)
    plain = replace(adapted, config=layout, tensors=tensors, _sessions=SessionCache())
    taken: dict[str, list[float]] = {"with the adapter": [], "a line alone": []}
    for turn in range(ROUNDS + 1):  # the first round loads the layers
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
