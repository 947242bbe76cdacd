from __future__ import annotations

import importlib.metadata
import inspect
import json
import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest

from askline import errors
from askline.corpus.lock import BusyError
from askline.errors import (
    AsklineError,
    DataError,
    MissingExtraError,
    Problem,
    UnknownNameError,
    install_command,
)

_SPECIAL: list[AsklineError] = [
    DataError([Problem("a.tsv", 3, "no label")] * 25),
    UnknownNameError("ranker", "cosnet", ["cosinet", "cascade"]),
    MissingExtraError("Training", "train"),
]
_PLAIN = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, AsklineError) and kind not in map(type, _SPECIAL)
]


@pytest.mark.parametrize(
    "error",
    [*_SPECIAL, *(kind("what and why") for kind in (*_PLAIN, BusyError))],
    ids=lambda error: type(error).__name__,
)
def test_every_error_can_be_pickled(error: AsklineError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)


def test_pickled_data_error_keeps_its_problems() -> None:
    error = _SPECIAL[0]
    assert isinstance(error, DataError)
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


_COMMIT = "6c4f1d2"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'askline[serve]'"),
        ({"url": "file:///src/askline", "dir_info": {}}, "pip install '/src/askline[serve]'"),
        (
            {"url": "file:///src/my%20askline", "dir_info": {"editable": True}},
            "pip install --editable '/src/my askline[serve]'",
        ),
        (
            {"url": "file:///src/askline-1-py3-none-any.whl", "archive_info": {}},
            "pip install 'askline[serve] @ file:///src/askline-1-py3-none-any.whl'",
        ),
        (
            {
                "url": "https://git.example/askline",
                "vcs_info": {"vcs": "git", "commit_id": _COMMIT},
            },
            f"pip install 'askline[serve] @ git+https://git.example/askline@{_COMMIT}'",
        ),
    ],
    ids=["index", "folder", "editable", "wheel", "git"],
)
def test_install_command_names_where_askline_came_from(
    origin: dict[str, object] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = None if origin is None else json.dumps(origin)
    installed = SimpleNamespace(read_text=lambda _: record)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: installed)
    assert install_command("serve") == command
    assert str(MissingExtraError("Serving", "serve")).endswith(command)


def test_install_command_for_a_clone_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def not_found(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", not_found)
    clone = Path(errors.__file__).parent.parent
    assert install_command("serve") == f"pip install '{clone}[serve]'"
