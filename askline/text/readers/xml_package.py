"""
Zip archives of XML files, as the office formats and EPUB use them, unpacked within limits.

Uses zipfile and expat of the standard library. Only the members that a reader asks for are
unpacked, up to a limit in bytes. A document type declaration is refused, because entity expansion
attacks and external entities need one.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import unquote
from xml.parsers import expat

from ...errors import Problem
from .document import Blocks, Content, DocumentPart, UnreadableError
from .kinds import BlockKind, PlaceUnit

__all__ = [
    "PackedText",
    "TitleHandler",
    "XmlHandler",
    "XmlPackage",
    "read_package",
    "resolve",
]

_Result = TypeVar("_Result")

_OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # of old and of encrypted office files
_CHUNK_BYTES = 2**16
_MAX_TAG_BYTES = 2**24
_MAX_RATIO = 100  # of the unpacked to the packed size; text reaches about 20
_MIN_RATIO_BYTES = 2**25  # below this unpacked size, the ratio does not matter
_ENCRYPTED_FLAG = 0x1


class XmlHandler:
    """Receives the elements of an XML file; names come without their namespaces."""

    keeps_prefixes = False
    """Whether attributes keep their prefixes, to tell `id` from `r:id`."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An opening tag."""

    def end(self, name: str) -> None:
        """A closing tag."""

    def characters(self, text: str) -> None:
        """Text between tags."""


class TitleHandler(XmlHandler):
    """Reads the first title in the properties of a file."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._inside = False
        self._is_done = False

    @property
    def title(self) -> str:
        return " ".join("".join(self._pieces).split())

    def start(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002
        self._inside = name == "title" and not self._is_done

    def end(self, name: str) -> None:  # noqa: ARG002
        self._is_done = self._is_done or (self._inside and bool(self.title))
        self._inside = False

    def characters(self, text: str) -> None:
        if self._inside:
            self._pieces.append(text)


class PackedText:
    """Collects the text of a packed format, whose places are offsets in the text itself."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.starts = array("I")
        self.parts: list[DocumentPart] = []
        self.length = 0
        self._pieces: list[str] = []

    def start_place(self) -> None:
        """The next block is on a new page, slide, sheet or chapter."""
        self.starts.append(self.length)

    def add(self, text: str, kind: BlockKind = "text", level: int = 0) -> None:
        """Append a block, without the white space at its ends."""
        text = text.strip()
        if text:
            self.blocks.add(self.length, self.length + len(text), kind, level)
            self.add_raw(f"{text}\n")

    def add_raw(self, text: str) -> None:
        """Append text whose blocks the caller adds."""
        self._pieces.append(text)
        self.length += len(text)

    def end_part(self, start: int, *, title: str, row: int, part_id: str = "") -> None:
        """Everything from `start` on is one part; nothing happens if there is no text."""
        if self.length > start:
            self.parts.append(DocumentPart(start, self.length - 1, part_id, title, row))

    def content(
        self, unit: PlaceUnit, title: str = "", problems: Iterable[Problem] = ()
    ) -> Content:
        """Everything that was added."""
        return Content(
            "".join(self._pieces),
            self.blocks,
            unit,
            self.starts,
            title,
            parts=tuple(self.parts),
            problems=tuple(problems),
        )


class _RelationsHandler(XmlHandler):
    """The targets of the relations of a part, by their ids, and the type of each."""

    def __init__(self) -> None:
        self.targets: dict[str, tuple[str, str]] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.targets[attributes.get("Id", "")] = kind, attributes.get("Target", "")


