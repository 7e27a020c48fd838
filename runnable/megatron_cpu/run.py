"""What to train, and in which layout: one value that becomes Megatron's command line and the letters of a trace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from runnable.lab.ranks import Layout

Recorded = Literal["step", "setup", "checkpoint"]
"""What a trace holds: train_step; everything before it; or save_checkpoint and load_checkpoint after it."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """The model's size, the batch, the layout."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    """Expert parallel: a part of dp."""
    vpp: int = 1
    sp: bool = False
    dist_opt: bool = False
    overlap: bool = False
    """Overlap the gradient sync with backward, and with the distributed optimizer the parameter gather with forward."""
    layers: int = 4
    hidden: int = 32
    ffn: int = 0
    """0: four times hidden."""
    heads: int = 4
    groups: int = 0
    """Query groups of grouped-query attention; 0: one for each head."""
    seq: int = 16
    vocab: int = 128
    """After padding: what NullTokenizer adds makes it a whole number of pieces, so no layout pads it further."""
    micro: int = 2
    microbatches: int = 4
    """Of all replicas together, so that every layout sees the same global batch."""
    steps: int = 1
    mask: bool = False
    """Make the attention mask in the data loader, hence broadcast it."""
    adam: bool = False
    """Adam with eps 1, so that rounding in tiny gradients is not blown up; the distributed optimizer takes no SGD."""
    recorded: Recorded = "step"
    shapes_only: bool = False
    """Tensors without numbers: see `fake`."""
    extra: tuple[str, ...] = ()
    """More arguments for Megatron, the same in one process."""
    only_here: tuple[str, ...] = ()
    """More arguments that belong to the layout and are left out in one process."""
    without: frozenset[str] = field(default_factory=frozenset)
    """Patches to leave out."""

    @property
    def world(self) -> int:
        return self.tp * self.pp * self.dp * self.cp

    @property
    def global_batch(self) -> int:
        return self.micro * self.microbatches

    @property
    def layout(self) -> Layout:
        """Raises `LayoutError`."""
        return Layout(world=self.world, tp=self.tp, pp=self.pp, cp=self.cp, ep=self.ep)

    def alone(self) -> Run:
        """The same training in one process."""
        return replace(
            self, tp=1, pp=1, dp=1, cp=1, ep=1, vpp=1, sp=False, dist_opt=False, overlap=False, recorded="step",
            adam=self.adam or self.dist_opt, only_here=(),
        )  # fmt: skip

    def dims(self) -> dict[str, int]:
        """Letters of symbolic shapes and counts."""
        return {
            "s": self.seq, "b": self.micro, "h": self.hidden, "f": self.ffn or 4 * self.hidden, "V": self.vocab,
            "L": self.layers, "n": self.heads, "g": self.groups or self.heads, "d": self.hidden // self.heads,
            "m": self.microbatches // self.dp, "gbs": self.global_batch, "steps": self.steps,
            "t": self.tp, "tp": self.tp, "pp": self.pp, "dp": self.dp, "cp": self.cp, "ep": self.ep, "vpp": self.vpp,
        }  # fmt: skip

    def arguments(self) -> list[str]:
        """Megatron's command line."""
        found = f"""
            --num-layers {self.layers} --hidden-size {self.hidden} --num-attention-heads {self.heads}
            --seq-length {self.seq} --max-position-embeddings {self.seq}
            --micro-batch-size {self.micro} --global-batch-size {self.global_batch}
            --train-iters {self.steps} --lr 0.1 --min-lr 0.1 --lr-decay-style constant --weight-decay 0 --clip-grad 0
            --optimizer {"adam" if self.adam or self.dist_opt else "sgd"} --sgd-momentum 0 --adam-eps 1
            --vocab-size {self.vocab - 1} --tokenizer-type NullTokenizer --mock-data
            --make-vocab-size-divisible-by 1 --transformer-impl local --distributed-backend gloo
            --no-masked-softmax-fusion --no-gradient-accumulation-fusion --no-bias-dropout-fusion
            --no-bias-gelu-fusion --no-persist-layer-norm --no-rope-fusion --attention-dropout 0 --hidden-dropout 0
            --tensor-model-parallel-size {self.tp} --pipeline-model-parallel-size {self.pp}
            --context-parallel-size {self.cp} --expert-model-parallel-size {self.ep}
            --log-interval 1000 --eval-iters 0 --num-workers 0
        """.split()
        if self.vpp > 1:
            found += ["--num-layers-per-virtual-pipeline-stage", str(self.layers // self.pp // self.vpp)]
        if self.ffn:
            found += ["--ffn-hidden-size", str(self.ffn)]
        if self.groups:
            found += ["--group-query-attention", "--num-query-groups", str(self.groups)]
        flags = {
            "--no-create-attention-mask-in-dataloader": not self.mask,
            "--sequence-parallel": self.sp,
            "--use-distributed-optimizer": self.dist_opt,
            "--overlap-grad-reduce": self.overlap,
            "--overlap-param-gather": self.overlap and self.dist_opt,
        }
        return [*found, *(flag for flag, on in flags.items() if on), *self.extra, *self.only_here]
