"""Questions that headings ask: "How do I install it?", "Installing the server", "Limitations"."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from .wording import PRONOUN_OBJECT, Draft, base_verb, content_words, how_to, lower_known

__all__ = ["from_heading"]

_BAD_HEADING = re.compile(
    r"^(?:what'?s (?:new|next)|next steps?|where (?:to go )?(?:next|from here)|see also"
    r"|need help|questions?|"
    r"was this|is this page|did you|got (?:a )?questions?|any questions|have (?:a"
    r" )?questions?|more (?:help|info)|"
    r"still (?:stuck|have|need)|found a|ready to|looking for|want (?:to|more)|get(?:ting)?"
    r" (?:help|started|support|involved)|try it|"
    r"do you (?:like|want|need|have)|are you|have you|learn(?:ing)? more|before you|read"
    r" more|find out|feedback|and then|so what|what now|really|help|"
    r"release notes?|changelog|change log)\b",
    re.I,
)
_QUESTION_START = re.compile(
    r"^(?:how|what|why|when|where|which|who|whose|can|could|do|does|did|is|are|was|were"
    r"|will|would|should|may|must|has|have|"
    r"i|my|in|if|on|at|for|to|under|am|the)\b",
    re.I,
)


def from_heading(
    heading: str,
    path: Sequence[str],
    product: str,
    is_faq: bool,
    known: frozenset[str],
    rng: random.Random,
) -> Draft | None:
    """
    The question that a heading asks, or None.

    `known` has the lower-case words of the document's text: a capital in a heading is kept if the
    word is never written without it.
    """
    text = heading.strip().rstrip(".:")
    words = text.split()
    if not 1 <= len(words) <= 22 or _BAD_HEADING.search(text) or len(text) > 150:
        return None
    if text.endswith("?"):
        if len(words) < 3 or text.count("?") > 1 or not _QUESTION_START.match(text):
            return None
        if PRONOUN_OBJECT.search(text) and len(content_words(text)) < 2:
            return None
        text = re.sub(r"\s+\?$", "?", text)
        if text.isupper():
            text = text[0] + text[1:].lower()
        elif rng.random() < 0.5:  # "Why Write It in Perl?" is a style of headings, not of users
            text = text.split()[0] + " " + lower_known(text.partition(" ")[2], known)
        return Draft(text, "faq" if is_faq else "heading-question")
    plain = lower_known(text, known)
    return (
        _from_question_word(plain, product, rng)
        or _from_standard_heading(text, path, product, known, rng)
        or _from_action(plain, product, rng)
    )


def _from_question_word(plain: str, product: str, rng: random.Random) -> Draft | None:
    """`How to print`, `When to use threads`, `What is a codec` without a question mark."""
    found = re.match(r"(?:how to|how do i|how do you|howto:?)\s+(.+)$", plain, re.I)
    if found:
        return how_to(found[1], product, rng)
    found = re.match(r"when (not )?to (.+)$", plain, re.I)
    if found:
        return Draft(f"When should I {found[1] or ''}{found[2]}?", "when")
    found = re.match(r"where to (.+)$", plain, re.I)
    if found:
        return Draft(f"Where do I {found[1]}?", "where")
    if len(plain.split()) >= 3 and _ASKS.match(plain):
        return Draft(_sentence(plain), "heading-question")
    return None


def _from_standard_heading(
    text: str, path: Sequence[str], product: str, known: frozenset[str], rng: random.Random
) -> Draft | None:
    """`Limitations` and its like, asked about the heading above."""
    parent = next((name for name in reversed(path) if name), "")
    topic = lower_known(parent, known) if 1 <= len(parent.split()) <= 5 else ""
    topic = topic.lower() if topic.isupper() else topic
    if not topic or not product or base_verb(topic.split()[0]):
        return None
    name = text.lower()
    if name in ("requirements", "prerequisites", "system requirements", "dependencies"):
        kind = "requirement"
        questions = [f"What does {topic} require?", f"What do I need for {topic}?"]
        questions.append(f"{topic} requirements")
    elif name in ("limitations", "known limitations", "restrictions", "caveats"):
        kind = "limitation"
        questions = [f"What are the limitations of {topic}?", f"What can {topic} not do?"]
        questions.append(f"{topic} limitations")
    elif name in ("return value", "return values", "returns"):
        kind = "reference"
        questions = [f"What does {parent} return?", f"What is the return value of {parent}?"]
        questions.append(f"{parent} return value")
    elif name in ("exceptions", "errors") and re.search(r"[().]", parent):
        kind = "reference"
        questions = [f"Which exceptions does {parent} throw?", f"When does {parent} fail?"]
    elif name in ("value", "default value", "initial value"):
        kind = "reference"
        questions = [f"What is the {name} of {parent}?"]
    else:
        return None
    return Draft(rng.choice(questions), kind)


def _from_action(plain: str, product: str, rng: random.Random) -> Draft | None:
    """`Installing the server`, `Install the server`, `Server installation`."""
    words = plain.split()
    first, _, rest = plain.partition(" ")
    if not rest:
        return None
    verb = base_verb(first)
    gerund = first.endswith("ing") and first not in _AMBIGUOUS_GERUND
    imperative = first == verb and (first not in _AMBIGUOUS or bool(_OBJECT.match(rest)))
    if verb and (gerund or imperative) and not re.match(r"(?:of|for|and|with|in|by|from)\b", rest):
        return how_to(f"{verb} {rest}", product, rng)
    found = re.match(r"and (\w+ing)\s+(.*)", rest)
    if found and gerund and verb and base_verb(found[1]):
        return how_to(f"{verb} and {base_verb(found[1])} {found[2]}", product, rng)
    found = re.match(r"(.+) (installation|configuration|removal)$", plain)
    if found and len(words) <= 4:
        return how_to(f"{_VERB_OF[found[2]]} {found[1]}", product, rng)
    return None


_VERB_OF = {"installation": "install", "configuration": "configure", "removal": "remove"}
_ASKS = re.compile(
    r"(?:what|why|where|when|which|who|how) (?:is|are|do|does|can|should|will)\b"
    r"|(?:what|which) \w+ (?:is|are|do|does|can|should)\b",
    re.I,
)
_AMBIGUOUS = frozenset(
    """
    access back backup block boot build cache call change check control copy count cut debug
    display document download draw drop dump edit end escape exit export fill filter fix flash
    format free group handle import index input label launch leave limit link list load lock log
    look map mark match measure mirror mix monitor mount name open order output overlap package
    pack partition pass paste patch pin place play plot point position preview print process
    profile prompt proxy pull push query quote raise read record release render repeat report
    request reset return review route run sample scale scan schedule search secure set share
    shift show sign sleep sort split start stop store stream strip structure subset switch tag
    tail test trace track train transfer trigger trim turn try update upgrade upload use view
    wait watch wrap write yield zip zoom follow give keep make put take get log find
    """.split()
)
"""First words of headings that are often nouns: "Log files", "Test suite"."""
_OBJECT = re.compile(
    r"^(?:a|an|the|your|all|multiple|new|custom|another|specific|existing|how|with|from|to"
    r"|for|in|it|up|out|on|off|individual|different|one|two|only)\b"
)
_AMBIGUOUS_GERUND = frozenset(
    "being building embedding setting listing spacing string mapping nesting".split()
)


def _sentence(text: str) -> str:
    text = text.rstrip(".?! ")
    return text[0].upper() + text[1:] + "?"
