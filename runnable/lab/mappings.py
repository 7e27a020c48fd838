"""The two autograd functions that tensor parallelism needs, for scripts whose chapter is another one (ch10 explains).

Replays `megatron/core/tensor_parallel/mappings.py::_CopyToModelParallelRegion` and
`megatron/core/tensor_parallel/mappings.py::_ReduceFromModelParallelRegion`.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        dist.all_reduce(grad := grad.clone(), group=ctx.group)
        return grad, None


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        dist.all_reduce(y := x.clone(), group=group)
        return y

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad, None


def copy_to_tp(x: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    """f: identity forward, sum over TP backward."""
    return _Copy.apply(x, group)


def reduce_from_tp(x: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    """g: sum over TP forward, identity backward."""
    return _Reduce.apply(x, group)
