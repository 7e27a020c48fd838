"""Pipeline schedules side by side: time grid, bubble, warm-up and peak memory."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from runnable.lab import draw, schedules
from runnable.lab.run import Lab

ORDERS: dict[str, Callable[[int, int, int], list[schedules.Order]]] = {
    "gpipe": lambda p, m, v: schedules.gpipe(p, m),
    "1f1b": lambda p, m, v: schedules.one_f_one_b(p, m),
    "interleaved": lambda p, m, v: schedules.interleaved(p, m, v),
}
"""Name → orders of all ranks from p, m and v."""


def compare_schedules(lab: Lab, p: int, m: int) -> None:
    """Bubble and memory of all schedules, simulated and by formula, both denominators; their time grids.

    Reads `v`, `tf` and `tb` from the script's arguments; a simulation that differs from its formula fails the script.
    """
    rows, tf, tb = [], lab.args.tf, lab.args.tb
    for name, make in ORDERS.items():
        v = max(2, lab.args.v) if name == "interleaved" else 1
        try:
            orders = make(p, m, v)
        except schedules.ScheduleError as error:
            lab.report.say(f"{name}：{error}")
            continue
        found = schedules.simulate(orders, tf=tf, tb=tb, v=v)
        ideal, total = Fraction(p - 1, m * v), Fraction(p - 1, m * v + p - 1)
        lab.require((found.of_ideal, found.of_total) == (ideal, total), f"{name} 的 bubble：模拟 = 公式")
        peaks = " ".join(f"{schedules.in_flight(order) / v:g}" for order in orders)
        warm = " ".join(str(next(i for i, a in enumerate(o) if a.kind == "B") - (name != "gpipe")) for o in orders)
        shares = (f"{share} = {float(share):.3f}" for share in (ideal, total))
        rows.append((name, v, f"{float(found.makespan):g}", *shares, warm, peaks))
        lab.report.title(
            f"{name}：A0 = microbatch A 在 chunk 0 的前向，a0 = 它的反向（tf={float(tf):g}，tb={float(tb):g}）"
        )
        for rank, line in enumerate(schedules.grid(found)):
            lab.report.say(f"r{rank} {line}")
        lanes = [(f"rank {i}", [_box(slot) for slot in lane]) for i, lane in enumerate(found.lanes)]
        lab.pictures[f"timeline-{name}"] = draw.timeline(
            f"{name}：p={p} m={m} v={v} tf={float(tf):g} tb={float(tb):g}", lanes, unit=24
        )
    columns = [
        "调度",
        ">v",
        ">总时间",
        ">bubble / 理想时间",
        ">bubble / 总时间",
        "warm-up（各 rank）",
        "峰值 microbatch（各 rank）",
    ]
    if lab.args.schedule == "interleaved":
        compare_lead(lab, p, m, max(2, lab.args.v))
    lab.report.table(f"p={p}，m={m}：GPipe 与 1F1B 的 bubble 相同，差别只在峰值占用", columns, rows)


def compare_lead(lab: Lab, p: int, m: int, v: int) -> None:
    """Why the interleaved warm-up counts (p-r-1) twice: it buys time when messages take time, and costs memory."""
    orders = {lead: schedules.interleaved(p, m, v, lead=lead) for lead in (2, 1)}
    rows = []
    for tc in (Fraction(0), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2)):
        times = [schedules.simulate(o, tf=lab.args.tf, tb=lab.args.tb, tc=tc, v=v).makespan for o in orders.values()]
        rows.append((tc, *(f"{float(t):g}" for t in times)))
    held = "，".join(f"×{lead} 为 {schedules.in_flight(o[0]) / v:g}" for lead, o in orders.items())
    lab.report.table(
        f"interleaved 的 warm-up 为什么是 (p-r-1)×2：rank 0 的峰值 microbatch {held}",
        [">一条消息的耗时 tc", ">总时间，×2（Megatron）", ">总时间，×1"],
        rows,
    )


def compare_measured(lab: Lab, predicted: schedules.Simulation) -> None:
    """Predicted and measured on the same axes: what ran, in units of --sleep milliseconds."""
    mine = [(s.name, s.category, s.start, s.end) for s in lab.tracer.spans if s.category in draw.COLORS]
    everyone = lab.gather(mine)
    zero = min(start for lane in everyone for _, _, start, _ in lane)
    unit = lab.args.sleep * 1e6
    lanes = [
        lane
        for rank, spans in enumerate(everyone)
        for lane in (
            (f"r{rank} 预测", [_box(slot) for slot in predicted.lanes[rank]]),
            (f"r{rank} 实测", [(n, draw.COLORS[c], (a - zero) / unit, (b - zero) / unit) for n, c, a, b in spans]),
        )
    ]
    makespan = max(b for _, spans in lanes[1::2] for _, _, _, b in spans)
    busy = sum(b - a for _, spans in lanes[1::2] for _, _, a, b in spans) / len(everyone)
    if not lab.report.stable:
        lab.report.say(
            f"总时间：预测 {float(predicted.makespan):g}，实测 {makespan:.2f}；bubble / 总时间："
            f"预测 {float(predicted.of_total):.3f}，实测 {1 - busy / makespan:.3f}（单位 {lab.args.sleep:g} ms）"
        )
    lab.timed_picture = draw.timeline("流水线时间线：预测与实测", lanes, unit=24)


def _box(slot: schedules.Slot) -> tuple[str, str, float, float]:
    fill = draw.COLORS["forward" if slot.action.kind == "F" else "backward"]
    return str(slot.action), fill, float(slot.start), float(slot.end)
