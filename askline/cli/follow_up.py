"""
Follow-up questions at the prompt: "and in summer?" after "When is the museum open in winter?".

`complete_question` makes a whole question out of a follow-up and the question before it, by rules
for English. A ranker scores a whole question better than two questions in one text: it would answer
the first one again.
"""

from __future__ import annotations

import re
from itertools import pairwise

__all__ = ["complete_question"]

_LEAD = re.compile(
    r"(?:(?:and|or|but|also|then|so)\b[ ,]*)?(?:(?:what|how) (?:about|of)\b *)?", re.IGNORECASE
)
_MOST_WORDS = 8  # a longer follow-up is taken as a question of its own
_MOST_FRAGMENT_WORDS = 4

_QUESTION_WORDS = frozenset("who whom whose what which when where why how".split())
_PREPOSITIONS = frozenset(
    """about above after against along among around at before behind below beside between by during
    for from in inside into near of off on onto outside over since than through to toward towards
    under until up upon via with within without""".split()
)
_DETERMINERS = frozenset(
    "the a an my your our their his her its this that these those each every".split()
)
_AUXILIARIES = frozenset(
    """am is are was were be been do does did has have had can could may might must shall should
    will would""".split()
)
_SUBJECT_PRONOUNS = frozenset("it they them he him she this that these those one".split())
_POSSESSIVES = frozenset("its their his".split())
_ORDINALS = frozenset(
    """first second third fourth fifth sixth seventh eighth ninth tenth last next previous other old
    new older newer""".split()
)
_FUNCTION_WORDS = (
    _QUESTION_WORDS
    | _PREPOSITIONS
    | _AUXILIARIES
    | frozenset(
        """not long often many much far old big tall exactly then there now so else too also and or
        but else more please ok""".split()
    )
)
# Words that end a question after its subject: "When was the museum FOUNDED?"
_PREDICATES = frozenset(
    """begun born bought broken brought built called chosen closed done drawn found free given held
    kept known left lit located lost made meant met open opened paid put run seen sent set shown
    sold spent taken told worn won written""".split()
)


def complete_question(previous: str, follow_up: str) -> str:
    """
    The follow-up as a whole question; unchanged if it can be understood without the previous one.

    It cannot if it is short and begins with "and", "what about" or a preposition, consists of
    question words alone, or has a pronoun and no noun phrase of its own.
    """
    text = " ".join(follow_up.split())
    lead = _LEAD.match(text)
    fragment = text[lead.end() if lead else 0 :].strip(" ,.?!")
    words = _lower_words(fragment)
    if not previous.strip() or not words or len(words) > _MOST_WORDS:
        return follow_up
    has_lead = bool(lead and lead.end())
    if _is_bare(words):
        return _replace_question_word(previous, fragment)
    if not has_lead and not _is_fragment(words):
        return _replace_pronoun(previous, follow_up)
    if words[0] in _QUESTION_WORDS | _AUXILIARIES:
        whole = _replace_pronoun(previous, f"{fragment}?")
        return follow_up if whole == f"{fragment}?" else whole
    if words[0] in _POSSESSIVES and (subject := _subject(previous)):
        return _as_question(["what is", f"{' '.join(subject)}'s", *fragment.split()[1:]])
    return _replace_phrase(previous, fragment)


def _is_bare(words: list[str]) -> bool:
    """Question words without a subject: "why?", "since when?", "how long?"."""
    return bool(_QUESTION_WORDS.intersection(words)) and _FUNCTION_WORDS.issuperset(words)


def _is_fragment(words: list[str]) -> bool:
    """A phrase without a verb, such as "in summer" or "for children"."""
    return (
        words[0] in _PREPOSITIONS
        and len(words) <= _MOST_FRAGMENT_WORDS
        and not _AUXILIARIES.union(_QUESTION_WORDS).intersection(words)
    )


def _replace_question_word(previous: str, bare: str) -> str:
    """Make "Why was it lit?" out of "When was it lit?" and "why?"."""
    words = _words(previous)
    if len(words) > 2 and words[0].lower() in _QUESTION_WORDS and words[1].lower() in _AUXILIARIES:
        return _as_question([bare, *words[1:]])
    return f"{' '.join(words)}, and {bare.lower()}?"


