"""
A file as an index stores it: its sentences in packed blocks, and its passages with their words.

This is most of the work of indexing, so that it is done in the reader processes, a column at a time
and not sentence by sentence. The process that writes the index only stores the blocks.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...errors import Problem
from ..words import (
    identifier_words,
    spaced_words,
    split_identifiers,
    split_words,
    texts_with_identifiers,
)
from .kinds import CELL_SEPARATOR, SENTENCE_KINDS
from .sentence_blocks import (
    CODE_KIND,
    HEADING_KINDS,
    NO_CONTEXT,
    Context,
    RowRecord,
    SentenceBlocks,
    SentenceColumns,
)

if TYPE_CHECKING:  # a stored corpus is searched without readers
    from .document import DocumentPart, ParsedDocument, SentenceContext, Sentences

__all__ = [
    "HEADING_SEPARATOR",
    "PASSAGE_CHARACTERS",
    "IndexedPassage",
    "PassageColumns",
    "PreparedFile",
    "WordsOf",
    "heading_line",
    "passage_ranges",
    "passage_words",
    "prepare_file",
]

HEADING_SEPARATOR = " > "
"""Between the headings of a path that is shown on one line."""

PASSAGE_CHARACTERS = 1000
"""Upper limit. Recall is the same from 700 upwards and lower at 400; longer passages cost more."""

_ROWS = frozenset(SENTENCE_KINDS.index(kind) for kind in ("row", "columns"))


class IndexedPassage(NamedTuple):
    """A passage as it is indexed: its words, separated by white space and not yet stemmed."""

    first: int
    last: int
    words: str
    """The words of the title of its document, of its headings and of its sentences."""
    title_words: str
    """The words of the title and the headings, each once."""


class PassageColumns(NamedTuple):
    """The passages of a document, a column per field of `IndexedPassage`."""

    firsts: list[int]
    lasts: list[int]
    words: list[str]
    title_words: list[str]

    def passages(self) -> Iterator[IndexedPassage]:
        """Each passage in order."""
        return map(IndexedPassage, *self)


class PreparedFile(NamedTuple):
    """What an index stores of a file."""

    kind: str
    title: str
    sha256: str
    encoding: str | None
    unit: str
    characters: int
    problems: tuple[Problem, ...]
    rows: list[RowRecord]
    sentences: SentenceBlocks
    passages: PassageColumns


def prepare_file(document: ParsedDocument, sentences: Sentences) -> PreparedFile:
    """The columns of a document that has been read and split."""
    starts, ends, kinds, contexts, context_of = sentences.columns()
    text = document.text
    texts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    if not _ROWS.isdisjoint(kinds):  # the cells of a table row are joined into one line
        for at, kind in enumerate(kinds):
            if kind in _ROWS:
                texts[at] = texts[at].replace("\n", CELL_SEPARATOR)
    if not text.isascii() and _replace_surrogates(text) is not text:
        texts = list(map(_replace_surrogates, texts))
    segments = document.segments
    places = starts
    if segments is not None:
        places, original_ends = segments.spans(starts, ends)
        if document.encoding is not None:
            starts, ends = places, original_ends
    distinct: dict[Context, int] = {NO_CONTEXT: 0}
    clean = _replace_surrogates
    known: dict[SentenceContext, int] = {}  # sections come back to the heading above them
    own = list[int]()
    for context in contexts:
        number = known.get(context)
        if number is None:
            heading, path, lead = context
            record = clean(heading), clean("\n".join(path)), clean(lead)
            number = known[context] = distinct.setdefault(record, len(distinct))
        own.append(number)
    columns = SentenceColumns(
        array("I", starts),
        array("I", ends),
        array("I", _line_numbers(document.starts.tolist(), places)),
        bytes(kinds),
        list(distinct),
        array("I", map(own.__getitem__, context_of)),
        texts,
    )
    title = clean(document.title)
    return PreparedFile(
        document.kind,
        title,
        document.sha256,
        document.encoding,
        document.unit,
        len(text),
        document.problems,
        [_row_record(document, part) for part in document.parts],
        columns.to_blocks(),
        _prepare_passages(title, columns),
    )


def _line_numbers(lines: list[int], places: Iterable[int]) -> list[int]:
    """The lines, from 1, of places in order; several times as fast as bisection."""
    numbers = []
    number = 0
    following = iter(lines)
    next_line = next(following, inf)
    for place in places:
        while next_line <= place:
            number += 1
            next_line = next(following, inf)
        numbers.append(number or 1)
    return numbers


def _row_record(document: ParsedDocument, part: DocumentPart) -> RowRecord:
    start, _ = document.span(part.start, part.end) or (part.start, part.end)
    return RowRecord(start, part.row, _replace_surrogates(part.id))


def _prepare_passages(title: str, sentences: SentenceColumns) -> PassageColumns:
    result = PassageColumns([], [], [], [])
    contexts, context_of, texts = sentences.contexts, sentences.context_of, sentences.texts
    numbers: dict[tuple[str, str], int] = {}
    sections = [numbers.setdefault(context[:2], len(numbers)) for context in contexts]
    lines = [heading_line(*section) for section in numbers]
    named = texts_with_identifiers([*texts, *lines])
    words_of = passage_words(title)
    ranges = passage_ranges(
        zip(sentences.kinds, map(sections.__getitem__, context_of), map(len, texts), strict=True)
    )
    for first, last in ranges:
        section = sections[context_of[first]]
        has_identifiers = bool(named) and (
            len(texts) + section in named or not named.isdisjoint(range(first, last + 1))
        )
        words, title_words = words_of(lines[section], texts[first : last + 1], has_identifiers)
        result.firsts.append(first)
        result.lasts.append(last)
        result.words.append(words)
        result.title_words.append(title_words)
    return result


def passage_ranges(sentences: Iterable[tuple[int, Hashable, int]]) -> Iterator[tuple[int, int]]:
    """
    The first and the last sentence of each passage, from the kind, the section and the length.

    A passage starts at each heading and each section, and where it would exceed the limit. Headings
    and the names of columns are not sentences of a passage, because the passages below them start
    with their path. Code belongs to the passage above it if it fits into it. A passage of nothing
    but code is left out, because code is never an answer.
    """
    first, size, open_section, has_text = -1, 0, None, False
    at = -1
    for at, (kind, section, length) in enumerate(sentences):
        if kind in HEADING_KINDS:
            if has_text:
                yield first, at - 1
            first, has_text = -1, False
            continue
        size += length
        if first < 0 or size > PASSAGE_CHARACTERS or section != open_section:
            if has_text:
                yield first, at - 1
            first, size, open_section, has_text = at, length, section, kind != CODE_KIND
        elif kind != CODE_KIND:
            has_text = True
    if has_text:
        yield first, at


class WordsOf(Protocol):
    """From the heading and the sentences of a passage to its words and its title words."""

    def __call__(
        self, heading: str, texts: Sequence[str], has_identifiers: bool = True
    ) -> tuple[str, str]:
        """Without identifiers in the heading and the texts, they are not searched for."""
        ...


def passage_words(title: str) -> WordsOf:
    """A function whose words and title words contain those of the title of the document."""
    own = split_identifiers(title)
    own_words = " ".join(own)
    last_heading, title_words = "", " ".join(dict.fromkeys(own))

    def words(heading: str, texts: Sequence[str], has_identifiers: bool = True) -> tuple[str, str]:
        nonlocal last_heading, title_words
        if heading != last_heading:
            last_heading = heading
            names = identifier_words(heading) if has_identifiers else []
            title_words = " ".join(dict.fromkeys([*own, *split_words(heading), *names]))
        text = "\n".join([heading, *texts])
        found = f"{own_words} {spaced_words(text)}"
        if has_identifiers and (names := identifier_words(text)):
            found = f"{found} {' '.join(names)}"
        return found, title_words

    return words


def heading_line(heading: str, path: str) -> str:
    """The first line of a passage: the headings above it, then the names of its columns."""
    if "\n" not in path:
        return heading
    above = path.split("\n")[:-1]
    return HEADING_SEPARATOR.join((*above, heading) if heading else above)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can carry and UTF-8 cannot; the length stays the same."""
    if text.isascii():  # the usual case, and faster than encoding
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
