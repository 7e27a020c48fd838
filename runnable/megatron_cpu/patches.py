"""What the unmodified Megatron-LM of the pin needs in order to train on a CPU: attributes of torch replaced, each with
its reason. No file of `megatron/` is edited.

A "megatron frame" is a caller whose file lies in the tree of the pin: patches so marked leave torch's own view alone.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Patch:
    """One replacement."""

    name: str
    reason: str
    apply: Callable[[], None]
    when: str


PATCHES: list[Patch] = []
BEFORE, AFTER, SCRIPTS = "import 之前", "import 之后", "入口脚本"
"""When a patch comes: before megatron is imported; after it; or before one of its own scripts is started."""
_tree = "/megatron/"


def patch(name: str, reason: str, *, when: str = BEFORE) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a replacement."""

    def register(apply: Callable[[], None]) -> Callable[[], None]:
        PATCHES.append(Patch(name, reason, apply, when))
        return apply

    return register


def apply(when: str, *, tree: str = "", without: frozenset[str] = frozenset()) -> None:
    """All patches of this time, except those named (a test shows that each is still needed).

    `tree` is where megatron lies: with it the scripts beside the package count as its frames too.
    """
    global _tree
    _tree = tree or _tree
    if unknown := without - {p.name for p in PATCHES}:
        raise KeyError(f"no such patch: {', '.join(sorted(unknown))}")
    for found in PATCHES:
        if found.when == when and found.name not in without:
            found.apply()


def _from_megatron(depth: int = 2) -> bool:
    return _tree in sys._getframe(depth).f_code.co_filename


def _is_cuda(device: Any) -> bool:
    return device is not None and not isinstance(device, int) and str(device).startswith("cuda")


@patch(
    "cuda.is_available", "initialize.py asserts CUDA; True for megatron frames only, so torch itself sees a CPU build"
)
def _available() -> None:
    torch.cuda.is_available = lambda: _from_megatron()


@patch(
    "cuda.device_count", "initialize_model_parallel is skipped where there is no device (initialize.py, arguments.py)"
)
def _count() -> None:
    torch.cuda.device_count = lambda: 1


class _Device(str):
    """A device that says "cpu" where a device is wanted and formats as "0" in f"cuda:{…}"."""

    def __format__(self, spec: str) -> str:
        return "0"


@patch("cuda.current_device", "about 200 uses as device=torch.cuda.current_device(), some as f'cuda:{…}'")
def _device() -> None:
    here = _Device("cpu")
    torch.cuda.current_device = lambda: here if _from_megatron() else 0
    torch.cuda.set_device = lambda *a: None


@patch("cuda.get_device_properties", "with TP > 1 validate_args asks for the compute capability")
def _properties() -> None:
    found = types.SimpleNamespace(name="cpu", major=8, minor=0, total_memory=1 << 34, multi_processor_count=1)
    torch.cuda.get_device_properties = lambda *a: found


class _Nothing:
    """A stream or an event: work on a CPU is in order already."""

    cuda_stream = 0
    device = CPU

    def __init__(self, *a: Any, **k: Any) -> None:
        pass

    def record_event(self, *a: Any) -> _Nothing:
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *a, **k: 0

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *a: Any) -> bool:
        return False


@patch("cuda.Stream", "streams, events and synchronize: work on a CPU is in order already")
def _streams() -> None:
    for name in ("Stream", "Event", "ExternalStream"):
        setattr(torch.cuda, name, _Nothing)
    for name in ("synchronize", "empty_cache", "set_stream"):
        setattr(torch.cuda, name, lambda *a, **k: None)
    for name in ("current_stream", "default_stream"):
        setattr(torch.cuda, name, lambda *a: _Nothing())
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
    torch.cuda.nvtx = types.SimpleNamespace(range_push=lambda *a: None, range_pop=lambda *a: None)


@patch(
    "cuda RNG",
    "the CPU's generator stands for CUDA's, so that the RNG tracker's fork switches what dropout uses; both are one "
    "then: what draws on the CPU draws from the same stream, other than on a GPU",
)
def _rng() -> None:
    torch.cuda.get_rng_state = torch.cuda.random.get_rng_state = lambda *a, **k: torch.get_rng_state()
    torch.cuda.set_rng_state = torch.cuda.random.set_rng_state = lambda state, *a, **k: torch.set_rng_state(state)
    torch.cuda.manual_seed = torch.cuda.manual_seed_all = lambda seed: torch.default_generator.manual_seed(int(seed))
    torch.cuda.default_generators = type("G", (), {"__getitem__": lambda self, i: torch.default_generator})()
    torch.cuda._lazy_init = lambda *a: None
    torch.cuda._lazy_call = lambda callback, **k: callback()


