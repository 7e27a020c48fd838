"""The coverage of the source on the real site: treemap, tables, index of symbols, what to read next."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.test_site import base, http, site  # noqa: F401 - fixtures

CELL = '.treemap__file[data-src="Megatron-LM/megatron/training/training.py"]'
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def opened(page: Page, path: str) -> None:
    expect(page.locator("#sp-panel")).to_have_attribute("aria-label", f"源码：{path}")
    expect(page.locator("#sp-panel")).to_have_attribute("aria-busy", "false")


def test_a_file_of_the_map_opens_in_the_panel(base: str, visit: Open):  # noqa: F811
    seen = visit(base)
    page = seen.goto("coverage.html")
    page.locator(CELL).click(position={"x": 30, "y": 20})
    opened(page, "megatron/training/training.py")
    expect(page.locator(".treemap__told")).to_contain_text("megatron/training/training.py：")
    assert seen.foreign() == [] and seen.errors == []


def test_the_map_is_one_stop_and_arrows_walk_it(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto("coverage.html")
    expect(page.locator('.treemap__file[tabindex="0"]')).to_have_count(1)
    page.locator('.treemap__file[tabindex="0"]').focus()
    where = "() => document.activeElement.dataset.src"
    first = page.evaluate(where)
    box = page.locator(f'[data-src="{first}"]').first.bounding_box()
    page.keyboard.press("ArrowRight")
    second = page.evaluate(where)
    moved = page.locator(f'.treemap [data-src="{second}"]').bounding_box()
    assert second != first and box and moved and moved["x"] > box["x"]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("End")
    last = page.evaluate(where)
    page.keyboard.press("ArrowDown")
    expect(page.locator('.treemap__file[tabindex="0"]')).to_have_count(1)
    page.keyboard.press("Home")
    assert page.evaluate(where) == page.locator(".treemap__file").first.get_attribute("data-src") != last
    page.keyboard.press("Enter")
    opened(page, str(first).removeprefix("Megatron-LM/"))


def test_without_scripts_and_on_paper_the_tables_tell_the_same(http: str, visit: Open):  # noqa: F811
    page = visit(http, java_script_enabled=False).goto("coverage.html")
    page.emulate_media(media="print")
    cells, tables = page.locator(".treemap__file"), page.locator(".coverage__table")
    assert cells.count() > 400
    expect(cells.first).to_have_attribute("xlink:href", re.compile(r"/blob/[0-9a-f]{40}/megatron/"))
    expect(tables).to_have_count(2)
    expect(tables.first).to_be_visible()
    told = page.locator(CELL).get_attribute("aria-label") or ""
    lines, covered = re.findall(r"(\d+) 行", told)[0], re.findall(r"讲到 (\d+) 行", told)[0]
    row = tables.last.get_by_role("row").filter(has_text="megatron/training/training.py")
    assert row.get_by_role("cell").all_inner_texts()[:2] == [lines, covered]
    total = page.locator(".coverage > p").first.inner_text()
    sums = [int(row.get_by_role("cell").nth(2).inner_text()) for row in tables.first.locator("tbody tr").all()]
    assert f"{sum(sums)} 行（" in total


def test_the_page_does_not_scroll_sideways_on_a_phone(http: str, visit: Open):  # noqa: F811
    page = visit(http, **PHONE).goto("coverage.html")
    expect(page.locator(".coverage__table").first).to_be_visible()
    for name in ("coverage.html", "symbols.html"):
        page.goto(http + name)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


def test_a_symbol_opens_its_definition_and_leads_to_the_sentence(base: str, visit: Open):  # noqa: F811
    page = visit(base).goto("symbols.html")
    row = page.locator('dt:has(a[data-src*="/training/training.py#"])').filter(
        has=page.get_by_text("train_step", exact=True)
    )
    row.locator("a").click()
    opened(page, "megatron/training/training.py")
    expect(page.locator("#sp-panel .sp-on").first).to_contain_text("def train_step")
    link = row.locator("xpath=following-sibling::dd[1]").locator("a").first
    link.click()
    expect(page.locator(":target")).to_be_in_viewport()
    expect(page.locator(":target")).to_have_attribute("data-src", re.compile(r"training/training\.py#L"))


def test_what_to_read_next_opens_in_the_panel(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto("roadmap.html")
    first = page.locator(".read-next li").first
    path = first.locator("small").inner_text()
    first.locator("a").first.click()
    opened(page, path)


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_in_coverage_and_symbols(http: str, visit: Open, colours: str):  # noqa: F811
    for name in ("coverage.html", "symbols.html"):
        made = visit(http, color_scheme=colours)
        made.goto(name)
        assert made.axe(include=".coverage") == []
