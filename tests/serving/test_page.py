"""
The page in a real browser, with a mouse and with the keyboard alone, light, dark and on a phone.

Screenshots of each state go to test-output/page/. `make browser` installs Debian's chromium where
it can; without a browser these tests skip and say so.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, Route, expect, sync_playwright

from .server_process import ROOT, Server

BROWSER = os.environ.get("ASKLINE_BROWSER") or shutil.which("chromium")
SHOTS = ROOT / "test-output" / "page"
QUESTION = "When was the first lighthouse lit?"
CANDIDATES = [
    "Emma is a novel of manners.",
    "It sold well in its first year.",
    "Jane Austen wrote Emma in 1815.",
    "Emma was read in every house.",
    "Its heroine is handsome, clever and rich.",
    "A second edition followed years later.",
]
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1100, "height": 760}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1100, "height": 760}},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "is_mobile": True,
        "has_touch": True,
    },
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None, reason="no browser: `make browser` installs Debian's chromium as root"
    ),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Its own sandbox cannot be used as root; the only pages it opens are ours.
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, plugins: Path) -> Iterator[Server]:
    """A service whose default ranker is calibrated and reads years."""
    from askline.corpus import Corpus

    from .conftest import PAGES

    folder = tmp_path_factory.mktemp("shown") / "index"
    with Corpus.open(folder, ranker=None) as corpus:
        corpus.add_texts(PAGES)
    models = ("--model", "calibrated", "--model", "cosinet")
    with Server("--index", str(folder), *models, "--workers", "1", plugins=plugins) as running:
        yield running


def _open(browser: Browser, server: Server, look: str = "light", path: str = "/") -> Page:
    """The page, watched: nothing may be asked of anybody else, nothing may go wrong unseen."""
    page = browser.new_context(**LOOKS[look]).new_page()
    wrong: list[str] = []
    page.on("request", lambda each: _check_own(each.url, server, wrong))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda each: wrong.extend([each.text] if each.type == "error" else []))
    page.goto(server.base + path)
    page.wait_for_selector("html[data-ready]")
    page.wrong = wrong  # type: ignore[attr-defined]
    return page


def _check_own(url: str, server: Server, wrong: list[str]) -> None:
    if not url.startswith(server.base):
        wrong.append(f"asked of others: {url}")


def _finish(page: Page) -> None:
    assert page.wrong == []  # type: ignore[attr-defined]
    page.context.close()


def _shoot(page: Page, name: str, *, whole: bool = True) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=whole)


def _ask(page: Page, question: str) -> None:
    page.fill("#question", question)
    page.keyboard.press("Enter")
    page.wait_for_selector("#ask-result article")


def _probability(rank: int | None = None) -> re.Pattern[str]:
    """The score label of a stage whose scores are probabilities."""
    return re.compile(rf"rank {rank or '[0-9]+'}, [\d.]+\s%")


def test_a_stage_that_drops_none_does_not_label_candidates(browser: Browser, shown: Server) -> None:
    def add_stage(route: Route) -> None:
        """The answer with a last stage that reads no candidate, and one dropped by the first."""
        response = route.fetch()
        found = response.json()
        own = {"entered": 1, "kept": 1, "dropped": 0, "stage": len(found["stages"])}
        found["stages"] = [*found["stages"], found["stages"][-1] | own]
        found["stages"][0]["dropped"] = 1
        del found["candidates"][-1]["stage_scores"][1:]
        route.fulfill(response=response, json=found)

    page = _open(browser, shown, "light")
    page.route("**/v1/ask*", add_stage)
    _ask(page, QUESTION)
    expect(page.locator(".candidates .left").first).to_have_text("")
    expect(page.locator(".candidates .left").last).to_have_text("dropped at stage 1")
    page.locator(".candidates button").first.hover()
    expect(page.locator(".stage-score").last).to_have_text("not scored")


def test_a_text_without_a_model_says_so(browser: Browser, shown: Server) -> None:
    arabic = "تفتح المكتبة في التاسعة."

    def change(route: Route) -> None:
        """The answer as the default ranker gives it for Arabic: the search decides the order."""
        response = route.fetch()
        found = response.json()
        found["ranker"] = "cosinet % 100 >> cascade"
        found["stages"][-1] |= {"ranker": "bm25", "calibrated": False}
        found["stages"][0] |= {"kept": 2, "dropped": 40}
        for candidate in found["candidates"]:
            del candidate["stage_scores"][1:]
        best = found["answers"][0]
        best |= {"text": arabic, "phrase": None, "probability": None}
        best |= {"before": "x" * 500, "after": "", "above_threshold": True}
        route.fulfill(response=response, json=found)

    page = _open(browser, shown)
    page.route("**/v1/ask*", change)
    _ask(page, QUESTION)
    expect(page.locator("article .meta")).to_contain_text("by bm25, because there is no model")
    expect(page.locator("article blockquote")).to_have_text(
        "… " + "x" * 400 + " تفتح المكتبة في التاسعة."
    )
    expect(page.locator("article blockquote")).to_have_attribute("dir", "auto")
    assert set(page.locator(".candidates .left").all_text_contents()) == {""}
    _finish(page)


def test_stages_in_context_are_marked(browser: Browser, shown: Server) -> None:
    def change(route: Route) -> None:
        response = route.fetch()
        found = response.json()
        found["stages"][-1]["in_context"] = True
        route.fulfill(response=response, json=found)

    page = _open(browser, shown)
    page.route("**/v1/ask*", change)
    _ask(page, QUESTION)
    expect(page.locator(".stage").last).to_contain_text("in context")
    expect(page.locator(".stage").first).not_to_contain_text("in context")
    _finish(page)


@pytest.mark.parametrize("look", LOOKS)
def test_every_state_in_every_look(browser: Browser, shown: Server, look: str) -> None:
    page = _open(browser, shown, look)
    _shoot(page, f"start-{look}")

    _ask(page, QUESTION)
    expect(page.locator("article .sentence")).to_have_text(
        "Its first lighthouse was lit in November 1698."
    )
    expect(page.locator("article mark")).to_have_text("1698")
    expect(page.locator("article blockquote")).to_contain_text("nine miles off the coast")
    expect(page.locator("article .meta")).to_contain_text("probability")
    page.locator(".candidates button").nth(1).hover()
    expect(page.locator(".stage-score").nth(0)).to_contain_text("score")
    expect(page.locator(".stage-score").nth(1)).to_contain_text(_probability())
    expect(page.locator("#ask-result h2").nth(0)).to_have_text(
        re.compile(r"Next best|Below the threshold of 50\s%")
    )
    _shoot(page, f"answer-{look}")

    page.locator("article .meta a").click()
    expect(page.locator("#source-text .sentence")).to_contain_text("November 1698")
    _shoot(page, f"source-{look}", whole=False)  # a dialog covers the window, not the page
    page.keyboard.press("Escape")

    _ask(page, "Which baker first thought of putting yeast into cakes?")
    expect(page.locator("article")).to_contain_text("No answer found")
    expect(page.locator("article")).to_contain_text(
        re.compile(r"a probability of \d+\s%, below the threshold of 50\s%")
    )
    _shoot(page, f"no-answer-{look}")

    page.click("#tab-compare")
    page.fill("#compare-question", "Who wrote Emma?")
    page.fill("#candidates", "\n".join(CANDIDATES))
    page.fill("#ranker-b", "jaccard % 5 >> cascade")
    page.click("#compare-form > button")
    page.wait_for_selector(".columns")
    page.locator(".ranked >> nth=0 >> button >> nth=1").hover()
    assert page.locator(".ranked button[aria-pressed=true]").count() == 2
    depths = page.locator(".columns > section").nth(1).locator(".stage", has_text="cascade(depth=")
    assert depths.count() > 1
    expect(depths.first.locator(".stage-score")).to_contain_text(_probability())
    _shoot(page, f"compare-{look}")
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not wide, "something is wider than the window"
    _finish(page)


@pytest.mark.parametrize(
    ("number", "part"),
    [(1_700, "1 to 2,000"), (2_000, "1,501 to 3,500"), (7_123, "6,501 to 8,500")],
)
def test_a_long_source_is_shown_around_the_answer(
    browser: Browser, shown: Server, number: int, part: str
) -> None:
    lines = [f"Entry {each} is blank." for each in range(9_000)]
    lines[number] = "The buoy was painted in 1871."
    text = "\n\n".join(lines)
    shown.post("/v1/documents", {"documents": [{"id": "log.txt", "text": text}]})
    page = _open(browser, shown)
    _ask(page, "When was the buoy painted?")
    page.locator("article .meta a").click()
    expect(page.locator("#source-text .sentence")).to_have_text(lines[number])
    expect(page.locator("#source-text .sentence")).to_be_in_viewport()
    expect(page.locator("#source-title")).to_have_text(f"log.txt shown: sentences {part}")
    expect(page.locator("#source-text p")).to_have_count(2_000)
    shown.client.delete("/v1/documents/log.txt")
    _finish(page)


def test_a_source_is_laid_out_in_the_direction_of_its_script(
    browser: Browser, shown: Server
) -> None:
    text = "بُنيت المنارة عام 1698.\n\nThe keeper moved below the lamp in 1702.\n"
    shown.post("/v1/documents", {"documents": [{"id": "tower.txt", "text": text}]})
    page = _open(browser, shown)
    _ask(page, "When did the keeper move below the lamp?")
    page.locator("article .meta a").click()
    expect(page.locator("#source-text p").first).to_have_css("direction", "rtl")
    expect(page.locator("#source-text p").last).to_have_css("direction", "ltr")
    shown.client.delete("/v1/documents/tower.txt")
    _finish(page)


@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_borders_of_fields_can_be_seen(browser: Browser, shown: Server, look: str) -> None:
    """WCAG 1.4.11 asks for a contrast of 3:1, here with the field and with the page."""
    page = _open(browser, shown, look, "/#compare")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for field in page.locator("input, textarea").all():
        border = field.evaluate("each => getComputedStyle(each).borderTopColor")
        inside = field.evaluate("each => getComputedStyle(each).backgroundColor")
        assert min(_contrast(border, inside), _contrast(border, paper)) >= 3
    _finish(page)


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG between two opaque colors, such as `rgb(0, 0, 0)`."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_by_keyboard_alone(browser: Browser, shown: Server) -> None:
    page = _open(browser, shown)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.wait_for_selector("#ask-result article")
    for _ in range(20):  # button, own text, source, next best, candidates
        page.keyboard.press("Tab")
        if page.evaluate("!!document.activeElement.closest('.candidates')"):
            break
    expect(page.locator(".stage-score").nth(1)).to_contain_text(_probability(1))
    page.keyboard.press("ArrowDown")
    expect(page.locator(".stage-score").nth(1)).to_contain_text(_probability())
    page.keyboard.press("End")
    expect(page.locator(".candidates button").last).to_be_focused()
    page.focus("#tab-ask")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#compare")).to_be_visible()
    expect(page.locator("#ask")).to_be_hidden()
    _finish(page)


def test_a_text_of_ones_own(browser: Browser, shown: Server) -> None:
    page = _open(browser, shown)
    page.click("summary")
    page.fill("#text", "The comet came back in 1759.\n\n<b>Halley</b> had said so. It was 🌠 1682.")
    _ask(page, "When was the comet back?")
    expect(page.locator("article mark")).to_have_text("1759")
    expect(page.locator(".candidates")).to_contain_text("<b>Halley</b>")  # never as HTML
    _ask(page, "It was when?")
    expect(page.locator("article mark")).to_have_text("1682")
    _finish(page)


def test_what_is_wrong_is_said_on_the_page(browser: Browser, shown: Server) -> None:
    page = _open(browser, shown, path="/#compare")
    page.fill("#compare-question", "Who?")
    page.fill("#candidates", "Emma.")
    page.fill("#ranker-a", "cosnet")
    page.click("#compare-form > button")
    expect(page.locator("#compare [role=alert]")).to_contain_text("Did you mean 'cosinet'?")
    _shoot(page, "error-light")
    page.wrong.clear()  # type: ignore[attr-defined]  # the browser logs each 422 itself
    _finish(page)


def test_a_key_is_asked_for_and_used(browser: Browser) -> None:
    key = "a-long-and-random-key"
    with Server("--model", "bm25", "--workers", "1", ASKLINE_KEY=key) as server:
        page = browser.new_context(**LOOKS["light"]).new_page()
        page.goto(server.base)
        page.wait_for_selector("#key:not([hidden])")
        _shoot(page, "key-light")
        page.fill("#key-value", key)
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-ready]")
        expect(page.locator("#own-text")).to_have_attribute("open", "")
        page.fill("#text", "The lamp burns. It rains.")
        _ask(page, "What burns?")
        expect(page.locator("article .sentence")).to_have_text("The lamp burns.")
        expect(page.locator("article .meta")).to_contain_text("score")
        page.context.close()


def test_a_key_that_cannot_be_used_is_asked_for_again(browser: Browser) -> None:
    key = "a-long-and-random-key"
    with Server("--model", "bm25", "--workers", "1", ASKLINE_KEY=key) as server:
        page = browser.new_context(**LOOKS["phone"]).new_page()
        page.goto(server.base)
        problem = page.locator("#key [role=alert]")
        expect(page.locator("#key-value")).to_be_focused()
        expect(problem).to_be_empty()
        for wrong, message in (
            (f"“{key}”", "has a character that no key has"),
            ("another-long-random-key", "was not accepted"),
        ):
            page.fill("#key-value", wrong)
            page.keyboard.press("Enter")
            expect(problem).to_contain_text(message)
            _shoot(page, "key-refused-phone")
        page.fill("#key-value", key)
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-ready]")
        expect(page.locator("#key")).to_be_hidden()
        page.context.close()


def test_a_key_is_asked_for_once_by_two_requests(browser: Browser) -> None:
    options = ("--model", "bm25", "--workers", "1")
    keys = ["the-key-of-the-first-day", "the-key-of-the-second-day"]
    page = browser.new_context(**LOOKS["light"]).new_page()
    with Server(*options, ASKLINE_KEY=keys[0]) as server:
        page.goto(server.base)
        page.fill("#key-value", keys[0])
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-ready]")
    with Server(*options, "--port", server.base.rpartition(":")[2], ASKLINE_KEY=keys[1]):
        page.click("#tab-compare")
        page.fill("#compare-question", "Who wrote Emma?")
        page.fill("#candidates", "\n".join(CANDIDATES))
        refused = itertools.count(1)
        with page.expect_response(lambda _: next(refused) == 2):  # one for each ranker
            page.click("#compare-form > button")
        page.fill("#key-value", keys[1])
        page.keyboard.press("Enter")
        expect(page.locator(".columns > section")).to_have_count(2)
        expect(page.locator("#compare-form > button")).to_be_enabled()
        page.context.close()


def test_the_reference_needs_no_script(browser: Browser, shown: Server) -> None:
    page = browser.new_context(java_script_enabled=False, **LOOKS["light"]).new_page()
    page.goto(f"{shown.base}/docs")
    expect(page.get_by_role("heading", name="POST /v1/ask", exact=True)).to_be_visible()
    page.context.close()


def test_the_policy_keeps_foreign_scripts_out(browser: Browser, shown: Server) -> None:
    page = browser.new_context().new_page()
    page.goto(shown.base)
    with pytest.raises(Error, match="Content Security Policy"):
        page.add_script_tag(content="document.title = 'taken'")
    assert page.title() == "askline"
    page.context.close()
