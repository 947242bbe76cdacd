from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from askline.corpus import Corpus

from .server_process import Server, make_plugins

PAGES = {
    "lamps/rock.txt": (
        "The rock lies nine miles off the coast. Its first lighthouse was lit in November 1698. "
        "A storm took the tower and its builder five years later.\n\n"
        "A second tower of oak stood for half a century.\n"
    ),
    "lamps/lens": "Augustin Fresnel built the stepped lens in 1822. It threw light twenty miles.",
    "bread": "Dough rises because yeast makes gas.\n\nSalt slows the yeast down.",
}
TEXTS = ["Emma is a novel.", "It sold well.", "Jane Austen wrote Emma in 1815."]
RERANK_BODY = {"query": "Who wrote Emma?", "documents": TEXTS}


@pytest.fixture(scope="session")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder from which workers load the misbehaving rankers."""
    return make_plugins(tmp_path_factory.mktemp("plugins"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, plugins: Path) -> Iterator[Server]:
    """One server for all tests that do not change it: several rankers and an index."""
    folder = tmp_path_factory.mktemp("served") / "index"
    with Corpus.open(folder, ranker=None) as corpus:
        corpus.add_texts(PAGES)
    models = ["--model", "cosinet", "--model", "calibrated", "--model", "failing"]
    with Server("--index", str(folder), *models, "--workers", "1", plugins=plugins) as running:
        yield running


@pytest.fixture(scope="session")
def slow_server(plugins: Path) -> Iterator[Server]:
    """One worker with the ranker `slow`, and a queue of length 2."""
    options = ("--model", "slow", "--workers", "1", "--queue", "2")
    with Server(*options, plugins=plugins) as running:
        yield running
