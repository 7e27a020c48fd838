"""Where parameters lie in a flat buffer, as data: buckets in backward order, aligned as Megatron aligns them.

Replays the index arithmetic of `megatron/core/distributed/param_and_grad_buffer.py::_ParamAndGradBuffer`, without
shared embeddings (a bucket of their own), NVFP4 and the padding for high NCCL bus bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Bucket:
    """A stretch [start, end) of the buffer."""

    index: int
    start: int
    end: int
    params: dict[str, tuple[int, int]]
    """Name → stretch of the buffer, in the order in which backward meets them."""

    def shard(self, rank: int, ranks: int) -> slice:
        """What the optimizer of one data-parallel rank owns, whatever parameters that cuts."""
        step = (self.end - self.start) // ranks
        return slice(self.start + rank * step, self.start + (rank + 1) * step)


def plan(sizes: Mapping[str, int], *, at_least: int, ranks: int, sharded: bool) -> list[Bucket]:
    """Parameters in reverse order; a bucket closes once it holds `at_least` numbers.

    With shards parameters start at multiples of 64 numbers and buckets end where all shards are equal.
    """
    pad = lambda n, by: math.ceil(n / by) * by if sharded else n
    buckets: list[Bucket] = []
    params: dict[str, tuple[int, int]] = {}
    at = start = 0
    last = next(iter(sizes))
    for name in reversed(list(sizes)):
        at = pad(at, 64)
        params[name] = (at, at + sizes[name])
        at += sizes[name]
        if at - start >= at_least or name == last:
            at = pad(at, math.lcm(ranks, 128))
            buckets.append(Bucket(len(buckets), start, at, params))
            params, start = {}, at
    return buckets
