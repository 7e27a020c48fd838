"""Rank map and seeds: real groups have the members that the arithmetic says; each mistake is caught."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "argv",
    [
        ("--tp", 2, "--pp", 2),
        ("--cp", 2, "--ep", 2),
        ("--tp", 2, "--order", "tp-cp-ep-pp-dp"),
        ("--pp", 2, "--order", "tp-cp-ep-pp-dp"),
        ("--tp", 2, "--data-parallel-random-init"),
        ("--np", 1),
    ],
)
def test_real_groups_agree(play, argv):
    result = play("ch02", *argv)
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize(("rule", "argv"), [("order", ("--pp", 2)), ("tp_seed", ("--tp", 2)), ("pp_seed", ("--pp", 2))])
def test_a_dropped_rule_is_caught(play, rule, argv):
    result = play("ch02", "--break", rule, *argv)
    assert result.code == 1, result.out + result.err
    assert "未通过" in result.out


def test_a_break_that_cannot_show_is_refused(play):
    result = play("ch02", "--break", "tp_seed", "--pp", 2)
    assert result.code == 2
    assert "看不出差别" in result.err


def test_a_map_of_a_world_that_is_not_here(play):
    """p=4, t=2, d=2 on 16 ranks, the example of initialize_model_parallel's docstring."""
    result = play("ch02", "--np", 1, "--world", 16, "--tp", 2, "--pp", 4)
    assert result.code == 0
    assert "[0, 4, 8, 12]" in result.out
    assert "[0,12] [1,13] [2,14] [3,15]" in result.out
    assert play("ch02", "--np", 1, "--world", 15, "--tp", 2).code == 2
