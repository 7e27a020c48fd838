"""The graph as SVG: real links, shapes that tell the kinds apart without colour, labels that do not cover each other.

Sizes are those of the screen: what must not grow when a reader zooms is scaled by `--u`, the units of the drawing in
a pixel, which the script sets; without it, it is that of a column of text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from sourcepanel.graph.labels import Label, fit, text_width
from sourcepanel.graph.layout import Point
from sourcepanel.graph.model import KINDS, Graph, Node

COLUMN = 700
"""Pixels that a drawing has without the script."""
UNIT = 40.0
MOST_LABELS = 600
MOST_EDGES = 4000
"""Above it a node shows its strongest edges only; pointing at it shows all."""
_XLINK = "http://www.w3.org/1999/xlink"
"""Links are written the old way: themes take all that has an `href` for HTML, and fail at those of a drawing."""
_MARGIN = 60.0
_ROW = 17.0
_NEAR, _FAR = 120.0, 330.0
_SHAPES = {
    "note": '<circle r="8"/>',
    "page": '<circle r="6"/>',
    "source": '<rect x="-4.5" y="-4.5" width="9" height="9"/>',
    "term": '<path d="M0-5.5 5.5 0 0 5.5-5.5 0Z"/>',
    "script": '<path d="M0-6.5 6 5H-6Z"/>',
}
_RADII = {"note": 8.0, "page": 6.0, "source": 5.0, "term": 5.0, "script": 6.0}


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A node in a drawing."""

    node: Node
    at: Point
    zoom: int = 1
    """From which zoom its label is shown; 0 for a node without one."""
    left: bool = False
    """Its label stands to its left."""
    depth: int = 1
    here: bool = False
    """The page that the reader is on."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """All that is drawn; `edges` are pairs of numbers of nodes."""

    nodes: Sequence[Placed]
    edges: Sequence[tuple[int, int]]
    drawn: Sequence[tuple[int, int]]
    """Those of them that are seen when nobody points at anything."""
    box: tuple[float, float, float, float]
    """Left, top, width and height of what is seen at first."""
    far: tuple[float, float, float, float] | None = None
    """The same where more depth is shown."""


def draw_all(graph: Graph, places: Mapping[str, Point]) -> Drawing:
    """The whole graph, where its layout puts it."""
    # What matters most is drawn last, above the others.
    ids = sorted(graph.nodes, key=lambda id_: (-KINDS.index(graph.nodes[id_].kind), id_))
    numbers = {id_: i for i, id_ in enumerate(ids)}
    degree = _degrees(graph)
    box = _around([(places[id_][0] * UNIT, places[id_][1] * UNIT) for id_ in ids])
    scale, dots = COLUMN / box[2], _dot_scale(len(ids))
    worth = sorted(ids, key=lambda id_: (KINDS.index(graph.nodes[id_].kind), -degree[id_], id_))
    labels = [
        Label(
            id=id_,
            x=places[id_][0] * UNIT * scale,
            y=places[id_][1] * UNIT * scale,
            radius=dots * _RADII[graph.nodes[id_].kind],
            text=graph.nodes[id_].label,
            rank=KINDS.index(graph.nodes[id_].kind),
        )
        for id_ in worth
    ]
    zooms = fit(labels, most=MOST_LABELS)
    nodes = [
        Placed(node=graph.nodes[id_], at=(places[id_][0] * UNIT, places[id_][1] * UNIT), zoom=zooms.get(id_, 0))
        for id_ in ids
    ]
    return Drawing(
        nodes=nodes, edges=_numbered(graph.edges, numbers), drawn=_numbered(_strongest(graph), numbers), box=box
    )


def draw_near(graph: Graph, page: str, *, near: Sequence[str], far: Sequence[str]) -> Drawing:
    """What a page is joined to, in two columns of labels about it: source files left, all else right.

    `near` and `far` are the ids one and two steps away, in the order in which they are to stand.
    """
    left = [id_ for id_ in near if graph.nodes[id_].kind == "source"]
    right = [id_ for id_ in near if graph.nodes[id_].kind != "source"]
    nodes = [Placed(node=graph.nodes[page], at=(0.0, 0.0), zoom=0, here=True)]
    for ids, side, way in ((left, -1, True), (right, 1, False)):
        for id_, y in zip(ids, _rows(len(ids)), strict=True):
            bow = math.sqrt(max(0.0, 1 - (2 * y / (_ROW * max(len(ids), 2) + 2 * _ROW)) ** 2))
            nodes.append(Placed(node=graph.nodes[id_], at=(side * (50 + _NEAR * bow), y), left=way))
    box = _framed(nodes)
    half = len(far) // 2
    for ids, side, way in ((list(far[:half]), -1, True), (list(far[half:]), 1, False)):
        for id_, y in zip(ids, _rows(len(ids)), strict=True):
            nodes.append(Placed(node=graph.nodes[id_], at=(side * (_NEAR + _FAR), y), left=way, depth=2))
    numbers = {placed.node.id: i for i, placed in enumerate(nodes)}
    edges = _numbered({edge: 1 for edge in graph.edges if edge[0] in numbers and edge[1] in numbers}, numbers)
    # What its neighbours have with each other is seen when one is pointed at.
    own = [(one, other) for one, other in edges if one == 0 or nodes[other].depth == 2]
    return Drawing(nodes=nodes, edges=edges, drawn=own, box=box, far=_framed(nodes) if far else None)


def svg(drawing: Drawing, *, up: str, label: str) -> str:
    """The drawing; `up` leads from the page to the site's root."""
    left, top, width, height = drawing.box
    near: dict[int, list[int]] = {i: [] for i in range(len(drawing.nodes))}
    for one, other in drawing.edges:
        near[one].append(other)
        near[other].append(one)
    far = f' data-far="{" ".join(f"{value:.0f}" for value in drawing.far)}"' if drawing.far else ""
    nodes = "".join(_node(placed, near[i], up=up) for i, placed in enumerate(drawing.nodes))
    return (
        f'<svg class="graph__svg" xmlns:xlink="{_XLINK}" role="group" aria-label="{escape(label)}" data-zoom="1"{far} '
        f'viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}" '
        f'style="--u:{width / COLUMN:.3f};--dot:{_dot_scale(len(drawing.nodes)):.2f};'
        f'min-width:{min(width, COLUMN - 60):.0f}px">'
        f'{_lines(drawing)}<path class="graph__lit" d=""/>{nodes}</svg>'
    )


