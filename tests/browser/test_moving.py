"""Moving between notes and source: marks beside the lines, links of identifiers, uses, quick open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Mode, Open
from tests.browser.moving_site import build
from tests.browser.test_panel import marked, ready


@pytest.fixture(scope="session")
def moving_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("moving") / "site")


@pytest.fixture(params=["http", "file"])
def base(request: pytest.FixtureRequest, moving_site: Path, publish: Callable[[Path, Mode], str]) -> str:
    return publish(moving_site, request.param)


def follow(page: Page, key: str) -> None:
    """Click the source link with this text and wait until its view stands."""
    page.locator(".sp-link", has_text=key).first.click()
    ready(page)


def test_marks_lead_from_lines_to_sentences_and_events(base: str, visit: Open) -> None:
    seen = visit(base)
    page = seen.goto()
    follow(page, "forward")
    mark = page.locator(".sp-l:has([data-n='10']) .sp-m")
    expect(mark).to_have_attribute("aria-label", "第 10 行：笔记 2 处、通信事件 0 个")
    mark.click()
    told = page.locator(".sp-told li")
    expect(told).to_have_count(2)
    expect(told.nth(0)).to_contain_text("训练 · 前向 · 第 10–12 行")
    expect(told.nth(0)).to_contain_text("前向在 forward；")
    expect(told.nth(0).locator("mark")).to_have_text("forward")
    assert seen.axe(include=".sp-panel") == []
    page.evaluate("window.stayed = true; scrollTo(0, document.body.scrollHeight)")
    told.nth(0).locator("a").click()
    expect(page.locator("#sp-2")).to_be_in_viewport()
    assert page.evaluate("window.stayed"), "a sentence on this page needs no new page"
    expect(page.locator("#sp-panel")).to_be_visible()
    mark.click()
    told.nth(1).locator("a").click()
    page.wait_for_url("**/notes/second.html?src=tiny/pkg/model.py:L10-L12#sp-2")
    ready(page)
    expect(page.locator("#sp-2")).to_be_in_viewport()
    assert marked(page) == [10, 11, 12]
    # A line where a recorded run communicated, and one that nobody speaks of.
    run = page.locator(".sp-l:has([data-n='12']) .sp-m")
    expect(run).to_have_attribute("aria-label", "第 12 行：笔记 0 处、通信事件 4 个")
    run.press("Enter")
    expect(page.locator(".sp-told")).to_contain_text("4 个通信事件（run）")
    expect(page.locator(".sp-told code")).to_have_text("all_reduce · tp × 4")
    page.keyboard.press("Escape")
    expect(page.locator(".sp-told")).to_have_count(0)
    expect(run).to_be_focused()
    expect(page.locator(".sp-l:has([data-n='5']) .sp-m")).to_have_count(0)
    # The marks are no part of the text.
    text = page.evaluate("getSelection().selectAllChildren(document.querySelector('.sp-lines')), getSelection() + ''")
    assert "¶" not in text and "class Block" in text
