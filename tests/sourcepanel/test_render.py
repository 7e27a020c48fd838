"""Rendering: the text to the letter, every line whole by itself, colours where they are due."""

from __future__ import annotations

import json
import os
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexer import Lexer
from pygments.token import Text

from sourcepanel import render
from sourcepanel.render import SECTION, lexer_for, render_cached, render_source, write_atomically
from sourcepanel.snapshot.base import git_blob_id
from sourcepanel.source import SourceFile, decode, split_lines
from tests.support import tree
from tests.support.golden import Golden


def source(path: str, data: str | bytes) -> SourceFile:
    raw = data.encode() if isinstance(data, str) else data
    text, encoding = decode(raw)
    lines = split_lines(text)
    return SourceFile(path, git_blob_id(raw), len(lines), encoding, lines)


def html_lines(path: str, data: str | bytes) -> list[str]:
    return "\n".join(render_source(source(path, data)).sections).split("\n")


def plain(html: str) -> str:
    """The text of one line; fails on an element that the line does not close itself."""
    depth, out, rest = 0, [], html
    while rest:
        before, mark, rest = rest.partition("<")
        out.append(before)
        if mark:
            tag, _, rest = rest.partition(">")
            assert tag == "/span" or tag.startswith("span class="), tag
            depth += -1 if tag == "/span" else 1
            assert depth in (0, 1), html
    assert depth == 0, html
    return unescape("".join(out))


PYTHON = '''@decorated
def step(self, batch):
    """Two
    lines."""
    if batch is None:  # nothing
        raise ValueError(f"no {batch!r}\\n")
    return Trainer(batch) + 1.5
'''


def test_golden(golden: Golden) -> None:
    golden("render.html", "\n".join(html_lines("a.py", PYTHON)) + "\n")


@pytest.mark.parametrize("path", sorted(tree.V2))
def test_every_file_of_the_tiny_repository_comes_back_to_the_letter(path: str) -> None:
    file = source(path, tree.V2[path])
    if file.has_text and file.count:
        lines = "\n".join(render_source(file).sections).split("\n")
        assert [plain(line).replace("␍", "\r") for line in lines] == list(file.lines)


@given(
    st.text(st.sampled_from("ab_(\"'#\\\n\r\t\f <>&`{}é源\u2028"), max_size=60),
    st.sampled_from(["py", "cpp", "md", "sh"]),
)
def test_any_text_comes_back_to_the_letter(text: str, suffix: str) -> None:
    file = source(f"a.{suffix}", text)
    if file.count:
        lines = "\n".join(render_source(file).sections).split("\n")
        assert [plain(line).replace("␍", "\r") for line in lines] == list(file.lines)


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("pkg/a.py", "Python"),
        ("pkg/a.pyi", "Python"),
        ("pkg/helpers.cpp", "C++"),
        ("pkg/kernel.cu", "CUDA"),
        ("pkg/kernel.cuh", "CUDA"),
        ("run.sh", "Bash"),
        ("conf.yaml", "YAML"),
        ("README.md", "Markdown"),
        ("pyproject.toml", "TOML"),
        ("data.json", "JSON"),
        ("Makefile", "Makefile"),
        ("Dockerfile", "Docker"),
        ("notes.txt", ""),
        ("LICENSE", ""),
        ("odd.unknown", ""),
    ],
)
def test_lexer_by_name(path: str, language: str) -> None:
    lexer = lexer_for(path)
    assert (lexer.name if lexer else "") == language
    assert render_source(source(path, "x\n")).language == language


def test_a_call_and_a_class_are_told_from_a_plain_name() -> None:
    (line,) = html_lines("a.py", "y = f(x) + Model(x) + _Hidden(x)\n")
    assert line.startswith("y = <span class=f>f</span>(x) + <span class=t>Model</span>(x)")
    assert "<span class=t>_Hidden</span>" in line


