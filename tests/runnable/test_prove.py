"""The prover: what must never pass does not pass."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from runnable.lab.prove import compare, lines


def check(got, want, **more):
    return compare("x", torch.as_tensor(got), torch.as_tensor(want), rank=0, **more)


def test_equal_passes_and_the_ratio_is_one():
    found = check([1.0, -2.0], [1.0, -2.0])
    assert found.passed
    assert (found.error, found.ratio) == (0.0, 1.0)


@given(st.integers(2, 64))
def test_a_wrong_factor_is_named(m):
    found = check([float(m), 2.0 * m], [1.0, 2.0])
    assert not found.passed
    assert math.isclose(found.ratio, m)


def test_other_shapes_nan_and_infinity_never_pass():
    assert not check([1.0], [1.0, 1.0]).passed
    assert not check([math.nan], [1.0]).passed
    assert not check([math.inf], [1.0]).passed
    assert not check([1.0], [math.nan]).passed
    assert not check([math.nan], [math.nan]).passed


def test_a_gradient_that_is_missing_does_not_pass_for_a_small_one():
    assert not check([0.0, 0.0], [1e-12, 0.0]).passed
    assert not check([1e-3], [0.0]).passed
    assert check([0.0], [0.0]).passed


def test_rounding_passes_and_a_little_more_does_not():
    assert check([1.0 + 1e-6], [1.0]).passed
    assert not check([1.0 + 1e-5], [1.0]).passed
    assert not check([1.0 + 1e-6], [1.0], tolerance=0.0).passed
    double = torch.tensor([1.0], dtype=torch.float64)
    assert not check(double + 1e-11, double).passed


def test_a_line_shows_its_worst_rank():
    good, bad = (compare("g", torch.tensor([v]), torch.tensor([1.0]), rank=r) for r, v in enumerate((1.0, 4.0)))
    (line,) = lines([good, bad])
    assert not line.passed
    assert (line.worst.rank, line.ratio) == (1, 4.0)


def test_nothing_compared_is_an_error(play):
    """A script that forgets its checks must not look proved: Lab.prove refuses an empty proof."""
    from runnable.lab.run import Lab

    lab = object.__new__(Lab)
    lab._checks = []
    lab.gather = lambda value: [value]
    try:
        lab.prove("empty")
    except AssertionError as error:
        assert "nothing was compared" in str(error)
    else:
        raise AssertionError("an empty proof passed")
