"""Schedules carried out by real send/recv: gradients of one process, the order of the data."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize("np", [2, 4])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
def test_equals_one_process(play, schedule, np):
    result = play("ch11", "--np", np, "--schedule", schedule, "--dtype", "float64")
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize(
    "argv",
    [
        ("--np", 1),
        ("--np", 3, "--m", 2),
        ("--np", 4, "--m", 16),
        ("--np", 2, "--m", 4, "--schedule", "interleaved", "--v", 3),
    ],
)
def test_other_sizes(play, argv):
    result = play("ch11", *argv)
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize("rule", ["scale", "scale_each_stage", "zero_each", "chunk_place"])
def test_a_dropped_rule_is_caught(play, rule):
    result = play("ch11", "--break", rule)
    assert result.code == 1, result.out + result.err
    assert "✗ 不等" in result.out


def test_a_break_that_two_stages_cannot_show_is_refused(play):
    """With two stages nobody receives a gradient that was scaled again: the run would end as if nothing were broken."""
    result = play("ch11", "--np", 2, "--break", "scale_each_stage")
    assert result.code == 2, result.out
    assert "3 个以上 stage" in result.err


def test_the_damage_of_scale_is_exactly_m(play):
    assert "8.0000 │ ✗ 不等" in play("ch11", "--break", "scale").out


def test_sizes_that_interleaving_does_not_take(play):
    result = play("ch11", "--schedule", "interleaved", "--m", 6)
    assert result.code == 2
    assert "余 2" in result.err


def test_times_go_to_their_own_files(play, tmp_path):
    result = play("ch11", "--np", 2, "--m", 4, "--sleep", 1, "--chrome", tmp_path / "t.json")
    assert result.code == 0, result.err
    assert "实测" in result.out
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["pid"] == 1 and e["cat"] in ("forward", "backward")][:4] == [
        "A0",
        "a0",
        "B0",
        "b0",
    ]
    assert "r1 实测" in (tmp_path / "t.svg").read_text()
