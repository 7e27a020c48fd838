"""Tables and picture of gradient buckets: what lies where, and what it costs each rank."""

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
