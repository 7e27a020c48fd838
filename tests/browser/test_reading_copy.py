"""Copying from the panel: what lands in the clipboard, however the site is served and whatever the browser allows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sourcepanel.config import Repository
from sourcepanel.reference import SourceRef, parse_code, parse_link
from tests.browser.conftest import Mode, Open
from tests.browser.test_reading import MODEL, opened, reading_site
from tests.support.memory import COMMIT, TINY

__all__ = ["reading_site"]

BLOB = f"https://github.com/example/tiny/blob/{COMMIT}/pkg/model.py"
CAUGHT = """
    window.copied = null;
    document.addEventListener('copy', () => { window.copied = document.activeElement.value; });
"""
REFUSED = """
    navigator.clipboard.writeText = () => Promise.reject(new DOMException('no', 'NotAllowedError'));
"""
MISSING = "Object.defineProperty(navigator, 'clipboard', { value: undefined });"


def choose(page: Page, name: str) -> None:
    page.get_by_role("button", name="复制", exact=True).click()
    page.get_by_role("dialog", name="复制").get_by_role("button", name=name).click()
    expect(page.locator(".sp-live")).to_have_text(f"已完成：{name}")
    expect(page.locator(".sp-pop")).to_have_count(0)


@pytest.mark.parametrize("mode", ["http", "file"])
def test_every_shape_of_a_copy(
    reading_site: Path, publish: Callable[[Path, Mode], str], visit: Open, mode: Mode
) -> None:
    seen = visit(publish(reading_site, mode), permissions=["clipboard-read", "clipboard-write"])
    page = opened(seen, "model.py:L316-L317")
    clipboard = "navigator.clipboard.readText()"

    choose(page, "复制代码")
    assert page.evaluate(clipboard) == "    def inner(b):\n        return b  # weight.*\n"
    choose(page, "复制 路径:行号")
    assert page.evaluate(clipboard) == "pkg/model.py:316-317"
    choose(page, "复制 GitHub 永久链接")
    assert page.evaluate(clipboard) == f"{BLOB}#L316-L317"
    choose(page, "复制为笔记链接")
    assert page.evaluate(clipboard) == f"[`helper.inner`]({BLOB}#L316-L317)"
    choose(page, "复制为 路径::符号")
    assert page.evaluate(clipboard) == "`pkg/model.py::helper.inner`"

    # A range that is no definition has no symbol to name; the whole file has no lines.
    page.locator('.sp-n[data-n="12"]').evaluate("(number) => number.click()")
    page.locator(".sp-code").focus()
    page.keyboard.press("y")
    expect(page.locator(".sp-live")).to_have_text("已完成：复制 GitHub 永久链接")
    assert page.evaluate(clipboard) == f"{BLOB}#L12"
    page.get_by_role("button", name="复制", exact=True).click()
    assert page.locator(".sp-pop button").count() == 4
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".sp-live")).to_have_text("已完成：复制 路径:行号")
    assert page.evaluate(clipboard) == "pkg/model.py:12"
    page.evaluate("SourcePanel.open('tiny/pkg/model.py')")
    page.get_by_role("button", name="折叠 Model.forward").evaluate("(one) => one.click()")
    page.keyboard.press("c")
    expect(page.locator(".sp-live")).to_have_text("已完成：复制代码")
    assert page.evaluate(clipboard) == MODEL, "what is folded is copied too"


def test_what_is_copied_for_a_note_is_what_notes_may_hold(
    reading_site: Path, publish: Callable[[Path, Mode], str], visit: Open
) -> None:
    page = opened(visit(publish(reading_site, "http"), permissions=["clipboard-read"]), "model.py:L316-L317")
    repositories: list[Repository] = [TINY]
    choose(page, "复制为笔记链接")
    link = re.fullmatch(r"\[`(.+)`\]\((.+)\)", page.evaluate("navigator.clipboard.readText()"))
    assert link
    parsed = parse_link(link[2], repositories)
    assert isinstance(parsed, SourceRef)
    assert (parsed.path, parsed.start, parsed.end) == ("pkg/model.py", 316, 317)
    choose(page, "复制为 路径::符号")
    code = parse_code(page.evaluate("navigator.clipboard.readText()").strip("`"), repositories)
    assert isinstance(code, SourceRef)
    assert (code.path, code.symbol) == ("pkg/model.py", "helper.inner")


@pytest.mark.parametrize("broken", [REFUSED, MISSING], ids=["refused", "missing"])
def test_the_old_way_where_the_clipboard_is_shut(
    reading_site: Path, publish: Callable[[Path, Mode], str], visit: Open, broken: str
) -> None:
    seen = visit(publish(reading_site, "file"))
    seen.page.add_init_script(CAUGHT + broken)
    page = opened(seen, "model.py:L316")
    page.keyboard.press("c")
    expect(page.locator(".sp-live")).to_have_text("已完成：复制代码")
    assert page.evaluate("copied") == "    def inner(b):\n"
    assert page.evaluate("document.activeElement.className") == "sp-code", "the focus comes back"
    assert page.locator("textarea").count() == 0
    # And if that fails too, it is said.
    page.evaluate("document.execCommand = () => false")
    page.keyboard.press("y")
    expect(page.locator(".sp-live")).to_contain_text("浏览器不允许写剪贴板")
