"""
Fit how `Corpus.ask` combines a cascade's readings: schedule, probabilities and threshold.

    ASKLINE_DATA=DIR python -m research.recipes.context_calibration collect FOLDER \\
        --corpus DIR --indexes DIR --out FILE
    python -m research.recipes.context_calibration fit FOLDER --scores FILE

`collect` asks questions of dev sets over corpora, as `Corpus.ask` does, and keeps the logits of the
retrieved sentences alone and of their passages in context, at all depths: held-out SQuADShifts
paragraphs with unanswerable variants of their questions, WikiQA dev, and the dev half of the
document questions, with keyword queries and misspellings among them. `fit` fits the probabilities
in context at every depth, compares schedules by cross-validation, fits the weights of both readings
and of the retrieval for the best schedule within a budget of token-layers, and chooses the
threshold. It writes all of them to FOLDER/config.json.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from math import ceil, floor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from askline import Corpus, data, load
from askline.corpus.results import RetrievedSentence
from askline.corpus.retrieval import HasPassages
from askline.corpus.sentence_ranking import (
    add_title_context,
    most_promising,
    passage_key,
    sentence_key,
    standard_by_score,
    title_path,
    whole_passage,
)
from askline.evaluation.calibration import PlattScaling
from askline.rankers.base import Ranker
from askline.rankers.cascade import Cascade
from askline.training.cascade.context_examples import paragraph_passages
from askline.training.cascade.question_variants import add_unanswerable, add_variants
from askline.types import Passage
from research.benchmarks.common import data_root
from research.benchmarks.corpus_library import library
from research.document_questions.questions import is_right, load_questions

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RETRIEVED = 100
COLLECTED = 5
"""Passages per question that are read in context: those of the best sentences."""
KEPT = {2: 48, 4: 24}
"""Sentences per question that are read alone beyond these depths."""
TYPICAL_RETRIEVAL = 0.5
"""Weight of the retrieval beside the log odds, in the choice of these passages."""
MORE = 3
POINT = 0.1
"""Weight of the pointwise loss beside the listwise one: the first is for probabilities."""
RIGHT_REFUSED, UNANSWERABLE_REFUSED = 0.08, 0.8
"""Of document questions: right first answers refused at most, unanswerable ones at least."""
FOLDS = 4
SEED = 5
IsGold = Callable[[RetrievedSentence], bool]


class Task(NamedTuple):
    """A question, the corpus it is asked to, and which sentences answer it."""

    source: str
    question: str
    corpus: Corpus
    is_gold: IsGold
    answerable: bool


class Scored(NamedTuple):
    """The readings of one question. Sentences are those retrieved, most promising first."""

    source: str
    answerable: bool
    alone: FloatArray  # (depths, sentences) log odds read alone
    tokens: IntArray  # (sentences,)
    retrieval: FloatArray  # (sentences,) standard scores
    gold: NDArray[np.bool_]  # (sentences,)
    passage: IntArray  # (sentences,) the number of the passage, by the first sentence of each
    context: FloatArray  # (context depths, sentences) logits in context; NaN if not collected
    passage_tokens: IntArray  # (collected passages,)
    unretrieved: FloatArray  # (context depths, others) logits of the passages' other sentences
    owners: IntArray  # (others,) their passages

    def with_odds(self, curve: PlattScaling) -> Scored:
        """The same with the log odds in context at the last depth, in place of all logits."""
        context, unretrieved = (
            curve.scale * each[-1] + curve.shift for each in (self.context, self.unretrieved)
        )
        return self._replace(context=context, unretrieved=unretrieved)


def squadshifts_tasks(most: int) -> Iterator[Task]:
    paragraphs = data.load_paragraphs("squadshifts:dev", root=data_root())
    passages = paragraph_passages(paragraphs)
    varied = add_variants(add_unanswerable(passages, share=0.6, seed=SEED), share=0.4, seed=SEED)
    corpus = Corpus.in_memory()
    names = [f"{at} {each.article}" for at, each in enumerate(paragraphs)]
    corpus.add({name: each.text for name, each in zip(names, paragraphs, strict=True)})
    asked = [(at, each) for at, own in enumerate(varied) for each in own.questions]
    chosen = np.random.default_rng(SEED).permutation(len(asked))[:most]
    for at, question in (asked[row] for row in chosen.tolist()):
        gold = {passages[at].sentences[sentence] for sentence in question.answers}

        def is_gold(found: RetrievedSentence, gold: set[str] = gold, at: int = at) -> bool:
            return found.document == names[at] and found.text in gold

        yield Task("squadshifts", question.text, corpus, is_gold, bool(question.answers))


def wikiqa_tasks() -> Iterator[Task]:
    asking = library("wikiqa:dev")
    corpus = Corpus.in_memory()
    corpus.add(asking.documents)
    for question in asking.questions:
        places = question.places

        def is_gold(found: RetrievedSentence, places: Sequence[Any] = places) -> bool:
            return any(
                found.document == each.document
                and found.start < each.end
                and each.start < found.end
                for each in places
            )

        yield Task("wikiqa", question.text, corpus, is_gold, True)


def document_tasks(corpora: Path, indexes: Path) -> Iterator[Task]:
    opened: dict[str, Corpus] = {}
    for question in load_questions(half="dev"):
        if question.set not in opened:
            opened[question.set] = Corpus.open(indexes / question.set)
            opened[question.set].add([corpora / question.set])
        gold = question.gold

        def is_gold(found: RetrievedSentence, gold: Any = gold) -> bool:
            return is_right(found.text, found.document, gold)

        yield Task(
            "documents", question.question, opened[question.set], is_gold, question.answerable
        )


def score(task: Task, ranker: Ranker, cascade: Cascade) -> Scored | None:
    """What `Corpus.ask` would see; None if nothing is retrieved."""
    retriever, encoder = task.corpus.retriever(), cascade.encoder
    assert isinstance(retriever, HasPassages)
    found = retriever.retrieve(task.question, RETRIEVED)
    if not found:
        return None
    standard = standard_by_score([each.score for each in found])
    found = most_promising(task.question, found, ranker.first_stage)
    retrieval = np.array([standard[each.score] for each in found])
    texts = [each.text for each in add_title_context(task.question, found)]
    run = encoder.begin(task.question, texts)
    alone = np.full((len(encoder.depths), len(found)), np.nan)
    left = np.arange(len(found))
    for row, depth in enumerate(encoder.depths):
        alone[row, left] = odds_of(cascade.probabilities(depth, run.advance(left, depth)))
        if depth in KEPT:  # more than any plan keeps
            left = left[np.argsort(-alone[row, left], kind="stable")][: KEPT[depth]]
    odds = np.where(np.isnan(alone[-1]), -np.inf, alone[-1] + TYPICAL_RETRIEVAL * retrieval)
    numbers: dict[tuple[object, ...], int] = {}
    for at in np.argsort(-odds, kind="stable").tolist():
        numbers.setdefault(passage_key(found[at]), len(numbers))
    passage = [numbers[passage_key(each)] for each in found]
    chosen = [
        whole_passage(
            retriever, [each for each, own in zip(found, passage, strict=True) if own == at]
        )
        for at in range(min(COLLECTED, len(numbers)))
    ]
    # Sentences of these passages may be read alone later.
    more = np.flatnonzero((np.array(passage) < COLLECTED) & np.isnan(alone[-1]))
    if len(more):
        others_alone = encoder.begin(task.question, [texts[at] for at in more.tolist()])
        depth = encoder.depths[-1]
        logits = others_alone.advance(np.arange(len(more)), depth)
        alone[-1, more] = odds_of(cascade.probabilities(depth, logits))
    windows = encoder.begin_passages(
        [(task.question, [Passage([e.text for e in own], title_path(own[0])) for own in chosen])]
    )
    every = np.arange(len(chosen))
    logits = np.stack([windows.advance(every, depth) for depth in encoder.context_depths])
    columns = {sentence_key(each): at for at, each in enumerate(e for own in chosen for e in own)}
    owners = np.repeat(every, [len(own) for own in chosen])
    keys = [sentence_key(each) for each in found]
    context = np.full((len(logits), len(keys)), np.nan)
    known = [at for at, key in enumerate(keys) if key in columns]
    context[:, known] = logits[:, [columns[keys[at]] for at in known]]
    others = sorted(columns[key] for key in columns.keys() - set(keys))
    return Scored(
        task.source,
        task.answerable,
        alone,
        np.asarray(run.tokens),
        retrieval,
        np.array([task.is_gold(each) for each in found]),
        np.array(passage),
        context,
        np.asarray(windows.tokens),
        logits[:, others].astype(float),
        owners[others],
    )


def odds_of(probabilities: FloatArray) -> FloatArray:
    inside = np.clip(probabilities, 1e-12, 1 - 1e-12)
    return np.asarray(np.log(inside / (1 - inside)))


def collect(folder: str, corpora: Path, indexes: Path, out: Path, most: int) -> None:
    ranker, cascade = load(f"cosinet % 100 >> cascade({folder!r})"), Cascade.load(folder)
    scored: list[Scored] = []
    tasks = (*document_tasks(corpora, indexes), *wikiqa_tasks(), *squadshifts_tasks(most))
    for number, task in enumerate(tasks, 1):
        found = score(task, ranker, cascade)
        if found is not None:
            scored.append(found)
        if number % 25 == 0:
            print(f"{number} of {len(tasks)} questions", flush=True)
            save_scored(scored, out)
    save_scored(scored, out)


_ARRAYS = Scored._fields[2:]


def save_scored(scored: Sequence[Scored], path: Path) -> None:
    arrays: dict[str, Any] = {
        "source": np.array([each.source for each in scored]),
        "answerable": np.array([each.answerable for each in scored]),
    }
    for name in _ARRAYS:
        arrays |= {f"{name}.{at}": getattr(each, name) for at, each in enumerate(scored)}
    np.savez_compressed(path, **arrays)


def load_scored(path: Path) -> list[Scored]:
    with np.load(path) as found:
        return [
            Scored(str(source), bool(answerable), *(found[f"{name}.{at}"] for name in _ARRAYS))
            for at, (source, answerable) in enumerate(
                zip(found["source"], found["answerable"], strict=True)
            )
        ]


class Plan(NamedTuple):
    """The sentences that are read alone, how many stay after some depths, and the passages."""

    sentences: int
    keeps: tuple[tuple[int, int], ...]
    """Depths and numbers; those left go to the last depth."""
    passages: int


class Readings(NamedTuple):
    """What a plan reads of one question."""

    first: dict[int, IntArray]
    """By depth, the sentences whose reading alone ended there."""
    features: FloatArray  # (finalists, 5): alone, context, in context, retrieval, 1
    gold: NDArray[np.bool_]  # (finalists,)
    cost: float
    """Token-layers."""


Answer = Mapping[int, FloatArray]
"""By depth, the weights of the log odds alone, of the retrieval, and the bias."""


def fit_curves(scored: Sequence[Scored]) -> list[PlattScaling]:
    """By context depth, from logits in context to probabilities; every source counts the same."""
    sizes = Counter[str]()
    for own in scored:
        sizes[own.source] += own.unretrieved.shape[1] + int((~np.isnan(own.context[-1])).sum())
    logits, labels, weight = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    for own in scored:
        known = ~np.isnan(own.context[-1])
        logits += [own.context[:, known], own.unretrieved]
        labels += [own.gold[known].astype(float), np.zeros(own.unretrieved.shape[1])]
        weight.append(np.full(known.sum() + own.unretrieved.shape[1], 1 / sizes[own.source]))
    label, weights = np.concatenate(labels), np.concatenate(weight)
    return [
        PlattScaling(*logistic_regression(np.stack([row, np.ones(len(row))]), label, weights))
        for row in np.concatenate(logits, axis=1)
    ]


def fit_answer(scored: Sequence[Scored], depths: Sequence[int], plan: Plan) -> Answer:
    """Logistic regression over all sentences; every source counts the same."""
    sizes = Counter[str]()
    for own in scored:
        sizes[own.source] += len(own.gold)
    made = {}
    for depth in (*dict(plan.keeps), depths[-1]):
        row = depths.index(depth)
        known = [~np.isnan(own.alone[row]) for own in scored]
        columns = np.concatenate(
            [
                np.stack([own.alone[row], own.retrieval, np.ones(len(own.gold))])[:, read]
                for own, read in zip(scored, known, strict=True)
            ],
            axis=1,
        )
        labels = [own.gold[read] for own, read in zip(scored, known, strict=True)]
        weight = [
            np.full(read.sum(), 1 / sizes[own.source])
            for own, read in zip(scored, known, strict=True)
        ]
        made[depth] = logistic_regression(
            columns, np.concatenate(labels).astype(float), np.concatenate(weight)
        )
    return made


def read(own: Scored, depths: Sequence[int], layers: int, plan: Plan, answer: Answer) -> Readings:
    """As `Corpus.ask` does it."""
    left, cost, depth_before = np.arange(len(own.gold))[: plan.sentences], 0.0, 0
    odds, first = np.full(len(own.gold), -np.inf), dict[int, IntArray]()
    for depth, keep in (*plan.keeps, (depths[-1], len(left))):
        cost += (depth - depth_before) * float(own.tokens[left].sum())
        row, weights, depth_before = depths.index(depth), answer[depth], depth
        odds[left] = weights @ np.stack(
            [own.alone[row, left], own.retrieval[left], np.ones(len(left))]
        )
        # Sentences that were not collected at this depth are behind many others.
        order = left[np.argsort(-np.nan_to_num(own.alone[row, left], nan=-99), kind="stable")]
        first[depth], left = order, order[:keep]
    best = list(dict.fromkeys(own.passage[np.argsort(-odds, kind="stable")].tolist()))
    chosen = [at for at in best[: plan.passages] if at < len(own.passage_tokens)]
    cost += layers * float(own.passage_tokens[chosen].sum())
    inside = np.isin(own.passage, chosen)
    new = [
        (value, at)
        for at, value in enumerate(own.context.tolist())
        if inside[at] and at not in left
    ]
    new += [(value, -1) for value in own.unretrieved[np.isin(own.owners, chosen)].tolist()]
    more = [at for _, at in sorted(new, reverse=True)[:MORE]]
    finalists = np.array([*left.tolist(), *(at for at in more if at >= 0)])
    finalists = finalists[~np.isnan(own.alone[depths.index(depth_before), finalists])]
    mean = float(own.tokens.mean())  # of sentences that were not retrieved
    cost += depth_before * sum(float(own.tokens[at]) if at >= 0 else mean for at in more)
    known = inside[finalists] & ~np.isnan(own.context[finalists])
    features = np.stack(
        [
            own.alone[depths.index(depth_before), finalists],
            np.where(known, np.nan_to_num(own.context[finalists]), 0.0),
            known.astype(float),
            own.retrieval[finalists],
            np.ones(len(finalists)),
        ],
        axis=1,
    )
    return Readings(first, features, own.gold[finalists], cost)


def fit_both(scored: Sequence[Scored], readings: Sequence[Readings]) -> FloatArray:
    """
    Weights of the features of the finalists.

    The loss is the softmax over the finalists of a question, which decides the order, plus `POINT`
    times the binary cross-entropy, which makes probabilities. Every source counts the same.
    """
    counts = Counter(own.source for own in scored)
    total = len(counts)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = 0.0, np.zeros_like(weights)
        for own, found in zip(scored, readings, strict=True):
            share, gold, x = 1 / counts[own.source] / total, found.gold, found.features
            odds = x @ weights
            if gold.any() and not gold.all():
                shares = np.exp(odds - odds.max())
                value -= share * float(np.log(shares[gold].sum() / shares.sum()))
                gradient -= share * (
                    (shares * gold) @ x / shares[gold].sum() - shares @ x / shares.sum()
                )
            value += POINT * share * float((np.logaddexp(0, odds) - gold * odds).sum())
            probability = 0.5 * (1 + np.tanh(0.5 * odds))
            gradient += POINT * share * ((probability - gold) @ x)
        small = 1e-3 * np.array([1, 1, 1, 1, 0])
        return value + float(small @ weights**2), gradient + 2 * small * weights

    return np.asarray(minimize(loss, np.zeros(5), jac=True).x)


def measure(
    scored: Sequence[Scored], depths: Sequence[int], layers: int, plan: Plan
) -> dict[str, float]:
    """Right answers at 1, 3 and 5, and token-layers, by cross-validation."""
    found: dict[str, list[float]] = {}
    order = np.random.default_rng(0).permutation(len(scored))
    for fold in range(FOLDS):
        held_out = set(order[fold::FOLDS].tolist())
        fitted = [own for at, own in enumerate(scored) if at not in held_out]
        answer = fit_answer(fitted, depths, plan)
        both = fit_both(fitted, [read(own, depths, layers, plan, answer) for own in fitted])
        for own in (scored[at] for at in held_out):
            readings = read(own, depths, layers, plan, answer)
            ranked = readings.gold[np.argsort(-(readings.features @ both), kind="stable")]
            found.setdefault(f"{own.source} token-layers", []).append(readings.cost)
            if own.answerable:
                for at in (1, 3, 5):
                    found.setdefault(f"{own.source} right@{at}", []).append(
                        float(ranked[:at].any())
                    )
    return {
        name: round(float(np.mean(values)) * (1 if "layers" in name else 100), 2)
        for name, values in sorted(found.items())
    }


PLANS = tuple(
    Plan(sentences, ((2, second), (4, fourth)), passages)
    for (sentences, second, fourth), passages in product(
        ((60, 24, 11), (60, 30, 14), (80, 24, 11), (80, 30, 14), (100, 24, 11), (100, 30, 14)),
        (2, 3, 4),
    )
)
"""At least two passages: phrases are read in them."""


def choose_plan(
    scored: Sequence[Scored], depths: Sequence[int], layers: int, budget: float
) -> Plan:
    """The plan within the budget with the best mean of right@1 and right@3 over the sources."""
    best: tuple[float, Plan] | None = None
    for plan in PLANS:
        if not {depth for depth, _ in plan.keeps} <= set(depths):
            continue
        row = measure(scored, depths, layers, plan)
        print(plan, row, flush=True)
        cost = np.mean([value for name, value in row.items() if "layers" in name])
        value = float(np.mean([own for name, own in row.items() if name.endswith(("@1", "@3"))]))
        if cost <= budget and (best is None or value > best[0]):
            best = value, plan
    assert best is not None
    return best[1]


def fit(folder: Path, scores: Path, budget: float) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    depths, layers = config["depths"], config["context"]["depths"][-1]
    collected = load_scored(scores)
    curves = fit_curves(collected)
    scored = [own.with_odds(curves[-1]) for own in collected]
    for source, count in Counter(own.source for own in scored).items():
        own = [each for each in scored if each.source == source]
        answerable = [each.gold.any() for each in own if each.answerable]
        print(source, count, "questions; gold retrieved:", f"{np.mean(answerable):.3f}")
    plan = choose_plan(scored, depths, layers, budget)
    answer = fit_answer(scored, depths, plan)
    readings = [read(own, depths, layers, plan, answer) for own in scored]
    both = fit_both(scored, readings)
    names = ("alone", "context", "in_context", "retrieval", "bias")
    config["context"]["calibration"] = {
        str(depth): asdict(curve)
        for depth, curve in zip(config["context"]["depths"], curves, strict=True)
    }
    config["context"]["ask"] = {
        "sentences": plan.sentences,
        "keeps": {str(depth): keep for depth, keep in plan.keeps},
        "passages": plan.passages,
        "more": MORE,
        "answer": {
            str(depth): dict(zip(("alone", "retrieval", "bias"), own.tolist(), strict=True))
            for depth, own in answer.items()
        },
        "both": dict(zip(names, both.tolist(), strict=True)),
        "threshold": fit_threshold(scored, readings, both),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(config["context"]["ask"]))


def fit_threshold(
    scored: Sequence[Scored], readings: Sequence[Readings], both: FloatArray
) -> float:
    """
    The middle of the thresholds that hold both aims for the document questions of the dev half.

    Both groups are about a hundred questions, so that a threshold at either end would miss an aim
    on other questions.
    """
    best: dict[str, tuple[list[float], list[float], list[float]]] = {}
    for own, found in zip(scored, readings, strict=True):
        odds = found.features @ both
        probability = float(0.5 * (1 + np.tanh(0.5 * odds.max())))
        right, wrong, none = best.setdefault(own.source, ([], [], []))
        if not own.answerable:
            none.append(probability)
        else:
            (right if found.gold[odds.argmax()] else wrong).append(probability)
    rights, _, unanswerable = (np.sort(each) for each in best["documents"])
    lowest = unanswerable[ceil(UNANSWERABLE_REFUSED * len(unanswerable)) - 1]
    highest = rights[floor(RIGHT_REFUSED * len(rights))]
    print(f"thresholds that hold both aims: {lowest:.4f} to {highest:.4f}")
    threshold = (lowest + highest) / 2
    for name, groups in best.items():
        shares = [float((np.array(each) < threshold).mean()) if each else 0.0 for each in groups]
        print(name, "refused: right {:.3f}, wrong {:.3f}, unanswerable {:.3f}".format(*shares))
    return round(float(threshold), 4)


def logistic_regression(columns: FloatArray, labels: FloatArray, weight: FloatArray) -> FloatArray:
    """Weights of the columns, by Newton's method."""
    weight = weight * (len(weight) / weight.sum())
    weights = np.zeros(len(columns))
    for _ in range(60):
        probability = 0.5 * (1 + np.tanh(0.5 * (weights @ columns)))
        hessian = (columns * (weight * probability * (1 - probability))) @ columns.T
        hessian += 1e-6 * np.eye(len(columns))
        step = np.linalg.solve(hessian, columns @ (weight * (probability - labels)))
        weights -= np.clip(step, -2, 2)
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("collect")
    one.add_argument("folder")
    one.add_argument("--corpus", type=Path, required=True, help="the document sets")
    one.add_argument("--indexes", type=Path, required=True, help="a folder for their indexes")
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--most", type=int, default=300, help="questions of SQuADShifts")
    two = commands.add_parser("fit")
    two.add_argument("folder", type=Path)
    two.add_argument("--scores", type=Path, required=True)
    two.add_argument("--budget", type=float, default=19_000, help="mean token-layers")
    options = parser.parse_args()
    if options.command == "collect":
        collect(options.folder, options.corpus, options.indexes, options.out, options.most)
    else:
        fit(options.folder, options.scores, options.budget)


if __name__ == "__main__":
    main()
