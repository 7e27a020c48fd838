"""torchrun --nproc-per-node 4 runnable/ch04_model_provider_and_gpt_model.py [--break qkv_order]

由 layer spec 搭一个 GPT block：词表切到 TP 的 embedding、按 query group 交错的 linear_qkv（GQA）、MLP、与 embedding
共享权重的输出层。不用 torchrun：python runnable/ch04_model_provider_and_gpt_model.py --np 4 （TP=2、DP=2，gloo，CPU）

Replays (Megatron-LM core_v0.17.1):
  megatron/core/transformer/spec_utils.py::ModuleSpec
  megatron/core/transformer/spec_utils.py::build_module
  megatron/core/models/gpt/gpt_layer_specs.py::get_gpt_layer_local_spec
  megatron/core/tensor_parallel/layers.py::VocabParallelEmbedding
  megatron/core/transformer/attention.py::SelfAttention.get_query_key_value_tensors
  megatron/core/transformer/transformer_layer.py::TransformerLayer
  megatron/core/models/gpt/gpt_model.py::GPTModel
Leaves out: position embedding, dropout, biases (of norms too), sequence parallel and async backward (ch10), pipeline
stages, cross entropy (ch05; here the loss is a weighted sum of logits), more TP ranks than query groups.
Shapes: s, b, h; V vocabulary; n heads in g groups of d numbers; t = TP. qkv weight [g·(n/g + 2)·d, h]: group by group.
"""

import sys
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runnable.lab import launch  # isort: split

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from runnable.lab.mappings import copy_to_tp, reduce_from_tp
from runnable.lab.ranks import Layout, LayoutError
from runnable.lab.run import Lab, Script
from runnable.lab.sync import sum_flat

S, B, V, HEADS, GROUPS, D, M, LR = 6, 2, 32, 4, 2, 4, 2, 0.1
H = HEADS * D


@dataclass(frozen=True)
class ModuleSpec:
    """What to build: a class and the specs of its parts; another implementation is another spec, not another block."""

    module: type[nn.Module]
    submodules: dict[str, "ModuleSpec"] = field(default_factory=dict)


def build_module(spec: ModuleSpec, name: str, parts: "Parts") -> nn.Module:
    """Build a module and, first, its parts; `name` is its path in the model, by which it finds its weights."""
    below = {key: build_module(part, f"{name}.{key}", parts) for key, part in spec.submodules.items()}
    return spec.module(name, parts, **below)


@dataclass(frozen=True)
class Parts:
    """Where modules get their weights from: whole tensors, cut to this rank's slice; without a lab, left whole."""

    whole: dict[str, Tensor]
    lab: Lab | None = None

    @property
    def tp(self) -> int:
        return self.lab.layout.tp if self.lab else 1

    @property
    def group(self) -> dist.ProcessGroup | None:
        return self.lab.group("tp") if self.lab and self.tp > 1 else None

    def get(self, name: str) -> nn.Parameter:
        return nn.Parameter(cut(self.lab, name, self.whole[name]))

    def broken(self, rule: str) -> bool:
        return self.lab is not None and self.lab.broken(rule)


SPLIT = {"embedding": 0, "qkv": 0, "fc1": 0, "proj": 1, "fc2": 1}
"""Last part of a parameter's name → the dimension that TP cuts."""


def cut(lab: Lab | None, name: str, value: Tensor) -> Tensor:
    """This rank's slice of a whole tensor."""
    dim = SPLIT.get(name.rsplit(".", 1)[-1])
    if lab is None or dim is None:
        return value.clone()
    if name.endswith("qkv") and lab.broken("qkv_order"):
        wide = HEADS * D  # as if the rows were all of Q, then K, then V
        return torch.cat([p.chunk(lab.layout.tp)[lab.place["tp"]] for p in value.split([wide, GROUPS * D, GROUPS * D])])
    return value.chunk(lab.layout.tp, dim)[lab.place["tp"]].clone()


class Norm(nn.Module):
    """Whole on every rank."""

    def __init__(self, name: str, parts: Parts) -> None:
        super().__init__()
        self.weight = parts.get(name)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (H,)) * self.weight


