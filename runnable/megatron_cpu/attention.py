"""Attention over a sequence cut by context parallelism, in plain torch: all that Megatron leaves to Transformer Engine.

Groups, the zigzag cut of the batch, rotary slices, loss and gradient sums stay Megatron's. Keys and values are gathered
over the context-parallel group by Megatron's own mapping (its backward is a reduce-scatter), as Transformer Engine does
for `cp_comm_type="all_gather"`.
"""

from __future__ import annotations

import math
from typing import Any

import torch


def positions(rank: int, ranks: int, length: int) -> torch.Tensor:
    """Where this rank's tokens stand in the whole sequence: chunks `rank` and `2·ranks-1-rank` of `2·ranks`."""
    half = length // 2
    starts = (rank * half, (2 * ranks - 1 - rank) * half)
    return torch.cat([torch.arange(start, start + half) for start in starts])


def install() -> None:
    """Let layers without Transformer Engine use it in place of DotProductAttention, which refuses CP > 1."""
    from megatron.core import parallel_state
    from megatron.core.models.backends import LocalSpecProvider
    from megatron.core.tensor_parallel.mappings import gather_from_sequence_parallel_region

    class ContextParallelAttention(torch.nn.Module):
        """Causal attention of this rank's queries, `[s/cp, b, n/t, d]`, to the keys of the whole sequence."""

        def __init__(self, config: Any, layer_number: int, *args: Any, **kwargs: Any) -> None:
            super().__init__()
            self.group = parallel_state.get_context_parallel_group()

        def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *a: Any, **k: Any) -> Any:
            length, batch, heads, size = query.shape
            ranks, rank = self.group.size(), self.group.rank()
            key, value = (
                gather_from_sequence_parallel_region(t.contiguous(), True, self.group).repeat_interleave(
                    heads // t.shape[2], 2
                )
                for t in (key, value)
            )
            place = [positions(r, ranks, length) for r in range(ranks)]
            later = torch.cat(place)[None, :] > place[rank][:, None]
            scores = torch.einsum("qbnd,kbnd->bnqk", query, key) / math.sqrt(size)
            shares = scores.masked_fill(later, -math.inf).softmax(-1)
            return torch.einsum("bnqk,kbnd->qbnd", shares, value).reshape(length, batch, heads * size)

    LocalSpecProvider.core_attention = lambda self: ContextParallelAttention  # type: ignore[assignment]
