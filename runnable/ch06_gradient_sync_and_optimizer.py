"""torchrun --nproc-per-node 4 runnable/ch06_gradient_sync_and_optimizer.py [--dist-opt] [--break dup_norm]

梯度进 bucket，最后一个 microbatch 填满一个 bucket 就发起通信；distributed optimizer 只存 1/DP 的状态；grad norm
跨 rank 求和且不重复计数。不用 torchrun：python runnable/ch06_gradient_sync_and_optimizer.py --np 4

Replays (Megatron-LM core_v0.17.1):
  megatron/core/distributed/param_and_grad_buffer.py::_ParamAndGradBuffer
  megatron/core/distributed/param_and_grad_buffer.py::_ParamAndGradBucketGroup.register_grad_ready
  megatron/core/distributed/param_and_grad_buffer.py::_ParamAndGradBucketGroup.start_grad_sync
  megatron/core/distributed/param_and_grad_buffer.py::_ParamAndGradBucketGroup.start_param_sync
  megatron/core/distributed/distributed_data_parallel.py::DistributedDataParallel._make_backward_post_hook
  megatron/core/optimizer/distrib_optimizer.py::DistributedOptimizer.step_with_ready_grads
  megatron/core/optimizer/clip_grads.py::get_grad_norm_fp32
  megatron/core/optimizer/clip_grads.py::clip_grad_by_total_norm_fp32
Leaves out: several optimizer instances, expert buffers, 16-bit parameters, coalesced buckets, parameter gather beside
the next forward, NaN checks; SGD with momentum stands for Adam.
"""

import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runnable.lab import launch  # isort: split

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from runnable.lab import overlap
from runnable.lab.bucket_report import expected_calls, show_buffers
from runnable.lab.buckets import Bucket, plan
from runnable.lab.mappings import copy_to_tp, reduce_from_tp
from runnable.lab.ranks import Layout, LayoutError
from runnable.lab.run import Lab, Script

S, B, H, M, STEPS, LR, MOMENTUM, CLIP = 4, 2, 12, 2, 2, 0.1, 0.9, 0.3
SPLIT = {"col": 0, "row": 1}  # parameter → dimension cut by TP; norm and bias are whole on every TP rank
Tensors = dict[str, Tensor]


class Buffers:
    """Flat parameters and gradients; the parameters and their main_grad are views of them."""

    def __init__(self, lab: Lab, model: dict[str, nn.Parameter]) -> None:
        self.lab, self.group, self.sharded, self.model = lab, lab.group("dp-cp"), lab.args.dist_opt, model
        sizes = {name: p.numel() for name, p in model.items()}
        self.buckets = plan(sizes, at_least=lab.args.bucket, ranks=self.group.size(), sharded=self.sharded)
        self.params = torch.zeros(self.buckets[-1].end, dtype=lab.dtype, device=lab.device)
        self.grads = torch.zeros_like(self.params)  # whole on every rank, also with the distributed optimizer
        self.microbatch, self.first_batch, self.log = 0, True, []
        self.ready: dict[int, set[str]] = {bucket.index: set() for bucket in self.buckets}
        self.sent: dict[int, overlap.Sent] = {}
        self.pace = overlap.Pace(lab, self.buckets, matrices=list(SPLIT))
        for bucket in self.buckets:
            for name, (start, end) in bucket.params.items():
                p = model[name]
                p.data = self.params[start:end].copy_(p.data.flatten()).view_as(p)
                p.main_grad = self.grads[start:end].view_as(p)
                p.register_post_accumulate_grad_hook(partial(self._hook, name, bucket))

    def own(self, flat: Tensor, bucket: Bucket) -> Tensor:
        """This rank's part of a bucket: its shard, or all of it without the distributed optimizer."""
        ranks = self.group.size() if self.sharded else 1
        return flat[bucket.shard(self.group.rank() % ranks, ranks)]

    def _hook(self, name: str, bucket: Bucket, p: nn.Parameter) -> None:
        """Runs when autograd has added to p.grad: the gradient moves to main_grad and may fill the bucket."""
        p.main_grad += p.grad
        p.grad = None
        self.pace.compute(f"{name}{self.microbatch}")
        last, always = self.microbatch == M - 1, self.lab.broken("each_microbatch")
        if self.lab.args.no_overlap or not (last or always):
            return
        self.ready[bucket.index].add(name)
        self.log.append(f"{name} 就绪")
        # In the first batch Megatron only counts which gradients arrive; the sync starts at the end.
        if self.ready[bucket.index] == bucket.params.keys() and (not self.first_batch or always):
            self.start(bucket)
            if not last:
                self.sent.pop(bucket.index).wait()

    def start(self, bucket: Bucket) -> None:
        """Pre-scale by 1/DP, then SUM: reduce-scatter to the owner of each shard, or all-reduce."""
        self.ready[bucket.index].clear()
        if self.lab.broken("no_dp"):
            return
        self.log.append(f"bucket {bucket.index} 发起")
        grads = self.grads[bucket.start : bucket.end]
        grads *= 1 if self.lab.broken("no_scale") else 1 / self.group.size()
        with self.lab.tracer.label(f"bucket {bucket.index}"):
            if self.sharded:
                mine = self.own(self.grads, bucket)
                work = dist.reduce_scatter_tensor(mine, grads.clone(), group=self.group, async_op=True)
            else:
                work = dist.all_reduce(grads, group=self.group, async_op=True)
        self.sent[bucket.index] = self.pace.link(f"S{bucket.index}", work)

    def finish(self) -> None:
        """Start what has not been started, wait for all: finish_grad_sync."""
        for bucket in [b for b in self.buckets if b.index not in self.sent]:
            self.start(bucket)
        while self.sent:
            self.sent.pop(min(self.sent)).wait()
        self.first_batch = False

    def gather_params(self) -> None:
        """All-gather the updated shards: start_param_sync."""
        for bucket in self.buckets:
            with self.lab.phase("param-sync"), self.lab.tracer.label(f"bucket {bucket.index}"):
                whole = self.params[bucket.start : bucket.end]
                dist.all_gather_into_tensor(whole, self.own(self.params, bucket).clone(), group=self.group)
            self.pace.link(f"G{bucket.index}").wait()


