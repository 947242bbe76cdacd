"""
Read PDF with PDFium: pages in reading order, lines joined into paragraphs.

A PDF holds positioned glyphs, not paragraphs, so paragraphs and headings are found from the
positions and sizes of the lines. Running heads, page numbers, the raised numbers of notes, and
tables of contents with dot leaders are dropped. A word that was hyphenated at the end of a line is
joined again: the hyphen is removed between lowercase letters, unless the document writes the word
with a hyphen elsewhere and never without. A paragraph continues over a page break if the next page
starts with a lowercase letter.

PDFium must not be used from several threads at once.
"""

from __future__ import annotations

import ctypes
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

from .document import Blocks, Content, UnreadableError
from .kinds import BlockKind

__all__ = [
    "read_pdf",
]

_HEADING_SIZE = 1.15  # times the type size of the body text
_MOST_LEVELS = 6  # of headings; smaller type counts as the last level
_MAX_HEADING_CHARACTERS = 200  # longer text in large type is a lead paragraph
_SIZE_TOLERANCE = 0.12  # lines whose type sizes differ by more are in different paragraphs
_WIDE_STEP = 1.3  # times the usual distance between lines
_WIDE_HEADING_STEP = 1.7  # times the type size, between two lines of a heading
_RAISED_SIZE = 0.8  # times the type size of the rest of the line: the number of a note
_SHORT_LINE = 0.75  # times the width of the column
_MIN_RUNNING_HEAD_PAGES = 3  # pages that share a line at their edge, compared without digits
_EDGE_LINES = 3  # of a page, at the top and at the bottom, that may be running heads
_RUNNING_HEAD_SHARE = 0.6  # of the pages that have a running head at the same height
_LEADERS = re.compile(r"(?:[.·…][ \t]?){4,}[\s\d,ivxlc–-]*\Z|(?:\.[ \t]){5,}")
_MIN_LEADER_DOTS = 4
_MIN_CONTENTS_LINES = 5
_CONTENTS_SHARE = 0.3  # of the lines of a page that have dot leaders
_NUMBERED_SHARE = 0.6  # of the lines of a page that end with a page number
_PAGE_NUMBER = re.compile(r"[^\W\d_]\S*[ \t]+(?P<page>\d{1,4})[ \t]*\Z")
_CODE_LINE = re.compile(
    r"""[ \t]*(?:"[\w$\[\]-]{1,60}":[ \t]|//[ \t]|[\]})]{1,3}[,;]?\Z)|.*[{}();,\]?*]\Z"""
)
"""A line of JSON or of a program, in a paragraph that starts like one."""
_CODE_START = re.compile(r"""[ \t]*(?:"[\w$\[\]-]{1,60}":[ \t]|//[ \t]|[{}\]]|\w+[ \w]*\{\Z)""")
_CONTINUATION_MARKS = (",", "-", "–", "—", "(", "/", "&")
_SENTENCE_ENDS = (".", "!", "?", ":", "…", "»", "”", '"')
_HYPHENATION = "\ufffe"  # PDFium's mark for a hyphen at a line end; the next line follows directly
# A word is read from its start only, so that a long word is not read again from each letter.
_HYPHENATED_WORD = re.compile(rf"(?:(?<!\w)(\w+))?{_HYPHENATION}\s*(\w*)")
_NOTE_NUMBER_AHEAD = re.compile(r"\d{1,3}[ \t]*(?=\D)")
_NOTE_NUMBER_BEHIND = re.compile(r"(?<=[^\s\d])[ \t]*\d{1,3}\Z")
_SECTION_NUMBER = re.compile(r"(?:\d{1,3}\.)+\d{0,3}\s|(?:Chapter|Part|Appendix)\s")
_FIXED_WIDTH_FONT = re.compile(
    rb"mono|courier|typewriter|consol|menlo|inconsolata|cmtt|sftt|fixed|source ?code", re.IGNORECASE
)
_FONT_NAME_BYTES = 100
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), 127], " ")


class _Box(NamedTuple):
    """
    The position of a line in PDF points, from its first and its last character.

    A hyphenated word makes two lines one: then the first and the last bottom differ.
    """

    left: float
    top: float
    bottom: float
    right: float
    last_bottom: float
    size: float
    """Of the type: the larger of the two, because the number of a note is small."""


class _Line(NamedTuple):
    """The text of a line, and its position if that is known."""

    text: str
    box: _Box | None = None
    is_fixed_width: bool = False
    """Whether its first and its last character are set in a typewriter font."""

    @property
    def size(self) -> float:
        """The type size, or 0 if it is not known."""
        return self.box.size if self.box else 0.0


