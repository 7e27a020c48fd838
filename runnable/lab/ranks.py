"""Which rank sits where: coordinates and groups from sizes and an order string.

Replays `megatron/core/parallel_state.py::RankGenerator` and the group list of
`megatron/core/parallel_state.py::initialize_model_parallel`. Pure arithmetic: no process, no torch.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Self

ORDER = "tp-cp-ep-dp-pp"
AXES = ("tp", "cp", "ep", "dp", "pp")

# Megatron's own group names, in the order in which it makes them, and the axes that a group of that name runs over.
# Expert groups are counted on the expert grid, where `tp` is the expert tensor size, `dp` the expert data size and cp
# is 1.
DENSE_GROUPS = {
    "DATA_PARALLEL_GROUP_WITH_CP": "dp-cp",
    "DATA_PARALLEL_GROUP": "dp",
    "CONTEXT_PARALLEL_GROUP": "cp",
    "MODEL_PARALLEL_GROUP": "tp-pp",
    "TENSOR_MODEL_PARALLEL_GROUP": "tp",
    "PIPELINE_MODEL_PARALLEL_GROUP": "pp",
    "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP": "tp-dp-cp",
    "TENSOR_AND_DATA_PARALLEL_GROUP": "tp-dp",
    "TENSOR_AND_CONTEXT_PARALLEL_GROUP": "tp-cp",
}
EXPERT_GROUPS = {
    "EXPERT_MODEL_PARALLEL_GROUP": "ep",
    "EXPERT_TENSOR_PARALLEL_GROUP": "tp",
    "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP": "tp-ep",
    "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP": "tp-ep-pp",
    "EXPERT_DATA_PARALLEL_GROUP": "dp",
}
PIPELINE_ENDS = {"EMBEDDING_GROUP": (0, -1), "POSITION_EMBEDDING_GROUP": (0,)}
"""Groups made of chosen stages of each pipeline group."""

SHORT = {
    **DENSE_GROUPS,
    "EXPERT_MODEL_PARALLEL_GROUP": "ep",
    "EXPERT_TENSOR_PARALLEL_GROUP": "etp",
    "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP": "etp-ep",
    "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP": "etp-ep-pp",
    "EXPERT_DATA_PARALLEL_GROUP": "edp",
    "EMBEDDING_GROUP": "embd",
    "POSITION_EMBEDDING_GROUP": "pos-embd",
    "INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP": "dist-opt",
    "default_pg": "world",
}
"""What the tables call a group."""


class LayoutError(Exception):
    """Sizes that do not fit each other; the message says which and what would fit."""


@dataclass(frozen=True)
class Grid:
    """A mixed-radix number system: the leftmost axis of `order` varies fastest with the rank."""

    sizes: dict[str, int]
    order: str = ORDER
    axes: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        named = tuple(self.order.lower().split("-"))
        if unknown := [axis for axis in named if axis not in AXES]:
            raise LayoutError(f"顺序 {self.order!r} 里有不认识的轴 {', '.join(unknown)}；可用：{'-'.join(AXES)}")
        if len(set(named)) != len(named):
            raise LayoutError(f"顺序 {self.order!r} 里有重复的轴")
        # An axis left out of the order must have size 1; it then goes last, where it changes nothing.
        left_out = [axis for axis in ("tp", "pp", "dp", "ep", "cp") if axis not in named]
        if big := [axis for axis in left_out if self.sizes[axis] != 1]:
            raise LayoutError(f"{', '.join(f'{a}={self.sizes[a]}' for a in big)}，但顺序 {self.order!r} 没有写它")
        object.__setattr__(self, "axes", (*named, *left_out))

    @property
    def world(self) -> int:
        return math.prod(self.sizes.values())

    def rank(self, **place: int) -> int:
        """The rank at these coordinates (axes left out: 0)."""
        rank, stride = 0, 1
        for axis in self.axes:
            rank += place.get(axis, 0) * stride
            stride *= self.sizes[axis]
        return rank

    def place(self, rank: int) -> dict[str, int]:
        """The coordinates of a rank: the inverse of `rank`."""
        place = {}
        for axis in self.axes:
            rank, place[axis] = divmod(rank, self.sizes[axis])
        return place

    def groups(self, token: str) -> list[list[int]]:
        """All groups over the axes of `token` ("tp", "dp-cp", …): the other axes are held fixed, one group for each.

        Groups and members both count with the leftmost axis of the *order* fastest, whatever the token's own order.
        """
        inside = [axis for axis in self.axes if axis in token.split("-")]
        outside = [axis for axis in self.axes if axis not in inside]
        moves = self._offsets(inside)
        return [[start + move for move in moves] for start in self._offsets(outside)]

    def _offsets(self, axes: list[str]) -> list[int]:
        """What every setting of these axes adds to the rank, the leftmost axis fastest."""
        steps = [[self.rank(**{axis: value}) for value in range(self.sizes[axis])] for axis in reversed(axes)]
        return [sum(chosen) for chosen in itertools.product(*steps)]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Sizes of every kind of parallelism. `dp` follows from the world size."""

    world: int
    tp: int = 1
    cp: int = 1
    ep: int = 1
    pp: int = 1
    etp: int | None = None
    """Expert tensor parallel size; None means the same as `tp`, as in Megatron."""
    order: str = ORDER

    def __post_init__(self) -> None:
        for name in ("world", "tp", "cp", "ep", "pp"):
            if getattr(self, name) < 1:
                raise LayoutError(f"{name}={getattr(self, name)}：必须 ≥ 1")
        for product, text in (
            (self.tp * self.cp * self.pp, f"tp×cp×pp = {self.tp}×{self.cp}×{self.pp}"),
            (self.expert_tp * self.ep * self.pp, f"etp×ep×pp = {self.expert_tp}×{self.ep}×{self.pp}"),
        ):
            if self.world % product:
                raise LayoutError(
                    f"world size {self.world} 不能被 {text} = {product} 整除；请用 {product} 的倍数个进程，或改小并行度"
                )
        if self.pp > 1 and not self.order.endswith("pp") and self.edp != self.dp:
            raise LayoutError(f"顺序 {self.order!r} 不以 pp 结尾时，dp={self.dp} 与 edp={self.edp} 必须相等")
        if self.dense.groups("pp") != self.expert.groups("pp"):
            raise LayoutError(f"顺序 {self.order!r} 下，专家网格与稠密网格的 pp 组不同")

    @property
    def expert_tp(self) -> int:
        return self.tp if self.etp is None else self.etp

    @property
    def dp(self) -> int:
        return self.world // (self.tp * self.cp * self.pp)

    @property
    def edp(self) -> int:
        return self.world // (self.expert_tp * self.ep * self.pp)

    @property
    def dense(self) -> Grid:
        """The grid of attention and dense layers: ep is 1 there."""
        return Grid({"tp": self.tp, "cp": self.cp, "ep": 1, "dp": self.dp, "pp": self.pp}, self.order)

    @property
    def expert(self) -> Grid:
        """The grid of expert layers: cp is 1 there."""
        return Grid({"tp": self.expert_tp, "cp": 1, "ep": self.ep, "dp": self.edp, "pp": self.pp}, self.order)

    def all_groups(self) -> dict[str, list[list[int]]]:
        """Every group that Megatron makes for this layout, by Megatron's own name, in its order of making them."""
        found = {}
        for name, axes in DENSE_GROUPS.items():
            found[name] = self.dense.groups(axes)
            if name == "PIPELINE_MODEL_PARALLEL_GROUP":
                for ends, stages in PIPELINE_ENDS.items():
                    found[ends] = [sorted({group[stage] for stage in stages}) for group in found[name]]
        return found | {name: self.expert.groups(axes) for name, axes in EXPERT_GROUPS.items()}

    @classmethod
    def data_parallel(cls, *, dp: int, tp: int = 1, cp: int = 1, pp: int = 1) -> Self:
        """The layout with this many replicas."""
        return cls(world=dp * tp * cp * pp, tp=tp, cp=cp, pp=pp)
