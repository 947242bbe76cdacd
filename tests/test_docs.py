"""What is generated is up to date, and what is linked is there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("research/**/*.md")]


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs/make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cli_reference_is_up_to_date() -> None:
    """Made in a process of its own: click keeps what help a command had when a test called it."""
    code = (
        "import sys, make_reference; sys.stdout.buffer.write(make_reference.reference().encode())"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, check=True
    )
    written = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert written == made.stdout.decode(), "run: make docs"


def test_http_reference_is_up_to_date() -> None:
    generator = _generator()
    written = generator.HTTP_TARGET.read_text("utf-8")
    assert written == generator.http_reference(), "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text("utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []
