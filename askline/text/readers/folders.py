"""
Find the files of folders, and say of everything else why it is left out.

Files with a known suffix are taken, and so are other files whose first bytes are text. Hidden
names, installed packages, and what a `.gitignore` lists are left out, unless everything is asked
for.

The patterns of `IgnoreRules` are those of git: `*.log` and `build/` match at any depth, `/notes`
and `docs/*.md` from the folder of the rules on, `**` stands for any number of folders, `!` takes a
rule back, and the last rule that matches counts. Matching takes linear time, whatever the pattern.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ...errors import NotReadReason, Problem
from .file_kinds import (
    BINARY_SUFFIXES,
    UNSUPPORTED_NAMES,
    UNSUPPORTED_SUFFIXES,
    decompressed_name,
    file_kind,
    sniff_file,
)

__all__ = [
    "DEFAULT_SELECTION",
    "FileSelection",
    "IgnoreRules",
    "SkippedFile",
    "SkippedLink",
    "find_files",
    "is_below",
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


Paths = Iterable[str | os.PathLike[str]]

_STDIN = "-"
_PACKAGE_FOLDERS = frozenset(("node_modules", "__pycache__", "CVS", "site-packages"))
_VERSION_CONTROL = frozenset((".git", ".hg", ".svn", ".bzr"))
_VENV_MARKER = "pyvenv.cfg"  # every Python virtual environment has this file
_IGNORE_FILE = ".gitignore"
_MAX_IGNORE_BYTES = 2**20
_OUTSIDE = (
    "It is a link to a place outside the given folders and was skipped. Add that place too, or "
    "follow links (--follow-links)."
)


class SkippedLink(Problem):
    """A link that leads out of the given folders and is not followed."""


class SkippedFile(NamedTuple):
    """A file or folder that is left out on purpose; a folder counts as one."""

    path: str
    reason: NotReadReason
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class FileSelection:
    """
    Which files of the given folders are taken.

    `include` and `exclude` are patterns as in a `.gitignore`, matched with the path below the given
    folder. A file is taken if it matches one of `include`, or there is none, and none of `exclude`.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    everything: bool = False
    """Also hidden names, installed packages, and what a `.gitignore` lists."""
    follow_links: bool = False
    """Also links that lead out of the given folders."""


DEFAULT_SELECTION = FileSelection()


