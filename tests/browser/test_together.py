"""Reading together: the tour through a note's references, and the panel that follows the text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Mode, Open, at_rest
from tests.browser.test_moving import follow, moving_site  # noqa: F401
from tests.browser.test_panel import PHONE, marked, ready

TOUR, FOLLOW = "逐处导览（j / k）", "跟随正文"


@pytest.fixture
def http(moving_site: Path, publish: Callable[[Path, Mode], str]) -> str:  # noqa: F811
    return publish(moving_site, "http")


def current(page: Page) -> str:
    return page.locator(".sp-tour [aria-current=step]").inner_text().split("\n")[0].strip()


@pytest.mark.parametrize("options", [{}, PHONE], ids=["wide", "phone"])
def test_the_tour_walks_the_references_in_order(http: str, visit: Open, options: dict[str, object]) -> None:
    seen = visit(http, **options)
    page = seen.goto("index.html?q=1")
    page.keyboard.press("j")
    ready(page)
    assert current(page) == "train" and marked(page) == [5, 6, 7, 8, 9]
    assert page.url.endswith("?q=1&src=tiny/pkg/train.py:L5-L9&mode=step")
    expect(page.locator(".sp-tour li")).to_have_count(5)
    expect(page.locator(".sp-tour p")).to_contain_text("第 1 / 5 处")
    for _ in range(3):
        page.keyboard.press("j")
    ready(page)
    assert current(page) == "line" and marked(page) == [8]
    link = page.locator("#sp-4")
    expect(link).to_be_in_viewport()
    page.wait_for_function("new Promise(done => { let y = scrollY; setTimeout(() => done(y === scrollY), 200) })")
    box, panel = link.bounding_box(), page.locator("#sp-panel").bounding_box()
    assert box and panel and (not options or box["y"] + box["height"] < panel["y"]), "not below the sheet"
    widths = page.locator(".sp-head, .sp-tools, .sp-tour, .sp-body").evaluate_all("all => all.map(n => n.offsetWidth)")
    assert len(widths) == 4 and len(set(widths)) == 1, "all in one column"
    expect(page.locator(".sp-here")).to_have_count(1)
    expect(page.locator(".sp-here")).to_contain_text("反向先走")
    assert seen.axe(disable=("color-contrast",)) == []
    assert seen.axe(include=".sp-panel") == []
    page.keyboard.press("k")
    assert current(page) == "build"
    page.locator(".sp-tour li button").last.click()
    ready(page)
    assert marked(page) == [400, 401, 402, 403]
    page.keyboard.press("j")
    assert current(page) == "filler", "the last step is the last"
    page.reload()
    ready(page)
    assert current(page) == "filler"
    page.locator("#field").press("k")
    assert current(page) == "filler", "a field keeps its keys"
    page.get_by_role("button", name=TOUR).click()
    expect(page.locator(".sp-tour")).to_have_count(0)
    assert page.url.endswith("?q=1&src=tiny/pkg/train.py:L400-L403")


def scroll_to(page: Page, selector: str) -> None:
    page.locator(selector).evaluate("one => one.scrollIntoView({ block: 'center', behavior: 'instant' })")


def test_following_shows_the_paragraph_and_steals_nothing(http: str, visit: Open) -> None:
    page = visit(http).goto()
    follow(page, "train")
    page.get_by_role("button", name=FOLLOW).click()
    assert page.url.endswith("mode=follow")
    before = page.evaluate("history.length")
    scroll_to(page, "#sp-4")
    page.evaluate("scrollBy(0, 200)")
    expect(page.locator(".sp-facts")).to_contain_text("第 8 行")
    expect(page.locator(".sp-here")).to_contain_text("反向先走")
    assert page.evaluate("history.length") == before, "scrolling leaves no trail"
    # A link that the reader clicks stays, though the line of reading is elsewhere.
    scroll_to(page, "#sp-3")
    page.locator("#sp-3").click()
    ready(page)
    page.mouse.wheel(0, 5)
    page.wait_for_timeout(200)
    assert marked(page) == [18, 19, 20]
    # A hand on the panel pauses.
    page.locator(".sp-code").hover()
    page.mouse.wheel(0, 50)
    expect(page.locator(".sp-tour")).to_contain_text("已暂停跟随")
    scroll_to(page, "#sp-5")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_timeout(200)
    assert marked(page) == [18, 19, 20]
    page.get_by_role("button", name="继续跟随").click()
    expect(page.locator(".sp-facts")).to_contain_text("400–403")
    page.reload()
    ready(page)
    expect(page.get_by_role("button", name=FOLLOW)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#sp-panel")).to_be_hidden()
    scroll_to(page, "#top")
    page.wait_for_timeout(200)
    expect(page.locator("#sp-panel")).to_be_hidden()
    assert page.url.endswith("index.html")
    expect(page.locator(".sp-here")).to_have_count(0)


def test_a_link_that_was_clicked_stays_while_it_is_in_view(http: str, visit: Open) -> None:
    page = visit(http, viewport={"width": 1440, "height": 2400}).goto()
    follow(page, "train")
    page.get_by_role("button", name=FOLLOW).click()
    page.locator("#sp-5").click()
    ready(page)
    assert page.evaluate("scrollY") == 0 and marked(page) == [400, 401, 402, 403]
    # The line of reading comes to another paragraph, but what was asked for is still in view.
    page.evaluate("scrollTo(0, document.querySelector('#sp-2').getBoundingClientRect().top - 250)")
    page.wait_for_timeout(200)
    expect(page.locator("#sp-5")).to_be_in_viewport()
    assert marked(page) == [400, 401, 402, 403]
    page.set_viewport_size({"width": 1440, "height": 600})
    page.evaluate("scrollTo(0, document.querySelector('#sp-2').getBoundingClientRect().top + scrollY - 100)")
    expect(page.locator(".sp-facts")).to_contain_text("10–12")


def test_a_sheet_is_pulled_by_its_head_and_swiped_away(http: str, visit: Open) -> None:
    page = visit(http, **PHONE).goto()
    follow(page, "train")
    panel, facts = page.locator("#sp-panel"), page.locator(".sp-facts")

    def pull(by: float, *, rest: bool) -> None:
        box = facts.bounding_box()
        assert box
        page.mouse.move(box["x"] + 5, box["y"] + 8)
        page.mouse.down()
        page.mouse.move(box["x"] + 5, box["y"] + 8 + by, steps=3)
        if rest:
            page.wait_for_timeout(200)
        page.mouse.up()

    before = panel.bounding_box()
    pull(80, rest=True)
    after = panel.bounding_box()
    assert before and after and before["height"] - after["height"] > 40
    pull(60, rest=False)
    expect(panel).to_be_hidden()


def test_nothing_is_left_of_many_openings_and_pages(http: str, visit: Open) -> None:
    page = visit(http).page
    page.add_init_script("window.document$ = { subscribe(next) { this.next = next; } }")
    page.goto(http + "index.html")
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable")

    def read() -> dict[str, float]:
        page.evaluate("new Promise(done => requestIdleCallback(() => setTimeout(done, 100), { timeout: 2000 }))")
        for _ in range(3):
            client.send("HeapProfiler.collectGarbage")
        found = client.send("Performance.getMetrics")["metrics"]
        return {m["name"]: m["value"] for m in found if m["name"] in ("JSEventListeners", "Nodes", "JSHeapUsedSize")}

    def use(opens: int, pages: int) -> None:
        """Open files, and swap the page as instant navigation does, in every mode."""
        page.evaluate(
            """async ([opens, pages]) => {
                const wait = () => new Promise(done => setTimeout(done, 5));
                const article = document.querySelector("article");
                window.text ??= article.innerHTML;
                // More files than are kept, so that views are dropped and made again.
                const places = ["model.py#L10", "train.py#L5-L9", "far.py", "", "model.py", "train.py#L400"];
                for (let i = 0; i < 9; i++) places.push(`many_${i}.py#L250`);
                for (let i = 0; i < opens; i++) {
                    SourcePanel.open(`tiny/pkg/${places[i % places.length]}`);
                    if (i % 7 === 0) document.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
                    await wait();
                }
                for (let i = 0; i < pages; i++) {
                    article.innerHTML = window.text;
                    document$.next();
                    const link = document.querySelector(".sp-link");
                    link.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
                    document.dispatchEvent(new KeyboardEvent("keydown", { key: "jk"[i % 2], bubbles: true }));
                    await wait();
                }
                SourcePanel.close();
            }""",
            [opens, pages],
        )
        expect(page.locator("#sp-panel")).to_be_hidden()

    # Both end with the same files, whole rounds of the fifteen places, so that the same views are kept.
    use(30, 5)
    before = at_rest(read, "Nodes")
    use(210, 50)
    after = at_rest(read, "Nodes")
    assert after["JSEventListeners"] <= before["JSEventListeners"] + 5, (before, after)
    assert after["Nodes"] <= before["Nodes"] * 1.05 + 100, (before, after)
    assert after["JSHeapUsedSize"] <= before["JSHeapUsedSize"] * 1.25, (before, after)
