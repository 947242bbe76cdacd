"""
The weight of phrase search beside word search, on questions that nothing was trained on.

    ASKLINE_DATA=DIR python -m research.benchmarks.phrase_fusion --folder DIR --write

Three corpora: SQuADShifts wiki with the questions of its held-out articles, 800 SQuAD train
paragraphs with those of the last hundred, and the documents of WikiQA dev with its questions. The
folder keeps the encoded phrases. Writes research/results/phrase_fusion.json.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from askline import data, load
from askline.corpus import Corpus, Retriever
from askline.corpus.ask import DEFAULT_BLEND
from askline.corpus.phrase_retrieval import PHRASE_WEIGHT, HybridRetriever, PhraseRetriever
from askline.corpus.results import RetrievedSentence
from askline.corpus.retrieval import LexicalRetriever
from askline.evaluation import markdown_table
from askline.rankers.base import Ranker

from .common import data_root, save
from .corpus_answers import (
    ACCURATE_AT,
    RECALL_AT,
    Ask,
    Asked,
    judged,
    ranked,
    retrieved,
    shares,
    slug,
)
from .corpus_library import Asking, Library, library, wikiqa_names
from .phrase_extractor import split

SETS = ("squadshifts/new_wiki_v1.0.json", "squad/train-800-contexts.json", "wikiqa:dev")
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)


class Remembering:
    """A retriever that searches once per question, whatever the weight."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._known: dict[tuple[str, int], list[RetrievedSentence]] = {}

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        if (question, k) not in self._known:
            self._known[question, k] = self._retriever.retrieve(question, k)
        return self._known[question, k]

    def neighbors(self, _: RetrievedSentence, _count: int = 1) -> tuple[str, str]:
        return "", ""

    def __len__(self) -> int:
        return len(self._retriever)

    def __str__(self) -> str:
        return str(self._retriever)


def unseen(on: str) -> Library:
    """A set as a corpus, with the questions of held-out paragraphs only."""
    found = library(on)
    if on.startswith("wikiqa:"):  # no shipped model was trained on it
        ids = (each.candidates[0].id for each in data.load_dataset(on, root=data_root()))
        own = sorted(wikiqa_names()[one.rpartition("-")[0]] for one in ids)
        return found._replace(documents={name: found.documents[name] for name in own})
    held = {paragraph.id for paragraph in split(data_root())[1]}
    questions = [each for each in found.questions if each.places[0].document in held]
    return found._replace(questions=questions)


def fusion(
    on: str, rankers: Mapping[str, Ranker], limit: int | None, folder: Path
) -> list[dict[str, Any]]:
    """For each weight: recall and accuracy of the merged search, and accuracy of each ranker."""
    documents, questions = unseen(on)
    with Corpus.open(folder / f"answers-{slug(on)}" / "index") as corpus:
        corpus.add(documents)
        corpus.encode_phrases()
        words = cast(LexicalRetriever, Remembering(corpus.retriever()))
        near = cast(PhraseRetriever, Remembering(corpus._phrases.retriever()))
        return [
            {"set": on, "questions": len(questions[:limit]), "weight": weight}
            | _row(questions[:limit], HybridRetriever(words, near, weight), rankers)
            for weight in WEIGHTS
        ]


def _row(
    questions: Sequence[Asking], joined: HybridRetriever, rankers: Mapping[str, Ranker]
) -> dict[str, float]:
    found = _asked(questions, retrieved(joined))
    row = shares(found, RECALL_AT, "recall") | shares(found, ACCURATE_AT, "accuracy")
    for spec, ranker in rankers.items():
        said = _asked(questions, ranked(joined, ranker, DEFAULT_BLEND))
        row |= shares(said, ACCURATE_AT, f"{spec}, accuracy")
    return row


def _asked(questions: Sequence[Asking], ask: Ask) -> list[Asked]:
    return [judged(question, ask(question.text), None) for question in questions]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--rankers", nargs="*", default=["cosinet"])
    parser.add_argument("--questions", type=int, help="maximum number of questions per set")
    parser.add_argument("--folder", type=Path, help="keep the encoded phrases")
    parser.add_argument("--write", action="store_true", help="save the figures to research/results")
    given = parser.parse_args()
    rankers = {spec: load(spec) for spec in given.rankers}
    rows = []
    with tempfile.TemporaryDirectory() as aside:
        for on in given.sets:
            rows += fusion(on, rankers, given.questions, given.folder or Path(aside))
    print(markdown_table(list(rows[0]), [list(row.values()) for row in rows]))
    if given.write:
        print(save("phrase_fusion", {"weight in use": PHRASE_WEIGHT, "fusion": rows}, "tantivy"))


if __name__ == "__main__":
    main()
