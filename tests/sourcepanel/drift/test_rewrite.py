"""Each spelling of a reference keeps its form; each page keeps every other byte."""

from __future__ import annotations

import pytest

from sourcepanel.config import Alias, License, Repository
from sourcepanel.drift.rewrite import Edit, count_edits, edit_page, fix_to, rewrite
from sourcepanel.reference import SourceRef, parse_code, parse_link

URL = "https://github.com/example/engine"
OLD = Repository(
    name="engine",
    url=URL,
    ref="v1",
    commit="a1" * 20,
    aliases=(Alias(url="https://github.com/someone/study", refs=("main",)),),
    license=License(holder="E", name="E", path="LICENSE"),
)
NEW = OLD.model_copy(update={"ref": "release/v2", "commit": "b2" * 20})


@pytest.mark.parametrize(
    ("raw", "to", "made"),
    [
        (f"{URL}/blob/v1/a.py#L3-L5", {"start": 7, "end": 9}, f"{URL}/blob/release/v2/a.py#L7-L9"),
        (f"{URL}/blob/v1/a.py#L3-L5", {}, f"{URL}/blob/release/v2/a.py#L3-L5"),
        (f"{URL}/blob/v1/a.py#L3-5", {"start": 7, "end": 9}, f"{URL}/blob/release/v2/a.py#L7-9"),
        (f"{URL}/blob/v1/a.py#L3-L5", {"start": 7, "end": 7}, f"{URL}/blob/release/v2/a.py#L7"),
        (f"{URL}/blob/v1/a.py#L3", {"start": 7, "end": 9}, f"{URL}/blob/release/v2/a.py#L7-L9"),
        (f"{URL}/blob/v1/a.py#L5-L3", {"start": 9, "end": 7}, f"{URL}/blob/release/v2/a.py#L9-L7"),
        (f"{URL}/blob/v1/a.py#L3C2-L5C9", {"start": 7, "end": 9}, f"{URL}/blob/release/v2/a.py#L7-L9"),
        (f"{URL}/blob/v1/a.py#L3C2-L5C9", {}, f"{URL}/blob/release/v2/a.py#L3C2-L5C9"),
        (f"{URL}/blob/v1/a.md?plain=1#L3", {"start": 4, "end": 4}, f"{URL}/blob/release/v2/a.md?plain=1#L4"),
        (f"{URL}/blob/{'a1' * 20}/a.py#L3", {}, f"{URL}/blob/{'b2' * 20}/a.py#L3"),
        (f"{URL}/blob/{'a1' * 4}/a.py#L3", {}, f"{URL}/blob/{'b2' * 4}/a.py#L3"),
        (f"{URL}/blob/refs/tags/v1/a.py", {}, f"{URL}/blob/refs/tags/release/v2/a.py"),
        ("https://github.com/someone/study/blob/main/a.py#L3", {"start": 4, "end": 4},
         "https://github.com/someone/study/blob/main/a.py#L4"),
        ("//GitHub.com/Example/engine.git/blame/v1/a.py#L3", {},
         "//GitHub.com/Example/engine.git/blame/release/v2/a.py#L3"),
        ("https://raw.githubusercontent.com/example/engine/v1/a.py", {},
         "https://raw.githubusercontent.com/example/engine/release/v2/a.py"),
        (f"{URL}/tree/v1/deep/", {"path": "other"}, f"{URL}/tree/release/v2/other/"),
        (f"{URL}/tree/v1", {}, f"{URL}/tree/release/v2"),
        (f"{URL}/blob/v1/a%20b.py#L3", {"path": "说 明.py", "start": 4, "end": 4},
         f"{URL}/blob/release/v2/%E8%AF%B4%20%E6%98%8E.py#L4"),
        (f"{URL}/blob/v1/a%20b.py#L3", {}, f"{URL}/blob/release/v2/a%20b.py#L3"),
        ("pkg/a.py::Class.run()", {"path": "pkg/b.py"}, "pkg/b.py::Class.run()"),
        ("engine:pkg/a.py::run", {"symbol": "go"}, "engine:pkg/a.py::go"),
        ("engine:pkg/a.py::run", {"path": "x.py", "symbol": "go"}, "engine:x.py::go"),
        ("pkg/a.py::Class::run", {"path": "pkg/b.py"}, "pkg/b.py::Class::run"),
        ("pkg/a.py::run", {}, "pkg/a.py::run"),
    ],
)  # fmt: skip
def test_a_spelling_keeps_its_form(raw: str, to: dict[str, object], made: str) -> None:
    was = parse_code(raw, [OLD]) if "::" in raw else parse_link(raw, [OLD])
    assert isinstance(was, SourceRef)
    target = SourceRef(**{**{name: getattr(was, name) for name in was.__dataclass_fields__}, **to})
    assert rewrite(raw, was=was, to=target, old=OLD, new=NEW) == made
    parsed = parse_code(made, [NEW]) if "::" in made else parse_link(made, [NEW])
    assert parsed == target


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (f"{URL}/blob/v1/a.py#L3", f"{URL}/blob/v1/a.py#L3"),
        (f"{URL}/blob/{'a1' * 5}/a.py", f"{URL}/blob/{'a1' * 5}/a.py"),
        ("https://github.com/someone/study/blob/main/a.py#L3-L4",
         f"https://github.com/someone/study/blob/{'a1' * 20}/a.py#L3-L4"),
    ],
)  # fmt: skip
def test_what_stays_names_the_old_pin(raw: str, kept: str) -> None:
    was = parse_link(raw, [OLD])
    assert isinstance(was, SourceRef)
    assert fix_to(raw, was=was, pin=OLD, new=NEW) == kept


