"""torchrun --nproc-per-node 4 runnable/ch11_pipeline_schedules.py [--schedule interleaved] [--break scale]

流水线调度：GPipe、1F1B、interleaved 1F1B 的顺序、bubble 与峰值占用；再用真实的 send/recv 执行一遍，核对每个梯度。
不用 torchrun 也行：python runnable/ch11_pipeline_schedules.py --np 4 （自己启动 4 个 rank，gloo，CPU）。

Replays (Megatron-LM core_v0.17.1):
  megatron/core/pipeline_parallel/schedules.py::forward_backward_pipelining_without_interleaving
  megatron/core/pipeline_parallel/schedules.py::forward_backward_pipelining_with_interleaving
  megatron/core/pipeline_parallel/schedules.py::forward_step_calc_loss
  megatron/core/pipeline_parallel/schedules.py::backward_step
  megatron/core/pipeline_parallel/p2p_communication.py::_batched_p2p_ops
The orders are data (runnable/lab/schedules.py); this script carries them out.
Leaves out: deallocate_output_tensor (ch05), data parallel sync, activation checkpointing, forward_only. With
interleaving Megatron fuses the sends and receives of both directions into one call and overlaps them with compute; here
each direction has its own group and its own calls, so that no tag is needed. GPipe is not in Megatron.
Shapes: every activation and every gradient between stages is [s, b, h].
"""

import sys
import time
from argparse import Namespace
from collections import Counter
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runnable.lab import launch  # isort: split

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from runnable.lab import schedules
from runnable.lab.compare import ORDERS, compare_measured, compare_schedules
from runnable.lab.ranks import Layout, LayoutError
from runnable.lab.run import Lab, Script
from runnable.lab.schedules import Action

S, B, H, LR = 4, 2, 8, 0.1


