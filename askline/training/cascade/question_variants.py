"""
Variants of training questions: unanswerable ones, keyword queries, and misspelled ones.

An unanswerable variant has one changed detail, so that the passage seems to answer it and does not:
a name, a number or a noun is replaced by another one, a word by its opposite, or the verb is
negated. Such questions teach the network to check details. Keyword queries and misspelled questions
have the answers of the question that they were made from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .context_examples import PassageQuestion, TrainingPassage

__all__ = ["add_unanswerable", "add_variants"]

_OPPOSITE_PAIRS = """
first last, largest smallest, biggest smallest, highest lowest, before after, north south,
east west, northern southern, eastern western, increase decrease, increased decreased, more less,
most least,
early late, earliest latest, old new, oldest newest, older younger, begin end, began ended,
start stop, started stopped, win lose, won lost, above below, inside outside, major minor,
male female, men women, positive negative, best worst, better worse, good bad, long short,
longest shortest, large small, high low, hot cold, entered left, accept reject, accepted rejected,
support oppose, supported opposed, public private, rich poor, strong weak, upper lower,
allow forbid, allowed forbidden, minimum maximum, always never, include exclude, includes excludes,
internal external, open closed, birth death, born died, buy sell, bought sold, fast slow,
easy difficult, easier harder, same different, modern ancient, often rarely, many few, arrived left,
gain lose, gained lost, success failure, successful unsuccessful, enable disable, enabled disabled,
add remove, added removed, local foreign, senior junior, summer winter, day night, morning evening,
front back, top bottom, attacked defended, love hate
"""
_OPPOSITES = {
    word: other
    for pair in _OPPOSITE_PAIRS.replace("\n", " ").split(",")
    for left, right in [pair.split()]
    for word, other in ((left, right), (right, left))
}
_NEGATED = frozenset("was were is are did does do could would has have had will should".split())
_STOP_WORDS = frozenset(
    """a about all also an and any are as at be been being between both but by can could did do does
    during each for from had has have how i if in into is it its may me more most much many my not
    of on one or other our over should so some such than that the their them then there these they
    this those to two under us was we were what when where which while who whom whose why will with
    would you your according kind type name called used""".split()
)
_WORD = re.compile(r"[A-Za-z]+")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?![\w.])")
_NAME = re.compile(r"\b[A-Z][a-z]+(?:\s[A-Z][a-z]+)*\b")
_NOUN = re.compile(r"\b(?:the|a|an|of|his|her|its|their) ([a-z]{4,})\b")
_TRIES = 8
_NEGATED_SHARE = 0.15
_LONGEST_NUMBER = 9


@dataclass(frozen=True, slots=True)
class _Words:
    """Names and nouns of a text, to replace others with."""

    names: Sequence[str]
    nouns: Sequence[str]

    @classmethod
    def of(cls, text: str) -> _Words:
        names = [
            found[0]
            for found in _NAME.finditer(text)
            if found[0].lower() not in _STOP_WORDS and text[max(0, found.start() - 2)] not in ".!?"
        ]
        return cls(names, [found[1] for found in _NOUN.finditer(text)])


def add_unanswerable(
    passages: Sequence[TrainingPassage], *, share: float, seed: int = 0
) -> list[TrainingPassage]:
    """The passages with a changed copy of at most `share` of their questions, without answers."""
    random = np.random.default_rng(seed)
    words = [_Words.of(" ".join(passage.sentences)) for passage in passages]
    everything = _Words(
        [name for own in words for name in own.names], [noun for own in words for noun in own.nouns]
    )
    made = []
    for passage, own in zip(passages, words, strict=True):
        new = []
        for question in passage.questions:
            if question.answers and random.random() < share:
                text = _change_detail(question, passage, (own, everything), random)
                if text is not None:
                    new.append(PassageQuestion(text))
        made.append(replace(passage, questions=(*passage.questions, *new)))
    return made


def _change_detail(
    question: PassageQuestion,
    passage: TrainingPassage,
    words: tuple[_Words, _Words],
    random: np.random.Generator,
) -> str | None:
    """The question with one detail changed; None if no rule applies."""
    text = question.text
    if random.random() < _NEGATED_SHARE:
        return _negate(text)
    answers = {passage.sentences[at][start:end].lower() for at, start, end in question.spans}
    gold = " ".join(passage.sentences[at] for at in question.answers).lower()
    # Half of the replacements come from the same passage, which makes the harder question.
    source = words[int(random.random() < 0.5)]
    rules = (
        lambda: _swap(text, _found_names(text), source.names, answers, random),
        lambda: _swap(text, _found_nouns(text, gold), source.nouns, answers, random),
        lambda: _swap_number(text, random),
        lambda: _swap_opposite(text, random),
    )
    for rule in random.permutation(len(rules)).tolist():
        changed = rules[rule]()
        if changed is not None:
            return changed
    return None


def _found_names(text: str) -> list[re.Match[str]]:
    return [
        each
        for each in _NAME.finditer(text)
        if each.start() > 0 and each[0].lower() not in _STOP_WORDS
    ]


def _found_nouns(text: str, gold: str) -> list[re.Match[str]]:
    """Content words of the question that the answer sentence has as well."""
    known = set(_WORD.findall(gold))
    return [
        each
        for each in _WORD.finditer(text)
        if len(each[0]) > 3 and each[0].lower() not in _STOP_WORDS and each[0] in known
    ]


def _swap(
    text: str,
    found: Sequence[re.Match[str]],
    others: Sequence[str],
    answers: set[str],
    random: np.random.Generator,
) -> str | None:
    if not found or not others:
        return None
    chosen = found[int(random.integers(len(found)))]
    asked = set(_WORD.findall(text.lower()))
    for _ in range(_TRIES):
        other = others[int(random.integers(len(others)))]
        if not asked & set(other.lower().split()) and other.lower() not in answers:
            return text[: chosen.start()] + other + text[chosen.end() :]
    return None


def _swap_number(text: str, random: np.random.Generator) -> str | None:
    found = [each for each in _NUMBER.finditer(text) if len(each[0]) <= _LONGEST_NUMBER]
    if not found:
        return None
    chosen = found[int(random.integers(len(found)))]
    number = int(chosen[0].replace(",", ""))
    is_year = 1000 <= number <= 2100
    step = int(random.integers(1, 30)) if is_year else max(1, int(number * random.uniform(0.2, 2)))
    other = number + step if random.random() < 0.5 or step >= number else number - step
    return text[: chosen.start()] + str(other) + text[chosen.end() :]


def _swap_opposite(text: str, random: np.random.Generator) -> str | None:
    found = [each for each in _WORD.finditer(text) if each[0].lower() in _OPPOSITES]
    if not found:
        return None
    chosen = found[int(random.integers(len(found)))]
    return text[: chosen.start()] + _OPPOSITES[chosen[0].lower()] + text[chosen.end() :]


def _negate(text: str) -> str | None:
    found = next((each for each in _WORD.finditer(text) if each[0].lower() in _NEGATED), None)
    return None if found is None else f"{text[: found.end()]} not{text[found.end() :]}"


def add_variants(
    passages: Sequence[TrainingPassage], *, share: float, seed: int = 0
) -> list[TrainingPassage]:
    """The passages with a keyword query or a misspelled copy of `share` of their questions."""
    random = np.random.default_rng(seed)
    made = []
    for passage in passages:
        new = []
        for question in passage.questions:
            if question.answers and random.random() < share:
                change = _keywords if random.random() < 0.5 else _misspell
                text = change(question.text, random)
                if text is not None:
                    new.append(replace(question, text=text))
        made.append(replace(passage, questions=(*passage.questions, *new)))
    return made


def _keywords(text: str, random: np.random.Generator) -> str | None:
    """The content words alone; one may be missing. None if fewer than two are left."""
    kept = [word for word in re.findall(r"[\w.-]+", text) if word.lower() not in _STOP_WORDS]
    if len(kept) > 3 and random.random() < 0.3:
        kept.pop(int(random.integers(len(kept))))
    return " ".join(kept).rstrip(".") if len(kept) > 1 else None


def _misspell(text: str, random: np.random.Generator) -> str | None:
    """One long word with two letters swapped, one left out, or one doubled."""
    found = [each for each in _WORD.finditer(text) if len(each[0]) > 4]
    if not found:
        return None
    chosen = found[int(random.integers(len(found)))]
    word, at = chosen[0], int(random.integers(1, len(chosen[0]) - 2))
    wrong = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
    )[int(random.integers(3))]
    return text[: chosen.start()] + wrong + text[chosen.end() :]
