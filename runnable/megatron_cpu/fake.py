"""One rank of a job of any size, from one process: Megatron's code runs, no partner answers, no number exists.

PyTorch's fake process group returns at once and moves nothing; in FakeTensorMode a tensor has a shape and a dtype and
no storage, so a model of any size costs neither memory nor arithmetic. Shapes, bytes, partners, order and lines are
those of the real job as long as they do not depend on values: true of dense models, not of what a router sends where.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FakeWork
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from runnable.lab.calls import METHODS


def begin(rank: int, world: int) -> None:
    """A world of which only this rank exists."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    for name in METHODS:
        if hasattr(dist.ProcessGroup, name):
            setattr(dist.ProcessGroup, name, lambda *a, **k: FakeWork())
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)


def enter() -> None:
    """From here on tensors have no numbers; what a program reads out of one is 0, 1.0 or False. For good."""
    _constants()
    _objects()
    _half_precision()
    FakeTensorMode(allow_non_fake_inputs=True).__enter__()


def _constants() -> None:
    def instead(name: str, value: Callable[[FakeTensor], Any]) -> None:
        original = getattr(torch.Tensor, name)
        read = lambda self, *a: value(self) if isinstance(self, FakeTensor) else original(self, *a)
        setattr(torch.Tensor, name, read)

    def scalar(tensor: FakeTensor) -> Any:
        return 1.0 if tensor.dtype.is_floating_point else False if tensor.dtype == torch.bool else 0

    instead("item", scalar)
    instead("__bool__", lambda tensor: False)
    instead("__float__", lambda tensor: 1.0)
    instead("__int__", lambda tensor: 0)
    instead("tolist", lambda tensor: [scalar(tensor)] * tensor.numel())


def _objects() -> None:
    """Objects are pickled into tensors, which cannot hold them: every rank is taken to have sent the same."""

    def everyone(found: list[Any], mine: Any, *a: Any, **k: Any) -> None:
        found[:] = [mine] * len(found)

    dist.all_gather_object = everyone
    dist.broadcast_object_list = lambda *a, **k: None


def _half_precision() -> None:
    """`Module.bfloat16()` swaps tensors in place, which fake ones refuse: give the module new parameters instead."""

    def convert(dtype: torch.dtype) -> Callable[[torch.nn.Module], torch.nn.Module]:
        def cast(self: torch.nn.Module) -> torch.nn.Module:
            for module in self.modules():
                for name, old in list(module._parameters.items()):
                    if old is not None and old.dtype.is_floating_point and old.dtype != dtype:
                        new = torch.nn.Parameter(old.data.to(dtype), requires_grad=old.requires_grad)
                        new.__dict__.update(old.__dict__)
                        module._parameters[name] = new
                for name, buffer in list(module._buffers.items()):
                    if buffer is not None and buffer.dtype.is_floating_point:
                        module._buffers[name] = buffer.to(dtype)
            return self

        return cast

    torch.nn.Module.bfloat16 = convert(torch.bfloat16)
    torch.nn.Module.half = convert(torch.float16)
