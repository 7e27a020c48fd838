"""Backlinks on the real site: from the end of a page to the sentence that speaks of it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.test_site import NOTE, base, http, site  # noqa: F401 - fixtures


def test_backlinks_lead_to_the_sentence(base: str, visit: Open):  # noqa: F811
    page = visit(base).goto(NOTE)
    section = page.get_by_role("region", name="反向链接")
    expect(section.locator(".backlinks__pages > li > a").first).to_have_text("总览")
    link = section.locator('a[href*="02-distributed-initialization.html#ln-"]').last
    text = link.inner_text()
    link.click()
    expect(page.locator("h1")).to_contain_text("02")
    target = page.locator(":target")
    expect(target).to_have_text(text)
    expect(target).to_be_in_viewport()


def test_many_sentences_of_one_page_are_folded_and_open_by_keyboard(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto("notes/03-data-and-batch-flow.html")
    fold = page.locator(".backlinks details").first
    expect(fold.locator("li").first).to_be_hidden()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(fold.locator("li").first).to_be_visible()


def test_axe_finds_nothing_in_backlinks(http: str, visit: Open):  # noqa: F811
    for colours in ("light", "dark"):
        made = visit(http, color_scheme=colours, viewport={"width": 390, "height": 844})
        made.goto("notes/03-data-and-batch-flow.html")
        assert made.axe(include=".backlinks") == []
