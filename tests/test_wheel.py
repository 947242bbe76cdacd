"""The wheel works in an empty environment, outside the clone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


def run(
    *command: str | Path, cwd: Path, python_path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with another PYTHONPATH than that of the tests, or with none."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if python_path is not None:
        settings["PYTHONPATH"] = str(python_path)
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=settings, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("build")
    tools = folder / "tools"
    pip = (sys.executable, "-m", "pip")
    installed = run(*pip, "install", "--target", tools, "hatchling>=1.25", cwd=folder)
    if installed.returncode:
        pytest.skip("hatchling cannot be installed here: no package index is reachable")
    hatchling = (sys.executable, "-m", "hatchling")
    built = run(*hatchling, "build", "-d", folder / "dist", cwd=ROOT, python_path=tools)
    assert built.returncode == 0, built.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def python(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The python of an environment that holds the wheel and its dependencies, nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    [wheel] = distributions.glob("*.whl")
    installed = run(python, "-m", "pip", "install", wheel, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    return python


def test_wheel_holds_only_the_package(distributions: Path) -> None:
    [wheel] = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    folders = {name.split("/")[0] for name in names}
    own = {name for name in folders if not name.endswith(".dist-info")}
    assert own == {"askline", "haystack_integrations"}
    # The second is a namespace of many packages, none of which may bring an __init__.py for it.
    shared = [name for name in names if name.startswith("haystack_integrations/")]
    assert shared
    assert not [name for name in shared if name.endswith("__init__.py")]


def test_source_distribution_holds_what_make_test_needs(distributions: Path) -> None:
    [source] = distributions.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "Makefile", "README.md", "LICENSE"} <= names
    for folder in ("askline", "haystack_integrations", "tests", "research", "docs", "examples"):
        expected = {
            str(path.relative_to(ROOT))
            for path in (ROOT / folder).rglob("*.py")
            if "__pycache__" not in path.parts
        }
        assert expected <= names


def test_every_module_is_installed(python: Path, tmp_path: Path) -> None:
    code = "import askline, pathlib; print(pathlib.Path(askline.__file__).parent)"
    installed = Path(run(python, "-c", code, cwd=tmp_path).stdout.strip())
    assert installed.is_relative_to(python.parent.parent)
    for path in (ROOT / "askline").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (installed / path.relative_to(ROOT / "askline")).is_file()


def test_askline_command_answers(python: Path, tmp_path: Path) -> None:
    askline = python.with_name("askline")
    assert run(askline, "--help", cwd=tmp_path).stdout.startswith("Usage: askline ")
    demo = run(askline, "demo", cwd=tmp_path)
    assert demo.returncode == 0
    assert re.fullmatch(r"\d answers? in .* sentences(, after .* s to load)?\n", demo.stderr)
    assert "It measures 9,289 kilometres." in demo.stdout
    (tmp_path / "lines.txt").write_text("Emma is a novel.\nJane Austen wrote Emma.\n", "utf-8")
    ranked = run(askline, "rank", "Who wrote Emma?", "lines.txt", "--top", "1", cwd=tmp_path)
    assert ranked.stdout.endswith("Jane Austen wrote Emma.\n")


def test_python_api_ranks(python: Path, tmp_path: Path) -> None:
    code = (
        "import askline; ranker = askline.load(); "
        "print(ranker.rank('Who wrote Emma?', ['It is a novel.', 'Austen wrote it.'])[0].index)"
    )
    done = run(python, "-c", code, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a reader of the first page has: the tracked files in a folder of their own."""
    folder = tmp_path_factory.mktemp("clone") / "ask line"  # a path with a space
    tracked = run("git", "ls-files", "-z", cwd=ROOT)
    if tracked.returncode:
        pytest.skip("not a clone of the repository")
    for name in filter(None, tracked.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("source", ["wheel", "sdist", "index", "clone", "editable"])
def test_a_missing_extra_names_a_command_that_works(
    source: str, bare: Path, distributions: Path, clone: Path, tmp_path: Path
) -> None:
    """However askline was installed. The last command is run, the others are resolved."""
    [wheel], [sdist] = distributions.glob("*.whl"), distributions.glob("*.tar.gz")
    arguments: dict[str, tuple[str | Path, ...]] = {
        "wheel": (wheel,),
        "sdist": (sdist,),
        "index": ("--find-links", distributions, "--no-index", "askline"),
        "clone": (clone,),
        "editable": ("--editable", clone),
    }
    pip = (bare, "-m", "pip", "install")
    installed = run(*pip, "--no-deps", "--force-reinstall", *arguments[source], cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    refused = run(bare.with_name("askline"), "serve", cwd=tmp_path)
    assert refused.returncode == 2, refused.stderr
    command = shlex.split(refused.stderr.partition("Run: ")[2])
    assert command[:4] == [str(part) for part in pip]
    assert (f"{clone}[serve]" in command) == (source in {"clone", "editable"}), command
    assert ("--editable" in command) == (source == "editable")
    if source == "editable":
        done = run(*command, cwd=tmp_path)
        imported = run(bare, "-c", "import askline.serving.app", cwd=tmp_path)
        assert (done.returncode, imported.returncode) == (0, 0), done.stderr + imported.stderr
    else:
        found = run(*command, "--dry-run", cwd=tmp_path)
        assert re.search(r"Would install .*fastapi-", found.stdout), found.stderr


@pytest.fixture(scope="module")
def bare(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The python of an environment with the dependencies of askline and without askline."""
    return _environment_with_dependencies(tmp_path_factory.mktemp("bare") / "env", python)


def _environment_with_dependencies(folder: Path, python: Path) -> Path:
    """A new environment that finds the dependencies of askline in another one, to save time."""
    venv.create(folder, with_pip=True)
    own = folder / python.relative_to(python.parent.parent)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = [Path(run(each, "-c", code, cwd=folder).stdout.strip()) for each in (own, python)]
    dependencies = folder / "dependencies"
    dependencies.mkdir()
    for path in packages[1].iterdir():
        if not path.name.startswith(("askline", "pip", "setuptools")):
            (dependencies / path.name).symlink_to(path)
    (packages[0] / "dependencies.pth").write_text(f"{dependencies}\n", "utf-8")
    return own
