"""The time line of ch06: one list of tasks, simulated by hand-checked rules and carried out in the same order."""

from __future__ import annotations

import json
from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnable.lab import overlap
from runnable.lab.buckets import plan

SIZES = {"norm": 12, "col": 144, "row": 144, "bias": 12}


def tasks(*, late: bool = False, at_least: int = 150, m: int = 2, sharded: bool = False, **costs: object):
    args = SimpleNamespace(**({"tf": Fraction(1), "tb": Fraction(2), "tc": Fraction(2), "dist_opt": sharded} | costs))
    lab = SimpleNamespace(args=args, dims={"m": m})
    buckets = plan(SIZES, at_least=at_least, ranks=2, sharded=sharded)
    return overlap.tasks(lab, buckets, ["row", "col"], overlap=not late)


@pytest.mark.parametrize(
    ("late", "sharded", "starts", "waits"),
    [
        (False, False, {"S0": 5, "S1": 6, "O": 7}, 1),
        (True, False, {"S0": 6, "S1": 7, "O": 8}, 2),
        (False, True, {"S0": 5, "S1": 6, "O": Fraction(13, 2), "G0": 7}, Fraction(3, 2)),
    ],
)
def test_a_step_worked_out_by_hand(late, sharded, starts, waits):
    """F0 1, row and col 1 each, F1 1, row and col again: backward ends at 6; each of two buckets travels 1 (or ½)."""
    slots = overlap.simulate(tasks(late=late, sharded=sharded))
    found = {slot.name: slot.start for slot in slots}
    assert {name: found[name] for name in starts} == starts
    assert overlap.exposed(slots) == waits


COST = st.fractions(0, 4, max_denominator=8)


@given(COST, COST, COST, st.integers(1, 3), st.integers(1, 400), st.booleans(), st.booleans())
def test_what_is_exposed_follows_the_closed_form(tf, tb, tc, m, at_least, late, sharded):
    todo = tasks(late=late, at_least=at_least, m=m, sharded=sharded, tf=tf, tb=tb, tc=tc)
    assert overlap.exposed(overlap.simulate(todo)) == overlap.closed_form(todo)


def test_overlap_never_costs_and_hides_all_but_the_last_bucket():
    slots = {late: overlap.simulate(tasks(late=late, at_least=1, tc=Fraction(1))) for late in (False, True)}
    assert overlap.exposed(slots[False]) == Fraction(12 + 144, 312)  # of col and norm, both ready when backward ends
    assert overlap.exposed(slots[True]) == 1


@pytest.mark.parametrize("argv", [(), ("--no-overlap",), ("--dist-opt",)])
def test_what_was_carried_out_is_the_list(play, tmp_path, argv):
    """Measured on the axes of the prediction: the same names in each lane, in the order of the list."""
    result = play("ch06", *argv, "--sleep", 2, "--chrome", tmp_path / "t.json")
    assert result.code == 0, result.out + result.err
    todo = tasks(late="--no-overlap" in argv, at_least=150, sharded="--dist-opt" in argv)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    for rank in range(4):
        for link in (False, True):
            kinds = {"link"} if link else {"forward", "backward", "optimizer"}
            mine = [e["name"] for e in events if e["pid"] == rank and e["cat"] in kinds]
            want = [task.name for task in todo if task.kind in kinds]
            assert mine[-len(want) :] == want
    picture = (tmp_path / "t.svg").read_text()
    assert "r3 实测 通信" in picture
    assert "预测与实测" in picture
    assert "rank 0 实测" in result.out
