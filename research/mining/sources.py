"""
Where the documentation comes from: packages of Debian, PyPI and npm, and copies of repositories.

Each source is unpacked into a folder of plain files; man pages are uncompressed, and template calls
are removed from Markdown. The licence of a Debian package is read from its copyright file.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .documents import clean_markup, faq_markdown

__all__ = ["Source", "document_files", "git_files", "read_sources", "unpack"]

_SUFFIXES = (
    ".md",
    ".mdx",
    ".markdown",
    ".rst",
    ".adoc",
    ".asciidoc",
    ".html",
    ".htm",
    ".txt",
    ".org",
)
_SKIP = re.compile(
    r"(?:^|/)(?:changelog|changes|news|history|copyright|license|licence|copying|authors"
    r"|todo|thanks|credits|contributors|genindex|search|py-modindex|"
    r"release|releases|release[-_ ]?notes?|whatsnew|whats[-_]new|node_modules|tests?"
    r"|_sources|blog|i18n|archive|examples?|specs?|vendor|\.github|pull_request_template"
    r"|issue_template|code_of_conduct|"
    r"fdl|gpl|lgpl|agpl|gfdl|gnu-free|security|index-all|allclasses|classes|idx|bookindex"
    r"|theindex)(?:[./_-][^/]*)?(?:/|$)",
    re.I,
)
_KEPT_OUT = re.compile(
    r"fastapi|flask|(?:^|[/_.-])git(?:[/_.-]|$)|basecamp|(?:^|/)site-policy(?:/|$)", re.I
)
"""Files about projects whose own documentation is kept for measuring, and copies of such files."""
_TRANSLATION = re.compile(
    r"/(?!en)[a-z]{2}[-_][A-Z]{2}/|"
    r"[./_-](?:ar|bg|bn|ca|cs|da|de|el|es|fa|fi|fr|gl|he|hi|hu|id|it|ja|ko|nb|nl|nn|no|pl"
    r"|pt|ro|ru|sk|sl|sr|sv|ta|th|tr|uk|vi|zh)(?:[-_][A-Za-z]{2,4})?(?:/|\.(?:html|htm|txt"
    r"|md|rst|adoc)$)"
)
_YAML_FAQ = re.compile(r"(?:faq|questions)[^/]*\.ya?ml$", re.I)
_INVARIANT = re.compile(r"(?<!no )(?<!without )(?<!any )(?<!with no )invariant section", re.I)


@dataclass(frozen=True, slots=True)
class Source:
    """One package or repository."""

    manager: str
    """`debian`, `pypi`, `npm` or `git`."""
    name: str
    product: str = ""
    """What a user calls it ("PostgreSQL"); used in questions."""
    license: str = ""
    """Empty for Debian packages, whose copyright file is read."""
    under: tuple[str, ...] = ("",)
    """Folders of the documentation."""

    @property
    def id(self) -> str:
        return f"{self.manager}:{self.name}"

    @property
    def folder_name(self) -> str:
        return re.sub(r"[^\w.+-]", "+", f"{self.manager}+{self.name}")


def read_sources(path: Path) -> list[Source]:
    """The list of sources, one per line: manager, name, licence, product, folders, by tabs."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            manager, name, license_name, product, under = (line.split("\t") + [""] * 4)[:5]
            folders = tuple(part.strip("/") for part in under.split(",")) if under else ("",)
            found.append(Source(manager, name, product, license_name, folders))
    return found


def unpack(source: Source, cache: Path, mirrors: Path) -> tuple[Path, str]:
    """The folder with the files of a source, fetched if it is not in the cache, and its licence."""
    folder = cache / "unpacked" / source.folder_name
    mark = folder / ".license"
    if not mark.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if source.manager == "git":
            _git(source, folder, mirrors)
            license_name = ""
        else:
            fetch = {"debian": _debian, "pypi": _pypi, "npm": _npm}[source.manager]
            license_name = fetch(source, folder, cache)
        mark.write_text(source.license or license_name, "utf-8")
    return folder, mark.read_text("utf-8")


