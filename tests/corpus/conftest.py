from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from askline.corpus import Corpus
from askline.corpus.document_store import full_checksum
from askline.corpus.storage import FolderStorage
from askline.text.readers.sentence_blocks import unpack_block

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


def store_a_row_per_sentence(store: Path) -> None:
    """Change a store to what versions before the blocks of sentences wrote."""
    with closing(sqlite3.connect(store)) as connection, connection:
        blocks = connection.execute("SELECT id, data FROM sentence_blocks ORDER BY id").fetchall()
        numbers: Counter[int] = Counter()
        headings: dict[tuple[int, str, str, str], int] = {}
        for block_id, data in blocks:
            document, first = block_id >> 32, block_id & 0xFFFFFFFF
            for each in unpack_block(data, first):
                context = document, each.heading, each.path, each.lead_in
                if any(context[1:]) and context not in headings:
                    headings[context] = numbers[document]
                    numbers[document] += 1
                values = *each[:5], headings.get(context), each.text, full_checksum(document, each)
                marks = ", ".join("?" * (1 + len(values)))
                connection.execute(f"INSERT INTO sentences VALUES ({marks})", (document, *values))
        connection.executemany(
            "INSERT INTO headings VALUES (?, ?, ?, ?, ?)",
            ((own[0], number, *own[1:]) for own, number in headings.items()),
        )
        connection.execute("DELETE FROM sentence_blocks")
