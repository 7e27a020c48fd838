"""torchrun --nproc-per-node 4 runnable/ch05_forward_loss_backward.py [--break cp_scale]

前向、loss、反向：词表切到 TP 后的 cross entropy；loss mask 与三种 loss scaling 约定给出三个不同的梯度；输出张量的释放。
不用 torchrun 也行：python runnable/ch05_forward_loss_backward.py --np 4 （TP=2、CP=2，gloo，CPU）。

Replays (Megatron-LM core_v0.17.1):
  megatron/core/tensor_parallel/cross_entropy.py::_VocabParallelCrossEntropy
  megatron/core/tensor_parallel/mappings.py::_CopyToModelParallelRegion
  megatron/core/pipeline_parallel/schedules.py::forward_step_calc_loss
  megatron/core/pipeline_parallel/schedules.py::deallocate_output_tensor
  megatron/core/pipeline_parallel/schedules.py::custom_backward
  megatron/core/distributed/finalize_model_grads.py::finalize_model_grads
  pretrain_gpt.py::loss_func
Leaves out: label smoothing, the fused kernel, MoE and MTP loss scales, NaN and spike checks, the broadcast of
num_tokens from the last pipeline stage (PP is 1 here), attention (tokens stand alone, so CP is silent forward).
Shapes: V vocabulary, t = TP, c = CP; a CP rank holds [s/c, b] tokens (cut in order here, zigzag in Megatron: ch03).
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

from runnable.lab.ranks import Layout, LayoutError
from runnable.lab.run import Lab, Script
from runnable.lab.sync import sum_flat

S, B, H, V, M, LR = 8, 2, 16, 24, 4, 0.1


class CopyToTP(torch.autograd.Function):
    """Identity forward, sum over TP backward: each rank's logits give one part of the gradient of x."""

    @staticmethod
    def forward(ctx, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        dist.all_reduce(grad := grad.contiguous(), group=ctx.group)  # [s/c, b, h]
        return grad, None


class VocabParallelCrossEntropy(torch.autograd.Function):
    """Loss of each token from logits [s/c, b, V/t]: three all-reduces of [s/c, b], none of them of logits."""

    @staticmethod
    def forward(ctx, logits: Tensor, target: Tensor, lab: Lab) -> Tensor:
        group, part = lab.group("tp"), logits.shape[-1]
        first = group.rank() * part
        largest = logits.max(dim=-1).values
        if not lab.broken("no_max"):
            dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)  # the same shift on all ranks
        logits = logits - largest.unsqueeze(-1)
        elsewhere = (target < first) | (target >= first + part)  # the target's column lives on another rank
        column = (target - first).masked_fill(elsewhere, 0)
        predicted = logits.gather(-1, column.unsqueeze(-1)).squeeze(-1).masked_fill(elsewhere, 0.0)
        if not lab.broken("no_predicted"):
            dist.all_reduce(predicted, group=group)
        total = (exp := logits.exp()).sum(dim=-1)
        if not lab.broken("no_sum_exp"):
            dist.all_reduce(total, group=group)
        ctx.save_for_backward(exp / total.unsqueeze(-1), elsewhere, column)
        return total.log() - predicted

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        softmax, elsewhere, column = ctx.saved_tensors
        hit = torch.zeros_like(softmax).scatter_(-1, column.unsqueeze(-1), (~elsewhere).to(softmax.dtype).unsqueeze(-1))
        return (softmax - hit) * grad.unsqueeze(-1), None, None  # [s/c, b, V/t], no communication


class Head(nn.Module):
    """A replicated layer and the vocabulary-parallel output layer."""

    def __init__(self, lab: Lab, whole: dict[str, Tensor]) -> None:
        super().__init__()
        self.lab = lab
        self.body = nn.Parameter(whole["body"].clone())
        self.out = nn.Parameter(whole["out"].chunk(lab.layout.tp)[lab.place["tp"]].clone())  # [V/t, h]

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        hidden = CopyToTP.apply(torch.tanh(F.linear(x, self.body)), self.lab.group("tp"))
        logits = F.linear(hidden, self.out)  # [s/c, b, V/t]: never gathered
        if self.lab.broken("gathered"):
            parts = [torch.empty_like(logits) for _ in range(self.lab.layout.tp)]
            dist.all_gather(parts, logits.detach(), self.lab.group("tp"))
            parts[self.lab.place["tp"]] = logits
            logits = torch.cat(parts, dim=-1)  # [s/c, b, V]
        return VocabParallelCrossEntropy.apply(logits, target, self.lab)  # [s/c, b]


