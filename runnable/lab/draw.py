"""Pictures from data, as SVG that takes its colours from the page: `currentColor` and CSS variables with fallbacks."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from runnable.lab.ranks import Layout
from runnable.traces import Trace

COLORS = {
    "tp": "var(--la-tp, #3b7dd8)",
    "cp": "var(--la-cp, #8a5cd0)",
    "dp": "var(--la-dp, #2a9d6f)",
    "pp": "var(--la-pp, #d9822b)",
    "ep": "var(--la-ep, #c2487f)",
    "forward": "var(--la-forward, #3b7dd8)",
    "backward": "var(--la-backward, #2a9d6f)",
    "idle": "var(--la-idle, #9aa0a6)",
}
_FONT = "12px system-ui, sans-serif"


class Svg:
    """A drawing whose size grows with what is put on it."""

    def __init__(self, title: str) -> None:
        self._root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
        ET.SubElement(self._root, "title").text = title
        self._width = self._height = 0.0

    def _grow(self, x: float, y: float) -> None:
        self._width, self._height = max(self._width, x), max(self._height, y)

    def rect(self, x: float, y: float, w: float, h: float, color: str, *, opacity: float = 0.25, tip: str = "") -> None:
        """A box; `tip` is shown on hover."""
        style = {"fill": color, "fill-opacity": f"{opacity:g}", "stroke": color, "rx": "2"}
        box = ET.SubElement(self._root, "rect", _at(x=x, y=y, width=w, height=h) | style)
        if tip:
            ET.SubElement(box, "title").text = tip
        self._grow(x + w, y + h)

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> None:
        """A line of text in the page's colour; (x, y) is its baseline."""
        style = {"fill": "currentColor", "text-anchor": anchor, "style": f"font:{size}px system-ui, sans-serif"}
        ET.SubElement(self._root, "text", _at(x=x, y=y) | style).text = text
        width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1.12 for c in text) * size * 0.5
        self._grow(x + width * {"start": 1, "middle": 0.5, "end": 0}[anchor], y + size * 0.4)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, color: str = "currentColor", *, arrow: bool = False
    ) -> None:
        """A line, with a head at its end when it is an arrow."""
        style = {"stroke": color, "stroke-width": "1.2", "stroke-opacity": "0.7"}
        ET.SubElement(self._root, "line", _at(x1=x1, y1=y1, x2=x2, y2=y2) | style)
        if arrow:
            back = 6 if x2 >= x1 else -6
            points = f"{x2:g},{y2:g} {x2 - back:g},{y2 - 3.5:g} {x2 - back:g},{y2 + 3.5:g}"
            ET.SubElement(self._root, "polygon", {"points": points, "fill": color})
        self._grow(max(x1, x2), max(y1, y2))

    def dumps(self) -> str:
        """The file's text."""
        width, height = round(self._width) + 8, round(self._height) + 8
        attributes = {"viewBox": f"0 0 {width} {height}", "width": str(width), "height": str(height)}
        self._root.attrib = {"xmlns": self._root.attrib["xmlns"], **attributes, "role": "img"}
        ET.indent(self._root, " ")
        return ET.tostring(self._root, encoding="unicode") + "\n"


def _at(**numbers: float) -> dict[str, str]:
    return {name: f"{value:g}" for name, value in numbers.items()}


def color(group: str) -> str:
    """The colour of a group: that of its first axis."""
    return COLORS.get(group.removeprefix("e").split("-")[0] if group != "ep" else "ep", "currentColor")


def communication(trace: Trace, *, limit: int = 60) -> str:
    """Ranks as lanes, calls downwards in the order of their group: who talks with whom, about what shape."""
    svg = Svg(f"各 rank 之间的通信：{trace.source}")
    gap, top, left = 150, 40, 24
    for rank in range(trace.world):
        x = left + rank * gap
        svg.text(x, 20, f"rank {rank}", anchor="start")
    row = 0
    for key, events in _rows(trace):
        if row == limit:
            svg.text(left, top + row * 26 + 12, f"…其余 {sum(1 for _ in _rows(trace)) - limit} 行见 trace")
            break
        group = trace.groups[key]
        y = top + row * 26
        for rank, event in events.items():
            x = left + rank * gap
            tip = f"{event.phase} {event.api} {event.site or ''}"
            if event.peer is not None:
                svg.line(x + 50, y + 8, left + event.peer * gap + 50, y + 8, color(group.name), arrow=True)
                svg.text(x + 4, y + 22, f"{event.kind} {list(event.before[0].shape)}", size=10)
                continue
            svg.rect(x - 4, y, gap - 12, 20, color(group.name), tip=tip)
            shapes = " ".join(str(list(t.shape)) for t in event.before[:1])
            arrow = "" if event.before == event.after else f"→{list(event.after[0].shape) if event.after else ''}"
            svg.text(x, y + 14, f"{_ABBREVIATED.get(event.kind, event.kind)} {shapes}{arrow}", size=10)
        first = next(iter(events.values()))
        svg.text(left + trace.world * gap + 4, y + 14, f"{group.name} · {first.phase}", size=10)
        row += 1
    return svg.dumps()


_ABBREVIATED = {"all_reduce": "AR", "all_gather": "AG", "reduce_scatter": "RS", "broadcast": "BC", "all_to_all": "A2A"}


