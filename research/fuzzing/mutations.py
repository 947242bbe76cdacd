"""
Valid files of every format, made in code, and random mutations of them.

`mutated_files(seed)` gives the same files in every run. Mutations work on bytes (flip, overwrite,
delete, repeat, truncate, splice), on the tokens of a format (insert, repeat thousands of times), on
the members of a zip archive and their XML elements, and on the compressed streams of a PDF.
"""

from __future__ import annotations

import io
import random
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

from askline.text.readers import SUFFIXES
from askline.text.readers.kinds import FileKind
from tests.text.readers.samples import (
    WORD,
    CellValue,
    lines,
    make_docx,
    make_epub,
    make_odf,
    make_pdf,
    make_pptx,
    make_shape,
    make_xlsx,
)

__all__ = [
    "BINARY",
    "KINDS",
    "TOKENS",
    "MutatedFile",
    "make_file",
    "mutated_files",
    "samples",
    "suffix_of",
    "suffixes_of",
]

KINDS: tuple[FileKind, ...] = get_args(FileKind)
PACKED: tuple[FileKind, ...] = ("docx", "pptx", "xlsx", "opendocument", "epub")
BINARY: tuple[FileKind, ...] = ("pdf", *PACKED)
_MAX_BYTES = 2**18  # larger files are cut
_MAX_MEMBER_BYTES = 2**22
_DATE = (2020, 1, 1, 0, 0, 0)
_LONG_REPEATS = (10, 100, 1_000, 30_000)


class MutatedFile(NamedTuple):
    """One file, and the number that makes it again."""

    seed: int
    suffix: str
    kind: FileKind
    data: bytes


_SAMPLES_FOLDER = Path(__file__).parent / "samples"
_SUFFIXES: dict[FileKind, str] = {
    "text": "txt",
    "markdown": "md",
    "asciidoc": "adoc",
    "latex": "tex",
    "notebook": "ipynb",
    "subtitles": "srt",
    "manpage": "man",
    "mail": "eml",
    "opendocument": "odt",
    "settings": "toml",
    "source": "pyw",
}
"""Suffixes that differ from the name of the format."""


def _make_pdfs() -> list[bytes]:
    pages = [lines("A line of text that", "goes on. Next."), lines("Page two.")]
    return [*[make_pdf(pages, title="Book")] * 9, make_pdf([lines("Locked.")], locked=True)]


def _make_docx() -> bytes:
    def paragraph(text: str, style: str = "N") -> str:
        properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>'
        return f"<w:p>{properties}<w:r><w:t>{text}</w:t><w:tab/></w:r></w:p>"

    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("Year", "1931"))
    table = f'<w:tbl><w:tblPr><w:tblLook w:firstRow="1"/></w:tblPr><w:tr>{cells}</w:tr></w:tbl>'
    style = '<w:style w:styleId="H"><w:name w:val="heading 1"/><w:basedOn w:val="N"/></w:style>'
    return make_docx(
        paragraph("Title", "H") + paragraph("Text. More.") + table,
        word_styles=f'<w:styles xmlns:w="{WORD}">{style}</w:styles>',
    )


def _make_pptx() -> bytes:
    slide = make_shape("The lamp", kind="title") + make_shape("It burns oil. It is old.")
    return make_pptx([slide, make_shape("Second.")], notes=[make_shape("Speak slowly.")])


def _make_xlsx() -> bytes:
    styles = '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
    date = '<c r="C2" s="1"><v>45000</v></c>'
    rows: list[list[CellValue]] = [
        ["Name", "Born", "Since"],
        ["Ann", 1980, date],
        ["Bo", 0.5, True],
    ]
    return make_xlsx(
        {"Staff": rows, "FAQ": [["Question", "Answer"], ["Who?", "Ann."]]}, xl_styles=styles
    )


def _make_odf() -> list[bytes]:
    cell = "<table:table-cell><text:p>Ann</text:p></table:table-cell>"
    row = f"<table:table-row>{cell}{cell}</table:table-row>"
    table = f'<table:table table:name="A">{row}</table:table>'
    frame = '<draw:frame presentation:class="title"><text:p>One.</text:p></draw:frame>'
    heading = '<text:h text:outline-level="1">The lamp</text:h>'
    bodies = {
        "text": f"{heading}<text:p>It<text:s/>burns.</text:p>{table}",
        "presentation": f"<draw:page>{frame}</draw:page>",
        "spreadsheet": table,
    }
    return [make_odf(f"<office:{name}>{body}</office:{name}>") for name, body in bodies.items()]


def _make_epub() -> bytes:
    nav = '<nav><a href="one.xhtml">The night</a></nav>'
    return make_epub({"one": "<p>It was dark. The sea rose.</p>", "two": "<h1>Day</h1>x"}, nav=nav)


def suffix_of(kind: FileKind) -> str:
    """The file name suffix of the sample of a format."""
    return _SUFFIXES.get(kind, kind)