class XmlPackage:
    """The members of an archive. `format_name` is for messages: `DOCX`."""

    def __init__(
        self, archive: zipfile.ZipFile, format_name: str, packed_bytes: int, max_bytes: int
    ) -> None:
        self.names = set(archive.namelist())
        self._archive = archive
        self._format = format_name
        self._packed_bytes = packed_bytes
        self._max_bytes = max_bytes
        self._bytes_left = max_bytes

    def require(self, name: str) -> None:
        """UnreadableError if a member is missing that every file of the format has."""
        if name not in self.names:
            raise UnreadableError(
                f"It is a zip archive without {name}, so it is not {_article(self._format)} file. "
                "Give it the suffix of its format."
            )

    def read(self, name: str) -> bytes:
        """The content of a member; empty if it is missing."""
        return b"".join(self._chunks(name, lambda: 0)) if name in self.names else b""

    def parse(self, name: str, handler: XmlHandler) -> None:
        """Pass the elements of a member to the handler; nothing happens if it is missing."""
        if name not in self.names:
            return
        # Without namespaces: expat would repeat the address of the namespace in every name, and an
        # address can have a million characters.
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartElementHandler = lambda name, attributes: handler.start(
            _local_name(name),
            attributes
            if handler.keeps_prefixes
            else {_local_name(key): value for key, value in attributes.items()},
        )
        parser.EndElementHandler = lambda name: handler.end(_local_name(name))
        parser.CharacterDataHandler = handler.characters
        fed = 0

        def waiting() -> int:
            return fed - max(parser.CurrentByteIndex, 0)

        try:
            for chunk in self._chunks(name, waiting):
                parser.Parse(chunk)
                fed += len(chunk)
                if waiting() > _MAX_TAG_BYTES:
                    raise UnreadableError(
                        f"{name} in it has a tag of more than {_MAX_TAG_BYTES:,} bytes, as no "
                        f"{self._format} file does, and is refused for safety."
                    )
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise UnreadableError(f"{name} in it is damaged: {error}. Get it again.") from error

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """The relations of a member by id: their type and the member that they lead to."""
        folder, base = posixpath.split(name)
        handler = _RelationsHandler()
        self.parse(f"{folder}/_rels/{base}.rels", handler)
        return {
            each: (kind, resolve(name, target)) for each, (kind, target) in handler.targets.items()
        }

    def _chunks(self, name: str, waiting: Callable[[], int]) -> Iterator[bytes]:
        """
        The content of a member in pieces, within the limits.

        `waiting` is the number of bytes of an unfinished tag. Expat reads it again from its start
        with every chunk; chunks as long as the tag so far keep the time linear.
        """
        info = self._archive.getinfo(name)
        if info.flag_bits & _ENCRYPTED_FLAG:
            raise UnreadableError(
                "It has a password. Save it without a password.", reason="password"
            )
        # The archive may state any size, also one larger than itself.
        max_unpacked = max(
            _MIN_RATIO_BYTES, min(info.compress_size, self._packed_bytes) * _MAX_RATIO
        )
        too_large = UnreadableError(
            f"{name} in it unpacks to more than {_MAX_RATIO} times its size, as no {self._format} "
            "file does, and is refused for safety."
        )
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise zipfile.BadZipFile(
                f"compression {info.compress_type}, which no {self._format} file has"
            )
        if info.file_size > max_unpacked:  # before any of it is unpacked
            raise too_large
        size = 0
        with self._archive.open(name) as stream:
            while chunk := stream.read(
                min(max(_CHUNK_BYTES, waiting()), max(_MAX_TAG_BYTES - waiting() + 1, 1))
            ):
                size += len(chunk)
                self._bytes_left -= len(chunk)
                if self._bytes_left < 0:
                    raise UnreadableError(
                        f"Its text unpacks to more than {self._max_bytes:,} bytes. Split it.",
                        reason="too large",
                    )
                yield chunk
                if size > max_unpacked:
                    raise too_large

    def _refuse_doctype(self, *_: object) -> None:
        raise UnreadableError(
            f"It declares a document type, as no {self._format} file does, and is refused for "
            "safety."
        )


def read_package(
    data: bytes,
    format_name: str,
    *,
    max_bytes: int,
    old_suffix: str,
    read: Callable[[XmlPackage], _Result],
) -> _Result:
    """
    Open an archive and read it; whatever zipfile raises is a message for the user.

    `old_suffix` is the suffix of the format before XML, such as `.doc` for `DOCX`.
    """
    if data.startswith(_OLE_SIGNATURE):
        raise UnreadableError(
            f"It is a {old_suffix} file or has a password. "
            f"Save it as .{format_name.lower()} without a password.",
            reason="password",
        )
    with _zip_errors(format_name), zipfile.ZipFile(io.BytesIO(data)) as archive:
        return read(XmlPackage(archive, format_name, len(data), max_bytes))


def resolve(base: str, target: str) -> str:
    """The name of the member that a member refers to by a relative or absolute path."""
    path = unquote(target.partition("#")[0])
    if path.startswith("/"):
        return posixpath.normpath(path.lstrip("/"))
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path))


@contextmanager
def _zip_errors(format_name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, KeyError) as error:
        raise UnreadableError(
            f"It is not {_article(format_name)} file, or it is damaged or truncated. Get it again."
        ) from error


def _article(name: str) -> str:
    """`a DOCX`, `an EPUB`."""
    return f"{'an' if re.match('[AEIOX]|ODT', name) else 'a'} {name}"


def _local_name(name: str) -> str:
    return name.rpartition(":")[2]
