"""One rank of the real Megatron-LM: initialize_megatron, setup_model_and_optimizer, train_step; nothing of it is ours.

Ours are the model's size, the data (random tokens, the same in every layout) and the weights: each parameter is filled
from its own name and its place in the whole tensor, so that every layout starts from the same model.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.distributed as dist

from runnable.lab.trace import Tracer
from runnable.traces import Phase

SEQ, MICRO, HIDDEN, HEADS, VOCAB = 16, 2, 32, 4, 127
# NullTokenizer adds one token: 128 divides by every power of two up to it, so no layout pads the vocabulary.


@dataclass(frozen=True, kw_only=True)
class Run:
    """What to train, in which layout."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    vpp: int = 1
    sp: bool = False
    dist_opt: bool = False
    layers: int = 4
    hidden: int = HIDDEN
    heads: int = HEADS
    microbatches: int = 4
    """Of all replicas together, so that every layout sees the same global batch."""
    steps: int = 1
    adam: bool = False
    """Adam with eps 1, so that rounding in tiny gradients is not blown up; the distributed optimizer takes no SGD."""
    extra: tuple[str, ...] = ()
    """More arguments for Megatron."""
    without: frozenset[str] = field(default_factory=frozenset)
    """Patches to leave out."""

    @property
    def world(self) -> int:
        return self.tp * self.pp * self.dp

    def alone(self) -> Run:
        """The same training in one process."""
        adam = self.adam or self.dist_opt
        return replace(self, tp=1, pp=1, dp=1, vpp=1, sp=False, dist_opt=False, adam=adam)

    def arguments(self) -> list[str]:
        """Megatron's command line."""
        found = f"""
            --num-layers {self.layers} --hidden-size {self.hidden} --num-attention-heads {self.heads} --seq-length {SEQ}
            --max-position-embeddings {SEQ} --micro-batch-size {MICRO} --global-batch-size {MICRO * self.microbatches}
            --train-iters {self.steps} --lr 0.1 --min-lr 0.1 --lr-decay-style constant --weight-decay 0 --clip-grad 0
            --optimizer {"adam" if self.adam or self.dist_opt else "sgd"} --sgd-momentum 0 --adam-eps 1
            --vocab-size {VOCAB} --tokenizer-type NullTokenizer --mock-data
            --make-vocab-size-divisible-by 1 --transformer-impl local --distributed-backend gloo
            --no-masked-softmax-fusion --no-gradient-accumulation-fusion --no-bias-dropout-fusion
            --no-bias-gelu-fusion --no-persist-layer-norm --no-rope-fusion --attention-dropout 0 --hidden-dropout 0
            --tensor-model-parallel-size {self.tp} --pipeline-model-parallel-size {self.pp}
            --no-create-attention-mask-in-dataloader --log-interval 1000 --eval-iters 0 --num-workers 0
        """.split()
        if self.vpp > 1:
            found += ["--num-layers-per-virtual-pipeline-stage", str(self.layers // self.pp // self.vpp)]
        flags = {"--sequence-parallel": self.sp, "--use-distributed-optimizer": self.dist_opt}
        return [*found, *(flag for flag, on in flags.items() if on), *self.extra]


@dataclass
class Outcome:
    """What one rank knows after the run."""

    rank: int
    losses: list[float]
    grads: dict[tuple[str, tuple[int, ...]], torch.Tensor]
    """(name, place in the whole tensor) → main_grad after finalize_model_grads."""
    params: dict[tuple[str, tuple[int, ...]], torch.Tensor]


PHASES: dict[str, Phase] = {
    "get_batch_on_this_tp_rank": "data",
    "finalize_model_grads": "grad-sync",
    "step_with_ready_grads": "optimizer",
    "start_param_sync": "param-sync",
    "forward_step": "forward",
    "backward_step": "backward",
    "send_forward_recv_backward": "forward",
    "send_forward_recv_forward": "forward",
    "send_backward_recv_forward": "backward",
    "send_backward_recv_backward": "backward",
    "send_forward_backward_recv_forward_backward": "backward",
    "recv_forward": "forward",
    "send_forward": "forward",
    "recv_backward": "backward",
    "send_backward": "backward",
    "get_grad_norm": "optimizer",
    "initialize_megatron": "setup",
    "setup_model_and_optimizer": "setup",
    "train_step": "logging",
}
"""Function on the stack → phase; the innermost one that is named decides."""
HELPERS = frozenset(
    {
        *("_batched_p2p_ops", "_p2p_ops", "_communicate", "wrapper"),
        *("_reduce", "_gather_along_first_dim", "_gather_along_last_dim", "_reduce_scatter_along_first_dim"),
        *("_broadcast", "_broadcast_cu_seqlens"),
    }
)
"""Functions of Megatron that only pass a call on."""


def tracer(tree: str) -> Tracer:
    """Records calls with lines of Megatron, whose functions also name the phase."""
    return Tracer(trees=((tree + "/", ""),), skip=("\0",), helpers=HELPERS, describe=PHASES.get)


def train(run: Run, record: Tracer) -> Outcome:
    """This rank's run; the world of `run.world` ranks is up."""
    sys.argv = ["megatron_cpu", *run.arguments()]
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.enums import ModelType
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.rerun_state_machine import RerunDataIterator
    from megatron.core.utils import get_model_config
    from megatron.training import get_args
    from megatron.training.initialize import initialize_megatron
    from megatron.training.training import setup_model_and_optimizer, train_step

    initialize_megatron()
    model, optimizer, scheduler = setup_model_and_optimizer(_provide_model, ModelType.encoder_or_decoder)
    with torch.no_grad():
        for name, place, param in pieces(model):
            param.copy_(piece_of(name, place, param))
    optimizer.reload_model_params()
    config, losses = get_model_config(model[0]), []
    # What training.py::train sets up before its loop.
    config.grad_scale_func = optimizer.scale_loss
    config.finalize_model_grads_func = finalize_model_grads
    if get_args().overlap_grad_reduce:
        hooks = [chunk.no_sync for chunk in model]
        config.no_sync_func = hooks if len(hooks) > 1 else hooks[0]
    data = [RerunDataIterator(batches(run)) for _ in model]
    record.on = True
    for step in range(run.steps):
        get_args().curr_iteration = step
        iterator = data if len(data) > 1 else data[0]
        schedule = get_forward_backward_func()
        reduced, *_ = train_step(forward_step, iterator, model, optimizer, scheduler, config, schedule, iteration=step)
        losses += [float(value) for value in reduced.values()]
    record.on = False
    held = list(pieces(model))
    return Outcome(
        rank=dist.get_rank(),
        losses=losses,
        grads={(name, place.offset): param.main_grad.detach().clone() for name, place, param in held},
        params={(name, place.offset): param.detach().clone() for name, place, param in held},
    )


def _provide_model(pre_process: bool = True, post_process: bool = True, vp_stage: int | None = None, **_: Any) -> Any:
    """A GPTModel from Megatron's own layer spec without Transformer Engine."""
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.training import get_args
    from megatron.training.arguments import core_transformer_config_from_args

    args = get_args()
    return GPTModel(
        config=core_transformer_config_from_args(args),
        transformer_layer_spec=get_gpt_layer_local_spec(),
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        pre_process=pre_process,
        post_process=post_process,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        parallel_output=True,
        vp_stage=vp_stage,
    )


@dataclass(frozen=True)
class Place:
    """Where a rank's piece lies in the whole tensor."""

    offset: tuple[int, ...]
    whole: tuple[int, ...]


def pieces(model: Sequence[Any]) -> Iterator[tuple[str, Place, torch.nn.Parameter]]:
    """Every parameter of this rank with its name over all layers and its place in the whole tensor.

    Megatron's own sharded state dict knows both: it is what checkpoints reshard by.
    """
    for chunk in model:
        inner = chunk.module
        owned = {p.data_ptr(): p for p in inner.parameters()}
        for tensor in _sharded(inner.sharded_state_dict()):
            param = owned.get(tensor.data.data_ptr()) if tensor.data is not None else None
            if param is not None and param.numel() == tensor.data.numel():
                yield tensor.key, Place(tuple(tensor.global_offset), tuple(tensor.global_shape)), param


def _sharded(value: Any) -> Iterator[Any]:
    from megatron.core.dist_checkpointing import ShardedTensor

    if isinstance(value, ShardedTensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _sharded(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _sharded(item)


def piece_of(name: str, place: Place, param: torch.Tensor) -> torch.Tensor:
    """The same numbers in every layout: the whole tensor from its name's checksum, then this piece of it."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    whole = torch.randn(place.whole, generator=generator)
    if "norm" in name and name.endswith("weight"):
        whole = 1 + whole / 10
    else:
        whole = whole / (10 if name.endswith("bias") else 6)
    lead = len(place.whole) - param.dim()
    cuts = (slice(start, start + size) for start, size in zip(place.offset[lead:], param.shape, strict=True))
    return whole[(*place.offset[:lead], *cuts)].to(param.dtype)


def batches(run: Run) -> Iterator[dict[str, torch.Tensor]]:
    """This replica's microbatches: every dp-th of the same global list; masks of unequal length."""
    from megatron.core import parallel_state

    rank, generator = parallel_state.get_data_parallel_rank(), torch.Generator().manual_seed(7)
    for index in range(run.steps * run.microbatches):
        text = torch.randint(0, VOCAB, (MICRO, SEQ + 1), generator=generator)
        keep = torch.arange(SEQ).expand(MICRO, SEQ) < SEQ - 3 * (index % run.microbatches)
        if index % run.dp == rank:
            yield {
                "tokens": text[:, :-1].contiguous(),
                "labels": text[:, 1:].contiguous(),
                "loss_mask": keep.float(),
                "position_ids": torch.arange(SEQ).repeat(MICRO, 1),
            }


def forward_step(data: Any, model: Any, *_: Any) -> tuple[torch.Tensor, Any]:
    """The forward step of pretrain_gpt.py, without what this run does not use."""
    from megatron.core import parallel_state
    from megatron.training.utils import get_batch_on_this_tp_rank

    stage = getattr(model, "vp_stage", None) if hasattr(model, "vp_stage") else getattr(model.module, "vp_stage", None)
    first = parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=stage)
    last = parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=stage)
    batch: dict[str, Any] = dict.fromkeys(("tokens", "position_ids", "labels", "loss_mask"))
    if first or last:
        batch = get_batch_on_this_tp_rank(data)
    output = model(batch["tokens"], batch["position_ids"], None, labels=batch["labels"])

    def loss_func(losses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
        mask = batch["loss_mask"].view(-1).float()
        loss, tokens = (losses.view(-1).float() * mask).sum(), mask.sum().to(torch.int)
        report = torch.stack([loss.detach(), tokens.float()])
        return loss, tokens, {"lm loss": report}

    return output, loss_func