CONVENTIONS = {
    "per-microbatch": "loss_func 返回 3 个值（默认）：÷ 本 rank 的 token 数 ÷ m，DP×CP 上取平均",
    "per-token": "calculate_per_token_loss：只求和；DP×CP 上 SUM，最后 ÷ 全局 token 数",
    "legacy": "loss_func 返回 2 个值：÷ microbatch 的 token 数，× cp_size ÷ m，DP×CP 上取平均",
}


def step(lab: Lab, model: Head, convention: str, data: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Forward and backward of m microbatches and the gradient sync; the token-weighted sums that are printed."""
    dp_cp, cp = lab.group("dp-cp"), lab.layout.cp
    printed = torch.zeros(2, dtype=lab.dtype, device=lab.device)  # Σ loss, number of tokens
    for x, target, mask in data:
        with lab.phase("forward"):
            losses = (model(x, target) * mask).sum()
            tokens = mask.sum()
            printed += torch.stack([losses.detach(), tokens])
            loss = losses / tokens.clamp(min=1) / M if convention == "per-microbatch" else losses
            if convention == "legacy":
                whole = tokens.clone()
                dist.all_reduce(whole, group=lab.group("cp"))
                loss = losses / whole * (1 if lab.broken("cp_scale") else cp) / M
        with lab.phase("backward"):
            loss.backward()
    with lab.phase("grad-sync"):
        per_token = convention == "per-token"
        sum_flat([p.grad for p in model.parameters()], dp_cp, scale=1.0 if per_token else 1 / dp_cp.size())
        if per_token:
            total = printed[1].clone()
            if not lab.broken("local_tokens"):
                dist.all_reduce(total, group=dp_cp)
            for p in model.parameters():
                p.grad /= total
    with lab.phase("logging"):
        dist.all_reduce(printed, group=dp_cp)
    return printed


def one_process(
    lab: Lab, whole: dict[str, Tensor], data: list[tuple[Tensor, ...]], convention: str
) -> dict[str, Tensor]:
    """The convention's gradient in one process; `data` holds all microbatches of all replicas, whole sequences."""
    p = {name: value.clone().requires_grad_() for name, value in whole.items()}
    total = sum(mask.sum() for _, _, mask in data)
    for x, target, mask in data:
        logits = F.linear(torch.tanh(F.linear(x, p["body"])), p["out"])
        losses = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view_as(mask) * mask
        if convention == "per-token":
            loss = losses.sum() / total
        elif convention == "legacy":
            loss = losses.sum() / mask.sum() / len(data)
        else:  # a mean of the means of the CP slices
            parts = zip(losses.chunk(lab.layout.cp), mask.chunk(lab.layout.cp), strict=True)
            loss = sum(part.sum() / kept.sum() for part, kept in parts) / lab.layout.cp / len(data)
        loss.backward()
    return {name: value.grad for name, value in p.items()}


def run(lab: Lab) -> None:
    """Token losses, then one step under each convention, then the freed output."""
    tp, cp, dp = lab.layout.tp, lab.layout.cp, lab.layout.dp
    lab.dims |= {"s": S, "b": B, "h": H, "V": V, "m": M, "t": tp, "tp": tp, "c": cp, "cp": cp, "dp": dp}
    cut = lambda value: value.chunk(tp)[lab.place["tp"]]  # [V, h] → [V/t, h]
    new = lambda *shape: torch.randn(*shape, dtype=lab.dtype)
    whole = {"body": new(H, H) / 3, "out": new(V, H) / 2}
    masks = (torch.rand(dp * M, S, B) < torch.linspace(0.2, 0.9, S)[:, None]).to(lab.dtype)
    masks[:, :: S // max(2, cp)] = 1  # every CP slice has tokens, and not equally many
    everything = [(new(S, B, H), torch.randint(0, V, (S, B)), mask) for mask in masks]
    mine = everything[lab.place["dp"] * M : (lab.place["dp"] + 1) * M]
    data = [tuple(t.chunk(cp)[lab.place["cp"]].to(lab.device) for t in triple) for triple in mine]

    with lab.alone():
        x, target, _ = mine[0]
        logits = F.linear(torch.tanh(F.linear(x, whole["body"])), whole["out"])
        want = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view(S, B)
    want = want.chunk(cp)[lab.place["cp"]]
    with lab.phase("forward"), torch.no_grad():
        lab.check("每个 token 的 loss", got := Head(lab, whole).to(lab.device)(*data[0][:2]), want)
    lab.report.say(f"token loss 与单进程相差（平均）：{abs((got.cpu() - want).mean()):.4f}")

    rows = []
    for name, text in CONVENTIONS.items():
        with lab.alone():
            grads = one_process(lab, whole, everything, name)
        model = Head(lab, whole).to(lab.device)
        printed = step(lab, model, name, data)
        pieces = {"body": (whole["body"], grads["body"]), "out": (cut(whole["out"]), cut(grads["out"]))}
        lab.sgd_step(model.named_parameters(), lr=LR, reference=pieces, label=f"{name}: ")
        rows.append((name, f"{grads['body'].norm():.4f}", f"{printed[0] / printed[1]:.4f}", text))
    lab.prove(f"与单进程比较：TP={tp} CP={cp} DP={dp} m={M}，mask 不等长")
    lab.report.table(
        "同一批数据，三种约定：梯度不同，打印的 loss 相同（按 token 加权）",
        ["约定", ">‖grad body‖", ">打印的 loss", "怎样算"],
        rows,
    )
    free_output(lab, whole["body"])
    if lab.args.broken is None:
        # MAX, predicted logit and Σ exp in every forward (one more than steps); dX of the output layer backward.
        calls = {("forward", "all_reduce", "tp"): 3 * (3 * M + 1), ("backward", "all_reduce", "tp"): 3 * M}
        calls |= {("forward", "all_reduce", "cp"): M, ("logging", "all_reduce", "dp-cp"): 3}
        lab.expect(calls | {("grad-sync", "all_reduce", "dp-cp"): 3 + 1})


def free_output(lab: Lab, weight: Tensor) -> None:
    """A stage needs only grad_fn of what it has sent: the data may go, and only C++ backward accepts that."""
    x, w = torch.ones(S, B, H, dtype=lab.dtype), weight.clone().requires_grad_()
    grad = torch.ones_like(y := F.linear(x, w))
    (want,) = torch.autograd.grad(y, w, grad, retain_graph=True)
    y.data = torch.empty(1, dtype=y.dtype)  # 1 element instead of s·b·h
    try:
        torch.autograd.backward(y, grad)
        lab.require(False, "torch.autograd.backward 应拒绝形状不符的输出")
    except RuntimeError:
        torch.autograd.Variable._execution_engine.run_backward((y,), (grad,), False, False, (), True, True)
    lab.check("释放输出后的 grad", w.grad, want, tolerance=0)
    lab.prove(f"deallocate_output_tensor：{S * B * H} 个元素换成 1 个，torch.autograd.backward 拒绝，C++ engine 照算")


def layout(args: Namespace, world: int) -> Layout:
    """TP 2 and CP 2 where they divide."""
    tp = args.tp or (2 if world % 2 == 0 else 1)
    cp = args.cp or (2 if world // tp % 2 == 0 else 1)
    found = Layout(world=world, tp=tp, cp=cp)
    if V % tp or S % cp:
        raise LayoutError(f"V={V} 要能被 TP={tp} 整除，s={S} 要能被 CP={cp} 整除")
    if args.broken and {"cp_scale": cp, "local_tokens": cp * found.dp}.get(args.broken, tp) < 2:
        raise LayoutError(f"--break {args.broken} 在 TP={tp} CP={cp} DP={found.dp} 下看不出差别；请用 --np 4")
    return found


SCRIPT = Script(
    file=__file__,
    title="vocab-parallel cross entropy、loss mask 与 loss scaling",
    run=run,
    np=4,
    layout=layout,
    groups=("tp", "cp", "dp-cp"),
    preload=("torch.fx.experimental.symbolic_shapes",),
    breaks={
        "no_max": "各 rank 用自己的最大 logit",
        "no_predicted": "不对目标 logit 求和",
        "no_sum_exp": "不对 Σexp 求和",
        "gathered": "把聚合后的 logits 交给 vocab-parallel cross entropy（loss 多出 log TP）",
        "cp_scale": "legacy 约定不乘 cp_size",
        "local_tokens": "per-token 约定只除以本 rank 的 token 数",
    },
    arguments=lambda group: [group.add_argument(f"--{a}", type=int, help="默认 2") for a in ("tp", "cp")],
)

if __name__ == "__main__":
    launch.main(SCRIPT)
