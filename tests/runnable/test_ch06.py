"""Buckets, distributed optimizer, gradient norm: equal to one process; each dropped rule is caught."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnable.lab.buckets import plan
from runnable.traces import Trace

RULES = ("no_scale", "no_dp", "each_microbatch", "dup_norm", "local_norm", "no_gather")


@pytest.mark.parametrize("argv", [(), ("--no-overlap",), ("--bucket", 1), ("--np", 2, "--tp", 1), ("--np", 1)])
@pytest.mark.parametrize("kind", [(), ("--dist-opt",)])
def test_equals_one_process(play, kind, argv):
    result = play("ch06", *kind, *argv, "--dtype", "float64")
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize("rule", RULES)
def test_a_dropped_rule_is_caught(play, rule):
    result = play("ch06", "--break", rule)
    assert result.code == 1, result.out + result.err
    assert "✗ 不等" in result.out


def test_clipping_hides_a_wrong_scale_but_the_norm_shows_it(play):
    wrong = [line for line in play("ch06", "--break", "no_scale").out.splitlines() if "✗ 不等" in line]
    assert len(wrong) == 1
    assert "grad norm" in wrong[0]
    assert "2.0000" in wrong[0]


def test_gradients_travel_inside_the_last_backward(play, tmp_path):
    """Second step: a bucket is sent before the last gradient is there; without overlap, after backward."""
    for name, argv, phase in (("overlap", (), "backward"), ("late", ("--no-overlap",), "grad-sync")):
        assert play("ch06", *argv, "--out", tmp_path / name).code == 0
        events = [e for e in Trace.load(tmp_path / f"{name}.json").events(0) if e.group.startswith("dp-cp")]
        assert [e.phase for e in events] == ["grad-sync", "grad-sync", phase, phase]
        assert [e.label for e in events] == ["bucket 0", "bucket 1"] * 2


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=12),
    st.integers(1, 500),
    st.sampled_from([1, 2, 4, 6]),
    st.booleans(),
)
def test_the_plan_covers_every_parameter_once(sizes, at_least, ranks, sharded):
    names = {f"p{i}": size for i, size in enumerate(sizes)}
    buckets = plan(names, at_least=at_least, ranks=ranks, sharded=sharded)
    assert [b.start for b in buckets[1:]] == [b.end for b in buckets[:-1]]
    assert [name for b in buckets for name in b.params] == list(reversed(names))
    for bucket in buckets:
        for name, (start, end) in bucket.params.items():
            assert bucket.start <= start < end <= bucket.end
            assert end - start == names[name]
            assert not sharded or start % 64 == 0
        if sharded:
            cuts = [bucket.shard(rank, ranks) for rank in range(ranks)]
            assert [c.stop for c in cuts[:-1]] == [c.start for c in cuts[1:]]
            assert (cuts[0].start, cuts[-1].stop) == (bucket.start, bucket.end)
