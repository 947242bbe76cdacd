"""
Make the screenshots of the web page of the service in docs/images.

    python docs/make_screenshots.py

Needs chromium. The screenshots show response times, so make them on a machine that is otherwise
idle. `make notebook` has that of the notebook.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from PIL import Image
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
COLORS = 256
"""Colors per picture: screenshots have few, and the files become a third of their size."""


def main() -> None:
    """Take all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        _shoot_service(chromium)
        chromium.close()


def _shoot_service(browser: Browser) -> None:
    """The web page of a service over the pages of the demo."""
    with tempfile.TemporaryDirectory() as folder:
        with Corpus.open(folder, ranker=None) as corpus:
            corpus.add_texts(documents())
        command = [sys.executable, "-c", "from askline.cli import main; main()", "serve"]
        server = subprocess.Popen(
            [*command, "--port", "0", "--index", folder], stderr=subprocess.PIPE, text=True
        )
        assert server.stderr is not None
        found = re.search(r"http\S+", server.stderr.readline())
        assert found is not None
        _shoot_questions(browser, found[0])
        server.terminate()
        server.wait()


def _shoot_questions(browser: Browser, base: str) -> None:
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
    picture = Image.open(io.BytesIO(page.screenshot(full_page=height is None)))
    few_colors = picture.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    few_colors.save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
