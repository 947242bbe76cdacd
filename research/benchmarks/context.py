"""
Sentences read in their paragraph, beside the same sentences read one by one.

    ASKLINE_DATA=DIR python -m research.benchmarks.context paragraphs [--folder DIR] [--most N]
    ASKLINE_DATA=DIR python -m research.benchmarks.context no_answer [--folder DIR] [--most N]
    ASKLINE_DATA=DIR python -m research.benchmarks.context corpora [--folder DIR] [--most N]
    ASKLINE_DATA=DIR python -m research.benchmarks.context precision [--folder DIR] [--most N]

`paragraphs`: SQuAD v1.1 dev, MAP and P@1 over the sentences of the paragraph, one by one at full
depth and in context at every depth, and exact match and F1 of the phrase that the same pass reads
in the best sentence. `no_answer`: how well the best probability of a paragraph separates the
answerable questions of SQuAD v2.0 dev from the others, with thresholds from WikiQA dev and from
held-out SQuADShifts questions with unanswerable variants. `corpora`: `Corpus.ask` over all
paragraphs of SQuAD v1.1 dev and all documents of WikiQA, in context and one by one in turn:
accuracy, exact match and F1 of the phrase, token-layers and milliseconds; and the share of first
answers that are right or have the words of an annotated answer, in the right document and in any:
SQuAD's file marks the first occurrence of an answer in its paragraph, which can be in another
sentence. `precision`: MAP and P@1
of `paragraphs` in int8 on the engine, and with the stored weights in float32 in torch. Writes
research/results/context_PART.json.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askline import Corpus, data, load
from askline.corpus import answer
from askline.engine.adapter import float_tensors
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.engine.tokenizer import WordPiece
from askline.evaluation import Abstention, auroc, choose_threshold, expected_calibration_error
from askline.evaluation.calibration import PlattScaling
from askline.evaluation.measures import exact_match, f1
from askline.models.cascade_config import CascadeConfig
from askline.models.folder import ModelFolder
from askline.rankers.base import Ranker
from askline.rankers.cascade import Cascade, shipped_folder
from askline.training.cascade.adapter_networks import ContextNetwork, WindowFormat
from askline.training.cascade.context_examples import (
    ContextExamples,
    PassageQuestion,
    TrainingPassage,
    paragraph_passages,
)
from askline.training.cascade.context_training import score_passages
from askline.training.cascade.question_variants import add_unanswerable
from askline.types import Passage

from . import common
from .corpus_answers import (
    ACCURATE_AT,
    Asked,
    Reply,
    judged,
    milliseconds,
    phrase_means,
    shares,
)
from .corpus_library import library

CORPORA = ("squad/dev-v1.1.json", "wikiqa:test")
_BATCH = 16
Logits = NDArray[np.float32]


class Example(NamedTuple):
    """A question and its paragraph."""

    question: PassageQuestion
    passage: TrainingPassage


class Found(NamedTuple):
    """The logits (depths, sentences) of a question's paragraph, and the phrase that was read."""

    logits: Logits
    phrase: str


def asked(passages: Sequence[TrainingPassage], most: int | None) -> list[Example]:
    """Questions at even steps through the set."""
    found = [Example(each, passage) for passage in passages for each in passage.questions]
    chosen = np.linspace(0, len(found) - 1, min(most or len(found), len(found))).astype(int)
    return [found[at] for at in np.unique(chosen).tolist()]


def read(encoder: OnnxEncoder, questions: Sequence[Example]) -> Iterator[Found]:
    """Every paragraph through all layers."""
    depths = encoder.context_depths
    for begin in range(0, len(questions), _BATCH):
        part = questions[begin : begin + _BATCH]
        passages = [Passage(each.passage.sentences, each.passage.title) for each in part]
        run = encoder.begin_passages(
            [(each.question.text, [own]) for each, own in zip(part, passages, strict=True)]
        )
        rows = np.arange(len(part))
        logits = np.stack([run.advance(rows, depth) for depth in depths])
        ends = np.cumsum([len(own.sentences) for own in passages])
        parts = np.split(logits, ends[:-1], axis=1)
        best = [
            int(end) - own.shape[1] + int(own[-1].argmax())
            for end, own in zip(ends, parts, strict=True)
        ]
        spans = run.read(np.array(best))
        texts = [sentence for own in passages for sentence in own.sentences]
        for own, at, span in zip(parts, best, spans, strict=True):
            yield Found(own, texts[at][span.start : span.end] if span else "")


def average_precision(scores: Sequence[float], answers: Sequence[int]) -> float:
    order = np.argsort(-np.asarray(scores), kind="stable").tolist()
    hits = sorted(order.index(at) + 1 for at in answers)
    return float(sum((number + 1) / rank for number, rank in enumerate(hits)) / len(hits))


