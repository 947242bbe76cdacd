"""
The wording of questions: verbs and their forms, templates, and words that a user would use instead.

A rule finds a question's content ("install the server"). The functions here word it: "How do I
install the server?", "How can I ...", "install server". Which template is used is drawn from a
random generator that the caller seeds.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

__all__ = [
    "PRONOUN_OBJECT",
    "Draft",
    "article",
    "base_verb",
    "content_words",
    "from_user",
    "how_to",
    "is_dangling",
    "keywords",
    "lower_known",
    "mentions",
    "reword",
    "squeeze",
    "third_person",
    "which",
]

VERBS = frozenset(
    """
    abort accept access achieve activate adapt add adjust administer aggregate align allocate
    allow alter analyze annotate append apply archive arrange assign attach authenticate
    authorize automate avoid back backup balance bind block boot bootstrap break browse build
    bundle bypass cache calculate call cancel capture change check choose clean clear clone
    close collect combine compare compile compress compute configure confirm connect consume
    contribute control convert copy count create customize cut deactivate debug decide declare
    decode decompress decrypt define delete deploy derive describe detach detect determine
    develop diagnose disable discard disconnect discover display distribute divide document
    download downgrade draw drop dump duplicate edit eject embed emit enable encode encrypt end
    enforce ensure enter erase escape establish evaluate examine exclude execute exit expand
    explain export expose extend extract fetch fill filter find finish fix flash flush follow
    force format forward free generate get give grant group handle hide highlight identify
    ignore implement import improve include increase index inherit initialize inject insert
    inspect install instantiate integrate interact interpret invoke isolate iterate join keep
    kill label launch leave limit link list listen load locate lock log login look lower
    maintain make manage map mark match measure merge migrate minimize mirror mix modify monitor
    mount move name navigate obtain omit open operate optimize order organize output overlap
    override overwrite pack package parse partition pass paste patch pause perform pick pin
    place play plot point preserve prevent preview print process produce profile prompt protect
    prove provide provision proxy prune publish pull push put query quit quote raise read rebase
    rebuild receive recompile record recover redirect reduce refer refresh register reinstall
    reject release reload remap remove rename render repair repeat replace replicate report
    request require reset resize resolve respond restart restore restrict resume retrieve retry
    return reuse revert review revoke rewrite rotate route run sample save scale scan schedule
    search secure select send separate serialize serve set setup share shift show shrink shut
    sign silence simulate skip sleep solve sort specify split start stop store stream strip
    structure submit subscribe subset substitute suppress suspend swap switch sync synchronize
    tag tail take terminate test toggle trace track train transfer transform translate treat
    trigger trim truncate try tune turn uncompress undo uninstall unlock unmount unpack update
    upgrade upload use validate verify view visualize wait watch wrap write yield zip zoom
    """.split()
)
_SYNONYMS = {
    "display": "show",
    "print": "show",
    "enable": "turn on",
    "disable": "turn off",
    "remove": "delete",
    "delete": "remove",
    "create": "make",
    "specify": "set",
    "modify": "change",
    "execute": "run",
    "obtain": "get",
    "retrieve": "get",
    "terminate": "stop",
    "launch": "start",
    "locate": "find",
    "determine": "find out",
    "allow": "let",
    "omit": "leave out",
    "exclude": "leave out",
    "verify": "check",
    "alter": "change",
    "customize": "adapt",
    "select": "choose",
    "suppress": "hide",
    "configure": "set up",
    "construct": "build",
    "generate": "create",
    "list": "show",
    "ignore": "skip",
    "view": "see",
}
_NOUNS = {
    "directory": "folder",
    "directories": "folders",
    "repository": "repo",
    "application": "app",
    "applications": "apps",
    "documentation": "docs",
    "arguments": "parameters",
    "messages": "output",
}
_STOP = frozenset(
    """
    a about above after again all also although always am an and any are as at be because been
    before being below between both but by can cannot could did do does doing done each either
    else etc ever every few for from further get had has have having he her here hers him his
    how however i if in into is it its itself just let like may me might more most must my no
    nor not now of off on once one only or other our out over own per please same say see shall
    she should since so some such than that the their them then there these they this those
    through to too under until up upon us use used using very via was we well were what when
    where whether which while who whom whose why will with within without would yes you your
    yours want need make thing way
    """.split()
)
PRONOUN_OBJECT = re.compile(
    r"\b(?:this|these|it|them|here|below|above|following)\b|\bsuch\b(?! as)"
    r"|\b(?:that|those|so|ones?|both)$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A question and how it was made. `clause` is the part of the sentence that it repeats."""

    question: str
    kind: str


