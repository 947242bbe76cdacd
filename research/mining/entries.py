"""
Questions about entries of option lists, glossaries and reference lists: a term and its description.

`--update: Skip files that are newer on the receiver.` gives "Which option of rsync skips files that
are newer on the receiver?" and "What does --update do?".
"""

from __future__ import annotations

import random
import re

from .wording import (
    Draft,
    article,
    base_verb,
    content_words,
    from_user,
    is_dangling,
    keywords,
    reword,
    squeeze,
    third_person,
)

__all__ = ["entry_kind", "from_entry", "short_name"]

_OPTION = re.compile(r"^[`'\"]?-{1,2}[A-Za-z0-9?]")
_SETTING = re.compile(
    r"^[`'\"]?(?:[A-Za-z][\w-]*=|[a-z]+(?:[_.][a-z0-9]+)+|[A-Z][a-z]+(?:[A-Z][a-z0-9]+)+"
    r"|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Z]{2,}(?:_[A-Z0-9]+)+)(?=$|[\s`'\"(=:,])"
)
_FUNCTION = re.compile(
    r"^(?:[\w]+ \*?(?=\w+\())?(?:(?:class|static|classmethod|async|property|function"
    r"|method)\s+)?[`'\"]?[A-Za-z_][\w.:]*\(.*\)?"
)
_PREAMBLE = re.compile(
    r"^(?:\([^)]{1,40}\)\s*)?(?:(?:This|The) (?:option|flag|switch|setting|parameter"
    r"|directive|variable|function|method|command)\s+(?:can be used to |is used to |may be"
    r" used to )?)?"
    r"(?:(?:Tells?|Causes?|Instructs?|Forces?|Allows?|Asks?|Directs?|Enables?|Lets?)"
    r" (?!to\b)(?:the )?[\w.-]+(?: (?!not\b)[\w.-]+)?? to |(?:Can be |Is |May be )?[Uu]sed to "
    r"|Allows? to )?",
    re.I,
)
_LABEL = re.compile(
    r"^(?:note|notes|deprecated|helpful|warning|example|examples|tip|hint|important"
    r"|caution|see|default|defaults|todo|bug|new|changed|added|usage|type|return|returns"
    r"|required|optional|remember|values?|description|synopsis|for example|e\.g|i\.e"
    r"|result|output|input|solution|answer|reason|problem|step|first|second|third|finally"
    r"|also|option|options|this|that|the|if|when|in|on|and|or|you|it)\b[^_=.]*$",
    re.I,
)
_HISTORY = re.compile(
    r"(?:New|Added|Changed|Removed|Deprecated|Available|Introduced|Since)\b[^.]{0,20}\d"
    r"|Deprecated|Obsolete",
    re.I,
)
_NOUN_FIRST = re.compile(
    r"^(?:format|output|input|name|index|label|log|map|mark|order|package|partition"
    r"|position|process|profile|proxy|query|record|request|sample|scale|schedule|"
    r"stream|structure|subset|tag|test|trace|view|cache|block|backup|access|group|filter"
    r"|link|list|load|lock|mirror|mount|host|display|control|count|report|search|"
    r"document|order|place|point|return|release|transfer|update|upload|download|build"
    r"|process) (?!the\b|an?\b|all\b|any\b|only\b|each\b|every\b|your\b|in\b|to\b|on\b"
    r"|as\b|multiple\b|this\b|files\b|information\b|True\b|False\b|if\b)",
    re.I,
)
_CUT = re.compile(
    r"(?:\s\(|[;:]| [-–—] |, (?:and|or|but|which|so|if|when|then|e\.g|i\.e|even|instead|as"
    r"|for example|rather|unless|where|although|using|otherwise|in)\b|\. |\.$|"
    r" \((?:default|see)|\be\.g\.|\bi\.e\.)"
)
_BAD = re.compile(
    r"\b(?:this|these|that option|see|same as|synonym|alias|deprecated|obsolete|ignored"
    r"|like|as above|equivalent|described|removed|not used|unused|short for|shorthand)\b",
    re.I,
)
_NOUN_PHRASE = re.compile(
    r"^(?:The |A |An )?(?P<phrase>(?:(?:maximum|minimum|default|initial|total) )?(?:number"
    r"|name|path|size|length|list|type|amount|directory|file|folder|port|address|time"
    r"|interval|timeout|format|location|url|level|value|width|height|color|colour|user"
    r"|group|password|key|host|hostname|id|title|text|string|encoding|language|version"
    r"|mode|limit|period|delay|age|depth|prefix|suffix|set|order|position|date|command"
    r"|program|server|percentage|count|threshold|duration)s? (?:of|for|to|in|that|which"
    r"|used|at|after|from|between|where) .+)$",
    re.I,
)


