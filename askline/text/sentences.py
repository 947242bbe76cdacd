"""
Rule-based sentence splitting with exact character offsets.

The text is first cut into blocks by lines: a blank line, a heading and a list item each start a new
block, while any other line break is white space, so that hard-wrapped paragraphs stay whole. Within
a block, each punctuation mark that may end a sentence is decided by the words on either side of it.
The rules and the abbreviation lists cover English and French;
research/decisions/sentence-splitting.md has the measurements behind them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Literal

__all__ = [
    "ABBREVIATIONS",
    "SENTENCE_STARTS",
    "split_sentences",
]

AbbreviationKind = Literal["never", "maybe", "name", "number"]

# Lowercase, without the final full stop. Abbreviations made of dotted letters (`U.S.`, `a.m.`) and
# initials need no entry.

# Never end a sentence: a name or an explanation follows.
_NEVER = """
    mr mrs ms dr prof gen col sgt capt cpt lt rev hon sen rep gov pres brig adm maj cmdr cpl pvt
    supt messrs mx ss e.g i.e cf viz vs et ps p.s nb n.b mm mme mmes mlle mlles mgr mtre
"""
# May end a sentence: they do if the next word is in SENTENCE_STARTS.
_MAYBE = """
    inc ltd corp co cos bros llc plc jr sr esq etc al st mt ft ste ave blvd rd dept univ assn
    approx ca var subsp ssp spp sp lat ed eds orig repr pl syn incl excl misc lb lbs hr hrs yr
    yrs tel ext ibid chap ch sect eq eqs pp pt pts jan feb apr jun jul aug sep oct nov dec geo
    wm chas thos jas anon pseud pg eg ie av ap env éd réf janv févr avr juil déc
