"""The drawing: links, labels that do not cover each other, and not more of anything than a page can bear."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from sourcepanel.graph.draw import MOST_EDGES, MOST_LABELS, draw_all, draw_near, svg
from sourcepanel.graph.labels import ZOOMS, Label, fit, overlaps
from sourcepanel.graph.layout import lay_out
from sourcepanel.graph.model import Graph, Node
from sourcepanel.graph.site import FAR, NEAR, SLOT, SiteGraph, whole_page
from sourcepanel.strings import strings
from tests.support.golden import Golden
from tests.support.graphs import synthetic


def site(graph: Graph) -> SiteGraph:
    return SiteGraph(graph, known={}, strings=strings())


@pytest.mark.parametrize("notes", [60, 600, 2000])
def test_a_drawing_of_many_notes_stays_within_bounds(notes: int) -> None:
    graph = synthetic(notes)
    drawing = draw_all(graph, lay_out(graph.nx()))
    text = svg(drawing, up="", label="x")
    root = ElementTree.fromstring(text)
    links = root.findall("a")
    assert len(links) == len(graph.nodes)
    assert all(link.get("{http://www.w3.org/1999/xlink}href") for link in links)
    assert len(root.findall("a/g/text")) <= MOST_LABELS
    assert sum(path.get("d", "").count("M") for path in root.findall("path")) <= MOST_EDGES
    assert len(root.findall("path")) <= 10, "one path for each pair of kinds"
    assert len(list(root.iter())) <= 4 * len(links) + MOST_LABELS + 20
    assert len(text) < 1_000_000
    everything = [number for link in links for number in link.get("data-to", "").split()]
    assert len(everything) == 2 * len(graph.edges), "pointing at a node shows all it is joined to"


def test_labels_never_cover_each_other_and_more_of_them_come_with_zoom() -> None:
    graph = synthetic(60)
    places = lay_out(graph.nx())
    labels = [
        Label(id=id_, x=places[id_][0] * 20, y=places[id_][1] * 20, radius=5, text=node.label, rank=0)
        for id_, node in graph.nodes.items()
    ]
    shown = fit(labels, most=10_000)
    counts = [sum(zoom <= limit for zoom in shown.values()) for limit in ZOOMS]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert [overlaps(labels, shown, zoom) for zoom in ZOOMS] == [0] * len(ZOOMS)
    forced = dict.fromkeys(shown, 1)
    assert overlaps(labels, forced, 1) > 0, "the count sees labels that do"


def test_a_label_yields_to_a_dot_of_its_rank_and_covers_a_lesser_one() -> None:
    first = Label(id="a", x=0, y=0, radius=5, text="a long name", rank=0)
    for rank, zoom in ((0, 2), (1, 1)):
        dot = Label(id="b", x=60, y=0, radius=5, text="", rank=rank)
        assert fit([first, dot], most=9)["a"] == zoom
    assert len(fit([first, Label(id="b", x=500, y=0, radius=5, text="b")], most=1)) == 1


def small() -> Graph:
    kinds = {"note:notes/1.md": "note", "note:notes/2.md": "note", "source:tiny/a.py": "source", "term:DP": "term"}
    nodes = {
        id_: Node(
            kind=kind,  # type: ignore[arg-type]
            name=id_.partition(":")[2],
            title=f"<{id_}>",
            label=f"{id_} & co",
            href="https://example.org/a.py" if kind == "source" else f"{id_[-4]}.html",
            src="tiny/a.py" if kind == "source" else "",
        )
        for id_, kind in kinds.items()
    }
    edges = {("note:notes/1.md", "source:tiny/a.py"): 2, ("note:notes/1.md", "term:DP"): 1}
    return Graph(nodes, {**edges, ("note:notes/2.md", "source:tiny/a.py"): 1})


def test_what_a_page_is_joined_to(golden: Golden) -> None:
    html = site(small()).beside("notes/1.md", up="../", whole="graph.html")
    golden("beside.html", html.replace("><", ">\n<") + "\n")
    depths = re.findall(r'class="graph__node graph--(\w+) graph--depth(\d)', html)
    assert sorted(depths) == [("note", "1"), ("note", "2"), ("source", "1"), ("term", "1")]


def test_a_page_that_is_joined_to_nothing_has_no_section() -> None:
    graph = small()
    assert site(graph).beside("about.md", up="", whole="") == ""
    assert site(Graph(graph.nodes, {})).beside("notes/1.md", up="", whole="") == ""


@pytest.mark.parametrize("notes", [60, 2000])
def test_beside_a_page_stands_what_counts_most_and_not_everything(notes: int) -> None:
    graph = synthetic(notes)
    hub = max(graph.nx().degree, key=lambda pair: (pair[0].startswith("note:"), pair[1]))[0]
    html = site(graph).beside(hub.partition(":")[2], up="", whole="")
    found = re.findall(r"graph__node graph--(\w+) graph--depth(\d)", html)
    assert len([1 for _, depth in found if depth == "1"]) <= 1 + sum(NEAR.values())
    assert 0 < len([1 for _, depth in found if depth == "2"]) <= FAR
    assert len(html) < 40_000


def test_rows_beside_a_page_do_not_touch() -> None:
    graph = synthetic(60)
    near = [id_ for id_ in graph.nodes if not id_.startswith("note:")][:60]
    drawing = draw_near(graph, "note:notes/0000.md", near=near, far=[])
    for left in (True, False):
        rows = sorted(placed.at[1] for placed in drawing.nodes if placed.left is left and not placed.here)
        assert all(b - a >= 14 for a, b in pairwise(rows))


def test_the_whole_graph_stands_where_a_page_asks_for_it() -> None:
    assert whole_page([("a.html", "<p>x</p>"), ("g.html", f"<p>{SLOT}</p>")]) == "g.html"
    assert whole_page([("a.html", "<code>&lt;!-- graph --&gt;</code>")]) == ""
    html = site(small()).whole(up="../")
    assert "4 个节点，3 条边。" in html
    assert html.count("<a ") == 4
    assert 'href="../sourcepanel/graph.css"' in html
    assert 'data-src="tiny/a.py"' in html
