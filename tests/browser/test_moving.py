"""Moving between notes and source: marks beside the lines, links of identifiers, uses, quick open."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Mode, Open, Visit
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


def clean(seen: Visit, include: str = ".sp-panel") -> None:
    """Axe finds nothing; it cannot run on a page from disk, where it may not read the style sheet."""
    if seen.base.startswith("http"):
        assert seen.axe(include=include) == []


def test_marks_lead_from_lines_to_sentences_and_events(base: str, visit: Open) -> None:
    seen = visit(base)
    page = seen.goto("index.html?q=1")
    follow(page, "forward")
    mark = page.locator(".sp-l:has([data-n='10']) .sp-m")
    expect(mark).to_have_attribute("aria-label", "第 10 行：笔记 2 处")
    mark.click()
    told = page.locator(".sp-told li")
    expect(told).to_have_count(2)
    expect(told.nth(0)).to_contain_text("训练 · 前向 · 第 10–12 行")
    expect(told.nth(0)).to_contain_text("前向在 forward；")
    expect(told.nth(0).locator("mark")).to_have_text("forward")
    clean(seen)
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
    expect(run).to_have_attribute("aria-label", "第 12 行：通信事件 4 个")
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


def test_identifiers_lead_to_definitions_and_back(base: str, visit: Open) -> None:
    seen = visit(base)
    page = seen.goto()
    follow(page, "train")
    name = page.locator(".sp-l:has([data-n='6']) a.q", has_text="build")
    name.hover()
    card = page.locator("#sp-card")
    expect(card).to_be_visible()
    expect(card.locator("code")).to_have_text("build(kind: str) -> Block")
    expect(card).to_contain_text("Make a block.")
    expect(card).to_contain_text("pkg/model.py · 第 18 行")
    # The pointer can cross into the card, which goes when it leaves.
    card.hover()
    page.wait_for_timeout(400)
    expect(card).to_be_visible()
    page.mouse.move(2, 2)
    expect(card).to_be_hidden()
    name.click()
    ready(page)
    assert marked(page) == [18, 19, 20]
    assert page.url.endswith("src=tiny/pkg/model.py:L18-L20")
    # Who uses it: three places in one file would be a guess here, so count what is there.
    page.keyboard.press("u")
    pop = page.locator(".sp-pop")
    expect(pop.locator("h3").first).to_have_text("用到 build 的 2 处")
    expect(pop.locator("summary")).to_have_text("pkg/train.py2")
    assert pop.locator("a[data-src^='tiny/pkg/train.py']").all_inner_texts() == ["第 1 行 导入", "第 6 行 调用"]
    expect(pop.locator("h3").nth(1)).to_have_text("这几行里的名字")
    clean(seen)
    pop.locator("a", has_text="第 6 行").click()
    ready(page)
    assert marked(page) == [6]
    # Back and forward within the panel.
    page.locator(".sp-code").focus()
    page.keyboard.press("[")
    assert marked(page) == [18, 19, 20]
    page.keyboard.press("[")
    assert marked(page) == [5, 6, 7, 8, 9]
    expect(page.get_by_role("button", name="面板内后退 ([)")).to_be_disabled()
    page.keyboard.press("]")
    assert marked(page) == [18, 19, 20]


def test_what_is_not_certain_looks_it_and_asks(base: str, visit: Open) -> None:
    page = visit(base).goto()
    follow(page, "train")
    sure, likely = page.locator(".sp-l:has([data-n='6']) a.q"), page.locator(".sp-l:has([data-n='9']) a.q.l")
    expect(likely).to_have_text("help_out")
    style = "one => getComputedStyle(one).textDecorationLine + getComputedStyle(one).textDecorationStyle"
    assert likely.evaluate(style) == "underlinedotted" and sure.first.evaluate(style) == "nonesolid"
    likely.click()
    expect(page.locator(".sp-pop")).to_contain_text("不确定")
    assert marked(page) == [5, 6, 7, 8, 9], "nothing opens by a guess"
    page.locator(".sp-pop a").click()
    ready(page)
    assert marked(page) == [14, 15]
    # A file that the site does not carry: found, and honestly elsewhere.
    page.goto(page.url.partition("?")[0] + "?src=tiny/pkg/far.py:L5")
    ready(page)
    page.locator(".sp-l:has([data-n='5']) a.q", has_text="beyond").click()
    out = page.locator(".sp-pop a")
    expect(out).to_have_attribute("href", re.compile(r"/blob/[0-9a-f]{40}/pkg/other\.py#L1-L2$"))
    expect(out).to_have_attribute("target", "_blank")


def test_quick_open_and_pins(base: str, visit: Open) -> None:
    seen = visit(base)
    page = seen.goto()
    page.locator("#field").press("p")
    expect(page.locator("#sp-panel")).to_have_count(0)
    page.locator("#top").click()
    page.keyboard.press("p")
    field = page.locator(".sp-pop input")
    expect(field).to_be_focused()
    for letters, first in (("blfor", "Block.forward"), ("model.py", "pkg/model.py"), ("filler_149", "filler_149")):
        field.fill(letters)
        expect(page.locator(".sp-choices li span").first).to_have_text(first)
    field.fill("beyond")
    expect(page.locator(".sp-choices li small").first).to_have_text("pkg/other.py ↗")
    field.fill("zzzz")
    expect(page.locator(".sp-choices li")).to_have_count(0)
    field.fill("block.help")
    clean(seen)
    field.press("Enter")
    ready(page)
    assert marked(page) == [14, 15]
    pin = page.get_by_role("button", name="钉住这里")
    pin.click()
    page.locator(".sp-n[data-n='4']").click()
    pin.click()
    assert page.url.endswith("pin=tiny/pkg/model.py%23L14-L15,tiny/pkg/model.py%23L4")
    tabs = page.locator(".sp-pins a")
    assert tabs.all_inner_texts() == ["model.py:14", "model.py:4"]
    clean(seen)
    url = page.url
    tabs.first.click()
    ready(page)
    assert marked(page) == [14, 15]
    expect(tabs.first).to_have_attribute("aria-current", "true")
    # A shared address brings its pins, and they wait on the next page too.
    other = visit(base).page
    other.goto(url)
    ready(other)
    assert other.locator(".sp-pins a").all_inner_texts() == ["model.py:14", "model.py:4"] and marked(other) == [4]
    page.goto(page.url.partition("index.html")[0] + "notes/second.html")
    page.locator(".sp-link").first.click()
    ready(page)
    expect(tabs).to_have_count(2)
    page.get_by_role("button", name="取下 model.py:14").click()
    expect(tabs).to_have_text("model.py:4")


def test_previews_of_links(base: str, visit: Open) -> None:
    seen = visit(base)
    page = seen.goto()
    card = page.locator("#sp-card")
    page.locator("#sp-2").hover()
    expect(card).to_contain_text("pkg/model.py · 第 10–12 行")
    assert card.locator(".sp-l").all_inner_texts()[0].strip() == "def forward(self, x: int, scale: float = 1.0) -> int:"
    expect(card.locator(".sp-l")).to_have_count(3)
    expect(page.locator("#sp-panel")).to_have_count(0)
    clean(seen, "#sp-card")
    expect(page.locator("#sp-2")).to_have_attribute("aria-describedby", "sp-card")
    # The pointer crosses into the card: nothing lies between the two.
    link, box = page.locator("#sp-2").bounding_box(), card.bounding_box()
    assert link and box and abs(box["y"] - link["y"] - link["height"]) < 6
    card.hover()
    page.wait_for_timeout(400)
    expect(card).to_be_visible()
    # Another link, another content; Chinese anchors, here and on another page.
    page.mouse.move(2, 2)
    expect(card).to_be_hidden()
    page.locator("#to-back").hover()
    expect(card.locator("h2")).to_have_text("反向")
    expect(card).to_contain_text("反向先走最后一层")
    page.mouse.move(2, 2)
    page.locator("#to-second").hover()
    expect(card.locator("h2")).to_have_text("收尾")
    expect(card).to_contain_text("收尾的第二段。")
    href = card.locator("a").first.evaluate("one => one.href")
    assert href.startswith("https://github.com/example/tiny/blob/")
    twice = "[...document.querySelectorAll('[id]')].map(one => one.id).filter((id, i, all) => all.indexOf(id) !== i)"
    assert page.evaluate(twice) == []
    # By keyboard too; Escape closes the card first, the panel only then.
    page.mouse.move(2, 2)
    page.locator("#sp-2").click()
    ready(page)
    expect(card).to_be_hidden()
    page.locator("#sp-2").focus()
    page.keyboard.press("Tab")
    expect(page.locator("#sp-3")).to_be_focused()
    expect(card).to_contain_text("def build")
    page.keyboard.press("Tab")
    expect(card.locator("h2")).to_have_text("反向")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(page.locator("#sp-panel")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#sp-panel")).to_be_hidden()
