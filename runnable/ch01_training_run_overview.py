"""torchrun --nproc-per-node 4 runnable/ch01_training_run_overview.py [--break no_zero_grad]

一次训练 step：建组 → 建模型 → 取 batch → m 次前向/反向 → 同步梯度 → 更新参数；1、2、4 个 rank 结果相同。
不用 torchrun：python runnable/ch01_training_run_overview.py --np 1 （或 2、4；2 个是 TP=2，4 个是 TP=2 DP=2）

Replays (Megatron-LM core_v0.17.1), every step of examples/run_simple_mcore_train_loop.py in the open:
  examples/run_simple_mcore_train_loop.py::initialize_distributed
  examples/run_simple_mcore_train_loop.py::model_provider
  examples/run_simple_mcore_train_loop.py::get_train_data_iterator
  examples/run_simple_mcore_train_loop.py::forward_step_func
  megatron/core/pipeline_parallel/schedules.py::forward_backward_no_pipelining
  megatron/core/distributed/finalize_model_grads.py::finalize_model_grads
  megatron/training/training.py::train_step
Leaves out: attention (a token sees itself only; ch04), pipeline stages (ch11), buckets and overlap (ch06), the
checkpoint (ch07), learning-rate schedule, loss scaling, logging to files. SGD stands for Adam, which hides scale.
Shapes: tokens [b, s]; activations [s, b, h], as in Megatron; V vocabulary, f = 4h, t = TP.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runnable.lab import launch  # isort: split

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from runnable.lab.mappings import copy_to_tp, reduce_from_tp
from runnable.lab.ranks import Layout, LayoutError
from runnable.lab.run import Lab, Script
from runnable.lab.sync import sum_flat

S, B, H, V, M, STEPS, LR = 8, 2, 16, 32, 2, 2, 0.5
SPLIT = {"fc1": 0, "fc2": 1}  # parameter → dimension that TP cuts

STEPS_OF_THE_LOOP = (
    ("建立 process group", "initialize_distributed", "initialize_megatron"),
    ("建模型（每个 rank 只有自己的切片）", "model_provider", "setup_model_and_optimizer"),
    ("取 batch（DP 副本各取各的）", "get_train_data_iterator", "build_train_valid_test_data_iterators"),
    ("清零梯度", "optim.zero_grad", "train_step: zero_grad_buffer"),
    ("m 次前向 / 反向，梯度累加", "forward_backward_func", "train_step: forward_backward_func"),
    ("同步梯度", "finalize_model_grads", "finalize_model_grads（由 schedule 调用）"),
    ("更新参数", "optim.step", "train_step: optimizer.step"),
)


class Model(nn.Module):
    """embedding → norm → MLP over TP → logits, or the loss of each token when labels are given, as GPTModel does."""

    def __init__(self, lab: Lab, whole: dict[str, Tensor]) -> None:
        super().__init__()
        self.group = lab.group("tp") if lab.layout.tp > 1 else None
        for name in whole:
            setattr(self, name, nn.Parameter(shard(lab, name, whole[name])))

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        p = dict(self.named_parameters())
        return token_losses(p, tokens, labels, self.group)


def token_losses(p: dict[str, Tensor], tokens: Tensor, labels: Tensor, group=None) -> Tensor:
    """[b, s] tokens → [b, s] losses; with a group, `p` holds this TP rank's slices."""
    x = F.embedding(tokens, p["embedding"]).transpose(0, 1)  # [s, b, h]
    y = F.layer_norm(x, (H,)) * p["norm"]
    y = F.gelu(F.linear(copy_to_tp(y, group) if group else y, p["fc1"]))  # [s, b, f/t]
    y = F.linear(y, p["fc2"])  # [s, b, h], partial under TP
    x = x + (reduce_from_tp(y, group) if group else y)
    logits = F.linear(x, p["head"]).transpose(0, 1)  # [b, s, V]
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)


def shard(lab: Lab, name: str, value: Tensor) -> Tensor:
    """This TP rank's slice."""
    parts = value.chunk(lab.layout.tp, SPLIT[name]) if name in SPLIT else [value] * lab.layout.tp
    return parts[lab.place["tp"]].clone()


Batch = tuple[Tensor, Tensor, Tensor]


def batches(corpus: list[Batch], replica: int, replicas: int) -> Iterator[Batch]:
    """Every replica reads its own microbatches; TP ranks of one replica read the same (Megatron broadcasts: ch03)."""
    for index, batch in enumerate(corpus):
        if index % replicas == replica:
            yield batch


def loss_func(losses: Tensor, mask: Tensor, lab: Lab) -> Tensor:
    """Mean over the tokens that count."""
    mask = torch.ones_like(mask) if lab.broken("no_mask") else mask
    return (losses * mask).sum() / mask.sum()