def entry_kind(term: str, is_settings_page: bool) -> str:
    """`option`, `setting`, `function`, or empty for any other term."""
    if _LABEL.match(term):
        return ""
    if _OPTION.match(term):
        return "option"
    if _FUNCTION.match(term):
        return "function"
    if _SETTING.match(term) or (
        is_settings_page
        and re.fullmatch(r"[`'\"]?[\w.-]{3,30}[`'\"]?(?: (?:\S{1,20}|\([^)]*\)))?", term)
    ):
        return "setting"
    return ""


def from_entry(
    term: str, description: str, kind: str, product: str, rng: random.Random
) -> Draft | None:
    """A question about one entry. `kind` is what `entry_kind` returned."""
    name = short_name(term, kind)
    description = _PREAMBLE.sub("", description)
    if description:
        description = description[0].upper() + description[1:]
    clause = _clause(description)
    words = clause.split()
    if re.fullmatch(r"-{1,2}(?:help|version|usage|V|h)", name) or _HISTORY.match(description):
        return None
    if not name or len(words) < 3 or len(description) < 15:
        return None
    by_name = rng.random() < 0.2
    noun = {
        "option": rng.choice(
            ("option", "option", "option", "flag", "switch", "parameter", "command-line option")
        ),
        "setting": rng.choice(
            (
                "setting",
                "setting",
                "option",
                "parameter",
                "variable" if name.isupper() else "configuration option",
            )
        ),
        "function": rng.choice(("function", "method", "function")),
    }[kind]
    distinct = kind != "setting" or bool(re.search(r"[_.=]|[a-z][A-Z]|[A-Z]{3}|\w-\w", name))
    if by_name and distinct and not _BAD.search(clause) and len(name) < 40:
        return Draft(squeeze(_name_question(name, noun, kind, product, rng)), "what-does")
    if len(words) > 18 or _BAD.search(clause) or len(content_words(clause)) < 2:
        return None
    phrase = _NOUN_PHRASE.match(clause)
    if phrase and not is_dangling(phrase["phrase"]):
        rest = phrase["phrase"][0].lower() + phrase["phrase"][1:]
        article = "a" if clause.startswith("A ") else "the"
        if kind == "function":
            return None
        return Draft(_asked(_set_question(f"{article} {rest}", noun, product, rng)), kind)
    if (
        re.match(r"(?:If|When) (?:set|specified|true|enabled|given|non-?zero|yes|on)", clause)
        and ", " in description
    ):
        clause = _clause(description.split(", ", 1)[1])
        words = clause.split()
    if not words:
        return None
    if re.match(r"(?:Whether|Controls whether|Specifies whether|Determines whether) to ", clause):
        clause = clause.split(" to ", 1)[1]
        words = clause.split()
    verb = base_verb(words[0])
    if (
        words[0].lower() in ("do", "don't", "does")
        and len(words) > 2
        and (words[0].lower() == "don't" or words[1] == "not")
    ):
        rest = " ".join(words[1 if words[0].lower() == "don't" else 2 :])
        if is_dangling(rest) or not base_verb(rest.split()[0]):
            return None
        return Draft(_asked(_negative_question(rest, noun, product, rng)), kind)
    rest = " ".join(words[1:])
    if _NOUN_FIRST.match(clause):
        return None
    if verb in ("take", "accept", "contain", "require", "expect"):
        return None
    if not verb or is_dangling(rest) or len(words) < 3 or words[0].endswith("ing"):
        return None
    action = reword(f"{verb} {rest}", rng)
    return Draft(_asked(_action_question(action, noun, kind, product, rng)), kind)


def _asked(question: str) -> str:
    return squeeze(from_user(question))


def _clause(description: str) -> str:
    """The first clause of a description; empty if it is the head of an enumeration."""
    clause = _CUT.split(description, maxsplit=1)[0].strip().rstrip(".")
    head, comma, _ = clause.partition(", ")
    if comma:
        return head if len(head.split()) >= 5 else ""
    return clause


