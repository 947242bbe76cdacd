"""
Questions that single sentences of running text answer.

Each rule is a pattern of a sentence, of which one part becomes the question and the rest is the
answer: "To enable logging, set debug = 1." answers "How do I enable logging?".
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from .wording import (
    Draft,
    base_verb,
    content_words,
    from_user,
    how_to,
    is_dangling,
    reword,
    which,
)

__all__ = ["from_statement"]

_TO_DO = re.compile(
    r"^(?:In order to|To|If you (?:want|need|wish|would like|'d like) to|When you (?:want"
    r"|need) to) (?P<action>[a-z][^,:;]{8,110}?), (?:then )?(?:simply |just |first |please"
    r" |either |you (?:can|must|should|need to|have to|may|will need to|could|simply|just)"
    r" (?:also )?(?:either )?)?(?P<then>\S.*)$"
)
_BY_DOING = re.compile(
    r"^You can (?:also |easily |then )?(?P<action>[a-z][^,:;]{8,110}?) (?:by"
    r" (?!default)(?:simply |just )?\w+ing|using|with the|through the|via the)"
    r" (?P<then>.+)$"
)
_USE_TO = re.compile(
    r"^(?:You (?:can|should|may|could|must) use|Use|You can also use|Run|Call|Set|Press"
    r"|Click|Select|Choose) (?P<tool>(?!the following|this|that|these"
    r"|it\b)[^,:;]{3,60}?) (?:in order to|to|if you want to|when you want to|if you need"
    r" to) (?P<action>[a-z][^,:;]{8,110}?)[.,;(]"
)
_WHICH = re.compile(
    r"^The (?P<name>(?!following|first|second|last|next|other|same|new|whole|above)"
    r"[`'\"]?[\w.$:/@-]+(?:\(\))?[`'\"]?) (?P<noun>option|flag|parameter"
    r"|argument|setting|directive|command|method|function|attribute|property|keyword"
    r"|variable|field|module|class|program|tool|utility|plugin|operator|statement|macro"
    r"|header|switch|environment variable|file|key|action|rule|role|role|page|menu|dialog"
    r"|button|package|hook|event|service|annotation) (?P<does>[a-z]+s"
    r" (?:[^.;:]{8,120}?))(?:[.;]|, (?:which|so|and|but)\b|$)"
)
_IS_A = re.compile(
    r"^(?P<term>(?!(?:This|That|It|He|She|They|There|Here|These|Those|What|Which|Note|One"
    r"|Another|Each|Every|Some|All|Any|Both|Its|Their|Our|My|Your|If|When|Where|The (?:first"
    r"|second|third|last|only|best|main|problem|result|default|reason|following|other|same"
    r"|next|idea|goal|most|default|value|latter|former|easiest|simplest))\b)(?:(?:A|An"
    r"|The) )?[\w.+#/'()-]+(?: [\w.+#/'()-]+){0,3}) (?P<be>is|are) (?P<what>(?:an?|the"
    r"|used (?:to|for)|responsible for) [^;]{15,})"
)
_BECAUSE = re.compile(
    r"^(?P<subject>(?:(?:The|A|An|Your|Our|Most|Some|All|Many|Both|Such) (?:[\w'-]+"
    r" ){1,4}?)|(?:[A-Z][\w+.-]+ ))(?P<be>is|are|was|were|cannot|can't|can|must|should"
    r"|will|does not|doesn't|do not|don't) (?P<rest>[^,;:]{5,90}?),? (?:because|since it"
    r"|since they|due to|in order to avoid|so that) (?P<why>.{12,})$"
)
_STORED = re.compile(
    r"^(?P<subject>(?:The|All|Any|Your|User|System|Global|Local|Log|Configuration)\b(?:"
    r" [\w'-]+){1,5}?) (?P<be>is|are) (?:usually |normally |generally |typically |always "
    r"|by default )?(?P<how>stored|located|found|saved|kept|installed|placed|written"
    r"|logged|defined|recorded) (?:in|at|under|on|to|inside|into|within) (?P<where>.{3,})$"
)
_LIMIT = re.compile(
    r"^The (?P<what>(?:maximum|minimum|max|min|largest|smallest|default|recommended"
    r"|current|initial|upper|lower|allowed|total|required)(?: [\w'-]+){1,6}?)(?P<of> (?:of"
    r"|for|in) (?:the |an? )?[\w'` -]{2,45}?)? (?:is|are) (?!not|used|set up|that|to|an?\b"
    r"|the\b)(?P<value>.{1,})$",
    re.I,
)
_MUST = re.compile(
    r"^(?:(?:Employees|Users|Members|Students|Applicants|Contributors|Developers"
    r"|Maintainers|Administrators|Customers|Participants|You) )(?P<modal>may not|must not"
    r"|cannot|can't|must|are required to|need to|have to|may|are allowed to|are not"
    r" allowed to|should not|shouldn't|don't need to|do not need to|don't have to|do not"
    r" have to) (?P<action>[a-z][^,;:]{10,110}?)(?:[.,;]|$)"
)
_SUPPORTS = re.compile(
    r"^(?P<subject>(?:The )?[A-Z][\w.+-]+(?: [A-Z][\w.+-]+){0,2}|The [\w-]+(?: [\w-]+)?)"
    r" (?:currently |also |fully |only |natively )?(?P<does>supports|does not support"
    r"|doesn't support|requires|accepts|returns|depends on|ignores|expects)"
    r" (?P<what>[^,;:]{6,110}?)(?:[.,;]|$)"
)
_WHEN = re.compile(
    r"^(?P<subject>(?:The|A|An|Each|Every) (?:[\w'-]+ ){1,4}?)(?P<be>is|are) (?:only "
    r"|automatically |then )?(?P<done>[a-z]+ed(?: [^,;:]{0,60}?)?) (?P<when>(?:when"
    r"|whenever|after|before|once|every|until) .{8,})$"
)
_REFERS = re.compile(
    r"\b(?:this|that|these|those|it|its|they|them|their|above|below|following|he|she|such"
    r"|here|former|latter|previous)\b",
    re.I,
)
_MARKUP = re.compile(r"[{}|\\]|\.\. |::")
_IMPERATIVE = re.compile(
    r"(?:click|double-click|right-click|press|go|tap|drag|hold|consider|do|be|make|type|hit)\b"
)
_TOOL = re.compile(
    r"\b(option|command|method|function|flag|setting|parameter|button|menu|key|tool|module|class"
    r"|attribute|property|directive|operator|package)\b"
)
_NO_REASON = re.compile(r"\breason\b|\b(?:is|are)$|^There\b|\balso\b")
_NOT_ALLOWED = re.compile(
    r"(?:wish|want|need|obtain|find|notice|get|see|have|be|not|prefer|experience|encounter"
    r"|already|think|consider|ask|wonder|like)\b"
)
"""Verbs after which "may" and "must" tell of a possibility and not of a rule."""
_CONJUNCTION = re.compile(
    r"(?:Since|When|If|As|While|Although|Because|However|Note|Also|For|In|On|By|And|But)\b"
)


Rule = Callable[[str, str, random.Random], Draft | None]


def from_statement(text: str, product: str, rng: random.Random) -> Draft | None:
    """
    The question that a sentence of running text answers, or None.

    The first rule that finds one counts.
    """
    if not 30 <= len(text) <= 330 or text.endswith((":", "?")) or _MARKUP.search(text):
        return None
    for rule in _RULES:
        draft = rule(text, product, rng)
        if draft:
            return draft
    return None


def _instruction(text: str, product: str, rng: random.Random) -> Draft | None:
    """`To enable logging, set debug = 1.`, `You can enable logging by setting debug.`"""
    found = _TO_DO.match(text)
    if found:
        verb = found["then"].split()[0]  # a pointer to another page ("see ...") is no answer
        if len(found["then"]) <= 12 or not (base_verb(verb) == verb or _IMPERATIVE.match(verb)):
            return None
    found = found or _BY_DOING.match(text)
    return how_to(found["action"], product, rng) if found else None


def _tool(text: str, product: str, rng: random.Random) -> Draft | None:
    """`Use the --debug option to enable logging.`"""
    found = _USE_TO.match(text)
    if not found or not base_verb(found["action"].split()[0]):
        return None
    action = found["action"].rstrip(".")
    words = len(content_words(action))
    # "Click Printers to open the panel." is a step of something longer.
    if re.match(r"(?:Click|Press|Select|Choose|Run|Set|Call)\b", text) and words < 3:
        return None
    kind = _TOOL.search(found["tool"])
    if kind and not is_dangling(action) and words >= 2 and rng.random() < 0.6:
        return Draft(which(kind[1], reword(action, rng), product, rng), "which")
    return how_to(action, product, rng)


def _what_does(text: str, product: str, rng: random.Random) -> Draft | None:
    """`The --debug option enables logging.`"""
    found = _WHICH.match(text)
    if not found:
        return None
    verb, _, rest = found["does"].partition(" ")
    base = base_verb(verb)
    if not base or "," in rest or is_dangling(rest) or len(content_words(rest)) < 2:
        return None
    if rng.random() < 0.25 and re.search(r"[._()-]|[a-z][A-Z]|^[`'\"]", found["name"]):
        name, noun = found["name"].strip("`'\""), found["noun"]
        questions = (
            f"What does the {name} {noun} do?",
            f"What is {name} for?",
            f"What is the {noun} {name} used for?",
        )
        return Draft(rng.choice(questions), "what-does")
    return Draft(which(found["noun"], reword(f"{base} {rest}", rng), product, rng), "which")


def _place(text: str, _product: str, rng: random.Random) -> Draft | None:
    """`The log file is written to /var/log/x.log.`"""
    found = _STORED.match(text)
    if not found or not _is_clear(found["subject"]):
        return None
    if re.match(r"(?:the )?(?:variable|parameter|language)", found["where"]):
        return None
    subject, be, how = _small(found["subject"]), found["be"], found["how"]
    questions = (
        f"Where {be} {subject} {how}?",
        f"Where can I find {subject}?",
        f"In which place {be} {subject} {how}?",
        f"location of {re.sub('^(?:the|your|all|any) ', '', subject)}",
    )
    return Draft(rng.choice(questions), "where")


def _value(text: str, _product: str, rng: random.Random) -> Draft | None:
    """`The maximum size of a file is 2 GB.`"""
    found = _LIMIT.match(text)
    if not found:
        return None
    what = found["what"] + (found["of"] or "")
    if not _is_clear(what) or re.search(r"\b(?:if|unless|when|is|are|and|or)\b", what):
        return None
    be = "are" if " are " in text[: found.start("value")] else "is"
    return Draft(rng.choice((f"What {be} the {what}?", f"What {be} the {what}?", what)), "value")


def _reason(text: str, _product: str, _rng: random.Random) -> Draft | None:
    """`The file is locked because two processes write to it.`"""
    found = _BECAUSE.match(text)
    if not found:
        return None
    clause = found["subject"] + found["rest"]
    if not _is_clear(clause) or _NO_REASON.search(clause):
        return None
    if re.match(r"an? |the |one of", found["rest"]):
        return None
    be = found["be"]
    if be in ("can", "will") and " so that " in text:  # a result, not a reason
        return None
    subject = found["subject"].strip()
    if re.match(r"(?:The|A|An|Your|Our|Most|Some|All|Many|Both|Such)\b", subject):
        subject = _small(subject)
    auxiliary = {"does not": "does", "do not": "do", "cannot": "can"}.get(be, be)
    negative = " not" if be in ("does not", "do not", "cannot") else ""
    return Draft(f"Why {auxiliary} {subject}{negative} {found['rest']}?", "why")


def _permission(text: str, _product: str, rng: random.Random) -> Draft | None:
    """`You must not share your password.`"""
    found = _MUST.match(text)
    if not found or is_dangling(found["action"]) or len(content_words(found["action"])) < 3:
        return None
    if _NOT_ALLOWED.match(found["action"]):
        return None
    action = re.sub(
        r"^(?:also|only|still|then|always|either|first|now|simply|just) ", "", found["action"]
    )
    action = from_user(f"I {action.rstrip('.')}")[2:]
    duty = re.search(r"(?:must|need to|have to|required to)$", found["modal"])
    asked = (
        ("Do I have to", "Do I need to", "Must I", "Am I required to")
        if duty
        else ("May I", "Can I", "Am I allowed to", "Is it allowed to")
    )
    return Draft(f"{rng.choice(asked)} {action}?", "permission")


def _time(text: str, _product: str, _rng: random.Random) -> Draft | None:
    """`The cache is cleared when the server starts.`"""
    found = _WHEN.match(text)
    if not found:
        return None
    subject, done = found["subject"].strip(), found["done"].strip()
    if not _is_clear(f"{subject} {done}") or is_dangling(done):
        return None
    return Draft(f"When {found['be']} {_small(subject)} {done}?", "when")


def _definition(text: str, _product: str, rng: random.Random) -> Draft | None:
    """`A codec is a program that encodes video.`"""
    found = _IS_A.match(text)
    if not found or not 2 < len(found["term"]) < 45:
        return None
    term = re.sub(r"^(?:A|An|The) ", lambda word: word[0].lower(), found["term"])
    if _REFERS.search(term) or not _is_term(term, found["what"]):
        return None
    bare = _plain_term(re.sub(r"^(?:a|an|the) ", "", term))
    term, be = _plain_term(term), found["be"]
    if found["what"].startswith(("used", "responsible")):
        do = "does" if be == "is" else "do"
        purposes = (f"What {be} {term} used for?", f"What {do} {term} do?", f"purpose of {bare}")
        return Draft(rng.choice(purposes), "what-does")
    questions = (
        f"What {be} {term}?",
        f"What {be} {term}?",
        f"what {be} {term}",
        f"What does {bare} mean?",
        f"definition of {bare}",
        f"Can you explain what {term} {be}?",
    )
    return Draft(rng.choice(questions), "definition")


def _support(text: str, _product: str, _rng: random.Random) -> Draft | None:
    """`Borg supports hard links.`, `The lock command requires root.`"""
    found = _SUPPORTS.match(text)
    if not found or _REFERS.search(found["subject"]) or is_dangling(found["what"]):
        return None
    if _CONJUNCTION.match(found["subject"]):
        return None
    subject = re.sub(r"^(?:The|A|An) ", lambda word: word[0].lower(), found["subject"])
    what = found["what"]
    if "support" in found["does"]:
        short = len(what.split()) < 9
        question = f"Does {subject} support {what}?" if short else f"What does {subject} support?"
        return Draft(question, "support")
    if re.match(r"the \w+$", subject) or not content_words(subject):
        return None
    verb = found["does"].replace("depends", "depend").removesuffix("s")
    return Draft(f"What does {subject} {verb}?", "reference")


_RULES: tuple[Rule, ...] = (
    _instruction,
    _tool,
    _what_does,
    _place,
    _value,
    _reason,
    _permission,
    _time,
    _definition,
    _support,
)


def _is_clear(text: str) -> bool:
    """Whether a phrase has content of its own and refers to nothing before it."""
    return not _REFERS.search(text) and len(content_words(text)) >= 2


def _small(text: str) -> str:
    return text[0].lower() + text[1:]


def _plain_term(term: str) -> str:
    """A term from the start of a sentence, in small letters if its other words are."""
    first, *others = term.split()
    if others and re.fullmatch(r"[A-Z][a-z]+", first) and all(word.islower() for word in others):
        return _small(term)
    return term


_NOT_KIND = re.compile(
    r"^(?:an?|the) (?:(?:great|good|nice|bad|common|simple|easy|useful|handy|best|better"
    r"|quick|convenient|very|more|most|only|first|last|few|lot|bit|little|big|huge|major"
    r"|minor|key|important|critical|well|clear|significant|typical|rare|real|main) |"
    r"name of|same\b|example|investment|way\b|must\b|problem|reason|result|following"
    r"|case\b|one\b|default\b|idea\b|matter|question|mistake|synonym|alias|number of"
    r"|combination|part of|sign of|step|requirement|responsibility)",
    re.I,
)


def _is_term(term: str, what: str) -> bool:
    """Whether "TERM is WHAT" defines a term: no judgement, no statement about something known."""
    bare = re.sub(r"^(?:a|an|the) ", "", term)
    words = bare.split()
    if _CONJUNCTION.match(bare) or (words[0].endswith("s") and base_verb(words[0])):
        return False
    if bare.startswith("(") or bare.count("(") != bare.count(")"):
        return False
    if _NOT_KIND.match(what) or re.search(
        r"\d|\b(?:of|to|that|which|in|on|for|with|and|or|not|also|who|you|we)\b", bare
    ):
        return False
    if len(words) == 1 and bare == term and bare.isalpha() and bare.islower():
        return False
    if (words[0].lower().endswith("ing") and len(words) > 1) or len(what.split()) < 5:
        return False
    if re.search(r"(?:ly|[a-z]ing)$", words[-1]) and words[-1].islower() and len(words) > 1:
        return False
    if re.fullmatch(r"the [a-z]+", term):
        return False
    # "The parser is the ..." tells where a thing is, "The Parser is a ..." what it is.
    return not term.startswith("the ") or what.startswith(("a ", "an ")) or bare[0].isupper()
