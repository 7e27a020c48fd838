"""Gradient sync beside backward, as data: what computes, what travels, and what each has to wait for.

One list of tasks is simulated (predicted), carried out by ch06 (measured) and drawn, both on the same axes. Two lanes
that each do one thing at a time stand for the compute stream and the communication stream of a GPU.
"""

from __future__ import annotations

import time
from argparse import _ArgumentGroup
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import torch.distributed as dist
from rich.cells import cell_len

from runnable.lab import draw
from runnable.lab.buckets import Bucket
from runnable.lab.run import Lab
from runnable.lab.schedules import text_grid
from runnable.lab.trace import Span

Kind = Literal["forward", "backward", "optimizer", "link"]
COLORS = {"link": draw.COLORS["dp"], "optimizer": draw.COLORS["idle"]}
CELL = Fraction(1, 4)
"""What two characters of the text grid stand for."""


@dataclass(frozen=True)
class Task:
    """Something that takes `cost` units once all it needs is over."""

    name: str
    kind: Kind
    cost: Fraction
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slot:
    """A task with its time, in units."""

    name: str
    kind: str
    start: Fraction
    end: Fraction


Lane = tuple[str, list[Slot]]


def arguments(group: _ArgumentGroup) -> None:
    """When to sync, what things cost, and how long a unit is when it is carried out."""
    group.add_argument("--no-overlap", action="store_true", help="反向结束后才同步")
    for name, default, text in (("tf", 1, "前向耗时"), ("tb", 2, "反向耗时"), ("tc", 2, "全部梯度 all-reduce 的耗时")):
        group.add_argument(f"--{name}", type=Fraction, default=Fraction(default), help=f"{text}（默认 {default}）")
    group.add_argument(
        "--sleep", type=float, default=0, help="每单位耗时睡几毫秒：实测时间线；加 --chrome F.json 另画 F.svg"
    )


def tasks(lab: Lab, buckets: Sequence[Bucket], matrices: Sequence[str], *, overlap: bool) -> list[Task]:
    """One step of a rank: m forwards and backwards, the sync of each bucket, the optimizer, the parameter gather.

    The weight matrices share the cost of a backward; vectors cost nothing. A bucket travels when its last gradient is
    there (overlap), or after all of backward.
    """
    args, m, total = lab.args, lab.dims["m"], buckets[-1].end
    names = [name for bucket in buckets for name in bucket.params]
    found: list[Task] = []
    for k in range(m):
        found.append(Task(f"F{k}", "forward", args.tf))
        shares = {name: Fraction(name in matrices, len(matrices)) for name in names}
        found += [Task(f"{name}{k}", "backward", args.tb * share) for name, share in shares.items()]
    part = args.tc * Fraction(1, 2 if args.dist_opt else 1)  # a ring's reduce-scatter is half of its all-reduce
    shares = {bucket.index: Fraction(bucket.end - bucket.start, total) for bucket in buckets}
    for bucket in buckets:
        ready = list(bucket.params)[-1] if overlap else names[-1]
        found.append(Task(f"S{bucket.index}", "link", part * shares[bucket.index], (f"{ready}{m - 1}",)))
    found.append(Task("O", "optimizer", Fraction(1, 2), tuple(f"S{index}" for index in shares)))
    if args.dist_opt:
        found += [Task(f"G{index}", "link", part * share, ("O",)) for index, share in shares.items()]
    return found


def simulate(todo: Sequence[Task]) -> list[Slot]:
    """Each task as soon as its lane is free and what it needs is over; both lanes keep the order of the list."""
    ends: dict[str, Fraction] = {}
    free = {True: Fraction(0), False: Fraction(0)}
    slots = []
    for task in todo:
        lane = task.kind == "link"
        start = max([free[lane], *(ends[name] for name in task.needs)])
        ends[task.name] = free[lane] = start + task.cost
        slots.append(Slot(task.name, task.kind, start, free[lane]))
    return slots


def exposed(slots: Sequence[Slot]) -> Fraction:
    """The time that compute waits for messages."""
    return max(slot.end for slot in slots) - sum(slot.end - slot.start for slot in slots if slot.kind != "link")


def closed_form(todo: Sequence[Task]) -> Fraction:
    """What `exposed` must be: the sync that ends last, from when a bucket is ready, and the whole parameter gather."""
    backward = [task for task in todo if task.kind in ("forward", "backward")]
    at, ready = Fraction(0), {}
    for task in backward:
        ready[task.name] = at = at + task.cost
    syncs = [task for task in todo if task.name.startswith("S") and task.kind == "link"]
    ends = [ready[task.needs[0]] + sum(later.cost for later in syncs[i:]) for i, task in enumerate(syncs)]
    return max(*ends, at) - at + sum(task.cost for task in todo if task.name.startswith("G"))