def short_name(term: str, kind: str) -> str:
    """The longest form of an option: `--update` for `-u, --update`, without its argument."""
    term = term.strip("`'\" ")
    if kind == "option":
        names = [name.rstrip(".") for name in re.findall(r"(?<!\w)-{1,2}[A-Za-z0-9?][\w.-]*", term)]
        return max(names, key=len) if names else ""
    if kind == "function":
        return (
            re.sub(r"^(?:class|static|classmethod|async|property|function|method)\s+", "", term)
            .split("(")[0]
            .split()[-1]
            .lstrip("*&")
            + "()"
        )
    return re.split(r"[\s(=,:`'\"]", term, maxsplit=1)[0]


def _name_question(name: str, noun: str, kind: str, product: str, rng: random.Random) -> str:
    of = f" of {product}" if product and rng.random() < 0.3 else ""
    inside = f" in {product}" if product and rng.random() < 0.3 else ""
    return rng.choice(
        (
            f"What does {name} do{inside}?",
            f"What does {name} do?",
            f"What is {name} for?",
            f"What is the effect of {name}?",
            f"What does the {name} {noun}{of} do?",
            f"what does {name} mean{inside}",
            f"{product} {name}",
            f"When would I use {name}?",
            f"What is the {noun} {name} for?",
        )
        if kind != "function"
        else (
            f"What does {name} do?",
            f"What does {name} return?" if rng.random() < 0.2 else f"What does {name} do?",
            f"What is {name} for?",
            f"{name.rstrip('()')} {noun}",
        )
    )


def _of(product: str, action: str, rng: random.Random, share: float = 0.5) -> str:
    return (
        f" of {product}"
        if product and product.lower() not in action.lower() and rng.random() < share
        else ""
    )


def _action_question(action: str, noun: str, kind: str, product: str, rng: random.Random) -> str:
    verb, _, rest = action.partition(" ")
    of = _of(product, action, rng)
    does = third_person(verb)
    asked = rng.choice(("Which", "Which", "What"))
    options = [
        f"{asked} {noun}{of} {does} {rest}?",
        f"{asked} {noun} {does} {rest}?",
        f"{asked} {noun}{of} do I use to {action}?",
        f"{asked} {noun} lets me {action}?",
        f"How do I {action}{' with ' + product if of else ''}?",
        f"How can I {action}?",
        f"how to {action}{' in ' + product if of else ''}",
        f"Is there {article(noun)} {noun} to {action}?",
        keywords(action, product, rng),
        keywords(action, product, rng),
    ]
    if product and kind == "option":
        options += [
            f"How do I make {product} {action}?",
            f"How can I tell {product} to {action}?",
            f"Can {product} {action}?",
        ]
    if kind == "function":
        wanted = f"get {rest}" if verb == "return" else action
        options = [
            *options[:2],
            f"{asked} {noun}{of} do I use to {wanted}?",
            f"How do I {wanted}?",
            f"How can I {wanted}?",
            f"how to {wanted}{' in ' + product if of else ''}",
            keywords(wanted, product, rng),
        ]
    return rng.choice(options)


def _negative_question(action: str, noun: str, product: str, rng: random.Random) -> str:
    verb, _, rest = action.partition(" ")
    subject = product or "it"
    ing = _gerund(verb)
    return rng.choice(
        (
            f"How do I stop {subject} from {ing} {rest}?",
            f"How do I keep {subject} from {ing} {rest}?",
            f"How can I prevent {subject} from {ing} {rest}?",
            f"Which {noun} prevents {ing} {rest}?",
            f"How do I avoid {ing} {rest}?",
            f"Which {noun} turns off {ing} {rest}?",
            keywords(f"not {action}", product, rng) + " disable",
        )
    )


def _gerund(verb: str) -> str:
    if verb.endswith("e") and not verb.endswith(("ee", "oe")):
        return verb[:-1] + "ing"
    if re.fullmatch(r"[a-z]*[^aeiou][aeiou][bdgmnprt]", verb) and len(verb) <= 4:
        return verb + verb[-1] + "ing"
    return verb + "ing"


def _set_question(phrase: str, noun: str, product: str, rng: random.Random) -> str:
    of = _of(product, phrase, rng)
    return rng.choice(
        (
            f"Which {noun}{of} sets {phrase}?",
            f"How do I set {phrase}?",
            f"How can I change {phrase}?",
            f"Where do I set {phrase}?",
            f"Which {noun} controls {phrase}?",
            f"What {noun}{of} specifies {phrase}?",
            f"How do I configure {phrase}{' in ' + product if of else ''}?",
            keywords(phrase, product, rng),
        )
    )
