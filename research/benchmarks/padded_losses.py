"""
What padding to 400 candidates costs the general model, over ten paddings, and which questions.

    python -m research.benchmarks.padded_losses --model DIR --device cuda
    python -m research.benchmarks.padded_losses --scores FILE

WikiQA test, TrecQA test (clean) and 500 questions of SQuAD-sent are padded with ten seeds, the
first of which is that of every other padded figure. One question of TrecQA's 68 is 1.5 points, and
whether the one sentence that beats its answer is drawn is chance: the mean tells what to expect.
TrecQA's questions come in series on one thing each, and `pad` adds nothing of a question's own
series, for nobody judged it for that question and some of it answers. What is lost where it is
added all the same (`same_topic`) is measured too, and how many questions have such a sentence with
their gold phrase in it.

Prints each question of WikiQA and TrecQA that is right among its own candidates and wrong in the
first padding, with the sentence that came first, which padding took from another question and
therefore counts as wrong, and says whether it holds a gold phrase of the question: those marked in
TrecQA's positives, those of WikiQA's file of answer phrases. A phrase may stand in a sentence that
answers nothing, and an answer may be in other words, so the sentences were also read, and `READ`
has what the reader found. Counted as well is how many of the questions that are right unpadded have
a first sentence without any of the question's rare words: those lean on the page they stand on,
which a list of sentences from everywhere has not got.

Nothing is chosen by this.
Writes research/results/padded_losses.json, with ids and no texts. The second form takes scores kept before.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askline import data
from askline.types import Candidate, Question, QuestionSet

from .report import data_root, save
from .transformer_sets import sample

SETS = {"wikiqa:test": "answerable", "trecqa-clean:test": "both", "squad1:dev": "answerable"}
READ_SETS = ("wikiqa:test", "trecqa-clean:test")
SAMPLE = {"squad1:dev": 500}
PADDED_TO = 400
WITH_OWN = "with sentences of the same series"
SEEDS = range(10)
RARE = 0.01
"""A rare word stands in at most this share of a set's different sentences."""
READ = {
    ("Q692", "pad:Q117/D117-2"): False,  # how another man died
    ("Q2377", "pad:Q2323/D2186-6"): False,  # when another programme started
    ("35.1", "pad:35.3/35.3-0"): False,  # when he will step down, not when he began
    ("36.1", "pad:36.2/36.2-24"): False,
    ("36.1", "pad:36.2/36.2-32"): False,
    ("36.1", "pad:36.2/36.2-69"): False,
    ("36.1", "pad:36.2/36.2-77"): True,  # Vietnam invaded Cambodia and toppled them
    ("40.5", "pad:40.4/40.4-3"): False,  # commander in chief: an office, where a rank was asked
    ("48.2", "pad:48.1/48.1-2"): False,  # where he was born, not his name
    ("54.7", "pad:54.8/54.8-3"): True,  # colonel and shuttle commander
    ("54.7", "pad:54.8/54.8-4"): True,  # the same
    ("57.4", "pad:57.1/57.1-0"): True,  # lost after a successful mission
    ("57.4", "pad:57.1/57.1-1"): False,  # what was done after it had been found
    ("57.4", "pad:57.1/57.1-2"): True,  # rested in the Atlantic for 38 years, then recovered
    ("57.4", "pad:57.1/57.1-16"): False,
    ("65.2", "pad:65.3/65.3-2"): True,  # the Columbia, as in the answer
    ("65.2", "pad:65.4/65.4-30"): True,  # the same
    ("65.4", "pad:65.5/65.5-0"): True,  # the same day
}
"""(question, sentence that came first) → whether it answers the question, judged by eye."""

Scores = Mapping[str, NDArray[np.float32]]
Phrases = Mapping[str, tuple[str, ...]]
Row = dict[str, Any]


def padded(name: str, root: Path, seed: int, *, same_topic: bool = False) -> QuestionSet:
    found = data.load(name, root=root)
    found = data.pad(found, to=PADDED_TO, seed=seed, same_topic=same_topic)
    found = data.select(found, SETS[name])
    return sample(found, SAMPLE[name]) if name in SAMPLE else found


