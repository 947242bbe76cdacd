from __future__ import annotations

import importlib.metadata
import inspect
import json
import pickle
import sys
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
_REQUIRES = [
    "click>=8.2",
    "scipy>=1.10; extra == 'eval'",
    'fastapi>=0.115; extra == "serve"',
    "psycopg[binary]>=3.2; (sys_platform != 'win32') and extra == 'serve'",
    "askline[eval]; extra == 'train'",
    "torch>=2.4; extra == 'train'",
]


@pytest.fixture
def active(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the tests is active: its programs are first on the PATH."""
    folder = str(Path(sys.executable).parent)
    monkeypatch.setattr("shutil.which", lambda name: f"{folder}/{name}")


def _installed(monkeypatch: pytest.MonkeyPatch, origin: dict[str, object] | None) -> None:
    """Let askline be installed from this origin, as pip records it."""
    record = None if origin is None else json.dumps(origin)
    installed = SimpleNamespace(read_text=lambda _: record, requires=_REQUIRES)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: installed)


@pytest.mark.usefixtures("active")
@pytest.mark.parametrize("editable", [True, False])
def test_install_command_names_the_folder_of_a_clone(
    editable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "my askline"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    _installed(monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": editable}})
    option = "--editable " if editable else ""
    assert install_command("serve") == f"pip install {option}'{clone}[serve]'"
    (clone / "pyproject.toml").unlink()
    assert install_command("serve") == "pip install 'fastapi>=0.115' 'psycopg[binary]>=3.2'"


@pytest.mark.usefixtures("active")
@pytest.mark.parametrize(
    "origin",
    [None, {"url": "file:///gone/askline-1-py3-none-any.whl", "archive_info": {}}],
    ids=["no record", "wheel"],
)
def test_install_command_names_the_packages_of_an_extra(
    origin: dict[str, object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(monkeypatch, origin)
    assert install_command("serve") == "pip install 'fastapi>=0.115' 'psycopg[binary]>=3.2'"
    assert install_command("train") == "pip install 'scipy>=1.10' 'torch>=2.4'"
    message = str(MissingExtraError("Training", "train"))
    assert message == f"Training needs more packages. Run: {install_command('train')}"


@pytest.mark.usefixtures("active")
def test_the_packages_of_an_extra_are_read_from_the_real_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = importlib.metadata.distribution("askline")
    installed = SimpleNamespace(read_text=lambda _: None, requires=real.requires)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: installed)
    assert "'fastapi>=" in install_command("serve")
    assert "'torch>=" in install_command("train")
    assert "scipy" in install_command("train")
    assert "askline" not in install_command("all")


@pytest.mark.usefixtures("active")
def test_install_command_names_the_commit_of_a_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    origin: dict[str, object] = {
        "url": "https://git.example/askline",
        "vcs_info": {"vcs": "git", "commit_id": _COMMIT},
    }
    _installed(monkeypatch, origin)
    url = f"git+https://git.example/askline@{_COMMIT}"
    assert install_command("serve") == f"pip install 'askline[serve] @ {url}'"


@pytest.mark.usefixtures("active")
def test_install_command_for_a_clone_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def not_found(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", not_found)
    clone = Path(errors.__file__).parent.parent
    assert install_command("serve") == f"pip install '{clone}[serve]'"


@pytest.mark.parametrize(
    ("programs", "has_pip", "expected"),
    [
        ({"pip": "/usr/bin/pip"}, True, "/my env/bin/python -m pip install"),
        ({}, True, "/my env/bin/python -m pip install"),
        ({"uv": "/usr/bin/uv"}, False, "uv pip install --python /my env/bin/python"),
    ],
    ids=["another environment is active", "none is active", "made by uv"],
)
def test_install_command_is_for_this_environment(
    programs: dict[str, str], has_pip: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/my env/bin/python")
    monkeypatch.setattr("shutil.which", programs.get)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: has_pip or None)
    _installed(monkeypatch, None)
    quoted = expected.replace("/my env/bin/python", "'/my env/bin/python'")
    assert install_command("eval") == f"{quoted} 'scipy>=1.10'"
