"""torchrun --nproc-per-node 4 runnable/ch07_checkpointing.py [--dir DIR] [--break no_optimizer]

分片 checkpoint：在 TP=2 存，在 TP=1、2、4 读（权重与 optimizer state）；同一布局恢复后 loss 逐 bit 相同。
不用 torchrun：python runnable/ch07_checkpointing.py --np 4 。中断与恢复：加 --dir D --die-at 3，再去掉 --die-at。

Replays (Megatron-LM core_v0.17.1):
  megatron/training/checkpointing.py::save_checkpoint
  megatron/training/checkpointing.py::load_checkpoint
  megatron/training/checkpointing.py::get_checkpoint_tracker_filename
  megatron/core/dist_checkpointing/serialization.py::save
  megatron/core/dist_checkpointing/serialization.py::load
  megatron/core/dist_checkpointing/mapping.py::ShardedTensor
Leaves out: the distributed optimizer's flat shards (fully_reshardable in Megatron turns them back into tensors),
asynchronous and parallel saving, pipeline stages, strictness about missing keys. The storage is torch's own
torch.distributed.checkpoint, which Megatron's torch_dist format also writes: a DTensor stands for ShardedTensor, and
the step count is a tensor in it (Megatron: common.pt).
Shapes: fc1 [f/t, h], fc2 [h, f/t], norm [h]; Adam's exp_avg and exp_avg_sq are cut like their parameter.
"""

import os
import shutil
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runnable.lab import launch  # isort: split

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from runnable.lab.mappings import copy_to_tp, reduce_from_tp
from runnable.lab.ranks import Layout, LayoutError
from runnable.lab.run import Lab, Script
from runnable.lab.sync import sum_flat

S, B, H, LR, STEPS, SAVED_AT, GLOBAL_BATCH = 4, 2, 8, 0.05, 4, 2, 4
SPLIT = {"fc1": 0, "fc2": 1}
TRACKER = "latest_checkpointed_iteration.txt"


