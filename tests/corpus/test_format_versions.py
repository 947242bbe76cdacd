"""
What an index holds depends on how files are read, split and put into words.

A change there must come with a new number, or indexes that were written before it are kept as they
are. So the numbers stand here beside a digest of what they stand for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from askline.corpus.bm25 import Stemmer
from askline.corpus.document_records import (
    READER_VERSION,
    NewDocument,
    StartedFile,
    start_reading,
)
from askline.corpus.passages import split_passages
from askline.corpus.schema import DocumentRecord, SentenceRecord
from askline.corpus.search_index import FORMAT
from askline.text.readers import ReaderPool
from askline.text.words import split_identifiers

from ..text.readers.samples import lines, make_docx, make_pdf
from .conftest import write

EXPECTED_READER = ("21", "2bc342d65859114b")
EXPECTED_FORMAT = (3, "bc22eb7025de7a28")

PAGES: dict[str, str] = {
    "prose.txt": (
        "Dr. J. R. Hale paid $3.50 at 9 a.m. on Jan. 5th. “Was it much?” he asked. She said no!\n"
        "He went to the U.S. Then he came back, i.e. he flew … and slept.\n\n"
        "A line that was wrapped\nby hand goes on here\nand ends.\n\n"
        "1. First point\n2. Second point. With more.\n- a dash (see p. 4)\n* a star\n\n"
        "TITLE IN CAPITALS\n=================\n\nName    Age\nAnn     41\nBob     7\n\n"
        "    code = line.split('. ')\n    print(code)\n\nEnd without a stop"
    ),
    "prose_fr.txt": (
        "M. Dupont est né le 3 janv. 1901. « C'est vrai ? » dit-il. Mme Roy répondit : non.\n"
        "L'art. 5, al. 2 s'applique. Il coûte 3,50 €. Etc. Puis rien.\n"
    ),
    "page.md": (
        "---\ntitle: Lamps\n---\n# Lamps & *light*\n\n"
        "A **bold** [link](http://a.b/c). Next `x. y`.\n\n"
        "## Tables\n\n| a | b |\n|---|---|\n| One. Two. | three |\n\n> Quoted. Twice.\n\n"
        "```python\nx = 1\n\ny = 2\n```\n\n1. One\n   more\n2. Two\n\n"
        "Set\n---\n\n<b>raw</b> &amp; done.\n"
    ),
    "page.html": (
        "<html><head><title>The lamp</title><script>var a = 'No. Yes.';</script></head><body>"
        "<h1>Lamp</h1><p>It was&nbsp;lit <i>late</i>. Then&#33;</p><ul><li>One<li>Two</ul>"
        "<table><tr><td>Cell. Two.</td><td>3</td></tr></table><pre>a\n\nb</pre>Tail<br>end</body>"
    ),
    "rows.csv": 'id,title,text\n1,One,"He said ""no"". Then\nleft."\n,,Two. Three.\n\n3,A,Four.\n',
    "table.csv": ',name,age\n0,Ann,41\n1,"Bob ""B""",\n',
    "rows.jsonl": '{"id": 7, "title": "A", "text": "\\u00c9t\\u00e9. Fin."}\n{"body": "Two."}\n',
}


DATA_PAGES: dict[str, str] = {
    "page.json": '{"name": "Lamp", "text": "One. Two.", "fuel": {"kind": "oil"}, "age": 3,'
    '"keepers": [{"name": "Ann", "age": 41, "since": "2001"}, {"age": 7, "note": "A. B."}]}',
    "page.yaml": "# A comment of it.\nlamp:\n  fuel: oil\n  text: |\n    One.\n    Two.\n",
    "page.toml": "# A comment of it.\n[lamp]\nfuel = 'oil'\n",
    "page.xml": "<a><title>Lamp</title><p>One <b>two</b>. Three.</p><port>80</port></a>",
    "page.rtf": r"{\rtf1\pard\outlinelevel0 Lamp\par\pard One caf\'e9. Two.\par}",
    "page.eml": "From: Ann <a@b.c>\nSubject: Lamp\n\nHi Bob,\n\nOne. Two.\n\n> old\n\nAnn\n",
    "system.xml": "<system><name>Sun</name><mass>1</mass></system>",
    "page.log": "10:00 INFO lit. Again.\n10:01 WARN fog\n  at a.c\n",
    "page.py": '"""The lamp. Old."""\nclass A:\n    # A comment of it.\n    x = 1\n',
    "page.js": "/** Lights it. */\nfunction light() {} // at dusk\n",
}


def _rows(tmp_path: Path) -> Iterator[DocumentRecord]:
    for name, text in {**PAGES, **DATA_PAGES}.items():
        write(tmp_path / name, text)
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in ("One. Two.", "Three"))
    write(tmp_path / "page.docx", make_docx(body))
    write(tmp_path / "page.pdf", make_pdf([lines("A line that", "goes on. Next."), lines("Two.")]))
    with ReaderPool() as pool:
        for path in sorted(tmp_path.iterdir()):
            started = start_reading(path, path.name, None, pool)
            assert isinstance(started, StartedFile), started
            found = started.finish()
            assert isinstance(found, NewDocument), found
            yield found.record


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def test_the_reader_version_changes_with_the_readers(tmp_path: Path) -> None:
    seen = [
        (row.name, row.title, row.unit, row.kind, row.encoding, *row.sentences, *row.rows)
        for row in _rows(tmp_path)
    ]
    assert (READER_VERSION, _digest(seen)) == EXPECTED_READER, (
        "Files are read or split differently: raise READER_VERSION in "
        "askline/corpus/document_records.py, and update it here with the new digest."
    )


def test_the_search_index_format_changes_with_its_content() -> None:
    stems = Stemmer()
    seen = []
    for text in PAGES.values():
        result = [line for line in (text * 3).splitlines() if line]
        rows = [
            SentenceRecord(at, 0, 0, 1, 0, f"Part {at // 15}", line)
            for at, line in enumerate(result)
        ]
        seen += [
            (*found, split_identifiers(found.text), stems.terms(found.text))
            for found in split_passages(rows)
        ]
    assert (FORMAT, _digest(seen)) == EXPECTED_FORMAT, (
        "Passages or words have changed: raise FORMAT in "
        "askline/corpus/search_index.py, and update it here with the new digest."
    )
