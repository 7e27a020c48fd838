"""The real site in a real browser: every page, every way of serving it, with instant navigation on and off."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sourcepanel.config import load_config
from sourcepanel.static_pages import PAGES
from tests.browser.conftest import MODES, Mode, Open, Visit
from tests.browser.site_build import ROOT, build, copy_project, mkdocs
from tests.browser.test_search import ask, hits

NOTE = "notes/01-training-run-overview.html"
LAB = ("lab/scripts.html", "lab/megatron.html")
PIN = load_config(ROOT / "sourcepanel.toml").repositories[0]
SCHEMES = ("light", "dark")
LINK = '.sp-link[data-src^="Megatron-LM/megatron/"][data-symbol]'
"""A link whose file the wheel holds, so that any build can show it."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it; a warning fails the build, and with it every test here."""
    return build(ROOT, tmp_path_factory.mktemp("real") / "site")


@pytest.fixture(scope="session")
def instant(tmp_path_factory: pytest.TempPathFactory, publish: Callable[[Path, Mode], str]) -> str:
    """The base address of the same site with the theme's instant navigation, which needs to know it."""
    folder = tmp_path_factory.mktemp("instant")
    project = copy_project(folder / "project")
    config = project / "mkdocs.yml"
    config.write_text(
        config.read_text("utf-8").replace("  features:\n", "  features:\n    - navigation.instant\n"), "utf-8"
    )
    out = folder / "site"
    out.mkdir()
    base = publish(out, "http")
    build(project, out, strict=False, site_url=base)
    return base


@pytest.fixture(params=MODES)
def base(request: pytest.FixtureRequest, site: Path, publish: Callable[[Path, Mode], str]) -> str:
    return publish(site, request.param)


@pytest.fixture
def http(site: Path, publish: Callable[[Path, Mode], str]) -> str:
    return publish(site, "http")


def pages(site: Path) -> list[str]:
    """All pages that were written, but the one for what is not there: its addresses start at the root of the host."""
    found = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    return [page for page in found if page != "404.html" and not page.startswith(PAGES)]


