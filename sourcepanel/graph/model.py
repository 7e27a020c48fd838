"""What stands in the graph and what is joined: pages, source files, terms and scripts, and who speaks of whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import quote, unquote

import networkx as nx

from sourcepanel.config import Repository
from sourcepanel.mentions import Mention
from sourcepanel.notes.glossary import Glossary
from sourcepanel.notes.roadmap import Roadmap

Kind = Literal["note", "page", "source", "term", "script"]
KINDS: tuple[Kind, ...] = ("note", "page", "script", "source", "term")
"""In the order in which they get their labels."""

_WEAK = {"term": 0.3}


@dataclass(frozen=True, kw_only=True)
class Node:
    """One thing in the graph."""

    kind: Kind
    name: str
    """Unique in its kind, and the same from build to build: a page's path, `Repository/path`, a term, a script."""
    title: str
    label: str
    """What stands beside it: short."""
    href: str
    """Relative to the site's root, or an address elsewhere."""
    src: str = ""
    """What the panel opens."""

    @property
    def id(self) -> str:
        """Unique in the graph."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, kw_only=True)
class PageFacts:
    """One page that has been converted."""

    name: str
    """Path of its Markdown file, relative to the docs folder."""
    title: str
    url: str
    """Relative to the site's root."""
    note: bool
    """Whether it is a reading note."""
    links: tuple[Mention, ...] = ()
    mentions: tuple[Mention, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Nodes by id, in a fixed order, and the edges between them with how often one speaks of the other."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    edges: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Each pair once, in the order of its ids."""

    def nx(self) -> nx.Graph[str]:
        """The same for networkx, in an order that is the same in every build."""
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(sorted(self.nodes))
        for (one, other), count in sorted(self.edges.items()):
            weak = min(_WEAK.get(self.nodes[end].kind, 1.0) for end in (one, other))
            graph.add_edge(one, other, weight=weak * min(2.0, 1 + math.log10(count)), count=count)
        return graph


def build_graph(
    pages: Iterable[PageFacts],
    *,
    repositories: Iterable[Repository] = (),
    glossary: Glossary | None = None,
    roadmap: Roadmap | None = None,
    scripts: str = "",
    without: Iterable[str] = (),
) -> Graph:
    """The graph of a site.

    `scripts` is the page (by name) that has a section for each chapter's program, with the beginning of the
    program's file name as its id (`ch06`); `without` names pages that are no nodes. The glossary's page is none
    either: its terms are. Of the links that the build made, only terms count. What is joined to nothing is left
    out, except notes.
    """
    facts = {page.name: page for page in pages}
    return _Builder(
        facts,
        repositories={r.name: r for r in repositories},
        glossary=glossary or Glossary(),
        roadmap=roadmap or Roadmap(),
        scripts=scripts if scripts in facts else "",
        without=frozenset(without),
    ).build()


class _Builder:
    def __init__(
        self,
        pages: Mapping[str, PageFacts],
        *,
        repositories: Mapping[str, Repository],
        glossary: Glossary,
        roadmap: Roadmap,
        scripts: str,
        without: frozenset[str],
    ) -> None:
        self._pages = pages
        self._urls = {unquote(page.url): page.name for page in pages.values()}
        self._repositories = repositories
        self._glossary = glossary
        self._terms = {term.anchor: term.name for term in glossary.terms}
        self._hidden = without | {glossary.page}
        self._scripts_page = scripts
        self._scripts = {_anchor(c.script): c for c in roadmap.chapters} if scripts else {}
        self._nodes: dict[str, Node] = {}
        self._edges: Counter[tuple[str, str]] = Counter()

    def build(self) -> Graph:
        for page in self._pages.values():
            if page.name in self._hidden:
                continue
            here = self._page(page)
            for link in page.links:
                self._join(here, self._linked(link))
            for mention in page.mentions:
                source = self._source(mention.key)
                script = self._script(mention.section) if page.name == self._scripts_page else None
                self._join(script or here, source)
        for anchor, chapter in self._scripts.items():
            if chapter.note in self._pages and (script := self._script(anchor)):
                self._join(script, self._page(self._pages[chapter.note]))
        joined = {end for edge in self._edges for end in edge}
        nodes = {id_: node for id_, node in sorted(self._nodes.items()) if id_ in joined or node.kind == "note"}
        return Graph(nodes, dict(sorted(self._edges.items())))

    def _join(self, one: Node | None, other: Node | None) -> None:
        if one and other and one != other:
            first, second = sorted((one.id, other.id))
            self._edges[first, second] += 1

    def _add(self, node: Node) -> Node:
        return self._nodes.setdefault(node.id, node)

    def _page(self, page: PageFacts) -> Node:
        kind: Kind = "note" if page.note else "page"
        return self._add(Node(kind=kind, name=page.name, title=page.title, label=page.title, href=page.url))

    def _linked(self, link: Mention) -> Node | None:
        url, _, fragment = link.key.partition("#")
        name = self._urls.get(url, "")
        if name == self._glossary.page and fragment in self._terms:
            term, place = self._terms[fragment], f"{self._pages[name].url}#{quote(fragment)}"
            return self._add(Node(kind="term", name=term, title=term, label=term, href=place))
        if link.made or not name or name in self._hidden:
            return None
        script = self._script(fragment) if name == self._scripts_page else None
        return script or self._page(self._pages[name])

    def _script(self, anchor: str) -> Node | None:
        chapter = self._scripts.get(anchor)
        if chapter is None:
            return None
        place = f"{self._pages[self._scripts_page].url}#{anchor}"
        name = PurePosixPath(chapter.script).name
        return self._add(Node(kind="script", name=chapter.script, title=chapter.script, label=name, href=place))

    def _source(self, key: str) -> Node | None:
        name = key.partition("#L")[0]
        repository, _, path = name.partition("/")
        if name.endswith("/") or not path or repository not in self._repositories:
            return None
        at = self._repositories[repository]
        href = f"{at.url}/blob/{at.commit}/{quote(path)}"
        file = PurePosixPath(path)
        label = file.name if file.name != "__init__.py" else f"{file.parent.name}/{file.name}"
        return self._add(Node(kind="source", name=name, title=path, label=label, href=href, src=name))


def _anchor(script: str) -> str:
    return PurePosixPath(script).stem.partition("_")[0]
