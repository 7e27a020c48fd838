"""What the driver brings to Megatron: the model's shape, weights and data that are the same in every layout."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runnable.megatron_cpu.run import Run


def provide_model(pre_process: bool = True, post_process: bool = True, vp_stage: int | None = None, **_: Any) -> Any:
    """A GPTModel from Megatron's own layer spec without Transformer Engine, chosen as `gpt_builders.py` chooses."""
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_layer_local_spec
    from megatron.training import get_args
    from megatron.training.arguments import core_transformer_config_from_args

    args = get_args()
    config = core_transformer_config_from_args(args)
    if args.num_experts:
        spec = get_gpt_decoder_block_spec(config, False, normalization=args.normalization, vp_stage=vp_stage)
    else:
        spec = get_gpt_layer_local_spec(normalization=args.normalization)
    return GPTModel(
        config=config,
        transformer_layer_spec=spec,
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        pre_process=pre_process,
        post_process=post_process,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        position_embedding_type=args.position_embedding_type,
        rotary_percent=args.rotary_percent,
        rotary_base=args.rotary_base,
        parallel_output=True,
        vp_stage=vp_stage,
    )


def named_modules(model: Sequence[Any]) -> Iterator[tuple[str, torch.nn.Module]]:
    """Every module, layers counted over all stages and chunks."""
    prefix = "decoder.layers."
    for chunk in model:
        inner = chunk.module
        for name, module in inner.named_modules():
            if name.startswith(prefix):
                index, *rest = name.removeprefix(prefix).split(".")
                number = inner.decoder.layers[int(index)].layer_number - 1
                name = ".".join([f"{prefix}{number}", *rest])
            if name:
                yield name, module


@dataclass(frozen=True)
class Piece:
    """A stretch of the whole model that this rank holds."""

    name: str
    """Over all layers, as in a checkpoint."""
    offset: tuple[int, ...]
    """Where it lies in the whole tensor; leading dimensions count layers and experts."""
    whole: tuple[int, ...]
    weight: torch.Tensor
    grad: torch.Tensor
    """Both are views of the parameter and of its `main_grad`."""


def pieces(model: Sequence[Any]) -> Iterator[Piece]:
    """Every parameter of this rank, in the pieces that a checkpoint would hold.

    Megatron's own sharded state dict knows their places: it is what checkpoints reshard by.
    """
    for chunk in model:
        inner = chunk.module
        owned = {p.untyped_storage().data_ptr() + p.storage_offset() * p.element_size(): p for p in inner.parameters()}
        for tensor in _sharded(inner.sharded_state_dict()):
            data = tensor.data
            if data is None or not data.numel():
                continue
            at = data.data_ptr()
            found = [(start, p) for start, p in owned.items() if start <= at < start + p.numel() * p.element_size()]
            if not found:
                continue
            (start, param), count = found[0], data.numel()
            first = (at - start) // param.element_size()
            views = (t.view(-1)[first : first + count].view(data.shape) for t in (param.detach(), param.main_grad))
            yield Piece(tensor.key, tuple(tensor.global_offset), tuple(tensor.global_shape), *views)


def _sharded(value: Any) -> Iterator[Any]:
    from megatron.core.dist_checkpointing import ShardedTensor
    from megatron.core.dist_checkpointing.mapping import ShardedTensorFactory

    if isinstance(value, ShardedTensor):
        yield value
    elif isinstance(value, ShardedTensorFactory):
        yield from _sharded(value.build())
    elif isinstance(value, dict):
        for item in value.values():
            yield from _sharded(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _sharded(item)


def fill(piece: Piece) -> None:
    """Write the numbers that belong there in every layout: the whole tensor from its name's checksum, then a cut."""
    generator = torch.Generator().manual_seed(zlib.crc32(piece.name.encode()))
    whole = torch.randn(piece.whole, generator=generator)
    if "norm" in piece.name and piece.name.endswith("weight"):
        whole = 1 + whole / 10
    else:
        whole = whole / (10 if piece.name.endswith("bias") else 6)
    lead = len(piece.whole) - piece.weight.dim()
    cuts = (slice(at, at + size) for at, size in zip(piece.offset[lead:], piece.weight.shape, strict=True))
    piece.weight.copy_(whole[(*piece.offset[:lead], *cuts)])


def batches(run: Run) -> Iterator[dict[str, torch.Tensor]]:
    """This replica's microbatches: every dp-th of the same global list; masks of unequal length."""
    from megatron.core import parallel_state

    rank, generator = parallel_state.get_data_parallel_rank(), torch.Generator().manual_seed(7)
    hidden = torch.triu(torch.ones(run.seq, run.seq), 1).bool().repeat(run.micro, 1, 1, 1)
    for index in range(run.steps * run.microbatches):
        text = torch.randint(0, run.vocab - 1, (run.micro, run.seq + 1), generator=generator)
        keep = torch.arange(run.seq) < max(1, run.seq - 3 * (index % run.microbatches))
        if index % run.dp == rank:
            yield {
                "tokens": text[:, :-1].contiguous(),
                "labels": text[:, 1:].contiguous(),
                "loss_mask": keep.repeat(run.micro, 1).float(),
                "position_ids": torch.arange(run.seq).repeat(run.micro, 1),
            } | ({"attention_mask": hidden} if run.mask else {})


def forward_step(data: Any, model: Any, *_: Any) -> tuple[torch.Tensor, Any]:
    """The forward step of pretrain_gpt.py, without what this run does not use."""
    from megatron.core import parallel_state
    from megatron.core.utils import get_attr_wrapped_model, get_batch_on_this_cp_rank
    from megatron.training.utils import get_batch_on_this_tp_rank

    stage = get_attr_wrapped_model(model, "vp_stage")
    first = parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=stage)
    last = parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=stage)
    names = ("tokens", "position_ids", "labels", "loss_mask", "attention_mask")
    batch: dict[str, Any] = dict.fromkeys(names)
    if first or last:
        found = get_batch_on_this_tp_rank(data)
        batch = get_batch_on_this_cp_rank({name: found[name] for name in names})
    output = model(batch["tokens"], batch["position_ids"], batch["attention_mask"], labels=batch["labels"])

    def loss_func(losses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
        mask = batch["loss_mask"].view(-1).float()
        loss, tokens = (losses.view(-1).float() * mask).sum(), mask.sum().to(torch.int)
        report = torch.stack([loss.detach(), tokens.float()])
        return loss, tokens, {"lm loss": report}

    return output, loss_func
