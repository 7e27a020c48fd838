"""Rank arithmetic against Megatron's own RankGenerator, taken from the pinned source."""

from __future__ import annotations

import ast
import itertools
import math
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnable.lab.pin import megatron_tree
from runnable.lab.ranks import DENSE_GROUPS, EXPERT_GROUPS, ORDER, Grid, Layout, LayoutError


@cache
def rank_generator() -> Any:
    """The class as it stands at the pin; only it and its helper are executed, not the module's imports."""
    source = (megatron_tree() / "megatron/core/parallel_state.py").read_text()
    wanted = {"RankGenerator", "generate_masked_orthogonal_rank_groups"}
    kept = [node for node in ast.parse(source).body if getattr(node, "name", None) in wanted]
    assert len(kept) == 2
    scope: dict[str, Any] = {}
    exec("from typing import *", scope)
    exec(compile(ast.Module(kept, []), "parallel_state.py", "exec"), scope)
    return scope["RankGenerator"]


def factorizations(n: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(n,)]
    return [(d, *rest) for d in range(1, n + 1) if n % d == 0 for rest in factorizations(n // d, parts - 1)]


def agree(sizes: dict[str, int], order: str, tokens: set[str]) -> None:
    theirs = rank_generator()(**sizes, order=order)
    ours = Grid(sizes, order)
    for token in tokens:
        assert ours.groups(token) == theirs.get_ranks(token), (sizes, order, token)


@pytest.mark.parametrize("order", [ORDER, "tp-cp-ep-pp-dp"])
def test_every_layout_up_to_64_ranks(order):
    """All sizes of the dense and of the expert grid, every group that Megatron asks for."""
    seen = 0
    for world in range(1, 65):
        for tp, cp, dp, pp in factorizations(world, 4):
            agree({"tp": tp, "cp": cp, "ep": 1, "dp": dp, "pp": pp}, order, set(DENSE_GROUPS.values()))
            seen += 1
        for tp, ep, dp, pp in factorizations(world, 4):
            agree({"tp": tp, "cp": 1, "ep": ep, "dp": dp, "pp": pp}, order, set(EXPERT_GROUPS.values()))
    assert seen == sum(len(factorizations(n, 4)) for n in range(1, 65)) > 1000


@pytest.mark.parametrize("order", ["-".join(p) for p in itertools.permutations(("tp", "cp", "ep", "dp", "pp"))])
def test_every_order(order):
    for tp, cp, dp, pp in factorizations(24, 4):
        agree({"tp": tp, "cp": cp, "ep": 1, "dp": dp, "pp": pp}, order, {"tp", "dp", "pp", "dp-cp", "tp-pp"})


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["tp", "cp", "dp", "pp"]), min_size=10, max_size=10), st.permutations(ORDER.split("-")))
def test_layouts_of_1024_ranks(owners, order):
    """Ten factors of two dealt out to the axes."""
    sizes = {axis: 2 ** owners.count(axis) for axis in ("tp", "cp", "dp", "pp")} | {"ep": 1}
    agree(sizes, "-".join(order), {"tp", "dp-cp", "pp"})


@pytest.mark.parametrize("order", ["tp-pp", "dp", "tp-dp-pp"])
def test_axes_left_out_of_the_order(order):
    sizes = {a: 2 if a in order.split("-") else 1 for a in ("tp", "cp", "ep", "dp", "pp")}
    agree(sizes, order, {"tp", "cp", "dp", "pp", "ep"})


@given(st.lists(st.integers(1, 4), min_size=5, max_size=5), st.permutations(ORDER.split("-")))
def test_rank_and_place_are_inverse(sizes, order):
    grid = Grid(dict(zip(("tp", "cp", "ep", "dp", "pp"), sizes, strict=True)), "-".join(order))
    assert grid.world == math.prod(sizes)
    for rank in range(min(grid.world, 200)):
        assert grid.rank(**grid.place(rank)) == rank


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"world": 6, "tp": 4}, "world size 6 不能被 tp×cp×pp = 4×1×1 = 4 整除"),
        ({"world": 8, "tp": 2, "ep": 8}, "etp×ep×pp = 2×8×1 = 16"),
        ({"world": 4, "tp": 0}, "tp=0"),
        ({"world": 4, "order": "tp-xx"}, "不认识的轴 xx"),
        ({"world": 4, "order": "tp-tp-dp-pp"}, "重复的轴"),
        ({"world": 4, "pp": 2, "order": "tp-dp"}, "pp=2，但顺序"),
        ({"world": 8, "tp": 2, "pp": 2, "ep": 2, "etp": 1, "order": "tp-pp-cp-ep-dp"}, "pp 组不同"),
        ({"world": 8, "pp": 2, "ep": 2, "order": "tp-cp-ep-pp-dp"}, "必须相等"),
    ],
)
def test_sizes_that_do_not_fit_are_told(wrong, says):
    with pytest.raises(LayoutError, match=says.replace("×", ".")):
        Layout(**wrong)