class _Paragraph(NamedTuple):
    text: str
    kind: BlockKind
    size: float
    """Of the type, to half a point."""


def read_pdf(data: bytes) -> Content:
    """Text, blocks and title. Places are pages."""
    import pypdfium2 as pdfium  # imported here because loading it takes longer than most files

    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if error.err_code == pdfium.raw.FPDF_ERR_PASSWORD:
            raise UnreadableError(
                "The PDF is encrypted. Save it without a password.", reason="password"
            ) from error
        raise UnreadableError(
            "It is not a PDF file, or it is damaged or truncated. Get it again."
        ) from error
    try:
        pages = [
            _read_lines(document, number, pdfium.PdfiumError) for number in range(len(document))
        ]
        title = " ".join(document.get_metadata_value("Title").split())
    finally:
        document.close()
    if not any(pages):
        count = f"{len(pages):,} pages" if len(pages) != 1 else "one page"
        raise UnreadableError(
            f"The PDF has no text in its {count}, so it is probably a scan. "
            "Run text recognition (OCR) on it first.",
            reason="scan",
        )
    return _content(pages, title)


def _read_lines(document: Any, number: int, error: type[Exception]) -> list[_Line]:
    """The lines of a page; a damaged page has none."""
    try:
        page = document[number]
        text_page = page.get_textpage()
    except error:
        return []
    try:
        text = text_page.get_text_range()
        # They differ if a page has characters beyond 16 bits: then boxes cannot be looked up.
        has_boxes = len(text) == text_page.count_chars()
        lines = []
        glyphs = _Glyphs(text_page)
        start = 0
        for raw in text.split("\r\n"):
            if raw.strip():
                if has_boxes:
                    lines.append(glyphs.line(raw, start))
                else:
                    lines.append(_Line(raw.translate(_CONTROLS).strip()))
            start += len(raw) + 2
        return lines
    finally:
        text_page.close()
        page.close()


class _Glyphs:
    """The positions and fonts of the characters of a page, read without a copy per character."""

    def __init__(self, text_page: Any) -> None:
        from pypdfium2 import raw

        self._page = text_page
        self._get_box = raw.FPDFText_GetLooseCharBox
        self._rectangle = raw.FS_RECTF()
        self._get_font = raw.FPDFText_GetFontInfo
        self._font_name = ctypes.create_string_buffer(_FONT_NAME_BYTES)
        self._font_flags = ctypes.c_int()
        self._fixed_fonts: dict[tuple[bytes, int], bool] = {}

    def line(self, raw: str, start: int) -> _Line:
        """The line with the text `raw` whose first character has the number `start`."""
        text = raw.translate(_CONTROLS).strip()
        first = start + len(raw) - len(raw.lstrip())
        last = start + len(raw.rstrip()) - 1
        box = self._rectangle
        self._get_box(self._page, first, box)
        left, top, bottom = box.left, box.top, box.bottom
        self._get_box(self._page, last, box)
        size, last_size = top - bottom, box.top - box.bottom
        if 0 < last_size < size * _RAISED_SIZE:
            text = _NOTE_NUMBER_BEHIND.sub("", text)
        elif 0 < size < last_size * _RAISED_SIZE and (number := _NOTE_NUMBER_AHEAD.match(text)):
            text = text[number.end() :]
        position = _Box(left, top, bottom, box.right, box.bottom, max(size, last_size))
        return _Line(text, position, self._is_fixed(first) and self._is_fixed(last))

    def _is_fixed(self, at: int) -> bool:
        """Whether a character is in a typewriter font, by the name or the flags of the font."""
        self._get_font(self._page, at, self._font_name, _FONT_NAME_BYTES, self._font_flags)
        key = self._font_name.value, self._font_flags.value
        if key not in self._fixed_fonts:
            self._fixed_fonts[key] = bool(key[1] & 1 or _FIXED_WIDTH_FONT.search(key[0]))
        return self._fixed_fonts[key]


