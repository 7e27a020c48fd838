"""Vocab-parallel cross entropy and the three loss-scaling conventions."""

from __future__ import annotations

import re

import pytest

RULES = ("no_max", "no_predicted", "no_sum_exp", "gathered", "cp_scale", "local_tokens")


@pytest.mark.parametrize(
    "argv", [(), ("--np", 4, "--tp", 1), ("--np", 4, "--tp", 4), ("--np", 4, "--cp", 1), ("--np", 1)]
)
def test_equals_one_process(play, argv):
    result = play("ch05", *argv, "--dtype", "float64")
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize("rule", RULES)
def test_a_dropped_rule_is_caught(play, rule):
    result = play("ch05", "--break", rule)
    assert result.code == 1, result.out + result.err
    assert "✗ 不等" in result.out


def test_gathered_logits_add_log_tp(play):
    assert "相差（平均）：0.6931" in play("ch05", "--break", "gathered").out


def test_without_cp_size_the_gradient_is_half(play):
    assert re.search(r"grad legacy: body .* 0\.5000 │ ✗ 不等", play("ch05", "--break", "cp_scale").out)


def test_one_loss_three_gradients(play):
    """Not the optimised loss: the printed one is the same under all conventions."""
    out = play("ch05").out
    rows = re.findall(r"│ (per-microbatch|per-token|legacy) +│ +([\d.]+) │ +([\d.]+) │", out)
    assert len(rows) == 3
    assert len({norm for _, norm, _ in rows}) == 3
    assert len({loss for *_, loss in rows}) == 1
