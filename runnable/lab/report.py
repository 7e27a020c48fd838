"""What the reader sees in the terminal: Chinese tables with the source's terms. Rank 0 alone speaks."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from runnable.lab.prove import Line
from runnable.lab.ranks import Layout
from runnable.traces import Event, Trace

WIDTH = 118
SITE = "发起的行"
"""Where a call comes from: with the API, never cut short."""
PHASES = {
    "setup": "setup", "data": "data", "forward": "forward", "backward": "backward", "recompute": "recompute",
    "grad-sync": "grad sync", "optimizer": "optimizer", "param-sync": "param sync", "checkpoint": "checkpoint",
    "logging": "logging",
}  # fmt: skip


class Report:
    """Prints at once and keeps the text for the saved output."""

    def __init__(self, *, speaks: bool, stable: bool) -> None:
        self.stable = stable
        """Leave out numbers that differ from machine to machine: rounding errors and times."""
        self._speaks = speaks
        self._screen = Console(width=WIDTH, quiet=not speaks, highlight=False)
        self._kept = Console(width=WIDTH, file=io.StringIO(), record=True, no_color=True, highlight=False)

    def say(self, item: object = "") -> None:
        """A line or a table."""
        if self._speaks:
            self._screen.print(item)
            self._kept.print(item)

    def title(self, text: str) -> None:
        """A heading."""
        self.say(f"\n[bold]{text}[/bold]")

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table; columns whose name starts with `>` are aligned right."""
        table = Table()
        for column in columns:
            side = "right" if column.startswith(">") else "left"
            table.add_column(column.removeprefix(">"), justify=side, no_wrap=column in ("API", SITE))
        for row in rows:
            table.add_row(*map(str, row))
        self.title(title)
        self.say(table)

    def text(self) -> str:
        """All that was said, as plain text."""
        kept = self._kept.export_text(clear=False)
        return "\n".join(line.rstrip() for line in kept.splitlines()) + "\n"

    def rank_map(self, layout: Layout, names: Sequence[str]) -> None:
        """Who sits where: printed first by every script."""
        grid = layout.dense
        axes = [axis for axis in grid.axes if grid.sizes[axis] > 1] or ["tp"]
        rows = []
        for rank in range(layout.world):
            place = grid.place(rank)
            groups = [next(g for g in grid.groups(name) if rank in g) for name in names]
            rows.append((rank, *(place[axis] for axis in axes), *groups))
        shown = "×".join(f"{axis}={grid.sizes[axis]}" for axis in axes)
        columns = [">rank", *(f">{axis} rank" for axis in axes), *(f"{name} group" for name in names)]
        self.table(f"rank 与 process group（order {layout.order}，最左的轴变化最快；{shown}）", columns, rows)

    def proof(self, title: str, lines: Sequence[Line]) -> None:
        """Tensors against one process."""
        rows = []
        for line in lines:
            worst = line.worst
            shapes = sorted({c.shape for c in line.checks})
            exact = f"{worst.error:.1e}" if not (self.stable and line.passed) else f"< {worst.tolerance:.0e}"
            if not line.passed:
                exact = f"[red]{worst.error:.3g} @ rank {worst.rank}[/red]"
            verdict = "✓" if line.passed else "[red]✗ 不等[/red]"
            shape = " ".join(str(list(s)) for s in shapes)
            rows.append((escape(line.name), shape, len(line.checks), exact, f"{line.ratio:.4f}", verdict))
        columns = ["张量", "每个 rank 的 shape", ">ranks", ">最大相对误差", ">范数比", "结论"]
        self.table(title, columns, rows)

    def communication(self, trace: Trace, rank: int = 0, title: str = "") -> None:
        """The calls of one rank, equal ones counted together, in order of first appearance."""
        counts: Counter[tuple[str, ...]] = Counter()
        sizes: Counter[tuple[str, ...]] = Counter()
        for event in trace.events(rank):
            key = _row(trace, event)
            counts[key] += 1
            sizes[key] += wire_bytes(event, len(trace.groups[event.group].ranks))
        rows = [(*key[:4], counts[key], sizes[key], key[4]) for key in counts]
        columns = ["phase", "API", "group", "shape: before → after", ">次数", ">ring 字节", SITE]
        self.table(title or f"rank {rank} 的通信（{trace.source}；相同的合并计数）", columns, rows)


def wire_bytes(event: Event, size: int) -> int:
    """Bytes that a rank sends in the ring algorithm of `size` ranks: 2(n-1)/n of the tensor for an all-reduce."""
    if event.kind == "all_reduce":
        return 2 * (size - 1) * event.bytes_in // size
    if event.kind == "all_gather":
        return (size - 1) * event.bytes_in
    if event.kind in ("reduce_scatter", "all_to_all"):
        return (size - 1) * event.bytes_in // size
    return event.bytes_in


def _row(trace: Trace, event: Event) -> tuple[str, ...]:
    before, after = (_brief(t) for t in (event.before, event.after))
    site = event.stack[0] if event.stack else event.site
    where = f"{site.path.rsplit('/', 1)[-1]}:{site.line}" if site else ""
    if site and site.path == trace.source:
        where = f"L{site.line} {site.function}"
    api = event.api if event.reduce in (None, "SUM") else f"{event.api} {event.reduce}"
    if event.peer is not None:
        api += f" ↔ {event.peer}"
    return PHASES[event.phase], api, trace.groups[event.group].name, f"{before} → {after}", where


def _brief(tensors: Sequence[object]) -> str:
    shapes = [str(list(t.shape)) for t in tensors]  # type: ignore[attr-defined]
    if len(shapes) > 1 and len(set(shapes)) == 1:
        return f"{len(shapes)}×{shapes[0]}"
    return " ".join(shapes) or "·"
