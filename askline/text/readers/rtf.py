"""
Read Rich Text Format (RTF) with exact offsets back into the source.

One regular expression cuts the source into groups, control words and text. Fonts, styles, pictures,
headers, footers and other destinations are left out. A paragraph is a heading if it, or its style,
has an outline level. The slice of the source for a sentence includes the control words inside it.
"""

from __future__ import annotations

import codecs
import re
from array import array
from dataclasses import dataclass, replace

from .document import Blocks, Content, UnreadableError
from .kinds import BlockKind
from .offsets import TextBuilder

__all__ = [
    "read_rtf",
]

_TOKEN = re.compile(
    r"""(?P<open>\{) | (?P<close>\})
    | \\(?P<word>[a-zA-Z]{1,32})(?P<value>-?\d{1,10})?\x20?
    | (?P<bytes>(?:\\'[0-9a-fA-F]{2})+)
    | \\(?P<symbol>[^a-zA-Z])
    | (?P<end>[\r\n]+)
    | (?P<text>[^\\{}\r\n]+)""",
    re.VERBOSE,
)
_SKIPPED_DESTINATIONS = frozenset(
    """fonttbl colortbl stylesheet info pict object objdata header headerl headerr headerf footer
    footerl footerr footerf listtable listoverridetable revtbl rsidtbl generator xmlnstbl themedata
    colorschememapping datastore latentstyles fldinst bkmkstart bkmkend annotation atnid atnauthor
    nonshppict filetbl mmathPr pgdsctbl private wgrffmtfilter pntext listtext""".split()
)
_CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "emdash": "—",
    "endash": "–",
    "emspace": " ",
    "enspace": " ",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "bullet": "•",
}
_SYMBOLS = {"~": "\xa0", "_": "-", "\\": "\\", "{": "{", "}": "}", "\n": "\n", "\r": "\n"}
_PARAGRAPH_ENDS = frozenset(("par", "sect", "page"))
_CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    134: "gbk",
    136: "big5",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}
"""The encodings of the character sets that fonts name."""
_MAX_DEPTH = 1_000


@dataclass(frozen=True, slots=True)
class _State:
    """What a group inherits and restores at its end."""

    is_skipped: bool = False
    destination: str = ""
    unicode_skip: int = 1  # characters that follow \u for readers without Unicode
    font: int = -1
    is_deleted: bool = False


def read_rtf(source: str) -> Content:
    """Text, blocks and title. Places are paragraphs."""
    if not source.lstrip().startswith("{\\rtf"):
        raise UnreadableError("It is not an RTF file: it does not start with {\\rtf. Get it again.")
    reader = _Reader()
    for token in _TOKEN.finditer(source):
        reader.add_token(token)
    reader.end_paragraph(len(source))
    builder = reader.builder
    title = " ".join("".join(reader.title).split())
    return Content(
        builder.text(), reader.blocks, "paragraph", reader.starts, title, builder.segments
    )