class SelfAttention(nn.Module):
    """qkv is column-parallel: a TP rank holds whole query groups, so attention needs no communication."""

    def __init__(self, name: str, parts: Parts) -> None:
        super().__init__()
        self.parts, self.groups = parts, GROUPS // parts.tp
        self.qkv, self.proj = parts.get(f"{name}.qkv"), parts.get(f"{name}.proj")

    def forward(self, x: Tensor) -> Tensor:
        group, each = self.parts.group, HEADS // GROUPS
        mixed = F.linear(copy_to_tp(x, group) if group else x, self.qkv)  # [s, b, g/t·(n/g + 2)·d]
        mixed = mixed.view(S, B, self.groups, each + 2, D)
        q, k, v = mixed.split([each, 1, 1], dim=3)  # [s, b, g/t, n/g | 1 | 1, d]
        k, v = (t.expand_as(q) for t in (k, v))  # the queries of a group share its key and value
        q, k, v = (t.flatten(2, 3).permute(1, 2, 0, 3) for t in (q, k, v))  # [b, n/t, s, d]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).permute(2, 0, 1, 3).flatten(2)  # [s, b, n/t·d]
        y = F.linear(y, self.proj)  # [s, b, h], partial
        return reduce_from_tp(y, group) if group else y


class MLP(nn.Module):
    """Column, GeLU, Row (ch10)."""

    def __init__(self, name: str, parts: Parts) -> None:
        super().__init__()
        self.parts, self.fc1, self.fc2 = parts, parts.get(f"{name}.fc1"), parts.get(f"{name}.fc2")

    def forward(self, x: Tensor) -> Tensor:
        group = self.parts.group
        inside = copy_to_tp(x, group) if group and not self.parts.broken("no_f") else x
        y = F.linear(F.gelu(F.linear(inside, self.fc1)), self.fc2)  # [s, b, 4h/t] → [s, b, h], partial
        return reduce_from_tp(y, group) if group else y


class TransformerLayer(nn.Module):
    """Knows the order of its parts, not what they are."""

    def __init__(self, name: str, parts: Parts, **submodules: nn.Module) -> None:
        super().__init__()
        for key, part in submodules.items():
            self.add_module(key, part)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attention(self.input_layernorm(x))
        return x + self.mlp(self.pre_mlp_layernorm(x))


PARTS_OF_LAYER = {"input_layernorm": Norm, "self_attention": SelfAttention, "pre_mlp_layernorm": Norm, "mlp": MLP}
LAYER_SPEC = ModuleSpec(TransformerLayer, {name: ModuleSpec(part) for name, part in PARTS_OF_LAYER.items()})