def test_sections_of_two_hundred_lines() -> None:
    text = "".join(f"x = {i}\n" for i in range(2 * SECTION + 1))
    rendered = render_source(source("a.py", text))
    assert [section.count("\n") + 1 for section in rendered.sections] == [SECTION, SECTION, 1]


@pytest.mark.parametrize(
    ("data", "sections"),
    [("", 0), ("\n", 1), ("x", 1), ("x\n", 1), ("\n\n\n", 1)],
)
def test_small_files(data: str, sections: int) -> None:
    file = source("a.py", data)
    rendered = render_source(file)
    assert len(rendered.sections) == sections
    assert sum(section.count("\n") + 1 for section in rendered.sections) == file.count


@pytest.mark.parametrize(
    ("line", "columns"),
    [("abc", 3), ("\tab", 6), ("a\tb", 5), ("源码 a", 6), ("e\u0301", 2), ("", 0)],
)
def test_columns(line: str, columns: int) -> None:
    assert render_source(source("a.txt", f"{line}\n")).columns == columns


def test_a_lone_carriage_return_ends_no_line() -> None:
    assert html_lines("a.txt", "a\rb\r\nc") == ["a␍b", "c"]


def test_symbols_come_along() -> None:
    rendered = render_source(source("a.py", PYTHON))
    assert rendered.symbols == (("step", "function", 1, 2, 7),)


class Failing(Lexer):
    name = "Failing"

    def get_tokens_unprocessed(self, text: str) -> Any:
        yield 0, Text, text[:1]
        raise RecursionError


class Forgetful(Lexer):
    name = "Forgetful"

    def get_tokens_unprocessed(self, text: str) -> Any:
        yield 0, Text, text.upper()


@pytest.mark.parametrize("lexer", [Failing(), Forgetful()])
def test_a_lexer_that_fails_or_changes_the_text_costs_only_the_colours(
    lexer: Lexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "lexer_for", lambda path: lexer)
    rendered = render_source(source("a.py", "if x < 1:\n    y()\n"))
    assert rendered.language == ""
    assert rendered.sections == ("if x &lt; 1:\n    y()",)


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on nothing may be rendered: what comes must come from the cache."""

    def refuse(file: SourceFile) -> None:
        raise AssertionError(f"{file.path} was rendered again")

    monkeypatch.setattr(render, "render_source", refuse)


def entries(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


def test_the_cache_gives_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = source("a.py", PYTHON)
    first = render_cached(file, cache=tmp_path)
    forbid(monkeypatch)
    assert render_cached(file, cache=tmp_path) == first


@pytest.mark.parametrize("change", ["blob", "pygments", "renderer", "lexer"])
def test_the_cache_forgets_when_anything_it_depends_on_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    render_cached(source("a.py", PYTHON), cache=tmp_path)
    path, text = "a.py", PYTHON
    if change == "blob":
        text += "\n"
    elif change == "pygments":
        monkeypatch.setattr(render.pygments, "__version__", "0")
    elif change == "renderer":
        monkeypatch.setattr(render, "RENDERER", -1)
    else:
        path = "a.sh"
    render_cached(source(path, text), cache=tmp_path)
    assert len(entries(tmp_path)) == 2


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"language": 1}', "\udcff"])
def test_a_damaged_entry_is_rendered_again(tmp_path: Path, damage: str) -> None:
    file = source("a.py", PYTHON)
    first = render_cached(file, cache=tmp_path)
    (entry,) = entries(tmp_path)
    entry.write_text(damage, encoding="utf-8", errors="surrogateescape")
    assert render_cached(file, cache=tmp_path) == first
    assert json.loads(entry.read_text(encoding="utf-8"))["language"] == "Python"


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the folder should be")
    file = source("a.py", PYTHON)
    assert render_cached(file, cache=blocked) == render_source(file)


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.txt"
    write_atomically(target, "before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(target, "after")
    assert os.listdir(tmp_path) == ["a.txt"] and target.read_text() == "before"  # noqa: PTH208
