"""torchrun --nproc-per-node 4 runnable/ch02_distributed_initialization.py --tp 2 --pp 2

每个 rank 是谁：坐标、所在的每个 process group、随机数种子。组由真实的 new_group 建立，成员由 all-gather 核对。
只看任意规模的分组：python runnable/ch02_distributed_initialization.py --np 1 --world 64 --tp 4 --pp 4 --cp 2

Replays (Megatron-LM core_v0.17.1):
  megatron/core/parallel_state.py::RankGenerator
  megatron/core/parallel_state.py::initialize_model_parallel
  megatron/core/parallel_state.py::default_embedding_ranks
  megatron/training/initialize.py::_set_random_seed
  megatron/core/tensor_parallel/random.py::model_parallel_cuda_manual_seed
  megatron/core/tensor_parallel/random.py::CudaRNGStatesTracker
Leaves out: hierarchical and hybrid CP groups, several distributed-optimizer instances, the extra gloo copies of the DP
groups, NCCL options, SHARP, an encoder of its own size, rank_offset.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runnable.lab import launch  # isort: split

import torch
import torch.distributed as dist

from runnable.lab import draw
from runnable.lab.ranks import DENSE_GROUPS, EXPERT_GROUPS, ORDER, PIPELINE_ENDS, SHORT, Layout, LayoutError
from runnable.lab.run import Lab, Script

SWAPPED = "tp-cp-ep-pp-dp"
"""What --use-tp-pp-dp-mapping asks for: replicas next to each other last, stages nearer."""
DUTY = {
    "tp": "同一层的切片：合并 partial output，分发 activation",
    "cp": "同一条样本的序列切片：交换 K/V",
    "pp": "相邻 stage：send/recv activation 与它的梯度",
    "dp": "同一份权重、不同样本",
    "dp-cp": "同步梯度、分片 optimizer state 的组（同一份权重的所有持有者）",
    "tp-pp": "一个完整的模型：grad norm 在这里求和",
    "embd": "首尾 stage 共享的 word embedding：同步梯度",
    "ep": "不同 expert：dispatch token",
    "edp": "同一份 expert 权重、不同 token",
}


class RandomStreams:
    """Named random streams: entering one switches the generator that dropout and init really use."""

    def __init__(self, seeds: dict[str, int]) -> None:
        self._states = {}
        for name, seed in seeds.items():
            torch.manual_seed(seed)
            self._states[name] = torch.get_rng_state()

    @contextmanager
    def fork(self, name: str) -> Iterator[None]:
        """Inside, numbers come from this stream; it goes on from there the next time."""
        outside = torch.get_rng_state()
        torch.set_rng_state(self._states[name])
        try:
            yield
        finally:
            self._states[name] = torch.get_rng_state()
            torch.set_rng_state(outside)


def seeds(lab: Lab) -> dict[str, int]:
    """Stream → seed of this rank."""
    place, expert = lab.place, lab.layout.expert.place(lab.rank)
    seed = lab.args.seed + (0 if lab.broken("pp_seed") else 100 * place["pp"])
    if lab.args.data_parallel_random_init:
        seed += 10 * place["dp"]
    return {
        "data-parallel-rng": seed,
        "model-parallel-rng": seed + 2718 + (0 if lab.broken("tp_seed") else place["tp"]),
        "expert-parallel-rng": seed + 1024 + 100 * expert["ep"] + expert["tp"],
    }


def make_groups(lab: Lab) -> dict[str, dist.ProcessGroup]:
    """All groups of the layout; this rank's one of each name."""
    used = Layout(**_sizes(lab.args, lab.world, SWAPPED)) if lab.broken("order") else lab.layout
    mine = {}
    for name, members in used.all_groups().items():
        for ranks in members:
            # Also for groups without this rank: new_group counts calls, and all ranks must count alike.
            group = dist.new_group(ranks, group_desc=name, timeout=lab.timeout)
            if lab.rank in ranks:
                mine[name] = group
    return mine


def check_groups(lab: Lab, groups: dict[str, dist.ProcessGroup]) -> None:
    """Ask the members themselves, and hold them against the coordinates: only a group's own axes may differ inside."""
    axes = DENSE_GROUPS | EXPERT_GROUPS
    for name, group in groups.items():
        found = torch.empty(group.size(), dtype=torch.int64, device=lab.device)
        dist.all_gather_into_tensor(found, torch.tensor([lab.rank], device=lab.device), group=group)
        grid = lab.layout.expert if name in EXPERT_GROUPS else lab.layout.dense
        if name in PIPELINE_ENDS:
            stages = [grid.rank(**(grid.place(lab.rank) | {"pp": pp})) for pp in range(lab.layout.pp)]
            want = sorted({stages[i] for i in PIPELINE_ENDS[name]})
        else:
            fixed = {a: v for a, v in grid.place(lab.rank).items() if a not in axes[name].split("-")}
            want = [r for r in range(lab.world) if fixed.items() <= grid.place(r).items()]
        lab.check(f"{name}", found.cpu(), torch.tensor(want))