class _Reader:
    """The state while a file is read."""

    def __init__(self) -> None:
        self.builder = TextBuilder()
        self.blocks = Blocks()
        self.starts = array("I", (0,))
        self.title: list[str] = []
        self._state = _State()
        self._groups: list[_State] = []
        self._depth = 0  # of groups that are too deep to be kept
        self._codec = "cp1252"
        self._font_codecs: dict[int, str] = {}
        self._heading_styles: dict[int, int] = {}
        self._style = -1  # that is being defined
        self._to_skip = 0  # characters after \u
        self._surrogate = 0
        self._is_optional = False  # after \*
        self._start = 0  # of the current block in the text
        self._heading_level = 0  # 0 for other paragraphs
        self._in_table = False
        self._row_cells = 0
        self._table_rows = 0

    def add_token(self, token: re.Match[str]) -> None:
        """Handle one token."""
        kind = token.lastgroup
        if kind == "open":
            self._open_group()
        elif kind == "close":
            self._close_group()
        elif kind == "text":
            self._add_text(token[0], *token.span())
        elif kind == "bytes":
            self._add_bytes(token)
        elif kind in ("word", "value"):
            self._add_word(token["word"], token["value"], token)
        elif kind == "symbol":
            self._add_symbol(token)

    def end_paragraph(self, at: int, *, is_cell: bool = False) -> None:
        """Close the current block at `at` in the source."""
        end = self.builder.length
        if end > self._start:
            self.blocks.add(self._start, end, self._block_kind(), self._heading_level)
            self._row_cells += self._in_table
            self.builder.insert("\n", at)
        self._start = self.builder.length
        if not is_cell:
            self.starts.append(max(at, self.starts[-1]))

    def _block_kind(self) -> BlockKind:
        if self._in_table:
            if self._row_cells:
                return "cell"
            return "row" if self._table_rows else "table"
        return "heading" if self._heading_level else "text"

    def _open_group(self) -> None:
        self._to_skip = 0
        if len(self._groups) < _MAX_DEPTH:
            self._groups.append(self._state)
        else:
            self._depth += 1

    def _close_group(self) -> None:
        self._to_skip = 0
        self._is_optional = False
        if self._depth:
            self._depth -= 1
        elif self._groups:
            self._state = self._groups.pop()

    def _add_word(self, word: str, value: str | None, token: re.Match[str]) -> None:
        number = int(value) if value else None
        is_optional, self._is_optional = self._is_optional, False
        if word in _SKIPPED_DESTINATIONS or (is_optional and word not in ("shppict",)):
            self._state = replace(self._state, is_skipped=True, destination=word)
        elif word == "title" and self._state.destination == "info":
            self._state = replace(self._state, destination="title")
        elif self._state.is_skipped:
            self._add_skipped_word(word, number)
        elif word == "u" and number is not None:
            self._add_unicode(number, *token.span())
        elif word in _CHARACTERS:
            self._add_text(_CHARACTERS[word], *token.span())
        else:
            self._add_property(word, number, token)

    def _add_property(self, word: str, number: int | None, token: re.Match[str]) -> None:
        if word in _PARAGRAPH_ENDS:
            if self._in_table:
                self._add_text(" ", *token.span())
            else:
                self.end_paragraph(token.start())
        elif word == "cell":
            self.end_paragraph(token.start(), is_cell=True)
        elif word == "row":
            self.end_paragraph(token.start())
            self._table_rows += 1
            self._row_cells = 0
        elif word == "pard":
            self._heading_level = 0
            self._in_table = False
        elif word == "intbl":
            self._in_table = True
        elif word == "s" and number is not None:
            self._heading_level = self._heading_level or self._heading_styles.get(number, 0)
        elif word == "outlinelevel" and number is not None:
            self._heading_level = number + 1 if 0 <= number < 9 else 0
        elif word == "trowd" and not self._in_table and self.builder.length > self._start:
            self.end_paragraph(token.start())
        elif word == "ansicpg" and number is not None:
            self._codec = _known_codec(f"cp{number}") or self._codec
        elif word == "mac":
            self._codec = "mac_roman"
        elif word == "uc" and number is not None:
            self._state = replace(self._state, unicode_skip=min(max(number, 0), 10))
        elif word in ("f", "deleted", "v"):
            self._add_character_property(word, number)
        if word == "pard" and not self._row_cells:
            self._table_rows = self._table_rows if self._in_table else 0

    def _add_character_property(self, word: str, number: int | None) -> None:
        if word == "f":
            self._state = replace(self._state, font=-1 if number is None else number)
        else:  # hidden and deleted text
            self._state = replace(self._state, is_deleted=number != 0)

    def _add_skipped_word(self, word: str, number: int | None) -> None:
        """A control word in the tables of fonts and styles."""
        destination = self._state.destination
        if destination == "fonttbl":
            if word == "f" and number is not None:
                self._state = replace(self._state, font=number)
            elif word == "fcharset" and number in _CHARSETS:
                self._font_codecs[self._state.font] = _CHARSETS[number]
        elif destination == "stylesheet":
            if word == "s" and number is not None:
                self._style = number
            elif word == "outlinelevel" and number is not None and 0 <= number < 9:
                self._heading_styles[self._style] = number + 1

    def _add_unicode(self, number: int, start: int, end: int) -> None:
        number %= 0x10000
        if 0xD800 <= number < 0xDC00:
            self._surrogate = number
        elif 0xDC00 <= number < 0xE000:
            if self._surrogate:
                high, self._surrogate = self._surrogate, 0
                self._add_text(chr(0x10000 + ((high - 0xD800) << 10) + number - 0xDC00), start, end)
        elif number >= 32 or number == 9:
            self._add_text(chr(number), start, end)
        self._to_skip = self._state.unicode_skip

    def _add_bytes(self, token: re.Match[str]) -> None:
        """Bytes such as `\\'e9`, in the encoding of the font."""
        start, end = token.span()
        skipped = min(self._to_skip, (end - start) // 4)
        self._to_skip -= skipped
        start += 4 * skipped
        if start == end or self._is_silent():
            return
        codec = self._font_codecs.get(self._state.font, self._codec)
        data = bytes.fromhex(token[0][4 * skipped :].replace("\\'", ""))
        text = data.decode(codec, "replace")
        if len(text) == len(data):  # one character per byte, each with its own place
            for at, character in enumerate(text):
                self._add_text(character, start + 4 * at, start + 4 * at + 4)
        else:
            self._add_text(text, start, end)

    def _add_symbol(self, token: re.Match[str]) -> None:
        symbol = token["symbol"]
        if symbol == "*":
            self._is_optional = True
        elif self._to_skip:
            self._to_skip -= 1
        elif symbol in "\r\n":
            if not self._is_silent():
                self.end_paragraph(token.start())
        elif symbol in _SYMBOLS:
            self._add_text(_SYMBOLS[symbol], *token.span())

    def _is_silent(self) -> bool:
        return self._state.is_skipped or self._state.is_deleted

    def _add_text(self, text: str, start: int, end: int) -> None:
        self._is_optional = False
        if self._to_skip:
            skipped = min(self._to_skip, len(text))
            self._to_skip -= skipped
            if end - start == len(text):
                start += skipped
            text = text[skipped:]
        if self._state.destination == "title" and text:
            self.title.append(text)
        if self._is_silent() or not text:
            return
        if self.builder.length == self._start:  # a block starts with a visible character
            bare = text.lstrip()
            if end - start == len(text):
                start += len(text) - len(bare)
            text = bare
        self.builder.add_whole(text, start, end)


def _known_codec(name: str) -> str | None:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None
