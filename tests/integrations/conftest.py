"""
What the tests of all integrations share.

They run by `make test-integrations`, each in an environment with the packages of its integration.
A package that is missing there is an error; no test is skipped for it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from askline import Corpus
from tests.docs.blocks import PageSession, blocks_of, free_port

QUESTION = "Who wrote Emma?"
TEXTS = [
    "Emma is a novel about a young woman.",
    "It sold well.",
    "Jane Austen wrote Emma in 1815.",
    "",
    "The novel is set in Highbury.",
]
DOCUMENTS = {
    "emma": "Emma is a novel. Jane Austen wrote Emma in 1815. Emma sold well. Emma is rich.",
    "bridge": "The bridge is long. It opened in 1932.",
}


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of an index with the documents above."""
    folder = tmp_path_factory.mktemp("index")
    with Corpus.open(folder) as corpus:
        corpus.add_texts(DOCUMENTS)
    return str(folder)


@pytest.fixture
def error_without() -> Callable[[str, str], str]:
    """The message of importing a module of askline while a package is missing."""

    def run(package: str, module: str) -> str:
        code = f"import sys; sys.modules[{package!r}] = None\nimport {module}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode
        return done.stderr.strip().splitlines()[-1]

    return run


ROOT = Path(__file__).parents[2]


@pytest.fixture
def run_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Run the code blocks of a section of docs/integrations.md, in a folder with an index."""
    monkeypatch.chdir(tmp_path)
    with Corpus.open("DIR") as corpus:
        corpus.add_texts({"emma.txt": "Emma is a novel. Jane Austen wrote Emma in 1815."})
    session = PageSession(tmp_path, {"8080": str(free_port())})

    def run(heading: str) -> None:
        page = ROOT / "docs" / "integrations.md"
        lines = page.read_text("utf-8").splitlines()
        first = lines.index(f"## {heading}") + 1
        ends = [at for at, line in enumerate(lines) if line.startswith("## ") and at >= first]
        last = min([*ends, len(lines)])
        blocks = [block for block in blocks_of(page) if first < block.line <= last]
        assert blocks
        for block in blocks:
            session.run(block)

    yield run
    session.close()
