"""Synthetic graphs of any size, the same in every run."""

from __future__ import annotations

import random

from sourcepanel.graph.model import Graph, Kind, Node


def synthetic(notes: int) -> Graph:
    """Notes that speak of earlier ones, of files that lie together and of terms that stand anywhere."""
    chance = random.Random(7)
    nodes: dict[str, Node] = {}
    edges: dict[tuple[str, str], int] = {}

    def add(kind: Kind, name: str, label: str) -> str:
        src = name if kind == "source" else ""
        node = Node(kind=kind, name=name, title=name, label=label, href=f"{name}.html", src=src)
        nodes[node.id] = node
        return node.id

    def join(one: str, other: str) -> None:
        if one != other:
            edge = (min(one, other), max(one, other))
            edges[edge] = edges.get(edge, 0) + 1

    written = [add("note", f"notes/{i:04d}.md", f"{i:04d} 笔记题目") for i in range(notes)]
    files = [add("source", f"tiny/f{i}.py", f"file_{i}.py") for i in range(min(490, 8 * notes))]
    terms = [add("term", f"t{i}", f"term {i}") for i in range(90)]
    for i, note in enumerate(written):
        for _ in range(3):
            join(note, written[max(0, int(i - chance.expovariate(0.2)))])
        base = chance.randrange(len(files))
        for _ in range(10):
            join(note, files[(base + chance.randrange(12)) % len(files)])
        for _ in range(4):
            join(note, chance.choice(terms))
    joined = {end for edge in edges for end in edge}
    return Graph({id_: node for id_, node in sorted(nodes.items()) if id_ in joined}, dict(sorted(edges.items())))
