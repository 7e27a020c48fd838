"""Who issued a call: the lines of chosen trees on the Python stack, found at little cost while the program runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d

from runnable.traces import Site

_HANDING = frozenset({"isend", "irecv", "batch_isend_irecv"})
"""Functions of torch.distributed that hand back a handle unasked."""


@dataclass(frozen=True, slots=True)
class Code:
    """What a function on the stack means; looked up once for each code object."""

    api: str | None = None
    """It is one of torch.distributed: its name."""
    path: str | None = None
    """It lies in the trees."""
    function: str = ""
    short: str = ""
    code: CodeType | None = None


_ELSEWHERE, _BACKWARD = Code(), Code(short="backward")
_ENGINE = torch.autograd.graph._engine_run_backward.__code__
"""Below it on the stack is a backward, above it what that backward runs."""
Place = tuple[Code, int]
"""A function and the instruction where it stands: Python finds the line by reading the function's table from the
start, so that is left for later."""


@dataclass
class Way:
    """How a call got here."""

    api: str = ""
    """The function of torch.distributed."""
    stack: list[Place] = field(default_factory=list)
    """The places of the trees on the stack, nearest first."""
    inner: int = sys.maxsize
    """How many of them run inside the innermost backward, if one runs."""
    waits: bool = True
    """Whether torch.distributed itself waits for the end."""


@dataclass
class Walker:
    """Looks up each function once."""

    trees: tuple[tuple[str, str], ...]
    skip: tuple[str, ...]
    _known: dict[CodeType, Code] = field(default_factory=dict)

    def walk(self, frame: FrameType | None) -> Way:
        """From this frame to the outermost."""
        way, known = Way(), self._known
        stack = way.stack
        while frame is not None:
            code = known.get(frame.f_code) or self._learn(frame.f_code)
            if code is not _ELSEWHERE:
                if code.path is not None:
                    stack.append((code, frame.f_lasti))
                elif code is _BACKWARD:
                    way.inner = min(way.inner, len(stack))
                elif not stack:
                    way.api, way.waits = code.api or "", not _asynchronous(frame)
            frame = frame.f_back
        return way

    def _learn(self, code: CodeType) -> Code:
        name, found = code.co_filename, _ELSEWHERE
        if name == c10d.__file__ and code.co_name != "wrapper":
            found = Code(api=code.co_name)
        elif code is _ENGINE:
            found = _BACKWARD
        elif not name.startswith(self.skip):
            inside = next(((folder, to) for folder, to in self.trees if name.startswith(folder)), None)
            if inside:
                path = inside[1] + name[len(inside[0]) :]
                found = Code(path=path, function=code.co_qualname, short=code.co_name, code=code)
        self._known[code] = found
        return found


@cache
def site(code: Code, instruction: int) -> Site:
    """The line of a place."""
    assert code.code is not None
    lines = (line for start, end, line in code.code.co_lines() if start <= instruction < end)
    return Site.model_construct(path=code.path, line=next(lines), function=code.function)


def _asynchronous(frame: FrameType) -> bool:
    """Whether a function of torch.distributed hands the handle back to its caller."""
    if frame.f_code.co_name in _HANDING:
        return True
    local: Mapping[str, Any] = frame.f_locals
    return bool(local.get("async_op", local.get("async_ops", False)))
