"""
The format of a file: by its name, or by its first bytes.

A suffix that is not known here says nothing: such a file is read as text if its bytes are text.
A file compressed by gzip has the format of the file inside: `ls.1.gz` is a manual page.
"""

from __future__ import annotations

import os
import re
import zlib
from typing import NamedTuple

from .document import UnreadableError
from .kinds import FileKind
from .text_encoding import refuse_binary

__all__ = [
    "BINARY_SUFFIXES",
    "LANGUAGES",
    "SUFFIXES",
    "UNSUPPORTED_NAMES",
    "UNSUPPORTED_SUFFIXES",
    "SniffedKind",
    "decompressed_name",
    "file_kind",
    "is_gzip",
    "language_suffix",
    "sniff",
    "sniff_file",
]

LANGUAGES: dict[str, str] = {
    **dict.fromkeys(("py", "pyi", "pyw", "pyx"), "python"),
    **dict.fromkeys(
        """c h cc cpp cxx hh hpp hxx m mm java js mjs cjs jsx ts mts cts tsx go cs kt kts swift
        scala sc dart groovy gradle proto zig v d vala glsl cu ino css scss less""".split(),
        "c",
    ),
    "rs": "rust",
    "php": "php",
    **dict.fromkeys("sh bash zsh fish ksh mk cmake nix tcl awk jl cr ex exs".split(), "shell"),
    **dict.fromkeys(("rb", "rake", "gemspec"), "ruby"),
    **dict.fromkeys(("pl", "pm"), "perl"),
    "r": "r",
    **dict.fromkeys(("sql", "ddl"), "sql"),
    "lua": "lua",
    **dict.fromkeys(("hs", "elm", "purs"), "haskell"),
    **dict.fromkeys(("ps1", "psm1"), "powershell"),
    **dict.fromkeys(("lisp", "cl", "el", "clj", "cljs", "scm", "rkt", "asm"), "lisp"),
    **dict.fromkeys(("erl", "hrl"), "erlang"),
    **dict.fromkeys(("ml", "mli", "pas"), "ocaml"),
    **dict.fromkeys(("f90", "f95", "f03"), "fortran"),
    **dict.fromkeys(("tf", "hcl"), "shell"),
}
"""The family of languages, in `source_code`, of each suffix of source code."""

_SUFFIXES_BY_KIND: dict[FileKind, str] = {
    "text": "txt text",
    "markdown": "md markdown mkd mkdn mdwn mdown mdx rmd qmd",
    "rst": "rst rest",
    "asciidoc": "adoc asciidoc asc",
    "org": "org",
    "latex": "tex latex ltx",
    "notebook": "ipynb",
    "subtitles": "srt vtt",
    "manpage": "man 1 2 3 4 5 6 7 8",
    "mail": "eml mbox",
    "html": "html htm xhtml shtml vue svelte",
    "pdf": "pdf",
    "docx": "docx docm dotx",
    "pptx": "pptx pptm ppsx",
    "xlsx": "xlsx xlsm",
    "opendocument": "odt ott odp otp ods ots",
    "epub": "epub",
    "rtf": "rtf",
    "jsonl": "jsonl ndjson",
    "csv": "csv tsv tab",
    "json": "json jsonc json5 geojson jsonld webmanifest",
    "yaml": "yaml yml",
    "settings": "toml ini cfg conf properties desktop",
    "xml": "xml docbook dbk dita ditamap tei rss atom xsd xsl xslt wsdl opml fodt fb2 resx xlf "
    "xliff plist",
    "log": "log",
    "source": " ".join(LANGUAGES),
}
SUFFIXES: dict[str, FileKind] = {
    f".{suffix}": kind
    for kind, suffixes in _SUFFIXES_BY_KIND.items()
    for suffix in suffixes.split()
}
"""The format for each file name suffix."""

_NAMES: dict[str, str] = {
    **dict.fromkeys(("makefile", "gnumakefile", "dockerfile", "cmakelists.txt"), "sh"),
    **dict.fromkeys(("rakefile", "gemfile", "vagrantfile"), "rb"),
}
"""Source code by its whole name, in lower case, and the suffix of its language."""

