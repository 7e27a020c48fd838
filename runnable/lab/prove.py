"""Compare what the ranks hold with what one process holds: gradients and parameters, never the loss alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.int64: 0.0}
"""Allowed difference, relative to the largest number of the reference tensor."""


@dataclass(frozen=True)
class Check:
    """One tensor of one rank beside the same piece of the reference."""

    name: str
    rank: int
    shape: tuple[int, ...]
    error: float
    """Largest difference, relative to the largest number of the reference."""
    ratio: float
    """Norm over the reference's norm: 4.0000 says "m times too large"."""
    tolerance: float

    @property
    def passed(self) -> bool:
        return math.isfinite(self.error) and self.error <= self.tolerance


@dataclass
class Line:
    """One row of the table: a tensor over all ranks that hold it."""

    name: str
    checks: list[Check] = field(default_factory=list)

    @property
    def worst(self) -> Check:
        return max(self.checks, key=lambda c: c.error if math.isfinite(c.error) else math.inf)

    @property
    def ratio(self) -> float:
        """The ratio furthest from 1."""
        return max((c.ratio for c in self.checks), key=lambda r: abs(r - 1) if math.isfinite(r) else math.inf)

    @property
    def passed(self) -> bool:
        return all(c.passed for c in self.checks)


def compare(name: str, got: torch.Tensor, want: torch.Tensor, *, rank: int, tolerance: float | None = None) -> Check:
    """Measure the difference; tensors of other shapes, or numbers that are not finite, never pass."""
    allowed = TOLERANCE[got.dtype] if tolerance is None else tolerance
    if got.shape != want.shape:
        return Check(name, rank, tuple(got.shape), math.inf, math.nan, allowed)
    a, b = got.detach().double().cpu(), want.detach().double().cpu()
    scale = b.abs().max().item() if b.numel() else 0.0
    largest = (a - b).abs().max().item() if b.numel() else 0.0
    error = largest / scale if scale else largest
    norm = b.norm().item()
    ratio = a.norm().item() / norm if norm else (1.0 if largest == 0 else math.inf)
    return Check(name, rank, tuple(got.shape), error, ratio, allowed)


def lines(checks: Iterable[Check]) -> list[Line]:
    """Checks of all ranks, one line for each name, in the order of first appearance."""
    found: dict[str, Line] = {}
    for check in checks:
        found.setdefault(check.name, Line(check.name)).checks.append(check)
    return list(found.values())
