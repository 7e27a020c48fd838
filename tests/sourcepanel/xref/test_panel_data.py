"""What the panel gets: lines with links in them, and the data for what they lead to."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourcepanel.project import Project
from sourcepanel.render import SECTION, render_source
from sourcepanel.xref.data import FileLinks
from sourcepanel.xref.index import build_index
from sourcepanel.xref.model import USE_KINDS, Occurrence
from sourcepanel.xref.reach import select
from sourcepanel.xref.store import cached_index
from sourcepanel.xref.weave import weave, weave_line
from tests.sourcepanel.xref.cases import CASES
from tests.sourcepanel.xref.says import source_files


def text_of(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def links(*places: tuple[int, int]) -> list[tuple[Occurrence, str]]:
    return [(Occurrence(1, a, b, (), "certain", "other"), f"data-m={i}") for i, (a, b) in enumerate(places)]


@pytest.mark.parametrize(
    ("line", "places", "woven"),
    [
        ("f(x)", [(0, 1), (2, 3)], "<a data-m=0>f</a>(<a data-m=1>x</a>)"),
        ("<span class=f>f</span>(x)", [(0, 1)], "<span class=f><a data-m=0>f</a></span>(x)"),
        ("a &lt; b &amp; c", [(4, 5), (8, 9)], "a &lt; <a data-m=0>b</a> &amp; <a data-m=1>c</a>"),
        ("<span class=d>@a.b</span>", [(1, 2), (3, 4)], "<span class=d>@<a data-m=0>a</a>.<a data-m=1>b</a></span>"),
        ("'漢🎉', x", [(6, 7)], "'漢🎉', <a data-m=0>x</a>"),
        ("\tx", [(1, 2)], "\t<a data-m=0>x</a>"),
        ("x", [], "x"),
        ("", [(0, 1)], ""),
        ("ab<span class=k>cd</span>", [(1, 3)], "ab<span class=k>cd</span>"),
        ("abc", [(0, 2), (1, 3)], "<a data-m=0>ab</a>c"),
        ("abc", [(1, 9)], "abc"),
    ],
)
def test_identifiers_become_elements_and_the_text_stays(line, places, woven):
    assert weave_line(line, links(*places)) == woven
    assert text_of(woven) == text_of(line)


@given(st.text("ab<>&.\t漢 "), st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4)), max_size=5))
def test_no_link_ever_changes_the_text(text, starts):
    places = sorted({(a, a + n) for a, n in starts})
    woven = weave_line(html.escape(text, quote=False), links(*places))
    assert text_of(woven) == text


@pytest.mark.parametrize("name", CASES)
def test_every_occurrence_of_a_rendered_file_is_woven_in(name):
    files = source_files(CASES[name])
    for index in build_index(files):
        table = FileLinks("tiny", index)
        rendered = render_source(files[index.path])
        woven = weave(rendered.sections, table.links, size=SECTION)
        assert [text_of(s) for s in woven] == [text_of(s) for s in rendered.sections]
        made = re.findall(r'<a class=(?:q|"q l") data-m=(\d+)>(\w+)</a>', "".join(woven))
        words = [files[index.path].lines[o.line - 1][o.start : o.end] for o in index.occurrences]
        assert [word for _, word in made] == words
        assert {int(number) for number, _ in made} == set(table.meanings.values())


def test_links_are_put_into_the_section_they_stand_in():
    files = source_files({"a.py": ("X = 1\n" + "\n" * (2 * SECTION - 2) + "X\n" + "X\n").encode()})
    [index] = build_index(files)
    woven = weave(render_source(files["a.py"]).sections, FileLinks("tiny", index).links, size=SECTION)
    assert [section.count("<a") for section in woven] == [0, 1, 1]


def test_the_data_speaks_of_everything_by_its_number():
    sources = {
        "m.py": 'def f(x):\n    """Do it."""\nclass A:\n    def g(self): ...\nclass B(A):\n    def g(self): ...\n',
        "a.py": "from m import f, A\nf(f)\nA().g()\ndef h(x): x.some_name()\nclass C:\n    def some_name(self): ...\n",
    }
    made = {i.path: i for i in build_index(source_files(sources))}
    a, m = (json.loads(json.dumps(FileLinks("tiny", made[path]).data())) for path in ("a.py", "m.py"))

    def meaning(data, number):
        sure, *targets = data["meanings"][number]
        return sure, [f"{data['paths'][d[0]]}:{d[1]}" for d in (data["definitions"][t] for t in targets)]

    meanings = [meaning(a, i) for i in range(len(a["meanings"]))]
    assert meanings == [
        (1, ["m.py:"]),
        (1, ["m.py:f"]),
        (1, ["m.py:A"]),
        (1, ["m.py:A.g"]),
        (0, ["a.py:C.some_name"]),
    ]
    f = a["definitions"][a["meanings"][1][1]]
    assert f[1:] == ["f", "function", 1, 2, "(x)", "Do it."]
    own = {m["definitions"][n][1]: (line, column, uses, by) for n, line, column, uses, by in m["own"]}
    assert set(own) == {"", "f", "A", "A.g"}
    line, column, [[path, uses]], by = own["f"]
    assert (line, column, m["paths"][path], by) == (1, 4, "a.py", [])
    kinds = {kind: USE_KINDS.index(kind) for kind in USE_KINDS}
    assert uses == [1, kinds["import"], 1, 2, kinds["call"], 1, 2, kinds["other"], 1]
    assert [m["definitions"][n][1] for n in own["A.g"][3]] == ["B.g"]


@pytest.fixture
def source(tiny_config):
    return Project.open(tiny_config.root, notify=print).sources["tiny"]


def test_the_extent_says_which_files_are_carried(source):
    index = cached_index(source, cache=None, notify=print)
    chosen = {
        extent: select(extent, source=source, linked=["pretrain.py", "gone.py"], index=index)
        for extent in ("linked", "reachable", "everything")
    }
    assert chosen["linked"].paths == ("gone.py", "pretrain.py")
    assert chosen["reachable"].paths == ("gone.py", "pretrain.py", "tiny/training.py")
    assert set(chosen["everything"].paths) == source.seen - {"tiny/data/weights.bin"} | {"gone.py"}
    sizes = [(selection.lines, selection.bytes) for selection in chosen.values()]
    assert sizes == sorted(set(sizes))
    text = source.file("pretrain.py")
    assert chosen["linked"].lines == text.count