@cache
def suffixes_of(kind: FileKind) -> tuple[str, ...]:
    """All file name suffixes of a format: a reader may depend on them."""
    return tuple(suffix.lstrip(".") for suffix, known in SUFFIXES.items() if known == kind)


@cache
def samples(kind: FileKind) -> list[bytes]:
    """Valid files of a format."""
    if kind == "pdf":
        return _make_pdfs()
    made: dict[FileKind, Callable[[], list[bytes]]] = {
        "docx": lambda: [_make_docx()],
        "pptx": lambda: [_make_pptx()],
        "xlsx": lambda: [_make_xlsx()],
        "opendocument": _make_odf,
        "epub": lambda: [_make_epub()],
    }
    if kind in made:
        return [_pack(_members(data), lambda: zipfile.ZIP_DEFLATED) for data in made[kind]()]
    path = _SAMPLES_FOLDER / f"sample.{suffix_of(kind)}"
    if not path.exists():
        raise FileNotFoundError(f"The format {kind!r} has no sample. Write one: {path}")
    return [path.read_bytes()]


_WHITE_SPACE = str.maketrans("·¶␍", " \n\r")


def _read_tokens() -> dict[FileKind, list[str]]:
    """The tokens in `tokens.txt`, and white space and a letter for every format."""
    rows = {}
    for line in Path(__file__).with_name("tokens.txt").read_text("utf-8").splitlines():
        name, _, tokens = line.partition(":")
        rows[name] = [token.translate(_WHITE_SPACE) for token in tokens.split()]
    if missing := [kind for kind in KINDS if not rows.get(kind)]:
        raise ValueError(f"Formats without a line in tokens.txt: {', '.join(missing)}. Add it.")
    return {kind: [" ", "\n", "\t", "a", *rows[kind]] for kind in KINDS}


TOKENS = _read_tokens()
"""Tokens that have a meaning in each format."""


def mutated_files(first_seed: int) -> Iterator[MutatedFile]:
    """Files without end, the formats in turn; file `n` depends on `first_seed + n` only."""
    seed = first_seed
    while True:
        kind = KINDS[seed % len(KINDS)]
        yield make_file(kind, seed)
        seed += 1


def make_file(kind: FileKind, seed: int) -> MutatedFile:
    """The mutated file of a seed."""
    rng = random.Random(seed)
    data = rng.choice(samples(kind))
    if kind not in BINARY:
        data = data.decode().encode(rng.choice(_ENCODINGS), "replace")
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        data = rng.choice(_mutations(kind))(data, kind, rng)[:_MAX_BYTES]
    own, others = suffix_of(kind), suffixes_of(kind)
    return MutatedFile(seed, rng.choice((own, rng.choice(others))), kind, data)


Mutation = Callable[[bytes, FileKind, random.Random], bytes]
_ENCODINGS = ("utf-8",) * 12 + ("utf-16", "utf-8-sig", "cp1252", "shift_jis", "utf-32")


def _mutations(kind: FileKind) -> list[Mutation]:
    found = [_flip, _overwrite, _delete, _repeat, _truncate, _splice, _insert, _grow]
    if kind in PACKED:  # what changes the bytes of an archive, most often only damages it
        return [*found, *[_mutate_member] * 120]
    if kind == "pdf":
        return [*found, *[_mutate_stream] * 4, *[_mutate_number] * 4]
    if kind in ("xml", "html"):
        found += [_mutate_xml] * 4
    return [*found, _insert, _insert, _grow]


def _cut(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    return start, min(len(data), start + int(rng.expovariate(1 / 20)) + 1)


def _flip(data: bytes, _: FileKind, rng: random.Random) -> bytes:
    flipped = bytearray(data)
    for _count in range(rng.randint(1, 8) if data else 0):
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def _overwrite(data: bytes, _: FileKind, rng: random.Random) -> bytes:
    start, end = _cut(data, rng)
    return data[:start] + rng.randbytes(end - start) + data[end:]


def _delete(data: bytes, _: FileKind, rng: random.Random) -> bytes:
    start, end = _cut(data, rng)
    return data[:start] + data[end:]


def _repeat(data: bytes, _: FileKind, rng: random.Random) -> bytes:
    start, end = _cut(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 2, 50, 2_000)) + data[end:]


def _truncate(data: bytes, _: FileKind, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _splice(data: bytes, _: FileKind, rng: random.Random) -> bytes:
    other = rng.choice(samples(rng.choice(KINDS)))
    start, end = _cut(other, rng)
    at = rng.randint(0, len(data))
    return data[:at] + other[start : end + 100] + data[at:]


def _insert(data: bytes, kind: FileKind, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 6)):
        at = rng.randint(0, len(data))
        data = data[:at] + rng.choice(TOKENS[kind]).encode() + data[at:]
    return data


