"""
Bytes to text, without guessing where guessing would be wild.

A byte-order mark decides; then UTF-8, if every byte is; then what an html file says of itself; then
a detector, where it recognises a language or an East Asian encoding; then Windows-1252 for text
that is ASCII but for a few bytes. Everything else is refused, and so is what is no text at all.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

from .document import UnreadableError

__all__ = [
    "decode",
]

_MARKS = (  # UTF-32's little-endian mark begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SIGNATURES = (
    (b"%PDF-", "a pdf"),
    (b"PK\x03\x04", "a zip archive or an office document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or protected office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstandard data"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"\x7fELF", "a program"),
)
_HEAD = 2**16
_SAMPLE = 2**15  # bytes on either side of the first one that is not UTF-8
_CONTROLS = bytes({*range(9), *range(14, 27), 28, 29, 30, 31, 127})
_DECLARED = re.compile(
    rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I
)
_CERTAIN = 0.2  # coherence with a language; see research/decisions/reading-files.md
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WIDE_ENOUGH = 10  # East Asian letters after which chance is no explanation
_MULTIBYTE = re.compile(r"big5|gb|hz|cp9[345]|euc|shift|iso2022|johab|utf")


def decode(data: bytes, *, declared: bool = False) -> tuple[str, str]:
    """The text and the codec that gave it; `declared` looks for a charset inside, as html has."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _decode_marked(data, codec), codec
    _refuse_binary(data)
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        first = error.start
    named = _declared(data) if declared else None
    codec = named if named and _fits(data, named) else _detect(data, first)
    try:
        return data.decode(codec), codec
    except UnicodeDecodeError as error:
        raise _unknown(data, first) from error


def _decode_marked(data: bytes, codec: str) -> str:
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"It starts as {codec.upper().removesuffix('-SIG')} and does not go on so. "
            "Save it as UTF-8."
        ) from error


def _refuse_binary(data: bytes) -> None:
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            raise UnreadableError(f"It is named as text and holds {name}. Give it its own suffix.")
    head = data[:_HEAD]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if b"\0" in head or data.count(b"\0") * 1000 > len(data) or controls * 50 > len(head):
        raise UnreadableError(
            "It is named as text and holds binary data. Leave it out or convert it."
        )


def _declared(data: bytes) -> str | None:
    found = _DECLARED.search(data, 0, 2048)
    try:
        return codecs.lookup(found[1].decode("ascii")).name if found else None
    except (LookupError, UnicodeDecodeError):
        return None


def _fits(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except (UnicodeError, LookupError):  # LookupError: a codec from bytes to bytes
        return False
    return True


def _detect(data: bytes, first: int) -> str:
    """The codec of bytes that are not UTF-8 from `first` on."""
    import charset_normalizer as detector  # here, for most files never need it

    start = data.rfind(b"\n", 0, max(first - _SAMPLE, 0)) + 1
    sample = data[start : first + _SAMPLE]
    matches = detector.from_bytes(sample)
    best = matches.best()
    if best is not None:
        wide = _MULTIBYTE.match(best.encoding) and len(_WIDE.findall(str(best))) >= _WIDE_ENOUGH
        if wide or best.coherence >= _CERTAIN:
            return _commonest(matches, best)
    high = len(sample) - len(sample.translate(None, bytes(range(128, 256))))
    if high * 4 <= len(sample) and _fits(data, "cp1252"):
        return "cp1252"
    raise _unknown(data, first)


def _commonest(matches: Any, best: Any) -> str:
    """Windows-1252, where it reads the sample as well as the best does, for it is so much used."""
    for match in matches:
        as_good = match.chaos <= best.chaos and match.coherence >= best.coherence
        if as_good and "cp1252" in match.could_be_from_charset:
            return "cp1252"
    return str(best.encoding)


def _unknown(data: bytes, first: int) -> UnreadableError:
    line = data.count(b"\n", 0, first) + 1
    return UnreadableError(
        f"Byte 0x{data[first]:02x} at offset {first:,} is not UTF-8, and no other encoding fits. "
        "Save it as UTF-8.",
        line=line,
    )