class Stage(nn.Module):
    """One model chunk: a residual linear layer."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(F.linear(x, self.weight, self.bias))  # [s, b, h]


class Pipeline:
    """One rank's part: its chunks, what it holds for backward, and its neighbours."""

    def __init__(self, lab: Lab, chunks: dict[int, Stage], xs: Tensor, masks: Tensor) -> None:
        self.lab, self.chunks, self.xs, self.masks = lab, chunks, xs, masks
        self.p, self.r, self.m = lab.layout.pp, lab.place["pp"], len(xs)
        self.last = self.p * len(chunks) - 1
        self.held: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        self.flying: list[tuple[dist.Work, Tensor]] = []
        self.peak, self.done, self.loss = 0, [], 0.0

    def run(self, order: list[Action]) -> None:
        """Carry out the order: before each action receive its input, after it send its output.

        Where 1F1B turns from forward to backward (or back) sending and receiving are one call, as Megatron's
        send_forward_recv_backward and send_backward_recv_forward.
        """
        came = None
        for now, after in zip(order, [*order[1:], None], strict=True):
            if came is None and self._source(now) is not None:
                (came,) = self._exchange(now, receive=now)
            out = self._compute(now, came)
            came = None
            turns = after is not None and after.kind != now.kind and self._source(after) is not None
            if turns and self.lab.args.schedule != "interleaved":
                (came,) = self._exchange(now, send=out, receive=after)
            elif self._target(now) is not None:
                self._exchange(now, send=out)
        for work, _ in self.flying:
            work.wait()

    def _compute(self, action: Action, came: Tensor | None) -> Tensor:
        kind, chunk, k, v = action.kind, action.chunk, action.microbatch, len(self.chunks)
        stage = chunk * self.p + self.r
        phase, key, broken = ("forward" if kind == "F" else "backward"), (chunk, k), self.lab.broken
        with self.lab.phase(phase), self.lab.span(str(action), phase):
            time.sleep(float(self.lab.args.tf if kind == "F" else self.lab.args.tb) * self.lab.args.sleep / v / 1000)
            self.done.append(action)
            if kind == "F":
                # What arrives is a leaf: its .grad is what goes back. No graph reaches across ranks.
                x = (self.xs[k] if came is None else came).requires_grad_()
                y = self.chunks[chunk](x)
                if stage == self.last:
                    y = (y.square().mean(-1) * self.masks[k]).sum() / self.masks[k].sum()
                    y = y if broken("scale") else y / self.m
                    self.loss += y.item()
                self.held[key] = x, y
                self.peak = max(self.peak, len(self.held))
                return y.detach()
            x, y = self.held.pop(key)
            if broken("zero_each"):
                self.chunks[chunk].zero_grad()
            torch.autograd.backward(y, grad_tensors=came)
            return x.grad / self.m if broken("scale_each_stage") and stage < self.last else x.grad

    def _source(self, action: Action) -> int | None:
        """The pipeline rank that an action's input comes from; None when it has it here."""
        stage = action.chunk * self.p + self.r
        if action.kind == "F":
            return None if stage == 0 else (self.r - 1) % self.p
        return None if stage == self.last else (self.r + 1) % self.p

    def _target(self, action: Action) -> int | None:
        stage = action.chunk * self.p + self.r
        if action.kind == "F":
            return None if stage == self.last else (self.r + 1) % self.p
        return None if stage == 0 else (self.r - 1) % self.p

    def _exchange(self, now: Action, *, send: Tensor | None = None, receive: Action | None = None) -> list[Tensor]:
        """Send the output of `now` and/or receive the input of `receive`."""
        ops, got, marks = [], [], []
        if send is not None and self._target(now) is not None:
            ops.append(dist.P2POp(dist.isend, send, group=self._group(now.kind), group_peer=self._target(now)))
            marks.append(mark(now))
        if receive is not None:
            got.append(torch.empty(S, B, H, dtype=self.lab.dtype, device=self.lab.device))
            group, source = self._group(receive.kind), self._source(receive)
            ops.append(dist.P2POp(dist.irecv, got[0], group=group, group_peer=source))
            marks.append(mark(receive))
        with self.lab.tracer.marks(marks):
            works = dist.batch_isend_irecv(ops)
        if receive is None and self.lab.args.schedule == "interleaved":
            self.flying += [(work, send) for work in works]  # waiting here could block a ring of ranks
        else:
            for work in works:
                work.wait()
        return got

    def _group(self, kind: str) -> dist.ProcessGroup:
        """Messages of a group keep their order, so with interleaving each direction needs its own."""
        return self.lab.group("pp" if kind == "F" or self.lab.args.schedule != "interleaved" else "pp-back")


def mark(action: Action) -> tuple[str, str]:
    """Phase and label of a message."""
    return "forward" if action.kind == "F" else "backward", f"microbatch {action.microbatch} chunk {action.chunk}"


