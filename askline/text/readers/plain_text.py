"""
Read plain text: the text itself, with underlined lines as headings; and log files.

    Installation
    ============

The first line is the title of a file with other headings. A line between two blank lines is a
heading too if it is numbered and the text below is indented, or
if it has a number such as 2.1, or is in capitals, or starts with `Chapter`. A table of contents and
labels such as `Note` are left out.

A line break ends a block if the text was not wrapped there: between records, such as `Name: value`
or lines with a date, between rows of columns, and where the next word would have fitted into the
line. Everything else is left to the sentence splitter, which handles lists, rules and wrapped
lines.

In a log file every line is a unit of its own. Lines that are indented, as stack traces are, belong
to the line above and are code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from .document import Blocks, Content
from .kinds import BlockKind
from .offsets import TextBuilder, line_starts

__all__ = ["add_lines", "read_log", "read_plain_text"]

# The pattern starts with a line break, because `re` then skips all other characters quickly.
_RULE = re.compile(r"\n[ \t]*(?P<mark>[=\-~*^#+])(?P=mark)+[ \t]*(?=\r?\n|\Z)")
_DOUBLE_MARKS = ("==", "---", "~~~", "***", "^^^", "###", "+++")
_TITLE = re.compile(r"[ \t]*(?P<title>\S(?:[^\n]*\S)?)\s*\Z")
_MAX_TITLE_CHARACTERS = 150
_TITLE_SHARE = 0.6  # of the title that is underlined, at least
_ITEM = re.compile(r"[-*+•]\s|\(?\d{1,3}[.)]\s+\S+\s*\Z")
_COLUMNS = re.compile(r"\S(?: {2,}|\t)\S")  # a line of a table
_LETTER = re.compile(r"[^\W\d_]")
_CONTENTS = re.compile(r"[ \t]*(?:table of )?contents:?[ \t]*\r?\n", re.IGNORECASE)
_ENTRY = re.compile(
    r"""[ \t\r\n]*
    (?: (?:(?:\d{1,3}\.)*\d{1,3}\.?|[A-Z]\.(?:\d{1,3}\.?)*|[IVX]{1,5}\.
          |(?:Chapter|Part|Appendix|Section)[ \xa0]\w{1,4}[.:]?) [ \t\xa0]+ (?P<name>[^\n]{1,100})
      | [^\n]{1,100}?[ \t.]{3,}\d{1,4}[ \t\r]* )
    (?:\n[ \t]{8,}[^\W\d][^\n]{0,80})? (?:\n|\Z)  # a long title has a second line
    """,
    re.VERBOSE,
)
_MIN_ENTRIES = 3
# The pattern starts with a line break, as above.
_LONE_LINE = re.compile(
    r"""\n[ \t]*\r?\n(?P<indent>[ \t]{0,60})(?P<title>
      (?P<chapter>(?:Chapter|Part|Appendix|Annex|CHAPTER|PART|APPENDIX)[ \xa0][\dA-Z]{1,4}[.:]?
        [ \t\xa0]+\S[^\n]{0,100}?)
    | (?P<number>(?:\d{1,2}\.){1,5}(?:\d{1,2})?)[ \t\xa0]+[^\W\d_][^\n]{0,100}?
    | (?P<capitals>[A-Z][A-Z0-9 ,&/'’()-]{3,59})
    | (?P<label>Note|Notes|Tip|Warning|Caution|Important|Abstract)
    )[ \t]*(?=\r?\n[ \t]*\r?\n(?P<next>[ \t]*)(?P<below>\S[^\n]{0,20}))""",
    re.VERBOSE,
)
_LINE = re.compile(r"[^\n]+")
_RECORD = re.compile(
    r"""(?: (?P<task> \[[ xX]\]\s )
    | (?P<date> [\[(]?(?:\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{2,4}|\d\d?:\d\d) )
    | (?P<section> §[ ]?\d | (?:\d{1,2}\.){1,4}\d{1,2}\.?[ \t]+[^\W\da-z_] )
    | (?P<name> [^\W\d_][\w .'’()/&-]{0,38}:\s+\S ) )""",
    re.VERBOSE,
)
_RECORD_STARTS = frozenset("0123456789[(§ ")
_LIST_LINE = re.compile(r"(?:[-*+•‣▪◦●○■□➢–—]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s|[|+]")
_LIST_SHARE = 0.6  # of the lines of a paragraph, or of its line breaks
_NARROW_LINE, _WIDE_LINE = 45, 200  # text is not wrapped to fewer characters or more
_SENTENCE_ENDS = (".", "!", "?", ":", ";", "…", "»", "”", '"', ")")
_FEW_WORDS = 4  # per line, in lists of names
_FULL_LINE = 0.9  # of the longest line of a paragraph; wrapped lines are about as long
_TABLE = re.compile(
    r"(?m:^)[ \t]*\+-[-+=]+\+[ \t]*\r?\n(?:[ \t]*[|+][^\n]*[|+][ \t]*(?:\r?\n|\Z))+"
)
_TABLE_RULE = re.compile(r"[ \t]*[|+][-+=|:]{3,}[|+][ \t]*\r?(?=\n|\Z)", re.MULTILINE)
_RULES_OF_A_FRAME = 2  # above and below; the third is behind the header, more are between rows
_TABLE_CELL = re.compile(r"(?<=\|)[ \t]*(?P<text>[^|\n\s](?:[^|\n]*[^|\n\s])?|)[ \t]*(?=\|)")
_FIRST_LINE = re.compile(r"\s*(?P<title>[^\W\d_][^\n]{1,78}[^\s])[ \t]*\r?\n[ \t]*\r?\n")
_WORD_IN_CAPITALS = re.compile(r"[A-Z]{4}")
_NUMBERED = re.compile(r"(?:\d{1,2}\.){1,5}\d{0,2}[ \t\xa0]")
_TITLE_ENDS = (".", ",", ";", ":", "!")
_LOG_LINE = re.compile(r"[^\r\n]+")
_LOG_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")  # of terminals, such as colors


def read_plain_text(source: str) -> Content:
    """The text and its blocks, with the offsets of the source."""
    blocks = Blocks()
    levels: dict[str, int] = {}  # of the marks, in the order in which they first occur
    position = 0
    contents = list(_contents(source))
    titles = sorted([*_titles(source), *_lone_titles(source)])
    if titles and (first := _first_line(source)):
        titles.insert(0, (*first, first[1], "title"))
    for start, end, stop, mark in titles:
        if start < position or _is_inside(start, contents):
            continue
        _add_text(blocks, source, position, start, contents)
        if mark:
            kind, _, number = mark.partition(" ")
            level = levels.setdefault(kind, len(levels) + 1) + number.rstrip(".").count(".")
            blocks.add(start, end, "heading", level)
        position = stop
    _add_text(blocks, source, position, len(source), contents)
    tables = _tables(source)
    if not tables:
        return Content(source, blocks, "line", line_starts(source))
    builder, blocks = _with_tables(source, blocks, tables)
    return Content(builder.text(), blocks, "line", line_starts(source), segments=builder.segments)


def read_log(source: str) -> Content:
    """The lines of a log file and its blocks, with the offsets of the source."""
    builder = TextBuilder()
    blocks = Blocks()
    code_start = -1
    for line in _LOG_LINE.finditer(source):
        start, end = line.span()
        is_code = source[start].isspace()
        if not is_code and code_start >= 0:
            blocks.add(code_start, builder.length - 1, "code")
            code_start = -1
        begin = builder.length
        if is_code and code_start < 0:
            code_start = begin
        position = start
        for escape in _LOG_ESCAPE.finditer(source, start, end):
            builder.add(source[position : escape.start()], position, escape.start())
            position = escape.end()
        builder.add(source[position:end], position, end)
        if not is_code:
            blocks.add(begin, builder.length, "text")
        builder.insert("\n", end)
    if code_start >= 0:
        blocks.add(code_start, builder.length - 1, "code")
    return Content(builder.text(), blocks, "line", line_starts(source), segments=builder.segments)


def _tables(source: str) -> list[tuple[int, int]]:
    """The spans of tables that are drawn with `+---+` and `|`."""
    if "+--" not in source:  # much faster than the pattern
        return []
    return [found.span() for found in _TABLE.finditer(source) if found[0].count("\n") > 1]


def _with_tables(
    source: str, blocks: Blocks, tables: list[tuple[int, int]]
) -> tuple[TextBuilder, Blocks]:
    """The text and its blocks with the cells of tables instead of the drawing."""
    builder, found = TextBuilder(), Blocks()

    def add(start: int, end: int, kind: BlockKind, level: int = 0) -> None:
        if source[start:end].strip():
            begin = builder.length
            builder.add(source[start:end], start, end)
            found.add(begin, builder.length, kind, level)
            builder.insert("\n\n", end)

    for start, end, kind, level in blocks:
        while tables and tables[0][0] < end:
            first, last = tables.pop(0)
            if first >= start:
                add(start, first, kind, level)
                _add_table(builder, found, source, first, last)
                start = last
        add(start, end, kind, level)
    return builder, found


def _add_table(builder: TextBuilder, blocks: Blocks, source: str, start: int, end: int) -> None:
    """Append the rows of a table; the lines of a cell are joined by spaces."""
    rules = len(_TABLE_RULE.findall(source, start, end))
    kind: BlockKind = "columns" if rules > _RULES_OF_A_FRAME else "table"
    lines: list[list[tuple[int, int]]] = []  # the cells of each line of the current row
    for line in _LINE.finditer(source, start, end):
        is_rule = bool(_TABLE_RULE.match(line[0]))
        if not is_rule:
            lines.append([cell.span("text") for cell in _TABLE_CELL.finditer(source, *line.span())])
        if lines and (is_rule or rules <= _RULES_OF_A_FRAME + 1):
            for spans in _row_cells(lines):
                begin = builder.length
                for first, last in spans:
                    if builder.length > begin:
                        builder.insert(" ", first)
                    builder.add(source[first:last], first, last)
                blocks.add(begin, builder.length, kind)
                builder.insert("\n", spans[-1][1])
                kind = "cell"
            kind = "row"
            lines = []


def _row_cells(lines: list[list[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
    """
    The lines of each cell of a row.

    Cells that do not follow each other in the source, because several have more than one line, are
    cut into their lines: offsets only increase.
    """
    columns = max(map(len, lines))
    cells = [
        [line[number] for line in lines if number < len(line) and line[number][0] < line[number][1]]
        for number in range(columns)
    ]
    cells = [cell for cell in cells if cell]
    if all(left[-1] < right[0] for left, right in pairwise(cells)):
        return cells
    return [[span] for line in lines for span in line if span[0] < span[1]]


def _add_text(
    blocks: Blocks, source: str, start: int, end: int, left_out: list[tuple[int, int]]
) -> None:
    """Add blocks of text, without the spans that are left out."""
    while left_out and left_out[0][0] < end:
        first, last = left_out.pop(0)
        add_lines(blocks, source, start, first)
        start = max(start, last)
    add_lines(blocks, source, start, end)


def add_lines(blocks: Blocks, source: str, start: int, end: int) -> None:
    """Add a block of text, or several if there are line breaks that end one."""
    position, lines = start, list[str]()  # of the paragraph
    for line in [*source[start:end].split("\n"), ""]:
        if line and not line.isspace():
            lines.append(line)
        else:
            size = sum(map(len, lines)) + len(lines)
            if len(lines) > 1 and not _is_prose(lines):
                ends = list(accumulate((len(each) + 1 for each in lines), initial=position))
                for number in _line_ends([each.strip() for each in lines]):
                    blocks.add(start, ends[number], "text")
                    start = ends[number]
            position += size + len(line) + 1
            lines = []
    if start < end:
        blocks.add(start, end, "text")


def _is_prose(lines: Sequence[str]) -> bool:
    """A quick test that finds most wrapped paragraphs, which `_line_ends` leaves whole."""
    sizes = [len(line) for line in lines]
    least = _FULL_LINE * max(sizes)
    if 2 * sum(size >= least for size in sizes[:-1]) < len(sizes) or sizes[0] < least:
        return False
    text = "\n".join(lines)
    return (
        max(sizes) <= _WIDE_LINE
        and not any(mark in text for mark in (": ", "  ", "\t"))
        and not any(line[0] in _RECORD_STARTS for line in lines)
    )


def _line_ends(texts: Sequence[str]) -> Iterator[int]:
    """The lines of a paragraph before which the text was not wrapped, by their numbers."""
    records = [_RECORD.match(text) for text in texts]
    kinds = [found.lastgroup if found else None for found in records]
    if any(map(_LIST_LINE.match, texts)):  # the splitter knows lists, with their lead-ins
        yield from (at for at in range(1, len(texts)) if kinds[at] == "section")
        return
    named = kinds.count("name") >= _LIST_SHARE * len(texts)
    dated = kinds.count("date") > 1
    columns = sum(map(bool, map(_COLUMNS.search, texts))) >= _LIST_SHARE * len(texts)
    width = max(map(len, texts))
    fits = [
        len(above) + 1 + len(below.split(None, 1)[0]) <= _FULL_LINE * width
        for above, below in pairwise(texts)
    ]
    short = len(fits) > 1 and sum(fits) >= _LIST_SHARE * len(fits)
    lowercase = sum(text[0].islower() for text in texts) > len(texts) / 2
    terse = not lowercase and sum(len(text.split()) for text in texts) <= _FEW_WORDS * len(texts)
    is_narrow = width < _NARROW_LINE
    is_wrapped = width <= _WIDE_LINE and not (is_narrow and (short or terse))
    for at, (above, below) in enumerate(pairwise(texts)):
        kind = kinds[at + 1]
        is_title = at == 0 and fits[0] and len(above) <= _TITLE_SHARE * width
        is_end = not above.endswith((",", "-", "–", "(")) and (
            width <= _WIDE_LINE or len(above) <= _NARROW_LINE or above.endswith(_SENTENCE_ENDS)
        )
        is_start = lowercase or below[0].isupper() or (is_narrow and not below[0].islower())
        if (
            kind in ("section", "task")
            or (kind == "name" and named)
            or (kind == "date" and dated)
            or columns
            or (is_start and is_end and (not is_wrapped or (fits[at] and (short or is_title))))
        ):
            yield at + 1


def _contents(source: str) -> Iterator[tuple[int, int]]:
    """The spans of tables of contents: their heading, and the numbered titles below it."""
    end = 0
    for start in sorted(_line_starts_of(source, "ontents") | _line_starts_of(source, "ONTENTS")):
        heading = _CONTENTS.match(source, start)
        if heading is None or start < end:
            continue
        count, end = 0, heading.end()
        first = ""
        while (entry := _ENTRY.match(source, end)) and entry["name"] != first:
            first = first or entry["name"] or ""  # again, it is the heading of the first section
            count, end = count + 1, entry.end()
        is_named = heading[0].strip().lower().startswith("table")
        if count >= (1 if is_named else _MIN_ENTRIES):
            yield start, end


def _line_starts_of(source: str, word: str) -> set[int]:
    """Where the lines start that contain a word; much faster than a pattern."""
    starts, at = set[int](), source.find(word)
    while at >= 0:
        starts.add(source.rfind("\n", 0, at) + 1)
        end = source.find("\n", at)
        at = source.find(word, end) if end >= 0 else -1
    return starts


def _first_line(source: str) -> tuple[int, int] | None:
    """The span of the title of a document with other headings: its first line, alone and short."""
    found = _FIRST_LINE.match(source)
    if found is None or found["title"].endswith(_TITLE_ENDS) or _COLUMNS.search(found["title"]):
        return None
    return found.span("title")


def _is_inside(at: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= at < end for start, end in spans)


def _lone_titles(source: str) -> Iterator[tuple[int, int, int, str]]:
    """Like `_titles`, for headings without a rule; the mark of a label is empty."""
    for found in _LONE_LINE.finditer(source):
        title, indent = found["title"], len(found["indent"])
        start, end = found.span("title")
        if found["label"]:
            yield start, end, end, ""
        elif title.endswith(_TITLE_ENDS) or _COLUMNS.search(title):
            continue
        elif found["chapter"]:
            yield start, end, end, "number 1"  # 2.1 is a section of chapter 2
        elif found["number"]:
            # Items of a list that are further apart are numbered too.
            is_deep = found["number"].rstrip(".").count(".") > 0
            is_list = _NUMBERED.match(found["below"]) and len(found["next"]) == indent
            if not is_list and (is_deep or (not indent and found["next"])):
                yield start, end, end, f"number {found['number']}"
        elif _WORD_IN_CAPITALS.search(title):
            yield start, end, end, "capitals"


def _titles(source: str) -> Iterator[tuple[int, int, int, str]]:
    """Start and end of each title, the end of the line below it, and its mark."""
    position = 0
    # Much faster than the pattern, and a single character is found faster than two.
    if not any(mark[0] in source and mark in source for mark in _DOUBLE_MARKS):
        return
    for rule in _RULE.finditer(source):
        start = max(source.rfind("\n", position, rule.start()) + 1, position)
        title = _TITLE.match(source, start, rule.start())
        if title and _is_title(source, start, title["title"], rule):
            yield *title.span("title"), rule.end(), rule["mark"]
            position = rule.end()


def _is_title(source: str, start: int, title: str, rule: re.Match[str]) -> bool:
    """Whether a line above a rule is a title: short, underlined, and below a blank line."""
    above = source[source.rfind("\n", 0, max(start - 1, 0)) + 1 : max(start - 1, 0)].strip()
    length = len(rule[0].strip())
    return (
        len(title) <= _MAX_TITLE_CHARACTERS
        and (not above or above == rule[0].strip())
        and (length >= len(title) * _TITLE_SHARE or (rule["mark"] == "=" and length == 2))
        and (length > 2 or rule["mark"] == "=")
        and bool(_LETTER.search(title))
        and not (_ITEM.match(title) or _COLUMNS.search(title))
    )