class Trainer:
    """A model in one layout, its Adam state, and where it is in the data."""

    def __init__(self, lab: Lab, tp: int, whole: dict[str, Tensor]) -> None:
        self.lab, self.layout = lab, Layout(world=lab.world, tp=tp)
        grid = self.layout.dense
        self.place = grid.place(lab.rank)
        self.groups = {}
        for axis in ("dp", "tp"):
            for ranks in grid.groups(axis):
                desc = {"dp": "DATA_PARALLEL_GROUP", "tp": "TENSOR_MODEL_PARALLEL_GROUP"}[axis]
                group = dist.new_group(ranks, group_desc=desc, timeout=lab.timeout)
                if lab.rank in ranks:
                    self.groups[axis] = group
        world = torch.arange(lab.world).view(self.layout.dp, tp)
        self.mesh = DeviceMesh.from_group(
            [self.groups["dp"], self.groups["tp"]], lab.device.type, mesh=world, mesh_dim_names=("dp", "tp")
        )
        self.params = {name: self.cut(name, value).requires_grad_() for name, value in whole.items()}
        self.state = {
            f"{kind}.{name}": torch.zeros_like(p)
            for name, p in self.params.items()
            for kind in ("exp_avg", "exp_avg_sq")
        }
        self.done = torch.zeros((), dtype=torch.int64)

    def cut(self, name: str, value: Tensor) -> Tensor:
        """This TP rank's slice."""
        parts = value.chunk(self.layout.tp, SPLIT[name]) if name in SPLIT else [value] * self.layout.tp
        return parts[self.place["tp"]].to(self.lab.device, copy=True).detach()

    def step(self, batch: Tensor, target: Tensor) -> float:
        """One Adam step on the global batch [4, s, b, h], shared out among the replicas; the global loss."""
        p, tp = self.params, self.groups["tp"]
        total = torch.zeros((), dtype=self.lab.dtype, device=self.lab.device)
        for index in range(self.place["dp"], GLOBAL_BATCH, self.layout.dp):
            with self.lab.phase("forward"):
                x = F.layer_norm(batch[index], (H,)) * p["norm"]
                y = reduce_from_tp(F.linear(F.gelu(F.linear(copy_to_tp(x, tp), p["fc1"])), p["fc2"]), tp)
                loss = (y - target[index]).square().mean() / GLOBAL_BATCH
            with self.lab.phase("backward"):
                loss.backward()
            total += loss.detach()
        with self.lab.phase("grad-sync"):
            sum_flat([q.grad for q in p.values()], self.groups["dp"])
        with self.lab.phase("logging"):
            dist.all_reduce(total, group=self.groups["dp"])
        self.done += 1
        with torch.no_grad():
            for name, q in p.items():
                m, v = self.state[f"exp_avg.{name}"], self.state[f"exp_avg_sq.{name}"]
                m.lerp_(q.grad, 0.1)
                v.lerp_(q.grad.square(), 0.01)
                n = int(self.done)
                q -= LR * (m / (1 - 0.9**n)) / ((v / (1 - 0.99**n)).sqrt() + 1e-8)
                q.grad = None
        return total.item()

    def sharded(self) -> dict[str, Tensor]:
        """Name → DTensor: the whole tensor's shape, and that this rank holds this piece of it (or a replica)."""
        found: dict[str, Tensor] = {"iteration": self.done}
        for key, value in [*self.params.items(), *self.state.items()]:
            name = key.rsplit(".", 1)[-1]
            cut = Shard(SPLIT[name]) if name in SPLIT else Replicate()
            found[key] = DTensor.from_local(value.detach(), self.mesh, (Replicate(), cut), run_check=False)
        return found

    def save(self, folder: Path) -> None:
        """Write all pieces, then say in the tracker that this iteration is whole: every rank calls this."""
        if self.lab.broken("rank0_saves") and self.lab.rank:
            return
        with self.lab.phase("checkpoint"):
            dcp.save(self.sharded(), checkpoint_id=folder / f"iter_{int(self.done):07d}")
            if self.lab.rank == 0:
                draft = folder / f".{TRACKER}"
                draft.write_text(str(int(self.done)))
                draft.replace(folder / TRACKER)  # last, and in one step: a killed save leaves the old one in force
            dist.barrier()

    def load(self, folder: Path) -> bool:
        """Read this layout's pieces of the last whole checkpoint, whoever wrote it; False when there is none."""
        if not (folder / TRACKER).is_file():
            return False
        iteration = int((folder / TRACKER).read_text())
        wanted = self.sharded()
        if self.lab.broken("no_optimizer"):
            wanted = {key: value for key, value in wanted.items() if not key.startswith("exp_avg")}
        if self.lab.broken("no_iteration"):
            del wanted["iteration"]
        with self.lab.phase("checkpoint"), torch.no_grad():
            dcp.load(wanted, checkpoint_id=folder / f"iter_{iteration:07d}")
        return True


