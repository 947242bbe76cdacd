"""
Make the pictures of docs/guides/service.md from the pages that come with askline.

    python docs/make_screenshots.py

Needs chromium. The screenshots show response times, so run it on a machine that is otherwise idle.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from askline.corpus import Corpus
from askline.demo import documents

IMAGES = Path(__file__).parent / "images"
QUESTION = "How long is the Trans-Siberian railway?"
UNANSWERED = "Which lens did Fresnel design?"
CANDIDATES = """Emma is a novel of manners.
It sold well in its first year.
Jane Austen wrote it in 1815.
Who Emma was is not known.
The author of Emma was Jane Austen."""
DESKTOP: ViewportSize = {"width": 900, "height": 700}
PHONE: ViewportSize = {"width": 390, "height": 844}


def main() -> None:
    """Start a service over the demo's pages and take its pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        with Corpus.open(folder, ranker=None) as corpus:
            corpus.add_texts(documents())
        command = [sys.executable, "-c", "from askline.cli import main; main()", "serve"]
        server = subprocess.Popen(
            [*command, "--port", "0", "--index", folder], stderr=subprocess.PIPE, text=True
        )
        assert server.stderr is not None
        found = re.search(r"http\S+", server.stderr.readline())
        assert found is not None
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        _shoot(chromium, found[0])
        chromium.close()
        server.terminate()
        server.wait()


def _shoot(browser: Browser, base: str) -> None:
    page = _page(browser, base, DESKTOP)
    _ask(page, QUESTION)  # not shown: the first question of a worker also loads the phrase reader
    _ask(page, QUESTION)
    page.locator(".candidates button").nth(2).hover()
    _save(page, "answer")
    _ask(page, UNANSWERED)
    page.click("article summary")
    _save(page, "no-answer", height=560)
    page = _page(browser, base, DESKTOP, scheme="dark")
    page.click("#tab-compare")
    page.fill("#compare-question", "Who wrote Emma?")
    page.fill("#candidates", CANDIDATES)
    page.fill("#ranker-b", "jaccard % 3 >> bm25")
    page.click("#compare-form > button")
    page.wait_for_selector(".columns")
    page.locator(".ranked >> nth=0 >> button >> nth=1").hover()
    _save(page, "compare-dark")
    page = _page(browser, base, PHONE, touch=True)
    _ask(page, QUESTION)
    _save(page, "answer-phone", height=844)


def _page(
    browser: Browser,
    base: str,
    size: ViewportSize,
    *,
    scheme: Literal["dark", "light"] = "light",
    touch: bool = False,
) -> Page:
    context = browser.new_context(
        viewport=size, color_scheme=scheme, is_mobile=touch, has_touch=touch
    )
    page = context.new_page()
    page.goto(base)
    page.wait_for_selector("html[data-ready]")
    return page


def _ask(page: Page, question: str) -> None:
    page.fill("#question", question)
    page.keyboard.press("Enter")
    page.wait_for_function("q => !document.querySelector('[aria-busy]')", arg=question)
    page.wait_for_selector("#ask-result article")


def _save(page: Page, name: str, *, height: int | None = None) -> None:
    if height is not None:
        page.set_viewport_size({"width": page.evaluate("innerWidth"), "height": height})
        page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=IMAGES / f"{name}.png", full_page=height is None)


if __name__ == "__main__":
    main()
