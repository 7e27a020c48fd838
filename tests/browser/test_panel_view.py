"""What stands in the panel: text to the letter, few elements, colours that can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from sourcepanel.render import CLASSES, SECTION
from tests.browser.conftest import Mode, Open
from tests.browser.panel_site import EVIL, HUGE, TRAINING


@pytest.fixture
def base(panel_site: Path, publish: Callable[[Path, Mode], str]) -> str:
    return publish(panel_site, "file")


def opened(visit: Open, base: str, name: str, *, start: str = "index.html", **options: Any) -> Page:
    page = visit(base, **options).goto(start)
    page.locator(f"#to-{name}").click()
    expect(page.locator("#sp-panel")).to_have_attribute("aria-busy", "false")
    return page


def text(page: Page) -> str:
    found = page.locator(".sp-lines").evaluate("(lines) => lines.textContent")
    assert isinstance(found, str)
    return found


def test_source_that_looks_like_markup_is_text(visit: Open, base: str) -> None:
    page = opened(visit, base, "evil")
    assert text(page) == EVIL
    assert page.locator(".sp-lines img, .sp-lines script, .sp-lines b").count() == 0
    assert page.evaluate("window.hacked") is None
    assert page.locator(".sp-l").count() == 3, "U+2028 and U+2029 end no line"


def test_the_text_is_whole_before_and_after_colouring(visit: Open, base: str) -> None:
    page = opened(visit, base, "range")
    assert text(page) == TRAINING
    expect(page.locator(".sp-ready")).to_have_count(-(-TRAINING.count("\n") // SECTION))
    assert text(page) == TRAINING
    numbers = page.locator(".sp-n").evaluate_all("all => all.map((n) => Number(n.dataset.n))")
    assert numbers == list(range(1, TRAINING.count("\n") + 1))


def test_line_ends_tabs_form_feeds_and_a_missing_newline(visit: Open, base: str) -> None:
    page = opened(visit, base, "odd")
    lines = page.locator(".sp-l").evaluate_all("all => all.map((line) => line.textContent)")
    assert lines == ["a = 1\n", "\tb = 2\n", "# form\x0cfeed\n", "last = 3\n"]
    expect(page.locator(".sp-on")).to_have_text("last = 3")
    heights = page.locator(".sp-l").evaluate_all("all => all.map((line) => line.getBoundingClientRect().height)")
    assert set(heights) == {20}


def test_a_docstring_of_two_lines_is_coloured_on_both(visit: Open, base: str) -> None:
    page = opened(visit, base, "range")
    inner = page.locator(".sp-l").evaluate_all("all => all.slice(4, 6).map((line) => line.lastElementChild.className)")
    assert inner == ["s", "s"]


@pytest.mark.parametrize(
    ("name", "selector", "words"),
    [
        ("empty", ".sp-notice", "这是一个空文件"),
        ("latin", ".sp-notice", "按 Latin-1 显示"),
        ("binary", ".sp-message", "二进制文件"),
    ],
)
def test_files_that_need_a_word(visit: Open, base: str, name: str, selector: str, words: str) -> None:
    page = opened(visit, base, name)
    expect(page.locator(f".sp-body {selector}")).to_contain_text(words)


def test_100_000_lines_stand_at_once_in_few_elements(visit: Open, base: str) -> None:
    page = opened(visit, base, "huge")
    row = page.locator(".sp-on").first
    expect(row).to_have_text("row(75000)  # of many")
    expect(row).to_be_in_viewport()
    # All the text is there, for the browser's own find and for selection …
    assert text(page) == HUGE
    assert page.evaluate("window.find('row(99999)')")
    # … but only sections near the view have elements, and only those the browser lays out.
    sections = page.locator(".sp-lines section").count()
    dressed = page.locator(".sp-ready").count()
    elements = page.locator(".sp-lines *").count()
    assert sections == 100_000 / SECTION
    assert dressed <= 12
    assert elements <= sections + dressed * SECTION * 6
    nodes = page.context.new_cdp_session(page).send("Memory.getDOMCounters")["nodes"]
    assert nodes <= 30_000


def test_scrolling_far_colours_what_comes_into_view(visit: Open, base: str) -> None:
    page = opened(visit, base, "huge")
    page.locator(".sp-code").evaluate("(code) => { code.scrollTop = code.scrollHeight }")
    last = page.locator('.sp-n[data-n="100000"]')
    expect(last).to_be_in_viewport()
    expect(last.locator("..")).to_have_text("row(100000)  # of many")


def test_the_height_is_right_before_anything_was_laid_out(visit: Open, base: str) -> None:
    page = opened(visit, base, "huge")
    assert page.locator(".sp-lines").evaluate("(lines) => lines.offsetHeight") == 100_000 * 20 + 16


def test_a_line_past_the_end_marks_the_last(visit: Open, base: str) -> None:
    page = visit(base).goto("index.html?src=tiny/pkg/other.py:L900")
    expect(page.locator(".sp-on")).to_have_text("return 1")


def test_lines_deep_in_a_class_start_where_they_can_be_read(visit: Open, base: str) -> None:
    page = opened(visit, base, "deep")
    number, line = page.locator('.sp-n[data-n="30"]'), page.locator(".sp-on .f").first
    left, right = number.bounding_box(), line.bounding_box()
    assert left and right
    assert left["x"] + left["width"] <= right["x"] <= left["x"] + left["width"] + 60
    expect(number).to_be_in_viewport()
    # The first line of a file that fits stays where it is.
    page.locator("#to-other").click()
    expect(page.locator(".sp-on").first).to_have_text("def other():")
    assert page.locator(".sp-code").evaluate("(code) => code.scrollLeft") == 0


def luminance(colour: str) -> float:
    parts = [float(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


SCHEMES = [
    ("light.html", "dark", "light"),
    ("dark.html", "light", "dark"),
    ("index.html", "light", "light"),
    ("index.html", "dark", "dark"),
]
"""(page, what the system asks for, what must show): the site's own palette wins over the system's."""


@pytest.mark.parametrize(("start", "system", "shown"), SCHEMES)
def test_every_colour_can_be_read_on_every_ground(visit: Open, base: str, start: str, system: str, shown: str) -> None:
    page = opened(visit, base, "other", start=start, color_scheme=system)
    colours: dict[str, Any] = page.evaluate(
        """(names) => {
            const line = document.querySelector('.sp-l');
            const probe = (name) => {
                const span = line.appendChild(Object.assign(document.createElement('span'), { className: name }));
                return getComputedStyle(span).color;
            };
            return {
                plain: getComputedStyle(line).color,
                number: getComputedStyle(document.querySelector('.sp-l:not(.sp-on) .sp-n, .sp-n')).color,
                ground: getComputedStyle(document.querySelector('.sp-panel')).backgroundColor,
                marked: getComputedStyle(document.querySelector('.sp-on')).backgroundColor,
                tokens: Object.fromEntries(names.map((name) => [name, probe(name)])),
            };
        }""",
        sorted(set(CLASSES.values())),
    )
    assert (luminance(colours["ground"]) > 0.5) == (shown == "light")
    for name, colour in {**colours["tokens"], "plain": colours["plain"], "number": colours["number"]}.items():
        for ground in (colours["ground"], colours["marked"]):
            assert contrast(colour, ground) >= 4.5, f"{name}: {colour} on {ground}"
    assert colours["plain"] not in colours["tokens"].values(), "a token class has no colour in the style sheet"
    assert contrast("rgb(119, 119, 119)", "rgb(255, 255, 255)") < 4.5 < contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)")


def test_the_licence_and_the_pin_stand_beside_every_view(visit: Open, base: str) -> None:
    for name in ("range", "absent", "binary", "folder"):
        page = opened(visit, base, name)
        expect(page.locator(".sp-foot")).to_be_visible()
        expect(page.locator(".sp-foot")).to_contain_text("© Tiny")
        expect(page.locator(".sp-pin")).to_contain_text("v2.0 @ af5c6bfe")
