"""The module of the model that issues a call: by hooks in forward, by the order of autograd's nodes in backward."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import torch

_next_node = torch._C._autograd._get_sequence_nr


class ModuleNames:
    """Call it where a call is made: the innermost watched module at work there, or None.

    Autograd numbers its nodes in the order in which the forward pass makes them. So the numbers at which modules are
    entered and left tell, in backward, which module made the node that runs. Recomputation enters modules once more.
    """

    def __init__(self) -> None:
        self._inside: list[str] = []
        self._from: list[int] = [0]
        self._name: list[str | None] = [None]
        """From node `_from[i]` on, nodes were made inside `_name[i]`."""

    def watch(self, named: Iterable[tuple[str, torch.nn.Module]]) -> None:
        """Give these modules names; the hooks stay for the rest of the process."""
        for name, module in named:
            module.register_forward_pre_hook(lambda m, given, name=name: self._enter(name))
            module.register_forward_hook(lambda m, given, made: self._leave(), always_call=True)

    def __call__(self) -> str | None:
        if self._inside:
            return self._inside[-1]
        node = torch._C._current_autograd_node()
        if node is None or (number := node._sequence_nr()) >= _next_node():
            return None  # no backward; or a node that gathers a parameter's gradient, which belongs to no place in time
        return self._name[bisect_right(self._from, number) - 1]

    def _enter(self, name: str) -> None:
        self._inside.append(name)
        self._mark()

    def _leave(self) -> None:
        self._inside.pop()
        self._mark()

    def _mark(self) -> None:
        self._from.append(_next_node())
        self._name.append(self._inside[-1] if self._inside else None)
