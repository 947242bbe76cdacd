"""
Build the document sets of `research.benchmarks.document_questions` from pinned public packages.

    python -m research.document_questions.build DIR [--only SET ...] [--mirror DIR]

Needs apt-get and dpkg-deb (Debian packages), pip (PyPI), npm, and git. Every set becomes the folder
DIR/SET; a folder that exists is kept. The documents are not part of this project: each keeps the
licence of its package.
"""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

Kind = str
"""`deb`, `git`, `npm` or `pypi`."""


@dataclass(frozen=True)
class Origin:
    """A package or repository, and its pinned version or commit."""

    kind: Kind
    name: str
    version: str


@dataclass(frozen=True)
class DocumentSet:
    """Which files of which package make a set."""

    name: str
    origin: Origin
    include: tuple[str, ...]
    """Shell patterns over the whole path inside the package; `*` matches slashes too."""
    exclude: tuple[str, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    """Regular expressions and what replaces them, applied to the path in this order."""
    zipped: bool = False
    """The package has unpacked epub books: each folder that contains `mimetype` is one book."""


SETS = (
    DocumentSet(
        "restic",
        Origin("git", "restic/restic", "a80be1478a4c537f8396e0db2b05120aa78f11e0"),
        ("doc/*.rst", "doc/man/*.1"),
        rename=(("^doc/", ""),),
    ),
    DocumentSet(
        "klipper",
        Origin("git", "Klipper3d/klipper", "84104bbbd7625d28b4eaaad83f4562972460ecd9"),
        ("docs/*.md",),
        exclude=("docs/*/*",),
        rename=(("^docs/", ""),),
    ),
    DocumentSet(
        "nut",
        Origin("git", "networkupstools/nut", "6c63f7745ab58a8bde1725d94551b912c550ac58"),
        ("docs/*.txt", "README.adoc", "INSTALL.nut.adoc", "UPGRADING.adoc", "scripts/*.adoc"),
        exclude=("docs/man/libnut*", "docs/man/nutscan_*", "docs/man/upscli_*", "docs/*/*/*"),
        # These text files are AsciiDoc: the project converts them with a2x.
        rename=(("^docs/", ""), (r"\.txt$", ".adoc")),
    ),
    DocumentSet(
        "sqlite",
        Origin("deb", "sqlite3-doc", "3.40.1-2+deb12u2"),
        ("usr/share/doc/sqlite3/*.html",),
        # Generated lists: every requirement, link, keyword and function of the other pages.
        exclude=(
            "usr/share/doc/sqlite3/*/*",
            "*/requirements.html",
            "*/doc_*_crossref.html",
            "*/syntaxdiagrams.html",
            "*/capi3ref.html",
            "*/keyword_index.html",
        ),
        rename=(("^usr/share/doc/sqlite3/", ""),),
    ),
    DocumentSet(
        "debian-faq",
        Origin("deb", "debian-faq", "11.1"),
        ("usr/share/doc/debian/FAQ/*.en.html",),
        rename=(("^usr/share/doc/debian/FAQ/", ""), (r"\.en\.html$", ".html")),
    ),
    DocumentSet(
        "debian-policy",
        Origin("deb", "debian-policy", "4.6.2.0"),
        (
            "usr/share/doc/debian-policy/policy.epub",
            "usr/share/doc/debian-policy/fhs/fhs-3.0.pdf.gz",
            "usr/share/doc/debian-policy/menu-policy.txt.gz",
            "usr/share/doc/debian-policy/perl-policy.txt.gz",
            "usr/share/doc/debian-policy/copyright-format-1.0.txt.gz",
            "usr/share/doc/debian-policy/debconf_specification.txt.gz",
        ),
        rename=(("^usr/share/doc/debian-policy/(fhs/)?", ""),),
    ),
    DocumentSet(
        "site-policy",
        Origin("git", "github/site-policy", "12992597c5d9d8cfc006693c54b9609d9993bc99"),
        ("Policies/*.md",),
        rename=(("^Policies/", ""),),
    ),
    DocumentSet(
        "thinkos",
        Origin("git", "AllenDowney/ThinkOS", "5ab731d25042d4aab455566dc7698fdd31373c75"),
        ("book/book.tex", "code/*.c", "code/*.h", "README.md"),
    ),
    DocumentSet(
        "lightkurve",
        Origin("git", "lightkurve/lightkurve", "3da61218ee00c3a30ac7773a263d61ab270b7336"),
        ("docs/source/*.ipynb", "docs/source/*.rst", "README.rst", "src/lightkurve/*.py"),
        exclude=("docs/source/reference/*", "*/tests/*"),
        rename=(("^docs/source/", ""),),
    ),
    DocumentSet(
        "captions",
        Origin("git", "3b1b/captions", "9aef876b0ed62ce4f099c0a2f0e7a52e8d1058c9"),
        ("201[79]/*/english/captions.srt", "202[023]/*/english/captions.srt"),
        exclude=("*/ldm-*",),
        rename=(("/english/captions", ""),),
    ),
    DocumentSet(
        "asvs",
        Origin("git", "OWASP/ASVS", "fe04986146b0db0a54d3eb2b9c755c78874ce910"),
        (
            "5.0/docs_en/OWASP_*_5.0.0_en.docx",
            "3.0/spreadsheets/*.xlsx",
            "4.0/presentations/MyDevSecOps*.pptx",
            "4.0/presentations/NullCon*.pptx",
        ),
    ),
    DocumentSet(
        "mu",
        Origin("git", "djcb/mu", "1a99e705a3cc6303b84b47e30cd312d64d8639f6"),
        ("*.org",),
        exclude=("testdata/*", "lib/*"),
    ),
    DocumentSet(
        "mails",
        Origin("git", "notmuch/notmuch", "fdc9c75388b1ed12662e1cdb73b48b6d809ef5d8"),
        ("test/corpora/default/*", "test/corpora/lkml/*"),
        rename=(("^test/corpora/", ""), ("(cur|new)/", ""), (r"^(.*?)(:2,\w*)?$", r"\1.eml")),
    ),
    DocumentSet(
        "logs",
        Origin("git", "logpai/loghub", "dd61d0952749ee7963bde24220d1be5ede023033"),
        ("*_2k.log", "*/README.md", "README.md"),
    ),
    DocumentSet(
        "manpages",
        Origin("deb", "manpages", "6.03-2"),
        ("usr/share/man/man[457]/*.gz",),
        rename=(("^usr/share/man/", ""),),
    ),
    DocumentSet(
        "books",
        Origin("git", "IDPF/epub3-samples", "7651e2002b631e6577fadf7e9e0692fa6efb8746"),
        ("30/moby-dick/*", "30/childrens-literature/*", "30/accessible_epub_3/*"),
        rename=(("^30/", ""),),
        zipped=True,
    ),
    DocumentSet(
        "cloudevents",
        Origin("git", "cloudevents/spec", "c2845a49bc9831be02f305a4a792401b932d77d4"),
        ("*.md", "*.yaml", "*.json", "*.pptx", "docs/*.pdf"),
        exclude=("tools/*", ".github/*", "*/languages/*"),
    ),
    DocumentSet(
        "luxon",
        Origin("npm", "luxon", "3.7.2"),
        ("package/src/*.js", "package/*.md"),
        rename=(("^package/", ""),),
    ),
    DocumentSet(
        "tenacity",
        Origin("pypi", "tenacity", "9.2.1"),
        ("*/doc/*.rst", "*/tenacity/*.py", "*/README.rst", "*/releasenotes/*.yaml"),
        rename=(("^[^/]*/", ""),),
    ),
    DocumentSet(
        "odfpy",
        Origin("pypi", "odfpy", "1.4.1"),
        ("*.odt", "*.md", "*/README", "*/contrib/*.txt", "*/contrib/*/README*", "*/odf/*.py"),
        exclude=("*/tests/*",),
        rename=(("^[^/]*/", ""),),
    ),
    DocumentSet(
        "exoplanets",
        Origin(
            "git",
            "OpenExoplanetCatalogue/open_exoplanet_catalogue",
            "a858d464b26038601b088837d663b5f8f2fb9a11",
        ),
        ("systems/HD 1*.xml", "systems/Gliese*.xml", "systems/GJ*.xml", "README.md"),
        rename=(("^systems/", ""),),
    ),
)


def build(chosen: DocumentSet, target: Path, mirror: Path | None) -> int:
    """Write the files of a set to the folder `target`, whole or not at all; returns how many."""
    half = target.with_name(target.name + ".part")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    count = 0
    books: dict[str, list[tuple[str, bytes]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for path, read in _files(chosen.origin, Path(scratch), mirror):
            if not _is_chosen(path, chosen):
                continue
            content = read()
            if content is None:
                print(f"{chosen.name}: {path} is not in the mirror", file=sys.stderr)
                continue
            if path.endswith(".gz"):
                path, content = path.removesuffix(".gz"), gzip.decompress(content)
            for pattern, replacement in chosen.rename:
                path = re.sub(pattern, replacement, path)
            if chosen.zipped:
                book, _, inner = path.partition("/")
                books.setdefault(book, []).append((inner, content))
                continue
            place = half / PurePosixPath(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            count += 1
    for book, parts in books.items():
        _write_epub(half / f"{book}.epub", parts)
    if not count + len(books):
        raise SystemExit(f"{chosen.name}: no file of {chosen.origin} matches {chosen.include}.")
    half.rename(target)
    return count + len(books)


def _is_chosen(path: str, chosen: DocumentSet) -> bool:
    included = any(fnmatchcase(path, pattern) for pattern in chosen.include)
    return included and not any(fnmatchcase(path, pattern) for pattern in chosen.exclude)


Read = Callable[[], bytes | None]


def _files(origin: Origin, scratch: Path, mirror: Path | None) -> Iterator[tuple[str, Read]]:
    """Paths inside the package, sorted, each with a function that reads it."""
    if origin.kind == "git":
        yield from _git_files(origin, scratch, mirror)
        return
    folder = _unpack(origin, scratch)
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        if not path.is_symlink():
            yield path.relative_to(folder).as_posix(), path.read_bytes


def _unpack(origin: Origin, scratch: Path) -> Path:
    folder = scratch / "unpacked"
    folder.mkdir()
    name, version = origin.name, origin.version
    if origin.kind == "deb":
        _run(["apt-get", "download", f"{name}={version}"], scratch)
        (package,) = scratch.glob("*.deb")
        _run(["dpkg-deb", "-x", str(package), str(folder)], scratch)
        return folder
    if origin.kind == "pypi":
        python = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
        _run([*python, f"{name}=={version}"], scratch)
    else:
        _run(["npm", "pack", "--silent", f"{name}@{version}"], scratch)
    (package,) = [*scratch.glob("*.tar.gz"), *scratch.glob("*.tgz")]
    with tarfile.open(package) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git_files(origin: Origin, scratch: Path, mirror: Path | None) -> Iterator[tuple[str, Read]]:
    repository = _mirrored(origin, mirror) if mirror else None
    if repository is None:
        repository = scratch / "repository"
        address = f"https://github.com/{origin.name}.git"
        clone = ["git", "clone", "--quiet", "--bare", "--filter=blob:none", address]
        _run([*clone, str(repository)], scratch)
    git = ["git", f"--git-dir={repository}"]
    listed = _run([*git, "ls-tree", "-r", "-z", "--name-only", origin.version], scratch)
    for path in sorted(listed.decode().split("\0")):
        if path:
            yield path, _blob(git, f"{origin.version}:{path}")


def _mirrored(origin: Origin, mirror: Path) -> Path | None:
    """A copy of the repository that is already on this machine, as OWNER+NAME/repo."""
    folder = mirror / origin.name.replace("/", "+") / "repo"
    if (folder / ".git").is_dir():
        folder = folder / ".git"
    return folder if folder.is_dir() else None


def _blob(git: Sequence[str], name: str) -> Read:
    def read() -> bytes | None:
        done = subprocess.run([*git, "cat-file", "blob", name], capture_output=True)
        return done.stdout if done.returncode == 0 else None

    return read


def _write_epub(path: Path, parts: Sequence[tuple[str, bytes]]) -> None:
    """Zip a book, `mimetype` first and uncompressed as the format asks, without times."""
    ordered = sorted(parts, key=lambda part: (part[0] != "mimetype", part[0]))
    with zipfile.ZipFile(path, "w") as book:
        for name, content in ordered:
            kind = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            book.writestr(zipfile.ZipInfo(name), content, compress_type=kind)


def _run(command: Sequence[str], folder: Path) -> bytes:
    done = subprocess.run(command, cwd=folder, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace')}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("folder", type=Path, help="where the sets are written, one folder each")
    parser.add_argument("--only", nargs="+", metavar="SET", choices=[s.name for s in SETS])
    parser.add_argument(
        "--mirror", type=Path, help="a folder of git repositories OWNER+NAME/repo to read instead"
    )
    options = parser.parse_args()
    for chosen in SETS:
        target = options.folder / chosen.name
        if (options.only and chosen.name not in options.only) or target.is_dir():
            continue
        print(f"{chosen.name}: {build(chosen, target.resolve(), options.mirror)} files")


if __name__ == "__main__":
    main()
