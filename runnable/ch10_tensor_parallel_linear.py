"""torchrun --nproc-per-node 4 runnable/ch10_tensor_parallel_linear.py [--sp] [--break no_f]

Column/Row parallel 线性层对：一个 MLP 怎样切到 TP 个 rank 上，前向与反向各要一次什么通信，数值为什么不变。
不用 torchrun 也行：python runnable/ch10_tensor_parallel_linear.py --np 4 （自己启动 4 个 rank，gloo，CPU）。

Replays (Megatron-LM core_v0.17.1):
  megatron/core/tensor_parallel/layers.py::ColumnParallelLinear
  megatron/core/tensor_parallel/layers.py::RowParallelLinear
  megatron/core/tensor_parallel/layers.py::LinearWithGradAccumulationAndAsyncCommunication
  megatron/core/tensor_parallel/mappings.py::_ReduceFromModelParallelRegion
  megatron/core/tensor_parallel/mappings.py::_ReduceScatterToSequenceParallelRegion
  megatron/core/distributed/finalize_model_grads.py::_allreduce_non_tensor_model_parallel_grads
Leaves out: gather_output, expert layers, wgrad fused into main_grad, the global memory buffer, deferred embedding
wgrad, skip_bias_add; the DP sum is one flat all-reduce here (ch06 has the buckets).
Shapes on one rank: s sequence, b micro-batch, h hidden, f = 4h, t = TP size.
"""

import sys
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runnable.lab import launch  # isort: split

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from runnable.lab import draw
from runnable.lab.ranks import Layout, LayoutError
from runnable.lab.run import Lab, Script
from runnable.lab.sync import sum_flat

S, B, H, M = 8, 2, 16, 4
FFN, LR = 4 * H, 0.1


def gather_sequence(x: Tensor, group: dist.ProcessGroup, *, async_op: bool = False) -> tuple[Tensor, dist.Work | None]:
    """[s/t, b, h] → [s, b, h]: mappings.py::_gather_along_first_dim."""
    whole = x.new_empty(x.shape[0] * group.size(), *x.shape[1:])
    return whole, dist.all_gather_into_tensor(whole, x.contiguous(), group=group, async_op=async_op)


class ColumnLinear(torch.autograd.Function):
    """Y_i = X A_i. The f of the Megatron paper (HF's playbook: "f"): identity forward, sum over TP backward."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, lab: Lab) -> Tensor:
        ctx.save_for_backward(x, weight)  # under SP the slice [s/t, b, h] is kept, not the gathered [s, b, h]
        ctx.lab = lab
        if lab.args.sp:
            x, _ = gather_sequence(x, lab.group("tp"))  # [s/t, b, h] → [s, b, h]
        return F.linear(x, weight, bias)  # [s, b, h] → [s, b, f/t]

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (x, weight), lab = ctx.saved_tensors, ctx.lab
        group = lab.group("tp")
        if lab.args.sp:
            # The forward's gathered input was not saved: gather it again for wgrad, behind the dgrad GEMM.
            x, gathered = gather_sequence(x, group, async_op=True)
        dx = grad @ weight  # [s, b, f/t] → [s, b, h], a partial sum over this rank's columns
        if lab.args.sp:
            gathered.wait()
            partial, dx = dx, dx.new_empty(dx.shape[0] // group.size(), *dx.shape[1:])
            summed = dist.reduce_scatter_tensor(dx, partial, group=group, async_op=True)  # → [s/t, b, h]
            if lab.broken("no_f"):
                summed.wait()
                dx, summed = partial.chunk(group.size())[group.rank()].clone(), None
        else:
            summed = None if lab.broken("no_f") else dist.all_reduce(dx, group=group, async_op=True)  # behind wgrad
        dw = grad.flatten(0, 1).t() @ x.flatten(0, 1)  # [f/t, h]
        db = grad.sum((0, 1))  # [f/t]
        if summed is not None:
            summed.wait()
        return dx, dw, db, None


class RowReduce(torch.autograd.Function):
    """The paper's g (HF's playbook: "f*"): sum over TP forward, identity backward; under SP RS forward, AG backward."""

    @staticmethod
    def forward(ctx, partial: Tensor, lab: Lab) -> Tensor:
        ctx.lab, group = lab, lab.group("tp")
        if lab.args.sp:
            y = partial.new_empty(partial.shape[0] // group.size(), *partial.shape[1:])
            dist.reduce_scatter_tensor(y, partial.contiguous(), group=group)  # [s, b, h] partial → [s/t, b, h]
            return partial.chunk(group.size())[group.rank()].clone() if lab.broken("no_g") else y
        if lab.broken("no_g"):
            return partial.clone()
        dist.all_reduce(y := partial.clone(), group=group)  # [s, b, h] partial → [s, b, h]
        return y

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return (gather_sequence(grad, ctx.lab.group("tp"))[0] if ctx.lab.args.sp else grad), None


class ParallelMLP(nn.Module):
    """norm → Column (h → f/t) → GeLU → Row (f/t → h), on one rank."""

    def __init__(self, lab: Lab, whole: dict[str, Tensor]) -> None:
        super().__init__()
        self.lab = lab
        for name in whole:
            setattr(self, name, nn.Parameter(shard(lab, name, whole[name])))

    def forward(self, x: Tensor) -> Tensor:
        x = F.layer_norm(x, (H,), self.norm_w, self.norm_b)  # [s, b, h], or [s/t, b, h] under SP
        y = F.gelu(ColumnLinear.apply(x, self.col_w, self.col_b, self.lab))  # [s, b, f/t]: GeLU needs no whole row
        partial = F.linear(y, self.row_w)  # [s, b, h], one term of the sum over ranks
        early, late = (self.row_b, 0) if self.lab.broken("bias_each_rank") else (0, self.row_b)
        return RowReduce.apply(partial + early, self.lab) + late  # the bias is added once, after the sum


SPLIT = {"col_w": 0, "col_b": 0, "row_w": 1}
"""Parameter → the dimension that TP cuts; the others are whole on every rank."""


def shard(lab: Lab, name: str, value: Tensor) -> Tensor:
    """This rank's piece of a whole tensor."""
    parts = value.chunk(lab.layout.tp, dim=SPLIT[name]) if name in SPLIT else [value] * lab.layout.tp
    return parts[lab.place["tp"]].clone()


