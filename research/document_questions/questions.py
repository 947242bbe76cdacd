"""
Questions to the sets of `build`, with the sentences that answer them, and when an answer is right.

`questions.jsonl` has one question per line: `id`, `set`, `kind`, `question`, and `gold`, a list of
{`text`, `file`}. `text` is a sentence of that file, or a distinctive part of one, without markup;
`file` is a shell pattern over the path inside the set. With `anywhere` true, the file does not
matter. A question with an empty `gold` is not answered by the documents of its set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

QUESTIONS = Path(__file__).with_name("questions.jsonl")

Half = Literal["dev", "test"]

KINDS = ("factoid", "how", "option", "definition", "why", "may", "keyword", "typo")
"""`option`: which setting or choice; `may`: can I; `keyword`: no sentence; `typo`: misspelled."""

SHORTEST = 20
"""A sentence inside the gold text is right only if it has this many characters."""
LONGEST = 1000
"""A longer answer is not a sentence, and is not right, whatever it contains."""


@dataclass(frozen=True)
class Gold:
    """A sentence, or a part of one, that answers the question."""

    text: str
    file: str
    anywhere: bool = False


@dataclass(frozen=True)
class DocumentQuestion:
    """A question to a set of documents."""

    id: str
    set: str
    kind: str
    question: str
    gold: tuple[Gold, ...]

    @property
    def answerable(self) -> bool:
        return bool(self.gold)

    @property
    def half(self) -> Half:
        """Odd numbers within a set are for choosing, even ones are measured once."""
        return "dev" if int(self.id.rpartition("-")[2]) % 2 else "test"


def load_questions(path: Path = QUESTIONS, half: Half | None = None) -> list[DocumentQuestion]:
    """The questions of a file, or of one half of it, in its order."""
    with path.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    questions = [
        DocumentQuestion(
            record["id"],
            record["set"],
            record["kind"],
            record["question"],
            tuple(Gold(**gold) for gold in record["gold"]),
        )
        for record in records
    ]
    return [each for each in questions if half in (None, each.half)]


def normalized(text: str) -> str:
    """Words in lower case with one space between; punctuation and markup characters are gone."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def is_right(text: str, file: str, gold: Sequence[Gold]) -> bool:
    """
    Whether an answer sentence is one of the gold sentences.

    It is if it contains the gold text, or is a part of it of at least `SHORTEST` characters.
    Without markup, white space and case; `file` is the path of the answer inside its set.
    """
    own = normalized(text)
    if len(own) > LONGEST:
        return False
    padded = f" {own} "
    for each in gold:
        if not each.anywhere and not fnmatchcase(file, each.file):
            continue
        wanted = f" {normalized(each.text)} "
        if wanted in padded or (len(own) >= SHORTEST and padded in wanted):
            return True
    return False
