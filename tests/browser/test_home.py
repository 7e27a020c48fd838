"""The home page shows what the site can do before anything is scrolled, and the look holds in both palettes."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sourcepanel.notes.roadmap import load_roadmap
from tests.browser.conftest import Open
from tests.browser.site_build import ROOT
from tests.browser.test_panel_view import contrast
from tests.browser.test_site import SCHEMES, base, http, open_link, pages, scheme, site  # noqa: F401 - fixtures

NOTES = "notes/05-forward-loss-backward.html"
PAGES = ("index.html", NOTES, "lab/scripts.html", "roadmap.html", "glossary.html")
OVER = """() => [...document.querySelectorAll('.md-content *')].filter(one => {
    const scrolls = e => e && (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(e).overflowX)
        || scrolls(e.parentElement));
    return one.getBoundingClientRect().right > innerWidth + 1 && !scrolls(one.parentElement);
}).map(one => one.outerHTML.slice(0, 120))"""
"""What sticks out of the page on the right and is not inside a box that scrolls by itself."""


def test_a_laptop_sees_link_trace_and_proof_without_scrolling(http: str, visit: Open):  # noqa: F811
    page = visit(http, viewport={"width": 1280, "height": 800}).goto()
    shown = (".home-try .sp-link", ".home-proof .communication__proof", ".home-go a")
    for part in shown:
        expect(page.locator(part).first).to_be_in_viewport(ratio=1)
    proof = page.locator(".home-proof .lab-output")
    expect(proof).to_be_in_viewport(ratio=1)
    expect(proof).to_contain_text("make demo CH=10 NP=4")
    expect(proof).to_contain_text("与单进程比较")
    recorded = (ROOT / "docs/traces/ch10.txt").read_text("utf-8").rstrip().splitlines()
    assert recorded[-1] == "全部通过"
    # From the title of the comparison to the end of its table, and the verdict.
    start = next(n for n, line in enumerate(recorded) if line.startswith("与单进程比较"))
    end = next(n for n, line in enumerate(recorded) if n > start and line.startswith("└"))
    assert proof.inner_text().rstrip().splitlines()[1:] == [*recorded[start : end + 1], recorded[-1]]


def test_the_live_link_opens_the_panel_and_stays_in_sight(base: str, visit: Open):  # noqa: F811
    page = visit(base, viewport={"width": 1280, "height": 800}).goto()
    open_link(page, ".home-try")
    expect(page.locator(".home-try .sp-link").first).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    expect(page.locator("#sp-panel")).to_be_hidden()


def test_the_trace_opens_at_the_line_that_sent(http: str, visit: Open):  # noqa: F811
    open_link(visit(http).goto(), ".home-proof .communication")


def test_every_chapter_of_the_round_is_listed_with_its_question(http: str, visit: Open):  # noqa: F811
    page = visit(http, java_script_enabled=False).goto()
    chapters = load_roadmap(ROOT / "docs/chapters.yml").rounds[0].chapters
    entries = page.locator(".chapters > li")
    assert entries.count() == len(chapters) == 7
    for entry, chapter in zip(entries.all(), chapters, strict=True):
        assert entry.get_by_role("link", name=chapter.title).get_attribute("href") == chapter.note.replace(
            ".md", ".html"
        )
        assert chapter.question and entry.get_by_text(chapter.question).count() == 1


@pytest.mark.parametrize("width", [320, 390, 768])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_sticks_out_of_a_narrow_page(http: str, visit: Open, name: str, width: int):  # noqa: F811
    page = visit(http, viewport={"width": width, "height": 800}).goto(name)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVER) == []


def colour(page: Page, place: str, name: str) -> str:
    """A computed colour of the first element there, without transparency."""
    value: str = page.locator(place).first.evaluate(f"one => getComputedStyle(one).{name}")
    assert value.startswith("rgb("), f"{place}: {name} is {value}"
    return value


TEXTS = {
    "index.html": (".home-lead", ".home-label", ".home-note", ".chapters p", ".communication__phase", ".page-meta"),
    NOTES: (".md-content p", ".function-record__none", ".communication__duty", "h2", ".md-content__inner > p a"),
    "roadmap.html": (".note-state--verified", ".roadmap__planned", ".roadmap__question"),
}
"""Text of every colour of the site's own, by page."""


@pytest.mark.parametrize("colours", SCHEMES)
def test_text_can_be_read_on_the_grounds_it_stands_on(http: str, visit: Open, colours: str):  # noqa: F811
    made = visit(http, color_scheme=colours)
    for name, places in TEXTS.items():
        page = made.goto(name)
        assert scheme(page) == {"light": "default", "dark": "slate"}[colours]
        ground = colour(page, "body", "backgroundColor")
        for place in places:
            assert contrast(colour(page, place, "color"), ground) >= 4.5, f"{name}: {place}"
    page = made.goto()
    button = ".home-go .md-button--primary"
    assert contrast(colour(page, button, "color"), colour(page, button, "backgroundColor")) >= 4.5


@pytest.mark.parametrize("colours", SCHEMES)
def test_paper_is_white_in_either_palette(http: str, visit: Open, colours: str):  # noqa: F811
    page = visit(http, color_scheme=colours).goto(NOTES)
    page.emulate_media(media="print")
    for place in (*TEXTS[NOTES], ".md-content pre code", ".communication__group"):
        assert contrast(colour(page, place, "color"), "rgb(255, 255, 255)") >= 4.5, place
    drawn = page.locator("svg rect[stroke]").first.evaluate("one => getComputedStyle(one).stroke")
    assert contrast(drawn, "rgb(255, 255, 255)") >= 3
    expect(page.locator(".site-pins").first).to_be_hidden()


def test_running_text_keeps_to_a_measure(http: str, visit: Open):  # noqa: F811
    page = visit(http, viewport={"width": 1600, "height": 900}).goto(NOTES)
    characters = """all => Math.max(...all.map(one =>
        one.getBoundingClientRect().width / parseFloat(getComputedStyle(one).fontSize)))"""
    assert 36 <= page.locator(".md-content__inner > p").evaluate_all(characters) <= 42.5


def test_the_theme_has_a_name_and_a_mark_that_need_no_emoji(site: Path):  # noqa: F811
    text = (site / "index.html").read_text("utf-8")
    assert "<title>Latent Atlas</title>" in text
    assert (site / "assets/images/favicon.svg").is_file() and "assets/images/favicon.svg" in text
    assert [mark for mark in text if ord(mark) > 0x1F000] == []


@pytest.mark.parametrize("colours", SCHEMES)
def test_axe_finds_nothing_on_any_whole_page(http: str, visit: Open, site: Path, colours: str):  # noqa: F811
    made = visit(http, color_scheme=colours)
    for name in pages(site):
        made.goto(name)
        assert made.axe() == [], name


def test_a_page_has_no_landmark_per_code_block_and_its_search_has_a_name(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto("about/publish.html")
    bars = page.locator(".md-code__nav")
    expect(bars.nth(1)).to_be_attached()
    assert bars.evaluate_all("all => all.map(one => one.getAttribute('role'))") == ["none"] * bars.count()
    expect(page.get_by_role("dialog", name="搜索", include_hidden=True)).to_have_count(1)