class Optimizer:
    """SGD with momentum over flat stretches: whole buckets, or this rank's shards of them."""

    def __init__(self, buffers: Buffers) -> None:
        self.buffers, self.lab = buffers, buffers.lab
        self.pieces = [(buffers.own(buffers.params, b), buffers.own(buffers.grads, b)) for b in buffers.buckets]
        self.state = [torch.zeros_like(param) for param, _ in self.pieces]
        keep = torch.ones_like(buffers.params)  # norm and bias are the same on TP ranks: they count once, on rank 0
        for bucket in buffers.buckets:
            for name, (start, end) in bucket.params.items():
                if name not in SPLIT and self.lab.place["tp"] and not self.lab.broken("dup_norm"):
                    keep[start:end] = 0
        self.keep = [buffers.own(keep, b) for b in buffers.buckets]

    def step(self) -> float:
        """Norm over all ranks that hold different numbers, clip, update; the norm before clipping."""
        square = sum((g * keep).square().sum() for (_, g), keep in zip(self.pieces, self.keep, strict=True))
        if not self.lab.broken("local_norm"):
            # Shards differ between replicas, so the distributed optimizer sums over DP too.
            dist.all_reduce(square, group=self.lab.group("tp-dp-cp" if self.buffers.sharded else "tp-pp"))
        norm = square.sqrt().item()
        for (param, grad), state in zip(self.pieces, self.state, strict=True):
            grad *= min(1.0, CLIP / (norm + 1e-6))
            state.mul_(MOMENTUM).add_(grad)
            param -= LR * state
        return norm


def forward(p: Tensors, x: Tensor, tp: dist.ProcessGroup | None = None) -> Tensor:
    """norm → Column → GeLU → Row; with `tp` on this rank's slices."""
    x = F.layer_norm(x, (H,)) * p["norm"]
    y = F.gelu(F.linear(copy_to_tp(x, tp) if tp else x, p["col"]))  # [s, b, f/t]
    partial = F.linear(y, p["row"])
    return (reduce_from_tp(partial, tp) if tp else partial) + p["bias"]  # [s, b, h]


def one_process(whole: Tensors, xs: Tensor, ys: Tensor) -> tuple[Tensors, Tensors, list[float]]:
    """The same steps in one process: last clipped gradients, parameters, norms."""
    p = {name: value.clone().requires_grad_() for name, value in whole.items()}
    state, norms = dict.fromkeys(p, 0), []
    for step in range(STEPS):  # xs, ys: [dp·m, steps, s, b, h]
        loss = sum((forward(p, x) - y).square().mean() for x, y in zip(xs[:, step], ys[:, step], strict=True)) / len(xs)
        grads = dict(zip(p, torch.autograd.grad(loss, list(p.values())), strict=True))
        norms.append(sum(g.square().sum().item() for g in grads.values()) ** 0.5)
        for name in p:
            grads[name] *= min(1.0, CLIP / (norms[-1] + 1e-6))
            state[name] = MOMENTUM * state[name] + grads[name]
            p[name].data -= LR * state[name]
    return grads, {name: value.detach() for name, value in p.items()}, norms