def forward_backward(lab: Lab, model: Model, data: Iterator[Batch]) -> float:
    """m microbatches; each loss is divided by m, gradients add up in .grad."""
    total = 0.0
    for k in range(M):
        with lab.tracer.label(f"microbatch {k}"):
            with lab.phase("data"):
                tokens, labels, mask = (t.to(lab.device) for t in next(data))
            with lab.phase("forward"), lab.span(f"F{k}", "forward"):
                loss = loss_func(model(tokens, labels), mask, lab)
            with lab.phase("backward"), lab.span(f"B{k}", "backward"):
                (loss if lab.broken("scale") else loss / M).backward()
        total += loss.item() / M
    return total


def finalize_model_grads(lab: Lab, model: Model) -> None:
    """The mean of the gradients over the replicas."""
    if lab.layout.dp > 1 and not lab.broken("no_finalize"):
        sum_flat([p.grad for p in model.parameters()], lab.group("dp"), scale=1 / lab.layout.dp)


def one_process(whole: dict[str, Tensor], corpus: list[Batch], dp: int) -> list[tuple[dict[str, Tensor], ...]]:
    """(weights, gradients) of each step without any parallelism."""
    found, p, size = [], {name: value.clone() for name, value in whole.items()}, dp * M
    for step in range(STEPS):
        leaf = {name: value.clone().requires_grad_() for name, value in p.items()}
        for tokens, labels, mask in corpus[step * size : (step + 1) * size]:
            ((token_losses(leaf, tokens, labels) * mask).sum() / mask.sum() / size).backward()
        grads = {name: value.grad for name, value in leaf.items()}
        found.append((p, grads))
        p = {name: value - LR * grads[name] for name, value in p.items()}
    return found


def run(lab: Lab) -> None:
    """Two steps of the loop, each held against one process."""
    tp, dp = lab.layout.tp, lab.layout.dp
    lab.dims |= {"s": S, "b": B, "h": H, "f": 4 * H, "V": V, "m": M, "t": tp, "tp": tp, "dp": dp}
    lab.report.table("训练循环的每一步", ["做什么", "simple loop", "正式入口"], STEPS_OF_THE_LOOP)
    new = lambda *shape: torch.randn(*shape, dtype=lab.dtype)
    whole = {"embedding": new(V, H) / 2, "norm": 1 + new(H) / 10, "fc1": new(4 * H, H) / 3, "fc2": new(H, 4 * H) / 6}
    whole |= {"head": new(V, H) / 3}
    corpus = []
    for index in range(STEPS * dp * M):
        text = torch.randint(0, V, (B, S + 1))
        mask = (torch.arange(S) < S - index % 4 * 2).expand(B, S).to(lab.dtype)
        corpus.append((text[:, :-1], text[:, 1:], mask))
    with lab.alone():
        reference = one_process(whole, corpus, dp)

    model = Model(lab, whole).to(lab.device)
    data = batches(corpus, lab.place["dp"], dp)
    losses = []
    for step in range(STEPS):
        if not lab.broken("no_zero_grad"):
            model.zero_grad()
        losses.append(forward_backward(lab, model, data))
        with lab.phase("grad-sync"):
            finalize_model_grads(lab, model)
        weights, grads = reference[step]
        pieces = {name: (shard(lab, name, weights[name]), shard(lab, name, grads[name])) for name in whole}
        lab.sgd_step(model.named_parameters(), lr=LR, reference=pieces, label=f"step {step} ")
    lab.prove(f"与单进程比较：TP={tp} DP={dp} m={M}，mask 不等长，{STEPS} 步")
    mean = torch.tensor(lab.gather(losses)).mean(0).tolist()
    lab.report.say(f"loss：{' '.join(f'{x:.4f}' for x in mean)}")
    if lab.args.broken is None:
        calls = {("forward", "all_reduce", "tp"): STEPS * M, ("backward", "all_reduce", "tp"): STEPS * M}
        calls = calls if tp > 1 else {}
        lab.expect(calls | {("grad-sync", "all_reduce", "dp"): STEPS * (dp > 1)})


def layout(args: Namespace, world: int) -> Layout:
    """1 rank alone, 2 as TP, 4 as TP × DP."""
    found = Layout(world=world, tp=args.tp or (2 if world % 2 == 0 else 1))
    if 4 * H % found.tp:
        raise LayoutError(f"TP={found.tp} 不能整除 f={4 * H}")
    if args.broken == "no_finalize" and found.dp < 2:
        raise LayoutError("--break no_finalize 要 DP ≥ 2；请用 --np 4")
    return found


SCRIPT = Script(
    file=__file__,
    title="一次训练 step：simple loop 的每一步",
    run=run,
    np=4,
    layout=layout,
    groups=("tp", "dp"),
    breaks={
        "no_zero_grad": "第二步之前不清零梯度",
        "no_finalize": "不调用 finalize_model_grads（DP 副本各走各的）",
        "no_mask": "loss 不看 loss mask",
        "scale": "loss 不除以 microbatch 数 m",
    },
    arguments=lambda group: group.add_argument("--tp", type=int, help="TP 大小（默认 2，单个 rank 时 1）"),
)

if __name__ == "__main__":
    launch.main(SCRIPT)
