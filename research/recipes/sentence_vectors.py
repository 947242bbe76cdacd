"""
Train the sentence vectors of retrieval, and fit the weights of its scores.

    ASKLINE_DATA=DIR python -m research.recipes.sentence_vectors train --mined FILE --out FILE
    ASKLINE_DATA=DIR python -m research.recipes.sentence_vectors fit \\
        --documents DIR --indexes DIR --mined FILE

`train` starts from the shipped word vectors. The vector of a question must be nearer to that of its
answer sentence than to those of other questions and to other sentences of the same text. It learns
from the train part of SQuADShifts, the SQuAD train questions and mined train questions (--mined:
train.jsonl of `research.mining`). `fit` minimizes the softmax loss over the sentences that
retrieval considers, on dev questions: the dev half of the document questions, held-out SQuADShifts
Reddit and Amazon, WikiQA dev, and mined questions (--mined: dev.jsonl). Every set counts the same.
It prints the share of questions with a right sentence among the first 1, 20, 60 and 100, by
cross-validation, and the weights for `askline/corpus/retrieval.py`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch.nn import functional

from askline.corpus import retrieval
from askline.corpus.question_terms import RetrievalOptions
from askline.corpus.retrieval import LexicalRetriever
from askline.data import hold_out, read_paragraphs, to_question_set
from askline.models.word_vectors import WordVectors
from askline.text.sentences import split_sentences
from askline.text.words import split_words
from research.benchmarks.common import data_root
from research.benchmarks.corpus_library import library
from research.benchmarks.retrieval import Task, document_tasks, library_tasks, mined, shifts

SEED = 0
DIMENSIONS = 96
EPOCHS = 4
RATE = 6e-3
BATCH = 384
MOST_OTHERS = 6
WITH_TITLE = 0.6
"""Share of sentences that are read with the title of their section."""
WITH_OTHER = 0.5
"""Share of questions that bring another sentence of the same text into the batch."""
DROPPED = 0.1
"""Share of question words that are left out."""
MIN_QUESTIONS = 2
"""Words of fewer training questions have no vector."""
PLAIN_PAIRS = 9_997
"""The first SQuAD pairs, which are plain text. The others are lower-cased and tokenized."""
FOLDS = 4
AT = (1, 20, 60, 100)
FloatArray = NDArray[np.float64]


class Pair(NamedTuple):
    """A question, its answer sentence, the title, and other sentences of the text, as words."""

    question: list[int]
    answer: list[int]
    title: list[int]
    others: list[list[int]]


def training_pairs(mined_file: Path, rows: dict[str, int]) -> list[Pair]:
    def words(text: str) -> list[int]:
        return [rows[word] for word in split_words(text) if word in rows]

    return [
        pair
        for question, answer, title, others in _training_texts(mined_file)
        if (pair := Pair(words(question), words(answer), words(title), [*map(words, others)]))
        and pair.question
        and pair.answer
    ]


def _training_texts(mined_file: Path) -> Iterator[tuple[str, str, str, list[str]]]:
    root = data_root()
    for name in ("new_wiki", "reddit", "amazon_reviews"):
        paragraphs = read_paragraphs(root / f"squadshifts/{name}_v1.0.json")
        for question in to_question_set(hold_out(paragraphs)[0]):
            right = [each.text for each in question.candidates if each.is_answer]
            others = [each.text for each in question.candidates if not each.is_answer]
            if right:
                yield question.text, right[0], "", others[:MOST_OTHERS]
    with (root / "squad/train-pairs.jsonl").open(encoding="utf-8") as lines:
        for line in islice(lines, PLAIN_PAIRS):
            pair = json.loads(line)
            yield pair["question"], pair["sentence"], "", []
    contexts = json.loads((root / "squad/train-800-contexts.json").read_text("utf-8"))
    for paragraph in contexts:
        text = paragraph["context"]
        sentences = split_sentences(text)
        for question in paragraph["qas"]:
            at = text.find(question["answer"])
            for start, end in sentences:
                if start <= at < end:
                    others = [text[a:b] for a, b in sentences if a != start]
                    yield question["question"], text[start:end], "", others[:MOST_OTHERS]
    with mined_file.open(encoding="utf-8") as lines:
        for line in lines:
            section = json.loads(line)
            sentences = section["sentences"]
            for question in section["questions"]:
                if right := question["answers"]:
                    others = [one for at, one in enumerate(sentences) if at not in right]
                    answer = sentences[right[0]]
                    yield question["question"], answer, section["title"], others[:MOST_OTHERS]


def train(mined_file: Path, out: Path) -> None:
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    given = WordVectors.load()
    pairs = training_pairs(mined_file, given.row_of)
    print(f"{len(pairs)} questions", flush=True)
    table = torch.nn.Parameter(first_vectors(given))
    log_scale = torch.nn.Parameter(torch.tensor(3.2))
    sparse = torch.optim.SparseAdam([table], lr=RATE)
    dense = torch.optim.Adam([log_scale], lr=1e-2)
    step, steps = 0, EPOCHS * (len(pairs) // BATCH)

    def encode(texts: Sequence[Sequence[int]]) -> torch.Tensor:
        flat = torch.tensor([word for text in texts for word in text])
        lengths = torch.tensor([len(text) for text in texts])
        starts = torch.cumsum(lengths, 0) - lengths
        sums = functional.embedding_bag(flat, table, starts, mode="sum", sparse=True)
        return functional.normalize(sums, dim=1)

    def titled(text: list[int], title: list[int]) -> list[int]:
        return title + text if rng.random() < WITH_TITLE else text

    for epoch in range(EPOCHS):
        rng.shuffle(pairs)
        losses = []
        for begin in range(0, len(pairs) - BATCH + 1, BATCH):
            part = pairs[begin : begin + BATCH]
            sparse.param_groups[0]["lr"] = RATE * max(0.02, 1 - step / steps)
            questions = [
                [word for word in own.question if rng.random() >= DROPPED] or own.question
                for own in part
            ]
            texts = [titled(own.answer, own.title) for own in part]
            texts += [
                titled(rng.choice(own.others), own.title)
                for own in part
                if own.others and rng.random() < WITH_OTHER
            ]
            logits = log_scale.exp() * encode(questions) @ encode(texts).T
            loss = functional.cross_entropy(logits, torch.arange(len(part)))
            for optimizer in (sparse, dense):
                optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            sparse.step()  # type: ignore[no-untyped-call]
            dense.step()
            losses.append(loss.item())
            step += 1
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}", flush=True)
    counts = Counter(word for own in pairs for text in own[:3] for word in set(text))
    kept = [row for row in range(len(given)) if counts[row] >= MIN_QUESTIONS]
    made = WordVectors.from_rows(
        [given.words[row] for row in kept],
        table.detach().numpy()[kept],
        rarity=np.zeros(len(kept), np.float32),
        unknown="zero",
        name="sentence vectors",
    )
    made.quantized().save(out)
    print(f"{made}, saved to {out}")


def first_vectors(given: WordVectors) -> torch.Tensor:
    """The principal components of the given vectors, rare words with longer vectors."""
    rows = functional.normalize(torch.tensor(given.of(given.words)), dim=1)
    rows -= rows.mean(0)
    components = torch.linalg.svd(rows[:20_000], full_matrices=False)[2][:DIMENSIONS]
    weights = functional.softplus(torch.tensor(given.idf(given.words)) * 3 - 1.5)
    return functional.normalize(rows @ components.T, dim=1) * weights[:, None]


class Considered(NamedTuple):
    """The sentences that are considered for a question."""

    features: FloatArray  # (sentences, features)
    match: NDArray[np.int64]  # (sentences,) best first by their own match
    gold: NDArray[np.bool_]  # (sentences,)


class _Recorder(LexicalRetriever):
    """Keeps the features of the last question."""

    last: tuple[Any, Any] | None = None

    def features(self, *given: Any) -> Any:
        found = super().features(*given)
        self.last = given[2], found
        return found


def considered(task: Task) -> Considered | None:
    way = task.ways["all"]
    recorder = _Recorder(way._store, way._search)
    recorder.retrieve(task.question, max(AT))
    if recorder.last is None:
        return None
    pairs, (rows, features, by_match) = recorder.last
    sentences = recorder._with_documents([(*pairs[at], 0.0) for at in rows.tolist()])
    place = {int(at): number for number, at in enumerate(rows)}
    gold = np.array([task.place([each]) is not None for each in sentences], bool)
    return Considered(features, np.array([place[at] for at in by_match], np.int64), gold)


def collect(given: argparse.Namespace, stack: ExitStack) -> dict[str, list[Considered]]:
    options = {"all": RetrievalOptions()}
    made: dict[str, Callable[[], list[Task]]] = {
        "documents": lambda: document_tasks(given.documents, given.indexes, options, stack),
        **{
            name: lambda path=path: library_tasks(  # type: ignore[misc]
                shifts(path, given.questions), options, typos=False, stack=stack
            )[""]
            for name, path in (
                ("SQuADShifts Reddit", "squadshifts/reddit_v1.0.json"),
                ("SQuADShifts Amazon", "squadshifts/amazon_reviews_v1.0.json"),
            )
        },
        "WikiQA dev": lambda: library_tasks(
            library("wikiqa:dev", given.questions), options, typos=False, stack=stack
        )[""],
        "mined": lambda: library_tasks(
            mined(given.mined, given.questions), options, typos=False, stack=stack
        )[""],
    }
    found = {}
    for name, tasks in made.items():
        own = [each for each in map(considered, tasks()) if each is not None]
        print(f"{name}: {len(own)} questions", flush=True)
        found[name] = own
    return found


def fit_weights(sets: Sequence[Sequence[Considered]]) -> FloatArray:
    items = [
        (each, 1 / len(own) / len(sets))
        for own in sets
        for each in own
        if each.gold.any() and not each.gold.all()
    ]
    deviation = np.mean([each.features.std(axis=0) for each, _ in items], axis=0)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = 1e-3 * float(weights @ weights), 2e-3 * weights
        for each, share in items:
            x = each.features / deviation
            odds = np.exp((scores := x @ weights) - scores.max())
            right = odds * each.gold
            value -= share * float(np.log(right.sum() / odds.sum()))
            gradient = gradient - share * (right @ x / right.sum() - odds @ x / odds.sum())
        return value, gradient

    return np.asarray(minimize(loss, np.zeros(len(deviation)), jac=True).x / deviation)


def place_of_gold(each: Considered, weights: FloatArray) -> dict[int, bool]:
    """Whether a right sentence is among the first, as retrieval would choose and order them."""
    scores = each.features @ weights
    order = np.argsort(-scores, kind="stable").tolist()
    chosen = retrieval._take_in_turn(
        order, each.match.tolist(), max(AT), retrieval._WITH_VECTORS_BY_OWN_MATCH
    )
    best = sorted(chosen, key=lambda at: -scores[at])
    return {k: bool(each.gold[best[:k]].any()) for k in AT}


def _without(own: Sequence[Considered], fold: int) -> list[Considered]:
    return [each for at, each in enumerate(own) if at % FOLDS != fold]


def fit(given: argparse.Namespace) -> None:
    with ExitStack() as stack:
        sets = collect(given, stack)
    folds = [fit_weights([_without(own, fold) for own in sets.values()]) for fold in range(FOLDS)]
    for name, own in sets.items():
        places = [place_of_gold(each, folds[at % FOLDS]) for at, each in enumerate(own)]
        shares = [f"{100 * np.mean([one[k] for one in places]):.1f}" for k in AT]
        print(f"{name}: {' / '.join(shares)}")
    print([round(float(each), 2) for each in fit_weights(list(sets.values()))])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train")
    one.add_argument("--mined", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    two = commands.add_parser("fit")
    two.add_argument("--documents", type=Path, required=True)
    two.add_argument("--indexes", type=Path, required=True)
    two.add_argument("--mined", type=Path, required=True)
    two.add_argument("--questions", type=int, default=300, help="questions per set")
    given = parser.parse_args()
    if given.command == "train":
        train(given.mined, given.out)
    else:
        fit(given)


if __name__ == "__main__":
    main()