class Pace:
    """Carries the tasks out at `--sleep` milliseconds a unit, and keeps when each really happened.

    gloo on one machine is too quick to be seen beside a sleep: a message lasts until its cost is over on a link that
    carries one after the other, or until gloo has done it, whichever is later.
    """

    def __init__(self, lab: Lab, buckets: Sequence[Bucket], *, matrices: Sequence[str]) -> None:
        self.lab = lab
        self.plans = {late: tasks(lab, buckets, matrices, overlap=not late) for late in (False, True)}
        """Not late: with overlap."""
        self.tasks = {task.name: task for task in self.plans[lab.args.no_overlap]}
        self.at = self.link_free = time.perf_counter_ns()
        self.first_span = 0

    def begin(self) -> None:
        """A new step: what is drawn is the last one."""
        self.first_span, self.at = len(self.lab.tracer.spans), time.perf_counter_ns()

    def compute(self, name: str) -> None:
        """The work is done: it began when the one before it ended."""
        time.sleep(self._nanoseconds(name) / 1e9)
        now = time.perf_counter_ns()
        self.lab.tracer.spans.append(Span(name, self.tasks[name].kind, self.at, now))
        self.at = now

    def link(self, name: str, work: dist.Work | None = None) -> Sent:
        """A message has been started, or is over already (None)."""
        start = max(time.perf_counter_ns(), self.link_free)
        self.link_free = start + self._nanoseconds(name)
        return Sent(self, Span(name, "link", start, self.link_free), work)

    def show(self) -> None:
        """With and without overlap on the same axes; and, when it was carried out slowly, what was measured."""
        lab, lanes, rows = self.lab, [], []
        for late, todo in self.plans.items():
            text, slots = "反向之后" if late else "overlap", simulate(todo)
            lanes += [(f"{text} {name}", lane) for name, lane in _two(slots)]
            moved = sum(slot.end - slot.start for slot in slots if slot.kind == "link")
            wait, form = exposed(slots), closed_form(todo)
            lab.require(wait == form, f"{text}：露在外面的通信，模拟 = 公式")
            rows.append((text, *(f"{float(x):g}" for x in (max(slot.end for slot in slots), moved, wait, form))))
        columns = ["何时发起", ">总时间", ">通信", ">露在外面的通信", ">公式"]
        costs = "，".join(f"{name}={float(getattr(lab.args, name)):g}" for name in ("tf", "tb", "tc"))
        lab.report.table(f"稳态的一步，预测（{costs}）：最后一个 bucket 总是露在外面", columns, rows)
        lab.report.say(
            "F 前向，r、c 是 row、col 的反向，S 梯度同步，O optimizer，G 参数 all-gather；数字是 microbatch 或 bucket"
        )
        _print(lab, lanes)
        lab.pictures["timeline"] = _draw(f"梯度同步与反向，预测：{costs}", lanes)
        if lab.args.sleep:
            self._show_measured(lanes[2:] if lab.args.no_overlap else lanes[:2])

    def _show_measured(self, predicted: list[Lane]) -> None:
        spans = self.lab.tracer.spans[self.first_span :]
        mine = [(span.name, span.category, span.start, span.end) for span in spans if span.name in self.tasks]
        lanes, unit = list(predicted), self.lab.args.sleep * 1e6
        for rank, found in enumerate(self.lab.gather(mine)):
            zero = min(start for _, _, start, _ in found)
            at = lambda ns, zero=zero: Fraction(round(100 * (ns - zero) / unit), 100)
            slots = [Slot(name, kind, at(start), at(end)) for name, kind, start, end in found]
            lanes += [(f"r{rank} 实测 {name}", lane) for name, lane in _two(slots)]
        if not self.lab.report.stable:
            want, got = (float(max(s.end for _, lane in two for s in lane)) for two in (predicted, lanes[2:4]))
            self.lab.report.say(f"总时间：预测 {want:g}，rank 0 实测 {got:.2f}（单位 {self.lab.args.sleep:g} ms）")
            _print(self.lab, lanes[2:4])
        self.lab.timed_picture = _draw("梯度同步与反向：预测与实测", lanes)

    def _nanoseconds(self, name: str) -> int:
        return int(self.tasks[name].cost * Fraction(self.lab.args.sleep) * 1_000_000)


@dataclass
class Sent:
    """A message on its way."""

    pace: Pace
    span: Span
    work: dist.Work | None

    def wait(self) -> None:
        """Until gloo and the link are through with it."""
        late = self.work is not None and not self.work.is_completed()
        if self.work is not None:
            self.work.wait()
        now = time.perf_counter_ns()
        time.sleep(max(0, self.span.end - now) / 1e9)
        self.span.end = max(self.span.end, now) if late else self.span.end
        self.pace.lab.tracer.spans.append(self.span)
        self.pace.at = time.perf_counter_ns()


def _two(slots: Sequence[Slot]) -> list[Lane]:
    return [
        (name, [s for s in slots if (s.kind == "link") is link]) for name, link in (("计算", False), ("通信", True))
    ]


def _print(lab: Lab, lanes: Sequence[Lane]) -> None:
    total = max(slot.end for _, lane in lanes for slot in lane)
    boxes = [[(_brief(slot), slot.start, slot.end) for slot in lane] for _, lane in lanes]
    for (name, _), line in zip(lanes, text_grid(boxes, total, CELL), strict=True):
        lab.report.say(f"{name}{' ' * (18 - cell_len(name))}{line}")


def _brief(slot: Slot) -> str:
    """Two characters: `col1` is c1."""
    return slot.name if len(slot.name) <= 2 else slot.name[0] + slot.name[-1]


def _draw(title: str, lanes: Sequence[Lane]) -> str:
    colors: Mapping[str, str] = draw.COLORS | COLORS
    boxes = [
        (name, [(s.name, colors[s.kind], float(s.start), float(s.end)) for s in lane if s.end > s.start])
        for name, lane in lanes
    ]
    return draw.timeline(title, boxes, unit=48, left=110)
