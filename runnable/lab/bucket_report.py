"""Tables and picture of gradient buckets: what lies where, what it costs each rank, what must be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runnable.lab import draw
from runnable.lab.run import Lab

if TYPE_CHECKING:
    from runnable.ch06_gradient_sync_and_optimizer import Buffers, Optimizer


def show_buffers(lab: Lab, buffers: Buffers, optimizer: Optimizer) -> None:
    """What lies where, and what it costs: the gradient buffer is not sharded."""
    rows, size, dp = [], lab.dtype.itemsize, lab.layout.dp
    for bucket in buffers.buckets:
        inside = "，".join(f"{name} [{a}, {b})" for name, (a, b) in bucket.params.items())
        cuts = (bucket.shard(rank, dp) for rank in range(dp))
        shards = " ".join(f"[{cut.start}, {cut.stop})" for cut in cuts) if buffers.sharded else "·"
        rows.append((bucket.index, f"[{bucket.start}, {bucket.end})", inside, shards))
    columns = ["bucket", "范围", "参数", "各 DP rank 的 shard"]
    lab.report.table("bucket（反向顺序）与 shard（不管参数边界）", columns, rows)
    costs = {
        "参数": buffers.params.numel(),
        "梯度 buffer（不分片）": buffers.grads.numel(),
        "optimizer state": sum(state.numel() for state in optimizer.state),
    }
    lab.report.table("每个 rank 的字节", ["", ">字节"], [(name, count * size) for name, count in costs.items()])
    spans = [(b.start, b.end, [(*where, name) for name, where in b.params.items()]) for b in buffers.buckets]
    lab.pictures["buckets"] = draw.buckets(spans, dp if buffers.sharded else 1)


def expected_calls(lab: Lab, buckets: int, *, m: int, steps: int) -> dict[tuple[str, str, str], int]:
    """(phase, collective, group) → calls of a rank in all steps: the first one syncs late."""
    sync, late = "reduce_scatter" if lab.args.dist_opt else "all_reduce", steps if lab.args.no_overlap else 1
    calls = {("forward", "all_reduce", "tp"): steps * m, ("backward", "all_reduce", "tp"): steps * m}
    calls |= {("grad-sync", sync, "dp-cp"): late * buckets, ("backward", sync, "dp-cp"): (steps - late) * buckets}
    calls |= {("param-sync", "all_gather", "dp-cp"): steps * buckets * lab.args.dist_opt}
    return calls | {("optimizer", "all_reduce", "tp-dp-cp" if lab.args.dist_opt else "tp-pp"): steps}
