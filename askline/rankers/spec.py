"""
The spec language: one line of text for one ranker.

    pipeline := stage (">>" stage)*
    stage    := (name options? | "(" pipeline ")") ("%" number)*
    options  := "(" [ [key "="] value ("," [key "="] value)* ] ")"

A value is a number, `true`, `false`, a bare word or a quoted string. `str(ranker)` prints what
`load` reads: `load(str(ranker)) == ranker`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import SpecError, UnknownNameError
from ..models.folder import SHIPPED_LANGUAGES
from .base import Cut, Pipeline, Ranker
from .registry import DEFAULT_SPEC, OptionValue, build, takes_option

__all__ = [
    "load",
]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<mark>>>|[%(),=])
    | (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<word>(?:[^\s%(),='">]|>(?!>))+)
    )""",
    re.VERBOSE,
)
_MAX_DEPTH = 50  # of brackets: far beyond any use, far below Python's recursion limit


class _Token(NamedTuple):
    kind: str  # "mark", "quoted", "word" or "end"
    text: str
    at: int


def load(spec: str = DEFAULT_SPEC, *, language: str | None = None) -> Ranker:
    """
    Return the ranker that a spec text describes, such as `jaccard % 100 >> bm25`.

    Without a spec, it is the default ranker, `cosinet % 100 >> cascade`. An invalid spec raises
    SpecError, whose message has the position and what was expected there.

    With a `language`, `en` or `fr`, shipped models are those of that language. Without it, they
    follow the language of the question and the documents.
    """
    if not isinstance(spec, str):
        raise SpecError(f"The spec of a ranker must be a string, got {type(spec).__name__}.")
    if language is not None and language not in SHIPPED_LANGUAGES:
        raise UnknownNameError("language", language, SHIPPED_LANGUAGES)
    return _Parser(spec, language).parse()


class _Parser:
    """One pass over the tokens, one method for each rule of the grammar."""

    def __init__(self, spec: str, language: str | None) -> None:
        self.spec = spec
        self.language = language
        self.tokens = list(_tokens(spec))
        self.next = 0
        self.depth = 0

    def parse(self) -> Ranker:
        ranker = self.pipeline()
        if self.peek().kind != "end":
            raise self.expected("'>>', '%' or the end")
        return ranker

    def pipeline(self) -> Ranker:
        stages = [self.stage()]
        while self.take_mark(">>"):
            stages.append(self.stage())
        return stages[0] if len(stages) == 1 else Pipeline(tuple(stages))

    def stage(self) -> Ranker:
        if self.take_mark("("):
            self.depth += 1
            if self.depth > _MAX_DEPTH:
                raise self.expected(f"at most {_MAX_DEPTH} open brackets")
            ranker = self.pipeline()
            self.close_bracket()
            self.depth -= 1
        else:
            ranker = self.named()
        while self.take_mark("%"):
            ranker = Cut(ranker, self.keep())
        return ranker

    def named(self) -> Ranker:
        name = self.take_word("the name of a ranker")
        positional: list[OptionValue] = []
        options: dict[str, OptionValue] = {}
        if self.take_mark("("):
            while not self.take_mark(")"):
                self.option(positional, options)
                if not self.take_mark(","):
                    self.close_bracket()
                    break
        names_model = positional or "folder" in options
        if self.language and not names_model and takes_option(name, "language"):
            options.setdefault("language", self.language)
        return build(name, positional, options)

    def option(self, positional: list[OptionValue], options: dict[str, OptionValue]) -> None:
        token = self.peek()
        if token.kind not in ("word", "quoted"):
            raise self.expected("an option")
        self.next += 1
        if token.kind == "word" and self.take_mark("="):
            value = self.peek()
            if value.kind not in ("word", "quoted"):
                raise self.expected(f"a value for {token.text!r}")
            self.next += 1
            options[token.text] = _value(value)
        elif options:
            raise self.expected("key=value, as an option before it has a key")
        else:
            positional.append(_value(token))

    def keep(self) -> int:
        text = self.take_word("a whole number after '%'")
        if not text.isdecimal():
            self.next -= 1
            raise self.expected("a whole number after '%'")
        return int(text)

    def close_bracket(self) -> None:
        if not self.take_mark(")"):
            raise self.expected("')'")

    def peek(self) -> _Token:
        return self.tokens[self.next]

    def take_mark(self, mark: str) -> bool:
        found = self.peek().kind == "mark" and self.peek().text == mark
        self.next += found
        return found

    def take_word(self, wanted: str) -> str:
        if self.peek().kind != "word":
            raise self.expected(wanted)
        self.next += 1
        return self.tokens[self.next - 1].text

    def expected(self, wanted: str) -> SpecError:
        token = self.peek()
        came = "the end" if token.kind == "end" else repr(token.text)
        return SpecError(
            f"Cannot read the ranker {self.spec!r}: expected {wanted}, "
            f"got {came} at character {token.at + 1}."
        )


def _tokens(spec: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    end = len(spec.rstrip())
    while at < end:
        match = _TOKEN.match(spec, at)
        if not match or match.lastgroup is None:
            at += len(spec[at:]) - len(spec[at:].lstrip())
            raise SpecError(f"Cannot read the ranker {spec!r}: stray {spec[at]!r} at {at + 1}.")
        found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    return [*found, _Token("end", "", end)]


def _value(token: _Token) -> OptionValue:
    if token.kind == "quoted":
        return re.sub(r"\\(.)", r"\1", token.text[1:-1])
    for read in (int, float):
        try:
            return read(token.text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(token.text.lower(), token.text)
