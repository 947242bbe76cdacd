"""
The exceptions of askline. Every message says what was expected, what it got, and what to do.

All of them can be pickled, so that worker processes can raise them. Pickle recreates an exception
from its message; classes with other arguments define `__reduce__`.

AsklineError
├── InputError (ValueError)          invalid input from the caller
│   ├── DataError                    all bad rows of a file, each with its line
│   ├── SpecError                    an invalid ranker spec or name
│   └── UnknownNameError             an unknown dataset, split, filter or measure
├── MissingExtraError (ImportError)  an optional dependency is not installed
├── CorpusError                      an index folder that is missing, damaged, too new or in use
├── ModelError                       a model folder that is missing, damaged or of another kind
└── RankerError                      a ranker that breaks its contract

LanguageWarning (UserWarning)        texts in a language that no model can read
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal

__all__ = [
    "AsklineError",
    "CorpusError",
    "DataError",
    "InputError",
    "LanguageWarning",
    "MissingExtraError",
    "ModelError",
    "NotReadReason",
    "Problem",
    "RankerError",
    "SpecError",
    "UnknownNameError",
    "install_command",
    "require_extra",
]

_MAX_PROBLEMS_SHOWN = 20

NotReadReason = Literal[
    "damaged",
    "empty",
    "no column",
    "scan",
    "password",
    "too large",
    "limit",
    "binary",
    "unsupported",
    "unreachable",
    "link",
    "hidden",
    "ignored",
    "excluded",
    "packages",
]
"""
Why a file was not read. `no column`: a table without a column of text. `scan`: a PDF of pictures.
`limit`: reading exceeded the limits of time or memory. `unsupported`: a known format without a
reader. `unreachable`: missing, no permission, or no file. `ignored`: by a .gitignore. `excluded`:
by the caller. `packages`: a folder of installed packages.
"""


class AsklineError(Exception):
    """The base class of all exceptions that askline raises on purpose."""


class InputError(AsklineError, ValueError):
    """The input of the caller is invalid."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in a file. Lines start at 1; 0 stands for the whole file."""

    path: str
    line: int
    message: str
    reason: NotReadReason = "damaged"
    """Why the file was not read, as it is counted in reports."""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


class DataError(InputError):
    """All problems of a file; the message shows the first twenty."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        shown = [str(problem) for problem in self.problems[:_MAX_PROBLEMS_SHOWN]]
        if len(self.problems) > _MAX_PROBLEMS_SHOWN:
            shown.append(f"… and {len(self.problems) - _MAX_PROBLEMS_SHOWN} more problems.")
        super().__init__("\n".join(shown))

    def __reduce__(self) -> tuple[type[DataError], tuple[Sequence[Problem]]]:
        return type(self), (self.problems,)


class SpecError(InputError):
    """The spec or the name of a ranker is invalid."""


class UnknownNameError(InputError):
    """An unknown name. The message lists the known names and suggests the closest one."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self._arguments = kind, name, tuple(known)
        super().__init__(unknown_name_message(*self._arguments))

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, Sequence[str]]]:
        return type(self), self._arguments


class MissingExtraError(AsklineError, ImportError):
    """A feature needs optional packages that are not installed."""

    def __init__(self, purpose: str, extra: str) -> None:
        self._arguments = purpose, extra
        super().__init__(f"{purpose} needs more packages. Run: {install_command(extra)}")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), self._arguments


class CorpusError(AsklineError):
    """An index folder is missing, damaged, of a newer version, or locked by another process."""


class ModelError(AsklineError):
    """A model folder is missing, damaged, or of another kind than requested."""


class LanguageWarning(UserWarning):
    """Texts are in a language that no model can read, so they are ranked by their words."""


class RankerError(AsklineError):
    """A ranker broke its contract: a candidate is missing, repeated, or has no finite score."""


def unknown_name_message(kind: str, name: str, known: Iterable[str]) -> str:
    """`No ranker 'cosnet'. Known: cascade, cosinet. Did you mean 'cosinet'?`"""
    names = sorted(known)
    message = f"No {kind} {name!r}. Known: {', '.join(names)}."
    close = difflib.get_close_matches(name, names, n=1)
    return f"{message} Did you mean {close[0]!r}?" if close else message


def install_command(extra: str) -> str:
    """
    The command that adds an extra to this installation of askline.

    Pip records where a package came from in `direct_url.json` (PEP 610). From a folder or a
    repository, askline is installed again with the extra. A wheel or a source distribution may be
    gone, and askline is on no package index: then the command names the packages of the extra,
    which is true in every case.
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # not at the top: it makes every start slower

    try:
        installed = distribution("askline")
    except PackageNotFoundError:  # a clone on PYTHONPATH
        return f"{_pip_install()} '{Path(__file__).parent.parent}[{extra}]'"
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    url = origin.get("url", "")
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
        return f"{_pip_install()} 'askline[{extra}] @ {url}'"
    folder = url2pathname(urlsplit(url).path)
    if "dir_info" in origin and Path(folder, "pyproject.toml").is_file():
        editable = "--editable " if origin["dir_info"].get("editable") else ""
        return f"{_pip_install()} {editable}'{folder}[{extra}]'"
    packages = _extra_packages(installed.requires or (), extra)
    return f"{_pip_install()} {' '.join(map(repr, packages))}"


def _pip_install() -> str:
    """The call of pip that installs into this environment; `pip` on the PATH may be another's."""
    import shlex
    import shutil
    from importlib.util import find_spec

    python = Path(sys.executable)
    on_path = shutil.which("pip")
    if on_path is not None and Path(on_path).parent == python.parent:
        return "pip install"
    if find_spec("pip") is None and shutil.which("uv") is not None:  # uv makes environments without
        return f"uv pip install --python {shlex.quote(str(python))}"
    return f"{shlex.quote(str(python))} -m pip install"


def _extra_packages(requirements: Sequence[str], extra: str) -> list[str]:
    """The packages of an extra, with those of the extras that it names, such as askline[eval]."""
    packages: dict[str, None] = {}
    for requirement in requirements:
        package, _, marker = (part.strip() for part in requirement.partition(";"))
        if extra not in re.findall(r"""extra\s*==\s*["']([^"']+)["']""", marker):
            continue
        if nested := re.fullmatch(r"askline\[([^\]]+)\]", package):
            for name in nested[1].split(","):
                packages |= dict.fromkeys(_extra_packages(requirements, name.strip()))
        else:
            packages[package] = None
    return list(packages)


def require_extra(module: str, *, purpose: str, extra: str) -> ModuleType:
    """Import an optional module, or raise MissingExtraError with the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(purpose, extra) from error
