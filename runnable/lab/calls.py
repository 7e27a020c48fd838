"""What the methods of `torch.distributed.ProcessGroup` mean, what their arguments hold, and the event of a call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from runnable.lab.stack import site
from runnable.traces import Event, Kind, Tensor

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
P2P = frozenset({"send", "recv"})
REDUCING = frozenset({"all_reduce", "reduce_scatter", "reduce"})
ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
OPTIONS = REDUCING | ROOTED


def event_of(n: int, raw: dict[str, Any], helpers: frozenset[str]) -> Event:
    """The call as the trace file tells it."""
    stack = raw["stack"]
    passed = next((i for i, (code, _) in enumerate(stack) if code.short not in helpers), 0)
    before, after = (
        tuple(
            Tensor.model_construct(dtype=str(kind).removeprefix("torch."), shape=tuple(shape)) for kind, shape in side
        )
        for side in (raw["before"], raw["after"])
    )
    more = {key: raw[key] for key in ("kind", "api", "group", "phase", "label", "module", "asynchronous")}
    more |= {key: raw[key] for key in ("root", "peer") if key in raw}
    return Event.model_construct(
        n=n,
        before=before,
        after=after,
        bytes_in=_bytes(raw["before"]),
        bytes_out=_bytes(raw["after"]),
        reduce=_operator(raw["reduce"]) if "reduce" in raw else None,
        site=site(*stack[0]) if stack else None,
        stack=tuple(site(*place) for place in stack[passed : passed + 5]) if passed else (),
        **more,
    )


def _bytes(shapes: Sequence[tuple[torch.dtype, torch.Size]]) -> int:
    return sum(math.prod(shape) * kind.itemsize for kind, shape in shapes)


def shapes(value: Any) -> tuple[tuple[torch.dtype, torch.Size], ...]:
    """Type and shape of a tensor, or of those in lists of lists of them, as they are now."""
    if isinstance(value, torch.Tensor):
        return ((value.dtype, value.shape),)
    return tuple(one for item in value for one in shapes(item)) if isinstance(value, (list, tuple)) else ()


def _operator(operation: Any) -> str:
    return str(getattr(operation, "op", operation)).rsplit(".", 1)[-1]