def find_files(
    paths: Paths, selection: FileSelection = DEFAULT_SELECTION
) -> Iterator[Path | Problem | SkippedFile]:
    """
    The files under the paths, each once, sorted by name within a folder, and all that is left out.

    A path to a file is taken whatever its suffix, if it matches `include` and not `exclude`. Links
    are followed, also in circles, because each folder and file is identified by its real path. A
    link that leads out of the paths is a `SkippedLink`, unless `selection` follows links. What
    cannot be reached is a `Problem`. `-` is returned unchanged.
    """
    given_paths = list(paths)
    roots = None
    if not selection.follow_links:
        roots = {os.path.realpath(Path(given).expanduser()) for given in given_paths}
    walk = _Walk(selection, roots)
    for given in given_paths:
        if os.fspath(given) == _STDIN:
            if _STDIN not in walk.seen:
                walk.seen.add(_STDIN)
                yield Path(_STDIN)
            continue
        yield from walk.path(os.path.expanduser(os.fspath(given)))


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to be read: its path, its real path, and the names from the given folder on."""

    path: str
    real: str
    names: tuple[str, ...]
    rules: tuple[tuple[int, IgnoreRules], ...] = ()
    """The rules of .gitignore files, and how many of all names lie above each file."""
    above: tuple[str, ...] = ()
    """Names from the folder of the first .gitignore to the given folder."""


@dataclass(slots=True)
class _Walk:
    """One call of `find_files`."""

    selection: FileSelection
    roots: set[str] | None
    seen: set[str] = field(default_factory=set)
    include: IgnoreRules = field(init=False)
    exclude: IgnoreRules = field(init=False)

    def __post_init__(self) -> None:
        self.include = IgnoreRules(self.selection.include)
        self.exclude = IgnoreRules(self.selection.exclude)

    def path(self, given: str) -> Iterator[Path | Problem | SkippedFile]:
        """A path that the caller named."""
        try:
            mode = os.stat(given).st_mode
            real = os.path.realpath(given)
        except OSError as error:
            yield Problem(given, 0, _reason(given, error), "unreachable")
            return
        if not stat.S_ISDIR(mode):
            name = os.path.basename(given)
            if real in self.seen:
                return
            if self._is_excluded((name,), is_folder=False) or not self._is_included((name,)):
                yield SkippedFile(given, "excluded")
                return
            self.seen.add(real)
            if stat.S_ISREG(mode):
                yield Path(given)
            else:
                message = "It is a device or a pipe, not a file. Use - for a pipe."
                yield Problem(given, 0, message, "unreachable")
            return
        above, rules = ((), ()) if self.selection.everything else _rules_above(real)
        yield from self._folders(_Folder(given, real, (), rules, above))

    def _folders(self, root: _Folder) -> Iterator[Path | Problem | SkippedFile]:
        stack: list[_Folder | _Found] = [root]  # no recursion: folders may be nested very deep
        while stack:
            here = stack.pop()
            if isinstance(here, tuple):
                yield here[0]
                continue
            if here.real in self.seen:
                continue
            self.seen.add(here.real)
            try:
                with os.scandir(here.path) as entries:
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                yield Problem(here.path, 0, _reason(here.path, error), "unreachable")
                continue
            names = {entry.name for entry in found}
            if _VENV_MARKER in names and here is not root and not self.selection.everything:
                yield SkippedFile(here.path, "packages", is_folder=True)
                continue
            if _IGNORE_FILE in names:
                here = self._with_rules(here)
            below: list[_Folder | _Found] = []
            for entry in found:
                each = self._entry(here, entry)
                if each is not None:
                    below.append(each if isinstance(each, _Folder) else (each,))
            stack += reversed(below)

    def _with_rules(self, folder: _Folder) -> _Folder:
        """The folder with the rules of its own .gitignore."""
        rules = _read_rules(os.path.join(folder.path, _IGNORE_FILE))
        if self.selection.everything or rules is None:
            return folder
        level = len(folder.above) + len(folder.names)
        return _Folder(
            folder.path, folder.real, folder.names, (*folder.rules, (level, rules)), folder.above
        )

    def _entry(
        self, folder: _Folder, entry: os.DirEntry[str]
    ) -> _Folder | Path | Problem | SkippedFile | None:
        """What an entry of a folder is; None if it has been seen before."""
        path = os.path.join(folder.path, entry.name)
        try:
            is_folder = entry.is_dir()
            reason = self._reason_to_skip(folder, entry.name, is_folder=is_folder)
            if reason is not None:
                return SkippedFile(path, reason, is_folder)
            real = os.path.join(folder.real, entry.name)
            if entry.is_symlink():
                entry.stat()  # raises if there is no such file
                real = os.path.realpath(path)
                if self.roots is not None and not is_below(real, self.roots):
                    reason = None if is_folder else _suffix_reason(entry.name)
                    if reason is not None:
                        return SkippedFile(path, reason)
                    return SkippedLink(path, 0, _OUTSIDE, "link")
        except OSError as error:
            return Problem(path, 0, _reason(path, error), "unreachable")
        if is_folder:
            names = (*folder.names, entry.name)
            return _Folder(path, real, names, folder.rules, folder.above)
        if real in self.seen:
            return None
        self.seen.add(real)
        return _file(path, entry)

    def _reason_to_skip(
        self, folder: _Folder, name: str, *, is_folder: bool
    ) -> NotReadReason | None:
        if name in _VERSION_CONTROL:
            return "hidden"
        if not self.selection.everything:
            if name.startswith("."):
                return "hidden"
            if is_folder and name in _PACKAGE_FOLDERS:
                return "packages"
            if folder.rules and _is_ignored(folder, name, is_folder=is_folder):
                return "ignored"
        names = (*folder.names, name)
        if self.exclude and self._is_excluded(names, is_folder=is_folder):
            return "excluded"
        if self.include and not is_folder and not self._is_included(names):
            return "excluded"
        return None

    def _is_excluded(self, names: tuple[str, ...], *, is_folder: bool) -> bool:
        return self.exclude.decide(names, is_folder=is_folder) is True

    def _is_included(self, names: tuple[str, ...]) -> bool:
        """Whether a file, or a folder that it is in, matches a pattern."""
        if not self.include:
            return True
        return any(
            self.include.decide(names[:end], is_folder=end < len(names))
            for end in range(len(names), 0, -1)
        )


_Found = tuple[Path | Problem | SkippedFile]


def _file(path: str, entry: os.DirEntry[str]) -> Path | Problem | SkippedFile:
    """A file of a folder, or why it is left out."""
    reason = _suffix_reason(entry.name)
    if reason is not None:
        return SkippedFile(path, reason)
    try:
        if not entry.is_file():
            message = "It is a device or a pipe, not a file. Use - for a pipe."
            return Problem(path, 0, message, "unreachable")
        if file_kind(path) is None and sniff_file(path) is None:
            return SkippedFile(path, "binary")
    except OSError as error:
        return Problem(path, 0, _reason(path, error), "unreachable")
    return Path(path)


def _suffix_reason(name: str) -> NotReadReason | None:
    """Why files of this name are not read, whatever they contain."""
    name = decompressed_name(name)
    suffix = os.path.splitext(name)[1].lower()
    if suffix in BINARY_SUFFIXES:
        return "binary"
    is_unsupported = suffix in UNSUPPORTED_SUFFIXES or name in UNSUPPORTED_NAMES
    return "unsupported" if is_unsupported else None


def _is_ignored(folder: _Folder, name: str, *, is_folder: bool) -> bool:
    """Whether the .gitignore files say so; the one in the deepest folder counts first."""
    names = (*folder.above, *folder.names, name)
    for level, rules in reversed(folder.rules):
        decision = rules.decide(names[level:], is_folder=is_folder)
        if decision is not None:
            return decision
    return False


def _rules_above(real: str) -> tuple[tuple[str, ...], tuple[tuple[int, IgnoreRules], ...]]:
    """
    The .gitignore files from the top of the repository down to a folder.

    None of them counts if the folder itself is ignored by one: it was named by the caller.
    """
    names: list[str] = []
    top = real
    while not os.path.exists(os.path.join(top, ".git")):
        above, name = os.path.split(top)
        if above == top:
            return (), ()  # not in a repository
        names.insert(0, name)
        top = above
    rules: list[tuple[int, IgnoreRules]] = []
    folder = top
    for level in range(len(names)):
        found = _read_rules(os.path.join(folder, _IGNORE_FILE))
        if found:
            rules.append((level, found))
        folder = os.path.join(folder, names[level])
        above_here = _Folder("", "", tuple(names[:level]), tuple(rules))
        if _is_ignored(above_here, names[level], is_folder=True):
            return (), ()
    return tuple(names), tuple(rules)


def _read_rules(path: str) -> IgnoreRules | None:
    """The rules in a file; None if there are none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            data = stream.read(_MAX_IGNORE_BYTES)
    except OSError:
        return None
    rules = IgnoreRules(data.decode("utf-8-sig", "replace").splitlines())
    return rules if rules else None


def is_below(path: str, roots: set[str]) -> bool:
    """Whether a path is one of the roots or below one."""
    while path not in roots:
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


def _reason(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        if os.path.islink(path):
            return "It is a link to a file that does not exist. Remove or correct it."
        return "There is no such file. Check the path."
    return f"It cannot be read: {error.strerror or error}."