def _content(pages: Sequence[list[_Line]], title: str) -> Content:
    pieces: list[str] = []
    blocks = Blocks()
    starts = array("I")
    length = 0
    open_start = -1  # start of a paragraph that may continue on the next page
    words = _count_words(pages)
    paragraphs = list(_find_paragraphs(_drop_contents(_drop_running_heads(pages))))
    sizes = {found.size for page in paragraphs for found in page if found.kind == "heading"}
    levels = {size: level for level, size in enumerate(sorted(sizes, reverse=True), 1)}
    for page in paragraphs:
        starts.append(length)
        for number, paragraph in enumerate(page):
            text = paragraph.text
            if _HYPHENATION in text:
                text = _HYPHENATED_WORD.sub(lambda match: _join_word(match, words), text)
            continues = not number and open_start >= 0 and text[:1].islower()
            if open_start >= 0 and not continues:
                blocks.add(open_start, length - 1, "text")
            start = open_start if continues else length
            pieces += (text, "\n")
            length += len(text) + 1
            open_start = -1
            if number == len(page) - 1 and _may_continue(paragraph, text):
                open_start = start
            else:
                level = levels[paragraph.size] if paragraph.kind == "heading" else 0
                blocks.add(start, length - 1, paragraph.kind, min(level, _MOST_LEVELS))
    if open_start >= 0:
        blocks.add(open_start, length - 1, "text")
    return Content("".join(pieces), blocks, "page", starts, title)


def _drop_contents(pages: Sequence[Sequence[_Line]]) -> list[list[_Line]]:
    """
    The pages without the entries of tables of contents and indexes, which have dot leaders.

    A page on which many lines have them is left out as a whole: other entries have none. So is a
    page on which most lines end with a page number.
    """
    cleaned = []
    for page in pages:
        kept = [line for line in page if not _has_leaders(line.text)]
        leaders = len(page) - len(kept)
        is_contents = leaders >= _MIN_CONTENTS_LINES and leaders > len(page) * _CONTENTS_SHARE
        is_contents = is_contents or _has_page_numbers(kept, len(pages))
        cleaned.append([] if is_contents else kept)
    return cleaned


def _has_page_numbers(lines: Sequence[_Line], pages: int) -> bool:
    """Whether most lines end with the number of a page, and the numbers do not decrease."""
    ends = [line.text for line in lines if line.text.rstrip()[-1:].isdigit()]
    if len(ends) <= len(lines) * _NUMBERED_SHARE:
        return False
    found = [number for text in ends if (number := _PAGE_NUMBER.search(text))]
    if len(found) < _MIN_CONTENTS_LINES or len(found) <= len(lines) * _NUMBERED_SHARE:
        return False
    numbers = [int(number["page"]) for number in found]
    return numbers == sorted(numbers) and len(set(numbers)) > 1 and numbers[-1] <= pages


def _has_leaders(text: str) -> bool:
    dots = text.count(".") + text.count("·") + text.count("…")
    return dots >= _MIN_LEADER_DOTS and bool(_LEADERS.search(text))


def _drop_running_heads(pages: Sequence[Sequence[_Line]]) -> list[list[_Line]]:
    """
    The pages without lines at their edges that several pages share, and without page numbers.

    Where most pages have such a line, any other line at the same height is one too: the running
    head of a short chapter is on few pages.
    """
    body_size = _body_size(pages)
    edges = Counter(
        key
        for page in pages
        for key in {_without_digits(line) for line in (*page[:_EDGE_LINES], *page[-_EDGE_LINES:])}
    )

    def is_shared(line: _Line) -> bool:
        small = line.size <= body_size * _HEADING_SIZE
        return small and edges[_without_digits(line)] >= _MIN_RUNNING_HEAD_PAGES

    heights: Counter[int] = Counter()  # of the lines above that are shared
    for page in pages:
        top, bottom = page[:_EDGE_LINES], page[: -_EDGE_LINES - 1 : -1]
        heights.update({_height(line) for line in takewhile(is_shared, top)})
        heights.update({-_height(line) for line in takewhile(is_shared, bottom)})

    def is_running_head(line: _Line, sign: int) -> bool:
        if is_shared(line):
            return True
        return (
            len(pages) >= _MIN_RUNNING_HEAD_PAGES
            and 0 < line.size <= body_size * _HEADING_SIZE
            and heights[sign * _height(line)] > len(pages) * _RUNNING_HEAD_SHARE
        )

    cleaned = []
    for page in pages:
        first, last = 0, len(page)
        while first < min(last, _EDGE_LINES) and is_running_head(page[first], 1):
            first += 1
        while last > max(first, len(page) - _EDGE_LINES) and is_running_head(page[last - 1], -1):
            last -= 1
        cleaned.append(list(page[first:last]))
    return cleaned


def _height(line: _Line) -> int:
    """The height of a line on the page, in steps of two points; 0 if it is not known."""
    return round(line.box.bottom / 2) if line.box else 0


