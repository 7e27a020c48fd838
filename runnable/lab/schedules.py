"""Pipeline schedules as data: what each rank does in which order, when it could happen, what it holds meanwhile.

Replays the order of `megatron/core/pipeline_parallel/schedules.py::forward_backward_pipelining_without_interleaving`
and `megatron/core/pipeline_parallel/schedules.py::forward_backward_pipelining_with_interleaving`, whose warm-up rule is
`megatron/core/pipeline_parallel/schedules.py::get_pp_rank_microbatches` and whose order of chunks is
`megatron/core/pipeline_parallel/schedules.py::get_schedule_table`. No process and no torch is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal


@dataclass(frozen=True)
class Action:
    """Forward or backward of one microbatch through one model chunk of a rank."""

    kind: Literal["F", "B"]
    chunk: int
    microbatch: int

    def __str__(self) -> str:
        letter = chr(ord("A" if self.kind == "F" else "a") + self.microbatch % 26)
        return f"{letter}{self.chunk}"


Order = list[Action]


class ScheduleError(Exception):
    """An order that cannot run, or sizes that the schedule does not take."""


def gpipe(p: int, m: int) -> list[Order]:
    """All forwards, then all backwards; Megatron has no such schedule."""
    order = [Action("F", 0, k) for k in range(m)] + [Action("B", 0, k) for k in range(m)]
    return [list(order) for _ in range(p)]


def one_f_one_b(p: int, m: int) -> list[Order]:
    """Warm up with p-r-1 forwards, then one forward, one backward, then the backwards that are left."""
    forwards = [Action("F", 0, k) for k in range(m)]
    backwards = [Action("B", 0, k) for k in range(m)]
    return [_merge(forwards, backwards, warm_up(p, r, m)) for r in range(p)]


def interleaved(p: int, m: int, v: int, *, group: int | None = None, lead: int = 2) -> list[Order]:
    """1F1B over v chunks a rank: groups of `group` (default p) microbatches go through chunk 0, then chunk 1, …

    `lead` is Megatron's factor 2 in the warm-up: how many forwards a rank is ahead of the next one.
    """
    group = p if group is None else group
    if p < 2 or v < 2:
        raise ScheduleError(f"interleaved 要 pp ≥ 2、v ≥ 2（现在 pp={p}，v={v}）")
    if not p <= group <= m:
        raise ScheduleError(f"microbatch group {group} 必须在 pp={p} 与 m={m} 之间")
    if 0 < m % group < p:
        raise ScheduleError(f"m={m} 按 {group} 分组后余 {m % group}，少于 pp={p}：最后一组填不满流水线")
    table = [
        (k, chunk) for first in range(0, m, group) for chunk in range(v) for k in range(first, min(first + group, m))
    ]
    forwards = [Action("F", chunk, k) for k, chunk in table]
    backwards = [Action("B", v - 1 - chunk, k) for k, chunk in table]
    return [_merge(forwards, backwards, warm_up(p, r, m, v=v, group=group, lead=lead)) for r in range(p)]


def warm_up(p: int, rank: int, m: int, *, v: int = 1, group: int | None = None, lead: int = 2) -> int:
    """Forwards before the first one-forward-one-backward pair."""
    if v == 1:
        return min(p - rank - 1, m)
    return min((p - rank - 1) * lead + (v - 1) * (p if group is None else group), m * v)


def _merge(forwards: Order, backwards: Order, warm: int) -> Order:
    steady = [a for pair in zip(forwards[warm:], backwards, strict=False) for a in pair]
    return forwards[:warm] + steady + backwards[len(forwards) - warm :]


@dataclass(frozen=True)
class Slot:
    """An action with its time."""

    action: Action
    start: Fraction
    end: Fraction


@dataclass(frozen=True)
class Simulation:
    """When each action happens if it starts as soon as its rank is free and its input is there."""

    lanes: tuple[tuple[Slot, ...], ...]

    @property
    def makespan(self) -> Fraction:
        return max(slot.end for lane in self.lanes for slot in lane)

    @property
    def idle(self) -> Fraction:
        """Idle time of a rank, the mean over ranks."""
        busy = sum(slot.end - slot.start for lane in self.lanes for slot in lane)
        return self.makespan - busy / len(self.lanes)

    @property
    def of_total(self) -> Fraction:
        """Bubble as a share of the whole time: (p-1)/(m+p-1)."""
        return self.idle / self.makespan

    @property
    def of_ideal(self) -> Fraction:
        """Bubble over the time without bubble: (p-1)/m."""
        return self.idle / (self.makespan - self.idle)


def simulate(
    orders: Sequence[Order],
    *,
    tf: Fraction | int = 1,
    tb: Fraction | int = 2,
    tc: Fraction | int = 0,
    v: int = 1,
) -> Simulation:
    """Times of all actions; a microbatch costs tf and tb on a rank, so a chunk costs 1/v of that.

    A message takes tc and keeps no rank busy. Raises `ScheduleError` naming what each rank waits for when the orders
    block each other.
    """
    p = len(orders)
    cost = {"F": Fraction(tf) / v, "B": Fraction(tb) / v}
    done: dict[tuple[str, int, int], Fraction] = {}
    lanes: list[list[Slot]] = [[] for _ in orders]
    left = [list(reversed(order)) for order in orders]
    while any(left):
        moved = False
        for rank, todo in enumerate(left):
            while todo and (ready := _ready(todo[-1], rank, p, v, done, Fraction(tc))) is not None:
                action = todo.pop()
                start = max(ready, lanes[rank][-1].end if lanes[rank] else Fraction(0))
                slot = Slot(action, start, start + cost[action.kind])
                lanes[rank].append(slot)
                done[action.kind, action.chunk * p + rank, action.microbatch] = slot.end
                moved = True
        if not moved:
            waits = "；".join(f"rank {r} 等 {todo[-1]} 的输入" for r, todo in enumerate(left) if todo)
            raise ScheduleError(f"死锁：{waits}")
    return Simulation(tuple(tuple(lane) for lane in lanes))


def _ready(
    action: Action, rank: int, p: int, v: int, done: dict[tuple[str, int, int], Fraction], tc: Fraction
) -> Fraction | None:
    """When the input of an action is there; None while it is not."""
    stage = action.chunk * p + rank
    own = done.get(("F", stage, action.microbatch))
    if action.kind == "F":
        came = Fraction(-tc) if stage == 0 else done.get(("F", stage - 1, action.microbatch))
    elif stage == p * v - 1:
        return own
    else:
        came = done.get(("B", stage + 1, action.microbatch))
    if came is None or (action.kind == "B" and own is None):
        return None
    return came + tc


def in_flight(order: Order) -> int:
    """The most forwards a rank holds for backward at once, in chunks."""
    held = peak = 0
    for action in order:
        held += 1 if action.kind == "F" else -1
        peak = max(peak, held)
    return peak


def grid(simulation: Simulation) -> list[str]:
    """One line for each rank, two characters for each unit of time: A0 forward, a0 backward, ·· idle."""
    steps = {t for lane in simulation.lanes for slot in lane for t in (slot.start, slot.end)}
    unit = min((b - a for a, b in pairwise(sorted(steps | {Fraction(0)}))), default=Fraction(1))
    lanes = [[(str(slot.action), slot.start, slot.end) for slot in lane] for lane in simulation.lanes]
    return text_grid(lanes, simulation.makespan, unit)


def text_grid(lanes: Sequence[Sequence[tuple[str, Fraction, Fraction]]], total: Fraction, cell: Fraction) -> list[str]:
    """One line for each lane of (two characters, start, end), two characters for each `cell` of time."""
    rows = []
    for lane in lanes:
        cells = ["··"] * math.ceil(total / cell)
        for text, start, end in lane:
            first, last = round(start / cell), round(end / cell)
            if last > first:
                cells[first:last] = [text.ljust(2, "─")] + ["──"] * (last - first - 1)
        rows.append("".join(cells))
    return rows
