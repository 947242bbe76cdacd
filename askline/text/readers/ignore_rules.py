"""
Which files a `.gitignore` or a pattern such as `*.md` means.

The patterns are those of git: `*.log` and `build/` match at any depth, `/notes` and `docs/*.md`
from the folder of the rules on, `**` stands for any number of folders, `!` takes a rule back, and
the last rule that matches counts. Matching takes linear time, whatever the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

__all__ = [
    "IgnoreRules",
]

_MAX_PATTERN = 1_000  # characters; longer lines are no patterns
_MAX_RULES = 10_000
_ESCAPED = re.compile(r"\\(.)")
_ANY_FOLDERS = "**"
_GLOB_CHARACTERS = frozenset("*?[\\")


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line. `segments` are matched with the parts of a path."""

    segments: tuple[str, ...]
    is_anchored: bool
    """Whether it is matched from the folder of the rules on, and not with the last name only."""
    is_folder: bool
    is_negated: bool

    def matches(self, parts: Sequence[str], *, is_folder: bool) -> bool:
        if self.is_folder and not is_folder:
            return False
        if not self.is_anchored:
            return _matches_name(self.segments[0], parts[-1])
        return _matches_parts(self.segments, parts)


class IgnoreRules:
    """The rules of one file, or of the options of a command."""

    def __init__(self, lines: Iterable[str]) -> None:
        rules = (_parse(line) for line in lines)
        self._rules = [rule for rule in rules if rule is not None][-_MAX_RULES:]
        # Most rules are plain names or `*.suffix`; the others are tried one by one.
        self._names: dict[str, int] = {}
        self._suffixes: dict[str, int] = {}
        self._others: list[int] = []
        for number, rule in enumerate(self._rules):
            segment = rule.segments[0]
            if rule.is_anchored or rule.is_folder:
                self._others.append(number)
            elif not _GLOB_CHARACTERS.intersection(segment):
                self._names[segment] = number
            elif segment.startswith("*.") and not _GLOB_CHARACTERS.intersection(segment[1:]):
                self._suffixes[segment[1:]] = number
            else:
                self._others.append(number)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def decide(self, parts: Sequence[str], *, is_folder: bool) -> bool | None:
        """
        True if a path is meant, False if a rule takes it back, None if no rule matches.

        `parts` are the names from the folder of the rules on. A folder above that is meant has to
        be looked at by the caller.
        """
        name = parts[-1]
        last = self._names.get(name, -1)
        at = name.find(".")
        while at >= 0:
            last = max(last, self._suffixes.get(name[at:], -1))
            at = name.find(".", at + 1)
        for number in reversed(self._others):
            if number <= last:
                break
            if self._rules[number].matches(parts, is_folder=is_folder):
                last = number
                break
        return None if last < 0 else not self._rules[last].is_negated


def _parse(line: str) -> _Rule | None:
    line = line.rstrip("\r\n")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#") or len(line) > _MAX_PATTERN:
        return None
    is_negated = line.startswith("!")
    if is_negated:
        line = line[1:]
    is_folder = line.endswith("/")
    pattern = line.rstrip("/")
    is_anchored = "/" in pattern
    segments = tuple(segment for segment in pattern.split("/") if segment)
    if not segments:
        return None
    if len(segments) == 2 and segments[0] == _ANY_FOLDERS and segments[1] != _ANY_FOLDERS:
        segments, is_anchored = segments[1:], False
    return _Rule(segments, is_anchored, is_folder, is_negated)


def _matches_parts(segments: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether all parts match; `**` stands for any number of them, at the end for at least one."""
    at = number = 0
    star = -1  # the last `**`, and the part up to which it reaches
    reached = 0
    while at < len(parts):
        if number < len(segments) and segments[number] == _ANY_FOLDERS:
            if number == len(segments) - 1:
                return True
            star, reached = number, at
            number += 1
        elif number < len(segments) and _matches_name(segments[number], parts[at]):
            number += 1
            at += 1
        elif star >= 0:
            reached += 1
            at, number = reached, star + 1
        else:
            return False
    return number == len(segments)


def _matches_name(segment: str, name: str) -> bool:
    return _compiled(segment).match(name) is not None


@lru_cache(maxsize=4_096)
def _compiled(segment: str) -> re.Pattern[str]:
    # `translate` knows no escapes, and writes stars so that they do not backtrack.
    plain = _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], segment)
    return re.compile(translate(plain.replace("[^", "[!").replace("**", "*")))
