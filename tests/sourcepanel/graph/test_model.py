"""What becomes a node, and what joins two."""

from __future__ import annotations

from pathlib import Path

import pytest

from sourcepanel.graph.model import Graph, PageFacts, build_graph
from sourcepanel.mentions import Mention, read_mentions
from sourcepanel.notes.glossary import Glossary, Term
from sourcepanel.notes.roadmap import Roadmap
from tests.support.memory import TINY

GLOSSARY = Glossary((Term(name="DP", also=(), zh="数据并行", en="data parallel", link="x", line=1),), "glossary.md")
ROADMAP = Roadmap.model_validate(
    {
        "rounds": [
            {
                "name": "一",
                "title": "t",
                "question": "q",
                "chapters": [
                    {"number": 1, "title": "T", "note": "notes/1.md", "script": "runnable/ch01_a.py", "record": "r"},
                    {"number": 2, "title": "U", "note": "notes/2.md", "script": "runnable/ch02_b.py", "record": "r"},
                ],
            }
        ]
    }
)


def page(name: str, html: str = "") -> PageFacts:
    url = name.replace(".md", ".html")
    _, mentions, links = read_mentions(html, page=name, url=url)
    return PageFacts(
        name=name, title=f"T {name}", url=url, note=name.startswith("notes/"), links=links, mentions=mentions
    )


def graph(*pages: PageFacts, without: tuple[str, ...] = ()) -> Graph:
    return build_graph(
        pages, repositories=[TINY], glossary=GLOSSARY, roadmap=ROADMAP, scripts="lab.md", without=without
    )


def source(path: str) -> str:
    return f'<a class="sp-link" data-src="{path}" href="x">f</a>'


ONE = page("notes/1.md", '<a href="2.html">x</a> <a href="2.html#a">y</a>')
TWO = page("notes/2.md")


@pytest.mark.parametrize(
    ("html", "edge"),
    [
        ('<a href="2.html#a">x</a>', ("note:notes/1.md", "note:notes/2.md")),
        ('<a href="../index.html">x</a>', ("note:notes/1.md", "page:index.md")),
        (source("tiny/a/b.py#L3-L4"), ("note:notes/1.md", "source:tiny/a/b.py")),
        (source("tiny/a/h#L10.py"), ("note:notes/1.md", "source:tiny/a/h")),
        ('<a class="term" href="../glossary.html#dp">DP</a>', ("note:notes/1.md", "term:DP")),
        ('<a href="../glossary.html#dp">DP</a>', ("note:notes/1.md", "term:DP")),
        ('<a href="../lab.html#ch02">x</a>', ("note:notes/1.md", "script:runnable/ch02_b.py")),
        ('<a href="../lab.html#use">x</a>', ("note:notes/1.md", "page:lab.md")),
    ],
)
def test_what_joins_two(html: str, edge: tuple[str, str]) -> None:
    pages = [page("notes/1.md", html), TWO, page("index.md"), page("glossary.md"), page("lab.md")]
    found = graph(*pages)
    own = {("note:notes/1.md", "script:runnable/ch01_a.py"), ("note:notes/2.md", "script:runnable/ch02_b.py")}
    assert set(found.edges) - own == {edge}


@pytest.mark.parametrize(
    "html",
    [
        '<a class="sp-made" href="2.html">a row of the roadmap</a>',
        '<a href="../glossary.html">the whole glossary</a>',
        '<a href="../glossary.html#nope">no term</a>',
        '<a href="../graph.html">the graph itself</a>',
        '<a href="../else.html">no page</a>',
        source("tiny/a/"),
        source("other/a.py"),
        source("tiny"),
    ],
)
def test_what_joins_nothing(html: str) -> None:
    pages = [page("notes/1.md", html), TWO, page("glossary.md"), page("graph.md", '<a href="notes/1.html">x</a>')]
    assert graph(*pages, without=("graph.md",)).edges == {}


def test_a_script_stands_with_its_note_and_with_what_its_section_speaks_of() -> None:
    lab = page(
        "lab.md", f'<h2 id="ch01">1</h2><p>{source("tiny/a.py")}</p><h2 id="use">u</h2><p>{source("tiny/b.py")}</p>'
    )
    found = graph(ONE, lab)
    assert set(found.edges) == {
        ("note:notes/1.md", "script:runnable/ch01_a.py"),
        ("script:runnable/ch01_a.py", "source:tiny/a.py"),
        ("page:lab.md", "source:tiny/b.py"),
    }
    assert found.nodes["script:runnable/ch01_a.py"].href == "lab.html#ch01"
    assert "script:runnable/ch02_b.py" not in found.nodes, "a note that is not written brings no script"


def test_edges_count_and_lonely_nodes_are_left_out_but_for_notes() -> None:
    found = graph(ONE, TWO, page("notes/3.md"), page("about.md"), page("lab.md"))
    assert found.edges["note:notes/1.md", "note:notes/2.md"] == 2
    assert "note:notes/3.md" in found.nodes
    assert "page:about.md" not in found.nodes


def test_a_source_file_opens_in_the_panel_and_at_the_pin() -> None:
    node = graph(page("notes/1.md", source("tiny/a/__init__.py#L3"))).nodes["source:tiny/a/__init__.py"]
    assert (node.src, node.title, node.label) == ("tiny/a/__init__.py", "a/__init__.py", "a/__init__.py")
    assert node.href == f"{TINY.url}/blob/{TINY.commit}/a/__init__.py"


def test_the_order_is_that_of_the_names_and_not_of_the_pages() -> None:
    pages = [ONE, TWO, page("lab.md", source("tiny/a.py"))]
    first, second = graph(*pages), graph(*reversed(pages))
    assert list(first.nx().edges(data=True)) == list(second.nx().edges(data=True))
    assert list(first.nodes) == list(second.nodes)


def test_mentions_without_links_still_have_their_page(tmp_path: Path) -> None:
    mention = Mention(key="tiny/a.py#L1", page="p", url="p.html#sp-1", heading="", before="", text="f", after="")
    facts = PageFacts(name="p.md", title="P", url="p.html", note=False, mentions=(mention,))
    assert graph(facts).nodes["page:p.md"].label == "P"