def check_streams(lab: Lab) -> None:
    """Draw from each stream and ask which ranks drew the same."""
    mine = seeds(lab)
    streams = RandomStreams(mine)
    drawn = {}
    for name in mine:
        with streams.fork(name):
            drawn[name] = torch.rand(4).tolist()
    everyone = lab.gather((mine, drawn))
    grid = lab.layout.dense
    rows = []
    for rank, (numbers, _) in enumerate(everyone):
        place = " ".join(f"{a}{v}" for a, v in grid.place(rank).items() if grid.sizes[a] > 1)
        rows.append((rank, place, *numbers.values()))
    columns = [">rank", "坐标", *(f">{name}" for name in mine)]
    lab.report.table(f"随机数种子（--seed {lab.args.seed}）", columns, rows)
    same = {name: _partition([d[name] for _, d in everyone]) for name in mine}
    rows = [(name, _brief(parts)) for name, parts in same.items()]
    lab.report.table("抽到相同随机数的 rank", ["stream", "rank 集合"], rows)
    by = lambda *axes: _partition([tuple(grid.place(r)[a] for a in axes) for r in range(lab.world)])
    init = ("dp",) if lab.args.data_parallel_random_init else ()
    lab.require(
        same["data-parallel-rng"] == by("pp", *init), "同一 stage 的 rank 共用 data-parallel-rng，不同 stage 不同"
    )
    lab.require(
        same["model-parallel-rng"] == by("pp", "tp", *init), "model-parallel-rng 每个 (pp, tp) 一条，DP 副本相同"
    )


def run(lab: Lab) -> None:
    """Print the map, make the groups, ask the members, compare the streams."""
    lab.dims |= {axis: lab.layout.dense.sizes[axis] for axis in ("tp", "cp", "dp", "pp")} | {"ep": lab.layout.ep}
    shown = Layout(**_sizes(lab.args, lab.args.world, lab.args.order)) if lab.args.world else lab.layout
    if shown is not lab.layout:
        lab.report.say(f"以下是 world size {shown.world} 的分组（只算，不启动）")
        lab.report.rank_map(shown, ("tp", "dp", "pp"))
    rows = []
    for name, members in shown.all_groups().items():
        short = SHORT[name]
        rows.append((short, len(members), len(members[0]), _brief(members), DUTY.get(short, "")))
    title = f"全部 process group：world {shown.world}，order {shown.order}"
    lab.report.table(title, ["group", ">个数", ">大小", "成员", "职责"], rows)
    lab.pictures["grid"] = draw.rank_grid(shown)
    groups = make_groups(lab)
    with lab.phase("setup"):
        check_groups(lab, groups)
    lab.prove("真实 process group 的成员 = 由坐标推出的成员（每个 rank 各自核对）")
    check_streams(lab)


def _partition(values: list[object]) -> list[list[int]]:
    """Ranks with equal values, together."""
    found: dict[str, list[int]] = {}
    for rank, value in enumerate(values):
        found.setdefault(repr(value), []).append(rank)
    return sorted(found.values())


def _brief(groups: list[list[int]], *, width: int = 40) -> str:
    text = " ".join(str(g).replace(" ", "") for g in groups)
    return text if len(text) <= width else text[:width].rsplit(" ", 1)[0] + " …"


def _sizes(args: Namespace, world: int, order: str) -> dict[str, int | str]:
    return {"world": world, "tp": args.tp, "cp": args.cp, "ep": args.ep, "pp": args.pp, "etp": args.etp, "order": order}


def layout(args: Namespace, world: int) -> Layout:
    """As asked; with --world the real ranks are replicas."""
    if args.world:
        Layout(**_sizes(args, args.world, args.order))
        return Layout(world=world)
    found = Layout(**_sizes(args, world, args.order))
    needs = {"order": min(found.pp, found.dp), "tp_seed": found.tp, "pp_seed": found.pp}
    if needs.get(args.broken, 2) < 2:
        raise LayoutError(
            f"--break {args.broken} 在 tp={found.tp} pp={found.pp} dp={found.dp} 下看不出差别；请加大并行度"
        )
    return found


def arguments(group) -> None:
    """Sizes."""
    for axis in ("tp", "cp", "ep", "pp"):
        group.add_argument(f"--{axis}", type=int, default=1)
    group.add_argument("--etp", type=int, help="expert tensor parallel（默认与 tp 相同）")
    group.add_argument("--order", default=ORDER, help=f"rank 顺序（默认 {ORDER}）")
    group.add_argument("--world", type=int, help="只打印这个 world size 的分组")
    group.add_argument("--data-parallel-random-init", action="store_true", help="每个 DP 副本种子 +10·dp")


SCRIPT = Script(
    file=__file__,
    title="分布式初始化：rank、process group 与随机数种子",
    run=run,
    np=4,
    layout=layout,
    groups=(),
    breaks={
        "order": "用 tp-cp-ep-pp-dp 建组，却按 tp-cp-ep-dp-pp 算坐标",
        "tp_seed": "model-parallel-rng 的种子不加 tp rank",
        "pp_seed": "种子不加 100·pp rank",
    },
    arguments=arguments,
)

if __name__ == "__main__":
    launch.main(SCRIPT)