class GPTModel(nn.Module):
    """Embedding, one layer, final norm, and the embedding's weight again as the output layer."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.embedding = parts.get("embedding")  # [V/t, h]
        self.layer = build_module(LAYER_SPEC, "layer", parts)
        self.final_layernorm = Norm("final_layernorm", parts)

    def forward(self, tokens: Tensor) -> Tensor:
        group, rows = self.parts.group, self.embedding.shape[0]
        first = group.rank() * rows if group else 0
        elsewhere = (tokens < first) | (tokens >= first + rows)
        x = F.embedding((tokens - first).masked_fill(elsewhere, 0), self.embedding)  # [b, s, h]
        if not self.parts.broken("no_embedding_mask"):
            x = x.masked_fill(elsewhere.unsqueeze(-1), 0.0)  # the row is another rank's: add nothing
        if group and not self.parts.broken("no_embedding_reduce"):
            x = reduce_from_tp(x, group)
        x = self.final_layernorm(self.layer(x.transpose(0, 1)))  # [s, b, h]
        weight = self.embedding.detach() if self.parts.broken("untied_grad") else self.embedding
        return F.linear(copy_to_tp(x, group) if group else x, weight)  # [s, b, V/t]: split, and stays so


def run(lab: Lab) -> None:
    """One step of a one-layer GPT, in parallel and in one process."""
    tp, dp = lab.layout.tp, lab.layout.dp
    lab.dims |= {"s": S, "b": B, "h": H, "V": V, "n": HEADS, "g": GROUPS, "d": D, "m": M, "t": tp, "tp": tp, "dp": dp}
    names_of = lambda model: [(name.removesuffix(".weight"), p) for name, p in model.named_parameters()]
    new = lambda *shape: torch.randn(*shape, dtype=lab.dtype)
    rows = GROUPS * (HEADS // GROUPS + 2) * D
    whole = {"embedding": new(V, H) / 2, "final_layernorm": 1 + new(H) / 10}
    whole |= {f"layer.{n}": 1 + new(H) / 10 for n in ("input_layernorm", "pre_mlp_layernorm")}
    whole |= {"layer.self_attention.qkv": new(rows, H) / 3, "layer.self_attention.proj": new(H, HEADS * D) / 4}
    whole |= {"layer.mlp.fc1": new(4 * H, H) / 4, "layer.mlp.fc2": new(H, 4 * H) / 8}
    tokens, weights = torch.randint(0, V, (dp * M, B, S)), new(dp * M, S, B, V) / S
    with lab.alone():
        single = GPTModel(Parts(whole))
        for text, weight in zip(tokens, weights, strict=True):
            ((single(text) * weight).sum() / len(tokens)).backward()
        grads = {name: p.grad for name, p in names_of(single)}
        logits = single(tokens[lab.place["dp"] * M]).detach()

    model = GPTModel(Parts(whole, lab)).to(lab.device)
    part = slice(lab.place["tp"] * V // tp, (lab.place["tp"] + 1) * V // tp)
    for k in range(M):
        index = lab.place["dp"] * M + k
        with lab.tracer.label(f"microbatch {k}"):
            with lab.phase("forward"):
                out = model(tokens[index].to(lab.device))
                loss = (out * weights[index][..., part].to(lab.device)).sum() / M
            with lab.phase("backward"):
                loss.backward()
        if k == 0:
            lab.check("logits [s, b, V/t]", out, logits[..., part])
    if dp > 1:
        with lab.phase("grad-sync"):
            sum_flat([p.grad for p in model.parameters()], lab.group("dp"), scale=1 / dp)
    pieces = {name: (cut(lab, name, whole[name]), cut(lab, name, grads[name])) for name in whole}
    lab.sgd_step(names_of(model), lr=LR, reference=pieces)
    lab.prove(f"与单进程比较：TP={tp} DP={dp} m={M}，{HEADS} 个 head 分 {GROUPS} 组（GQA）")
    if lab.args.broken is None:
        # Forward: embedding, attention, MLP; backward: the same three copies, of attention, MLP and output layer.
        calls = {("forward", "all_reduce", "tp"): 3 * M, ("backward", "all_reduce", "tp"): 3 * M} if tp > 1 else {}
        lab.expect(calls | {("grad-sync", "all_reduce", "dp"): int(dp > 1)})


def layout(args: Namespace, world: int) -> Layout:
    """TP 2 where it divides; the rest are replicas."""
    found = Layout(world=world, tp=args.tp or (2 if world % 2 == 0 else 1))
    if GROUPS % found.tp or V % found.tp:
        raise LayoutError(f"TP={found.tp} 要整除 query group 数 {GROUPS} 与 V={V}（可用 1、2）")
    if args.broken and found.tp < 2:
        raise LayoutError(f"--break {args.broken} 要 TP=2；请用 --np 4")
    return found


SCRIPT = Script(
    file=__file__,
    title="GPT block：layer spec、TP、词表并行 embedding、共享权重",
    run=run,
    np=4,
    layout=layout,
    groups=("tp", "dp"),
    breaks={
        "qkv_order": "把 linear_qkv 当作 [Q|K|V] 来切（应按 query group 交错）",
        "no_embedding_mask": "不屏蔽不在本 rank 的 token",
        "no_embedding_reduce": "embedding 查表后不在 TP 组内求和",
        "untied_grad": "输出层的梯度不加到共享的 embedding 上",
        "no_f": "MLP 的 Column 反向不求和",
    },
    arguments=lambda group: group.add_argument("--tp", type=int, help="TP 大小（默认 2），其余是 DP 副本"),
)

if __name__ == "__main__":
    launch.main(SCRIPT)