def sequence_slice(lab: Lab, x: Tensor) -> Tensor:
    """[s, …] → [s/t, …] under SP."""
    return x.chunk(lab.layout.tp)[lab.place["tp"]] if lab.args.sp else x


def masked_loss(y: Tensor, mask: Tensor, tokens: Tensor) -> Tensor:
    """Mean over the unmasked tokens; `tokens` is their number in the whole microbatch, also when y is a slice."""
    return (y.square().mean(-1) * mask).sum() / tokens


def one_process(
    lab: Lab, whole: dict[str, Tensor], xs: Tensor, masks: Tensor
) -> tuple[dict[str, Tensor], Tensor, float]:
    """The same step without any parallelism: gradients, the input's gradient, the loss."""
    p = {name: value.clone().requires_grad_() for name, value in whole.items()}
    xs = xs.clone().requires_grad_()
    total = 0.0
    for x, mask in zip(xs, masks, strict=True):
        y = F.gelu(F.linear(F.layer_norm(x, (H,), p["norm_w"], p["norm_b"]), p["col_w"], p["col_b"]))
        loss = masked_loss(F.linear(y, p["row_w"], p["row_b"]), mask, mask.sum()) / len(xs)
        loss.backward()
        total += loss.item()
    return {name: value.grad for name, value in p.items()}, xs.grad, total


