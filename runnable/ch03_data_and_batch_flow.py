"""torchrun --nproc-per-node 4 runnable/ch03_data_and_batch_flow.py [--break no_zigzag]

从文档到每个 rank 手里的 batch：三个 index、混合、DP 采样、TP 组内广播、CP zigzag 切片、packed sequence 的 cu_seqlens。
不用 torchrun：python runnable/ch03_data_and_batch_flow.py --np 4 （TP=2、CP=2，gloo，CPU）

Replays (Megatron-LM core_v0.17.1):
  megatron/core/datasets/gpt_dataset.py::_build_document_index
  megatron/core/datasets/gpt_dataset.py::_build_shuffle_index
  megatron/core/datasets/gpt_dataset.py::GPTDataset._query_document_sample_shuffle_indices
  megatron/training/datasets/data_samplers.py::MegatronPretrainingSampler
  megatron/training/utils.py::get_batch_on_this_tp_rank
  megatron/core/utils.py::get_batch_on_this_cp_rank
The indices are data (runnable/lab/sampling.py); this script carries the batch to the ranks.
Leaves out: files and memory maps, the cache of indices, fill-in-the-middle, the dataloader's workers, the two
broadcasts for cu_seqlens (0 and an empty tensor) that Megatron sends even for unpacked data, hybrid CP.
Shapes: a sample is s + 1 tokens; a batch is [b, s]; a CP rank keeps [b, s/c].
"""

import sys
from argparse import Namespace
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runnable.lab import launch  # isort: split

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from runnable.lab import sampling
from runnable.lab.ranks import Layout, LayoutError
from runnable.lab.run import Lab, Script

SIZES = (7, 13, 4, 21, 9, 16)
"""Tokens of each document; token t of document d is 100·d + t, so that a sample shows where it comes from."""
S, B, EPOCHS, DP = 16, 2, 2, 2


def build(lab: Lab) -> list[list[tuple[int, int, int]]]:
    """Documents → samples, in reading order."""
    random = np.random.RandomState(lab.args.seed)
    order = sampling.document_index(len(SIZES), EPOCHS, random, separate_last=False)
    extra = 0 if lab.broken("no_extra_token") else 1
    index = sampling.sample_index(SIZES, order, S, extra=extra)
    shuffle = sampling.shuffle_index(len(index) - 1, len(index) - 1, random)
    samples = [sampling.pieces(index, order, SIZES, k, extra=extra) for k in range(len(index) - 1)]
    lab.report.say(f"document index（{EPOCHS} 个 epoch，跨 epoch 打乱）：{order}")
    lab.report.say(f"shuffle index：{shuffle}")
    rows = [(k, index[k], " + ".join(f"文档 {d} [{a}, {b})" for d, a, b in parts)) for k, parts in enumerate(samples)]
    lab.report.table(f"sample index：每个 sample {S}+1 个 token", ["sample", "(位置, 偏移)", "由什么组成"], rows)
    lengths = {sum(b - a for _, a, b in parts) for parts in samples}
    lab.require(lengths == {S + 1}, f"每个 sample 正好 s+1 = {S + 1} 个 token（多出的 1 个是最后一个位置的 label）")
    texts = [tokens(parts) for parts in samples]
    joined = all(a[-1] == b[0] for a, b in pairwise(texts))
    lab.require(joined, "相邻 sample 正好重叠 1 个 token：没有 token 丢失")
    return [samples[k] for k in shuffle]


def tokens(parts: list[tuple[int, int, int]]) -> list[int]:
    """The token ids of a sample."""
    return [100 * d + t for d, a, b in parts for t in range(a, b)]


def show_blend_and_replicas(lab: Lab, total: int) -> None:
    """Which dataset gives each sample, and which replica reads it."""
    weights = (0.7, 0.3)
    mix = sampling.blend(weights, 20)
    counts = [sum(d == i for d, _ in mix) for i in range(2)]
    lab.report.say(f"混合 {weights} 的前 20 个 sample 来自：{''.join('AB'[d] for d, _ in mix)}")
    lab.require(counts == [14, 6], "混合比例与权重一致")
    ranks = [list(sampling.replica_batches(total, 0, B, r, DP)) for r in range(DP)]
    ranks = [ranks[0]] * DP if lab.broken("dp_same") else ranks
    rows = [(r, *batches) for r, batches in enumerate(ranks)]
    columns = [">DP rank", *(f"microbatch {k}" for k in range(len(ranks[0])))]
    lab.report.table(f"DP={DP} 时每个副本读的 sample（micro batch {B}）", columns, rows)
    read = sorted(s for batches in ranks for batch in batches for s in batch)
    lab.require(read == list(range(len(read))), "副本之间不重复、不遗漏")


def get_batch(lab: Lab, samples: list[list[tuple[int, int, int]]]) -> dict[str, Tensor]:
    """TP rank 0 reads, the others receive: four broadcasts."""
    group, shape = lab.group("tp"), (B, S)
    if group.rank() == 0 or lab.broken("tp_reads"):
        first = group.rank() if lab.broken("tp_reads") else 0  # each with its own shuffled reader
        text = torch.tensor([tokens(samples[first + i]) for i in range(B)])
        batch = {
            "tokens": text[:, :-1].contiguous(),
            "labels": text[:, 1:].contiguous(),
            "loss_mask": torch.ones(shape),
            "position_ids": torch.arange(S).expand(shape).contiguous(),
        }
    else:
        kinds = {"tokens": torch.int64, "labels": torch.int64, "loss_mask": torch.float32, "position_ids": torch.int64}
        batch = {name: torch.empty(shape, dtype=kind) for name, kind in kinds.items()}
    batch = {name: value.to(lab.device) for name, value in batch.items()}
    if not lab.broken("tp_reads"):
        for value in batch.values():
            dist.broadcast(value, src=dist.get_global_rank(group, 0), group=group)
    return batch