def document_files(source: Source, folder: Path) -> Iterator[Path]:
    """The files of documentation, sorted; no changelogs, licences, indexes or tests."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or path.is_symlink() or _SKIP.search("/" + name):
            continue
        if _KEPT_OUT.search(name) or _TRANSLATION.search("/" + name):
            continue
        if (source.manager == "debian" and "/man/" in name) or (
            name.lower().endswith(_SUFFIXES) and name.startswith(source.under)
        ):
            yield path


def _debian(source: Source, folder: Path, cache: Path) -> str:
    store = cache / "deb"
    store.mkdir(parents=True, exist_ok=True)
    found = sorted(store.glob(f"{source.name}_*.deb"))
    if not found:
        subprocess.run(
            ["apt-get", "download", "-q", source.name], cwd=store, check=True, capture_output=True
        )
        found = sorted(store.glob(f"{source.name}_*.deb"))
    whole = cache / "whole" / source.folder_name
    shutil.rmtree(whole, ignore_errors=True)
    whole.mkdir(parents=True)
    subprocess.run(["dpkg-deb", "-x", str(found[0]), str(whole)], check=True)
    copyright_file = whole / "usr" / "share" / "doc" / source.name / "copyright"
    text = copyright_file.read_text("utf-8", "replace") if copyright_file.is_file() else ""
    for path in sorted(whole.rglob("*")):
        name = path.relative_to(whole).as_posix()
        if not path.is_file() or path.is_symlink() or path.stat().st_size > 3_000_000:
            continue
        page = re.fullmatch(r"usr/share/man/(man[1-9])/(.+)\.gz", name)
        if page:
            target = folder / "usr" / "man" / page[2]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.decompress(path.read_bytes()))
        elif name.lower().removesuffix(".gz").endswith(_SUFFIXES) and (
            "/doc/" in name or "/help/" in name or "/share/" in name
        ):
            target = folder / name.removesuffix(".gz")
            target.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes()
            target.write_bytes(gzip.decompress(data) if name.endswith(".gz") else data)
        elif name.endswith(".page"):
            _write_mallard(path, folder / (name.removesuffix(".page") + ".html"))
    shutil.rmtree(whole)
    return debian_license(text)


def debian_license(text: str) -> str:
    """The names of the licences in a Debian copyright file, most frequent first."""
    if _INVARIANT.search(" ".join(text.split())):
        return "GFDL with invariant sections"
    names = Counter(name.strip() for name in re.findall(r"^License:[ \t]*(\S.*)$", text, re.M))
    if names:
        return ", ".join(name for name, _ in names.most_common(3))[:120]
    for pattern, name in (
        (r"licenses/GPL-3", "GPL-3"),
        (r"licenses/GPL-2", "GPL-2"),
        (r"licenses/LGPL", "LGPL"),
        (r"licenses/GPL", "GPL"),
        (r"Apache License", "Apache-2.0"),
        (r"Permission is hereby granted, free of charge", "MIT"),
        (r"Redistribution and use in source and binary", "BSD"),
        (r"Permission to use, copy, modify", "ISC or similar"),
        (r"Creative Commons", "CC"),
        (r"Free Documentation License", "GFDL"),
        (r"public domain", "public domain"),
        (r"Artistic", "Artistic"),
    ):
        if re.search(pattern, text):
            return name
    return ""


def _write_mallard(path: Path, target: Path) -> None:
    """Help pages of GNOME as HTML: titles as headings by their depth."""
    text = path.read_text("utf-8", "replace")
    text = re.sub(r"<info>.*?</info>|<comment>.*?</comment>|<!--.*?-->", "", text, flags=re.S)
    depth = 1
    out = []
    for token in re.split(r"(<[^>]+>)", text):
        tag = re.match(r"<(/?)([\w:]+)", token)
        if not tag:
            out.append(token)
            continue
        close, name = tag[1], tag[2]
        if name == "section":
            depth += -1 if close else 1
        elif name in ("title",):
            out.append(f"<{close}h{min(depth, 6)}>")
        elif name in ("p", "item", "screen", "code", "td", "tr", "table"):
            out.append(f"<{close}{ {'item': 'li', 'screen': 'pre'}.get(name, name) }>")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"<html><body>{''.join(out)}</body></html>", "utf-8")


def _write(data: bytes, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix in (".md", ".mdx", ".markdown"):
        target = target.with_suffix(".md")
        data = clean_markup(data.decode("utf-8", "replace")).encode()
    target.write_bytes(data)


def git_files(
    repository: Path, revision: str, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, bytes]]:
    """The wanted files of a commit of a copy, by path; blobs that the copy lacks are left out."""
    git = ["git", "-C", str(repository)]
    listing = subprocess.run(
        [*git, "ls-tree", "-r", "-z", revision], check=True, capture_output=True
    ).stdout
    found: list[tuple[str, str]] = []
    for entry in listing.decode("utf-8", "replace").split("\0"):
        information, _, name = entry.partition("\t")
        if name and wanted(name):
            found.append((information.split()[2], name))
    batch = subprocess.run(
        [*git, "cat-file", "--batch"],
        input="".join(f"{blob}\n" for blob, _ in found).encode(),
        check=True,
        capture_output=True,
    ).stdout
    at = 0
    for _, name in found:
        end = batch.index(b"\n", at)
        header = batch[at:end].split()
        at = end + 1
        if len(header) != 3 or header[1] != b"blob":  # "<id> missing"
            continue
        yield name, batch[at : at + int(header[2])]
        at += int(header[2]) + 1


def _git(source: Source, folder: Path, mirrors: Path) -> None:
    """Files of documentation of the newest commit of a bare copy."""

    def is_documentation(name: str) -> bool:
        readable = name.lower().endswith(_SUFFIXES) or _YAML_FAQ.search(name)
        return bool(readable) and name.startswith(source.under) and not _SKIP.search("/" + name)

    repository = mirrors / source.name.replace("/", "+") / "repo"
    for name, data in git_files(repository, "HEAD", is_documentation):
        if _YAML_FAQ.search(name):
            _write(
                faq_markdown(data.decode("utf-8", "replace")).encode(),
                (folder / name).with_suffix(".md"),
            )
        elif len(data) < 1_500_000:
            _write(data, folder / name)


def _pypi(source: Source, folder: Path, cache: Path) -> str:
    store = cache / "pypi" / source.name
    store.mkdir(parents=True, exist_ok=True)
    if not any(store.iterdir()):
        subprocess.run(
            [
                "pip",
                "download",
                "-q",
                "--no-binary",
                ":all:",
                "--no-deps",
                "-d",
                str(store),
                source.name,
            ],
            check=False,
            capture_output=True,
        )
    license_name = ""
    for archive in sorted(store.iterdir()):
        for name, data in _members(archive):
            inner = name.partition("/")[2]
            if inner == "PKG-INFO":
                license_name = _package_license(data.decode("utf-8", "replace"))
            elif inner.lower().endswith(_SUFFIXES[:-1]) and inner.startswith(source.under):
                _write(data, folder / inner)
    return license_name


def _package_license(text: str) -> str:
    head = text.split("\n\n", 1)[0]
    found = (
        re.search(r"^License-Expression: (.+)$", head, re.M)
        or re.search(r"^Classifier: License :: (?:OSI Approved :: )?(.+)$", head, re.M)
        or re.search(r"^License: (.+)$", head, re.M)
    )
    return found[1].strip()[:60] if found else ""


def _npm(source: Source, folder: Path, cache: Path) -> str:
    store = cache / "npm" / re.sub(r"[^\w.-]", "+", source.name)
    store.mkdir(parents=True, exist_ok=True)
    if not any(store.iterdir()):
        subprocess.run(
            ["npm", "pack", "--silent", source.name], cwd=store, check=False, capture_output=True
        )
    license_name = ""
    for archive in sorted(store.iterdir()):
        for name, data in _members(archive):
            inner = name.partition("/")[2]
            if inner == "package.json":
                license_name = str(json.loads(data).get("license", ""))[:60]
            elif inner.lower().endswith((".md", ".markdown")) and inner.startswith(source.under):
                _write(data, folder / inner)
    return license_name


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                if not name.endswith("/"):
                    yield name, packed.read(name)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            stream = (
                tar.extractfile(member) if member.isfile() and member.size < 1_500_000 else None
            )
            if stream:
                yield member.name, stream.read()