def ranked(scores: Sequence[Sequence[float]], questions: Sequence[Example]) -> dict[str, float]:
    values = [
        average_precision(own, each.question.answers)
        for own, each in zip(scores, questions, strict=True)
    ]
    first = [
        int(np.argmax(own)) in each.question.answers
        for own, each in zip(scores, questions, strict=True)
    ]
    return {"MAP": _percent(values), "P@1": _percent(first)}


def paragraphs(folder: str, most: int | None, *, on: str = "squad1:dev") -> dict[str, Any]:
    encoder = _encoder(folder)
    passages = paragraph_passages(data.load_paragraphs(on, root=common.data_root()))
    questions = [each for each in asked(passages, most) if each.question.answers]
    cascade = Cascade.load(folder, depth=encoder.depths[-1])
    alone = [
        cascade.score(each.question.text, each.passage.sentences).tolist() for each in questions
    ]
    found = list(read(encoder, questions))
    rows = {"one by one": ranked(alone, questions)}
    for row, depth in enumerate(encoder.context_depths):
        rows[f"in context, depth {depth}"] = ranked([own.logits[row] for own in found], questions)
    golds = [
        [each.passage.sentences[at][start:end] for at, start, end in each.question.spans]
        for each in questions
    ]
    phrases = [own.phrase for own in found]
    reading = {
        "EM": _percent([exact_match(own, gold) for own, gold in zip(phrases, golds, strict=True)]),
        "F1": _percent([f1(own, gold) for own, gold in zip(phrases, golds, strict=True)]),
    }
    return {"set": on, "questions": len(questions), "rows": rows, "reading": reading}


def precision(folder: str, most: int | None, *, on: str = "squad1:dev") -> dict[str, Any]:
    """The weights are those of the folder; what differs is the arithmetic of the layers."""
    passages = paragraph_passages(data.load_paragraphs(on, root=common.data_root()))
    questions = [
        each
        for each in asked(passages, most)
        if each.question.answers and len(each.passage.sentences) > 1
    ]
    own = [replace(each.passage, questions=(each.question,)) for each in questions]
    opened = ModelFolder.open(folder, kind="cascade")
    config = CascadeConfig.from_config(opened.config, path=opened.path / "config.json")
    tokenizer = WordPiece.load(opened.path / "tokenizer.json")
    context = config.context
    assert context is not None
    form = WindowFormat(
        tokenizer.cls_id, tokenizer.sep_id, context.marker, context.max_length, context.max_title
    )
    network = ContextNetwork(
        replace(config, context=None), float_tensors(opened.stored_tensors()), context.depths
    )
    examples = ContextExamples.of(own, tokenizer)
    pairs = [(at, int(passage)) for at, passage in enumerate(examples.question_passages)]
    in_float = score_passages(network, examples, form, pairs).logits
    in_int8 = [each.logits for each in read(_encoder(folder), questions)]
    # A paragraph that is longer than a window is cut in torch and read in two windows otherwise.
    whole = [
        at
        for at, (one, other) in enumerate(zip(in_float, in_int8, strict=True))
        if one.shape == other.shape
    ]
    chosen = [questions[at] for at in whole]
    rows = {
        f"{name}, depth {depth}": ranked([found[at][row] for at in whole], chosen)
        for row, depth in enumerate(context.depths)
        for name, found in (("float32", in_float), ("int8", in_int8))
    }
    return {"set": on, "questions": len(chosen), "rows": rows}


def no_answer(folder: str, most: int | None) -> dict[str, Any]:
    encoder, root = _encoder(folder), common.data_root()
    held_out = paragraph_passages(data.load_paragraphs("squadshifts:dev", root=root))
    fitted = asked(add_unanswerable(held_out, share=1.0), 2_000)
    measured = asked(paragraph_passages(data.load_paragraphs("squad2:dev", root=root)), most)
    best, answerable, sentences, labels = {}, {}, {}, {}
    for name, questions in (("fitted", fitted), ("measured", measured)):
        logits = [own.logits[-1] for own in read(encoder, questions)]
        best[name] = np.array([float(own.max()) for own in logits])
        answerable[name] = np.array([bool(each.question.answers) for each in questions])
        sentences[name] = np.concatenate(logits).astype(float)
        labels[name] = np.concatenate(
            [
                np.isin(np.arange(len(own)), each.question.answers)
                for own, each in zip(logits, questions, strict=True)
            ]
        )
    lists = list(data.load_dataset("wikiqa:dev", root=root))
    wikiqa = [
        Example(PassageQuestion(each.text), TrainingPassage(each.id, tuple(each.texts)))
        for each in lists
    ]
    chosen = choose_threshold(
        [float(own.logits[-1].max()) for own in read(encoder, wikiqa)],
        [each.answerable for each in lists],
    )
    abstaining = {
        name: _abstaining(threshold, best["measured"], answerable["measured"])
        for name, threshold in (
            ("WikiQA dev", chosen.threshold),
            (
                "held-out SQuADShifts",
                choose_threshold(best["fitted"], answerable["fitted"]).threshold,
            ),
        )
    }
    curve = PlattScaling.fit(sentences["fitted"], labels["fitted"])
    error = expected_calibration_error(curve(sentences["measured"]), labels["measured"])
    halves = _other_half(best["measured"], answerable["measured"])
    return {
        "questions": len(measured),
        "answerable": int(answerable["measured"].sum()),
        "AUROC": round(100 * auroc(best["measured"], answerable["measured"]), 2),
        "AUROC on the fitted questions": round(
            100 * auroc(best["fitted"], answerable["fitted"]), 2
        ),
        "abstaining, threshold from": abstaining,
        "F1 of abstaining, threshold from the other half": halves,
        "calibration error of sentences, %": round(100 * error, 2),
    }


