"""
Questions that the general model gets right among their own candidates and wrong in padded lists.

    python -m benchmarks.padded_losses --model DIR --device cuda
    python -m benchmarks.padded_losses --scores FILE

Prints each such question of WikiQA test and TrecQA test (clean) with the sentence that came first,
which padding took from another question and therefore counts as wrong, and says whether it holds a
gold phrase of the question: those marked in TrecQA's positives, those of WikiQA's file of answer
phrases. A phrase may stand in a sentence that answers nothing, and an answer may be in other words,
so the sentences were also read, and `READ` has what the reader found. Counted as well is how many
of the questions that are right unpadded have a first sentence without any of the question's rare
words: those lean on the page they stand on, which a list of sentences from everywhere has not got.
Nothing is chosen by this.
Writes results/padded_losses.json, with ids and no texts. The second form takes scores kept before.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askline import data
from askline.types import Candidate, Question, QuestionSet

from .report import data_root, save

SETS = {"wikiqa:test": "answerable", "trecqa-clean:test": "both"}
PADDED_TO = 400
RARE = 0.01
"""A rare word stands in at most this share of a set's different sentences."""
READ = {
    ("Q383", "pad:Q1760/D1667-16"): False,
    ("Q692", "pad:Q117/D117-2"): False,
    ("Q1805", "pad:Q2428/D2278-1"): False,
    ("Q2377", "pad:Q2323/D2186-6"): False,
    ("Q2408", "pad:Q1697/D1610-11"): False,
    ("40.5", "pad:40.4/40.4-3"): False,  # commander in chief: an office, where a rank was asked
    ("57.4", "pad:57.1/57.1-0"): True,  # lost after a successful mission
}
"""(question, sentence that came first) → whether it answers the question, judged by eye."""

Scores = Mapping[str, NDArray[np.float32]]
Phrases = Mapping[str, tuple[str, ...]]
Row = dict[str, Any]


def padded(name: str, root: Path) -> QuestionSet:
    return data.select(data.pad(data.load(name, root=root), to=PADDED_TO), SETS[name])


def scored(folder: Path, device: str, root: Path) -> Scores:
    """Each set's pairs, question after question."""
    from askline.training.transformer import encode_pairs, load_network
    from askline.training.transformer.scoring import list_scores

    network, tokeniser = load_network(folder)
    network.to(device)
    return {
        name: np.concatenate(
            list(list_scores(network, encode_pairs(padded(name, root), tokeniser)))
        ).astype(np.float32)
        for name in SETS
    }


def phrases(name: str, questions: QuestionSet, root: Path) -> Phrases:
    """The gold phrases by question; a question may have none."""
    if not name.startswith("wikiqa"):
        return {question.id: question.answers for question in questions}
    found: dict[str, tuple[str, ...]] = {}
    path = root / "wikiqa" / "WikiQASent.pos.ans.tsv"
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            own = (row[f"AnswerPhrase{number}"] for number in (1, 2, 3))
            told = tuple(phrase for phrase in own if phrase and phrase != "NO_ANS")
            found[row["QuestionID"]] = found.get(row["QuestionID"], ()) + told
    return found


def right_unpadded(questions: QuestionSet, scores: NDArray[np.float32], gold: Phrases) -> list[Row]:
    """The questions whose first sentence of their own is an answer, lost in padding or not."""
    rare = _rare_words(questions)
    found = []
    for question, own in zip(questions, np.split(scores, len(questions)), strict=True):
        added = np.array([candidate.id.startswith("pad:") for candidate in question.candidates])
        first, unpadded = _first(question, own), _first(question, np.where(added, -np.inf, own))
        if not unpadded.is_answer:
            continue
        asked, wanted = _words(question.text) & rare, gold.get(question.id, ())
        row: Row = {"question": question.id, "lost": not first.is_answer}
        row["answer has a rare word of the question"] = bool(asked & _words(unpadded.text))
        if row["lost"]:
            row |= {
                "first": first.id,
                "first has a rare word of the question": bool(asked & _words(first.text)),
                "above the best answer by": round(float(own.max() - own[~added].max()), 3),
                "first holds a gold phrase": holds(first.text, wanted),
                "added ones that hold a gold phrase": _holding(question, added, wanted),
                "first answers, judged by eye": READ.get((question.id, first.id)),
            }
        found.append(row)
    return found


def holds(text: str, wanted: tuple[str, ...]) -> bool | None:
    """Whether a text has one of the phrases as whole words, in any case; None without phrases."""
    said = f" {_plain(text)} "
    return any(f" {_plain(phrase)} " in said for phrase in wanted) if wanted else None


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _first(question: Question, scores: NDArray[np.float32]) -> Candidate:
    return question.candidates[int(np.argmax(scores))]


def _holding(question: Question, added: NDArray[np.bool_], wanted: tuple[str, ...]) -> int:
    others = (text for text, other in zip(question.texts, added, strict=True) if other)
    return sum(bool(holds(text, wanted)) for text in others)


def _words(text: str) -> set[str]:
    return set(_plain(text).split())


def _rare_words(questions: QuestionSet) -> set[str]:
    """Of all questions and sentences, without a list of what is common in a language."""
    texts = {text for question in questions for text in question.texts}
    counts = Counter(word for text in texts for word in _words(text))
    asked = {word for question in questions for word in _words(question.text)}
    return {word for word in asked if counts[word] <= RARE * len(texts)}


def summary(questions: QuestionSet, rows: list[Row]) -> Row:
    lost = [row for row in rows if row["lost"]]
    bare = [row for row in rows if not row["answer has a rare word of the question"]]
    return {
        "questions": len(questions),
        "right, unpadded": len(rows),
        "lost": len(lost),
        "first holds a gold phrase": sum(bool(row["first holds a gold phrase"]) for row in lost),
        "first answers, judged by eye": sum(
            bool(row["first answers, judged by eye"]) for row in lost
        ),
        "right, unpadded, answer without a rare word": len(bare),
        "lost of these": sum(row["lost"] for row in bare),
        "lost questions": lost,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="the general model's folder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--keep", type=Path, help="write the scores here and stop")
    parser.add_argument("--scores", type=Path, help="scores that --keep wrote")
    options = parser.parse_args()
    root = data_root()
    if not (options.model or options.scores):
        parser.error("--model or --scores is needed")
    scores = (
        np.load(options.scores) if options.scores else scored(options.model, options.device, root)
    )
    if options.keep:
        np.savez_compressed(options.keep, **scores)
        return
    found = {}
    for name in SETS:
        questions = padded(name, root)
        rows = right_unpadded(questions, scores[name], phrases(name, questions, root))
        found[name] = summary(questions, rows)
        _show(name, questions, found[name])
    made = "kept before" if options.scores else f"{options.model.name} on {options.device}"
    save("padded_losses", {"padded to": PADDED_TO, "scores": made, "sets": found}, "torch")


def _show(name: str, questions: QuestionSet, found: Row) -> None:
    print(name, {key: value for key, value in found.items() if key != "lost questions"})
    by_id = {question.id: question for question in questions}
    for row in found["lost questions"]:
        question = by_id[row["question"]]
        first = next(each for each in question.candidates if each.id == row["first"])
        print(f"\n{row}\n  Q: {question.text}\n  first: {first.text}")
        print(*(f"  gold: {each.text}" for each in question.candidates if each.is_answer), sep="\n")


if __name__ == "__main__":
    main()
