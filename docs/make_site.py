"""
Build the documentation site.

    python docs/make_site.py             # write build/site; a broken link is an error
    python docs/make_site.py --serve     # serve it on http://localhost:8000

The pages come from docs/, research/ and a few files of the repository. They are copied to
build/pages, because the site generator reads one folder. Links between them, which are right in the
repository, are rewritten. Needs `pip install '.[docs]'` and Python 3.11 or later.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "mkdocs.yml"
PAGES = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
_LINK = re.compile(r"(\]\(|\bsrc=\"|\bsrcset=\"|\bhref=\")([^)\s\"#]+)")
_TEXT_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)\)")
_CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"^( *```)python(?=\n *>>> )", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
_ASSETS = {".css", ".js", ".svg", ".png"}
_HOME = Path("README.md"), Path("index.md")  # the site has a first page of its own


def sources() -> dict[Path, Path]:
    """Each page and asset of the site: its path in the repository, and its path in the site."""
    found = dict(_of_docs())
    for page in sorted((ROOT / "research").rglob("*.md")):
        if page.parent.name == "samples":  # a file to test readers with
            continue
        path = page.relative_to(ROOT)
        found[path] = path.with_name("index.md") if page.name == "README.md" else path
    shipped = ROOT / "askline" / "models" / "shipped"
    for card in sorted([*shipped.glob("*/README.md"), *shipped.glob("*.md")]):
        name = card.parent.name if card.name == "README.md" else card.stem
        found[card.relative_to(ROOT)] = Path("models") / f"{name}.md"
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        found[Path(name)] = Path(name.lower())
    found[Path("examples/README.md")] = Path("examples/index.md")
    return found


def _of_docs() -> Iterator[tuple[Path, Path]]:
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.suffix in {".md", *_ASSETS}:
            yield path.relative_to(ROOT), path.relative_to(ROOT / "docs")


def stage(folder: Path) -> None:
    """Write all pages, and the files that they link to, to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = sources()
    staged = dict([*pages.items(), _HOME])
    for source, target in pages.items():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = (ROOT / source).read_text("utf-8")
            (folder / target).write_text(_with_links(text, source, staged), "utf-8")
        else:
            shutil.copyfile(ROOT / source, folder / target)
    for source, target in staged.items():
        if not (folder / target).exists():  # linked by a page, such as a result file
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / source, folder / target)


def _with_links(text: str, source: Path, staged: dict[Path, Path]) -> str:
    """The text of a page with the links that it needs in the site."""

    def rewritten(match: re.Match[str]) -> str:
        linked = Path(os.path.normpath(source.parent / match[2]))
        if "://" in match[2] or not (ROOT / linked).is_file():
            return match[0]
        target = staged.setdefault(linked, linked)
        return match[1] + Path(os.path.relpath(target, staged[source].parent)).as_posix()

    def without_folder(match: re.Match[str]) -> str:
        return match[1] if (ROOT / source.parent / match[2]).is_dir() else match[0]

    text = _TEXT_LINK.sub(without_folder, text)  # a site has no page for a folder
    text = _SESSION.sub(r"\1pycon", _FRONT_MATTER.sub("", text))  # its prompts are not copied
    parts, end = [], 0
    for code in _CODE.finditer(text):
        parts += [_LINK.sub(rewritten, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, _LINK.sub(rewritten, text[end:])])


def main() -> None:
    """Write build/site, or serve it."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument(
        "--serve", action="store_true", help="serve it, and do not write build/site"
    )
    serve = parser.parse_args().serve
    stage(PAGES)
    command = ["serve"] if serve else ["build", "--strict", "--clean"]
    zensical = [sys.executable, "-m", "zensical", *command, "--config-file", str(CONFIG)]
    sys.exit(subprocess.run(zensical, cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
