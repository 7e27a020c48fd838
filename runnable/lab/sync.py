"""Sums over flat buffers, shared by the scripts; the trace shows the script's line that asked for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist


def sum_flat(grads: Sequence[torch.Tensor], group: dist.ProcessGroup, *, scale: float = 1.0) -> None:
    """Scale first, then one SUM over the flat buffer, in place: what Megatron's DDP does to a bucket."""
    flat = torch.cat([g.flatten() for g in grads]) * scale
    dist.all_reduce(flat, group=group)
    for grad, piece in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
        grad.copy_(piece.view_as(grad))
