"""What the methods of `torch.distributed.ProcessGroup` mean, and what their arguments hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from runnable.traces import Kind, Tensor

# Method → (kind, position of the tensors put in, position of those got out).
SPEC: dict[str, tuple[Kind, int | None, int | None]] = {
    "allreduce": ("all_reduce", 0, 0),
    "allreduce_coalesced": ("all_reduce", 0, 0),
    "broadcast": ("broadcast", 0, 0),
    "reduce": ("reduce", 0, 0),
    "allgather": ("all_gather", 1, 0),
    "allgather_coalesced": ("all_gather", 1, 0),
    "_allgather_base": ("all_gather", 1, 0),
    "all_gather_single": ("all_gather", 1, 0),
    "all_gather_single_coalesced": ("all_gather", 1, 0),
    "allgather_into_tensor_coalesced": ("all_gather", 1, 0),
    "reduce_scatter": ("reduce_scatter", 1, 0),
    "_reduce_scatter_base": ("reduce_scatter", 1, 0),
    "reduce_scatter_single": ("reduce_scatter", 1, 0),
    "reduce_scatter_single_coalesced": ("reduce_scatter", 1, 0),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 1, 0),
    "gather": ("gather", 1, 0),
    "scatter": ("scatter", 1, 0),
    "alltoall": ("all_to_all", 1, 0),
    "alltoall_base": ("all_to_all", 1, 0),
    "all_to_all_single": ("all_to_all", 1, 0),
    "send": ("send", 0, None),
    "recv": ("recv", None, 0),
    "recv_anysource": ("recv", None, 0),
    "barrier": ("barrier", None, None),
    "monitored_barrier": ("barrier", None, None),
}
METHODS = tuple(SPEC)


def asynchronous(api: str, local: Mapping[str, Any]) -> bool:
    """Whether a function of torch.distributed hands the handle back to its caller."""
    default = api in ("isend", "irecv", "batch_isend_irecv")
    return bool(local.get("async_op", local.get("async_ops", default)))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an argument, through lists of lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def shapes(tensors: Sequence[torch.Tensor]) -> tuple[Tensor, ...]:
    """For the trace."""
    return tuple(
        Tensor.model_construct(dtype=str(t.dtype).removeprefix("torch."), shape=tuple(t.shape)) for t in tensors
    )


def operator(options: Any) -> str:
    """SUM, MAX, … of a reducing call."""
    found = getattr(options.reduceOp, "op", options.reduceOp)
    return str(found).rsplit(".", 1)[-1]