def paddings_of(name: str, root: Path) -> dict[str, list[QuestionSet]]:
    """The ten paddings, and where questions have topics, the ten that draw on those too."""
    found = {"": [padded(name, root, seed) for seed in SEEDS]}
    if any(question.topic for question in found[""][0]):
        found[WITH_OWN] = [padded(name, root, seed, same_topic=True) for seed in SEEDS]
    return found


def united(paddings: Sequence[QuestionSet]) -> QuestionSet:
    """Each question with the candidates of all paddings, every one once."""
    questions = []
    for same in zip(*paddings, strict=True):
        found = {candidate.id: candidate for each in same for candidate in each.candidates}
        questions.append(replace(same[0], candidates=tuple(found.values())))
    return replace(paddings[0], questions=tuple(questions))


def scored(folder: Path, device: str, root: Path) -> Scores:
    """Each set's pairs of all paddings, question after question."""
    from askline.training.transformer import encode_pairs, load_network
    from askline.training.transformer.scoring import list_scores

    network, tokeniser = load_network(folder)
    network.to(device)
    found = {}
    for name in SETS:
        questions = united([*chain(*paddings_of(name, root).values())])
        own = np.concatenate(list(list_scores(network, encode_pairs(questions, tokeniser))))
        found[name] = own.astype(np.float32)
    return found


def of_padding(
    padding: QuestionSet, whole: QuestionSet, scores: NDArray[np.float32]
) -> list[NDArray[np.float32]]:
    """The scores of one padding's candidates, for each of its questions, out of those of all."""
    cuts = np.cumsum([len(question.candidates) for question in whole])[:-1]
    found = []
    for question, all_, own in zip(padding, whole, np.split(scores, cuts), strict=True):
        by_id = dict(zip((each.id for each in all_.candidates), own, strict=True))
        found.append(np.array([by_id[each.id] for each in question.candidates], np.float32))
    return found


class Precision(NamedTuple):
    """P@1 in percent."""

    own: float
    """Of the question's own candidates."""
    all: float


def precision(padding: QuestionSet, scores: Sequence[NDArray[np.float32]]) -> Precision:
    right = []
    for question, own in zip(padding, scores, strict=True):
        alone = _first(question, np.where(is_added(question), -np.inf, own))
        right.append([alone.is_answer, _first(question, own).is_answer])
    return Precision(*(100 * np.mean(right, axis=0)).tolist())


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


