"""`make megatron-all`: every named layout against one process, one line as each ends, a table, and the verdict."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

from runnable.lab.prove import lines
from runnable.lab.report import Report
from runnable.megatron_cpu import harness
from runnable.megatron_cpu.layouts import LAYOUTS
from runnable.megatron_cpu.run import Run


@dataclass(frozen=True)
class Verdict:
    """What one layout showed."""

    name: str
    ranks: int
    tensors: int
    """Gradients and parameters by name, each compared on every rank and layer that holds it."""
    worst: float
    calls: int
    seconds: float
    wrong: str = ""
    """Empty: equal to one process, and the ranks' calls fit together."""


def verdicts(names: Iterable[str]) -> Iterable[Verdict]:
    """Run these; Megatron is imported once, and equal one-process twins run once."""
    tree = harness.prepare()
    twins: dict[Run, harness.Finished] = {}
    for name in names:
        run, start = LAYOUTS[name], time.monotonic()
        try:
            many = harness.execute(run, tree=tree)
            if run.alone() not in twins:
                twins[run.alone()] = harness.execute(run.alone(), tree=tree)
        except harness.RunFailed as error:
            yield Verdict(name, run.world, 0, 0.0, 0, time.monotonic() - start, f"{error}\n{error.log[-2000:]}")
            continue
        one = twins[run.alone()]
        found = lines(harness.compare_runs(many, one))
        wrong = [line.name for line in found if not line.passed] + many.trace.unmatched()
        if any(abs(a - b) > 1e-5 for a, b in zip(many.losses, one.losses, strict=True)):
            wrong.append(f"loss {many.losses}，单进程 {one.losses}")
        yield Verdict(
            name, run.world, len(found), max(line.worst.error for line in found),
            sum(len(rank.events) for rank in many.trace.ranks), time.monotonic() - start, "；".join(wrong),
        )  # fmt: skip


def train_all() -> int:
    """0 when all are equal, 1 otherwise."""
    report, done = Report(speaks=True, stable=False), []
    for verdict in verdicts(LAYOUTS):
        done.append(verdict)
        mark = "✗ " + verdict.wrong if verdict.wrong else "✓"
        print(
            f"{len(done):2}/{len(LAYOUTS)} {verdict.name}：{verdict.seconds:.1f} s {mark}", file=sys.stderr, flush=True
        )
    rows = [
        (v.name, v.ranks, v.tensors, f"{v.worst:.1e}", v.calls, f"{v.seconds:.1f}", "✗ 不等" if v.wrong else "✓")
        for v in done
    ]
    columns = ["布局", ">rank 数", ">张量", ">最大相对误差", ">通信", ">秒", "结论"]
    report.table("每个布局与单进程的 Megatron 比较（梯度与一步后的参数）", columns, rows)
    failed = [v.name for v in done if v.wrong]
    report.say(f"[bold red]未通过：{'、'.join(failed)}[/bold red]" if failed else "[bold green]全部通过[/bold green]")
    return 1 if failed else 0
