"""A GPT block built from a spec under tensor parallelism; each dropped rule is caught."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("argv", [("--np", 4), ("--np", 2), ("--np", 2, "--tp", 1), ("--np", 1)])
def test_equals_one_process(play, argv):
    result = play("ch04", *argv, "--dtype", "float64")
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize("rule", ["qkv_order", "no_embedding_mask", "no_embedding_reduce", "untied_grad", "no_f"])
def test_a_dropped_rule_is_caught(play, rule):
    result = play("ch04", "--break", rule)
    assert result.code == 1, result.out + result.err
    assert "✗ 不等" in result.out


def test_an_untied_head_spoils_the_embedding_alone(play):
    wrong = [line.split()[1:3] for line in play("ch04", "--break", "untied_grad").out.splitlines() if "✗ 不等" in line]
    assert wrong == [["grad", "embedding"], ["SGD", "后"]]
