"""
Asking a corpus: recall, accuracy of the sentence, EM and F1 of the phrase, and speed.

    python -m research.benchmarks.corpus answers --rankers cosinet --timed 200 --write
    python -m research.benchmarks.corpus scale --rankers cosinet --sentences 10000 1000000 --write

`answers` takes every paragraph of a set as a document and asks each question of all of them; with
--on wikiqa:SPLIT, every WikiQA document of all splits. SQuAD dev and WikiQA test are test sets:
make choices on others, with --on squadshifts/new_wiki_v1.0.json. `scale` generates text from the
set's sentences, each with its own number, and measures milliseconds per question by the size of the
corpus. With --folder DIR an interrupted run continues. Writes research/results/corpus_scale.json,
for `answers` research/results/corpus_answers_SET.json.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from askline.corpus import Corpus
from askline.evaluation import markdown_table

from .common import save
from .corpus_answers import answers, slug
from .corpus_library import library, made_files, sentences_of

SQUAD_DEV = "squad/dev-v1.1.json"


def measured(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    if given.what == "answers":
        return answers(
            given.on,
            given.rankers,
            folder,
            limit=given.questions,
            timed=given.timed,
            apart=given.apart,
            reader=given.reader,
            phrases=given.phrases,
        )
    spec = next(iter(given.rankers), None)
    return scale(given.on, given.sentences, spec, given.questions, folder)


def scale(
    on: str, sizes: Sequence[int], spec: str | None, limit: int | None, folder: Path
) -> dict[str, Any]:
    """Milliseconds per question in corpora of different sizes, measured in turn."""
    documents, questions = library(on, limit or 200)
    sentences = sentences_of(documents)
    average = sum(map(len, sentences)) / len(sentences) + 12
    corpora = []
    for size in sizes:
        place = folder / f"scale-{size}"
        made_files(sentences, place / "pages", int(size * average))
        corpus = Corpus.open(place / "index", ranker=spec)
        corpus.add(place / "pages")
        corpus.ask(questions[0].text)
        corpora.append(corpus)
    said = [[corpus.ask(each.text) for corpus in corpora] for each in questions]
    rows = []
    for corpus, replies in zip(corpora, zip(*said, strict=True), strict=True):
        whole = 1000 * np.array([each.seconds for each in replies])
        first = 1000 * np.array([each.stages[0].seconds for each in replies])
        p50, p95 = np.percentile(whole, [50, 95])
        rows.append(
            {
                "sentences": corpus.status().sentences,
                "ms p50": round(float(p50), 2),
                "p95": round(float(p95), 2),
                "retrieval p50": round(float(np.median(first)), 2),
            }
        )
        corpus.close()
    return {"ranker": spec, "questions": len(questions), "scale": rows}


def show(figures: dict[str, Any]) -> None:
    for title, rows in figures.items():
        if isinstance(rows, list):
            table = markdown_table(list(rows[0]), [list(row.values()) for row in rows])
            print(f"\n{title}\n{table}")
        else:
            print(f"{title}: {rows}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["answers", "scale"])
    parser.add_argument(
        "--on",
        default=SQUAD_DEV,
        help="file in SQuAD's format under the data folder, or wikiqa:SPLIT",
    )
    parser.add_argument(
        "--rankers", nargs="*", default=[], help="rankers to measure after the same retrieval"
    )
    parser.add_argument(
        "--apart", action="store_true", help="also measure rankers without the retrieval scores"
    )
    parser.add_argument(
        "--reader", default="cascade", help="ranker whose reader marks phrases for others"
    )
    parser.add_argument("--phrases", action="store_true", help="also measure phrase search")
    parser.add_argument(
        "--questions", type=int, help="number of questions, sampled with a fixed seed"
    )
    parser.add_argument("--timed", type=int, default=0, help="number of timed questions")
    parser.add_argument("--sentences", type=int, nargs="+", default=[10_000])
    parser.add_argument("--folder", type=Path, help="keep files, and continue an interrupted run")
    parser.add_argument("--write", action="store_true", help="save the figures to research/results")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if given.folder:
            figures = measured(given, given.folder)
        else:
            with tempfile.TemporaryDirectory() as folder:
                figures = measured(given, Path(folder))
    except KeyboardInterrupt:
        kept = "The same command goes on." if given.folder else "Nothing is kept without --folder."
        raise SystemExit(f"Stopped. {kept}") from None
    show(figures)
    if given.write:
        name = f"corpus_{given.what}" + (f"_{slug(given.on)}" if given.what == "answers" else "")
        print(f"\nSaved to {save(name.replace('-', '_'), figures, 'tantivy')}")


if __name__ == "__main__":
    main()