def run(lab: Lab) -> None:
    """Two steps: in the first the sync starts after backward, in the second inside it."""
    tp, dp = lab.layout.tp, lab.layout.dp
    lab.dims |= {"s": S, "b": B, "h": H, "f": 2 * H, "m": M, "t": tp, "tp": tp, "dp": dp}
    new = lambda *shape: torch.randn(*shape, dtype=lab.dtype)
    whole = {"norm": 1 + new(H) / 10, "col": new(2 * H, H) / 3, "row": new(H, 2 * H) / 4, "bias": new(H) / 10}
    xs, ys = new(dp * M, STEPS, S, B, H), new(dp * M, STEPS, S, B, H)
    with lab.alone():
        grads, params, norms = one_process(whole, xs, ys)
    cut = lambda name, value: value.chunk(tp, SPLIT[name])[lab.place["tp"]] if name in SPLIT else value
    model = {name: nn.Parameter(cut(name, whole[name]).to(lab.device, copy=True)) for name in whole}
    optimizer, found = Optimizer(buffers := Buffers(lab, model)), []
    for step in range(STEPS):
        buffers.grads.zero_()
        buffers.log.clear()
        buffers.pace.begin()
        for k in range(M):
            buffers.microbatch = k
            with lab.phase("forward"):
                x, want = (t[lab.place["dp"] * M + k, step].to(lab.device) for t in (xs, ys))
                loss = (forward(buffers.model, x, lab.group("tp")) - want).square().mean() / M
                buffers.pace.compute(f"F{k}")
            with lab.phase("backward"):
                loss.backward()
        with lab.phase("grad-sync"):
            buffers.finish()
        with lab.phase("optimizer"), torch.no_grad():
            found.append(optimizer.step())
            buffers.pace.compute("O")
        if buffers.sharded and not lab.broken("no_gather"):
            buffers.gather_params()
    lab.report.say(f"第 2 步最后一个 microbatch 的反向（overlap 时通信在反向结束前发起）：{' → '.join(buffers.log)}")
    flat = torch.zeros_like(buffers.grads, device="cpu")
    for bucket, (_, got) in zip(buffers.buckets, optimizer.pieces, strict=True):
        for name, (start, end) in bucket.params.items():
            flat[start:end] = cut(name, grads[name]).flatten()
        lab.check(f"grad bucket {bucket.index}", got, buffers.own(flat, bucket))
    for name, p in model.items():
        lab.check(f"{STEPS} 步后 {name}", p.data, cut(name, params[name]))
    lab.check("grad norm（每步）", torch.tensor(found, dtype=lab.dtype), torch.tensor(norms, dtype=lab.dtype))
    kind = "distributed optimizer" if buffers.sharded else "DDP"
    lab.prove(f"与单进程比较：{kind}，TP={tp} DP={dp} m={M}，{STEPS} 步（裁剪到 {CLIP}）")
    show_buffers(lab, buffers, optimizer)
    buffers.pace.show()
    if lab.args.broken is None:
        lab.expect(expected_calls(lab, len(buffers.buckets), m=M, steps=STEPS))


def layout(args: Namespace, world: int) -> Layout:
    """TP 2 where it divides; the other ranks are replicas."""
    args.dist_opt = args.dist_opt or args.broken in ("no_gather", "each_microbatch")
    found = Layout(world=world, tp=args.tp or (2 if world % 2 == 0 else 1))
    if 2 * H % found.tp or (args.broken and min(found.dp, found.tp) < 2):
        raise LayoutError(f"TP={found.tp} 要整除 f={2 * H}；--break 还要 TP ≥ 2 且 DP ≥ 2，请用 --np 4")
    return found


SCRIPT = Script(
    file=__file__,
    title="梯度同步、distributed optimizer、grad norm 与裁剪",
    run=run,
    np=4,
    layout=layout,
    groups=("tp", "dp-cp", "tp-pp", "tp-dp-cp"),
    breaks={
        "no_scale": "bucket 求和之前不乘 1/DP",
        "no_dp": "不同步梯度",
        "each_microbatch": "每个 microbatch 都 reduce-scatter（应只在最后一个；all-reduce 取平均时只是白费通信）",
        "dup_norm": "grad norm 把 TP 上重复的参数算了 t 次",
        "local_norm": "grad norm 不跨 rank 求和",
        "no_gather": "distributed optimizer 更新后不 all-gather 参数",
    },
    arguments=lambda group: (
        overlap.arguments(group),
        group.add_argument("--tp", type=int, help="TP 大小（默认 2）"),
        group.add_argument("--dist-opt", action="store_true", help="distributed optimizer：每个 rank 只更新 1/DP"),
        group.add_argument("--bucket", type=int, default=150, help="一个 bucket 至少几个数（默认 150）"),
    ),
)

if __name__ == "__main__":
    launch.main(SCRIPT)
