"""Question sets as a corpus, and text of any size generated from their sentences."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from askline import data
from askline.data import read_paragraphs, to_question_set
from askline.text.sentences import split_sentences
from askline.types import Source

from .common import data_root

FILE_CHARACTERS = 1_000_000
_NUMBERS = 100_000  # more than the sentences of a file


class Asking(NamedTuple):
    """A question with its right answers."""

    text: str
    places: list[Source]
    """The sentences that answer."""
    phrases: tuple[str, ...]
    """The phrases that answer; empty if the set has none."""


class Library(NamedTuple):
    """Documents by their ids, and the questions about them."""

    documents: dict[str, str]
    questions: list[Asking]


def library(on: str, limit: int | None = None) -> Library:
    """
    A set as a corpus, with all of its questions or the first `limit`.

    Questions are shuffled with a fixed seed, so that a larger limit includes a smaller one.
    """
    found = _wikiqa(on) if on.startswith("wikiqa:") else _squad(data_root() / on)
    random.Random(0).shuffle(found.questions)
    return found._replace(questions=found.questions[:limit])


def _squad(path: Path) -> Library:
    paragraphs = read_paragraphs(path)
    questions = [
        Asking(
            each.text,
            [one.source for one in each.candidates if one.is_answer and one.source],
            each.answers,
        )
        for each in to_question_set(paragraphs)
        if each.answerable
    ]
    return Library({each.id: each.text for each in paragraphs.paragraphs}, questions)


def _wikiqa(on: str) -> Library:
    """
    Documents with their titles, as in files.

    Sentences are separated by blank lines, because some have no full stop.
    """
    documents: dict[str, str] = {}
    questions = []
    names, phrases = wikiqa_names(), _wikiqa_phrases()
    for split in ("wikiqa:train", "wikiqa:dev", "wikiqa:test"):
        for question in data.load_dataset(split, root=data_root()):
            name = names[question.candidates[0].id.rpartition("-")[0]]
            documents[name] = text = "\n\n".join(question.texts)
            if split == on and question.answerable:
                answers = [each.text for each in question.candidates if each.is_answer]
                starts = [text.index(answer) for answer in answers]
                gold = [
                    Source(name, start, start + len(answer))
                    for start, answer in zip(starts, answers, strict=True)
                ]
                questions.append(Asking(question.text, gold, phrases.get(question.id, ())))
    return Library(documents, questions)


def wikiqa_names() -> dict[str, str]:
    """Titles by document id; the id is appended to a title that is not unique."""
    names: dict[str, str] = {}
    for split in ("train", "dev", "test"):
        lines = (data_root() / "wikiqa" / f"WikiQA-{split}.tsv").read_text("utf-8").splitlines()
        rows = (line.split("\t") for line in lines[1:])
        names |= {row[2]: row[3] for row in rows}
    count = Counter(names.values())
    return {key: f"{name} {key}" if count[name] > 1 else name for key, name in names.items()}


def _wikiqa_phrases() -> dict[str, tuple[str, ...]]:
    """Phrases that three annotators marked in the right sentences of each question."""
    found: dict[str, dict[str, None]] = {}
    path = data_root() / "wikiqa" / "WikiQASent.pos.ans.tsv"
    for line in path.read_text("utf-8").splitlines()[1:]:
        name, *fields = line.split("\t")
        marked = (text for text in fields[5:] if text and text != "NO_ANS")
        found.setdefault(name, {}).update(dict.fromkeys(marked))
    return {name: tuple(texts) for name, texts in found.items()}


def sentences_of(documents: dict[str, str]) -> list[str]:
    found = {text[a:b] for text in documents.values() for a, b in split_sentences(text)}
    return sorted(" ".join(text.split()) for text in found)


def made_files(sentences: Sequence[str], folder: Path, characters: int) -> list[Path]:
    """Files of about a million characters, `size` in total; existing files are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [FILE_CHARACTERS] * (characters // FILE_CHARACTERS)
    rest = characters - sum(sizes)
    paths = []
    for number, size in enumerate([*sizes, *([rest] if rest else [])]):
        path = folder / f"{number:06}.txt"
        if not path.exists():
            half = path.with_suffix(".half")
            half.write_text("\n\n".join(_paragraphs(sentences, number, size)), encoding="utf-8")
            half.replace(path)
        paths.append(path)
    return paths


def _paragraphs(sentences: Sequence[str], file: int, characters: int) -> Iterator[str]:
    """Paragraphs of five numbered sentences, drawn with the file number as the seed."""
    chance = random.Random(file)
    count = file * _NUMBERS
    while characters > 0:
        paragraph = " ".join(f"{count + k}: {chance.choice(sentences)}" for k in range(5))
        count += 5
        characters -= len(paragraph) + 2
        yield paragraph
