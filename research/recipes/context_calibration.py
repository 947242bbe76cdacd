"""
Fit how a cascade ranks passages in `Corpus.ask`: schedule, probabilities and threshold.

    ASKLINE_DATA=DIR python -m research.recipes.context_calibration collect FOLDER \\
        --corpus DIR --indexes DIR --out FILE
    python -m research.recipes.context_calibration fit FOLDER --scores FILE

`collect` asks questions of dev sets over corpora, as `Corpus.ask` does, and keeps the logits of all
sentences at all depths: held-out SQuADShifts paragraphs with unanswerable variants of their
questions, WikiQA dev, and the dev half of the document questions, with keyword queries and
misspellings among them. `fit` chooses how many passages enter and stay at each depth within a
budget of token-layers, fits the probability of an answer from the logit and the retrieval score by
logistic regression, and chooses the threshold. It writes all of them to FOLDER/config.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askline import Corpus, data, load
from askline.corpus.results import RetrievedSentence
from askline.corpus.retrieval import HasPassages, standard_scores
from askline.corpus.sentence_ranking import choose_passages
from askline.corpus.title_context import add_title_context, title_path
from askline.rankers.base import Ranker
from askline.rankers.cascade import Cascade
from askline.rankers.probability import log_odds
from askline.training.cascade.context_examples import paragraph_passages
from askline.training.cascade.question_variants import add_unanswerable, add_variants
from askline.types import Passage
from research.benchmarks.common import data_root
from research.benchmarks.corpus_library import library
from research.document_questions.questions import is_right, load_questions

FloatArray = NDArray[np.float64]
ENTER = 20
RETRIEVED = 100
READ_ALONE = 24
COUNT_ALONE = 10
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
    """All sentences of the passages that entered, for one question."""

    source: str
    answerable: bool
    passage: NDArray[np.int64]  # (sentences,)
    tokens: NDArray[np.int64]  # (passages,)
    logits: FloatArray  # (depths, sentences)
    retrieval: FloatArray  # (sentences,) standard scores
    gold: NDArray[np.bool_]  # (sentences,)
    alone: FloatArray  # (sentences,) log odds read alone; NaN but for the best ones in context


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


def score(task: Task, ranker: Ranker, encoder: Any) -> Scored | None:
    """What `Corpus.ask` would see; None if nothing is retrieved."""
    retriever = task.corpus.retriever()
    assert isinstance(retriever, HasPassages)
    found = retriever.retrieve(task.question, RETRIEVED)
    if not found:
        return None
    chosen = choose_passages(task.question, retriever, found, ranker, ENTER)
    passages = [Passage([each.text for each in own], title_path(own[0])) for own in chosen.passages]
    run = encoder.begin_passages([(task.question, passages)])
    rows = np.arange(len(passages))
    logits = np.stack([run.advance(rows, depth) for depth in encoder.context_depths])
    sentences = [each for own in chosen.passages for each in own]
    best = np.argsort(-logits[-1], kind="stable")[:READ_ALONE]
    texts = add_title_context(task.question, [sentences[at] for at in best.tolist()])
    pairs = [(task.question, each.text) for each in texts]
    alone = np.full(len(sentences), np.nan)
    alone[best] = [log_odds(value) for value in ranker.predict(pairs).tolist()]
    known = [each.score for each in found]
    standard = dict(zip(known, standard_scores(known) or [0.0] * len(known), strict=True))
    lowest = min(known)
    return Scored(
        task.source,
        task.answerable,
        np.repeat(rows, [len(own) for own in chosen.passages]),
        np.asarray(run.tokens),
        logits.astype(np.float64),
        np.array([standard[max(each.score, lowest)] for each in sentences]),
        np.array([task.is_gold(each) for each in sentences]),
        alone,
    )


def collect(folder: str, corpora: Path, indexes: Path, out: Path, most: int) -> None:
    ranker = load(f"cosinet % 100 >> cascade({folder!r})")
    encoder = Cascade.load(folder).encoder
    scored: list[Scored] = []
    tasks = (*document_tasks(corpora, indexes), *wikiqa_tasks(), *squadshifts_tasks(most))
    for number, task in enumerate(tasks, 1):
        found = score(task, ranker, encoder)
        if found is not None:
            scored.append(found)
        if number % 25 == 0:
            print(f"{number} of {len(tasks)} questions", flush=True)
            save_scored(scored, out)
    save_scored(scored, out)


def save_scored(scored: Sequence[Scored], path: Path) -> None:
    arrays: dict[str, Any] = {
        "source": np.array([each.source for each in scored]),
        "answerable": np.array([each.answerable for each in scored]),
    }
    for name in ("passage", "tokens", "logits", "retrieval", "gold", "alone"):
        arrays |= {f"{name}.{at}": getattr(each, name) for at, each in enumerate(scored)}
    np.savez_compressed(path, **arrays)


def load_scored(path: Path) -> list[Scored]:
    with np.load(path) as found:
        return [
            Scored(
                str(source),
                bool(answerable),
                *(found[f"{name}.{at}"] for name in ("passage", "tokens", "logits")),
                *(found[f"{name}.{at}"] for name in ("retrieval", "gold", "alone")),
            )
            for at, (source, answerable) in enumerate(
                zip(found["source"], found["answerable"], strict=True)
            )
        ]


class Weights(NamedTuple):
    """Log odds = logit * each logit + retrieval * each standard score + bias."""

    logit: float
    retrieval: float
    bias: float

    def odds(self, logits: FloatArray, retrieval: FloatArray) -> FloatArray:
        found: FloatArray = self.logit * logits + self.retrieval * retrieval + self.bias
        return found


def fit_weights(scored: Sequence[Scored], row: int, *, alone: bool = False) -> Weights:
    """
    Logistic regression over all sentences; every source counts the same.

    With `alone`, from the logit without the retrieval score, as for `rank`.
    """
    columns = np.concatenate(
        [
            np.stack([own.logits[row], own.retrieval * (not alone), np.ones(len(own.gold))])
            for own in scored
        ],
        axis=1,
    )
    labels = np.concatenate([own.gold for own in scored]).astype(float)
    sizes = {
        name: sum(len(own.gold) for own in scored if own.source == name) for name in sources(scored)
    }
    weight = np.concatenate([np.full(len(own.gold), 1 / sizes[own.source]) for own in scored])
    return Weights(*(float(value) for value in logistic_regression(columns, labels, weight)))


def sources(scored: Sequence[Scored]) -> list[str]:
    return sorted({own.source for own in scored})


def fit_alone(scored: Sequence[Scored]) -> FloatArray:
    """Logistic regression over the sentences that were read alone too: four weights."""
    chosen = [np.flatnonzero(~np.isnan(own.alone)) for own in scored]
    columns = np.concatenate(
        [alone_columns(own, rows) for own, rows in zip(scored, chosen, strict=True)], axis=1
    )
    labels = np.concatenate([own.gold[rows] for own, rows in zip(scored, chosen, strict=True)])
    counts = {
        name: sum(len(rows) for own, rows in zip(scored, chosen, strict=True) if own.source == name)
        for name in sources(scored)
    }
    weight = np.concatenate(
        [
            np.full(len(rows), 1 / counts[own.source])
            for own, rows in zip(scored, chosen, strict=True)
        ]
    )
    return logistic_regression(columns, labels.astype(float), weight)


def alone_columns(own: Scored, rows: NDArray[np.int64]) -> FloatArray:
    """(4, sentences): in context, alone, retrieval, 1."""
    return np.stack(
        [own.logits[-1, rows], own.alone[rows], own.retrieval[rows], np.ones(len(rows))]
    )


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


class Plan(NamedTuple):
    """Passages that enter, and that are kept after some depths."""

    enter: int
    keeps: tuple[tuple[int, int], ...]


def run_plan(
    own: Scored, plan: Plan, depths: Sequence[int], weights: Sequence[Weights]
) -> tuple[NDArray[np.int64], FloatArray, float]:
    """The sentences in order, their log odds, and the token-layers."""
    left = np.arange(min(plan.enter, len(own.tokens)))
    cost, depth_before = 0.0, 0
    order: list[NDArray[np.int64]] = []
    odds = np.full(len(own.gold), -np.inf)
    steps = [*plan.keeps, (depths[-1], len(own.tokens))]
    for depth, keep in steps:
        row = depths.index(depth)
        cost += (depth - depth_before) * float(own.tokens[left].sum())
        depth_before = depth
        inside = np.flatnonzero(np.isin(own.passage, left))
        odds[inside] = weights[row].odds(own.logits[row, inside], own.retrieval[inside])
        best = np.array([own.logits[row][own.passage == each].max() for each in left])
        ranked = left[np.argsort(-best, kind="stable")]
        dropped = ranked[keep:]
        gone = np.flatnonzero(np.isin(own.passage, dropped))
        order.insert(0, gone[np.argsort(-odds[gone], kind="stable")])
        left = np.sort(ranked[:keep])
    inside = np.flatnonzero(np.isin(own.passage, left))
    order.insert(0, inside[np.argsort(-odds[inside], kind="stable")])
    return np.concatenate(order), odds, cost


def read_alone(
    own: Scored, order: NDArray[np.int64], odds: FloatArray, weights: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """The order and the log odds after the first sentences were read alone."""
    best = np.array([at for at in order[:COUNT_ALONE].tolist() if not np.isnan(own.alone[at])])
    if not len(best):
        return order, odds
    odds = odds.copy()
    odds[best] = weights @ alone_columns(own, best)
    others = order[~np.isin(order, best)]
    return np.concatenate([best[np.argsort(-odds[best], kind="stable")], others]), odds


def measure(
    scored: Sequence[Scored],
    plan: Plan,
    depths: Sequence[int],
    weights: Sequence[Weights],
    alone: FloatArray | None = None,
) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for own in scored:
        order, odds, cost = run_plan(own, plan, depths, weights)
        if alone is not None:
            order, _ = read_alone(own, order, odds, alone)
        found.setdefault("token-layers", []).append(cost)
        if own.answerable:
            for at in (1, 3, 5):
                right = float(own.gold[order[:at]].any())
                found.setdefault(f"{own.source} right@{at}", []).append(right)
    return {
        name: round(float(np.mean(values)) * (1 if "layers" in name else 100), 2)
        for name, values in found.items()
    }


def choose_plan(
    scored: Sequence[Scored],
    depths: Sequence[int],
    weights: Sequence[Weights],
    alone: FloatArray,
    budget: float,
) -> tuple[Plan, dict[str, float]]:
    """The plan within the budget with the best mean of right@1 and right@3 over the sources."""
    best: tuple[float, Plan, dict[str, float]] | None = None
    for enter, two, four, eight in product(
        (8, 10, 12, 14, 16, 20), (0, 5, 6, 8, 10, 12), (0, 4, 5, 6, 8), (0, 2, 3, 4)
    ):
        keeps = tuple((depth, keep) for depth, keep in ((2, two), (4, four), (8, eight)) if keep)
        falling = [enter, *(keep for _, keep in keeps)]
        if any(after >= before for before, after in pairwise(falling)):
            continue
        plan = Plan(enter, keeps)
        row = measure(scored, plan, depths, weights, alone)
        if row["token-layers"] > budget:
            continue
        value = float(
            np.mean([value for name, value in row.items() if name.endswith(("@1", "@3"))])
        )
        if best is None or value > best[0]:
            best = value, plan, row
    assert best is not None
    return best[1], best[2]


def fit(folder: Path, scores: Path, budget: float) -> None:
    scored = load_scored(scores)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    depths = config["context"]["depths"]
    weights = [fit_weights(scored, row) for row in range(len(depths))]
    alone = [fit_weights(scored, row, alone=True) for row in range(len(depths))]
    for source in sources(scored):
        own = [each for each in scored if each.source == source]
        print(
            source,
            len(own),
            "questions,",
            sum(each.answerable for each in own),
            "answerable,",
            sum(each.gold.any() for each in own),
            "with gold among the passages",
        )
    print("all passages to the end:", measure(scored, Plan(ENTER, ()), depths, weights))
    both = fit_alone(scored)
    plan, row = choose_plan(scored, depths, weights, both, budget)
    print("without reading alone:", measure(scored, plan, depths, weights))
    print("chosen:", plan, row, both)
    threshold = fit_threshold(scored, plan, depths, weights, both)
    ranking = {
        "schedule": {
            "enter": plan.enter,
            "keeps": {str(depth): keep for depth, keep in plan.keeps},
        },
        "calibration": {
            str(depth): {"scale": own.logit, "shift": own.bias}
            for depth, own in zip(depths, alone, strict=True)
        },
        "answer": {str(depth): own._asdict() for depth, own in zip(depths, weights, strict=True)},
        "threshold": threshold,
        "alone": {
            "count": COUNT_ALONE,
            **{
                name: float(value)
                for name, value in zip(("context", "alone", "retrieval", "bias"), both, strict=True)
            },
        },
    }
    config["context"] |= ranking
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(ranking))


def fit_threshold(
    scored: Sequence[Scored],
    plan: Plan,
    depths: Sequence[int],
    weights: Sequence[Weights],
    alone: FloatArray,
) -> float:
    """
    The lowest threshold that refuses 80 % of the unanswerable questions of every source.

    If it refuses more than 8 % of the right first answers, the highest that does not.
    """
    best = {name: ([], [], []) for name in sources(scored)}  # type: dict[str, Any]
    for own in scored:
        order, odds, _ = run_plan(own, plan, depths, weights)
        order, odds = read_alone(own, order, odds, alone)
        probability = 0.5 * (1 + np.tanh(0.5 * odds[order[:5]].max()))
        right, wrong, none = best[own.source]
        if not own.answerable:
            none.append(probability)
        elif own.gold[order[0]]:
            right.append(probability)
        else:
            wrong.append(probability)
    needed, allowed = [], []
    for name, (right, _, none) in best.items():
        allowed.append(float(np.quantile(right, 0.08)))
        if none:
            needed.append(float(np.quantile(none, 0.8)))
        print(
            name,
            "8 % of right first answers below",
            round(allowed[-1], 4),
            "80 % of the unanswerable below",
            round(needed[-1], 4) if none else None,
        )
    threshold = min(max(needed), min(allowed)) if needed else min(allowed)
    for name, (right, wrong, none) in best.items():
        shares = [
            float((np.array(each) < threshold).mean()) if each else 0.0
            for each in (right, wrong, none)
        ]
        print(name, "refused: right {:.3f}, wrong {:.3f}, unanswerable {:.3f}".format(*shares))
    return round(threshold, 4)


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
    two.add_argument("--budget", type=float, default=17_500, help="mean token-layers in context")
    options = parser.parse_args()
    if options.command == "collect":
        collect(options.folder, options.corpus, options.indexes, options.out, options.most)
    else:
        fit(options.folder, options.scores, options.budget)


if __name__ == "__main__":
    main()