def content_words(text: str) -> set[str]:
    """Stems of the words that carry content."""
    return {
        _stem(word)
        for word in re.findall(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", text.lower())
        if word not in _STOP
    }


def _stem(word: str) -> str:
    word = word.strip(".-_+")
    for suffix in (
        "izations",
        "ization",
        "ations",
        "ation",
        "ments",
        "ment",
        "ings",
        "ing",
        "ions",
        "ion",
        "ers",
        "ies",
        "ied",
        "es",
        "ed",
        "er",
        "ly",
        "s",
        "e",
        "y",
    ):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def base_verb(word: str) -> str:
    """`create` for creating, creates, create; empty if the word is not one of the known verbs."""
    word = word.lower()
    if word in VERBS:
        return word
    for suffix in ("ing", "s", "es", "ies"):
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            options = [stem, stem + "e", stem[:-1] if stem[-2:-1] == stem[-1:] else stem]
            if suffix == "ies":
                options = [stem + "y"]
            for option in options:
                if option in VERBS:
                    return option
    return ""


def third_person(verb: str) -> str:
    """`creates` for create, `copies` for copy."""
    head, _, rest = verb.partition(" ")
    if re.search(r"[^aeiou]y$", head):
        head = head[:-1] + "ies"
    elif re.search(r"(?:s|x|z|ch|sh|o)$", head):
        head += "es"
    else:
        head += "s"
    return f"{head} {rest}".strip()


def how_to(action: str, product: str, rng: random.Random) -> Draft | None:
    action = action.strip().rstrip(".?!")
    words = action.split()
    if (
        not 2 <= len(words) <= 16
        or is_dangling(action)
        or len(content_words(action)) < 2
        or not base_verb(words[0])
    ):
        return None
    action = reword(_TAIL.sub("", action), rng)
    if len(content_words(action)) < 2:
        return None
    inside = "" if not product or mentions(action, product) else f" in {product}"
    choice = rng.random()
    if choice < 0.30:
        text = f"How do I {action}?"
    elif choice < 0.42:
        text = f"How can I {action}{inside if rng.random() < 0.3 else ''}?"
    elif choice < 0.54:
        text = rng.choice((f"how to {action}", f"How to {action}?", f"how to {action}{inside}"))
    elif choice < 0.62:
        text = f"How do you {action}{inside if rng.random() < 0.4 else ''}?"
    elif choice < 0.68:
        text = rng.choice(
            (
                f"What should I do to {action}?",
                f"What do I have to do to {action}?",
                f"What is the way to {action}?",
            )
        )
    elif choice < 0.74:
        text = rng.choice(
            (
                f"Is there a way to {action}?",
                f"Can I {action}?",
                f"Is it possible to {action}{inside}?",
            )
        )
    elif choice < 0.80:
        text = rng.choice(
            (
                f"I want to {action}",
                f"I need to {action}, how?",
                f"how does one {action}",
                f"way to {action}?",
            )
        )
    elif choice < 0.85:
        text = (
            f"Where do I {action}?"
            if re.match(r"(?:find|set|change|configure|get|download|report|see|add)\b", action)
            else f"How would I {action}?"
        )
    else:
        text = keywords(action, product, rng)
    return Draft(squeeze(from_user(text)), "how-to")


_TAIL = re.compile(
    r"(?:,? (?:instead|too|as well|again|also|first|yourself|either|then|now|easily|if"
    r" (?:needed|necessary|desired|required|you (?:wish|like|want))|as (?:needed|required"
    r"|usual|desired)|for example|like so))+$"
)


def from_user(question: str) -> str:
    """`How do I change my password?` for "your": the user speaks. Other subjects keep theirs."""
    if re.search(
        r"\bI\b|\bme\b|^(?:how to|how does one|is it|is there|way to|what is the way)",
        question,
        re.I,
    ):
        question = re.sub(r"\byou(?:'re|’re| are)\b", "I am", question)
        question = re.sub(r"\byou(?:'ve|’ve)\b", "I have", question)
        question = re.sub(r"\byourself\b", "myself", question)
        question = re.sub(r"\byour\b", "my", question)
        question = re.sub(r"\byou\b", "I", question)
    return question


def keywords(text: str, product: str, rng: random.Random) -> str:
    words = [word.strip(",.;:()\"'") for word in text.split()]
    kept = [word for word in words if word.lower() not in _STOP and word][:8]
    if len(kept) < 2:
        kept = words
    head = [product] if product and not mentions(text, product) and rng.random() < 0.7 else []
    return " ".join(head + kept)


def reword(action: str, rng: random.Random) -> str:
    """Sometimes another verb or noun of the same meaning, so that words differ from the answer."""
    words = action.split()
    if words[0] in _SYNONYMS and rng.random() < 0.35 and words[0] != "make":
        words[0] = _SYNONYMS[words[0]]
    return " ".join(
        _NOUNS[word] if word in _NOUNS and rng.random() < 0.35 else word for word in words
    )


def lower_known(text: str, known: frozenset[str]) -> str:
    """Lower-case the words that the document also writes in lower case."""
    parts = re.split(r"(\s+)", text)
    for index, word in enumerate(parts):
        bare = word.strip("\"'(),.:;?!")
        if index > 1 and parts[index - 2].endswith((".", "?", "!")):
            continue  # the first word of a second sentence
        if re.fullmatch(r"[A-Z][a-z']+(?:-[A-Za-z]+)?", bare) and (
            bare.lower() in known or bare.lower() in _STOP or (index == 0 and base_verb(bare))
        ):
            parts[index] = word.replace(bare, bare.lower())
        elif bare == "A":
            parts[index] = word.lower()
    return "".join(parts)


def is_dangling(text: str) -> bool:
    """Whether the text refers to something outside itself or ends in the middle."""
    return bool(
        PRONOUN_OBJECT.search(text)
        or re.search(
            r"(?:\b(?:and|or|of|to|with|for|the|a|an|in|on|by|from|as|is|are|e\.g|i\.e"
            r"|your|its|their|his)|[,:;(\[<=/])$",
            text,
        )
        or text.count("(") != text.count(")")
        or text.count('"') % 2
        or re.search(r"[{}<>|]| / |\\|https?:|\.\.\.|…", text)
    )


def mentions(text: str, product: str) -> bool:
    return product.lower() in text.lower()


def squeeze(text: str) -> str:
    return " ".join(text.split())


def article(noun: str) -> str:
    return "an" if noun[0] in "aeio" else "a"


_NO_METHOD = frozenset(
    "use provide return include make give allow let require point describe define".split()
)
"""Verbs of which "How do I ...?" is no question about an option."""


def which(noun: str, action: str, product: str, rng: random.Random) -> str:
    """A question for the option, command or function (`noun`) that does `action`."""
    verb, _, rest = action.partition(" ")
    asked = rng.choice(("Which", "What"))
    does = third_person(verb)
    questions = [f"{asked} {noun} {does} {rest}?"]
    if verb not in _NO_METHOD:
        named = product and not mentions(action, product) and rng.random() < 0.4
        of = f" of {product}" if named else ""
        questions += [
            f"{asked} {noun}{of} {does} {rest}?",
            f"{asked} {noun}{of} do I use to {action}?",
            f"{asked} {noun} lets me {action}?",
            f"{asked} {noun} should I use to {action}?",
            f"Is there {article(noun)} {noun} to {action}?",
            f"How do I {action}?",
            f"How can I {action}?",
            keywords(action, product, rng),
        ]
    return squeeze(from_user(rng.choice(questions)))
