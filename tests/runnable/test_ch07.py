"""Sharded checkpoints: other layouts read them; a killed run goes on to the bit; each dropped rule is caught."""

from __future__ import annotations

import re

import pytest


@pytest.mark.parametrize(
    "argv", [("--np", 4), ("--np", 4, "--tp", 4), ("--np", 8), ("--np", 2, "--tp", 1), ("--np", 1)]
)
def test_every_layout_reads_it(play, argv):
    result = play("ch07", *argv, "--dtype", "float64")
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize("rule", ["no_optimizer", "no_iteration", "no_data_position"])
def test_a_dropped_rule_is_caught(play, rule):
    result = play("ch07", "--break", rule)
    assert result.code == 1, result.out + result.err
    assert "✗ 不等" in result.out


def test_saving_on_rank_0_alone_ends_in_a_message(play):
    result = play("ch07", "--np", 2, "--break", "rank0_saves", "--timeout", 3)
    assert result.code == 3
    assert re.search(r"\[rank \d/2\] (等其他 rank 超时|与其他 rank 的连接断了)", result.err), result.err


def losses(text: str) -> dict[str, str]:
    return dict(re.findall(r"step (\d) loss (0x\S+)", text))


def test_killed_and_resumed_is_the_same_to_the_bit(play, tmp_path):
    whole = play("ch07", "--np", 2, "--dir", tmp_path / "whole")
    assert whole.code == 0, whole.err
    killed = play("ch07", "--np", 2, "--dir", tmp_path / "killed", "--die-at", 3)
    assert killed.code == 3
    assert "以退出码 9 结束" in killed.err
    resumed = play("ch07", "--np", 2, "--dir", tmp_path / "killed")
    assert resumed.code == 0, resumed.err
    assert "从第 2 步恢复" in resumed.out
    want = losses(whole.out)
    assert set(want) == {"1", "2", "3", "4"}
    assert losses(resumed.out) == {step: want[step] for step in ("3", "4")}


def test_a_checkpoint_that_was_not_finished_is_not_read(play, tmp_path):
    """The tracker is written last: pieces of a newer iteration beside it change nothing."""
    folder = tmp_path / "d"
    assert play("ch07", "--np", 2, "--dir", folder, "--die-at", 3).code == 3
    (folder / "iter_0000003").mkdir(exist_ok=True)
    (folder / "iter_0000003" / "__0_0.distcp").write_bytes(b"half")
    resumed = play("ch07", "--np", 2, "--dir", folder)
    assert resumed.code == 0, resumed.err
    assert "从第 2 步恢复" in resumed.out
