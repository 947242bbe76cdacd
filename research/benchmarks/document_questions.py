"""
Hand-written questions to real document sets: right at 1, 3 and 5, by kind and by set.

    python -m research.document_questions.build DIR
    python -m research.benchmarks.document_questions --corpus DIR --half dev
    python -m research.benchmarks.document_questions --corpus DIR --half dev --ranker none
    python -m research.benchmarks.document_questions --corpus DIR --half test --write NAME
    python -m research.benchmarks.document_questions --corpus DIR --units 300

One index per set, in the folder --indexes. The half `dev` is for choosing; `test` is measured once.
`--units N` draws N indexed sentences at random over all sets, with a fixed seed, to read by eye.
--write NAME writes research/results/document_questions_NAME.json.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from askline import Corpus, load
from askline.corpus import Answers
from askline.evaluation import markdown_table
from askline.rankers.base import Ranker
from research.document_questions.questions import (
    DocumentQuestion,
    Half,
    is_right,
    load_questions,
)

from .common import save

RIGHT_AT = (1, 3, 5)
RETRIEVED = 100
UNITS_SEED = 17


@dataclass(frozen=True)
class Asked:
    """What came back for a question."""

    id: str
    set: str
    kind: str
    question: str
    place: int | None
    """Rank of the first right answer, from 1; None if it is not among the first five."""
    found: bool
    """Whether a right sentence is among the retrieved."""
    refused: bool
    milliseconds: float
    answers: tuple[str, ...]
    """The places and texts of the answers shown."""


@dataclass(frozen=True)
class Unit:
    """An indexed sentence as a reader of the list sees it."""

    set: str
    file: str
    number: int
    """The line, page, paragraph, notebook cell or message, from 1."""
    headings: tuple[str, ...]
    text: str


def open_set(name: str, corpus: Path, indexes: Path, ranker: str | Ranker | None) -> Corpus:
    """The index of a set, made or brought up to date."""
    index = Corpus.open(indexes / name, ranker=ranker)
    index.add([str(corpus / name)], only=True)
    return index


def ask_all(
    questions: Sequence[DocumentQuestion],
    corpus: Path,
    indexes: Path,
    ranker: str | None,
    on_set: Callable[[str], None] = lambda _: None,
) -> list[Asked]:
    """Ask every question of the index of its set."""
    loaded = load(ranker) if ranker else None
    asked = []
    for name in sorted({each.set for each in questions}):
        on_set(name)
        with open_set(name, corpus, indexes, loaded) as index:
            own = [each for each in questions if each.set == name]
            index.ask(own[0].question)  # load the models before the clock starts
            asked += [ask_one(each, index) for each in own]
    return asked


def ask_one(question: DocumentQuestion, index: Corpus) -> Asked:
    start = time.perf_counter()
    answers = index.ask(question.question, top_k=max(RIGHT_AT))
    milliseconds = 1000 * (time.perf_counter() - start)
    retrieved = index.retriever().retrieve(question.question, RETRIEVED)
    return Asked(
        question.id,
        question.set,
        question.kind,
        question.question,
        first_right(answers, question),
        any(is_right(each.text, each.document, question.gold) for each in retrieved),
        not answers.answered,
        round(milliseconds, 1),
        tuple(f"{each.place}: {each.text[:300]}" for each in answers),
    )


def first_right(answers: Answers, question: DocumentQuestion) -> int | None:
    right = (
        place
        for place, each in enumerate(answers, start=1)
        if any(
            is_right(each.text, document, question.gold)
            for document in (each.document, *(other.document for other in each.also_at))
        )
    )
    return next(right, None)


def summary(asked: Sequence[Asked], answerable: set[str]) -> dict[str, Any]:
    """Shares in percent: of answerable questions, and by their kind and set; refusals."""
    with_gold = [each for each in asked if each.id in answerable]
    without = [each for each in asked if each.id not in answerable]
    right_first = [each for each in with_gold if each.place == 1]
    p50, p95 = np.quantile([each.milliseconds for each in asked], [0.5, 0.95])
    return {
        "all": [row("all", with_gold)],
        "kinds": [
            row(kind, [each for each in with_gold if each.kind == kind])
            for kind, _ in Counter(each.kind for each in with_gold).most_common()
        ],
        "sets": [
            row(name, [each for each in with_gold if each.set == name])
            for name in sorted({each.set for each in with_gold})
        ],
        "refusals": [
            {"of": "unanswerable questions", **refusals(without)},
            {"of": "answerable questions", **refusals(with_gold)},
            {"of": "right first answers", **refusals(right_first)},
        ],
        "ms": [{"p50": round(float(p50), 1), "p95": round(float(p95), 1)}],
    }


def row(name: str, asked: Sequence[Asked]) -> dict[str, Any]:
    places = [each.place or max(RIGHT_AT) + 1 for each in asked]
    right = {f"right@{k}": percent(sum(p <= k for p in places), len(asked)) for k in RIGHT_AT}
    found = percent(sum(each.found for each in asked), len(asked))
    return {"questions of": name, "number": len(asked), **right, f"in {RETRIEVED}": found}


def refusals(asked: Sequence[Asked]) -> dict[str, Any]:
    return {"number": len(asked), "refused": percent(sum(e.refused for e in asked), len(asked))}


def percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def draw_units(number: int, corpus: Path, indexes: Path, seed: int = UNITS_SEED) -> list[Unit]:
    """
    `number` different sentences over all sets of the folder, in the order of the draw.

    A set is drawn first and then a sentence of it, so that a large set does not fill the list.
    Headings and code are not drawn: they are shown, and are never answers.
    """
    drawing = random.Random(seed)
    sets = {
        path.name: all_units(path.name, corpus, indexes)
        for path in sorted(corpus.iterdir())
        if path.is_dir() and path.suffix != ".part"
    }
    drawn: list[Unit] = []
    while len(drawn) < number and (left := [name for name, units in sets.items() if units]):
        units = sets[drawing.choice(left)]
        drawn.append(units.pop(drawing.randrange(len(units))))
    return drawn


def all_units(name: str, corpus: Path, indexes: Path) -> list[Unit]:
    units = []
    with open_set(name, corpus, indexes, None) as index:
        after = ""
        while documents := index.documents(after=after):
            after = documents[-1].name
            units += [
                Unit(name, document.name, each.number, each.headings, each.text)
                for document in documents
                for each in index.sentences(document.name) or []
                if not each.is_heading and each.kind != "code"
            ]
    return units


def check_gold(questions: Sequence[DocumentQuestion], corpus: Path, indexes: Path) -> list[str]:
    """Gold texts that no indexed sentence contains, and files that no document matches."""
    missing = []
    for name in sorted({each.set for each in questions}):
        units = all_units(name, corpus, indexes)
        for question in questions:
            if question.set != name:
                continue
            for gold in question.gold:
                if not any(is_right(each.text, each.file, [gold]) for each in units):
                    missing.append(f"{question.id}  {gold.file}  {gold.text}")
    return missing


def show(figures: dict[str, Any]) -> None:
    for title, rows in figures.items():
        table = markdown_table(list(rows[0]), [list(each.values()) for each in rows])
        print(f"\n{title}\n{table}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--indexes", type=Path, help="where indexes are kept; default: nowhere")
    parser.add_argument("--half", choices=["dev", "test"], default="dev")
    parser.add_argument("--sets", nargs="+", help="only these sets")
    parser.add_argument("--ranker", default="cascade", help="none: the order of the retrieval")
    parser.add_argument("--details", type=Path, help="write every question with its answers here")
    parser.add_argument("--units", type=int, help="draw N indexed sentences and print them")
    parser.add_argument("--seed", type=int, default=UNITS_SEED, help="of the draw of --units")
    parser.add_argument("--check", action="store_true", help="print gold that no sentence contains")
    parser.add_argument("--write", metavar="NAME", help="write the result file")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    if given.indexes is None:
        with tempfile.TemporaryDirectory() as folder:
            run(given, Path(folder))
    else:
        run(given, given.indexes)


def run(given: argparse.Namespace, indexes: Path) -> None:
    if given.units:
        for unit in draw_units(given.units, given.corpus, indexes, given.seed):
            print(json.dumps(asdict(unit), ensure_ascii=False))
        return
    half: Half = given.half
    questions = load_questions(half=None if given.check else half)
    here = {path.name for path in given.corpus.iterdir() if path.is_dir()}
    wanted = here & set(given.sets) if given.sets else here
    questions = [each for each in questions if each.set in wanted]
    if not questions:
        raise SystemExit(f"No set of the questions is in {given.corpus}; build them there first.")
    if given.check:
        print("\n".join(check_gold(questions, given.corpus, indexes)))
        return
    ranker = None if given.ranker == "none" else given.ranker
    asked = ask_all(questions, given.corpus, indexes, ranker, lambda name: print(name, flush=True))
    figures = summary(asked, {each.id for each in questions if each.answerable})
    show(figures)
    if given.details:
        lines = [json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in asked]
        given.details.write_text("".join(lines), encoding="utf-8")
    if given.write:
        save(
            f"document_questions_{given.write}",
            {"half": half, "ranker": given.ranker, **figures},
            "onnxruntime",
        )


if __name__ == "__main__":
    main()