@patch("Tensor.cuda", ".cuda() of tensors and modules: they stay where they are")
def _cuda() -> None:
    torch.Tensor.cuda = lambda self, *a, **k: self
    torch.nn.Module.cuda = lambda self, *a, **k: self


@patch(
    "Tensor.is_cuda",
    "the MoE dispatcher turns the sizes of its all-to-all into numbers only if is_cuda (moe_utils.py); for megatron "
    "frames",
)
def _is_cuda_tensor() -> None:
    torch.Tensor.is_cuda = property(lambda self: _from_megatron())
    torch.Tensor.record_stream = lambda self, stream: None


@patch(
    "device='cuda'",
    "about 130 factory calls and .to(…) name the device; a wrapper, since a function mode taxes every op",
)
def _factories() -> None:
    def on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*a: Any, **k: Any) -> Any:
            if _is_cuda(k.get("device")):
                k["device"] = CPU
            if k.get("pin_memory"):
                k["pin_memory"] = False
            return function(*a, **k)

        return call

    def move(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(self: Any, *a: Any, **k: Any) -> Any:
            if a and _is_cuda(a[0]) and isinstance(a[0], (str, torch.device)):
                a = (CPU, *a[1:])
            if _is_cuda(k.get("device")):
                k["device"] = CPU
            return function(self, *a, **k)

        return call

    makers = (
        "empty zeros ones full tensor arange rand randn randint as_tensor empty_like zeros_like ones_like full_like"
    )
    for name in makers.split():
        setattr(torch, name, on_cpu(getattr(torch, name)))
    for name in ["new_empty", "new_zeros", "new_ones", "new_full", "new_tensor"]:
        setattr(torch.Tensor, name, on_cpu(getattr(torch.Tensor, name)))
    for owner in (torch.Tensor, torch.nn.Module):
        owner.to = move(owner.to)


@patch("Tensor.type", "the optimizer sorts parameters by type(): 'torch.cuda.FloatTensor'; for megatron frames")
def _type() -> None:
    for name in (
        "FloatTensor",
        "HalfTensor",
        "BFloat16Tensor",
        "IntTensor",
        "LongTensor",
        "DoubleTensor",
        "BoolTensor",
    ):
        setattr(torch.cuda, name, getattr(torch, name))
    original = torch.Tensor.type

    def type_(self: torch.Tensor, *a: Any, **k: Any) -> Any:
        found = original(self, *a, **k)
        plain = not a and not k and _from_megatron() and "cuda" not in found
        return found.replace("torch.", "torch.cuda.") if plain else found

    torch.Tensor.type = type_


@patch(
    "ProcessGroup.send",
    "the interleaved schedule frees a tensor while its isend is under way; NCCL is stream-ordered, gloo would send "
    "freed memory (NaN). An alias keeps the storage alive with the handle",
)
def _send() -> None:
    send = dist.ProcessGroup.send
    dist.ProcessGroup.send = lambda self, tensors, *a, **k: send(self, [t.detach() for t in tensors], *a, **k)


@patch("TORCHDYNAMO_DISABLE", "jit_fuser is torch.compile: Inductor would call a C++ compiler for each fused function")
def _dynamo() -> None:
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")


@patch(
    "WrappedTorchNorm",
    "without Apex and Transformer Engine the norm refuses sequence_parallel: build torch's and mark its parameters, so "
    "that finalize_model_grads sums their gradients over TP",
    when=AFTER,
)
def _norm() -> None:
    from megatron.core.transformer.torch_norm import WrappedTorchNorm

    make = WrappedTorchNorm.__new__

    def new(cls: type, config: Any, hidden_size: int, eps: float = 1e-5, **k: Any) -> torch.nn.Module:
        plain = copy.copy(config)
        plain.sequence_parallel = False
        norm = make(cls, plain, hidden_size, eps, **k)
        for parameter in norm.parameters():
            parameter.sequence_parallel = config.sequence_parallel
        return norm

    WrappedTorchNorm.__new__ = new


@patch(
    "_compile_dependencies",
    "it builds the data helpers with make; the wheel has no Makefile and the call would end the process. The driver's "
    "own data needs no helper",
    when=AFTER,
)
def _compile() -> None:
    import megatron.training.initialize as initialize

    initialize._compile_dependencies = lambda: None
