"""The graph in a real browser: pointing, keys, fingers, zoom, kinds, palettes, paper, and nothing left behind."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sourcepanel.graph.site import SiteGraph
from sourcepanel.panel_assets import lean_asset
from sourcepanel.strings import strings
from tests.browser.conftest import Open
from tests.browser.test_site import NOTE, base, http, instant, site  # noqa: F401 - fixtures
from tests.support.graphs import synthetic

GRAPH = "graph.html"
COUNT = """
window.heard = 0;
const add = EventTarget.prototype.addEventListener, remove = EventTarget.prototype.removeEventListener;
EventTarget.prototype.addEventListener = function (...all) { window.heard++; return add.apply(this, all); };
EventTarget.prototype.removeEventListener = function (...all) { window.heard--; return remove.apply(this, all); };
"""


def node(page: Page, title: str, *, place: str = ".graph"):
    return page.locator(f"{place} .graph__node").filter(has=page.locator("title", has_text=re.compile(f"^{title}$")))


def shown(page: Page, selector: str) -> int:
    """How many are painted."""
    return page.locator(selector).evaluate_all("all => all.filter((one) => one.getClientRects().length).length")


def box(page: Page) -> list[float]:
    return [float(value) for value in (page.locator(".graph__svg").get_attribute("viewBox") or "").split()]


@pytest.mark.parametrize("name", [GRAPH, NOTE])
def test_pointing_shows_the_neighbours_and_leaving_hides_them(base: str, visit: Open, name: str):  # noqa: F811
    page = visit(base).goto(name)
    one = page.locator('.graph .graph--source.graph__node[data-to*=" "]').first
    one.scroll_into_view_if_needed()
    one.locator("rect").hover()
    expect(one).to_have_class(re.compile("graph__near"))
    near = len((one.get_attribute("data-to") or "").split())
    hidden = page.locator(".graph--depth2").count()
    assert near + 1 - hidden <= page.locator(".graph__near").count() <= near + 1
    line = page.locator(".graph__lit").get_attribute("d") or ""
    assert line.count("M") == page.locator(".graph__near").count() - 1 > 0
    page.mouse.move(2, 2)
    expect(page.locator(".graph__near")).to_have_count(0)
    expect(page.locator(".graph__lit")).to_have_attribute("d", "")


@pytest.mark.parametrize("name", [GRAPH, NOTE])
def test_nodes_are_links_and_a_source_file_opens_the_panel(base: str, visit: Open, name: str):  # noqa: F811
    page = visit(base).goto(name)
    file = node(page, "megatron/training/training.py")
    file.locator("rect").click()
    expect(page.locator("#sp-panel")).to_be_visible()
    expect(page.locator("#sp-panel")).to_have_attribute("aria-label", re.compile("megatron/training/training.py"))
    page.keyboard.press("Escape")
    expect(page.locator("#sp-panel")).to_be_hidden()
    expect(file).to_be_focused()
    node(page, "02 Distributed Initialization").locator("circle").click()
    expect(page.locator("h1")).to_contain_text("02")


def test_keys_walk_the_graph_as_one_stop(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto(GRAPH)
    page.locator(".graph__tools [data-do=fit]").focus()
    page.keyboard.press("Tab")
    first = page.evaluate("document.activeElement.querySelector('title').textContent")
    expect(page.locator(".graph__node.graph__near").first).to_be_attached()
    expect(page.locator('.graph__node[tabindex="0"]')).to_have_count(1)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.matches('.graph__node')")
    assert page.evaluate("document.activeElement.querySelector('title').textContent") != first
    before = box(page)
    page.keyboard.press("+")
    assert box(page)[2] == pytest.approx(before[2] / 2)
    page.keyboard.press("0")
    assert box(page) == before
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.matches('.graph__node')"), "the graph is one stop"
    node(page, "03 Data and Batch Flow").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("03")


def test_zoom_brings_names_keeps_their_size_and_never_loses_the_drawing(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto(GRAPH)
    texts, sizes = [], []
    for _ in range(4):
        texts.append(page.locator(".graph text").evaluate_all(
            "all => all.filter((one) => getComputedStyle(one).display !== 'none').length"))  # fmt: skip
        first = page.locator(".graph text.graph__z1").first
        sizes.append(first.evaluate("one => one.getBoundingClientRect().height"))
        page.get_by_role("button", name="放大").click()
    assert texts == sorted(texts)
    assert texts[0] < texts[-1]
    assert max(sizes) - min(sizes) < 2
    for _ in range(8):
        page.get_by_role("button", name="放大").click()
    smallest = box(page)
    page.get_by_role("button", name="看全部").click()
    home = box(page)
    assert home[2] / smallest[2] == pytest.approx(16)
    page.get_by_role("button", name="缩小").click()
    assert box(page) == home
    svg = page.locator(".graph__svg")
    svg.hover()
    page.mouse.wheel(0, -200)
    assert box(page) == home, "a wheel alone scrolls the page"
    svg.scroll_into_view_if_needed()
    svg.hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function(f"document.querySelector('.graph__svg').viewBox.baseVal.width < {home[2]} - 1")
    was = box(page)
    area = svg.bounding_box()
    assert area
    page.mouse.move(area["x"] + 200, area["y"] + 100)
    page.mouse.down()
    page.mouse.move(area["x"] + 260, area["y"] + 130, steps=4)
    page.mouse.up()
    assert box(page)[0] < was[0]
    assert box(page)[2] == pytest.approx(was[2])


PINCH = """(svg) => {
  const { left, top } = svg.getBoundingClientRect();
  const touch = (type, id, x) => svg.dispatchEvent(new PointerEvent(type, {
    bubbles: true, pointerId: id, pointerType: 'touch', isPrimary: id === 1, clientX: left + x, clientY: top + 90 }));
  touch('pointerdown', 1, 100); touch('pointerdown', 2, 140);
  touch('pointermove', 1, 60); touch('pointermove', 2, 180);
  touch('pointerup', 1, 60); touch('pointerup', 2, 180);
}"""


def test_fingers_zoom_and_a_tap_follows_on_a_phone(http: str, visit: Open):  # noqa: F811
    page = visit(http, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).goto(GRAPH)
    svg = page.locator(".graph__svg")
    home = box(page)
    svg.evaluate(PINCH)
    assert box(page)[2] == pytest.approx(home[2] / 3, rel=0.01)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="看全部").tap()
    assert box(page) == home
    node(page, "03 Data and Batch Flow").locator("circle").tap()
    expect(page.locator("h1")).to_contain_text("03")
    section = page.locator(".graph-local")
    assert section.count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scripts", [True, False])
def test_each_kind_can_be_hidden_with_its_edges_also_without_scripts(http: str, visit: Open, scripts: bool):  # noqa: F811
    page = visit(http, java_script_enabled=scripts).goto(GRAPH)
    for kind in ("note", "page", "script", "source", "term"):
        assert page.locator(f"svg .graph--{kind}.graph__node").count() > 0
        expect(page.locator(f"svg .graph--{kind}.graph__node").first).to_be_visible()
        page.locator(f'.graph [data-kind="{kind}"]').uncheck()
        expect(page.locator(f"svg .graph--{kind}:visible")).to_have_count(0)
    expect(page.locator("svg .graph__edges:visible")).to_have_count(0)


def test_without_scripts_the_graph_is_links_with_names(base: str, visit: Open):  # noqa: F811
    page = visit(base, java_script_enabled=False).goto(NOTE)
    expect(page.locator(".graph__tools")).to_be_hidden()
    expect(page.locator(".graph--depth2:visible")).to_have_count(0)
    node(page, "02 Distributed Initialization").locator("circle").click()
    expect(page.locator("h1")).to_contain_text("02")
    hrefs = page.locator(".graph .graph--source.graph__node").evaluate_all("all => all.map((one) => one.href.baseVal)")
    assert len(hrefs) > 5
    assert all(href.startswith("https://github.com/") for href in hrefs)


def test_two_steps_show_more_and_fit(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto("notes/07-checkpointing.html")
    before, home = shown(page, ".graph__node"), box(page)
    page.get_by_label("两步之内").check()
    assert shown(page, ".graph__node") == page.locator(".graph__node").count() > before
    assert box(page)[2] > home[2]
    page.get_by_label("两步之内").uncheck()
    assert (shown(page, ".graph__node"), box(page)) == (before, home)


def test_the_graph_follows_the_palette_and_prints(http: str, visit: Open):  # noqa: F811
    page = visit(http, color_scheme="light").goto(GRAPH)
    fill = "getComputedStyle(document.querySelector('.graph__node.graph--note > g')).fill"
    light = page.evaluate(fill)
    page.get_by_title("切换到浅色").click()
    assert page.evaluate(fill) == light
    page.get_by_title("切换到深色").click()
    assert page.evaluate(fill) != light
    page.emulate_media(media="print")
    expect(page.locator(".graph__bar")).to_be_hidden()
    assert shown(page, ".graph__node") == page.locator(".graph__node").count()


def test_going_to_and_fro_leaves_nothing_behind(instant: str, visit: Open):  # noqa: F811
    made = visit(instant)
    made.page.add_init_script(COUNT)
    page = made.goto(GRAPH)
    page.evaluate("window.stayed = true")
    counts = []
    for _ in range(4):
        page.locator(".md-nav--primary").get_by_role("link", name="术语表", exact=True).first.click()
        expect(page.locator("h1")).to_contain_text("术语表")
        page.locator(".md-nav--primary").get_by_role("link", name="关系图谱", exact=True).first.click()
        expect(page.locator("h1")).to_contain_text("关系图谱")
        expect(page.locator(".graph__tools")).to_be_visible()
        page.locator(".graph--note.graph__node circle").first.hover()
        expect(page.locator(".graph__near").first).to_be_attached()
        page.mouse.move(1, 1)
        counts.append(page.evaluate("[window.heard, document.querySelectorAll('*').length]"))
    assert page.evaluate("window.stayed"), "the page was loaded anew: instant navigation is not on"
    assert page.locator(".graph__svg").count() == 1
    elements = [count for _, count in counts]
    assert max(elements[1:]) - min(elements[1:]) <= 2, counts
    # The theme adds a few of its own with each page; ours would be a dozen.
    steps = [b[0] - a[0] for a, b in pairwise(counts[1:])]
    assert all(step < 12 for step in steps), counts


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_in_the_graphs(http: str, visit: Open, colours: str):  # noqa: F811
    for name in (GRAPH, NOTE):
        made = visit(http, color_scheme=colours)
        page = made.goto(name)
        page.locator(".graph__node").first.focus()
        assert made.axe(include=".graph") == []


@pytest.mark.parametrize("notes", [600, 2000])
def test_a_graph_of_many_notes_can_be_used(tmp_path: Path, visit: Open, notes: int):
    graph = SiteGraph(synthetic(notes), known={}, strings=strings())
    for name in ("graph.js", "graph.css"):
        (tmp_path / "sourcepanel").mkdir(exist_ok=True)
        (tmp_path / "sourcepanel" / name).write_text(lean_asset(name), encoding="utf-8")
    html = f"<!doctype html><meta charset=utf-8><script>var SourcePanel = {{}}</script>{graph.whole(up='')}"
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    page = visit(tmp_path.as_uri() + "/").goto()
    assert page.locator(".graph__node").count() == len(graph.graph.nodes)
    page.locator(".graph__node.graph--note").last.focus()
    expect(page.locator(".graph__near").first).to_be_attached()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.matches('.graph__near')")
    home = box(page)
    page.get_by_role("button", name="放大").click()
    assert box(page)[2] == pytest.approx(home[2] / 2)
    assert page.evaluate("document.querySelectorAll('*').length") < 13_000