def right_unpadded(
    questions: QuestionSet, scores: Sequence[NDArray[np.float32]], gold: Phrases
) -> list[Row]:
    """The questions whose first sentence of their own is an answer, lost in padding or not."""
    rare = _rare_words(questions)
    found = []
    for question, own in zip(questions, scores, strict=True):
        added = is_added(question)
        first, unpadded = _first(question, own), _first(question, np.where(added, -np.inf, own))
        if not unpadded.is_answer:
            continue
        asked, wanted = _words(question.text) & rare, gold.get(question.id, ())
        row: Row = {"question": question.id, "lost": not first.is_answer}
        row["answer has a rare word of the question"] = bool(asked & _words(unpadded.text))
        if row["lost"]:
            row |= {
                "first": first.id,
                "of its series": is_of_topic(question, first),
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


def is_added(question: Question) -> NDArray[np.bool_]:
    return np.array([candidate.id.startswith("pad:") for candidate in question.candidates])


def is_of_topic(question: Question, candidate: Candidate) -> bool:
    """Whether it was taken from a question of the same TrecQA series, 40.1 for 40.5."""
    return bool(question.topic) and candidate.id.startswith(f"pad:{question.topic}.")


def unjudged(questions: QuestionSet, whole: QuestionSet) -> Row:
    """Sentences of the same topic and of others that nobody judged for a question, by gold."""
    everywhere = {text for question in whole for text in question.texts}
    counts: Counter[str] = Counter()
    for question in questions:
        own = set(question.texts)
        topic = {text for each in whole if each.topic == question.topic for text in each.texts}
        near, far = topic - own, everywhere - topic - own
        told, elsewhere = (_told(texts, question.answers) for texts in (near, far))
        counts["questions that have one with their gold phrase in their series"] += told > 0
        counts["sentences of the own series"] += len(near)
        counts["of these, with a gold phrase"] += told
        counts["sentences of other series"] += len(far)
        counts["of these others, with a gold phrase"] += elsewhere
    return {"questions": len(questions), **counts}


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _first(question: Question, scores: NDArray[np.float32]) -> Candidate:
    return question.candidates[int(np.argmax(scores))]


def _holding(question: Question, added: NDArray[np.bool_], wanted: tuple[str, ...]) -> int:
    others = (text for text, other in zip(question.texts, added, strict=True) if other)
    return _told(others, wanted)


def _told(texts: Iterable[str], wanted: tuple[str, ...]) -> int:
    return sum(bool(holds(text, wanted)) for text in texts)


def _words(text: str) -> set[str]:
    return set(_plain(text).split())


def _rare_words(questions: QuestionSet) -> set[str]:
    """Of all questions and sentences, without a list of what is common in a language."""
    texts = {text for question in questions for text in question.texts}
    counts = Counter(word for text in texts for word in _words(text))
    asked = {word for question in questions for word in _words(question.text)}
    return {word for word in asked if counts[word] <= RARE * len(texts)}


def losses(figures: Sequence[Precision]) -> Row:
    """What each padding costs."""
    lost = [each.own - each.all for each in figures]
    return {
        "P@1, unpadded": round(figures[0].own, 2),
        "P@1, each padding": [round(each.all, 2) for each in figures],
        "P@1 lost, first padding": round(lost[0], 2),
        "P@1 lost, mean": round(fmean(lost), 2),
        "P@1 lost, most": round(max(lost), 2),
    }


def all_lost(rows: Sequence[Sequence[Row]]) -> Row:
    """Over all paddings: how often a question was lost, and to what."""
    lost = [row for own in rows for row in own if row["lost"]]
    pairs = Counter((row["question"], row["first"]) for row in lost)
    return {
        "lost, all paddings": len(lost),
        "of these, to a sentence of the same series": sum(row["of its series"] for row in lost),
        "of these, to one that answers, judged by eye": sum(
            bool(row["first answers, judged by eye"]) for row in lost
        ),
        "not read": sorted(map(list, pairs.keys() - READ.keys())),
        "by question and sentence": [[*pair, count] for pair, count in pairs.most_common()],
    }


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
    found: dict[str, Row] = {}
    for name in SETS:
        kinds = paddings_of(name, root)
        whole = united([*chain(*kinds.values())])
        for kind, paddings in kinds.items():
            row = lost_by(name, paddings, whole, scores[name], root)
            print(f"\n{name} {kind}\n{_without_questions(row)}")
            if not kind:
                found[name] = row
                continue
            plain = data.load(name, root=root)
            judged = unjudged(data.select(plain, SETS[name]), plain)
            found[name][kind] = row | {"not judged": judged}
    made = "kept before" if options.scores else f"{options.model.name} on {options.device}"
    save("padded_losses", {"padded to": PADDED_TO, "scores": made, "sets": found}, "torch")


def lost_by(
    name: str,
    paddings: Sequence[QuestionSet],
    whole: QuestionSet,
    scores: NDArray[np.float32],
    root: Path,
) -> Row:
    """What a set loses by these paddings, and of a set that was read, which questions."""
    by_padding = [of_padding(each, whole, scores) for each in paddings]
    found = losses(list(map(precision, paddings, by_padding)))
    if name in READ_SETS:
        gold = phrases(name, paddings[0], root)
        rows = [right_unpadded(*each, gold) for each in zip(paddings, by_padding, strict=True)]
        found |= all_lost(rows) | summary(paddings[0], rows[0])
        _show(paddings[0], found)
    return found


def _without_questions(found: Row) -> Row:
    return {key: value for key, value in found.items() if key != "lost questions"}


def _show(questions: QuestionSet, found: Row) -> None:
    by_id = {question.id: question for question in questions}
    for row in found["lost questions"]:
        question = by_id[row["question"]]
        first = next(each for each in question.candidates if each.id == row["first"])
        print(f"\n{row}\n  Q: {question.text}\n  first: {first.text}")
        print(*(f"  gold: {each.text}" for each in question.candidates if each.is_answer), sep="\n")


if __name__ == "__main__":
    main()