def run(lab: Lab) -> None:
    """One training step in parallel and in one process."""
    t, dp = lab.layout.tp, lab.layout.dp
    lab.dims |= {"s": S, "b": B, "h": H, "f": FFN, "m": M, "tp": t, "dp": dp, "t": t}
    new = lambda *shape: torch.randn(*shape, dtype=lab.dtype)
    whole = {"norm_w": 1 + 0.1 * new(H), "norm_b": 0.1 * new(H), "col_w": new(FFN, H) / 4, "col_b": 0.1 * new(FFN)}
    whole |= {"row_w": new(H, FFN) / 8, "row_b": 0.1 * new(H)}
    xs = new(dp * M, S, B, H)
    masks = (torch.rand(dp * M, S, B) < torch.linspace(0.2, 0.9, dp * M)[:, None, None]).to(lab.dtype)
    masks[:, 0] = 1  # unequal numbers of tokens, none of them zero
    with lab.alone():
        grads, dxs, loss_alone = one_process(lab, whole, xs, masks)
    model = ParallelMLP(lab, whole).to(lab.device)

    # Forward and backward of this replica's m microbatches; gradients add up in .grad.
    mine = slice(lab.place["dp"] * M, (lab.place["dp"] + 1) * M)
    inputs, loss_sum, saved = [], 0.0, 0
    for k, (x, mask) in enumerate(zip(xs[mine], masks[mine], strict=True)):
        x = sequence_slice(lab, x).to(lab.device, copy=True).requires_grad_()
        with lab.tracer.label(f"microbatch {k}"):
            with lab.phase("forward"), lab.span(f"F{k}", "forward"), lab.saved_bytes(model) as kept:
                loss = masked_loss(model(x), sequence_slice(lab, mask).to(lab.device), mask.sum().to(lab.device))
            with lab.phase("backward"), lab.span(f"B{k}", "backward"):
                (loss if lab.broken("scale") else loss / M).backward()
        inputs.append(x)
        loss_sum, saved = loss_sum + loss.item() / M, kept.total

    # The order of finalize_model_grads: first the replicas, then what SP leaves partial.
    with lab.phase("grad-sync"):
        if dp > 1 and not lab.broken("no_dp"):
            sum_flat([p.grad for p in model.parameters()], lab.group("dp"), scale=1 / dp)
        if lab.args.sp and not lab.broken("no_sp_norm"):
            # These saw [s/t] of the sequence only: their gradients are partial sums over TP.
            sum_flat([p.grad for n, p in model.named_parameters() if n not in SPLIT], lab.group("tp"))
    pieces = {name: (shard(lab, name, whole[name]), shard(lab, name, grads[name])) for name in whole}
    lab.sgd_step(model.named_parameters(), lr=LR, reference=pieces)
    want = torch.stack([sequence_slice(lab, dx) for dx in dxs[mine]]) * dp  # before the mean over replicas
    lab.check("grad 输入 x", torch.stack([x.grad for x in inputs]), want)
    lab.prove(f"与单进程比较：m={M}，mask 不等长，TP={t} DP={dp} SP={'开' if lab.args.sp else '关'}")

    loss = sum(lab.gather(loss_sum)) / (dp if lab.args.sp else t * dp)
    lab.report.say(f"loss：并行 {loss:.6f}，单进程 {loss_alone:.6f}（loss 相等不算证明，梯度才算）")
    lab.report.say(f"每个 microbatch 为反向保存的 activation：{saved} 字节/rank")
    if lab.args.broken is None:
        lab.expect(expected_calls(lab))
    lab.pictures["layout"] = draw.linear_pair(t, sp=lab.args.sp)


def expected_calls(lab: Lab) -> dict[tuple[str, str, str], int]:
    """Closed form for one step of this pair: (phase, collective, group) → calls on every rank."""
    dp = {("grad-sync", "all_reduce", "dp"): int(lab.layout.dp > 1)}
    no_sp = {("forward", "all_reduce", "tp"): M, ("backward", "all_reduce", "tp"): M}
    sp = {
        ("forward", "all_gather", "tp"): M,
        ("forward", "reduce_scatter", "tp"): M,
        ("backward", "all_gather", "tp"): 2 * M,  # dY of Row, and the input of Column once more for wgrad
        ("backward", "reduce_scatter", "tp"): M,
        ("grad-sync", "all_reduce", "tp"): 1,
    }
    return dp | (sp if lab.args.sp else no_sp)


def layout(args: Namespace, world: int) -> Layout:
    """TP 2 where it divides; the other ranks are replicas."""
    if args.broken == "no_sp_norm":
        args.sp = True
    tp = args.tp or (2 if world % 2 == 0 else world)
    found = Layout(world=world, tp=tp)
    if S % tp or FFN % tp:
        raise LayoutError(f"TP={tp}：s={S} 与 f={FFN} 都要能被 TP 整除（可用 1, 2, 4, 8）")
    if (args.broken == "no_dp" and found.dp == 1) or (args.broken not in (None, "scale", "no_dp") and tp == 1):
        raise LayoutError(f"--break {args.broken} 在 TP={tp} DP={found.dp} 下没有可去掉的通信；请用 --np 4 --tp 2")
    return found


SCRIPT = Script(
    file=__file__,
    title="Column/Row parallel 线性层对（TP，可选 SP）",
    run=run,
    np=4,
    layout=layout,
    groups=("tp", "dp"),
    helpers=("gather_sequence",),
    breaks={
        "no_f": "Column 反向不对 dX 在 TP 组内求和",
        "no_g": "Row 前向不对 partial output 在 TP 组内求和",
        "bias_each_rank": "Row 的 bias 在求和之前加（加了 t 次）",
        "no_sp_norm": "SP 下不对 norm 与 Row bias 的梯度在 TP 组内求和",
        "no_dp": "不在 DP 组内同步梯度",
        "scale": "loss 不除以 microbatch 数 m",
    },
    arguments=lambda group: (
        group.add_argument("--tp", type=int, help="TP 大小（默认 2），其余 rank 是 DP 副本"),
        group.add_argument("--sp", action="store_true", help="打开 sequence parallel"),
    ),
)

if __name__ == "__main__":
    launch.main(SCRIPT)
