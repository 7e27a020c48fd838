"""Schedules as data: equal to torch's orders and to Megatron's rules, without a process."""

from __future__ import annotations

import ast
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnable.lab import schedules
from runnable.lab.pin import megatron_tree
from runnable.lab.schedules import Action, ScheduleError

SIZES = st.tuples(st.integers(1, 6), st.integers(1, 12))


def torch_order(name: str, p: int, m: int, v: int | None = None) -> list[list[tuple[str, int, int]]]:
    from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

    ranks = get_schedule_ops(name, p, m, num_stages_per_rank=v) if v else get_schedule_ops(name, p, m)
    names = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "B"}
    kept = [[a for a in ops if a and a.computation_type.name in names] for ops in ranks]
    return [[(names[a.computation_type.name], a.stage_index, a.microbatch_index) for a in ops] for ops in kept]


def as_stages(orders, p):
    return [[(a.kind, a.chunk * p + r, a.microbatch) for a in order] for r, order in enumerate(orders)]


@pytest.mark.parametrize("p", [2, 4, 8])
@pytest.mark.parametrize("m", [8, 16])
def test_gpipe_is_torchs(p, m):
    assert as_stages(schedules.gpipe(p, m), p) == torch_order("GPipe", p, m)


@pytest.mark.parametrize("p", [2, 4, 8])
@pytest.mark.parametrize("m", [8, 16])
def test_1f1b_is_torchs(p, m):
    """On the last rank torch 2.13's visualiser numbers the forwards from 1, so there only the kinds are compared."""
    ours, theirs = as_stages(schedules.one_f_one_b(p, m), p), torch_order("1F1B", p, m)
    assert ours[:-1] == theirs[:-1]
    assert [kind for kind, *_ in ours[-1]] == [kind for kind, *_ in theirs[-1]]


@pytest.mark.parametrize(("p", "m", "v"), [(2, 4, 2), (4, 8, 2), (4, 8, 3), (4, 16, 4), (8, 16, 2)])
def test_interleaved_is_torchs(p, m, v):
    assert as_stages(schedules.interleaved(p, m, v), p) == torch_order("Interleaved1F1B", p, m, v)


@cache
def megatron(name: str) -> Any:
    """A function of schedules.py at the pin, alone."""
    source = (megatron_tree() / "megatron/core/pipeline_parallel/schedules.py").read_text()
    (node,) = (n for n in ast.parse(source).body if getattr(n, "name", None) == name)
    scope: dict[str, Any] = {"Optional": Any.__class__, "P2PCommunicator": Any.__class__}
    tree = ast.parse("from __future__ import annotations")
    exec(compile(ast.Module([*tree.body, node], []), "schedules.py", "exec"), scope)
    return scope[name]


def communicator(p: int, rank: int, v: int | None) -> Any:
    group = SimpleNamespace(size=lambda: p, rank=lambda: rank)
    return SimpleNamespace(pp_group=group, virtual_pipeline_model_parallel_size=v)


@pytest.mark.parametrize("p", range(2, 9))
@pytest.mark.parametrize("m", [1, 2, 4, 8, 24])
@pytest.mark.parametrize("v", [1, 2, 3])
def test_warm_up_is_megatrons(p, m, v):
    for rank in range(p):
        for group in {p, m} if v > 1 else {p}:
            found = megatron("get_pp_rank_microbatches")(
                m, v, group, p2p_communicator=communicator(p, rank, v if v > 1 else None)
            )
            assert schedules.warm_up(p, rank, m, v=v, group=group) == found[2]


@pytest.mark.parametrize(
    ("p", "m", "v", "group"), [(2, 4, 2, 2), (4, 8, 2, 4), (4, 8, 2, 8), (2, 8, 3, 3), (2, 5, 2, 3)]
)
def test_order_of_chunks_is_megatrons(p, m, v, group):
    table = megatron("get_schedule_table")(m, v, group)
    for order in schedules.interleaved(p, m, v, group=group):
        assert [(a.microbatch, a.chunk) for a in order if a.kind == "F"] == table
        assert [(a.microbatch, v - 1 - a.chunk) for a in order if a.kind == "B"] == table


