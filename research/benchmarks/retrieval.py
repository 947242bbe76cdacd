"""
What each part of retrieval contributes: gold among the first 1, 5, 20 and 100 sentences, and time.

    ASKLINE_DATA=DIR python -m research.benchmarks.retrieval --documents DIR --answers 100 --save

Every variant answers every question, one after the other, on the same index: nothing but the words
of the question ("before"), each part alone, all parts, and all parts but one. No test set is used:
WikiQA dev and train, held-out articles of SQuADShifts, the dev half of the hand-written questions
to documents (--documents: the folder that `research.document_questions.build` made), and mined
questions (--mined: the file dev.jsonl of `research.mining`), each section of theirs a document.
`typos` are the questions of WikiQA train and SQuADShifts wiki with one typing error in a word of at
least five letters. With --answers N, the default ranker answers the first N questions of some sets
after the retrieval "before" and "all". Writes research/results/retrieval.json.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from askline import load
from askline.corpus import Answer, Corpus, RetrievedSentence, answer
from askline.corpus.ask import DEFAULT_RANKER
from askline.corpus.question_terms import RetrievalOptions
from askline.corpus.retrieval import LexicalRetriever
from askline.data import hold_out, read_paragraphs, to_question_set
from askline.evaluation import markdown_table
from askline.rankers.base import Ranker
from askline.types import Source
from research.document_questions.questions import is_right, load_questions

from .common import data_root, save
from .corpus_answers import first_right
from .corpus_library import Asking, Library, library
from .document_questions import all_units, open_set

AT = (1, 5, 20, 100)
ANSWERS_AT = (1, 3, 5)
ALL = RetrievalOptions()
BEFORE = RetrievalOptions(
    stop_words=1.0,
    titles=0.0,
    identifiers=False,
    derived=0.0,
    joined=0.0,
    corrected=0.0,
    soft_match=0.0,
    own_match=False,
    sentence_vectors=False,
)
PARTS = (
    "stop_words",
    "titles",
    "identifiers",
    "derived",
    "joined",
    "corrected",
    "soft_match",
    "own_match",
    "sentence_vectors",
)
SHIFTS = {
    "SQuADShifts wiki": "squadshifts/new_wiki_v1.0.json",
    "SQuADShifts Reddit": "squadshifts/reddit_v1.0.json",
}


ANSWERED = ("WikiQA dev", "SQuADShifts wiki", "SQuADShifts wiki, typos", "documents")
"""Sets whose questions are also ranked, with --answers N."""


class Task(NamedTuple):
    """A question to one retriever, and what makes a sentence right."""

    question: str
    ways: dict[str, LexicalRetriever]
    place: Callable[[Sequence[RetrievedSentence | Answer]], int | None]


def variants() -> dict[str, RetrievalOptions]:
    found = {"before": BEFORE}
    for part in PARTS:
        found[f"+ {part}"] = replace(BEFORE, **{part: getattr(ALL, part)})
    found["all"] = ALL
    for part in PARTS:
        found[f"all - {part}"] = replace(ALL, **{part: getattr(BEFORE, part)})
    return found


def retrievers(corpus: Corpus, options: dict[str, RetrievalOptions]) -> dict[str, LexicalRetriever]:
    store, search = corpus._store, corpus._storage.search_index()
    return {name: LexicalRetriever(store, search, each) for name, each in options.items()}


def shifts(path: str, limit: int) -> Library:
    """All paragraphs of a set, and questions of the articles that are held out."""
    paragraphs = read_paragraphs(data_root() / path)
    questions = [
        Asking(
            each.text,
            [one.source for one in each.candidates if one.is_answer and one.source],
            each.answers,
        )
        for each in to_question_set(hold_out(paragraphs)[1])
        if each.answerable
    ]
    random.Random(0).shuffle(questions)
    return Library({each.id: each.text for each in paragraphs.paragraphs}, questions[:limit])


def mined(path: Path, limit: int) -> Library:
    """Sections of documentation under their heading paths, and the questions mined from them."""
    documents: dict[str, str] = {}
    questions = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            section = json.loads(line)
            name = f"{section['title']} {number}"
            texts = section["sentences"]
            documents[name] = "\n\n".join(texts)
            starts = [sum(len(text) + 2 for text in texts[:at]) for at in range(len(texts))]
            for question in section["questions"]:
                gold = [
                    Source(name, starts[at], starts[at] + len(texts[at]))
                    for at in question["answers"]
                ]
                questions.append(Asking(question["question"], gold, ()))
    random.Random(0).shuffle(questions)
    return Library(documents, questions[:limit])


def misspelled(question: str, chance: random.Random) -> str:
    """The question with one typing error: two letters swapped, one lost, added or exchanged."""
    words = question.split(" ")
    long = [at for at, word in enumerate(words) if len(word.strip("?,.'\"")) >= 5]
    if not long:
        return question
    at = chance.choice(long)
    word = words[at]
    place = chance.randrange(1, len(word.rstrip("?,.'\"")) - 1)
    letter = chance.choice("abcdefghijklmnopqrstuvwxyz")
    head, tail = word[:place], word[place:]
    words[at] = chance.choice(
        [
            head + tail[1:2] + tail[:1] + tail[2:],
            head + tail[1:],
            head + letter + tail,
            head + letter + tail[1:],
        ]
    )
    return " ".join(words)


def library_tasks(
    found: Library, options: dict[str, RetrievalOptions], *, typos: bool, stack: ExitStack
) -> dict[str, list[Task]]:
    corpus = stack.enter_context(Corpus.in_memory())
    corpus.add(found.documents)
    ways = retrievers(corpus, options)

    def tasks(change: Callable[[str], str]) -> list[Task]:
        return [
            Task(change(each.text), ways, partial(first_right, gold=each.places))
            for each in found.questions
        ]

    chance = random.Random(1)
    own = {"": tasks(lambda text: text)}
    if typos:
        own[", typos"] = tasks(lambda text: misspelled(text, chance))
    return own


def document_tasks(
    folder: Path, indexes: Path, options: dict[str, RetrievalOptions], stack: ExitStack
) -> list[Task]:
    """Questions of the dev half whose gold is indexed."""
    tasks = []
    questions = [each for each in load_questions(half="dev") if each.answerable]
    for name in sorted({each.set for each in questions}):
        if not (folder / name).is_dir():
            continue
        corpus = stack.enter_context(open_set(name, folder, indexes, None))
        ways = retrievers(corpus, options)
        units = all_units(name, folder, indexes)
        for question in questions:
            if question.set == name and any(
                is_right(unit.text, unit.file, question.gold) for unit in units
            ):

                def place(
                    hits: Sequence[RetrievedSentence | Answer], gold: Any = question.gold
                ) -> int | None:
                    right = (is_right(each.text, each.document, gold) for each in hits)
                    return next((at for at, one in enumerate(right, start=1) if one), None)

                tasks.append(Task(question.question, ways, place))
    return tasks


def measure(tasks: Sequence[Task], names: Sequence[str]) -> list[dict[str, Any]]:
    """All variants answer each question in turn, so that load affects all of them."""
    places: dict[str, list[int | None]] = {name: [] for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for task in tasks:
        for name in names:
            start = time.perf_counter()
            hits = task.ways[name].retrieve(task.question, max(AT))
            seconds[name].append(time.perf_counter() - start)
            places[name].append(task.place(hits))
    return [row(name, places[name], seconds[name], seconds[names[0]]) for name in names]


def first_answers(tasks: Sequence[Task], ranker: Ranker) -> list[dict[str, Any]]:
    """Accuracy of the default ranker after the old and the new retrieval, in percent."""
    rows = []
    for name in ("before", "all"):
        places = [
            task.place(
                answer(task.question, task.ways[name], ranker, top_k=max(ANSWERS_AT)).answers
            )
            for task in tasks
        ]
        right = {k: sum(at is not None and at <= k for at in places) for k in ANSWERS_AT}
        shares = {f"right@{k}": round(100 * right[k] / len(places), 1) for k in ANSWERS_AT}
        rows.append({"variant": name, **shares})
    return rows


def row(
    name: str, places: Sequence[int | None], seconds: Sequence[float], first: Sequence[float]
) -> dict[str, Any]:
    right = {
        f"@{k}": round(100 * sum(at is not None and at <= k for at in places) / len(places), 1)
        for k in AT
    }
    p50 = float(np.median(seconds))
    ratio = round(p50 / float(np.median(first)), 2)
    return {"variant": name, **right, "ms p50": round(1000 * p50, 2), "ratio": ratio}


def all_tasks(
    given: argparse.Namespace, options: dict[str, RetrievalOptions], stack: ExitStack
) -> Iterator[tuple[str, list[Task]]]:
    limit = given.questions
    for on in ("wikiqa:dev", "wikiqa:train"):
        found = library_tasks(library(on, limit), options, typos=on == "wikiqa:train", stack=stack)
        yield from ((f"WikiQA {on[7:]}{suffix}", own) for suffix, own in found.items())
    for name, path in SHIFTS.items():
        found = library_tasks(
            shifts(path, limit), options, typos=name.endswith("wiki"), stack=stack
        )
        yield from ((name + suffix, own) for suffix, own in found.items())
    if given.mined is not None:
        yield (
            "mined",
            library_tasks(mined(given.mined, limit), options, typos=False, stack=stack)[""],
        )
    if given.documents is not None:
        indexes = given.indexes or Path(stack.enter_context(_temporary()))
        yield "documents", document_tasks(given.documents, indexes, options, stack)


def _temporary() -> Any:
    from tempfile import TemporaryDirectory

    return TemporaryDirectory()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=300, help="questions per set")
    parser.add_argument("--documents", type=Path, help="the folder of the document sets")
    parser.add_argument("--mined", type=Path, help="the file of mined dev questions")
    parser.add_argument("--indexes", type=Path, help="where the indexes of the documents are kept")
    parser.add_argument("--answers", type=int, default=0, help="questions per set to rank, too")
    parser.add_argument("--only", nargs="+", help="names of sets")
    parser.add_argument("--variants", nargs="+", help="names of variants")
    parser.add_argument("--save", action="store_true", help="write research/results/retrieval.json")
    given = parser.parse_args()
    options = variants()
    if given.variants:
        options = {name: options[name] for name in given.variants}
    figures: dict[str, Any] = {"questions": given.questions}
    ranker = load(str(DEFAULT_RANKER))
    with ExitStack() as stack:
        for name, tasks in all_tasks(given, options, stack):
            if given.only and name not in given.only:
                continue
            rows = measure(tasks, list(options))
            figures[name] = {"number": len(tasks), "rows": rows}
            table = markdown_table(list(rows[0]), [list(each.values()) for each in rows])
            print(f"\n{name}, {len(tasks)} questions\n{table}", flush=True)
            if given.answers and name in ANSWERED:
                asked = tasks[: given.answers]
                rows = first_answers(asked, ranker)
                figures[name] |= {"asked": len(asked), "answers": rows}
                table = markdown_table(list(rows[0]), [list(each.values()) for each in rows])
                print(f"\nfirst {len(asked)} questions, ranked\n{table}", flush=True)
    if given.save:
        print(f"\nSaved to {save('retrieval', figures, 'tantivy')}")


if __name__ == "__main__":
    main()