def corpora(folder: str, most: int | None) -> dict[str, Any]:
    """Every question is asked both ways, one after the other."""
    cascade = Cascade.load(folder)
    first = load("cosinet").top(100)
    ways = {
        "one by one": first.then(replace(cascade, context=None)),
        "in context": first.then(cascade),
    }
    return {on: corpus_figures(on, ways, most) for on in CORPORA}


def corpus_figures(on: str, ways: Mapping[str, Ranker], most: int | None) -> dict[str, Any]:
    asking = library(on, most)
    judgements = {name: list[Asked]() for name in ways}
    with_words = {name: list[tuple[bool, bool]]() for name in ways}
    layers = {name: list[float]() for name in ways}
    with Corpus.in_memory() as corpus:
        corpus.add(asking.documents)
        retriever = corpus.retriever()
        for ranker in ways.values():  # graphs are built
            answer(asking.questions[0].text, retriever, ranker)
        for question in asking.questions:
            for name, ranker in ways.items():
                found = answer(question.text, retriever, ranker, top_k=max(ACCURATE_AT))
                phrase = found.best.phrase if found.best else None
                reply = Reply(found.answers, phrase.text if phrase else None, found.seconds)
                judgements[name].append(judged(question, reply, ranker))
                has_words = found.best is not None and has_answer(found.best.text, question.phrases)
                is_right = judgements[name][-1].place == 1
                known = found.best is not None and any(
                    found.best.document == place.document for place in question.places
                )
                with_words[name].append((is_right or (has_words and known), is_right or has_words))
                costs = [own.cost.token_layers for own in found.stages if own.cost]
                layers[name].append(sum(costs))
    figures: dict[str, Any] = {"questions": len(asking.questions)}
    for name, own in judgements.items():
        figures[name] = {
            **shares(own, ACCURATE_AT, "accuracy"),
            **phrase_means(own),
            **milliseconds([each.seconds for each in own]),
            "token-layers": round(float(np.mean(layers[name]))),
            "first answer right or with the words of an answer, in the right document": _percent(
                [own for own, _ in with_words[name]]
            ),
            "the same in any document": _percent([own for _, own in with_words[name]]),
        }
    return figures


def has_answer(text: str, phrases: Sequence[str]) -> bool:
    """Whether a text contains one of the phrases as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) for phrase in phrases)


def _abstaining(
    threshold: float, best: NDArray[np.float64], answerable: NDArray[np.bool_]
) -> dict[str, float]:
    at = Abstention.at(threshold, best, answerable)
    shares = {"precision": at.precision, "recall": at.recall, "F1": at.f1}
    return {name: round(100 * share, 2) for name, share in shares.items()}


def _other_half(best: NDArray[np.float64], answerable: NDArray[np.bool_]) -> float:
    first = np.random.default_rng(0).permutation(len(best)) < len(best) // 2
    found = []
    for own in (first, ~first):
        threshold = choose_threshold(best[own], answerable[own]).threshold
        found.append(Abstention.at(threshold, best[~own], answerable[~own]).f1)
    return round(100 * float(np.mean(found)), 2)


def _encoder(folder: str) -> OnnxEncoder:
    return load_encoder(ModelFolder.open(folder, kind="cascade"))


def _percent(values: Sequence[float]) -> float:
    return round(100 * float(np.mean(values)), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("part", choices=["paragraphs", "no_answer", "corpora", "precision"])
    parser.add_argument("--folder", default=str(shipped_folder()), help="a cascade with a context")
    parser.add_argument("--on", default="squad1:dev", help="the set of paragraphs")
    parser.add_argument("--most", type=int, help="this many questions at even steps")
    options = parser.parse_args()
    if options.part in ("paragraphs", "precision"):
        measure = paragraphs if options.part == "paragraphs" else precision
        result = measure(options.folder, options.most, on=options.on)
    else:
        run = {"no_answer": no_answer, "corpora": corpora}[options.part]
        result = run(options.folder, options.most)
    for name, row in result.items():
        print(f"{name}: {row}")
    print(f"Saved to {common.save(f'context_{options.part}', result, 'onnxruntime')}")


if __name__ == "__main__":
    main()
