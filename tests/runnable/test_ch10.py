"""The Column/Row pair: proofs hold, each dropped rule is caught, counts follow the formula."""

from __future__ import annotations

import pytest

from runnable.traces import Trace

RULES = ("no_f", "no_g", "bias_each_rank", "no_dp", "scale")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("argv", [("--np", 4), ("--np", 4, "--sp"), ("--np", 4, "--tp", 4, "--sp"), ("--np", 1)])
def test_equals_one_process(play, argv, dtype):
    result = play("ch10", *argv, "--dtype", dtype)
    assert result.code == 0, result.out + result.err
    assert "✗" not in result.out


@pytest.mark.parametrize("argv", [(), ("--sp",)])
@pytest.mark.parametrize("rule", RULES)
def test_a_dropped_rule_is_caught(play, rule, argv):
    result = play("ch10", "--break", rule, *argv)
    assert result.code == 1, result.out + result.err
    assert "✗ 不等" in result.out


def test_norm_gradients_need_their_sum_under_sp(play):
    result = play("ch10", "--break", "no_sp_norm")
    assert result.code == 1
    wrong = {line.split()[2] for line in result.out.splitlines() if "grad" in line and "✗ 不等" in line}
    assert wrong == {"norm_w", "norm_b", "row_b"}


def test_the_damage_of_scale_is_exactly_m(play):
    assert "4.0000 │ ✗ 不等" in play("ch10", "--break", "scale").out


def test_sp_moves_the_same_bytes_in_other_calls(play, tmp_path):
    """Forward: RS + AG of SP carry what the AR carries; backward: one AG more, of the input for wgrad."""
    moved = {}
    for name, argv in {"tp": (), "sp": ("--sp",)}.items():
        assert play("ch10", *argv, "--out", tmp_path / name).code == 0
        trace = Trace.load(tmp_path / f"{name}.json")
        for phase in ("forward", "backward"):
            calls = [e for e in trace.events(0) if e.phase == phase]
            moved[name, phase] = [(e.kind, max(e.bytes_in, e.bytes_out)) for e in calls]
    full = 8 * 2 * 16 * 4
    assert moved["tp", "forward"] == [("all_reduce", full)] * 4
    assert sorted(moved["sp", "forward"]) == sorted([("all_gather", full), ("reduce_scatter", full)] * 4)
    assert moved["tp", "backward"] == [("all_reduce", full)] * 4
    assert sorted(moved["sp", "backward"]) == sorted(
        [("all_gather", full), ("all_gather", full), ("reduce_scatter", full)] * 4
    )
