"""The site builds strictly, needs no network, and works in a browser from a folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from .blocks import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="the site needs Python 3.11"),
]

BROWSER = os.environ.get("ASKLINE_BROWSER") or shutil.which("chromium")
NEEDS_BROWSER = pytest.mark.skipif(
    BROWSER is None, reason="no browser: `make browser` installs Debian's chromium as root"
)
PHONE_WIDTH = 390


@pytest.fixture(scope="module")
def site() -> Path:
    """The built site; a broken link or a wrong name in a reference fails the build."""
    built = subprocess.run(
        [sys.executable, "docs/make_site.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / "build" / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """The first page, opened from the folder; every request must be for a file."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    requests: list[str] = []
    errors: list[object] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(error))  # playwright needs a function
    page.goto((site / "index.html").as_uri())
    yield page
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    page.context.close()


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text("utf-8"))
        assert [tag for tag in loaded if re.search(r"(?:src|href)=\"(?:https?:)?//", tag)] == []


def test_research_is_part_of_the_site(site: Path) -> None:
    for name in ("results", "decisions/engine", "notes/peers"):
        assert (site / "research" / f"{name}.html").is_file()
    peers = (site / "research" / "notes" / "peers.html").read_text("utf-8")
    assert 'href="../results/peers.json"' in peers
    assert (site / "research" / "results" / "peers.json").is_file()
    assert not (site / "research" / "fuzzing").exists()  # files to test readers with


@NEEDS_BROWSER
def test_search_works_from_a_folder(page: Page) -> None:
    page.wait_for_timeout(500)
    page.keyboard.press("Control+k")
    field = page.get_by_label("Search", exact=True).last
    field.wait_for()
    page.wait_for_timeout(300)
    page.keyboard.type("deadlines", delay=60)
    result = page.locator("a[href*='guides/deadlines']").last
    result.wait_for()
    assert field.input_value() == "deadlines"
    result.click()
    page.wait_for_url("**/guides/deadlines.html*")


@NEEDS_BROWSER
def test_copying_a_session_copies_its_commands(page: Page) -> None:
    page.evaluate("addEventListener('copy', () => { window.copied = String(getSelection()); })")
    buttons = page.locator("button[data-clipboard-target], .md-code__button[title*='Copy']")
    copied = []
    for button in buttons.all():
        button.click()
        page.wait_for_timeout(100)
        copied.append(page.evaluate("window.copied"))
    assert copied[0].splitlines()[-1] == "pip install ."
    assert copied[1] == "askline demo 'How long is the Trans-Siberian railway?'"
    assert copied[3].startswith("import askline\n")
    assert not any(line.startswith(("$", ">")) for text in copied for line in text.splitlines())


@NEEDS_BROWSER
def test_pictures_follow_the_dark_mode_of_the_page(page: Page, site: Path) -> None:
    """A picture is a file of its own, which sees the color scheme of the page that embeds it."""
    page.goto((site / "explanation" / "cascade.html").as_uri())
    picture = page.locator("img[src$='question.svg']")
    light = picture.screenshot()
    page.locator("label[title='Dark mode']").first.click()
    page.wait_for_timeout(300)
    assert page.locator("body").get_attribute("data-md-color-scheme") == "slate"
    assert picture.screenshot() != light


@NEEDS_BROWSER
def test_no_page_is_wider_than_a_phone(browser: Browser, site: Path) -> None:
    context = browser.new_context(viewport={"width": PHONE_WIDTH, "height": 844}, is_mobile=True)
    page = context.new_page()
    wide = []
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > PHONE_WIDTH:
            wide.append(str(path.relative_to(site)))
    context.close()
    assert wide == []
