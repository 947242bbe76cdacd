"""
Decode the bytes of a text file, and refuse rather than guess wildly.

In this order: a byte-order mark; UTF-8, if all bytes are valid; the charset that an HTML file
declares; a detector, if it recognizes a language or an East Asian encoding; Windows-1252 for text
that is ASCII except for a few bytes. Everything else is refused, and so is binary data.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

from .document import UnreadableError

__all__ = [
    "decode",
    "refuse_binary",
]

_BYTE_ORDER_MARKS = (  # UTF-32 before UTF-16, whose little-endian mark is a prefix of UTF-32's
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BINARY_SIGNATURES = (
    (b"%PDF-", "a PDF"),
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
_HEAD_BYTES = 2**16
_CONTROL_BYTES = bytes({*range(9), *range(14, 27), 28, 29, 30, 31, 127})
_DECLARED_CHARSET = re.compile(
    rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I
)
# Python's other codecs, such as IDNA and Punycode, are not character encodings of files, and some
# take quadratic time.
_FILE_CODEC = re.compile(
    r"(?:utf-(?:8|16|32)|ascii|iso|cp\d|windows|koi|kz|mac|ptcp|tis|hp|big5|gb|hz|euc|shift|johab)"
)
_SAMPLE_BYTES = 2**15  # given to the detector, on either side of the first byte that is not UTF-8
_MIN_COHERENCE = 0.2  # with a language; see research/decisions/reading-files.md
_EAST_ASIAN = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # compiled when it is needed
_MIN_EAST_ASIAN = 10  # characters, so that a few matches by coincidence do not count
_MULTIBYTE_CODEC = re.compile(r"big5|gb|hz|cp9[345]|euc|shift|iso2022|johab|utf")


def decode(data: bytes, *, use_declared: bool = False) -> tuple[str, str]:
    """The text and its codec. `use_declared` reads the charset declared inside, as in HTML."""
    for mark, codec in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _decode_marked(data, codec), codec
    refuse_binary(data)
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        first = error.start
    declared = _declared_codec(data) if use_declared else None
    codec = declared if declared and _decodes(data, declared) else _detect(data, first)
    try:
        return data.decode(codec), codec
    except UnicodeDecodeError as error:
        raise _unknown_encoding(data, first) from error


def _decode_marked(data: bytes, codec: str) -> str:
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        name = codec.upper().removesuffix("-SIG")
        raise UnreadableError(
            f"It has the byte-order mark of {name}, but its content is not {name}. "
            "Save it as UTF-8."
        ) from error


def refuse_binary(data: bytes) -> None:
    """UnreadableError if these are no bytes of a text without a byte-order mark."""
    for signature, name in _BINARY_SIGNATURES:
        if data.startswith(signature):
            raise UnreadableError(
                f"It contains {name} and no text. Give it the suffix of its format.",
                reason="binary",
            )
    head = data[:_HEAD_BYTES]
    controls = len(head) - len(head.translate(None, _CONTROL_BYTES))
    if b"\0" in head or data.count(b"\0") * 1000 > len(data) or controls * 50 > len(head):
        raise UnreadableError(
            "It contains binary data and no text. Leave it out or convert it.", reason="binary"
        )


def _declared_codec(data: bytes) -> str | None:
    found = _DECLARED_CHARSET.search(data, 0, 2048)
    try:
        name = codecs.lookup(found[1].decode("ascii")).name if found else ""
    except (LookupError, UnicodeDecodeError):
        return None
    return name if _FILE_CODEC.match(name) else None


def _decodes(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except (UnicodeError, LookupError):  # LookupError: a bytes-to-bytes codec such as base64
        return False
    return True


def _detect(data: bytes, first: int) -> str:
    """The codec of data whose first byte that is not UTF-8 is at `first`."""
    import charset_normalizer as detector  # imported here because most files do not need it

    start = data.rfind(b"\n", 0, max(first - _SAMPLE_BYTES, 0)) + 1
    sample = data[start : first + _SAMPLE_BYTES]
    matches = detector.from_bytes(sample)
    best = matches.best()
    if best is not None:
        east_asian = (
            _MULTIBYTE_CODEC.match(best.encoding)
            and len(re.findall(_EAST_ASIAN, str(best))) >= _MIN_EAST_ASIAN
        )
        if east_asian or best.coherence >= _MIN_COHERENCE:
            return _prefer_cp1252(matches, best)
    high = len(sample) - len(sample.translate(None, bytes(range(128, 256))))
    if high * 4 <= len(sample) and _decodes(data, "cp1252"):
        return "cp1252"
    raise _unknown_encoding(data, first)


def _prefer_cp1252(matches: Any, best: Any) -> str:
    """Windows-1252 if it fits the sample as well as the best match, because it is so common."""
    for match in matches:
        as_good = match.chaos <= best.chaos and match.coherence >= best.coherence
        if as_good and "cp1252" in match.could_be_from_charset:
            return "cp1252"
    return str(best.encoding)


def _unknown_encoding(data: bytes, first: int) -> UnreadableError:
    line = data.count(b"\n", 0, first) + 1
    return UnreadableError(
        f"Byte 0x{data[first]:02x} at offset {first:,} is not UTF-8, and no other encoding fits. "
        "Save it as UTF-8.",
        line=line,
    )
