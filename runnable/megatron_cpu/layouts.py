"""The layouts that are known to equal one process: what `make megatron-all` runs, and the test suite a part of.

Each is compared with the same training in one process from the same weights: every gradient (where a rank holds whole
ones) and every parameter after the step.
"""

from __future__ import annotations

from runnable.megatron_cpu.run import Run

_RECOMPUTE = ("--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1")
_SELECTIVE = ("--recompute-granularity", "selective", "--recompute-modules")
_BUCKETS = ("--ddp-bucket-size", "10000")
PER_TOKEN = ("--calculate-per-token-loss",)
"""With CP a rank's mean over its own tokens is not the mean over all: Megatron sums tokens over DP×CP instead."""
_LLAMA = (
    *("--normalization", "RMSNorm", "--swiglu", "--no-bias-swiglu-fusion", "--position-embedding-type", "rope"),
    *("--untie-embeddings-and-output-weights", "--disable-bias-linear"),
)


def _experts(dispatcher: str) -> tuple[str, ...]:
    return (
        *("--num-experts", "4", "--moe-router-topk", "2", "--moe-token-dispatcher-type", dispatcher),
        *("--moe-aux-loss-coeff", "0.01", "--disable-bias-linear"),
    )


def _llama(**sizes: int | bool | tuple[str, ...]) -> Run:
    return Run(ffn=64, groups=2, extra=_LLAMA, **sizes)  # type: ignore[arg-type]


LAYOUTS: dict[str, Run] = {
    "tp2": Run(tp=2),
    "tp2-sp": Run(tp=2, sp=True),
    "pp2": Run(pp=2),
    "pp4": Run(pp=4, microbatches=8),
    "pp2-vpp2": Run(pp=2, vpp=2),
    "pp4-vpp2": Run(pp=4, vpp=2, layers=8),
    "dp2": Run(dp=2),
    "dp2-overlap": Run(dp=2, overlap=True, steps=2, only_here=_BUCKETS),
    "dp2-dist-opt": Run(dp=2, dist_opt=True),
    "dp2-dist-opt-overlap": Run(dp=2, dist_opt=True, overlap=True, steps=2, only_here=_BUCKETS),
    "tp2-pp2-dp2": Run(tp=2, pp=2, dp=2),
    "tp2-pp2-sp": Run(tp=2, pp=2, sp=True),
    "tp2-sp-pp2-vpp2-dp2-dist-opt-overlap": Run(
        tp=2, sp=True, pp=2, vpp=2, dp=2, dist_opt=True, overlap=True, steps=2, only_here=_BUCKETS
    ),
    "tp2-recompute-full": Run(tp=2, only_here=_RECOMPUTE),
    "tp2-sp-recompute-full": Run(tp=2, sp=True, only_here=_RECOMPUTE),
    "tp2-recompute-core-attn": Run(tp=2, only_here=(*_SELECTIVE, "core_attn")),
    "tp2-recompute-mlp": Run(tp=2, extra=("--disable-bias-linear",), only_here=(*_SELECTIVE, "mlp")),
    "ep2-alltoall": Run(dp=2, ep=2, extra=_experts("alltoall")),
    "ep2-allgather": Run(dp=2, ep=2, extra=_experts("allgather")),
    "tp2-sp-ep2-alltoall": Run(
        tp=2, sp=True, dp=2, ep=2, extra=_experts("alltoall"), only_here=("--expert-tensor-parallel-size", "1")
    ),
    "cp2": Run(cp=2, extra=PER_TOKEN),
    "tp2-sp-cp2": Run(tp=2, sp=True, cp=2, extra=PER_TOKEN),
    "llama-tp2-sp-pp2": _llama(tp=2, sp=True, pp=2),
    "llama-tp2-sp-cp2": Run(tp=2, sp=True, cp=2, ffn=64, groups=2, extra=(*_LLAMA, *PER_TOKEN)),
}
LARGE: dict[str, Run] = {
    "llama-3-70b": Run(
        tp=8, sp=True, pp=4, vpp=4, dp=16, dist_opt=True, overlap=True, layers=80, hidden=8192, ffn=28672, heads=64,
        groups=8, seq=8192, vocab=128256, micro=1, microbatches=128, steps=2, extra=(*_LLAMA, "--bf16"),
    ),
}  # fmt: skip
"""Shapes of real jobs, for one rank at a time; two steps, since parameters are gathered in the second one's forward."""