def open_link(page: Page, place: str = ".md-content") -> None:
    """Click the first source link inside `place` and see the panel come with code in it."""
    page.locator(f"{place} {LINK}").first.click()
    expect(page.locator("#sp-panel")).to_be_visible()
    expect(page.locator("#sp-panel")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#sp-panel .sp-on").first).to_be_visible()


def test_every_page_loads_whole_and_shows_what_is_read_and_its_licence(base: str, visit: Open, site: Path):
    made = visit(base)
    for name in pages(site):
        page = made.goto(name)
        expect(page.locator(".site-pin")).to_have_text(f"{PIN.name}@{PIN.ref}")
        expect(page.locator(".page-meta__pin")).to_have_text(f"{PIN.name} @ {PIN.ref} ({PIN.commit[:8]})")
        expect(page.locator(".md-copyright")).to_contain_text(PIN.license.holder)
        expect(page).to_have_title(re.compile("Latent Atlas"))
    assert len(pages(site)) >= 6
    plain = sorted((site / PAGES).rglob("*.html"))
    page = made.goto(plain[0].relative_to(site).as_posix())
    expect(page.locator("body")).to_contain_text(PIN.license.holder)
    expect(page.locator("#L1")).to_be_visible()
    # `visit` fails the test on any request that leaves the site and on any complaint in the console.


def test_a_source_link_opens_the_panel(base: str, visit: Open):
    made = visit(base)
    for name in ("index.html", NOTE):
        page = made.goto(name)
        open_link(page)
        page.keyboard.press("Escape")
        expect(page.locator("#sp-panel")).to_be_hidden()


def test_links_in_records_chains_and_tables_open_it_too(http: str, visit: Open):
    page = visit(http).goto(NOTE)
    for place in (".function-record", ".communication", ".call-chain", "table"):
        open_link(page, place)


def test_search_finds_the_note_by_identifier_and_by_word(base: str, visit: Open):
    page = visit(base).goto("roadmap.html")
    ask(page)
    note = NOTE.rpartition("/")[2]
    for query in ("forward_backward_no_pipelining", "get_forward_backward", "阅读目标", "num_microbatches"):
        assert note in hits(page, query), query


def test_instant_navigation_keeps_the_panel_working(instant: str, visit: Open):
    made = visit(instant)
    page = made.goto("index.html")
    page.evaluate("window.stayed = true")
    open_link(page)
    page.keyboard.press("Escape")
    for target in ("路线图", "01 Training Run Overview"):
        page.locator(".md-nav--primary").get_by_role("link", name=target, exact=True).first.click()
        expect(page.locator("h1")).to_contain_text(target.removeprefix("01 "))
        assert page.evaluate("window.stayed"), "the page was loaded anew: instant navigation is not on"
        open_link(page)
        page.keyboard.press("Escape")
        expect(page.locator("#sp-panel")).to_be_hidden()
    # Opening and closing the panel are steps of the history too.
    for _ in range(3):
        page.go_back()
    expect(page.locator("h1")).to_contain_text("路线图")
    assert page.evaluate("window.stayed")


def scheme(page: Page) -> str | None:
    return page.locator("body").get_attribute("data-md-color-scheme")


def test_the_palette_follows_the_system_and_can_be_set(http: str, visit: Open):
    for wanted, name in (("light", "default"), ("dark", "slate")):
        page = visit(http, color_scheme=wanted).goto("index.html")
        assert scheme(page) == name
        page.get_by_title("切换到浅色").click()
        assert scheme(page) == "default"
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.get_by_title("切换到深色").click()
        assert scheme(page) == "slate"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        page.get_by_title("跟随系统").click()
        assert scheme(page) == name


def test_a_phone_never_scrolls_sideways(http: str, visit: Open, site: Path):
    made = visit(http, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    for name in pages(site):
        page = made.goto(name)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
        expect(page.locator(".page-meta__pin")).to_be_visible()
    page = made.goto(NOTE)
    open_link(page)


def test_without_scripts_every_source_link_is_a_page_on_github(base: str, visit: Open):
    page = visit(base, java_script_enabled=False).goto(NOTE)
    links = page.locator(".sp-link")
    assert links.count() > 100
    prefixes = tuple(f"{url}/" for url in (PIN.url, *(alias.url for alias in PIN.aliases)))
    hrefs = links.evaluate_all("all => all.map(link => link.href)")
    assert [href for href in hrefs if not href.startswith(prefixes)] == []


def test_a_page_that_is_not_there_says_so_and_leads_home(site: Path, publish: Callable[[Path, Mode], str], visit: Open):
    page = visit(publish(site, "http")).goto("404.html")
    expect(page.locator("h1")).to_contain_text("404")
    page.locator(".md-content").get_by_role("link", name="总览").click()
    expect(page.locator("h1")).to_have_text(re.compile("总览|Latent Atlas"))


@pytest.mark.parametrize("colours", SCHEMES)
@pytest.mark.parametrize("name", ["index.html", "roadmap.html", "glossary.html", NOTE, *LAB, "about/reading-time.html"])
def test_axe_finds_nothing(http: str, visit: Open, name: str, colours: str):
    made: Visit = visit(http, color_scheme=colours)
    made.goto(name)
    assert made.axe(include=".md-content") == []
    assert made.axe(include=".md-footer") == []


def test_one_letter_or_digit_fails_the_strict_build_and_is_named(tmp_path: Path):
    project = copy_project(tmp_path / "project")
    note = project / "docs" / NOTE.replace(".html", ".md")
    lines = note.read_text("utf-8").split("\n")
    slips = {
        r"(`[\w/]+\.py::\w+)(`)": r"\1x\2",
        r"(blob/core_v0\.17\.1/[\w/]+)(\.py#L\d+)": r"\1x\2",
        r"(\.py#L\d+-L\d+)(\))": r"\g<1>0\2",
    }
    changed: list[int] = []
    for pattern, replacement in slips.items():
        at = next(n for n, line in enumerate(lines) if n not in changed and re.search(pattern, line))
        lines[at] = re.sub(pattern, replacement, lines[at], count=1)
        changed.append(at)
    note.write_text("\n".join(lines), "utf-8")
    done = mkdocs(project, tmp_path / "site", "--strict")
    assert done.returncode != 0
    name = note.relative_to(project / "docs").as_posix()
    for at in changed:
        assert f"{name}:{at + 1}: " in done.stderr
