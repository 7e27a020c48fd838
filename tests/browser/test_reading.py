"""Reading a file in the panel: outline, scopes, folds, find, go to line, wrapped lines, keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from sourcepanel.panel import write_panel
from sourcepanel.snapshot.base import git_blob_id
from sourcepanel.strings import strings
from tests.browser import panel_site
from tests.browser.conftest import Mode, Open, Visit
from tests.support.memory import whole

BODY = [f"        y = layer_{i}(x, weight={i})" for i in range(10, 310)]
MODEL = "\n".join(
    [
        '"""A model."""',
        "LIMIT = 3",
        "",
        "class Model(Base):",
        '    """Many layers."""',
        "",
        "    def forward(",
        "        self, x",
        "    ):",
        *BODY,
        "        return y",
        "",
        "    def backward(self):",
        "        return Weight(self)",
        "",
        "def helper(a):",
        "    def inner(b):",
        "        return b  # weight.*",
        "    return inner(a)  # " + "long " * 60 + "finish",
        *[f"weight_{i} = {i}" for i in range(400)],
        "",
    ]
)
FORWARD, BACKWARD, HELPER, INNER = (7, 310), (312, 313), (315, 318), (316, 317)
OTHER = 'weight = "only one"\n'
FILES = {"pkg/model.py": MODEL.encode(), "pkg/other.py": OTHER.encode(), "pkg/data.bin": b"\0"}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="session")
def reading_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reading") / "site"
    out.mkdir()
    for name, scheme in {"index": "", "light": "default", "dark": "slate"}.items():
        (out / f"{name}.html").write_text(panel_site.page(scheme=scheme), encoding="utf-8")
    targets = [panel_site.target(path, blob=git_blob_id(data)) for path, data in FILES.items()]
    write_panel(out, sources=[whole(files=FILES)], targets=targets, cache=None)
    return out


@pytest.fixture
def site(reading_site: Path, publish: Callable[[Path, Mode], str]) -> str:
    return publish(reading_site, "http")


def opened(seen: Visit, src: str = "model.py", *, start: str = "index.html") -> Page:
    """A page with a file open and the focus in its code."""
    page = seen.goto(f"{start}?src=tiny/pkg/{src}")
    expect(page.locator("#sp-panel")).to_have_attribute("aria-busy", "false")
    page.locator("#sp-panel [role=region]").focus()
    return page


def text(page: Page) -> str:
    return str(page.locator(".sp-lines").evaluate("(lines) => lines.textContent"))


def marked(page: Page) -> list[int]:
    numbers: list[int] = page.locator(".sp-on .sp-n").evaluate_all("all => all.map(n => +n.dataset.n)")
    return numbers


def hidden(page: Page) -> list[int]:
    found: list[int] = page.locator(".sp-l[hidden] .sp-n").evaluate_all("all => all.map(n => +n.dataset.n)")
    return found


def lines(start: int, end: int) -> list[int]:
    """The lines below a definition's first, which folding it hides."""
    return list(range(start + 1, end + 1))


def top(page: Page) -> int:
    """Number of the first line that is seen below the bar of scopes."""
    return int(
        page.evaluate(
            """() => {
                const box = document.querySelector('.sp-code').getBoundingClientRect();
                const at = document.elementsFromPoint(box.left + 4, box.top + 30).find((one) => one.matches('.sp-n'));
                return at.dataset.n;
            }"""
        )
    )