def _dot_scale(count: int) -> float:
    """How large the dots are: of many, smaller ones; the script lets them grow as a reader zooms."""
    return min(1.0, max(0.3, math.sqrt(200 / max(1, count))))


def _lines(drawing: Drawing) -> str:
    """Edges in one path for each pair of kinds, so that hiding a kind hides its edges."""
    paths: dict[tuple[str, str, int], list[str]] = {}
    for one, other in drawing.drawn:
        a, b = drawing.nodes[one], drawing.nodes[other]
        line = f"M{a.at[0]:.0f} {a.at[1]:.0f}L{b.at[0]:.0f} {b.at[1]:.0f}"
        paths.setdefault((a.node.kind, b.node.kind, max(a.depth, b.depth)), []).append(line)
    rows = sorted(paths.items())
    return "".join(
        f'<path class="graph__edges graph--{a} graph--{b} graph--depth{depth}" d="{"".join(lines)}"/>'
        for (a, b, depth), lines in rows
    )


def _node(placed: Placed, near: Iterable[int], *, up: str) -> str:
    node, (x, y) = placed.node, placed.at
    radius = _RADII[node.kind]
    classes = f"graph__node graph--{node.kind} graph--depth{placed.depth}" + " graph__here" * placed.here
    text = ""
    if placed.zoom:
        anchor = f'x="-{radius + 3:.0f}" text-anchor="end"' if placed.left else f'x="{radius + 3:.0f}"'
        text = f'<text class="graph__z{placed.zoom}" {anchor} y="4">{escape(node.label)}</text>'
    href = node.href if "://" in node.href else up + node.href
    src = f' data-src="{escape(node.src)}"' if node.src else ""
    current = ' aria-current="page"' if placed.here else ""
    return (
        f'<a class="{classes}" xlink:href="{escape(href)}" transform="translate({x:.0f} {y:.0f})" '
        f'data-to="{" ".join(map(str, near))}"{src}{current}><title>{escape(node.title)}</title>'
        f"<g>{_SHAPES[node.kind]}{text}</g></a>"
    )


def _strongest(graph: Graph) -> dict[tuple[str, str], int]:
    """All edges, or of very many the strongest few of each node."""
    if len(graph.edges) <= MOST_EDGES:
        return dict(graph.edges)
    each = max(1, MOST_EDGES // max(1, len(graph.nodes)))
    taken: dict[str, int] = dict.fromkeys(graph.nodes, 0)
    kept: dict[tuple[str, str], int] = {}
    for (one, other), count in sorted(graph.edges.items(), key=lambda item: (-item[1], item[0])):
        if min(taken[one], taken[other]) < each and len(kept) < MOST_EDGES:
            kept[one, other] = count
            taken[one] += 1
            taken[other] += 1
    return kept


def _degrees(graph: Graph) -> dict[str, int]:
    found = dict.fromkeys(graph.nodes, 0)
    for edge in graph.edges:
        for end in edge:
            found[end] += 1
    return found


def _numbered(edges: Mapping[tuple[str, str], int], numbers: Mapping[str, int]) -> list[tuple[int, int]]:
    pairs = ((numbers[one], numbers[other]) for one, other in edges)
    return sorted((min(pair), max(pair)) for pair in pairs)


def _rows(count: int) -> list[float]:
    return [(i - (count - 1) / 2) * _ROW for i in range(count)]


def _around(points: Sequence[Point]) -> tuple[float, float, float, float]:
    left, right = min((x for x, _ in points), default=0), max((x for x, _ in points), default=0)
    top, bottom = min((y for _, y in points), default=0), max((y for _, y in points), default=0)
    return left - _MARGIN, top - _MARGIN, right - left + 3 * _MARGIN, bottom - top + 2 * _MARGIN


def _framed(nodes: Sequence[Placed]) -> tuple[float, float, float, float]:
    """Around the nodes and their labels, the middle in the middle."""
    reach = max(abs(p.at[0]) + 1.12 * text_width(p.node.label) + 20 for p in nodes)
    height = max(abs(p.at[1]) for p in nodes) + 24
    return -reach, -height, 2 * reach, 2 * height