def _without_digits(line: _Line) -> str:
    return re.sub(r"\d+|\b[ivxlc]+\b", "#", line.text)


def _body_size(pages: Sequence[Sequence[_Line]]) -> float:
    """The type size of most characters."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    return max(sizes, key=lambda size: sizes[size], default=0.0)


def _find_paragraphs(pages: Sequence[Sequence[_Line]]) -> Iterator[list[_Paragraph]]:
    """
    The paragraphs of each page, in order.

    Lines in a typewriter font are code, unless most of the document is set in it.
    """
    body_size = _body_size(pages)
    fixed = sum(len(line.text) for page in pages for line in page if line.is_fixed_width)
    code_allowed = 2 * fixed < sum(len(line.text) for page in pages for line in page)
    for page in pages:
        found: list[_Paragraph] = []
        for column in _columns(page):
            for lines in _split_column(column, body_size):
                found.append(_paragraph(lines, body_size, code_allowed))
        yield found


def _columns(page: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Runs of lines that go down the page: a line further up starts the next column."""
    column: list[_Line] = []
    for line in page:
        if column and column[-1].box and line.box and line.box.bottom > column[-1].box.top:
            yield column
            column = []
        column.append(line)
    if column:
        yield column


def _split_column(column: list[_Line], body_size: float) -> Iterator[list[_Line]]:
    """
    The paragraphs of a column; one only if the position of a line is not known.

    The lines of a long heading are further apart than those of the text.
    """
    boxes = [line.box for line in column if line.box]
    if len(boxes) < len(column):
        yield column
        return
    steps = [above.last_bottom - below.bottom for above, below in pairwise(boxes)]
    same_size_steps = sorted(
        step
        for step, (above, below) in zip(steps, pairwise(column), strict=True)
        if not _sizes_differ(above, below)
    )
    # The first quartile, because the gaps between paragraphs are among the larger steps.
    usual = same_size_steps[len(same_size_steps) // 4] if same_size_steps else 0.0
    left, right = min(box.left for box in boxes), max(box.right for box in boxes)
    full = left + (right - left) * _SHORT_LINE
    start = 0
    for at, step in enumerate(steps, 1):
        above, below = column[at - 1], column[at]
        short = boxes[at - 1].right < full and _looks_finished(above.text, below.text)
        differ = _sizes_differ(above, below) or above.is_fixed_width != below.is_fixed_width
        is_heading = (
            not differ
            and min(above.size, below.size) > body_size * _HEADING_SIZE
            and step <= above.size * _WIDE_HEADING_STEP
            and not _SECTION_NUMBER.match(below.text)
        )
        if differ or short or (step > usual * _WIDE_STEP and not is_heading):
            yield column[start:at]
            start = at
    yield column[start:]


def _sizes_differ(above: _Line, below: _Line) -> bool:
    return abs(above.size - below.size) > _SIZE_TOLERANCE * max(above.size, below.size)


def _looks_finished(above: str, below: str) -> bool:
    return not above.endswith(_CONTINUATION_MARKS) and not below[:1].islower()


def _paragraph(lines: Sequence[_Line], body_size: float, code_allowed: bool) -> _Paragraph:
    text = "\n".join(line.text for line in lines)
    large = min(line.size for line in lines) > body_size * _HEADING_SIZE
    is_heading = large and len(text) < _MAX_HEADING_CHARACTERS
    kind: BlockKind = "heading" if is_heading else "text"
    if code_allowed and not is_heading:
        is_code = all(line.is_fixed_width for line in lines) or (
            _CODE_START.match(text) is not None
            and 2 * sum(_CODE_LINE.match(line.text) is not None for line in lines) >= len(lines)
        )
        kind = "code" if is_code else kind
    return _Paragraph(text, kind, round(2 * lines[0].size) / 2)


def _may_continue(paragraph: _Paragraph, text: str) -> bool:
    return paragraph.kind == "text" and not text.endswith(_SENTENCE_ENDS)


def _count_words(pages: Sequence[list[_Line]]) -> Counter[str]:
    """How often each word occurs on one line, with its hyphens."""
    return Counter(
        word.lower()
        for page in pages
        for line in page
        for word in re.findall(r"\w+(?:-\w+)*", line.text)
    )


def _join_word(match: re.Match[str], words: Counter[str]) -> str:
    before, after = match.groups(default="")
    joined, hyphenated = before + after, f"{before}-{after}"
    if not (before[-1:].islower() and after[:1].islower()):
        return hyphenated
    return hyphenated if words[hyphenated.lower()] and not words[joined.lower()] else joined
