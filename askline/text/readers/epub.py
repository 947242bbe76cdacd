"""
Read e-books (EPUB): chapters in reading order, each by the HTML reader.

A chapter that does not begin with a heading gets its title from the table of contents, which is
left out itself. `xml_package` unpacks the file within limits.
"""

from __future__ import annotations

import re
from html import unescape

from ...errors import Problem
from .document import Content, UnreadableError
from .html import read_html
from .text_encoding import decode
from .xml_package import PackedText, TitleHandler, XmlHandler, XmlPackage, read_package, resolve

__all__ = [
    "read_epub",
]

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml"))
_NCX = "application/x-dtbncx+xml"
_NCX_ENTRY = re.compile(
    r"""<(?:\w+:)?text\b[^<>]*>(?P<label>[^<]*)<|<(?:\w+:)?content\b[^<>]*?\bsrc\s*=\s*
    (?:"(?P<double>[^"<>]*)"|'(?P<single>[^'<>]*)')""",
    re.VERBOSE,
)
_NAV_ENTRY = re.compile(
    r"""<a\b[^<>]*?\bhref\s*=\s*(?:"(?P<double>[^"<>]*)"|'(?P<single>[^'<>]*)')[^<>]*>
    (?P<label>[^<]*(?:<(?!/a\b)[^<>]*>[^<]*){0,20})</a""",
    re.VERBOSE,
)
_TAG = re.compile(r"<[^<>]*>")


def read_epub(data: bytes, *, max_bytes: int) -> Content:
    """Text, blocks and title. Places are chapters: the files of the book in reading order."""
    return read_package(data, "EPUB", max_bytes=max_bytes, old_suffix=".epub", read=_read)


def _read(package: XmlPackage) -> Content:
    package.require(_CONTAINER)
    container = _AttributeHandler("rootfile", "full-path")
    package.parse(_CONTAINER, container)
    if not container.values:
        raise UnreadableError("META-INF/container.xml in it names no book. Get it again.")
    root = container.values[0]
    package.require(root)
    book, properties = _BookHandler(), TitleHandler()
    package.parse(root, book)
    package.parse(root, properties)
    encrypted = _AttributeHandler("CipherReference", "URI")
    package.parse(_ENCRYPTION, encrypted)
    locked = {resolve("", uri) for uri in encrypted.values}
    titles = _chapter_titles(package, book, root)
    text = PackedText()
    problems: list[Problem] = []
    for item in book.spine:
        href, media_type, item_properties = book.items.get(item, ("", "", ""))
        name = resolve(root, href)
        if media_type not in _PAGES or "nav" in item_properties.split():
            continue
        if name in locked:
            raise UnreadableError(
                "It is protected against copying. Use a copy without protection.",
                reason="password",
            )
        try:
            _add_chapter(text, package.read(name), titles.get(name, ""))
        except UnreadableError as error:
            problems.append(Problem("", 0, f"{name} in it was left out: {error}"))
    if problems and not text.length:
        raise UnreadableError(problems[0].message)
    return text.content("chapter", properties.title, problems)


def _add_chapter(text: PackedText, data: bytes, title: str) -> None:
    text.start_place()
    if not data:
        return
    source = decode(data, use_declared=True).text
    content = read_html(source)
    start = text.length
    first = next(iter(content.blocks), None)
    if title and first is not None and first.kind != "heading":
        text.add(title, "heading", 1)
    base = text.length
    for block in content.blocks:
        text.blocks.add(base + block.start, base + block.end, block.kind, block.level)
    if content.text:
        text.add_raw(content.text if content.text.endswith("\n") else f"{content.text}\n")
    # A part without a title: the heading of the chapter before does not go on.
    text.end_part(start, title="", row=len(text.starts))


def _chapter_titles(package: XmlPackage, book: _BookHandler, root: str) -> dict[str, str]:
    """The first entry of the table of contents for each file."""
    titles: dict[str, str] = {}
    for href, media_type, properties in book.items.values():
        is_nav = "nav" in properties.split()
        if not is_nav and media_type != _NCX:
            continue
        name = resolve(root, href)
        try:
            source = decode(package.read(name), use_declared=True).text
        except UnreadableError:
            continue
        label = ""
        for entry in (_NAV_ENTRY if is_nav else _NCX_ENTRY).finditer(source):
            target = entry["double"] or entry["single"]
            label = label if entry["label"] is None else _plain(entry["label"])
            if target and label:
                titles.setdefault(resolve(name, unescape(target)), label)
    return titles


def _plain(label: str) -> str:
    return " ".join(unescape(_TAG.sub("", label)).split())


class _AttributeHandler(XmlHandler):
    """Collects one attribute of the elements of a name."""

    def __init__(self, element: str, attribute: str) -> None:
        self.values: list[str] = []
        self._element = element
        self._attribute = attribute

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == self._element and attributes.get(self._attribute):
            self.values.append(attributes[self._attribute])


class _BookHandler(XmlHandler):
    """The files of a book by id, and the reading order."""

    def __init__(self) -> None:
        self.items: dict[str, tuple[str, str, str]] = {}
        self.spine: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "item":
            self.items[attributes.get("id", "")] = (
                attributes.get("href", ""),
                attributes.get("media-type", ""),
                attributes.get("properties", ""),
            )
        elif name == "itemref":
            self.spine.append(attributes.get("idref", ""))
