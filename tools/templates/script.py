"""torchrun --nproc-per-node 4 {script} --tp 2

{title}：这一章的机制，亲手做一遍。这里先建组，并核对 TP 组内的求和；换成本章自己的步骤。

Replays (Megatron-LM {ref}):
  megatron/core/parallel_state.py::initialize_model_parallel
Leaves out: everything but one all-reduce.
"""

import sys
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runnable.lab import launch  # isort: split

import torch
import torch.distributed as dist

from runnable.lab.ranks import Layout
from runnable.lab.run import Lab, Script


def run(lab: Lab) -> None:
    """Every rank brings its own number; the group's sum is known beforehand."""
    members = [rank for rank in range(lab.world) if rank // lab.layout.tp == lab.rank // lab.layout.tp]
    got = torch.tensor([float(lab.rank)], device=lab.device)
    if not lab.broken("no_sum"):
        dist.all_reduce(got, group=lab.group("tp"))
    lab.check("sum over TP", got.cpu(), torch.tensor([float(sum(members))]))
    lab.prove("组内求和")


def layout(args: Namespace, world: int) -> Layout:
    """TP as asked, all other ranks are replicas."""
    return Layout(world=world, tp=args.tp)


SCRIPT = Script(
    file=__file__,
    title="{title}",
    run=run,
    np=4,
    layout=layout,
    groups=("tp",),
    breaks={"no_sum": "不在 TP 组内求和"},
    arguments=lambda group: group.add_argument("--tp", type=int, default=2),
)

if __name__ == "__main__":
    launch.main(SCRIPT)