def slice_for_cp(lab: Lab, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """[b, s] → [b, s/c]: chunks r and 2c-1-r."""
    rank, ranks = lab.place["cp"], lab.layout.cp
    keep = sampling.zigzag(S, rank, ranks)
    if lab.broken("no_zigzag"):
        keep = list(range(rank * S // ranks, (rank + 1) * S // ranks))
    return {name: value[:, keep] for name, value in batch.items()}


def check_cp(lab: Lab, batch: dict[str, Tensor], want: Tensor) -> None:
    """Put the slices back in order, and count the causal work of each rank."""
    ranks, group = lab.layout.cp, lab.group("cp")
    for name in ("tokens", "labels"):
        parts = [torch.empty_like(batch[name]) for _ in range(ranks)]
        with lab.phase("data"):
            dist.all_gather(parts, batch[name].contiguous(), group=group)
        whole = torch.empty(B, S, dtype=torch.int64)
        for rank, part in enumerate(parts):
            whole[:, sampling.zigzag(S, rank, ranks)] = part.cpu()
        lab.check(f"CP 切片拼回的 {name}", whole, want[:, :-1] if name == "tokens" else want[:, 1:])
    work = lab.gather(int((batch["position_ids"][0] + 1).sum()))
    plain = [sum(range(r * S // ranks + 1, (r + 1) * S // ranks + 1)) for r in range(ranks)]
    lab.report.say(f"causal attention 的 (q, k) 对数：各 rank {work}；若按顺序切，各 CP rank {plain}")
    lab.require(len(set(work)) == 1, "zigzag 下各 CP rank 的工作量相同")


def check_packing(lab: Lab, parts: list[tuple[int, int, int]]) -> None:
    """Documents packed in one sample: cu_seqlens keeps attention inside each; position ids alone do not."""
    lengths = [b - a for _, a, b in parts]
    lengths[-1] -= 1  # the extra token is only a label
    lengths = [n for n in lengths if n]
    cu = torch.tensor([0, *np.cumsum(lengths)])
    generator = torch.Generator().manual_seed(lab.args.seed)
    q, k, v = torch.randn(3, 1, S, 8, generator=generator, dtype=lab.dtype)
    document = torch.bucketize(torch.arange(S), cu[1:], right=True)
    mask = torch.ones(S, S, dtype=torch.bool).tril()
    if not lab.broken("no_cu_seqlens"):
        mask &= document[:, None] == document[None, :]
    packed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    alone = [
        F.scaled_dot_product_attention(*(t[:, a:b] for t in (q, k, v)), is_causal=True)
        for a, b in zip(cu[:-1].tolist(), cu[1:].tolist(), strict=True)
    ]
    lab.report.say(f"packed sample 的 cu_seqlens：{cu.tolist()}（{len(lengths)} 个文档），max_seqlen {max(lengths)}")
    lab.check("packed attention = 逐文档 attention", packed, torch.cat(alone, dim=1))


def run(lab: Lab) -> None:
    """Everything once."""
    tp, cp = lab.layout.tp, lab.layout.cp
    lab.dims |= {"s": S, "b": B, "t": tp, "tp": tp, "c": cp, "cp": cp, "dp": lab.layout.dp}
    samples = build(lab)
    if lab.broken("no_extra_token"):
        return
    show_blend_and_replicas(lab, len(samples))
    want = torch.tensor([tokens(samples[i])[: S + 1] for i in range(B)])
    with lab.phase("data"):
        batch = get_batch(lab, samples)
    lab.check("每个 rank 的 tokens", batch["tokens"].cpu(), want[:, :S])
    check_cp(lab, slice_for_cp(lab, batch), want)
    check_packing(lab, next(s for s in samples if len(s) > 2))
    lab.prove(f"TP={tp} CP={cp}：每个 rank 的 batch")
    if lab.args.broken is None:
        lab.expect({("data", "broadcast", "tp"): 4, ("data", "all_gather", "cp"): 2})


def layout(args: Namespace, world: int) -> Layout:
    """TP 2, the rest CP."""
    tp = args.tp or (2 if world % 2 == 0 else 1)
    found = Layout(world=world, tp=tp, cp=max(1, world // tp))
    if S % (2 * found.cp):
        raise LayoutError(f"s={S} 不能切成 2×CP = {2 * found.cp} 块；请用 CP 1、2、4、8")
    if (args.broken == "no_zigzag" and found.cp < 2) or (args.broken == "tp_reads" and tp < 2):
        raise LayoutError(f"--break {args.broken} 在 TP={tp} CP={found.cp} 下看不出差别；请用 --np 4")
    return found


SCRIPT = Script(
    file=__file__,
    title="数据：从文档到每个 rank 的 batch",
    run=run,
    np=4,
    layout=layout,
    groups=("tp", "cp"),
    breaks={
        "no_extra_token": "sample 只有 s 个 token，最后一个位置没有 label",
        "dp_same": "所有 DP 副本读同样的 sample",
        "tp_reads": "每个 TP rank 自己读，不广播",
        "no_zigzag": "CP 按顺序切",
        "no_cu_seqlens": "packed sequence 只重置位置，不隔开文档",
    },
    arguments=lambda group: group.add_argument("--tp", type=int, help="TP 大小（默认 2），其余是 CP"),
)

if __name__ == "__main__":
    launch.main(SCRIPT)
