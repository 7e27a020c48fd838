"""The graph on a site's pages: the whole of it on its own page, what a page is joined to at the page's end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path

from sourcepanel.config import Config
from sourcepanel.graph.draw import draw_all, draw_near, svg
from sourcepanel.graph.layout import Point, lay_out, places_text, read_places
from sourcepanel.graph.model import KINDS, Graph, PageFacts, build_graph
from sourcepanel.notes.glossary import Glossary
from sourcepanel.notes.roadmap import Roadmap
from sourcepanel.panel_assets import FOLDER, lean_asset, write_changed

SLOT = "<!-- graph -->"
"""What a page has where the whole graph is to stand."""
SCRIPT, STYLE, PLACES = f"{FOLDER}/graph.js", f"{FOLDER}/graph.css", f"{FOLDER}/graph.json"
NEAR = {"note": 30, "page": 10, "script": 10, "source": 34, "term": 16}
"""Most of each kind that stand beside a page; the rest is in the whole graph."""
FAR = 24


class SiteGraph:
    """The graph of one build; it is laid out when a page first shows it whole."""

    def __init__(
        self, graph: Graph, *, known: Mapping[str, Point], strings: Mapping[str, str], shown: str = ""
    ) -> None:
        """`known` are the places of an earlier build, `shown` the address of the page that shows the whole graph."""
        self.graph = graph
        self._shown = shown
        self._known = known
        self._strings = strings
        self._near = graph.nx()

    @classmethod
    def of(
        cls,
        config: Config,
        pages: Sequence[PageFacts],
        *,
        shown: str,
        glossary: Glossary,
        roadmap: Roadmap,
        strings: Mapping[str, str],
    ) -> SiteGraph:
        """The graph of a site; raises `ConfigError` where the file with the earlier places cannot be used."""
        scripts = config.notes.scripts
        graph = build_graph(
            pages,
            repositories=config.repositories,
            glossary=glossary,
            roadmap=roadmap,
            scripts=config.path(scripts).relative_to(config.path(config.docs)).as_posix() if scripts else "",
            without=[page.name for page in pages if shown and page.url == shown],
        )
        return cls(graph, known=read_places(config.path(config.graph)), strings=strings, shown=shown)

    def place(self, html: str, *, name: str, url: str) -> str:
        """A page (its HTML up to where the article ends) with its part of the graph, or all of it where it asks so."""
        up = "../" * url.count("/")
        if self._shown and url == self._shown:
            return html.replace(SLOT, self.whole(up=up), 1)
        return html + self.beside(name, up=up, whole=self._shown)

    @cached_property
    def places(self) -> dict[str, Point]:
        """Where each node stands."""
        return lay_out(self._near, self._known)

    def whole(self, *, up: str) -> str:
        """The figure with the whole graph."""
        said = self._strings["graph.count"].format(nodes=len(self.graph.nodes), edges=len(self.graph.edges))
        drawing = draw_all(self.graph, self.places)
        label = self._strings["graph.title"]
        return self._figure(svg(drawing, up=up, label=label), f"<p>{escape(said)}</p>", kinds=self._kinds(), up=up)

    def beside(self, page: str, *, up: str, whole: str) -> str:
        """The section with what a page (by name) is joined to; `whole` is the address of the graph's own page."""
        here = next((id_ for id_ in (f"note:{page}", f"page:{page}") if id_ in self.graph.nodes), "")
        near, far = self._around(here) if here else ([], [])
        if not near:
            return ""
        drawing = draw_near(self.graph, here, near=near, far=far)
        label = self._strings["graph.local"]
        shown = {placed.node.kind for placed in drawing.nodes}
        more = f'<p><a href="{escape(up + whole)}">{escape(self._strings["graph.all"])}</a></p>' if whole else ""
        figure = self._figure(
            svg(drawing, up=up, label=label), more, kinds=[k for k in KINDS if k in shown], up=up, deep=bool(far)
        )
        title = f'<h2 id="graph">{escape(label)}</h2>'
        return f'<section class="graph-local" aria-labelledby="graph">{title}{figure}</section>'

    def _kinds(self) -> list[str]:
        there = {node.kind for node in self.graph.nodes.values()}
        return [kind for kind in KINDS if kind in there]

    def _around(self, here: str) -> tuple[list[str], list[str]]:
        """What is one step away, and the pages and scripts two steps away that share most with the first."""

        def order(id_: str) -> tuple[int, str]:
            return KINDS.index(self.graph.nodes[id_].kind), id_

        near: list[str] = []
        for kind in KINDS:
            all_ = [other for other in self._near[here] if self.graph.nodes[other].kind == kind]
            strong = sorted(all_, key=lambda other: (-self._near[here][other]["count"], other))
            near += strong[: NEAR[kind]]
        shared: dict[str, float] = {}
        for middle in near:
            # What everything is joined to says little about what belongs together.
            for other in self._near[middle]:
                if other != here and other not in near and self.graph.nodes[other].kind in ("note", "page", "script"):
                    shared[other] = shared.get(other, 0) + 1 / self._near.degree(middle)
        far = sorted(shared, key=lambda other: (-shared[other], other))[:FAR]
        return sorted(near, key=order), sorted(far, key=order)

    def _figure(self, drawing: str, more: str, *, kinds: Sequence[str], up: str, deep: bool = False) -> str:
        said = self._strings
        boxes = "".join(
            f'<label class="graph__key graph--{kind}"><input type="checkbox" checked data-kind="{kind}">'
            f"<span>{escape(said[f'graph.{kind}'])}</span></label>"
            for kind in kinds
        )
        depth = (
            f'<label class="graph__deep"><input type="checkbox">{escape(said["graph.deep"])}</label>' if deep else ""
        )
        buttons = "".join(
            f'<button type="button" data-do="{name}" aria-label="{escape(said[f"graph.{name}"])}" '
            f'title="{escape(said[f"graph.{name}"])}">{sign}</button>'
            for name, sign in (("in", "+"), ("out", "−"), ("fit", "⤢"))
        )
        return (
            f'<link rel="stylesheet" href="{up}{STYLE}"><script src="{up}{SCRIPT}" defer></script>'
            f'<div class="graph" data-search-exclude><div class="graph__bar">'
            f'<fieldset class="graph__kinds"><legend>{escape(said["graph.kinds"])}</legend>{boxes}</fieldset>'
            f'<div class="graph__tools" hidden>{depth}{buttons}</div></div>'
            f'<div class="graph__view">{drawing}</div>{more}</div>'
        )


def write_graph(out: Path, places: Mapping[str, Point]) -> None:
    """Write script, style and places below `out`, the built site."""
    for path in (SCRIPT, STYLE):
        write_changed(out / path, lean_asset(Path(path).name))
    write_changed(out / PLACES, places_text(places))


def whole_page(contents: Iterable[tuple[str, str]]) -> str:
    """Of pages, each with its HTML, the first that shows the whole graph; empty if none does."""
    return next((page for page, html in contents if SLOT in html), "")