def _rows(trace: Trace):  # noqa: ANN202
    """Calls that belong together: the k-th collective of a group on all its members; a send by itself.

    Rows come in an order that respects every rank's own order.
    """
    left = {r.rank: [e for e in r.events if e.kind != "recv"] for r in trace.ranks}
    at = dict.fromkeys(left, 0)
    while any(at[r] < len(left[r]) for r in left):
        for rank in left:
            if at[rank] == len(left[rank]):
                continue
            event = left[rank][at[rank]]
            if event.peer is not None:
                at[rank] += 1
                yield event.group, {rank: event}
                break
            members = [m for m in trace.groups[event.group].ranks if m in left]
            heads = {m: left[m][at[m]] for m in members if at[m] < len(left[m])}
            if len(heads) == len(members) and all(h.group == event.group for h in heads.values()):
                for member in members:
                    at[member] += 1
                yield event.group, heads
                break
        else:
            return


def rank_grid(layout: Layout) -> str:
    """One box for each rank: pipeline stages downwards, replicas and their slices to the right."""
    grid = layout.dense
    svg = Svg(f"rank 网格：order {layout.order}")
    axes = [axis for axis in grid.axes if axis != "pp"]
    columns = sorted({tuple((axis, grid.place(r)[axis]) for axis in reversed(axes)) for r in range(layout.world)})
    for column, place in enumerate(columns):
        shown = [f"{axis}{value}" for axis, value in place if grid.sizes[axis] > 1]
        svg.text(80 + column * 74 + 32, 18, " ".join(shown), anchor="middle", size=10)
    for stage in range(layout.pp):
        svg.text(8, 46 + stage * 44, f"pp{stage}" if layout.pp > 1 else "")
        for column, place in enumerate(columns):
            rank = grid.rank(**dict(place), pp=stage)
            shade = 0.12 + 0.5 * grid.place(rank)["tp"] / max(1, layout.tp)
            svg.rect(80 + column * 74, 26 + stage * 44, 64, 34, COLORS["tp"], opacity=shade, tip=str(grid.place(rank)))
            svg.text(80 + column * 74 + 32, 47 + stage * 44, f"rank {rank}", anchor="middle")
    return svg.dumps()


def timeline(
    title: str, lanes: Sequence[tuple[str, Sequence[tuple[str, str, float, float]]]], *, unit: float, left: float = 70
) -> str:
    """Lanes of (text, color, start, end); `unit` is pixels for one unit of time, `left` the room for their names."""
    svg = Svg(title)
    svg.text(4, 16, title)
    for index, (name, boxes) in enumerate(lanes):
        y = 28 + index * 30
        svg.text(4, y + 17, name)
        for text, fill, start, end in boxes:
            svg.rect(left + start * unit, y, (end - start) * unit, 24, fill, opacity=0.35, tip=f"{name} {text}")
            if (end - start) * unit >= 12:
                svg.text(left + (start + end) * unit / 2, y + 16, text, anchor="middle", size=10)
    return svg.dumps()


def blocks(title: str, rows: Sequence[tuple[str, str, str | None]], *, parts: int) -> str:
    """Tensors as boxes, cut into one piece for each rank: by "rows", by "columns", or whole on every rank (None)."""
    svg = Svg(title)
    svg.text(4, 16, title)
    for index, (name, shape, cut) in enumerate(rows):
        x, y, w, h = 12 + index * 130, 34, 96, 72
        for part in range(parts if cut else 1):
            dx, dw = (part * w / parts, w / parts) if cut == "columns" else (0, w)
            dy, dh = (part * h / parts, h / parts) if cut == "rows" else (0, h)
            svg.rect(x + dx, y + dy, dw, dh, COLORS["tp"], opacity=0.15 + 0.45 * part / parts if cut else 0.1)
            svg.text(
                x + dx + dw / 2, y + dy + dh / 2 + 4, f"r{part}" if cut else "每个 rank 全量", anchor="middle", size=10
            )
        svg.text(x + w / 2, y + h + 18, name, anchor="middle")
        svg.text(x + w / 2, y + h + 34, shape, anchor="middle", size=11)
    return svg.dumps()


def linear_pair(t: int, *, sp: bool) -> str:
    """How TP cuts the tensors of a Column/Row pair."""
    part, outside = (f"s/{t}", "rows") if sp else ("s", None)
    rows: list[tuple[str, str, str | None]] = [
        ("X", f"[{part}, b, h]", outside),
        ("A (Column)", f"[h, f/{t}]", "columns"),
        ("Y = GeLU(XA)", f"[s, b, f/{t}]", "columns"),
        ("B (Row)", f"[f/{t}, h]", "rows"),
        ("Z = ΣYᵢBᵢ", f"[{part}, b, h]", outside),
    ]
    return blocks("Column/Row 线性层对的切分", rows, parts=t)


def buckets(spans: Sequence[tuple[int, int, Sequence[tuple[int, int, str]]]], shards: int) -> str:
    """A flat buffer as a bar: buckets one below the other, the parameters in them, and where the shards are cut."""
    svg = Svg("bucket 与 shard")
    widest = max(end - start for start, end, _ in spans)
    for index, (start, end, params) in enumerate(spans):
        y, unit = 8 + index * 56, 560 / widest
        svg.text(4, y + 20, f"bucket {index}")
        svg.rect(80, y, (end - start) * unit, 28, COLORS["idle"], opacity=0.1, tip=f"[{start}, {end})")
        for first, last, name in params:
            svg.rect(80 + (first - start) * unit, y, (last - first) * unit, 28, COLORS["dp"], tip=f"[{first}, {last})")
            svg.text(80 + ((first + last) / 2 - start) * unit, y + 18, name, anchor="middle", size=11)
        for part in range(shards if shards > 1 else 0):
            x = 80 + part * (end - start) * unit / shards
            svg.line(x, y, x, y + 42)
            svg.text(x + 3, y + 41, f"DP rank {part}", size=10)
    return svg.dumps()