"""
# Names that contain a mark: `Yahoo! Mail`.
_NAME = "yahoo jeopardy"
# Ordinary words that are abbreviations only before a number.
_NUMBER = "est no nos art arts fig figs vol vols sec par vers op nr mar sept tome"

ABBREVIATIONS: dict[str, AbbreviationKind] = {
    **dict.fromkeys(_NEVER.split(), "never"),
    **dict.fromkeys(_MAYBE.split(), "maybe"),
    **dict.fromkeys(_NAME.split(), "name"),
    **dict.fromkeys(_NUMBER.split(), "number"),
}

SENTENCE_STARTS = frozenset(
    """
    a an the this that these those he she it they we you i his her its their our my your who
    what when where why how which in on at by for from with as after before during while since
    although though however but and if there then some many most all both each every another
    other others several one two three no not also thus such because until under over between
    among through throughout despite unlike like to of according following today later early now
    only once even so yet or here instead meanwhile moreover furthermore additionally
    le la les un une des du il elle ils elles on ce cet cette ces cela en dans au aux à pour par
    sur avec selon après avant lors lorsque depuis mais et donc si son sa ses leur leurs nous
    vous je qui que quand comme plus pendant ainsi sous entre
    """.split()
)
"""Words that, when capitalized, more often than not start a sentence."""

_AFTER_QUESTION_MARK = frozenset(
    """i it the this that we you my there what how why where who if when did does can could would
    should or so any""".split()
)
_ELIDED = frozenset(("C", "L", "J", "N", "S", "Qu"))  # C'est, L'eau, J'ai, N'ayant, S'il, Qu'un

_LINE_START = re.compile(
    r"""\s*(?: (?P<blank> \Z )
    | (?P<heading> \#{1,6}\s | [^\w\s]{3,}\s*\Z )   # `## Title`, or a rule such as -----
    | (?P<bullet> [-*+•‣▪◦●○■□➢|]\s )
    | (?P<number> [–—]\s | \(?(?:\d{1,3}|[a-zA-Z])[.)]\s ) )""",
    re.VERBOSE,
)
_FIRST_NUMBER = re.compile(r"\s*\(?[1aA][.)]")
_LINE_ENDINGS = (".", "!", "?", ":", ";", "…", "»", "”", '"', ")")

# A mark can end a sentence in three ways: followed by closing quotes and brackets, white space and
# a word; in a script that puts no space there; with the space missing, as in `1973.The`.
# The pattern starts with a character set, because `re` then skips all other characters quickly.
# In a run of marks it is tried at the first ten only: if it fails there, it fails at all of them,
# and trying them all takes quadratic time. The number of repetitions of a group is limited,
# because `re` keeps each repetition in memory.
_MARK = re.compile(
    r"""(?P<mark> [.!?…؟۔।॥።։。！？｡] (?<![.!?…].) (?<![.!?…][ ].) (?<![.!?…؟۔।॥።։。！？｡]{9}.)
                  [.!?…؟۔।॥።։。！？｡]* (?:[ ][.!?]){0,999} )
    (?: (?P<close> (?: ['"”’)\]}] | [ \u00a0\u202f]?» | \[[^\[\]]{1,30}\]
                   | [ ](?: ''? | [)\]] | -R[RSC]B- )(?=\s|\Z) ){0,999} )
        (?P<quote> [ ]"(?=\s) )?
        (?: (?= \s+ (?: ["'“‘«(\[¿¡`—–-]\s? ){0,999} (?P<next> \w* ) (?P<after> .? ) ) | \s*\Z )
        (?! \s+ ["'”’»]?(?: [.)\]}] | [,;:&/]\s ) )
    | (?<= [。！？｡] ) ['"”’」』）】〉》)]*
    | (?<= [^\W\d_]{2}[.!?] | \d\d[.!?] | \S[)\]"”][.!?] ) [”)]?
        (?= [A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]*[\s,:'’] )
    )""",
    re.VERBOSE | re.DOTALL,
)
_ANY_MARK = re.compile(r"[.!?…؟۔।॥።։。！？｡]")
_OTHER_ASCII_MARKS = "!?"
_OTHER_MARKS = "!?…؟۔।॥።։。！？｡"
_OPERATORS = frozenset("=|")
_INTERJECTIONS = frozenset("ah aha alas ay aye ha hark ho lo o oh".split())
_OPENING_QUOTES = frozenset("'\"“‘`")
_SECTION = re.compile(
    r"(?:Chapter|Section|Part|Appendix|Annex)[ \u00a0](?:\d{1,3}\.){0,5}\d{1,3}\Z", re.IGNORECASE
)
_SPEECH_LOOKBACK = 300  # characters searched for an open quotation
_BRACKET_LOOKAROUND = 150  # characters searched for the brackets around a question
_SHORT_REST = 8
_ENUMERATOR = re.compile(
    r"\s*(?:(?:Table|Figure|Example)[ \u00a0])?[(\[]?"
    r"(?:(?:\d{1,3}\.){0,5}\d{1,3}|[ivxIVX]{2,4})[ ]?\Z"
)
_ENUMERATOR_LOOKBACK = 16
_NUMERAL = re.compile(r"[A-Z]?\d|[IVXLC]+\Z")
_LAST_WORD = re.compile(r"[^\W_]+(?:[.&][^\W_]+)*\Z")
_REFERENCE = re.compile(
    r"[ \t]+(?:\((?=[^)]*[.#]|\d{3})[#v]?\d[\d.,;# –-]{0,20}\)|\[\#?\d[\d,\# ]{0,40}\])(?=\s|\Z)"
)
_REFERENCE_STARTS = (" (", " [")
_REMARK = re.compile(r"\([a-zà-ÿ\d][^()]{0,150}\)[.;]?\Z")
_SPACED_END = re.compile(r"[a-z]{3}\.\s+[A-Z]")
_SPACE_LOOKAROUND = 1000  # characters searched for a full stop with a space behind it
_PREFIX_LOOKAROUND = 150  # characters searched for other names with the same prefix
_NAME_AHEAD = re.compile(r", \w+\.\w")
_NEXT_WORD = re.compile(r"[^\W\d_]+")
_WORD_LOOKBACK = 24  # characters read before a mark: longer than any abbreviation
_QUOTE_LOOKBACK = 1000  # characters searched for an open quote; the limit keeps the time linear
_MAX_CHARACTERS = 1000  # a longer sentence is a transcript, a log or data without full stops
_WINDOW_CHARACTERS = 300  # of the pieces that it is cut into


def split_sentences(text: str) -> list[tuple[int, int]]:
    """
    The spans of the sentences, in order: `text[start:end]` is a sentence.

    Spans do not overlap, are never empty, have no white space at either end, and together cover
    every character that is not white space. Text of more than 1,000 characters without the end of a
    sentence is cut into windows of at most 300, at line breaks or else between words. The time is
    linear in the length of the text.
    """
    spans: list[tuple[int, int]] = []
    caseless = text.islower()  # then a lowercase letter is no sign that a sentence continues
    next_mark = _next_mark(text)
    lines = text.splitlines(keepends=True)
    for first, end in _blocks(lines) if len(lines) > 1 else ((0, len(text)),):
        start = first
        begin = -1  # where the sentence begins, if that is known
        is_line = False  # whether the last sentence ends with a mark and a line break
        at = next_mark(start, end)
        while at >= 0:
            # The usual end of a sentence is decided here, because the pattern takes much longer.
            if (
                text[at : at + 2] == ". "
                and text[at + 2 : at + 3].isupper()
                and at - start > _WORD_LOOKBACK
                and at + 2 < end
                and _is_plain_word(text[at - _WORD_LOOKBACK : at].rpartition(" ")[2])
            ):
                if 0 <= begin > at - _MAX_CHARACTERS:
                    spans.append((begin, at + 1))
                else:
                    _append(spans, text, start, at + 1)
                start, begin = at + 1, at + 2
                at = next_mark(start, end)
                continue
            following = text[at + 1 : at + 2]
            if text[at] == "." and following.isalnum() and not following.isupper():
                at = next_mark(at + 1, end)  # `3.14`, `example.com`
                continue
            if end - at < _SHORT_REST and not text[at + 1 : end].strip():
                is_line = at + 1 < end
                break  # the rest is one sentence, whatever the mark means
            match = _MARK.match(text, at, end)
            if match is None:
                at = next_mark(at + 1, end)
                continue
            if cut := _cut(text, start, end, match, caseless):
                _append(spans, text, start, cut)
                start, begin = cut, -1
            at = next_mark(match.end(), end)
        if begin >= 0 and end - begin <= _MAX_CHARACTERS:
            spans.append((begin, begin + len(text[begin:end].rstrip())))
        elif not text[start:end].isspace():  # what is left is mostly the end of a line
            _append(spans, text, start, end)
            if start > first and not is_line and text[spans[-1][0]] == "(":
                _join_remark(spans, text)
    return spans


def _next_mark(text: str) -> Callable[[int, int], int]:
    """A function that finds the next mark in `text[start:end]`; -1 if there is none."""
    others = _OTHER_ASCII_MARKS if text.isascii() else _OTHER_MARKS
    for mark in others:
        if mark in text:
            break
    else:
        return partial(text.find, ".")  # several times as fast as the pattern

    def search(start: int, end: int) -> int:
        found = _ANY_MARK.search(text, start, end)
        return found.start() if found else -1

    return search


@lru_cache(2**14)
def _is_plain_word(word: str) -> bool:
    """Whether a full stop after a word ends a sentence if a capital letter follows it."""
    is_short = 1 < len(word) < _WORD_LOOKBACK
    is_word = word.isalnum() and not (word.isdecimal() and len(word) < 3)  # it may be a section
    return is_short and is_word and word.lower() not in ABBREVIATIONS


def _cut(text: str, start: int, end: int, match: re.Match[str], caseless: bool) -> int:
    """The end of the sentence that a mark ends; 0 if it ends none."""
    if match["next"] is None:
        is_end = _ends_without_space(text, start, match)
    else:
        is_end = _ends_sentence(text, start, match, caseless)
    if not is_end:
        return 0
    cut = match.end() if match["quote"] is None else _cut_at_quote(text, start, match)
    if text[cut : cut + 2] in _REFERENCE_STARTS and text[cut - 2] not in " .":
        reference = _REFERENCE.match(text, cut, end)
        cut = reference.end() if reference else cut
    return cut


def _join_remark(spans: list[tuple[int, int]], text: str) -> None:
    """Join a remark in brackets, in lowercase and the last of its block, to the sentence before."""
    start, end = spans[-1]
    if len(spans) > 1 and end - spans[-2][0] <= _MAX_CHARACTERS and _REMARK.match(text, start, end):
        spans[-2:] = [(spans[-2][0], end)]


def _ends_without_space(text: str, start: int, match: re.Match[str]) -> bool:
    """
    Whether a mark without white space behind it ends a sentence.

    Inside a name with full stops it does not: `java.util.Map is` and `text.A, text.H` have three
    names. Nor does it behind the first words of a sentence. If the text has spaces behind other
    full stops, it does only before a word that often starts a sentence.
    """
    at = match.start()
    if text[at] != "." or match.end() == len(text) or not text[at - 1].isalpha():
        return True
    before = text[max(start, at - _WORD_LOOKBACK) : at].split()
    if "." in before[-1] or (len(before) < 3 and at - start <= _WORD_LOOKBACK):
        return False
    near = max(at - _PREFIX_LOOKAROUND, 0), at + _PREFIX_LOOKAROUND
    if text.count(f" {before[-1]}.", *near) > 1:  # a prefix: `text.A, text.H`
        return False
    word = _NEXT_WORD.match(text, match.end())
    if word is None:
        return True
    starts_sentence = word[0].lower() in SENTENCE_STARTS
    if text[word.end() : word.end() + 1] == ":" or _NAME_AHEAD.match(text, word.end()):
        return False
    around = max(at - _SPACE_LOOKAROUND, 0), at + _SPACE_LOOKAROUND
    return starts_sentence or not _SPACED_END.search(text, *around)


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end].rstrip()
    bare = piece.lstrip()
    if bare:
        end = start + len(piece)
        if len(bare) > _MAX_CHARACTERS:
            spans.extend(_windows(text, end - len(bare), end))
        else:
            spans.append((end - len(bare), end))


def _windows(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """
    Cut text without full stops at the last line break of a window, semicolon, comma or space.

    A window that would be less than a third full is cut between words too. Without white space, as
    in Chinese or in encoded data, it is cut after its last character.
    """
    while end - start > _WINDOW_CHARACTERS:
        stop = start + _WINDOW_CHARACTERS
        least = start + _WINDOW_CHARACTERS // 3
        cut = text.rfind("\n", least, stop + 1)
        if cut < 0:
            cut = text.rfind("; ", least, stop) + 1 or text.rfind(", ", least, stop) + 1
        if cut <= 0:
            cut = next((at for at in range(stop, least, -1) if text[at].isspace()), stop)
        yield start, start + len(text[start:cut].rstrip())
        start = cut
        while text[start].isspace():
            start += 1
    yield start, end


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The pieces of the text that no sentence crosses, in order; lines have their line ends."""
    start = position = 0
    kind: str | None = None
    before = ""  # the previous line
    for line in lines:
        # Most lines start with a word, which the pattern would take longer to see.
        found = None if line[:2].isalpha() else _LINE_START.match(line)
        if found and (
            found["number"] is None
            or kind == "number"
            or _is_closed(before)
            or _FIRST_NUMBER.match(line)
        ):
            yield start, position
            start, kind = position, found.lastgroup
        position += len(line)
        before = line
        if kind == "heading":
            yield start, position
            start, kind = position, None
    yield start, position


def _is_closed(line: str) -> bool:
    """Whether a line ends like a sentence."""
    bare = line.rstrip()
    return not bare or bare.endswith(_LINE_ENDINGS)


def _cut_at_quote(text: str, start: int, match: re.Match[str]) -> int:
    """A quote between two spaces belongs to this sentence only if it closes an open quote."""
    at = match.start("quote")
    is_open = text.count('"', max(start, at - _QUOTE_LOOKBACK), at) % 2
    return match.end() if is_open else at


def _ends_sentence(text: str, start: int, match: re.Match[str], caseless: bool) -> bool:
    mark, close, following, after = match.group("mark", "close", "next", "after")
    at = match.start()
    if at - start < _ENUMERATOR_LOOKBACK and _ENUMERATOR.match(text, start, at):
        return False
    lower = following[:1].islower() and (not caseless or ")" in close)
    if close and text[max(at - 1, start)] in _OPENING_QUOTES and not following[:1].isupper():
        return False  # a character in quotes, as in `'+' '.' '_'`
    word = _last_word(text, start, at)
    kind = ABBREVIATIONS.get(word.lower())
    if mark != "." and kind != "name":
        if not following and after in _OPERATORS:
            return False  # `"?" = unknown`
        if following[:1].isdecimal() and text[max(at - 1, start)].isspace():
            return False  # a character, as in `ESC [ ? 25 h`
        if _is_in_brackets(text, start, match.end()):
            return False
        if len(mark) > 1 and text[max(at - 2, 0) : at].rstrip().endswith(","):
            return False  # `0, 1, 2, ... 9`
        if len(mark) > 2 and len(following) > 1 and following.isupper():
            return False  # `CREATE TABLE ... AS SELECT`
        if mark[0] in ".…" and text.count('"', max(start, at - _QUOTE_LOOKBACK), at) % 2:
            return False  # `"ALTER TABLE ... RENAME"`
        if lower and following in _AFTER_QUESTION_MARK and not close and mark[0] in "!?":
            return not (word.lower() in _INTERJECTIONS or _is_speech(text, at))
        return not lower
    if kind == "never" or (kind == "number" and _NUMERAL.match(following)) or word == "M":
        return False
    if word[:1].isdecimal() and _SECTION.search(text, max(start, at - _WORD_LOOKBACK), at):
        return not lower and _starts_sentence(following, after)  # `Chapter 2. Lamps`
    if kind in ("maybe", "name") or _is_dotted(word):
        return not lower and _starts_sentence(following, after)
    if at > start and text[at - 1].isspace() and (lower or not (following or after == "")):
        return False  # a character, as in `tar c . is better` and `the characters . + -`
    return not (lower and close)


def _is_in_brackets(text: str, start: int, at: int) -> bool:
    """Whether a question is a part of a remark in brackets inside its sentence."""
    opening = text.rfind("(", max(start + 1, at - _BRACKET_LOOKAROUND), at)
    if opening < 0 or text.find(")", opening, at) >= 0:
        return False
    closing = text.find(")", at, at + _BRACKET_LOOKAROUND)
    return closing >= 0 and text.find("(", at, closing) < 0


def _is_speech(text: str, at: int) -> bool:
    """Whether a quotation is open, in which `Oh! what a lamp` is one sentence."""
    first = max(at - _SPEECH_LOOKBACK, 0)
    return text.rfind("“", first, at) > text.rfind("”", first, at)


def _last_word(text: str, start: int, at: int) -> str:
    """The word directly before a mark; empty after a space, a quote or a bracket."""
    if at == start or not text[at - 1].isalnum():
        return ""
    last = text[max(start, at - _WORD_LOOKBACK) : at].split()[-1]
    if last.isalnum():  # the most frequent case
        return last
    found = _LAST_WORD.search(last)
    return found[0] if found else ""


def _is_dotted(word: str) -> bool:
    """True for `J`, `U.S`, `a.m` and `Ph.D`; false for `3.14` and `example.com`."""
    if len(word) < 2:
        return word.isalpha()
    return "." in word and all(len(part) < 4 and not part.isdigit() for part in word.split("."))


def _starts_sentence(word: str, after: str) -> bool:
    if after in ("'", "’"):
        return word in _ELIDED
    return word.lower() in SENTENCE_STARTS and not (len(word) == 1 and after == ".")