def settle(page: Page) -> None:
    """Wait until two frames were painted."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")


def scroll(page: Page, line: int) -> None:
    page.locator(".sp-code").evaluate("(code, line) => { code.scrollTop = 8 + 20 * (line - 1) }", line)
    settle(page)


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.className"))


def test_the_outline_is_filtered_walked_and_left(site: str, visit: Open) -> None:
    page = opened(visit(site), "model.py:L316-L317")
    page.keyboard.press("o")
    field, options = page.get_by_role("combobox", name="本文件的定义"), page.get_by_role("option")
    expect(field).to_be_focused()
    expect(page.get_by_role("dialog", name="本文件的定义")).to_be_visible()
    names = options.evaluate_all("all => all.slice(0, 6).map((one) => one.textContent)")
    assert names == ["LIMIT2", "Model4", "forward7", "backward312", "helper315", "inner316"]
    # It stands on the definition that is being read.
    chosen = page.locator(".sp-choices [aria-selected=true]")
    expect(chosen).to_have_text("inner316")
    field.fill("MODEL war")
    expect(options).to_have_text(["Model.forward7", "Model.backward312"])
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_text("Model.backward312")
    selected = chosen.get_attribute("id")
    assert selected
    expect(field).to_have_attribute("aria-activedescendant", selected)
    page.keyboard.press("Enter")
    expect(page.locator(".sp-pop")).to_have_count(0)
    assert marked(page) == [312, 313]
    assert focused(page) == "sp-code"
    assert page.url.endswith(":L312-L313")
    page.go_back()
    assert marked(page) == [316, 317]

    # Escape closes the list and nothing else; the button opens and closes it; a click outside closes it.
    button = page.get_by_role("button", name="本文件的定义")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(page.locator(".sp-pop")).to_have_count(0)
    expect(page.locator("#sp-panel")).to_be_visible()
    expect(button).to_be_focused()
    button.click()
    button.click()
    expect(page.locator(".sp-pop")).to_have_count(0)
    button.click()
    field.fill("nothing of the kind")
    expect(page.locator(".sp-none")).to_have_text("没有匹配的条目")
    page.locator(".sp-facts").click()
    expect(page.locator(".sp-pop")).to_have_count(0)
    button.click()
    page.locator("[role=option]", has_text="helper").click()
    assert marked(page) == list(range(315, 319))


def test_the_scope_of_the_first_line_stays_in_view_and_leads_up(site: str, visit: Open) -> None:
    page = opened(visit(site), "model.py")
    bar = page.get_by_role("navigation", name="当前位置所在的类与函数")
    expect(bar).to_be_hidden()
    for line, scope in {
        150: "class Model›def forward",
        311: "class Model",
        317: "def helper›def inner",
        500: None,
    }.items():
        scroll(page, line - 1)
        if scope is None:
            expect(bar).to_be_hidden()
        else:
            expect(bar.locator("button")).to_have_text(scope.split("›"))
    scroll(page, 200)
    bar.get_by_role("button", name="forward").click()
    settle(page)
    expect(page.locator('.sp-n[data-n="7"]')).to_be_in_viewport()
    assert focused(page) == "sp-code"
    assert "L7" not in page.url, "to look is not to choose"


def test_folding_hides_lines_keeps_the_text_and_yields_to_a_jump(site: str, visit: Open) -> None:
    page = opened(visit(site), "model.py")
    expect(page.locator(".sp-lines section:not(.sp-ready)")).to_have_count(0)
    height = "(lines) => lines.offsetHeight"
    whole = page.locator(".sp-lines").evaluate(height)
    fold = page.get_by_role("button", name="折叠 Model.forward")
    fold.click()
    expect(fold).to_have_attribute("aria-expanded", "false")
    assert hidden(page) == lines(*FORWARD)
    assert page.locator(".sp-lines").evaluate(height) == whole - 20 * len(lines(*FORWARD))
    assert text(page) == MODEL, "what is folded stays in the document, for find and for copies"
    more = page.get_by_role("button", name="展开 Model.forward（303 行）")
    assert more.evaluate("(more) => getComputedStyle(more, '::before').content") == '"⋯ 303 行"'
    more.click()
    assert hidden(page) == [] and text(page) == MODEL
    expect(more).to_have_count(0)

    # A fold within a fold, and a jump into it.
    page.get_by_role("button", name="折叠 helper.inner").evaluate("(one) => one.click()")
    page.get_by_role("button", name="折叠 helper", exact=True).evaluate("(one) => one.click()")
    assert hidden(page) == lines(*HELPER)
    page.get_by_role("button", name="折叠 helper", exact=True).evaluate("(one) => one.click()")
    assert hidden(page) == lines(*INNER)
    page.evaluate("SourcePanel.open('tiny/pkg/model.py#L317')")
    assert hidden(page) == [] and marked(page) == [317]
    settle(page)
    expect(page.locator(".sp-on")).to_be_in_viewport()

    # The browser's own find tells of a hit in a folded line.
    fold.evaluate("(one) => one.click()")
    folded = page.locator('.sp-n[data-n="100"]').locator("..")
    expect(folded).to_have_attribute("hidden", "until-found")
    # (A fragment of text goes the same way, and a test can click it.)
    page.locator("#inner").evaluate("(link) => { link.hash = ':~:text=layer_100(x' }")
    page.locator("#inner").click()
    expect(page.locator(".sp-l[hidden]")).to_have_count(0)
    expect(folded).to_be_in_viewport()


def test_keys_fold_one_and_all_and_the_first_line_stays(site: str, visit: Open) -> None:
    page = opened(visit(site), "model.py:L317")
    page.keyboard.press("z")
    assert hidden(page) == lines(*INNER)
    page.keyboard.press("z")
    assert hidden(page) == []
    scroll(page, 330)
    before = top(page)
    page.keyboard.press("Z")
    settle(page)
    assert hidden(page) == sorted({*lines(*FORWARD), *lines(*BACKWARD), *lines(*HELPER)})
    assert top(page) == before
    expect(page.locator("[role=status].sp-live")).to_have_text("已折叠 4 个函数")
    page.get_by_role("button", name="折叠或展开全部函数").click()
    settle(page)
    assert hidden(page) == [] and top(page) == before
    assert text(page) == MODEL


COUNT = ".sp-find output"
HITS = """[...(CSS.highlights.get('{}') ?? [])].map(
    (range) => range.startContainer.textContent.slice(range.startOffset, range.endOffset))"""
WEIGHTS = MODEL.lower().count("weight")


def test_find_in_the_file(site: str, visit: Open) -> None:
    page = opened(visit(site), "model.py")
    # The theme listens on the window for `/`; the browser must get Ctrl+F.
    page.evaluate(
        """() => {
            window.heard = [];
            addEventListener('keydown', (event) => {
                window.heard.push([event.key, event.defaultPrevented]);
                event.preventDefault();
            });
        }"""
    )
    page.keyboard.press("Control+f")
    assert page.evaluate("heard.filter(([key]) => key === 'f')") == [["f", False]]
    page.keyboard.press("/")
    field = page.get_by_role("textbox", name="在本文件中查找")
    expect(field).to_be_focused()
    assert page.evaluate("heard.some(([key]) => key === '/')") is False
    page.evaluate("window.heard = []")

    field.fill("weight")
    expect(page.locator(COUNT)).to_have_text(f"1/{WEIGHTS}")
    settle(page)
    assert page.evaluate(HITS.format("sp-now")) == ["weight"]
    painted = page.evaluate(HITS.format("sp-hit"))
    assert {hit.lower() for hit in painted} == {"weight"}
    assert len(painted) == WEIGHTS, "all sections of a file of this size have elements"
    expect(page.locator(".sp-live")).to_have_text(f"第 1 处，共 {WEIGHTS} 处，第 10 行")
    field.press("Shift+Enter")
    expect(page.locator(COUNT)).to_have_text(f"{WEIGHTS}/{WEIGHTS}")
    settle(page)
    expect(page.locator('.sp-n[data-n="718"]')).to_be_in_viewport()
    field.press("Enter")
    field.press("Enter")
    expect(page.locator(COUNT)).to_have_text(f"2/{WEIGHTS}")
    assert "L1" not in page.url, "to find is not to choose"

    # The place of the next search is where the reader is; case and whole words; nothing is a pattern.
    page.get_by_role("button", name="区分大小写").click()
    field.fill("Weight")
    expect(page.locator(COUNT)).to_have_text("1/1")
    page.get_by_role("button", name="区分大小写").click()
    page.get_by_role("button", name="整词匹配").click()
    field.fill("weight")
    expect(page.locator(COUNT)).to_have_text(re.compile(r"^\d+/302$"))
    page.get_by_role("button", name="整词匹配").click()
    field.fill("weight.*")
    expect(page.locator(COUNT)).to_have_text("1/1")
    field.fill("no such thing")
    expect(page.locator(COUNT)).to_have_text("0/0")

    # A hit in a folded scope unfolds it.
    page.get_by_role("button", name="折叠 Model.forward").evaluate("(one) => one.click()")
    field.fill("layer_200(")
    expect(page.locator(COUNT)).to_have_text("1/1")
    assert hidden(page) == []
    settle(page)
    expect(page.locator('.sp-n[data-n="200"]')).to_be_in_viewport()

    # The field stays for the next file; Escape closes it and leaves the panel.
    field.fill("weight")
    page.evaluate("SourcePanel.open('tiny/pkg/other.py')")
    expect(page.locator(COUNT)).to_have_text("0/1")
    field.press("Escape")
    expect(page.locator(".sp-find")).to_be_hidden()
    expect(page.locator("#sp-panel")).to_be_visible()
    assert focused(page) == "sp-code"
    settle(page)
    assert page.evaluate(HITS.format("sp-hit")) == []
    page.evaluate("SourcePanel.open('tiny/pkg/data.bin')")
    expect(page.locator(".sp-message")).to_be_visible()
    page.keyboard.press("/")
    expect(page.locator(".sp-find")).to_be_hidden()


def test_find_without_the_highlight_api_marks_the_lines(site: str, visit: Open) -> None:
    seen = visit(site)
    seen.page.add_init_script("delete CSS.highlights; delete CSS.__proto__.highlights")
    page = opened(seen, "other.py")
    page.keyboard.press("/")
    page.keyboard.type("only")
    expect(page.locator(".sp-hit")).to_have_text(OTHER.strip())
    page.keyboard.press("Escape")
    expect(page.locator(".sp-hit")).to_have_count(0)


def test_a_long_line_is_scrolled_to_the_hit(site: str, visit: Open) -> None:
    page = opened(visit(site, viewport={"width": 1000, "height": 700}), "model.py")
    page.keyboard.press("/")
    page.keyboard.type("finish")
    settle(page)
    hit, code = (
        page.evaluate(f"(() => {{ const box = {of}.getBoundingClientRect(); return [box.left, box.right]; }})()")
        for of in (
            "[...CSS.highlights.get('sp-now')].map(({ startContainer, startOffset, endOffset }) => "
            "{ const range = document.createRange(); range.setStart(startContainer, startOffset); "
            "range.setEnd(startContainer, endOffset); return range; })[0]",
            "document.querySelector('.sp-code')",
        )
    )
    assert code[0] < hit[0] and hit[1] < code[1]
    page.locator(".sp-find input").fill("LIMIT")
    settle(page)
    assert page.locator(".sp-code").evaluate("(code) => code.scrollLeft") == 0


@pytest.mark.parametrize(
    ("typed", "found"),
    [("123", [123]), ("20-18", [18, 19, 20]), ("99999", [MODEL.count("\n")]), ("0", [1])],
)
def test_go_to_a_line(site: str, visit: Open, typed: str, found: list[int]) -> None:
    page = opened(visit(site), "model.py:L5")
    page.keyboard.press("g")
    expect(page.get_by_role("textbox", name="在本文件中查找")).to_have_value(":")
    page.keyboard.type(typed)
    page.keyboard.press("Enter")
    assert marked(page) == found
    settle(page)
    expect(page.locator(".sp-on").first).to_be_in_viewport()
    assert focused(page) == "sp-code"
    expect(page.locator(".sp-find")).to_be_hidden()
    page.go_back()
    assert marked(page) == [5]


def test_wrapping_keeps_the_place_and_is_remembered(site: str, visit: Open) -> None:
    seen = visit(site, viewport={"width": 1000, "height": 700})
    page = opened(seen, "model.py")
    expect(page.locator(".sp-lines section:not(.sp-ready)")).to_have_count(0)
    wide = "(code) => code.scrollWidth > code.clientWidth"
    assert page.locator(".sp-code").evaluate(wide)
    scroll(page, 400)
    before = top(page)
    page.keyboard.press("w")
    settle(page)
    assert not page.locator(".sp-code").evaluate(wide)
    assert top(page) == before
    assert text(page) == MODEL
    button = page.get_by_role("button", name="自动换行")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".sp-live")).to_have_text("已打开自动换行")
    assert page.locator('.sp-n[data-n="318"]').locator("..").evaluate("(line) => line.offsetHeight") > 20
    page.reload()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert not page.locator(".sp-code").evaluate(wide)
    # A jump lands where lines above it are wrapped too, on arrival and later.
    opened(seen, "model.py:L700")
    expect(button).to_have_attribute("aria-pressed", "true")
    settle(page)
    expect(page.locator(".sp-on")).to_be_in_viewport()
    page.evaluate("SourcePanel.open('tiny/pkg/model.py#L330')")
    settle(page)
    expect(page.locator(".sp-on")).to_be_in_viewport()
    button.click()
    assert page.locator(".sp-code").evaluate(wide)


def test_keys_are_told_and_work_only_where_they_should(site: str, visit: Open) -> None:
    page = opened(visit(site), "model.py")
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="快捷键")
    told = sheet.locator("tr").evaluate_all(
        "all => all.map((row) => [row.querySelector('kbd').textContent, row.querySelector('td').textContent])"
    )
    assert {"o", "z", "Z", "c", "y", "w", "/", "g", "?"} <= {key for key, _ in told}
    says: list[str] = page.evaluate("SourcePanel.keys.map((key) => key.says)")
    for language in ("zh", "en"):
        assert [name for name in says if f"panel.{name}" not in strings(language)] == []
    assert [words for _, words in told] == [strings("zh")[f"panel.{name}"] for name in says]
    keys: list[str] = page.evaluate("SourcePanel.keys.filter((key) => key.run).flatMap((key) => key.keys)")
    assert len(keys) == len(set(keys)), "two features want the same key"
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    expect(page.locator("#sp-panel")).to_be_visible()

    # Not in a field, not outside the panel, not with a modifier.
    page.locator("#field").focus()
    page.keyboard.type("o/?zw")
    expect(page.locator("#field")).to_have_value("o/?zw")
    page.locator("#to-step").focus()
    page.keyboard.press("o")
    page.locator(".sp-code").focus()
    page.evaluate("addEventListener('keydown', (event) => event.preventDefault())")
    page.keyboard.press("Control+o")
    expect(page.locator(".sp-pop")).to_have_count(0)

    # The tool bar is one stop; arrows move inside; nothing there is lost when the state changes.
    tools = page.locator(".sp-tools button:enabled")
    assert tools.evaluate_all("all => all.filter((one) => one.tabIndex === 0).length") == 1
    tools.first.focus()
    page.keyboard.press("ArrowRight")
    expect(tools.nth(1)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(tools.last).to_be_focused()
    page.locator('.sp-n[data-n="3"]').evaluate("(number) => number.click()")
    assert marked(page) == [3]
    expect(tools.last).to_be_focused()


@pytest.mark.parametrize(
    ("start", "options"),
    [("light.html", {}), ("dark.html", PHONE), ("light.html", {"viewport": {"width": 720, "height": 450}})],
    ids=["light", "dark-phone", "zoomed"],
)
def test_axe_finds_nothing_in_any_small_window(site: str, visit: Open, start: str, options: dict[str, Any]) -> None:
    seen = visit(site, **options)
    page = opened(seen, "model.py:L316-L317", start=start)
    page.keyboard.press("z")
    assert seen.axe(include=".sp-panel") == []
    for opener in ("o", "?", "/", "copy"):
        if opener == "copy":
            page.get_by_role("button", name="复制", exact=True).click()
        else:
            page.locator(".sp-code").focus()
            page.keyboard.press(opener)
        expect(page.locator(".sp-pop, .sp-find:not([hidden])")).to_have_count(1)
        assert seen.axe(include=".sp-panel") == [], opener
        box = page.locator(".sp-pop, .sp-find:not([hidden])").bounding_box()
        panel = page.locator("#sp-panel").bounding_box()
        assert box and panel
        assert box["x"] >= panel["x"] and box["x"] + box["width"] <= panel["x"] + panel["width"], opener
        assert box["y"] + box["height"] <= panel["y"] + panel["height"], opener
        page.keyboard.press("Escape")
    scroll(page, 200)
    expect(page.locator(".sp-scope")).to_be_visible()
    assert seen.axe(include=".sp-panel") == []


def test_a_finger_hits_what_it_means(site: str, visit: Open) -> None:
    page = opened(visit(site, **PHONE), "model.py")
    sizes: list[tuple[float, float]] = page.locator(".sp-tools button").evaluate_all(
        "all => all.map((one) => [one.offsetWidth, one.offsetHeight])"
    )
    assert sizes and all(width >= 40 and height >= 40 for width, height in sizes)
    assert page.locator(".sp-l").first.evaluate("(line) => line.offsetHeight") >= 24
    # The list opens without the keyboard, which would hide it.
    page.get_by_role("button", name="本文件的定义").tap()
    expect(page.get_by_role("combobox")).not_to_be_focused()
    page.locator("[role=option]", has_text="backward").tap()
    assert marked(page) == [312, 313]
    page.get_by_role("button", name="折叠 Model.backward").tap()
    assert hidden(page) == [313]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_small_windows_leave_nothing_behind(site: str, visit: Open) -> None:
    page = opened(visit(site), "model.py")
    client = page.context.new_cdp_session(page)

    def counts() -> tuple[int, int]:
        client.send("HeapProfiler.collectGarbage")
        found = client.send("Memory.getDOMCounters")
        return found["nodes"], found["jsEventListeners"]

    def walk() -> None:
        for key in "o?":
            page.keyboard.press(key)
            page.keyboard.press("Escape")
        page.keyboard.press("/")
        page.keyboard.type("weight")
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        for key in "zzZZww":
            page.keyboard.press(key)
        settle(page)

    walk()
    walk()
    nodes, listeners = counts()
    for _ in range(4):
        walk()
    after = counts()
    assert after[1] <= listeners + 2
    assert after[0] <= nodes * 1.03