def one_process(weights: list[tuple[Tensor, Tensor]], xs: Tensor, masks: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The same step in one process: gradients of every stage, in order."""
    stages = [Stage(*w) for w in weights]
    for x, mask in zip(xs, masks, strict=True):
        for stage in stages:
            x = stage(x)
        ((x.square().mean(-1) * mask).sum() / mask.sum() / len(xs)).backward()
    return [(stage.weight.grad, stage.bias.grad) for stage in stages]


def run(lab: Lab) -> None:
    """Compare the schedules on paper, then run one of them for real."""
    p, m, v, name = lab.layout.pp, lab.args.m, chunks_of(lab.args), lab.args.schedule
    lab.dims |= {"s": S, "b": B, "h": H, "m": m, "p": p, "pp": p, "v": v}
    compare_schedules(lab, p, m)
    orders = ORDERS[name](p, m, v)

    new = lambda *shape: torch.randn(*shape, dtype=lab.dtype)
    weights = [(new(H, H) / 3, new(H) / 10) for _ in range(p * v)]
    xs, masks = new(m, S, B, H), (torch.rand(m, S, B) < torch.linspace(0.2, 0.9, m)[:, None, None]).to(lab.dtype)
    masks[:, 0] = 1
    with lab.alone():
        grads = one_process(weights, xs, masks)
    # Chunk c of rank r is stage c·p + r: stage 0 … p-1 are the first chunks of all ranks.
    r = lab.place["pp"]
    place = (lambda c: r * v + c) if lab.broken("chunk_place") else (lambda c: c * p + r)
    chunks = {c: Stage(*weights[place(c)]).to(lab.device) for c in range(v)}
    pipeline = Pipeline(lab, chunks, xs.to(lab.device), masks.to(lab.device))
    pipeline.run(orders[r])

    if lab.args.sleep:
        compare_measured(lab, schedules.simulate(orders, tf=lab.args.tf, tb=lab.args.tb, v=v))
    named, reference = {}, {}
    for c, stage in chunks.items():
        for i, part in enumerate(("weight", "bias")):
            label = f"stage {c * p + r:2} {part}"
            named[label] = getattr(stage, part)
            reference[label] = weights[c * p + r][i], grads[c * p + r][i]
    lab.sgd_step(named.items(), lr=LR, reference=reference)
    lab.prove(f"与单进程比较：{name}，PP={p} m={m} v={v}，mask 不等长")
    lab.require(pipeline.done == orders[r], "执行顺序 = 调度数据")
    lab.require(pipeline.peak == schedules.in_flight(orders[r]), "实际持有的 microbatch 峰值 = 模拟")
    calls = Counter(e.kind for e in lab.tracer.events)
    want = sum(m * (pipeline._target(Action(k, c, 0)) is not None) for k in "FB" for c in range(v))
    lab.require(calls["send"] == want, f"send 次数 = 公式（m × 有下家的 chunk 数，rank 0：{want}）")


def chunks_of(args: Namespace) -> int:
    """Model chunks a rank holds."""
    return max(2, args.v) if args.schedule == "interleaved" else 1


def layout(args: Namespace, world: int) -> Layout:
    """All ranks are one pipeline."""
    if args.broken == "chunk_place":
        args.schedule = "interleaved"
    try:
        ORDERS[args.schedule](world, args.m, chunks_of(args))
    except schedules.ScheduleError as error:
        raise LayoutError(str(error)) from None
    silent = args.broken == "scale_each_stage" and world * chunks_of(args) < 3
    if args.broken and (world == 1 or silent):
        raise LayoutError("--break 要 PP ≥ 2，scale_each_stage 要 3 个以上 stage；请用 --np 4")
    return Layout(world=world, pp=world)


def arguments(group) -> None:
    """Which schedule, how many microbatches, what they cost."""
    group.add_argument("--schedule", choices=tuple(ORDERS), default="1f1b", help="真实执行哪一种（默认 1f1b）")
    group.add_argument("--m", type=int, default=8, help="microbatch 数（默认 8）")
    group.add_argument("--v", type=int, default=2, help="interleaved 时每个 rank 的 chunk 数（默认 2）")
    group.add_argument("--tf", type=Fraction, default=Fraction(1), help="前向耗时（默认 1）")
    group.add_argument("--tb", type=Fraction, default=Fraction(2), help="反向耗时（默认 2）")
    group.add_argument(
        "--sleep", type=float, default=0, help="每单位耗时睡几毫秒：实测 bubble；加 --chrome F.json 另画 F.svg"
    )


SCRIPT = Script(
    file=__file__,
    title="流水线调度：GPipe / 1F1B / interleaved 1F1B",
    run=run,
    np=4,
    layout=layout,
    groups=("pp", "pp-back"),
    preload=("torch.fx.experimental.symbolic_shapes",),
    breaks={
        "scale": "loss 不除以 microbatch 数 m",
        "scale_each_stage": "除最后一个外，每个 stage 把送回上一级的梯度再除以 m（最后两个 stage 的梯度不变）",
        "zero_each": "每个 microbatch 的反向之前清零梯度（不累加）",
        "chunk_place": "rank 0 拿 stage 0, 1，rank 1 拿 stage 2, 3（应为 stage c·p + r）",
    },
    arguments=arguments,
)

if __name__ == "__main__":
    launch.main(SCRIPT)