def _replace_pronoun(previous: str, question: str) -> str:
    """Make "Who built the museum?" out of "Who built it?" after a question about the museum."""
    words = _words(question)
    lower = [word.lower() for word in words]
    at = next(
        (at for at, word in enumerate(lower) if _is_pronoun(word, lower[at + 1 : at + 2])), None
    )
    own_noun_phrase = any(word in ("the", "a", "an") for word in lower)
    if at is None or own_noun_phrase:
        return question
    subject = _subject(previous)
    if not subject:
        return _as_question([*words, *(word for word in _words(previous) if _is_content(word))])
    ending = "'s" if lower[at] in _POSSESSIVES else ""
    return _as_question([*words[:at], " ".join(subject) + ending, *words[at + 1 :]])


def _is_pronoun(word: str, following: list[str]) -> bool:
    if word in ("this", "that", "these", "those", "one"):  # else "this year"
        return not following or not _is_content(following[0])
    return word in _SUBJECT_PRONOUNS or word in _POSSESSIVES


def _replace_phrase(previous: str, fragment: str) -> str:
    """Put a phrase in the place of the one of its kind in the previous question."""
    words, new = _words(previous), _words(fragment)
    lower = [word.lower() for word in words]
    kind = new[0].lower()
    prepositions = [at for at, word in enumerate(lower) if word in _PREPOSITIONS]
    if kind in _PREPOSITIONS:
        same = [at for at in prepositions if lower[at] == kind]
        start = same[-1] if same else len(words)
        end = next((at for at in prepositions if at > start), len(words))
        return _as_question([*words[:start], *new, *words[end:]])
    ordinal = next((word for word in new if word.lower() in _ORDINALS), None)
    if ordinal and len(new) <= 3:
        same = [at for at, word in enumerate(lower) if word in _ORDINALS]
        if same:
            return _as_question([*words[: same[0]], ordinal, *words[same[0] + 1 :]])
    subject = _subject(previous)
    if subject and kind in _DETERMINERS:
        at = lower.index(subject[0].lower())
        return _as_question([*words[:at], *new, *words[at + len(subject) :]])
    if prepositions and prepositions[-1] + 1 < len(words):
        return _as_question([*words[: prepositions[-1] + 1], *new])
    if subject:
        at = lower.index(subject[0].lower())
        return _as_question([*words[:at], *new, *words[at + len(subject) :]])
    return _as_question([*words, *new])


def _subject(question: str) -> list[str]:
    """
    The words that a pronoun in the next question stands for; empty if they are not found.

    These are the first phrase that begins with an article, or else the first name, or else the word
    after an auxiliary verb: "How much are TICKETS for adults?".
    """
    words = _words(question)
    lower = [word.lower() for word in words]
    start = next((at for at, word in enumerate(lower) if word in ("the", "a", "an")), None)
    if start is None:
        return _name(words) or _word_after_auxiliary(words)
    stops = _PREPOSITIONS | _AUXILIARIES | _QUESTION_WORDS | {"and", "or"}
    end = next((at for at in range(start + 1, len(words)) if lower[at] in stops), len(words))
    needs_verb = bool({"do", "does", "did", "can", "will", "should"}.intersection(lower[:start]))
    has_verb = end < len(words) and lower[end] in _AUXILIARIES  # "What does the option DO?"
    ends_in_verb = lower[end - 1] in _PREDICATES or lower[end - 1].endswith("ed")
    if end - start > 2 and ((needs_verb and not has_verb) or ends_in_verb):
        end -= 1
    return words[start:end]


def _name(words: list[str]) -> list[str]:
    """The first words with capital letters after the first word."""
    start = next((at for at, word in enumerate(words) if at and word[:1].isupper()), None)
    if start is None or words[start] == "I":
        return []
    end = next((at for at in range(start, len(words)) if not words[at][:1].isupper()), len(words))
    return words[start:end]


def _word_after_auxiliary(words: list[str]) -> list[str]:
    for auxiliary, word in pairwise(words):
        if auxiliary.lower() in _AUXILIARIES and _is_content(word) and word != "I":
            return [word]
    return []


def _is_content(word: str) -> bool:
    lower = word.lower()
    return lower not in _FUNCTION_WORDS | _DETERMINERS | _SUBJECT_PRONOUNS


def _words(text: str) -> list[str]:
    return text.strip(" ?!.").split()


def _lower_words(text: str) -> list[str]:
    return [word.strip(",;:") for word in text.lower().split()]


def _as_question(words: list[str]) -> str:
    text = " ".join(words)
    return f"{text[:1].upper()}{text[1:]}?"
