"""Coverage counted on a small repository: lines, folders, the treemap's areas, symbols, and what to read next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from sourcepanel.config import Version
from sourcepanel.coverage.following import SHORTEST, read_next
from sourcepanel.coverage.measure import FileCoverage, Sum, measure, percent
from sourcepanel.coverage.site import COVERAGE, NEXT, SYMBOLS, CoveragePages, Material
from sourcepanel.coverage.treemap import HEAD, HEIGHT, WIDTH, layout, step
from sourcepanel.mentions import read_mentions
from sourcepanel.reference import Target
from sourcepanel.source import Source
from sourcepanel.strings import strings
from sourcepanel.xref.index import build_index, python_files
from sourcepanel.xref.model import FileIndex
from tests.support.memory import TINY, MemorySnapshot, whole

MODEL = '''class Block:
    """One layer."""

    size = 4

    def forward(self, x):
        y = self.help(x)
        return y

    def help(self, x):
        return x


def build():
    return Block()
'''
LONG = "".join(f"    x += {n}\n" for n in range(SHORTEST))
CALLS = (
    f"def popular(x):\n{LONG}    return x\n\n\n"  # 1-12
    f"def once(x):\n{LONG}    return x\n\n\n"  # 15-26
    f"def everywhere(x):\n{LONG}    return x\n\n\n"  # 29-40
    "def short(x):\n    return x\n\n\n"  # 43-44
    "def first(x):\n    return popular(x) + once(x) + short(x)\n\n\n"  # 47-48
    "def second(x):\n    popular(x)\n    return popular(x) + short(x) + everywhere(x)\n\n\n"  # 51-53
    + "".join(f"def other_{n}(x):\n    return everywhere(x)\n\n\n" for n in range(2))  # 56-57, 60-61
    + f"class Far:\n    def per_haps(self, x):\n{LONG}        return x\n\n\n".replace(
        "    x +=", "        x +="
    )  # 64-76
    + "def third(x):\n    return x.per_haps()\n"  # 79-80
)
FILES = {
    "pkg/model.py": MODEL.encode(),
    "pkg/deep/only/calls.py": CALLS.encode(),
    "pkg/empty.py": b"",
    "pkg/picture.png": b"\x00\x01",
    "tools/run.py": b"x = 1\n" * 6,
}
BLOCK, FORWARD, BUILD = (1, 11, "Block"), (6, 8, "Block.forward"), (14, 15, "build")


def target(path: str, start: int | None, end: int | None = None, symbol: str | None = None, **facts: Any) -> Target:
    known = {
        "repository": "tiny", "kind": "definition" if symbol else "interior" if start else "file", "blob": "b",
        "has_text": True, "href": "x",
    }  # fmt: skip
    return Target(**{**known, "path": path, "start": start, "end": end or start, "symbol": symbol, **facts})


def source(files: Mapping[str, bytes] = FILES) -> Source:
    return whole(files=files)


def index_of(pinned: Source) -> dict[str, FileIndex]:
    return {one.path: one for one in build_index(python_files(pinned))}


def model(*targets: Target) -> set[int]:
    return set(next(f for f in measure(source(), targets) if f.path == "pkg/model.py").covered)


@pytest.mark.parametrize(
    ("places", "lines"),
    [
        ([(7, 7, None)], {7}),
        ([(7, 8, None), (8, 10, None)], {7, 8, 9, 10}),
        ([FORWARD], {6, 7, 8}),
        ([(6, 6, "Block.forward")], {6, 7, 8}),
        ([BUILD, BUILD], {14, 15}),
        ([BLOCK], {1, 2, 3, 4, 5, 9}),
        ([(1, 1, "Block")], {1, 2, 3, 4, 5, 9}),
        ([BLOCK, FORWARD], {1, 2, 3, 4, 5, 6, 7, 8, 9}),
        ([(14, 999, None)], {14, 15}),
        ([(None, None, None)], set()),
    ],
    ids=[
        "a line", "overlap", "function", "its def line", "twice", "class", "class line", "class and method",
        "past the end", "file",
    ],
)  # fmt: skip
def test_which_lines_are_covered(places: list[tuple[int | None, int | None, str | None]], lines: set[int]) -> None:
    assert model(*(target("pkg/model.py", *place) for place in places)) == lines


def test_a_range_that_is_inside_a_class_is_only_itself() -> None:
    assert model(target("pkg/model.py", 2, 2, "Block", kind="interior")) == {2}


def test_files_that_count_and_their_sums() -> None:
    targets = [target("pkg/model.py", *FORWARD), target("pkg/model.py", 7), target("tools/run.py", 1, 2)]
    targets += [target("pkg/model.py", 7), target("pkg/model.py", 3, repository="elsewhere")]
    files = measure(source(), targets, stale={"pkg/model.py": 2})
    assert [file.path for file in files] == ["pkg/deep/only/calls.py", "pkg/model.py", "tools/run.py"]
    assert Sum.of(files) == Sum(files=3, touched=2, lines=80 + 15 + 6, covered=3 + 2, places=3, stale=2)
    assert [file.path for file in measure(source(), targets, folders=["tools"])] == ["tools/run.py"]
    assert measure(source(), targets, folders=["tool"]) == ()


@pytest.mark.parametrize(
    ("covered", "lines", "shown"), [(0, 9, 0), (1, 1000, 1), (999, 1000, 99), (5, 5, 100), (1, 3, 33), (0, 0, 0)]
)
def test_a_share_is_none_or_all_only_when_it_is(covered: int, lines: int, shown: int) -> None:
    assert percent(covered, lines) == shown


def file(path: str, lines: int, covered: int = 0, **more: int) -> FileCoverage:
    return FileCoverage(repository="tiny", path=path, lines=lines, covered=frozenset(range(1, covered + 1)), **more)


@pytest.mark.parametrize(("covered", "colour"), [(0, 0), (1, 1), (24, 1), (25, 2), (50, 3), (74, 3), (75, 4), (100, 4)])
def test_the_colour_of_a_share(covered: int, colour: int) -> None:
    assert step(file("a.py", 100, covered)) == colour


def test_the_areas_are_in_proportion_and_lie_in_their_folder() -> None:
    files = [file(f"pkg/a{n}.py", 10 * n) for n in range(1, 9)] + [file("pkg/sub/x/y.py", 90), file("top.py", 200)]
    cells = {cell.name: cell for cell in layout(files)}
    assert set(cells) == {"pkg/", "pkg/sub/x/", *(one.path for one in files)}
    assert cells["pkg/sub/x/"].label == "sub/x/", "folders that hold one folder are one with it"
    areas = {name: cell.box.width * cell.box.height for name, cell in cells.items()}
    assert areas["top.py"] / (WIDTH * HEIGHT) == pytest.approx(200 / 650)
    assert areas["pkg/a8.py"] == pytest.approx(2 * areas["pkg/a4.py"])
    for name, cell in cells.items():
        above = next((cells[up] for up in ("pkg/sub/x/", "pkg/") if name != up and name.startswith(up)), None)
        if above:
            box, frame = cell.box, above.box
            assert frame.x <= box.x and box.x + box.width <= frame.x + frame.width + 1e-6
            assert (
                frame.y + (HEAD if above.name == "pkg/" else 2) <= box.y + 1e-6
                and box.y + box.height <= frame.y + frame.height + 1e-6
            )
    inside = [cell.file.lines for name, cell in cells.items() if cell.file and name.startswith("pkg/a")]
    assert inside == sorted(inside, reverse=True), "the large ones first keep the others from becoming strips"
    boxes = [cell.box for cell in cells.values() if cell.file]
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            apart = (a.x + a.width <= b.x + 1e-6, b.x + b.width <= a.x + 1e-6)
            assert any((*apart, a.y + a.height <= b.y + 1e-6, b.y + b.height <= a.y + 1e-6)), "files overlap"


def test_a_folder_too_small_to_be_seen_is_left_to_the_table() -> None:
    names = {cell.name for cell in layout([file("a/b/c/tiny.py", 1), file("big.py", 10**7)])}
    assert names == {"a/b/c/", "big.py"}


def following(*targets: Target, most: int = 9) -> dict[str, list[str]]:
    pinned = source()
    index = index_of(pinned)
    found = read_next(measure(pinned, targets), index=index, most=most)
    return {one.definition.name: [caller.name for caller in one.callers] for one in found}


FIRST, SECOND = (47, 48, "first"), (51, 53, "second")


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ([], {}),
        ([FIRST], {"once": ["first"], "popular": ["first"]}),
        ([FIRST, SECOND], {"popular": ["first", "second"], "once": ["first"]}),
        ([FIRST, SECOND, (1, 12, "popular")], {"once": ["first"]}),
        ([FIRST, SECOND, (3, 3, None)], {"once": ["first"]}),
        ([(51, 51, None)], {}),
        ([(79, 80, "third")], {}),
        ([SECOND, (56, 57, "other_0")], {"everywhere": ["second", "other_0"], "popular": ["second"]}),
    ],
    ids=[
        "nothing read",
        "one",
        "two",
        "named",
        "a line of it",
        "the call is not read",
        "a guess",
        "half of its callers",
    ],
)
def test_what_to_read_next(places: list[tuple[int, int, str | None]], found: dict[str, list[str]]) -> None:
    """A short helper, what is covered in part, and what most others call are not in the list."""
    listed = following(*(target("pkg/deep/only/calls.py", *place) for place in places))
    assert list(listed.items()) == list(found.items())


def test_the_list_has_an_end() -> None:
    both = [target("pkg/deep/only/calls.py", *place) for place in (FIRST, SECOND)]
    assert list(following(*both, most=1)) == ["popular"]


NOTE = (
    '<h2 id="a">机制</h2><p>甲 <a class="sp-link" data-src="{forward}" href="x">f</a>。'
    '乙 <a class="sp-link" data-src="{forward}" href="x">f</a> <a class="sp-link" data-src="{build}" href="x">b</a></p>'
    '<h2 id="b">别处</h2><p><a class="sp-link" data-src="{forward}" href="x">f</a></p>'
)


def pages(*targets: Target, **more: Any) -> CoveragePages:
    newer = Version(ref="v3.0", commit="c" * 40, panel=True)
    pinned = Source(TINY.model_copy(update={"versions": (newer,)}), snapshot=MemorySnapshot(FILES), locked=None)
    targets = targets or (target("pkg/model.py", *FORWARD), target("pkg/model.py", *BUILD))
    html = NOTE.format(forward=targets[0].key, build=targets[1].key)
    material = Material(
        source=pinned, targets=targets, mentions=read_mentions(html, page="一", url="notes/1.html")[1],
        index=index_of(pinned), **{"folders": ("pkg",), "views": {}, **more},
    )  # fmt: skip
    return CoveragePages([material], strings=strings())


def test_the_coverage_of_a_page() -> None:
    html = pages().fill(f"<p>a</p>{COVERAGE}", up="../")
    assert html.startswith('<p>a</p><div class="coverage">')
    assert "tiny v2.0：2 个文件 95 行，笔记讲到其中 1 个文件的 5 行（5%）。</p>" in html
    assert re.findall(r'treemap__file treemap__file--(\d)" xlink:href="([^"]+)" data-src="([^"]+)"', html) == [
        ("0", f"{TINY.url}/blob/{TINY.commit}/pkg/deep/only/calls.py", "tiny/pkg/deep/only/calls.py"),
        ("2", f"{TINY.url}/blob/{TINY.commit}/pkg/model.py", "tiny/pkg/model.py"),
    ]
    assert 'aria-label="pkg/model.py：15 行，讲到 5 行（33%）"' in html
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr>.*?</tr>", html)]
    assert rows[1:3] == [
        ["pkg/", "1", "/", "1", "15", "5", "33%", "2", "0"],
        ["pkg/deep/only/", "0", "/", "1", "80", "0", "0%", "0", "0"],
    ]
    assert rows[4:] == [["pkg/model.py", "15", "5", "33%", "2", "0"]]
    assert f'href="{TINY.url}/tree/{TINY.commit}/pkg/" data-src="tiny/pkg/"' in html
    assert '<script src="../sourcepanel/treemap.js">' in html
    assert "虚线框" not in html


def test_what_differs_at_the_newer_version_is_marked() -> None:
    views = {("tiny", "pkg/model.py"): {"c" * 40: {"6-8": {}}, "d" * 40: {"6-8": {}, "14-15": {}}}}
    views["another", "pkg/deep/only/calls.py"] = {"c" * 40: {"1-1": {}}}
    html = pages(views=views).fill(COVERAGE, up="")
    assert "所引用的位置有 1 处在 v3.0 已不同。" in html
    assert html.count("treemap__file--stale") == 1
    assert "虚线框：有引用在 v3.0 已不同" in html
    assert "，1 处引用在 v3.0 已不同" in html


def test_symbols_by_file_with_the_sections_that_speak_of_them() -> None:
    html = pages().fill(SYMBOLS, up="../")
    assert "笔记讲到 1 个文件里的 2 个符号。" in html
    assert '<li><a href="#file-pkg-model-py">pkg/model.py</a> <small>2</small></li>' in html
    assert re.findall(r'data-src="([^"]+)"><code>([^<]+)</code></a></dt>', html) == [
        ("tiny/pkg/model.py#L6-L8", "Block.forward"),
        ("tiny/pkg/model.py#L14-L15", "build"),
    ]
    assert html.count('<a href="../notes/1.html#sp-1">一 · 机制</a> <small>×2</small>') == 1
    assert html.count('<a href="../notes/1.html#sp-4">一 · 别处</a></li>') == 1
    assert html.count('<a href="../notes/1.html#sp-3">一 · 机制</a></li>') == 1


def test_symbols_stand_in_the_order_of_their_lines() -> None:
    calls = "pkg/deep/only/calls.py"
    html = pages(target(calls, 15, 26, "once"), target(calls, 1, 12, "popular")).fill(SYMBOLS, up="")
    assert re.findall(r"<dt>.*?<code>([^<]+)</code>", html) == ["popular", "once"]


def test_pages_say_when_there_is_nothing_to_read_next() -> None:
    assert "没有：已讲到的代码所调用的定义" in pages().fill(NEXT, up="")
    assert pages().fill("<p>a</p>", up="") == "<p>a</p>"
