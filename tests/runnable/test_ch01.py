"""The training loop: one, two and four ranks take the same step; each dropped rule is caught."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("argv", [("--np", 1), ("--np", 2), ("--np", 4), ("--np", 3), ("--np", 4, "--tp", 4)])
def test_equals_one_process(play, argv):
    result = play("ch01", *argv, "--dtype", "float64")
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize("rule", ["no_zero_grad", "no_finalize", "no_mask", "scale"])
def test_a_dropped_rule_is_caught(play, rule):
    result = play("ch01", "--break", rule)
    assert result.code == 1, result.out + result.err
    assert "✗ 不等" in result.out


def test_gradients_left_over_spoil_the_second_step_only(play):
    wrong = [line for line in play("ch01", "--break", "no_zero_grad").out.splitlines() if "✗ 不等" in line]
    assert wrong
    assert all("step 1" in line for line in wrong)