def test_the_known_warm_up_of_4_ranks_and_2_chunks():
    first_backward = [next(i for i, a in enumerate(o) if a.kind == "B") for o in schedules.interleaved(4, 8, 2)]
    assert first_backward == [11, 9, 7, 5]  # warm-up 10, 8, 6, 4, then one more forward


@given(SIZES, st.integers(1, 3), st.integers(1, 5))
def test_gpipe_and_1f1b_have_the_same_bubble(sizes, tf, tb):
    p, m = sizes
    for make in (schedules.gpipe, schedules.one_f_one_b):
        found = schedules.simulate(make(p, m), tf=tf, tb=tb)
        assert found.makespan == (m + p - 1) * (tf + tb)
        assert found.of_ideal == Fraction(p - 1, m)
        assert found.of_total == Fraction(p - 1, m + p - 1)


@pytest.mark.parametrize(("p", "m", "v"), [(2, 4, 2), (4, 8, 2), (4, 16, 4), (8, 16, 2)])
def test_interleaving_divides_the_bubble_by_v(p, m, v):
    assert schedules.simulate(schedules.interleaved(p, m, v), tf=1, tb=2, v=v).of_ideal == Fraction(p - 1, m * v)


@given(SIZES)
def test_what_a_stage_holds(sizes):
    p, m = sizes
    assert [schedules.in_flight(o) for o in schedules.gpipe(p, m)] == [m] * p
    assert [schedules.in_flight(o) for o in schedules.one_f_one_b(p, m)] == [min(p - r, m) for r in range(p)]


def test_interleaving_holds_more():
    assert [schedules.in_flight(o) / 2 for o in schedules.interleaved(4, 8, 2)] == [5.5, 4.5, 3.5, 2.5]


@given(SIZES)
def test_every_microbatch_once_each_way(sizes):
    p, m = sizes
    for order in schedules.one_f_one_b(p, m):
        assert sorted(map(str, order)) == sorted(str(Action(k, 0, i)) for k in "FB" for i in range(m))


def test_a_deadlock_is_named():
    """With the warm-up of the last rank on all ranks nobody can start a backward."""
    order = [Action("F", 0, 0), Action("B", 0, 0)]
    blocked = [order, list(reversed(order))]
    with pytest.raises(ScheduleError, match="死锁：rank 0 等 a0 的输入；rank 1 等 a0 的输入"):
        schedules.simulate(blocked)


@pytest.mark.parametrize(("p", "m", "v"), [(4, 8, 2), (4, 16, 2), (8, 16, 2)])
def test_the_factor_two_hides_messages_and_costs_memory(p, m, v):
    """Readers ask why (p-r-1)*2: with free messages it changes nothing."""
    twice, once = schedules.interleaved(p, m, v), schedules.interleaved(p, m, v, lead=1)
    assert schedules.simulate(twice, v=v).makespan == schedules.simulate(once, v=v).makespan
    late = [schedules.simulate(o, v=v, tc=Fraction(1, 4)).makespan for o in (twice, once)]
    assert late[0] < late[1]
    assert schedules.in_flight(twice[0]) > schedules.in_flight(once[0])


@pytest.mark.parametrize(("p", "m", "v", "says"), [(1, 4, 2, "pp ≥ 2"), (4, 2, 2, "之间"), (4, 6, 2, "余 2")])
def test_sizes_that_do_not_fit(p, m, v, says):
    with pytest.raises(ScheduleError, match=says):
        schedules.interleaved(p, m, v)


def test_the_grid_shows_the_orders():
    assert schedules.grid(schedules.simulate(schedules.one_f_one_b(2, 2))) == [
        "A0B0····a0──··b0──",
        "··A0a0──B0b0──····",
    ]
