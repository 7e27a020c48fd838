"""The panel as a reader meets it: opening, moving, closing, on every way a site can be served."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import MODES, Mode, Open, Visit, at_rest
from tests.browser.panel_site import TARGETS

FOCUSED = "document.activeElement?.id || document.activeElement?.className"


@pytest.fixture(params=MODES)
def base(request: pytest.FixtureRequest, panel_site: Path, publish: Callable[[Path, Mode], str]) -> str:
    return publish(panel_site, request.param)


@pytest.fixture
def http(panel_site: Path, publish: Callable[[Path, Mode], str]) -> str:
    """For what does not depend on the way of serving."""
    return publish(panel_site, "http")


def click(page: Page, name: str, **options: Any) -> None:
    """Click a source link and wait until its view stands."""
    page.locator(f"#to-{name}").click(**options)
    # A pointer left on the link opens its preview, and then the first Escape is for that.
    page.mouse.move(1, 1)
    ready(page)


def ready(page: Page) -> None:
    """Wait for the view, and for the panel to have come to rest."""
    expect(page.locator("#sp-panel")).to_have_attribute("aria-busy", "false")
    page.evaluate("Promise.all(document.getAnimations().map((animation) => animation.finished))")


def marked(page: Page) -> list[int]:
    """Numbers of the marked lines, in order."""
    numbers = page.locator(".sp-on .sp-n").evaluate_all("all => all.map(n => +n.dataset.n)")
    assert isinstance(numbers, list)
    return numbers


def in_view(page: Page, line: int) -> bool:
    """Whether a line lies inside the part of the code that is seen."""
    seen = page.evaluate(
        """(line) => {
            const box = document.querySelector(`.sp-n[data-n="${line}"]`).parentElement.getBoundingClientRect();
            const frame = document.querySelector('.sp-code').getBoundingClientRect();
            return box.height > 0 && box.top >= frame.top && box.bottom <= frame.bottom;
        }""",
        line,
    )
    return bool(seen)


@pytest.mark.parametrize("start", ["index.html", "notes/deep.html"])
def test_a_click_opens_the_lines(base: str, visit: Open, start: str) -> None:
    page = visit(base).goto(start)
    click(page, "range")
    panel = page.locator("#sp-panel")
    expect(panel).to_be_visible()
    expect(panel).to_have_attribute("role", "complementary")
    assert marked(page) == [450, 451, 452, 453]
    assert in_view(page, 450) and in_view(page, 453)
    expect(page.locator(".sp-on").first).to_contain_text("update_441(batch, weight=441)")
    expect(page.locator(".sp-path")).to_have_text("tiny/pkg/training.py".replace("/", ""))
    expect(page.locator(".sp-facts")).to_have_text(
        re.compile(r"Trainer\.step.*第 450–453 行.*已校验 · v2\.0 @ af5c6bfe")
    )
    expect(page.locator(".sp-bar .sp-button").first).to_have_attribute(
        "href",
        "https://github.com/example/tiny/blob/af5c6bfebf420b0c3282d43b2b65836555ea2e64/pkg/training.py#L450-L453",
    )
    expect(page.locator(".sp-foot")).to_have_text("© Tiny · Tiny · 许可证")
    expect(page.locator("[role=status]")).to_have_text("已打开 pkg/training.py，第 450–453 行")
    assert page.url.endswith("?src=tiny/pkg/training.py:L450-L453")


def test_the_text_makes_room_and_the_clicked_word_stays_where_it_is(http: str, visit: Open) -> None:
    page = visit(http).goto()
    link = page.locator("#to-deep")
    link.scroll_into_view_if_needed()
    before = link.bounding_box()
    click(page, "deep")
    after, panel, text = (
        link.bounding_box(),
        page.locator("#sp-panel").bounding_box(),
        page.locator("main").bounding_box(),
    )
    assert before and after and panel and text
    assert abs(after["y"] - before["y"]) <= 1
    assert text["x"] + text["width"] <= panel["x"]


@pytest.mark.parametrize("how", ["escape", "button"])
def test_closing_gives_the_focus_back(base: str, visit: Open, how: str) -> None:
    page = visit(base).goto()
    page.locator("#to-range").focus()
    page.keyboard.press("Enter")
    ready(page)
    assert page.evaluate(FOCUSED) == "sp-code"
    page.keyboard.press("Escape") if how == "escape" else page.locator(".sp-close").click()
    expect(page.locator("#sp-panel")).to_be_hidden()
    assert page.evaluate(FOCUSED) == "to-range"
    assert "src=" not in page.url
    expect(page.locator("[role=status]")).to_have_text("源码面板已关闭")
    assert page.evaluate("getComputedStyle(document.body).paddingRight") == "0px"


def test_escape_in_a_field_of_the_page_leaves_the_panel_open(http: str, visit: Open) -> None:
    page = visit(http).goto()
    click(page, "other")
    page.locator("#field").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#sp-panel")).to_be_visible()


@pytest.mark.parametrize("modifiers", [["Control"], ["Meta"], ["Shift"], ["Alt"]])
def test_a_click_with_a_modifier_is_the_browsers(http: str, visit: Open, modifiers: list[str]) -> None:
    page = visit(http).goto()
    # The page's own listener runs after the panel's; it keeps the browser from going to GitHub.
    page.evaluate(
        "addEventListener('click', (e) => { window.taken = e.defaultPrevented; e.preventDefault(); }, { once: true })"
    )
    page.locator("#to-range").click(modifiers=modifiers)  # type: ignore[arg-type]
    assert page.evaluate("window.taken") is False
    expect(page.locator("#sp-panel")).to_have_count(0)


def test_a_middle_click_is_the_browsers(http: str, visit: Open) -> None:
    page = visit(http).goto()
    page.evaluate("addEventListener('auxclick', (e) => { window.taken = e.defaultPrevented; e.preventDefault(); })")
    page.locator("#to-range").click(button="middle")
    assert page.evaluate("window.taken") is False
    expect(page.locator("#sp-panel")).to_have_count(0)


def test_without_javascript_links_lead_to_github(base: str, visit: Open) -> None:
    page = visit(base, java_script_enabled=False).goto()
    for name, target in TARGETS.items():
        expect(page.locator(f"#to-{name}")).to_have_attribute("href", target.href)


def test_a_second_click_shows_another_file_and_the_first_is_kept(base: str, visit: Open) -> None:
    seen = visit(base)
    page = seen.goto()
    click(page, "range")
    click(page, "other")
    assert marked(page) == [1, 2]
    expect(page.locator(".sp-path b")).to_have_text("other.py")
    click(page, "line")
    assert marked(page) == [62] and in_view(page, 62)
    assert sum("training.py.js" in url for url in seen.requests) == 1
    assert page.locator("script[src*='src/tiny']").count() == 0


def test_an_open_asks_for_one_data_file_and_the_late_features_and_a_repeated_one_for_nothing(
    base: str, visit: Open
) -> None:
    seen = visit(base)
    page = seen.goto()
    before = len(seen.requests)
    click(page, "range")
    page.wait_for_function("SourcePanel.keys.length > 3 && !document.querySelector('script[src*=later]')")
    asked = sorted(url.rpartition("/")[2] for url in seen.requests[before:])
    assert asked == ["later.js", "training.py.js"]
    expect(page.locator(".sp-lines section:not(.sp-ready)")).to_have_count(0)
    lines = page.locator(".sp-l").count()
    nodes = page.locator(".sp-panel *").count()
    # A line, its number, and a span for each coloured word; the rest is head, tools and foot.
    assert nodes <= 5 * lines + 150
    page.keyboard.press("Escape")
    click(page, "range")
    assert len(seen.requests) == before + 2
    assert page.locator(".sp-panel *").count() <= nodes + 5


def test_the_link_of_what_is_open_is_marked(http: str, visit: Open) -> None:
    page = visit(http).goto()
    click(page, "other")
    expect(page.locator("[aria-current]")).to_have_id("to-other")
    page.keyboard.press("Escape")
    expect(page.locator("[aria-current]")).to_have_count(0)


def test_a_slow_file_does_not_push_away_a_later_one(http: str, visit: Open) -> None:
    page = visit(http).goto()
    held: list[Any] = []
    page.route("**/pkg/training.py.js", lambda route: held.append(route))
    page.locator("#to-range").click()
    expect(page.locator("#sp-panel")).to_have_attribute("aria-busy", "true")
    click(page, "other")
    with page.expect_response("**/pkg/training.py.js"):
        held[0].continue_()
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    expect(page.locator(".sp-path b")).to_have_text("other.py")
    assert marked(page) == [1, 2]
    page.unroute("**/pkg/training.py.js")
    click(page, "range")
    assert marked(page) == [450, 451, 452, 453]
    assert len(held) == 1


def test_a_file_that_the_site_lacks_is_told_with_a_way_out(base: str, visit: Open, panel_site: Path) -> None:
    seen = visit(base)
    page = seen.goto()
    click(page, "gone")
    message = page.locator(".sp-message")
    expect(message).to_contain_text("无法载入 pkg/gone.py")
    expect(message.locator("a")).to_have_attribute("href", re.compile(r"/blob/af5c6bfe.*/pkg/gone\.py#L1$"))
    file = panel_site / "sourcepanel/src/tiny/pkg/gone.py.js"
    file.write_text((file.parent / "other.py.js").read_text().replace("other.py", "gone.py"), encoding="utf-8")
    try:
        message.get_by_role("button", name="重试").click()
        expect(page.locator(".sp-code")).to_contain_text("def other():")
        assert marked(page) == [1]
        assert page.evaluate(FOCUSED) == "sp-code"
    finally:
        file.unlink()
    assert seen.errors and all(
        "gone.py.js" in error or "ERR_FILE_NOT_FOUND" in error or "404" in error for error in seen.errors
    )
    seen.errors.clear()


def test_a_file_without_text_says_so_and_names_what_the_lock_knows(base: str, visit: Open) -> None:
    page = visit(base).goto()
    click(page, "absent")
    expect(page.locator(".sp-message")).to_contain_text("本次构建没有这个文件的全文")
    expect(page.locator(".sp-links")).to_have_text("forward_step · 第 10–20 行")
    expect(page.locator(".sp-facts code")).to_have_text("forward_step")
    expect(page.locator(".sp-pin")).to_have_attribute("title", re.compile("lock"))


def test_folders_and_breadcrumbs(base: str, visit: Open) -> None:
    page = visit(base).goto()
    click(page, "folder")
    expect(page.locator(".sp-links a[data-src]")).to_have_text(
        [
            "data.bin",
            "deep.py",
            "empty.py",
            "evil.py",
            "gone.py",
            "huge.py",
            "kernel.cu",
            "latin.py",
            "odd.py",
            "other.py",
            "training.py",
        ]
    )
    unlinked = page.locator(".sp-links a", has_text="unlinked.py")
    expect(unlinked).to_have_attribute("href", re.compile(r"^https://github\.com/.*/pkg/unlinked\.py$"))
    page.locator(".sp-links a", has_text="other.py").click()
    expect(page.locator(".sp-code")).to_contain_text("def other()")
    assert page.evaluate(FOCUSED) == "sp-code"
    page.locator(".sp-path a", has_text="tiny").click()
    expect(page.locator(".sp-links a.sp-folder")).to_have_text([".github", "pkg"])
    page.locator(".sp-links a", has_text=".github").click()
    page.locator(".sp-links a", has_text="work flow.yml").click()
    expect(page.locator(".sp-code")).to_contain_text("on: push")
    page.keyboard.press("Escape")
    assert page.evaluate(FOCUSED) == "to-folder"


def test_the_address_restores_the_panel(base: str, visit: Open) -> None:
    page = visit(base).goto("index.html?q=1&src=tiny/pkg/training.py:L450-L453#end")
    ready(page)
    assert marked(page) == [450, 451, 452, 453] and in_view(page, 451)
    # A shared link must not take the focus from the text.
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("Escape")
    expect(page.locator("#sp-panel")).to_be_hidden()
    assert page.url.endswith("index.html?q=1#end")
    assert page.evaluate(FOCUSED) == "to-range"


@pytest.mark.parametrize("src", ["nope/a.py", "tiny/../../secret.js", "%3Cscript%3E", "javascript:alert(1)", "tiny"])
def test_an_address_that_makes_no_sense_opens_nothing(http: str, visit: Open, src: str) -> None:
    page = visit(http).goto(f"index.html?src={src}")
    expect(page.locator("#sp-panel")).to_have_count(0)


def test_back_and_forward(base: str, visit: Open) -> None:
    page = visit(base).goto()
    click(page, "range")
    click(page, "other")
    page.evaluate("window.stayed = true")
    page.go_back()
    ready(page)
    assert marked(page) == [450, 451, 452, 453]
    page.go_back()
    expect(page.locator("#sp-panel")).to_be_hidden()
    page.go_forward()
    ready(page)
    assert marked(page) == [450, 451, 452, 453] and in_view(page, 450)
    page.go_forward()
    assert marked(page) == [1, 2]
    page.keyboard.press("Escape")
    expect(page.locator("#sp-panel")).to_be_hidden()
    page.go_back()
    assert marked(page) == [1, 2]
    assert page.evaluate("window.stayed")


def test_an_anchor_of_the_page_keeps_the_panel(base: str, visit: Open) -> None:
    page = visit(base).goto()
    click(page, "other")
    page.locator("#inner").click()
    expect(page.locator("#sp-panel")).to_be_visible()
    assert page.url.endswith("?src=tiny/pkg/other.py:L1-L2#end")


def test_line_numbers_choose_and_shift_extends_a_range_arrived_at(http: str, visit: Open) -> None:
    page = visit(http).goto()
    click(page, "line")
    number = page.locator
    number('.sp-n[data-n="65"]').click(modifiers=["Shift"])
    assert marked(page) == [62, 63, 64, 65]
    assert page.url.endswith(":L62-L65")
    number('.sp-n[data-n="60"]').click(modifiers=["Shift"])
    assert marked(page) == [60, 61, 62]
    number('.sp-n[data-n="70"]').click()
    assert marked(page) == [70]
    expect(page.locator(".sp-facts")).to_contain_text("第 70 行")
    expect(number('.sp-n[data-n="70"]')).to_have_attribute("href", "?src=tiny/pkg/training.py:L70")
    page.go_back()
    expect(page.locator("#sp-panel")).to_be_hidden()


def test_copying_takes_the_text_and_nothing_else(http: str, visit: Open) -> None:
    page = visit(http).goto()
    click(page, "other")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.sp-lines'))")
    assert page.evaluate("getSelection().toString()").rstrip("\n") == "def other():\n    return 1"


def drag(page: Page, selector: str, *, to: tuple[float, float]) -> None:
    box = page.locator(selector).bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + min(box["height"], 400) / 2)
    page.mouse.down()
    page.mouse.move(*to, steps=4)
    # At rest: a sheet let go while it moves fast is swiped away.
    page.wait_for_timeout(150)
    page.mouse.up()


def width(page: Page) -> float:
    box = page.locator("#sp-panel").bounding_box()
    assert box
    return box["width"]


def test_the_width_is_dragged_and_remembered(base: str, visit: Open) -> None:
    page = visit(base).goto()
    click(page, "other")
    drag(page, ".sp-grip", to=(900, 300))
    assert abs(width(page) - 540) <= 2
    page.reload()
    ready(page)
    assert abs(width(page) - 540) <= 2
    grip = page.locator(".sp-grip")
    grip.focus()
    page.keyboard.press("ArrowLeft")
    assert abs(width(page) - 540 - 0.04 * 1440) <= 2
    expect(grip).to_have_attribute("aria-valuenow", "42")
    drag(page, ".sp-grip", to=(5, 300))
    assert width(page) == 1440 - 440, "the text keeps a width that can be read"


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
ZOOMED = {"viewport": {"width": 720, "height": 450}}
"""A window of 1440 × 900 at 200 %."""


def test_a_bottom_sheet_on_a_phone(base: str, visit: Open) -> None:
    page = visit(base, **PHONE).goto()
    page.locator("#to-kernel").scroll_into_view_if_needed()
    page.locator("#to-kernel").tap()
    ready(page)
    panel, link = page.locator("#sp-panel").bounding_box(), page.locator("#to-kernel").bounding_box()
    assert panel and link
    assert (panel["x"], panel["width"]) == (0, 390)
    assert panel["y"] + panel["height"] == 844
    assert link["y"] + link["height"] <= panel["y"], "the link that was tapped stays above the sheet"
    expect(page.locator("#sp-panel")).to_have_attribute("role", "dialog")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # The end of the page can be scrolled out from under the sheet.
    page.locator("#end").evaluate("(end) => end.scrollIntoView({ block: 'end' })")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    end = page.locator("#end").bounding_box()
    assert end and end["y"] + end["height"] <= panel["y"]
    drag(page, ".sp-grip", to=(195, 500))
    taller = page.locator("#sp-panel").bounding_box()
    assert taller and abs(taller["height"] - 344) <= 2
    drag(page, ".sp-grip", to=(195, 830))
    expect(page.locator("#sp-panel")).to_be_hidden()


def test_a_drawer_on_a_tablet(http: str, visit: Open) -> None:
    page = visit(http, viewport={"width": 800, "height": 900}).goto()
    click(page, "other")
    panel = page.locator("#sp-panel").bounding_box()
    assert panel and panel["x"] + panel["width"] == 800 and panel["height"] == 900
    expect(page.locator("#sp-panel")).to_have_attribute("role", "dialog")
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.locator("#sp-panel")).to_have_attribute("role", "complementary")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("html")).to_have_attribute("data-sp", "sheet")


@pytest.mark.parametrize(
    ("start", "options"),
    [("light.html", {}), ("dark.html", {}), ("dark.html", PHONE), ("light.html", ZOOMED)],
    ids=["light", "dark", "phone", "zoomed"],
)
def test_axe_finds_nothing(http: str, visit: Open, start: str, options: dict[str, Any]) -> None:
    seen: Visit = visit(http, **options)
    page = seen.goto(start)
    # The sample page has no palette of its own: its colours are not the panel's business.
    assert seen.axe(disable=("color-contrast",)) == []
    for name in ("evil", "latin", "absent", "folder"):
        click(page, name)
        assert seen.axe(include=".sp-panel") == [], name
    assert seen.axe(disable=("color-contrast",)) == []


def test_axe_can_find_something(http: str, visit: Open) -> None:
    seen = visit(http)
    page = seen.goto()
    click(page, "other")
    page.locator(".sp-close").evaluate("(button) => { button.ariaLabel = button.title = '' }")
    page.locator(".sp-path b").evaluate("(name) => { name.style.color = '#ddd' }")
    found = "\n".join(seen.axe(include=".sp-panel"))
    assert "button-name" in found and "color-contrast" in found


def test_nothing_leaks_over_many_openings(http: str, visit: Open) -> None:
    page = visit(http).goto()
    client = page.context.new_cdp_session(page)

    def counts() -> dict[str, int]:
        page.evaluate("new Promise((done) => requestIdleCallback(() => setTimeout(done, 100), { timeout: 2000 }))")
        client.send("HeapProfiler.collectGarbage")
        found = client.send("Memory.getDOMCounters")
        return {"nodes": found["nodes"], "listeners": found["jsEventListeners"]}

    def round_trip() -> None:
        for name in ("range", "other", "evil", "kernel", "odd", "empty", "latin", "absent", "folder"):
            click(page, name)
        page.keyboard.press("Escape")
        expect(page.locator("#sp-panel")).to_be_hidden()

    round_trip()
    before = at_rest(counts, "nodes")
    for _ in range(3):
        round_trip()
    after = at_rest(counts, "nodes")
    assert after["listeners"] <= before["listeners"] + 2
    assert after["nodes"] <= before["nodes"] * 1.05


def test_print_names_path_range_and_commit(http: str, visit: Open) -> None:
    page = visit(http).goto()
    click(page, "range")
    page.emulate_media(media="print")
    expect(page.locator("#sp-panel")).to_be_hidden()
    text = page.locator("#to-range").evaluate("(link) => getComputedStyle(link, '::after').content")
    assert "tiny/pkg/training.py#L450-L453" in text and "@ af5c6bfe" in text
    assert page.evaluate("getComputedStyle(document.body).paddingRight") == "0px"


def test_motion_only_for_those_who_want_it(http: str, visit: Open) -> None:
    name = "getComputedStyle(document.querySelector('#sp-panel')).animationName"
    moving = visit(http, **PHONE).goto()
    click(moving, "other")
    assert moving.evaluate(name) == "sp-up"
    still = visit(http, **PHONE, reduced_motion="reduce").goto()
    click(still, "other")
    assert still.evaluate(name) == "none"
