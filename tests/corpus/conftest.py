from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from askline.corpus import Corpus
from askline.corpus.folder_storage import FolderStorage

PAGES = {
    "lamps/rock.txt": (
        "The rock lies nine miles off the coast. Its first lighthouse was lit in November 1698. "
        "A storm took the tower and its builder five years later.\n"
    ),
    "lamps/lens.md": (
        "# Lenses\n\nEarly lamps were weak.\n\n## The stepped lens\n\n"
        "Augustin Fresnel built it in *1822*. It threw the light twenty miles.\n"
    ),
    "bread.txt": "Dough rises because yeast makes gas.\nSalt slows the yeast down.\n",
}


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder of three hand-written files, old enough for their dates to be trusted."""
    root = tmp_path / "pages"
    for name, text in PAGES.items():
        write(root / name, text)
    return root


def write(path: Path, text: str | bytes, *, age: float = 60.0) -> Path:
    """A file that was last changed `age` seconds ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def storage_of(corpus: Corpus) -> FolderStorage:
    """Where a corpus in a folder or in memory is kept, to look at what is stored."""
    assert isinstance(corpus._storage, FolderStorage)
    return corpus._storage