def _grow(data: bytes, kind: FileKind, rng: random.Random) -> bytes:
    unit = "".join(rng.choices(TOKENS[kind], k=rng.choice((1, 1, 2, 3)))).encode()
    at = rng.randint(0, len(data))
    return data[:at] + unit * rng.choice(_LONG_REPEATS) + data[at:]


def _mutate_number(data: bytes, _: FileKind, rng: random.Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return data
    found = rng.choice(numbers)
    values = (b"0", b"-1", b"1", b"65536", b"2147483648", b"99999999999999999999", b"0.0000001")
    return data[: found.start()] + rng.choice(values) + data[found.end() :]


def _mutate_stream(data: bytes, kind: FileKind, rng: random.Random) -> bytes:
    """Change the operators of a page and compress them, once or twice."""
    found = re.search(rb"<< /Length (\d+) >>\nstream\n(.*?)\nendstream", data, re.DOTALL)
    if not found:
        return _insert(data, kind, rng)
    content = rng.choice([_flip, _delete, _repeat, _insert, _grow])(found[2], kind, rng)
    filters = rng.choice((0, 1, 1, 2))
    for _ in range(filters):
        content = zlib.compress(content)
    header = b"<< /Length %d /Filter [%b] >>" % (len(content), b"/FlateDecode " * filters)
    body = b"%b\nstream\n%b\nendstream" % (header, content)
    return data[: found.start()] + body + data[found.end() :]


_TAG = re.compile(rb"<([\w:]+)(?:\s[^<>]*)?>")
_VALUE = re.compile(rb'(?<==")[^"<]*(?=")|(?<=>)[^<>]+(?=<)')
_ODD_VALUES = (
    *(b"", b" ", b"0", b"-1", b"1", b"65536", b"1048577", b"2147483648", b"1e999", b"NaN", b"A1"),
    *(b"ZZZZ99999999", b"rId1", b"../../a", b"/", b"a#b", b"&#x10FFFF;", b"A. B. C.", b"a " * 5000),
)


def _element(data: bytes, rng: random.Random) -> tuple[int, int]:
    """Start and end of a random XML element, up to its first end tag; nothing if there is none."""
    tags = list(_TAG.finditer(data))
    if not tags:
        return 0, 0
    tag = rng.choice(tags)
    if tag[0].endswith(b"/>"):
        return tag.span()
    end = b"</%b>" % tag[1]
    at = data.find(end, tag.end())
    return (tag.start(), at + len(end)) if at >= 0 else (0, 0)


def _mutate_xml(data: bytes, kind: FileKind, rng: random.Random) -> bytes:
    """Repeat, nest, move or drop an element, or change a value; most results are well-formed."""
    start, end = _element(data, rng)
    element, how = data[start:end], rng.choice(("repeat", "nest", "move", "drop", "value", "value"))
    if how == "value" or not element:
        values = list(_VALUE.finditer(data))
        if not values:
            return _insert(data, kind, rng)
        found = rng.choice(values)
        return data[: found.start()] + rng.choice(_ODD_VALUES) + data[found.end() :]
    if how == "repeat":
        return data[:end] + element * rng.choice((1, 2, 50, 2_000)) + data[end:]
    if how == "drop":
        return data[:start] + data[end:]
    if how == "nest":
        depth, name = rng.choice((1, 10, 300, 5_000)), re.match(rb"<([\w:]+)", element)
        assert name is not None
        opened, closed = b"<%b>" % name[1], b"</%b>" % name[1]
        return data[:start] + opened * depth + element + closed * depth + data[end:]
    at, _ = _element(data, rng)
    return data[:at] + element + data[at:]


_MEMBER_MUTATIONS = (
    *(_flip, _overwrite, _delete, _repeat, _truncate, _insert, _grow),
    *([_mutate_xml] * 21),
)


def _mutate_member(data: bytes, kind: FileKind, rng: random.Random) -> bytes:
    """Change one member of a zip archive, or its name, and pack the archive again."""
    try:
        members = _members(data)
    except Exception:  # an earlier mutation has damaged the archive
        return _flip(data, kind, rng)
    if members:
        at = rng.randrange(len(members))
        name, content = members[at]
        content = rng.choice(_MEMBER_MUTATIONS)(content, kind, rng)[:_MAX_MEMBER_BYTES]
        other = rng.choice(members)[0]
        name = rng.choice((name,) * 40 + (other, "word/footnotes.xml", "../a", name + "/", "a"))
        members[at] = name, content
    method = rng.choice((0, *[8] * 17, 12, 14))
    return _pack(members, lambda: method)


def _members(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def _pack(members: Iterable[tuple[str, bytes]], compression: Callable[[], int]) -> bytes:
    """A zip archive with a fixed date, so that a seed makes the same file at any time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members:
            if name not in archive.namelist():
                entry = zipfile.ZipInfo(name, _DATE)
                archive.writestr(entry, content, compression())
    return packed.getvalue()
