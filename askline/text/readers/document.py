"""
The result of reading a file: its text, its blocks, and the way back to the original.

Sentences are found in `ParsedDocument.text`; the original is the decoded file. For all formats that
are text themselves (plain, Markdown, HTML, JSONL, CSV), `ParsedDocument.span` converts offsets in
the text into offsets that slice the original exactly:

    original = path.read_bytes().decode(document.encoding)
    start, end = document.span(sentence.start, sentence.end)
    original[start:end]

If a sentence contains markup, the slice of the original contains it too. `iter_sentences` splits a
document block by block, so that no sentence crosses a heading or a table.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple, get_args

from ...errors import NotReadReason, Problem
from ..sentences import split_sentences
from .kinds import (
    CELL_SEPARATOR,
    QUESTION_LEVEL,
    SENTENCE_KINDS,
    BlockKind,
    FileKind,
    PlaceUnit,
    SentenceKind,
)
from .offsets import Segments

__all__ = [
    "Blocks",
    "Content",
    "DocumentPart",
    "ParsedDocument",
    "Place",
    "SentenceContext",
    "SentenceSpan",
    "Sentences",
    "TextBlock",
    "UnreadableError",
    "iter_sentences",
    "split_document",
]

_BLOCK_KINDS: tuple[BlockKind, ...] = get_args(BlockKind)
_BLOCK_NUMBERS = {kind: number for number, kind in enumerate(_BLOCK_KINDS)}
_KIND_BYTES = {kind: bytes([number]) for number, kind in enumerate(SENTENCE_KINDS)}
_SENTENCE = SENTENCE_KINDS.index("sentence")
_SENTENCE_AND_CODE = _KIND_BYTES["sentence"] + _KIND_BYTES["code"]
_TABLE_KINDS = frozenset(("cell", "row", "table", "columns"))
_MAX_ROW_CHARACTERS = 500
"""The cells of a longer row are split as text: tables are also used for page layout."""
_MAX_CELL_CHARACTERS = 100  # in a row that is split, shorter cells stay together
_BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)")
_CHUNK_CHARACTERS = 2**16  # split at a time, so that memory stays small compared with the text
_MAX_LINE_CHARACTERS = 1000  # of a line of a log that is one unit
_CODE_CHARACTERS = 1000  # a longer code block is cut at the next blank line
_CONNECTIVE = re.compile(
    r"\W*(?:and|or|then|to|with|by|und|oder|et|ou)\W*|[:;=]['-]?[DPpOoSs]|\W*\d{1,3}\W*",
    re.IGNORECASE,
)
"""One such word between two examples of code, an emoticon, or the number of a note or a page."""
_CONNECTIVE_CHARACTERS = 12
_CONTINUES = re.compile(
    r"(?:and|are|as|because|but|can|causes|could|except|failed|finds|followed|from|gives|has"
    r"|have|in|into|is|lists|may|means|might|must|on|or|prints|produces|results?|returns?|sets"
    r"|shall|should|shows|so|then|to|was|were|where|which|while|will|with|would|yield(?:s|ing))\b"
)
"""The first word of the rest of a sentence, behind an example of code inside it."""
_GOES_ON = re.compile(r"[a-z]+(?:[.,;)]|\s+(?![=:]))")  # and not `name = value` or `name: value`
_MAX_JOINED_CHARACTERS = 700
_ADDRESS_MARK = re.compile(r"://|@|www\.")
_ADDRESS = re.compile(
    r"""(?: \[[\w*]{1,9}\]:?\s{0,9} | [-*•]\s{1,9} | [Ss]ee:?\s )?
    (?: [<("]?
        (?: (?: [a-z][a-z0-9+.-]{1,9}:// | www\. )[^\s<>"]{1,500} (?:[>"][.,;)]{0,2})?
          | (?:mailto:)?[\w.+-]{1,80}@[\w-]{1,80}\.[\w.-]{1,80} (?:[>)"][.,;]{0,2}|[,;])? )
        (?:\s{1,99}|\Z) ){1,99}""",
    re.VERBOSE,
)
"""Addresses of pages or mailboxes and nothing else, perhaps with the number of a note."""
_STATEMENT = re.compile(
    r"\$ \S.*|.*(?:> ?/dev/null|2>&1)\W*|(?:#include|#define)\s.*"
    r"|(?:SELECT|INSERT|CREATE|UPDATE|DELETE|DROP|ALTER|ATTACH|BEGIN|EXPLAIN|void|int|char|const|struct"
    r"|long|unsigned|static|typedef)\s[^\n]*;"
)
"""A paragraph or a list item that is a command or a statement of SQL or C."""
_MAX_STATEMENT_CHARACTERS = 300
_MAX_VERSE_CHARACTERS = 80  # of a line
_MAX_REFERENCE_CHARACTERS = 60  # of `[issue #12]` behind a sentence
_NUMBER = re.compile(r"\s*[A-Z]?\d{1,4}(?:\.\d{1,4}){0,5}\.?\s*")
"""The number of a row, which says nothing alone."""
_CODE_OR_HEADING = frozenset(_BLOCK_KINDS.index(kind) for kind in ("code", "heading"))
_LETTER = re.compile(r"[^\W_]")
_BULLET = re.compile(r"(?:[-*+•‣▪◦●○■□➢–]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s")
_BULLET_MARKS = frozenset("•‣▪◦●○■□➢[")  # and the bracket around the number of a note
_PLAIN_MARKS = (_BULLET_MARKS - frozenset("[")) | frozenset("-*+·^")
_BULLETS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("text", "mail", "pdf", "source", "yaml"), _PLAIN_MARKS),
    **dict.fromkeys(("html", "epub"), _BULLET_MARKS | frozenset("*")),
    **dict.fromkeys(("pptx", "docx", "opendocument"), _BULLET_MARKS | frozenset("–")),
    **dict.fromkeys(("log", "subtitles", "csv", "jsonl"), frozenset()),
}
"""The marks of items and notes that are no markup, by format; usually _BULLET_MARKS."""
_PLAIN_BULLET = re.compile(
    r"[-*+•‣▪◦●○■□➢·–]\s{1,99}(?=[^\W_]|[\"'“‘(<\[`/$@~.]\S)|\*(?=[A-Z][a-z ][^*\n]{20})"
    r"|\^\[\d{1,3}\]\s{1,9}(?=\w)|\[(?:\d{1,3}|\*)\]\s{1,9}(?=[A-Z][\w’' ])"
)
_DATA_KINDS = frozenset(("jsonl", "csv", "json", "yaml", "settings", "xml", "xlsx", "log"))
_LEAD_IN_ENDS = (":", "：")
_LEAST_LEAD_IN_SPACES = 3  # in a lead-in without a colon
_LONE_NUMBER = re.compile(r"[\d\s^()\[\]]+")  # of a page or a note
_LONE_NUMBER_CHARACTERS = 12
_QUESTION = re.compile(r"Q(?:uestion)?[ \t]?\d{0,3}[:.)][ \t]")
_QUESTION_OR_ANSWER = re.compile(
    r"(?:^[ \t]*|(?<=[.?!])\s+)(?:(?P<question>Q(?:uestion)?)|A(?:nswer)?)[ \t]?\d{0,3}[:.)]\s+",
    re.MULTILINE,
)


class Place(NamedTuple):
    """A line, page, paragraph, slide or other unit of the original, counted from 1."""

    unit: PlaceUnit
    number: int

    def __str__(self) -> str:
        return f"{self.unit} {self.number}"


class TextBlock(NamedTuple):
    """A piece of the text that no sentence crosses."""

    start: int
    end: int
    kind: BlockKind
    level: int = 0
    """Of a heading, 1 for the highest; of a list item, 1 for an item of the outermost list."""


class DocumentPart(NamedTuple):
    """A row of CSV or JSONL or a message of a mailbox. Its text is `text[start:end]`."""

    start: int
    end: int
    id: str
    """The row's own id, or empty."""
    title: str
    row: int
    """
    In CSV counted as in a spreadsheet, where the header is row 1; in JSONL, the line; in a mailbox,
    the message.
    """


class SentenceContext(NamedTuple):
    """What stands above a sentence and belongs to it. Neighboring sentences share one object."""

    heading: str = ""
    """
    The text of the nearest heading above, or the title of the row; empty if there is none.

    In a table with a header, the column names follow after ` · `.
    """
    headings: tuple[str, ...] = ()
    """The path of headings from the highest to the nearest."""
    lead_in: str = ""
    """The sentence with a colon that introduces the list or table; empty if there is none."""


_NO_CONTEXT = SentenceContext()


class SentenceSpan(NamedTuple):
    """A unit of the text: `text[start:end]` is never empty and has no white space at either end."""

    start: int
    end: int
    kind: SentenceKind
    context: SentenceContext

    @property
    def heading(self) -> str:
        """The nearest heading above, with the names of the columns in a table."""
        return self.context.heading

    @property
    def headings(self) -> tuple[str, ...]:
        """The path of headings from the highest to the nearest."""
        return self.context.headings

    @property
    def lead_in(self) -> str:
        """The sentence with a colon that introduces the list or table."""
        return self.context.lead_in


class Blocks:
    """Text blocks in order, ten bytes each, because a file may have one every few characters."""

    def __init__(self) -> None:
        self._bounds = array("I")
        self._kinds = bytearray()
        self._levels = bytearray()

    def add(self, start: int, end: int, kind: BlockKind, level: int = 0) -> None:
        """
        Append a block; an empty one is ignored.

        `level` is that of a heading or a list item, from 1. A heading without a level ends all
        sections above it. A level above 99 counts as 99.
        """
        if end > start:
            self._bounds.extend((start, end))
            self._kinds.append(_BLOCK_NUMBERS[kind])
            self._levels.append(min(level, 99))

    def truncate(self, count: int) -> None:
        """Remove the blocks behind the first `count`."""
        del self._bounds[2 * count :], self._kinds[count:], self._levels[count:]

    def mark_header(self, block: int) -> None:
        """Mark the row that starts with this block (counted from 0) as its table's header."""
        self._kinds[block] = _BLOCK_NUMBERS["columns"]

    def has_prose(self) -> bool:
        """Whether there is a block that is neither code nor a heading."""
        return not _CODE_OR_HEADING.issuperset(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[TextBlock]:
        bounds = iter(self._bounds)
        kinds = map(_BLOCK_KINDS.__getitem__, self._kinds)
        # Faster than the constructor, which is written in Python.
        new_block = partial(tuple.__new__, TextBlock)
        return map(new_block, zip(bounds, bounds, kinds, self._levels, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blocks) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


class Sentences:
    """Sentences in order, in 13 bytes each and one `SentenceContext` for those that share it."""

    def __init__(self) -> None:
        self._bounds = array("I")
        self._kinds = bytearray()
        self._contexts = [SentenceContext()]
        self._context_of = array("I")
        self._extended_to = -1  # the end of the last unit that `extend_last` has changed

    def extend(
        self, bounds: Collection[tuple[int, int]], kind: SentenceKind, context: SentenceContext
    ) -> None:
        """Append sentences, given by their spans, that have the same kind and context."""
        if bounds:
            self._bounds.extend(chain.from_iterable(bounds))
            self._kinds += _KIND_BYTES[kind] * len(bounds)
            if context is not self._contexts[-1]:
                self._contexts.append(context)
            self._context_of.extend([len(self._contexts) - 1] * len(bounds))

    def ends_with_code(self) -> tuple[int, int, int, int] | None:
        """The spans of the last two units if they are a sentence and a code block."""
        if self._kinds[-2:] != _SENTENCE_AND_CODE:
            return None
        start, end, code_start, code_end = self._bounds[-4:]
        return start, end, code_start, code_end

    def extend_last(self, text: str, start: int, end: int) -> bool:
        """
        Add `text[start:end]` to the last sentence if that ends with a colon directly before it.

        It may end with other texts that were added like this. False if it does not.
        """
        if not self._kinds or self._kinds[-1] != _SENTENCE:
            return False
        first, last = self._bounds[-2:]
        is_open = text[last - 1] in _LEAD_IN_ENDS or last == self._extended_to
        if not is_open or end - first > _MAX_JOINED_CHARACTERS or text[last:start].strip():
            return False
        self._bounds[-1] = self._extended_to = end
        return True

    def join(self, first: int, last: int) -> None:
        """Make one sentence of the units from `first` to `last`."""
        bounds = self._bounds
        bounds[2 * first + 1] = bounds[2 * last + 1]
        del bounds[2 * first + 2 : 2 * last + 2]
        del self._kinds[first + 1 : last + 1], self._context_of[first + 1 : last + 1]

    def is_sentence(self, number: int) -> bool:
        """Whether the unit at this position is a sentence of text."""
        return self._kinds[number] == _SENTENCE

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[SentenceSpan]:
        bounds = iter(self._bounds)
        for start, end, kind, context in zip(
            bounds, bounds, self._kinds, self._context_of, strict=True
        ):
            yield SentenceSpan(start, end, SENTENCE_KINDS[kind], self._contexts[context])

    def columns(
        self,
    ) -> tuple[list[int], list[int], Sequence[int], Sequence[SentenceContext], Sequence[int]]:
        """Starts, ends, kinds as positions in SENTENCE_KINDS, contexts, and that of each."""
        starts, ends = self._bounds[0::2].tolist(), self._bounds[1::2].tolist()
        return starts, ends, self._kinds, self._contexts, self._context_of


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The content of a file. It does not refer to the file, which may change or be removed."""

    path: str
    """As given by the caller; `-` is standard input."""
    kind: FileKind
    title: str
    text: str
    sha256: str
    """Of the bytes of the file, in hexadecimal."""
    encoding: str | None
    """The codec that decodes the file into the original; None for PDF, e-mail and zip files."""
    blocks: Blocks
    unit: PlaceUnit
    starts: array[int]
    """Offsets at which lines start in the original, or pages or paragraphs in the text."""
    segments: Segments | None = None
    """Maps the text to the original; None if they are equal, and for PDF, e-mail and zip files."""
    parts: tuple[DocumentPart, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Rows that could not be read, if others could."""

    def place(self, offset: int) -> Place:
        """The line, page or paragraph that contains the character `text[offset]`."""
        at = self.segments.start(offset) if self.segments else offset
        return Place(self.unit, max(bisect_right(self.starts, at), 1))

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The offsets of `text[start:end]` in the original; None for PDF, e-mail and zip files."""
        if self.encoding is None:
            return None
        return self.segments.span(start, end) if self.segments else (start, end)


class UnreadableError(Exception):
    """Why a file cannot be read. `read_document` turns it into a `DataError` with the path."""

    def __init__(self, message: str, *, line: int = 0, reason: NotReadReason = "damaged") -> None:
        super().__init__(message)
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Content:
    """What the reader of one format returns. `read_document` fills in the path of the problems."""

    text: str
    blocks: Blocks
    unit: PlaceUnit
    starts: array[int]
    title: str = ""
    segments: Segments | None = None
    parts: tuple[DocumentPart, ...] = ()
    problems: tuple[Problem, ...] = ()


def iter_sentences(document: ParsedDocument) -> Iterator[SentenceSpan]:
    """
    Every sentence in order, with its kind and its context.

    Spans do not overlap, and each has a letter or a digit. A heading is one sentence, and so is a
    question of a FAQ, which is a heading of the text below it. A short code block is one unit. If a
    document has nothing but code, its code is split like text, because it would have no answers
    otherwise. A row of a table is one sentence, because a single cell has too little context; if a
    cell has several sentences, all cells of its row are split like text.
    """
    return iter(split_document(document))


def split_document(document: ParsedDocument) -> Sentences:
    """What `iter_sentences` returns, in less memory."""
    return _Splitter(document).split()


class _Splitter:
    """Splits the blocks of a document and keeps the context of the current block."""

    def __init__(self, document: ParsedDocument) -> None:
        self._document = document
        self._text = document.text
        self._found = Sentences()
        self._has_prose = document.blocks.has_prose()
        self._has_questions = bool(_QUESTION.search(document.text))
        has_pages = document.kind in ("pdf", "text")
        self._lone_number_characters = _LONE_NUMBER_CHARACTERS if has_pages else 0
        self._has_redirections = "/dev/null" in self._text or "2>&1" in self._text
        self._has_verse = document.kind in ("html", "epub")  # a paragraph per line
        self._is_verse = False  # whether the last block is a line that goes on
        self._has_addresses = document.kind not in _DATA_KINDS and _has_address(self._text)
        self._bullets = _BULLETS.get(document.kind, _BULLET_MARKS)
        self._addresses: set[int] = set()  # the ends of those among the next sentences
        # The headings above, with their levels and the context of the text below them.
        self._path: list[tuple[int, str, SentenceContext]] = []
        self._columns = ""  # names of the columns of the current table
        self._lead_ins: list[tuple[int, str]] = []  # and the levels of the items that they are
        self._introduces_next = False  # whether the last block is a lead-in
        # The open lists in plain text: the mark and column of their items, and their lead-ins.
        self._plain_lists: dict[tuple[str, int], str] = {}
        # Joined once and not per sentence, because a heading can be very long.
        self._context = _NO_CONTEXT
        self._above = self._context  # without columns and lead-in
        self._joined = self._context, "", ""

    def split(self) -> Sentences:
        parts = iter(self._document.parts)
        part = next(parts, None)
        for blocks in _group_rows(self._document.blocks):
            start, end, kind, level = blocks[0]
            while part is not None and start >= part.start:
                self._path.clear()
                columns = self._columns
                self._set_heading(part.title, 0)
                self._columns = columns  # the rows of a spreadsheet are parts of one table
                part = next(parts, None)
            if kind != "row":
                self._columns = ""
            if kind == "heading":
                self._heading(start, end, level or 1)
            elif (kind == "code" and self._has_prose) or (
                kind in ("item", "text") and self._is_statement(start, end)
            ):
                self._update_context(self._lead_in())
                for first, last in _chunks(self._text, start, end, _CODE_CHARACTERS):
                    self._whole(first, last, "code")
                if self._introduces_next and self._lead_ins:
                    self._lead_ins.pop()  # it introduces the code and not a list behind it
                self._introduces_next = False
            elif kind in _TABLE_KINDS:
                self._row(blocks)
            elif self._continues(blocks[0]):
                first = len(self._found) - 2
                self._paragraph(blocks[0])
                if len(self._found) > first + 2:
                    self._found.join(first, first + 2)
            elif self._is_verse and kind == "text" and end - start <= _MAX_VERSE_CHARACTERS:
                first = len(self._found) - 1
                self._paragraph(blocks[0])
                if len(self._found) > first + 1 and self._found.is_sentence(first):
                    self._found.join(first, first + 1)
            else:
                self._paragraph(blocks[0])
            self._is_verse = self._has_verse and self._ends_in_verse(blocks[0])
        return self._found

    def _ends_in_verse(self, block: TextBlock) -> bool:
        """Whether a line goes on in the next: it ends with a comma, or in a verse with a word."""
        start, end, kind, _ = block
        if kind != "text" or end - start > _MAX_VERSE_CHARACTERS:
            return False
        mark = self._text[end - 1]
        if self._is_verse:
            return mark in ",;" or mark.isalnum()
        return mark == "," and self._text.find(":", start, end) < 0

    def _continues(self, block: TextBlock) -> bool:
        """
        Whether a block starts with the rest of a sentence that has an example of code in it.

        A sentence without a mark at its end goes on in the next paragraph with any word in
        lowercase, or with the bracket that closes one in it. Behind a colon, the word must be one
        that does not start a sentence.
        """
        text, start = self._text, block.start
        closes = text[start] == ")"
        if not (closes or text[start].islower()):
            return False
        if not (above := self._found.ends_with_code()):
            return False
        first, end, code, code_end = above
        mark = text[end - 1]
        if closes and text.rfind("(", first, end) > text.rfind(")", first, end):
            return start - first <= _MAX_JOINED_CHARACTERS
        is_open = mark == "," or mark.isalnum()
        is_text = block.kind == "text" and self._document.kind != "source"
        goes_on = _GOES_ON if is_open and is_text else _CONTINUES
        return (
            start - first <= _MAX_JOINED_CHARACTERS
            and (is_open or mark == ":")
            and goes_on.match(text, start) is not None
            and not (text[end:code] + text[code_end:start]).strip()
        )

    def _heading(self, start: int, end: int, level: int) -> None:
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._set_heading("", level)
        mark = _QUESTION.match(self._text, start, end)
        start = mark.end() if mark else start
        self._whole(start, end, "heading")
        if not _LETTER.search(self._text, start, end):
            return
        self._set_heading(" ".join(self._text[start:end].split()), level)

    def _set_heading(self, heading: str, level: int) -> None:
        """Open a section; without a heading, only the sections above remain."""
        above = self._path[-1][2] if self._path else _NO_CONTEXT
        if heading:
            above = SentenceContext(heading, (*above.headings, heading))
            self._path.append((level, heading, above))
        self._above = above
        self._lead_ins.clear()
        self._columns = ""
        self._update_context("")

    def _update_context(self, lead_in: str) -> None:
        joined = self._above, self._columns, lead_in
        if self._joined != joined:
            self._joined = joined
            if not (self._columns or lead_in):
                self._context = self._above
                return
            heading, headings, _ = self._above
            under = " · ".join(filter(None, (heading, self._columns)))
            self._context = SentenceContext(under, headings, lead_in)

    def _row(self, blocks: Sequence[TextBlock]) -> None:
        self._update_context(self._lead_in())
        if not self._is_one_sentence(blocks):
            self._cells(blocks)
            return
        kind: SentenceKind = "columns" if blocks[0].kind == "columns" else "row"
        self._whole(blocks[0].start, blocks[-1].end, kind)
        if kind == "columns":
            self._columns = CELL_SEPARATOR.join(
                " ".join(self._text[block.start : block.end].split()) for block in blocks
            )

    def _is_one_sentence(self, row: Sequence[TextBlock]) -> bool:
        """
        Whether a row is short and has several cells.

        Without the names of columns, it may be layout: then each cell must be one sentence.
        """
        if len(row) < 2 or row[-1].end - row[0].start > _MAX_ROW_CHARACTERS:
            return False
        return bool(self._columns) or all(self._is_short(block) for block in row)

    def _is_short(self, block: TextBlock) -> bool:
        return len(split_sentences(self._text[block.start : block.end])) == 1

    def _cells(self, row: Sequence[TextBlock]) -> None:
        """
        The cells of a long row as sentences.

        In a table with names of columns, the short cells before a long one are one unit, and the
        first cell is the lead-in of the others: it usually is the name of what they describe.
        """
        first = int(len(row) > 1 and bool(_NUMBER.fullmatch(self._text, *row[0][:2])))
        if self._columns:
            while first < len(row) and (
                row[first].end - row[first].start <= _MAX_CELL_CHARACTERS
                and self._is_short(row[first])
            ):
                first += 1
        if first > 1 or (first and not _NUMBER.fullmatch(self._text, *row[0][:2])):
            self._whole(row[0].start, row[first - 1].end, "row" if first > 1 else "cell")
        if first:
            self._update_context(" ".join(self._text[row[0].start : row[0].end].split()))
        for block in row[first:]:
            if self._says_nothing(block):
                continue
            for bounds in self._bounds(block.start, block.end):
                self._found.extend(bounds, "cell", self._context)
        self._addresses.clear()

    def _paragraph(self, block: TextBlock) -> None:
        """The sentences of a paragraph or a list item."""
        if self._says_nothing(block):
            return
        if self._document.kind == "log" and block.end - block.start <= _MAX_LINE_CHARACTERS:
            self._whole(block.start, block.end, "sentence")
            return
        level = (block.level or 1) if block.kind == "item" else 0
        while self._lead_ins and self._lead_ins[-1][0] >= level:
            self._lead_ins.pop()
        pieces: Iterable[tuple[int, int, bool]] = ((block.start, block.end, False),)
        if self._has_questions or self._below_question():
            pieces = self._cut_questions(block)
        text = self._text
        self._plain_lists.clear()
        before = (0, 0)  # the span of the sentence before
        after_colon = False
        for first, last, is_question in pieces:
            if is_question:
                self._heading(first, last, QUESTION_LEVEL)
                after_colon = False
                continue
            lead_in = self._lead_in()
            self._update_context(lead_in)
            for bounds in self._bounds(first, last):
                if not bounds:
                    continue
                is_plain = level or not (after_colon or self._plain_lists)
                if is_plain and not self._has_colon(bounds[0][0], bounds[-1][1] - 1):
                    self._extend(bounds, self._context)
                    before = bounds[-1]
                    after_colon = text[before[1] - 1] in _LEAD_IN_ENDS
                    continue
                context = self._context
                group: list[tuple[int, int]] = []
                in_list = False  # whether the last span is a part of a very long list
                for span in bounds:
                    if (after_colon or self._plain_lists) and not level:
                        lead_in = self._plain_lead_in(before, span[0], lead_in)
                        self._update_context(lead_in)
                    if text[before[1] - 1] == "," and before[1] + 1 >= span[0] > first:
                        lead_in, in_list = self._list_lead_in(before, lead_in), True
                        self._update_context(lead_in)
                    elif in_list:
                        lead_in, in_list = self._lead_in(), False
                        self._update_context(lead_in)
                    if self._context is not context:
                        self._extend(group, context)
                        context, group = self._context, []
                    group.append(span)
                    before = span
                    after_colon = text[span[1] - 1] in _LEAD_IN_ENDS
                self._extend(group, context)
        self._addresses.clear()
        self._introduces_next = after_colon
        if after_colon or (not level and self._is_open(*before)):
            self._lead_ins.append((level, self._lead_in_at(*before)))

    def _extend(self, bounds: list[tuple[int, int]], context: SentenceContext) -> None:
        """Append sentences without the bullets of plain lists. An address alone is no candidate."""
        text = self._text
        marks = self._bullets
        for at, (start, end) in enumerate(bounds):
            if text[start] in marks:
                bounds[at] = _behind_bullet(text, start, end), end
        if not self._addresses:
            self._found.extend(bounds, "sentence", context)
            return
        for start, end in bounds:
            if end not in self._addresses:
                self._found.extend(((start, end),), "sentence", context)
            elif not self._found.extend_last(text, start, end):
                self._found.extend(((start, end),), "code", context)

    def _has_colon(self, start: int, end: int) -> bool:
        colon, wide_colon = _LEAD_IN_ENDS
        text = self._text
        return text.find(colon, start, end) >= 0 or text.find(wide_colon, start, end) >= 0

    def _is_statement(self, start: int, end: int) -> bool:
        """Whether a paragraph or an item is one statement of a program."""
        text = self._text
        return (
            (text[end - 1] == ";" or text[start] in "$#" or self._has_redirections)
            and end - start <= _MAX_STATEMENT_CHARACTERS
            and _STATEMENT.fullmatch(text, start, end) is not None
        )

    def _says_nothing(self, block: TextBlock) -> bool:
        start, end = block.start, block.end
        is_short = end - start < _CONNECTIVE_CHARACTERS
        return is_short and _CONNECTIVE.fullmatch(self._text, start, end) is not None

    def _below_question(self) -> bool:
        return bool(self._path) and self._path[-1][1].endswith("?")

    def _lead_in(self) -> str:
        return self._lead_ins[-1][1] if self._lead_ins else ""

    def _plain_lead_in(self, before: tuple[int, int], start: int, lead_in: str) -> str:
        """
        The lead-in of a sentence in a list that is written as plain text; `before` is above.

        Items belong to one list if they have the same mark in the same column.
        """
        text = self._text
        if not _BULLET.match(text, start):
            if _BLANK_LINE.search(text, before[1], start):
                self._plain_lists.clear()
                return ""
            return lead_in
        mark = text[start] if not text[start].isalnum() else "1"
        item = mark, start - text.rfind("\n", 0, start)
        if item in self._plain_lists:
            while next(reversed(self._plain_lists)) != item:
                self._plain_lists.popitem()
        else:
            is_lead_in = text[before[1] - 1] in _LEAD_IN_ENDS
            self._plain_lists[item] = self._lead_in_at(*before) if is_lead_in else ""
        return self._plain_lists[item]

    def _is_open(self, start: int, end: int) -> bool:
        """Whether a sentence ends with a comma or a word, so that the items below complete it."""
        mark = self._text[end - 1 : end]
        is_open = mark == "," or (mark.isalpha() and mark.islower())
        return is_open and self._text.count(" ", start, end) >= _LEAST_LEAD_IN_SPACES

    def _lead_in_at(self, start: int, end: int) -> str:
        """The text of a lead-in, without the bullet if it is an item itself."""
        if self._text[start] in self._bullets:
            start = _behind_bullet(self._text, start, end)
        return self._text[start:end]

    def _list_lead_in(self, before: tuple[int, int], lead_in: str) -> str:
        """
        The lead-in of a part of a very long list in one sentence: what is before its colon.

        `before` is the part above. The splitter cuts such a list at commas.
        """
        colon = self._text.find(": ", *before)
        return self._text[before[0] : colon + 1] if colon >= 0 else lead_in

    def _cut_questions(self, block: TextBlock) -> Iterator[tuple[int, int, bool]]:
        """
        The pieces of a block without the marks `Q:` and `A:`, and whether each is a question.

        An answer is marked only below a question: `A.` may also be the initial of a name.
        """
        start, is_question = block.start, False
        for mark in _QUESTION_OR_ANSWER.finditer(self._text, block.start, block.end):
            if mark["question"]:
                yield from self._end_question(start, mark.start(), is_question)
                start, is_question = mark.end(), True
            elif is_question or self._below_question():
                yield start, mark.start(), is_question
                start, is_question = mark.end(), False
        yield from self._end_question(start, block.end, is_question)

    def _end_question(
        self, start: int, end: int, is_question: bool
    ) -> Iterator[tuple[int, int, bool]]:
        """A question whose answer is not marked ends with its question mark."""
        if is_question:
            for _, stop in split_sentences(self._text[start:end]):
                if self._text[start + stop - 1] == "?":
                    yield start, start + stop, True
                    start += stop
                    break
        yield start, end, False

    def _bounds(self, start: int, end: int) -> Iterable[list[tuple[int, int]]]:
        """The spans of the sentences of `text[start:end]` with a letter or a digit, in parts."""
        if end - start <= _CHUNK_CHARACTERS:  # without a generator, which takes longer
            return (self._chunk_bounds(start, end),)
        chunks = _chunks(self._text, start, end, _CHUNK_CHARACTERS)
        return (self._chunk_bounds(*chunk) for chunk in chunks)

    def _chunk_bounds(self, start: int, end: int) -> list[tuple[int, int]]:
        piece = self._text[start:end]
        least = self._lone_number_characters
        bounds = [
            (start + left, start + right)
            for left, right in split_sentences(piece)
            if (piece[left].isalnum() or _LETTER.search(piece, left, right))
            and (right - left > least or not _LONE_NUMBER.fullmatch(piece, left, right))
        ]
        if "[" in piece:
            bounds = self._join_references(bounds)
        if self._has_addresses and _has_address(piece):
            bounds = self._join_addresses(bounds)
        return bounds

    def _join_addresses(self, bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Put an address alone into the sentence before it on the same line, or remember it."""
        text = self._text
        marks = _ADDRESS_MARK.finditer(text, bounds[0][0], bounds[-1][1]) if bounds else ()
        marked = {bisect_right(bounds, (mark.start(), len(text))) - 1 for mark in marks}
        addresses = {bounds[at] for at in marked if _ADDRESS.fullmatch(text, *bounds[at])}
        if not addresses:
            return bounds
        joined: list[tuple[int, int]] = []
        for start, end in bounds:
            if (start, end) not in addresses:
                joined.append((start, end))
            elif (
                joined
                and "\n" not in text[joined[-1][1] : start]
                and joined[-1][1] not in self._addresses
            ):
                joined[-1] = joined[-1][0], end
            else:
                joined.append((start, end))
                self._addresses.add(end)
        return joined

    def _join_references(self, bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Put `[issue #12]` behind a sentence on the same line into the sentence."""
        text = self._text
        joined = bounds[:1]
        for start, end in bounds[1:]:
            before = joined[-1][1]
            if (
                text[start] == "["
                and end - start <= _MAX_REFERENCE_CHARACTERS
                and text.find("]", start, end) == end - 1
                and "\n" not in text[before:start]
            ):
                joined[-1] = joined[-1][0], end
            else:
                joined.append((start, end))
        return joined

    def _whole(self, start: int, end: int, kind: SentenceKind) -> None:
        piece = self._text[start:end]
        bare = piece.strip()
        if bare:
            start += len(piece) - len(piece.lstrip())
            self._found.extend(((start, start + len(bare)),), kind, self._context)


def _has_address(text: str) -> bool:
    """Whether a text may have the address of a page or a mailbox."""
    # A single character is found several times as fast as a string.
    return "@" in text or (":" in text and "://" in text) or "www." in text


def _behind_bullet(text: str, start: int, end: int) -> int:
    bullet = _PLAIN_BULLET.match(text, start, end)
    return bullet.end() if bullet else start


def _group_rows(blocks: Iterable[TextBlock]) -> Iterator[list[TextBlock]]:
    """The cells of each table row as one list; every other block alone."""
    row: list[TextBlock] = []
    for block in blocks:
        if row and block.kind != "cell":
            yield row
            row = []
        if block.kind in _TABLE_KINDS:
            row.append(block)
        else:
            yield [block]
    if row:
        yield row


def _chunks(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """The spans of `text[start:end]` cut at blank lines, each of at least `size` characters."""
    while end - start > size:
        found = _BLANK_LINE.search(text, start + size, end)
        if not found:
            break
        yield start, found.end()
        start = found.end()
    yield start, end