def test_what_stays_does_so_when_the_pin_follows_a_branch() -> None:
    new = OLD.model_copy(update={"commit": "b2" * 20})
    raw = f"{URL}/blob/v1/a.py#L3"
    was = parse_link(raw, [OLD])
    assert isinstance(was, SourceRef)
    assert fix_to(raw, was=was, pin=OLD, new=new) == f"{URL}/blob/{'a1' * 20}/a.py#L3"


A, B = f"{URL}/blob/v1/a.py#L1", f"{URL}/blob/v2/a.py#L1"


@pytest.mark.parametrize(
    ("page", "edits", "made"),
    [
        ("x\r\n[a]({A}) \r\n", [Edit(2, A, B, 1)], "x\r\n[a]({B}) \r\n"),
        ("\ufeff[a]({A})  ", [Edit(1, A, B, 1)], "\ufeff[a]({B})  "),
        ("a\rb [a]({A})\rc", [Edit(2, A, B, 1)], "a\rb [a]({B})\rc"),
        ("[a]({A}) [b]({A})", [Edit(1, A, B, 2)], "[a]({B}) [b]({B})"),
        ("| [a]({A}) |\t`{A}` |", [Edit(1, A, B, 1)], None),
        ("[{A}]({A})", [Edit(1, A, B, 1)], None),
        ("[a]({A}) {A}0 x{A} {A}-L2", [Edit(1, A, B, 1)], "[a]({B}) {A}0 x{A} {A}-L2"),
        ("[a](<{A}> 't')", [Edit(1, A, B, 1)], "[a](<{B}> 't')"),
        ('<a href="{A}">x</a>', [Edit(1, A, B, 1)], '<a href="{B}">x</a>'),
        ("[a][r] and\n\n[r]: {A} 'title'\n", [Edit(1, A, B, 1)], "[a][r] and\n\n[r]: {B} 'title'\n"),
        ("nothing here", [Edit(1, A, B, 1)], None),
        ("[a]({A})", [Edit(9, A, B, 1)], None),
        ("[a](x?a=1&amp;b=2)", [Edit(1, "x?a=1&b=2", "y?a=1&b=3", 1)], "[a](y?a=1&amp;b=3)"),
        ("`p/a.py::f` `p/a.py::f2` q/p/a.py::f", [Edit(1, "p/a.py::f", "p/b.py::f", 1)],
         "`p/b.py::f` `p/a.py::f2` q/p/a.py::f"),
        ("function: p/a.py::f\n", [Edit(1, "p/a.py::f", "p/b.py::f", 1)], "function: p/b.py::f\n"),
        ("`p/a.py::f` `p/b.py::f`", [Edit(1, "p/a.py::f", "p/b.py::f", 1), Edit(1, "p/b.py::f", "p/c.py::f", 1)],
         "`p/b.py::f` `p/c.py::f`"),
    ],
)  # fmt: skip
def test_a_page_keeps_every_other_byte(page: str, edits: list[Edit], made: str | None) -> None:
    def filled(text: str) -> bytes:
        return text.replace("{A}", A).replace("{B}", B).encode()

    new, misplaced = edit_page(filled(page), edits)
    assert new == filled(page if made is None else made)
    assert misplaced == (tuple(edits) if made is None else ())


def test_edits_are_counted_and_idle_ones_left_out() -> None:
    assert count_edits([(1, "a", "b"), (1, "a", "b"), (2, "a", "b"), (3, "c", "c")]) == [
        Edit(1, "a", "b", 2),
        Edit(2, "a", "b", 1),
    ]
