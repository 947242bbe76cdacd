"""
Decode the bytes of a text file, and refuse rather than guess wildly.

In this order: a byte-order mark; UTF-8, if all bytes are valid; the charset that an HTML file
declares; UTF-8 with a few damaged bytes; a Windows code page in which the letters are those of one
language; a detector, if it recognizes a language or an East Asian encoding; Windows-1252 for text
that is ASCII except for a few bytes. Everything else is refused, and so is binary data.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from ...errors import Problem
from .document import UnreadableError

__all__ = [
    "DecodedText",
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
_MIN_VALID_SHARE = 2  # letters beyond ASCII that are valid UTF-8, for each byte that is not
_LATIN_ALPHABETS = {  # the letters beyond ASCII of each language; the most common code page first
    "cp1252": "àâæçéèêëîïôœùûüÿ äöüßé áéíñóúü áâãàçéêíóôõúü àèéìíîòóùú åäöé æøåéö éèëïóöüêáà",
    "cp1250": "ąćęłńóśźż áčďéěíňóřšťúůýž áäčďéíĺľňóôŕšťúýž áéíóöőúüű ăâîşţ čćđšž",
    "cp1254": "çğıöşüâîûi̇",
    "cp1257": "ąčęėįšųūž āčēģīķļņšūž äöõüšž",
}
_LETTERS_OF_ALL = "ªºµ"
_MIN_FITTING_LETTERS = 0.9  # of the letters beyond ASCII; the others are in names
_SAMPLE_BYTES = 2**15  # given to the detector, on either side of the first byte that is not UTF-8
_MIN_COHERENCE = 0.2  # with a language; see research/decisions/reading-files.md
_EAST_ASIAN = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # compiled when it is needed
_MIN_EAST_ASIAN = 10  # characters, so that a few matches by coincidence do not count
_MULTIBYTE_CODEC = re.compile(r"big5|gb|hz|cp9[345]|euc|shift|iso2022|johab|utf")


class DecodedText(NamedTuple):
    """The text of a file, and how it was decoded."""

    text: str
    codec: str
    problems: tuple[Problem, ...] = ()
    """At most one, without a path: bytes that could not be decoded."""


def decode(data: bytes, *, use_declared: bool = False) -> DecodedText:
    """The text of a file. `use_declared` reads the charset declared inside, as in HTML."""
    for mark, codec in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return DecodedText(_decode_marked(data, codec), codec)
    refuse_binary(data)
    try:
        return DecodedText(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as error:
        first = error.start
    declared = _declared_codec(data) if use_declared else None
    if declared and _decodes(data, declared):
        return DecodedText(data.decode(declared), declared)
    damaged = _damaged_utf8(data, first)
    if damaged is not None:
        return damaged
    codec = _detect(data, first)
    try:
        return DecodedText(data.decode(codec), codec)
    except UnicodeDecodeError as error:
        raise _unknown_encoding(data, first) from error


def _damaged_utf8(data: bytes, first: int) -> DecodedText | None:
    """
    The text with U+FFFD for bytes that are not UTF-8; None if that is not what the data is.

    In another encoding, hardly any byte above 127 is part of a valid sequence of UTF-8.
    """
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    if _MIN_VALID_SHARE * bad > len(text) - len(text.encode("ascii", "ignore")) - bad:
        return None
    what = "1 byte is" if bad == 1 else f"{bad:,} bytes are"
    message = f"{what} not UTF-8 and read as \ufffd, 0x{data[first]:02x} first. Save it as UTF-8."
    return DecodedText(text, "utf-8", (Problem("", data.count(b"\n", 0, first) + 1, message),))


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
    start = data.rfind(b"\n", 0, max(first - _SAMPLE_BYTES, 0)) + 1
    sample = data[start : first + _SAMPLE_BYTES]
    high = len(sample) - len(sample.translate(None, bytes(range(128, 256))))
    is_latin = high * 4 <= len(sample)
    codec = _latin_code_page(sample) if is_latin else None
    if codec is not None and _decodes(data, codec):
        return codec
    import charset_normalizer as detector  # imported here because most files do not need it

    best = detector.from_bytes(sample).best()
    if best is not None:
        east_asian = (
            _MULTIBYTE_CODEC.match(best.encoding)
            and len(re.findall(_EAST_ASIAN, str(best))) >= _MIN_EAST_ASIAN
        )
        if east_asian or best.coherence >= _MIN_COHERENCE:
            return str(best.encoding)
    if is_latin and _decodes(data, "cp1252"):
        return "cp1252"
    raise _unknown_encoding(data, first)


def _latin_code_page(sample: bytes) -> str | None:
    """The code page in which most letters are those of one language; of equal ones, the first."""
    best, most = None, _MIN_FITTING_LETTERS
    for codec, alphabets in _LATIN_ALPHABETS.items():
        text = sample.decode(codec, "replace")
        letters = [each for each in text if each > "\x7f" and each.isalpha()]
        if "\ufffd" in text or not letters:
            continue
        for alphabet in alphabets.split():
            known = {*alphabet, *alphabet.upper(), *_LETTERS_OF_ALL}
            share = sum(each in known for each in letters) / len(letters)
            if share > most:
                best, most = codec, share
    return best


def _unknown_encoding(data: bytes, first: int) -> UnreadableError:
    line = data.count(b"\n", 0, first) + 1
    return UnreadableError(
        f"Byte 0x{data[first]:02x} at offset {first:,} is not UTF-8, and no other encoding fits. "
        "Save it as UTF-8.",
        line=line,
    )
