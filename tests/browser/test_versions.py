"""The open lines at another version, over http and from disk: where they differ, what changed, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from sourcepanel.panel import write_panel
from sourcepanel.project import Project
from sourcepanel.versions_view import read_versions
from tests.browser.conftest import Mode, Open, Visit
from tests.browser.moving_site import page as around
from tests.browser.test_panel import marked, ready
from tests.browser.test_panel_view import contrast
from tests.support.tiny import URL, build_repo
from tests.support.versions import NEW_LINES, NEXT, OLD_LINE, ROW, STEP, TARGETS, TEXT, at, offer

NAMES = ("step", "weight", "same", "row", "file", "gone", "all")
"""What the targets are called on the page, in order."""


@pytest.fixture(scope="session")
def versions_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a link to each target, and the panel with v4.0."""
    root = tmp_path_factory.mktemp("versions")
    config = offer(build_repo(root / "tiny"), root / "project")
    sources = Project.open(config.root, notify=lambda line: None).sources
    views = read_versions(config, sources=sources, targets=TARGETS, notify=lambda line: None)
    out = root / "site"
    write_panel(out, sources=list(sources.values()), targets=TARGETS, cache=None, versions=views)
    links = [
        f'<p><a class="sp-link" id="to-{name}" href="{to.href}" data-src="{to.key}">{name}</a></p>'
        for name, to in zip(NAMES, TARGETS, strict=True)
    ]
    for name, scheme in (("index", "default"), ("slate", "slate")):
        (out / f"{name}.html").write_text(around(f"<h1>样页</h1>{''.join(links)}", scheme=scheme), encoding="utf-8")
    return out


@pytest.fixture(params=["http", "file"])
def base(request: pytest.FixtureRequest, versions_site: Path, publish: Callable[[Path, Mode], str]) -> str:
    return publish(versions_site, request.param)


def follow(page: Page, name: str) -> Locator:
    """Open a link; the button of the other version."""
    page.locator(f"#to-{name}").click()
    ready(page)
    return page.locator(".sp-tools").get_by_role("button", name="在 4.0")


def signed(page: Page) -> list[tuple[str, str, int]]:
    """Sign, text and number of the lines that are marked as changed, in order, by what a reader sees."""
    found: list[list[str]] = page.locator(".sp-then .sp-l").evaluate_all(
        """lines => lines.map((line) => [line.children[1].textContent.trim(), line.children[2].textContent,
          line.children[0].textContent, getComputedStyle(line).backgroundColor, line.localName])"""
    )
    plain = {ground for sign, _, _, ground, tag in found if not sign and tag == "div"}
    for sign, text, _, ground, tag in found:
        assert {"+": "ins", "−": "del", "": "div"}[sign] == tag, text
        assert (ground not in plain) == bool(sign), f"{text}: a sign without its colour, or a colour without its sign"
    grounds = {sign: ground for sign, _, _, ground, _ in found}
    assert grounds.get("+") is None or grounds["+"] != grounds.get("−")
    return [(sign, text, int(number)) for sign, text, number, _, _ in found if sign]


def check_step(page: Page) -> None:
    """The changed step: one line less, two more."""
    first = at(NEW_LINES[0], NEXT.decode().split("\n"))
    added = [("+", text, first + i) for i, text in enumerate(NEW_LINES)]
    assert signed(page) == [("−", OLD_LINE, at(OLD_LINE)), *added]


def clean(seen: Visit) -> None:
    """Axe finds nothing; it cannot run on a page from disk."""
    if seen.base.startswith("http"):
        assert seen.axe(include=".sp-panel") == []


