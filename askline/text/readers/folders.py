"""
Find the files of folders, and say of everything else why it is left out.

Files with a known suffix are taken, and so are other files whose first bytes are text. Hidden
names, installed packages, and what a `.gitignore` lists are left out, unless everything is asked
for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
from .ignore_rules import IgnoreRules

__all__ = [
    "DEFAULT_SELECTION",
    "FileSelection",
    "SkippedFile",
    "SkippedLink",
    "find_files",
]

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
                if self.roots is not None and not _is_inside(real, self.roots):
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


def _is_inside(path: str, roots: set[str]) -> bool:
    """Whether a real path is one of the roots or below one."""
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
