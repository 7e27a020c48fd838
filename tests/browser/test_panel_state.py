"""state.js: addresses and the reducer, run in the browser without a page around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

import sourcepanel.panel
from sourcepanel.panel import data_path

STATE = Path(sourcepanel.panel.__file__).parent / "assets" / "state.js"
REPOS = ["tiny", "Megatron-LM"]


@pytest.fixture(scope="module")
def script(chromium: Browser) -> Any:
    context = chromium.new_context()
    page = context.new_page()
    page.evaluate(STATE.read_text(encoding="utf-8"))
    yield page
    context.close()


def call(page: Page, name: str, *args: object) -> Any:
    return page.evaluate("([name, args]) => SourcePanel.state[name](...args)", [name, list(args)])


def address(path: str, start: int = 0, end: int = 0, repo: str = "tiny") -> dict[str, object]:
    return {"repo": repo, "path": path, "start": start, "end": end or start}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tiny/a.py", address("a.py")),
        ("tiny/pkg/a.py#L10", address("pkg/a.py", 10)),
        ("tiny/pkg/a.py#L10-L20", address("pkg/a.py", 10, 20)),
        ("tiny/pkg/a.py:L10-L20", address("pkg/a.py", 10, 20)),
        ("tiny/pkg/a.py#L10-20", address("pkg/a.py", 10, 20)),
        ("tiny/pkg/a.py#L20-L10", address("pkg/a.py", 10, 20)),
        ("tiny/pkg/", address("pkg/")),
        ("tiny/", address("")),
        ("tiny/odd name#x.py", address("odd name#x.py")),
        ("Megatron-LM/a.py", address("a.py", repo="Megatron-LM")),
        ("unknown/a.py", None),
        ("tiny", None),
        ("/a.py", None),
        ("", None),
        ("tiny/../secret.js", None),
        ("tiny/a/../../b", None),
        ("tiny/./a", None),
        ("tiny//a", None),
        ("tiny/a//b", None),
        ("https://example.org/x", None),
        ("javascript:alert(1)", None),
    ],
)
def test_parse(script: Page, text: str, expected: object) -> None:
    assert call(script, "parse", text, REPOS) == expected


@pytest.mark.parametrize(
    ("search", "path", "expected", "without"),
    [
        ("", "pkg/a.py", "?src=tiny/pkg/a.py:L3-L9", ""),
        ("?q=1&src=old&x=2", "pkg/a.py", "?q=1&x=2&src=tiny/pkg/a.py:L3-L9", "?q=1&x=2"),
        ("?src", "a&b=c#d%.py", "?src=tiny/a%26b%3Dc%23d%25.py:L3-L9", ""),
        ("?srcs=1", "源 码.py", "?srcs=1&src=tiny/%E6%BA%90%20%E7%A0%81.py:L3-L9", "?srcs=1"),
    ],
)
def test_query_and_back(script: Page, search: str, path: str, expected: str, without: str) -> None:
    there = address(path, 3, 9)
    assert call(script, "query", search, there) == expected
    assert call(script, "fromQuery", expected, REPOS) == there
    assert call(script, "query", expected, None) == without


names = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=("Cs",)), min_size=1, max_size=8)
paths = st.lists(names.filter(lambda name: name not in (".", "..")), min_size=1, max_size=4).map("/".join)


@given(paths, st.integers(0, 10**6), st.integers(0, 500), st.booleans())
@example("chart.js/core.js_/in.js", 3, 1, False)
@example("~.js/.js", 0, 0, True)
@settings(max_examples=60, deadline=None)
def test_any_path_survives_both_spellings_and_names_one_data_file(
    script: Page, path: str, start: int, more: int, folder: bool
) -> None:
    there = address(path + "/" * folder, start, start + more if start else 0)
    query = call(script, "query", "", there)
    # A path may itself end like a range; only then is the address read otherwise.
    ambiguous = not start and call(script, "parse", f"tiny/{path}", REPOS) != address(path)
    if not ambiguous:
        assert call(script, "fromQuery", query, REPOS) == there
        assert call(script, "parse", call(script, "format", there), REPOS) == there
    encoded = call(script, "dataPath", call(script, "key", there))
    assert script.evaluate("decodeURIComponent", encoded) == str(data_path("tiny", path, folder=folder))


def steps(page: Page, *actions: dict[str, object]) -> dict[str, Any]:
    code = "(actions) => actions.reduce(SourcePanel.state.reduce, SourcePanel.state.initial)"
    return page.evaluate(code, list(actions))


def opened(path: str, start: int = 0, end: int = 0) -> dict[str, object]:
    return {"type": "open", "address": address(path, start, end)}


def select(line: int, *, extend: bool = False) -> dict[str, object]:
    return {"type": "select", "line": line, "extend": extend}


LOADED = {"type": "loaded", "key": "tiny/a.py"}
FAILED = {"type": "failed", "key": "tiny/a.py"}
CLOSE = {"type": "close"}


@pytest.mark.parametrize(
    ("actions", "status", "where"),
    [
        ([], "closed", None),
        ([opened("a.py", 3)], "loading", ("a.py", 3, 3)),
        ([opened("a.py", 3), LOADED], "ready", ("a.py", 3, 3)),
        ([opened("a.py", 3), FAILED], "failed", ("a.py", 3, 3)),
        ([opened("a.py"), FAILED, opened("a.py")], "loading", ("a.py", 0, 0)),
        ([opened("a.py"), opened("b.py"), LOADED], "loading", ("b.py", 0, 0)),
        ([opened("a.py"), opened("b.py"), FAILED], "loading", ("b.py", 0, 0)),
        ([opened("a.py"), LOADED, opened("a.py", 5)], "ready", ("a.py", 5, 5)),
        ([opened("a.py"), CLOSE, LOADED], "closed", None),
        ([CLOSE, select(3)], "closed", None),
        ([opened("a.py", 62), LOADED, select(63, extend=True)], "ready", ("a.py", 62, 63)),
        ([opened("a.py", 62), LOADED, select(50, extend=True)], "ready", ("a.py", 50, 62)),
        (
            [opened("a.py", 62), LOADED, select(9), select(12, extend=True), select(7, extend=True)],
            "ready",
            ("a.py", 7, 9),
        ),
        ([opened("a.py"), LOADED, select(9, extend=True)], "ready", ("a.py", 9, 9)),
    ],
)
def test_reduce(script: Page, actions: list[dict[str, object]], status: str, where: object) -> None:
    state = steps(script, *actions)
    there = state["address"]
    assert state["status"] == status
    assert (there and (there["path"], there["start"], there["end"])) == where


SYMBOLS = [
    ["LIMIT", "variable", 1, 1, 1],
    ["Trainer", "class", 3, 4, 20],
    ["Trainer.rate", "variable", 6, 6, 6],
    ["Trainer.step", "method", 8, 10, 15],
    ["Trainer.step.inner", "function", 11, 11, 13],
]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (8, 15, "Trainer.step"),
        (10, 10, "Trainer.step"),
        (1, 1, "LIMIT"),
        (6, 6, "Trainer.rate"),
        (12, 13, "Trainer.step.inner"),
        (12, 14, "Trainer.step"),
        (14, 18, "Trainer"),
        (2, 5, ""),
        (0, 0, ""),
    ],
)
def test_symbol_at(script: Page, start: int, end: int, expected: str) -> None:
    assert call(script, "symbolAt", SYMBOLS, start, end) == expected