def run(lab: Lab) -> None:
    """Train and save in the middle; load in every layout, go on, compare; then the same over a kill, with --dir."""
    lab.dims |= {"s": S, "b": B, "h": H, "f": 4 * H, "tp": lab.layout.tp, "dp": lab.layout.dp}
    new = lambda *shape: torch.randn(*shape, dtype=lab.dtype)
    whole = {"norm": 1 + new(H) / 10, "fc1": new(4 * H, H) / 3, "fc2": new(H, 4 * H) / 6}
    data = new(2, STEPS, GLOBAL_BATCH, S, B, H).to(lab.device)  # inputs and targets of every step
    if lab.args.dir:
        return resume(lab, whole, data, Path(lab.args.dir))
    # Relative from here on: plans and metadata carry the path, and their size is part of the trace.
    scratch = lab.gather(tempfile.mkdtemp(prefix="ch07-") if lab.rank == 0 else None)[0]
    here, folder = Path.cwd(), Path()
    os.chdir(scratch)
    trainer, losses = Trainer(lab, lab.layout.tp, whole), []
    for step in range(STEPS):
        if step == SAVED_AT:
            trainer.save(folder)
        losses.append(trainer.step(*data[:, step]))
    files = sorted(p.name for p in (folder / f"iter_{SAVED_AT:07d}").iterdir())
    lab.report.say(f"iter_{SAVED_AT:07d}/：{' '.join(files)}（__r_k：第 r 个 rank 写的第 k 个文件，与 TP 无关）")
    rows = [(f"TP={lab.layout.tp} DP={lab.layout.dp}", "不中断", *(f"{x:.6f}" for x in losses[SAVED_AT:]), "")]
    for tp in (n for n in (1, 2, 4) if lab.world % n == 0 and GLOBAL_BATCH % (lab.world // n) == 0):
        again = Trainer(lab, tp, {name: torch.zeros_like(value) for name, value in whole.items()})
        again.load(folder)
        start = 0 if lab.broken("no_data_position") else SAVED_AT
        after = [again.step(*data[:, start + k]) for k in range(STEPS - SAVED_AT)]
        same = tp == lab.layout.tp
        tolerance = 0.0 if same else 1e-5 if lab.dtype == torch.float32 else 1e-12
        lab.check(f"loss，TP={tp} 恢复", torch.tensor(after), torch.tensor(losses[SAVED_AT:]), tolerance=tolerance)
        for name, p in again.params.items():
            full = DTensor.from_local(trainer.params[name].detach(), trainer.mesh, trainer.sharded()[name].placements)
            with lab.tracer.paused():
                want = again.cut(name, full.full_tensor())
            lab.check(f"参数 {name}，TP={tp} 恢复", p, want, tolerance=tolerance)
        rows.append(
            (
                f"TP={tp} DP={again.layout.dp}",
                "恢复",
                *(f"{x:.6f}" for x in after),
                "逐 bit 相同" if same else "只差舍入",
            )
        )
    lab.prove(f"TP={lab.layout.tp} 存，TP=1/2/4 读：继续训练 {STEPS - SAVED_AT} 步")
    lab.report.table("保存之后各步的 loss", ["布局", "", ">step 2", ">step 3", "应当"], rows)
    os.chdir(here)
    if lab.rank == 0:
        shutil.rmtree(scratch)


def resume(lab: Lab, whole: dict[str, Tensor], data: Tensor, folder: Path) -> None:
    """Go on from what lies in the folder, save after every step, and perhaps die in one."""
    folder.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(lab, lab.layout.tp, whole)
    found = trainer.load(folder)
    lab.report.say(f"从第 {int(trainer.done)} 步恢复" if found else "没有 checkpoint：从头开始")
    while int(trainer.done) < STEPS:
        loss = trainer.step(*data[:, int(trainer.done)])
        lab.report.say(f"step {int(trainer.done)} loss {loss.hex()}")
        first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"  # an elastic restart lives
        if int(trainer.done) == lab.args.die_at and lab.rank == lab.world - 1 and first:
            os._exit(9)  # before its pieces are written
        trainer.save(folder)


def layout(args: Namespace, world: int) -> Layout:
    """Save at TP 2 where it divides."""
    found = Layout(world=world, tp=args.tp or (2 if world % 2 == 0 else 1))
    if 4 * H % found.tp or GLOBAL_BATCH % found.dp:
        raise LayoutError(f"TP={found.tp} 要整除 f={4 * H}，DP={found.dp} 要整除 global batch {GLOBAL_BATCH}")
    if args.broken == "rank0_saves" and world < 2:
        raise LayoutError("--break rank0_saves 要至少 2 个 rank")
    return found


SCRIPT = Script(
    file=__file__,
    title="分片 checkpoint：换布局读取，中断后恢复",
    run=run,
    np=4,
    layout=layout,
    groups=(),
    preload=("torch._dynamo",),
    breaks={
        "no_optimizer": "恢复时不读 optimizer state",
        "no_iteration": "恢复时不读已完成的步数（Adam 的 bias correction 从头算）",
        "no_data_position": "恢复后从第一个 batch 重新读数据",
        "rank0_saves": "只有 rank 0 调用 save（其余 rank 不来，超时）",
    },
    arguments=lambda group: (
        group.add_argument("--tp", type=int, help="存的时候的 TP（默认 2）"),
        group.add_argument("--dir", help="checkpoint 目录：存在就从它恢复"),
        group.add_argument("--die-at", type=int, help="与 --dir 一起：最后一个 rank 在这一步存之前退出"),
    ),
)

if __name__ == "__main__":
    launch.main(SCRIPT)