BINARY_SUFFIXES = frozenset(
    f".{suffix}"
    for suffix in """png jpg jpeg gif bmp tif tiff webp ico icns heic avif psd ai xcf raw cr2 nef
    mp3 mp4 m4a m4v mov avi mkv webm wav flac ogg oga ogv opus aac wma wmv mpg mpeg mid
    zip tgz bz2 tbz2 xz txz zst 7z rar tar lz lz4 lzma cab iso dmg deb rpm apk jar war whl egg
    gem nupkg crate exe dll so dylib a o obj lib bin dat img class pyc pyo pyd wasm node pdb
    ttf otf woff woff2 eot pfb safetensors onnx pt pth pkl pickle npy npz h5 hdf5 tflite gguf
    mo swf blend stl glb fbx pcap keystore jks p12 der""".split()
)
"""Files that are not opened: pictures, sound, archives, programs, fonts, model weights."""
UNSUPPORTED_SUFFIXES = frozenset(
    f".{suffix}"
    for suffix in """doc dot xls ppt pps pages numbers key mobi azw azw3 djvu djv chm hlp msg pst
    wpd wps one ps eps xps oxps lit pub vsd vsdx odg odf sqlite sqlite3 db mdb accdb parquet arrow
    feather avro orc svg map lock sum tmp bak swp part""".split()
)
"""Formats without a reader, and files that programs write for themselves."""
UNSUPPORTED_NAMES = frozenset(("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml"))


class SniffedKind(NamedTuple):
    """A format, and for source code the suffix of its language."""

    kind: FileKind
    language: str = ""


_SNIFFED_BYTES = 2**13
_GZIP = zlib.MAX_WBITS | 16  # the header of gzip is expected
_SHEBANG = re.compile(
    rb"#![^\r\n]*?\b(python|bash|sh|zsh|perl|ruby|node|php|lua|Rscript|fish|ksh|dash)"
)
_INTERPRETERS = {"python": "py", "perl": "pl", "ruby": "rb", "node": "js", "php": "php"}
_INTERPRETERS |= {"lua": "lua", "Rscript": "r"}
_MANUAL = re.compile(rb"(?:(?:\.\\\"|'\\\")[^\n]*\n)*\.(?:TH|Dd) ")
_PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)


def is_gzip(path: str | os.PathLike[str]) -> bool:
    """Whether the name ends with `.gz`."""
    return os.fspath(path)[-3:].lower() == ".gz"


def decompressed_name(path: str | os.PathLike[str]) -> str:
    """The path without `.gz`; other paths as they are."""
    name = os.fspath(path)
    return name[:-3] if is_gzip(name) else name


def file_kind(path: str | os.PathLike[str]) -> FileKind | None:
    """The format that the name stands for, or None."""
    name = os.path.basename(decompressed_name(path))
    if name.lower() in _NAMES:
        return "source"
    return SUFFIXES.get(os.path.splitext(name)[1].lower())


def language_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix, without its dot, that chooses the language of source code."""
    name = os.path.basename(decompressed_name(path)).lower()
    return _NAMES.get(name) or os.path.splitext(name)[1][1:]


def sniff(data: bytes) -> SniffedKind | None:
    """The format of a file by its first bytes; None for binary data."""
    head = data[:_SNIFFED_BYTES]
    if head.startswith(b"%PDF-"):
        return SniffedKind("pdf")
    try:
        refuse_binary(head)
    except UnreadableError:
        return None
    if found := _SHEBANG.match(head):
        return SniffedKind("source", _INTERPRETERS.get(found[1].decode(), "sh"))
    if head.startswith(b"{\\rtf"):
        return SniffedKind("rtf")
    if _PAGE.match(head):
        return SniffedKind("html")
    if head.lstrip().startswith(b"<?xml"):
        return SniffedKind("xml")
    return SniffedKind("manpage" if _MANUAL.match(head) else "text")


def sniff_file(path: str | os.PathLike[str]) -> SniffedKind | None:
    """The same for a file that is opened here; of a gzip file, the first bytes inside count."""
    with open(path, "rb") as stream:
        head = stream.read(_SNIFFED_BYTES)
    if is_gzip(path):
        try:
            head = zlib.decompressobj(_GZIP).decompress(head, _SNIFFED_BYTES)
        except zlib.error:
            return None
    return sniff(head)
