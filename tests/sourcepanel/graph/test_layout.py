"""Where nodes stand: the same in every build, and moved by nothing that is added beside them."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from sourcepanel.errors import ConfigError
from sourcepanel.graph.layout import APART, WHOLE, lay_out, places_text, read_places
from tests.support.graphs import synthetic

ROOT = Path(__file__).resolve().parents[3]
PRINT = (
    "from sourcepanel.graph.layout import lay_out, places_text\n"
    "from tests.support.graphs import synthetic\n"
    "print(places_text(lay_out(synthetic(60).nx())))"
)


def test_every_process_finds_the_same_places() -> None:
    """Also with another order of hashes, which sets and so `subgraph` would follow."""
    said = set()
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", PRINT], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.add(done.stdout)
    assert len(said) == 1


@pytest.mark.parametrize("notes", [20, 60, 600])
def test_a_new_note_moves_no_other_and_stands_beside_what_it_speaks_of(notes: int) -> None:
    graph = synthetic(notes).nx()
    before = lay_out(graph)
    friends = [node for node in graph if node.startswith("source:")][:3]
    grown = nx.Graph(graph)
    grown.add_edges_from(("note:new", friend) for friend in friends)
    after = lay_out(grown, before)
    moved = [math.dist(before[node], after[node]) for node in graph]
    assert moved == [0.0] * len(graph)
    among = [math.dist(after["note:new"], after[friend]) for friend in friends]
    others = [math.dist(after["note:new"], after[node]) for node in graph]
    assert statistics.mean(among) < statistics.mean(others)
    without = nx.Graph(grown)
    without.remove_node(friends[0])
    left = lay_out(without, after)
    assert left == {node: place for node, place in after.items() if node != friends[0]}


@pytest.mark.parametrize("notes", [60, 600, 2000])
def test_many_notes_get_places_that_do_not_cover_each_other(notes: int) -> None:
    graph = synthetic(notes).nx()
    places = lay_out(graph)
    assert list(places.keys() ^ set(graph)) == []
    assert all(math.isfinite(value) for place in places.values() for value in place)
    assert len(graph) > WHOLE
    at = np.array(list(places.values()))
    apart = np.hypot(*(at[:, None, axis] - at[None, :, axis] for axis in (0, 1)))
    np.fill_diagonal(apart, APART)
    assert (apart.min(axis=1) < APART / 2).mean() < 0.15
    assert apart.min() > 0


def test_what_speaks_together_stands_together() -> None:
    graph = nx.disjoint_union(nx.complete_graph(12), nx.complete_graph(12))
    graph = nx.relabel_nodes(graph, {node: f"note:{node:02d}" for node in graph})
    graph.add_edge("note:00", "note:12")
    nx.set_edge_attributes(graph, 1.0, "weight")
    places = lay_out(graph)
    names = sorted(graph)

    def mean(ones: list[str], others: list[str]) -> float:
        return statistics.mean(math.dist(places[a], places[b]) for a in ones for b in others if a != b)

    first, second = names[:12], names[12:]
    assert mean(first, first) < 0.7 * mean(first, second)
    assert mean(second, second) < 0.7 * mean(first, second)


@pytest.mark.parametrize("graph", [nx.Graph(), nx.empty_graph(["note:a"]), nx.empty_graph(["note:a", "note:b"])])
def test_graphs_of_next_to_nothing(graph: nx.Graph) -> None:
    places = lay_out(graph)
    assert set(places) == set(graph)
    assert lay_out(graph, places) == places


def test_places_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "sourcepanel.graph"
    assert read_places(file) == {}
    places = lay_out(synthetic(5).nx())
    file.write_text(places_text(places), encoding="utf-8")
    assert read_places(file) == places
    assert len(file.read_text().splitlines()) == len(places) + 2


@pytest.mark.parametrize("text", ["{", "[]", '{"note:a": 3}', '{"note:a": [1]}', '{"note:a": ["x", "y"]}'])
def test_a_file_that_holds_no_places_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "sourcepanel.graph"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"sourcepanel\.graph: not the places of a graph.*make graph"):
        read_places(file)