@pytest.mark.parametrize(
    ("start", "options"),
    [
        ("index.html", {}),
        ("slate.html", {"color_scheme": "dark"}),
        ("index.html", {"viewport": {"width": 390, "height": 800}, "has_touch": True}),
    ],
    ids=["light", "dark", "phone"],
)
def test_the_lines_at_the_other_version(base: str, visit: Open, start: str, options: dict[str, object]) -> None:
    seen = visit(base, **options)
    page = seen.goto(start)
    expect(follow(page, "same")).to_have_count(0)
    expect(follow(page, "file")).to_have_count(0)
    button = follow(page, "step")
    live, shown, then = page.locator(".sp-live"), page.locator(".sp-pop"), page.locator(".sp-then")
    assert not [url for url in seen.requests if "/versions/" in url], "nothing is loaded before it is asked for"
    button.click()
    expect(then).to_be_focused()
    check_step(page)
    expect(then.locator("ins").first).to_be_in_viewport()
    now = NEXT.decode().split("\n")
    moved = now.index(TEXT[STEP[0] - 1]) + 1
    place = f"tiny/training.py 第 {moved}–{moved + STEP[1] - STEP[0] + 1} 行"
    expect(live).to_have_text(f"在 4.0 {place} 有改动 +2 −1")
    expect(shown.locator(".sp-facts")).to_contain_text("4.0")
    expect(shown.locator(".sp-facts")).to_contain_text(place)
    lines = f"#L{moved}-L{moved + STEP[1] - STEP[0] + 1}"
    expect(shown.get_by_role("link")).to_have_attribute("href", f"{URL}/blob/v4.0/tiny/training.py{lines}")
    expect(button).to_have_attribute("aria-expanded", "true")
    clean(seen)
    colours = then.evaluate(
        """(then) => [...then.querySelectorAll('.sp-l')].flatMap((line) =>
          [...line.querySelectorAll('span, small, b')].map((one) => [one, line].map((each) => getComputedStyle(each)))
            .map(([text, ground]) => [text.color, ground.backgroundColor]))"""
    )
    assert all(contrast(text, ground) >= 4.5 for text, ground in colours if ground.startswith("rgb("))
    # Escape closes this window alone, then the button opens it again, from the keyboard too.
    page.keyboard.press("Escape")
    expect(shown).to_have_count(0)
    expect(live).to_have_text("回到 v2.0 的源码")
    expect(page.locator("#sp-panel")).to_be_visible()
    assert marked(page) == list(range(STEP[0], STEP[1] + 1))
    page.keyboard.press("v")
    expect(then).to_be_focused()
    shown.get_by_role("button", name="回到 v2.0").click()
    expect(shown).to_have_count(0)
    button.click()
    button.click()
    expect(shown).to_have_count(0)
    assert len([url for url in seen.requests if "/versions/" in url]) == 1, "the script is loaded once"
    # Another place closes it; every kind of change says what it is.
    button.click()
    expect(then).to_be_visible()
    page.locator("#to-row").evaluate("(link) => link.click()")
    ready(page)
    expect(shown).to_have_count(0)
    button.click()
    expect(shown.locator(".sp-facts")).to_contain_text(f"tiny/core/layers.py 第 {ROW[0]}–{ROW[1]} 行移到了另一个文件")
    assert signed(page) == []
    page.locator("#to-weight").evaluate("(link) => link.click()")
    button.click()
    expect(shown.locator(".sp-facts")).to_contain_text("只改了排版")
    assert [(sign, text.strip()) for sign, text, _ in signed(page)] == [
        ("−", "return self.model.weight"),
        ("+", "return self . model . weight"),
    ]
    page.locator("#to-gone").evaluate("(link) => link.click()")
    button.click()
    expect(shown.locator(".sp-facts")).to_contain_text("已不存在 −2")
    expect(shown.get_by_role("link")).to_have_count(0)
    assert [sign for sign, _, _ in signed(page)] == ["−", "−"]
    # Long stretches that are equal are folded, and open on a click; none is left out.
    page.locator("#to-all").evaluate("(link) => link.click()")
    button.click()
    expect(then).to_be_visible()
    assert len(signed(page)) == 10
    hidden = shown.locator("details .sp-l")
    assert hidden.count() > 12
    expect(hidden.first).to_be_hidden()
    shown.locator("summary").first.click()
    expect(hidden.first).to_be_visible()
    numbers = then.locator(".sp-l:not(del) small").all_text_contents()
    assert numbers == [str(n) for n in range(1, len(NEXT.decode().split("\n")))]
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#sp-panel")).to_be_hidden()


BREAKS = {
    "no sign": ".sp-then ins b => one.textContent = ' '",
    "no colour": ".sp-then ins => one.style.background = 'none'",
    "one colour": ".sp-then del => one.style.background = 'var(--sp-plus)'",
    "swapped": ".sp-then del b => one.textContent = '+'",
    "lost": ".sp-then del => one.remove()",
}


@pytest.mark.parametrize("broken", BREAKS)
def test_the_check_of_the_marks_sees_when_they_are_wrong(
    versions_site: Path, publish: Callable[[Path, Mode], str], visit: Open, broken: str
) -> None:
    page = visit(publish(versions_site, "http")).goto()
    follow(page, "step").click()
    expect(page.locator(".sp-then")).to_be_focused()
    check_step(page)
    selector, _, change = BREAKS[broken].partition(" => ")
    page.locator(selector).evaluate_all(f"all => all.forEach((one) => {{ {change} }})")
    with pytest.raises(AssertionError):
        check_step(page)
