"""Where each node stands: the same in every build of the same site, and moved as little as can be by a new one.

Positions are in units of the length that an edge would like to have. Up to `WHOLE` nodes networkx lays all of them
out; of more, the best joined `WHOLE`, and the others are set beside what they are joined to. A node whose place is
known stays there: new ones are fitted in between. Places come from names wherever nothing else is known.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from hashlib import blake2b
from itertools import combinations, product
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from sourcepanel.errors import ConfigError

Point = tuple[float, float]
WHOLE = 400
"""Above it networkx would need scipy, and minutes."""
APART = 0.75
"""The least distance between two nodes."""

_ITERATIONS = 80
_SPREAD = 120
_HUB = ""
"""A node of no one's, joined to all: it keeps parts that nothing joins from drifting apart."""
_GRAVITY = 0.06


def lay_out(graph: nx.Graph[str], known: Mapping[str, Point] | None = None) -> dict[str, Point]:
    """A place for each node; nodes in `known` keep theirs, to the last digit."""
    places = {node: known[node] for node in graph if node in known} if known else {}
    new = [node for node in graph if node not in places]
    first = len(places)
    chosen = sorted(new, key=lambda node: (-graph.degree(node), node))[: max(0, WHOLE - first)]
    if chosen:
        places |= _sprung(graph, chosen, fixed=places)
    _set_beside(graph, new, places)
    fixed = [node for node in places if known and node in known]
    return _rounded(_spread(places, fixed=fixed), keep=known or {})


def _sprung(graph: nx.Graph[str], nodes: Collection[str], *, fixed: Mapping[str, Point]) -> dict[str, Point]:
    """Places of these nodes by attraction and repulsion, among those that are fixed."""
    part: nx.Graph[str] = nx.Graph()
    # Not `subgraph`: its order may be that of a set, and with it the layout another in each build.
    part.add_nodes_from(sorted([*fixed, *nodes]))
    part.add_edges_from(edge for edge in graph.edges(data=True) if edge[0] in part and edge[1] in part)
    around = dict(fixed)
    _set_beside(graph, sorted(nodes), around, side=math.sqrt(len(part)) if not fixed else 0)
    part.add_weighted_edges_from((_HUB, node, _GRAVITY) for node in [*fixed, *sorted(nodes)])
    centre = _mean(fixed.values()) if fixed else (0.0, 0.0)
    found = nx.spring_layout(
        part, pos={**around, _HUB: centre}, fixed=[_HUB, *fixed], k=1.0, iterations=_ITERATIONS, method="force", seed=1
    )
    # Room for those that are set between them afterwards.
    room = 1.0 if fixed else math.sqrt(len(graph) / len(nodes))
    return {node: (room * float(found[node][0]), room * float(found[node][1])) for node in nodes}


def _set_beside(graph: nx.Graph[str], nodes: Collection[str], places: dict[str, Point], *, side: float = 0) -> None:
    """Give each node without a place one near its neighbours' mean, those with most placed neighbours first.

    What has no placed neighbour stands at a place made from its name: in a square of `side` around the middle, or,
    without one, in a ring around everything.
    """
    waiting = {node for node in nodes if node not in places}
    while waiting and not side:
        placed = {node: [places[other] for other in graph[node] if other in places] for node in sorted(waiting)}
        ready = {node: points for node, points in placed.items() if points}
        if not ready:
            break
        for node, points in ready.items():
            x, y = _mean(points)
            dx, dy = _named(node)
            reach = 1.5 if len(points) < 3 else 0.8
            places[node] = (x + reach * (dx - 0.5), y + reach * (dy - 0.5))
        waiting -= ready.keys()
    centre = _mean(places.values()) if places else (0.0, 0.0)
    radius = 1 + max((math.dist(centre, point) for point in places.values()), default=0.0)
    for node in sorted(waiting):
        x, y = _named(node)
        angle = 2 * math.pi * x
        ring = (centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle))
        places[node] = ((x - 0.5) * side, (y - 0.5) * side) if side else ring


def _spread(places: Mapping[str, Point], *, fixed: Collection[str]) -> dict[str, Point]:
    """Push apart what stands too close; those that are fixed stay."""
    names = sorted(places)
    held = np.array([name in set(fixed) for name in names], dtype=bool)
    at = np.array([places[name] for name in names], dtype=float).reshape(len(names), 2)
    for _ in range(_SPREAD if not held.all() else 0):
        pairs = _close(at)
        apart = at[pairs[:, 0]] - at[pairs[:, 1]]
        distance = np.hypot(apart[:, 0], apart[:, 1])
        near = (distance < APART) & (distance > 0)
        if not near.any():
            break
        push = apart[near] * ((APART - distance[near]) / distance[near] / 2)[:, None]
        moved = np.zeros_like(at)
        np.add.at(moved, pairs[near, 0], push)
        np.add.at(moved, pairs[near, 1], -push)
        at = np.where(held[:, None], at, at + np.clip(moved, -APART, APART))
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, at, strict=True)}


def _close(at: NDArray[np.float64]) -> NDArray[np.intp]:
    """Pairs that may stand too close: those in one square, or in squares that touch."""
    squares: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, (x, y) in enumerate(np.floor(at / APART).astype(int).tolist()):
        squares[x, y].append(number)
    pairs = [pair for members in squares.values() for pair in combinations(members, 2)]
    for (x, y), members in squares.items():
        for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1)):
            pairs += product(members, squares.get((x + dx, y + dy), ()))
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def _rounded(places: Mapping[str, Point], *, keep: Mapping[str, Point]) -> dict[str, Point]:
    return {name: keep.get(name) or (round(x, 2), round(y, 2)) for name, (x, y) in places.items()}


def _named(name: str) -> Point:
    """Two numbers in [0, 1) that a name has in every build."""
    digest = blake2b(name.encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest[:4], "big") / 2**32, int.from_bytes(digest[4:], "big") / 2**32


def _mean(points: Collection[Point]) -> Point:
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)


def read_places(path: Path) -> dict[str, Point]:
    """The places of an earlier build; none where there is no such file. Raises `ConfigError`."""
    fix = "copy that of a build again (make graph), or remove it"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): (float(x), float(y)) for name, (x, y) in data.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: not the places of a graph ({error}); {fix}") from None


def places_text(places: Mapping[str, Point]) -> str:
    """What `read_places` reads: one node a line, sorted, so that two builds differ where the graph does."""
    rows = (f"{json.dumps(name, ensure_ascii=False)}: [{x}, {y}]" for name, (x, y) in sorted(places.items()))
    return "{\n" + ",\n".join(rows) + "\n}\n"
