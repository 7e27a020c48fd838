"""One rank of the real Megatron-LM: initialize_megatron, setup_model_and_optimizer, train_step, and on demand
save_checkpoint and load_checkpoint; nothing of them is ours. Ours are the model's size, the weights and the data.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from runnable.lab.modules import ModuleNames
from runnable.lab.trace import Tracer
from runnable.megatron_cpu import attention, fake
from runnable.megatron_cpu.phases import tracer
from runnable.megatron_cpu.run import Run
from runnable.megatron_cpu.workload import batches, fill, forward_step, named_modules, pieces, provide_model

__all__ = ["Outcome", "Run", "tracer", "train"]


@dataclass
class Outcome:
    """What one rank knows after the run."""

    rank: int
    losses: list[float]
    grads: dict[tuple[str, tuple[int, ...]], torch.Tensor]
    """(name, place in the whole tensor) → main_grad after finalize_model_grads."""
    params: dict[tuple[str, tuple[int, ...]], torch.Tensor]
    """The same of the parameters after the last step; of a checkpoint run, as they came back from the disk."""


def train(run: Run, record: Tracer) -> Outcome:
    """This rank's run; the world of `run.world` ranks is up."""
    sys.argv = ["megatron_cpu", *run.arguments()]
    if run.recorded == "checkpoint":
        # A relative name: the files' names travel between ranks, and their length must not depend on the machine.
        sys.argv += [
            "--save",
            "checkpoint",
            "--load",
            "checkpoint",
            "--save-interval",
            "1000",
            "--ckpt-format",
            "torch_dist",
        ]
    if run.cp > 1:
        attention.install()
    if run.shapes_only:
        fake.enter()
    from megatron.core.enums import ModelType
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.rerun_state_machine import RerunDataIterator
    from megatron.training import get_args
    from megatron.training.initialize import initialize_megatron
    from megatron.training.training import disable_forward_pre_hook, setup_model_and_optimizer, train_step

    record.on = run.recorded == "setup"
    initialize_megatron()
    model, optimizer, scheduler = setup_model_and_optimizer(provide_model, ModelType.encoder_or_decoder)
    record.on = False
    if not run.shapes_only:
        with torch.no_grad():
            for piece in pieces(model):
                fill(piece)
        optimizer.reload_model_params()
    config, start_param_sync = _loop_setup(model, optimizer)
    record.module_of = modules = ModuleNames()
    modules.watch(named_modules(model))
    losses: list[float] = []
    data = [RerunDataIterator(batches(run)) for _ in model]
    for step in range(run.steps):
        record.on = run.recorded == "step"
        get_args().curr_iteration = step
        iterator = data if len(data) > 1 else data[0]
        schedule = get_forward_backward_func()
        reduced, *_ = train_step(forward_step, iterator, model, optimizer, scheduler, config, schedule, iteration=step)
        losses += [float(value) for value in reduced.values()]
        record.on = False
        if start_param_sync and step == 0:
            start_param_sync()
    if start_param_sync:
        disable_forward_pre_hook(model)  # gathers what the last step has left in its shards
    if run.recorded == "checkpoint":
        record.on = True
        _save_and_load(model, optimizer, scheduler)
        record.on = False
    held = [] if run.shapes_only else list(pieces(model))
    return Outcome(
        rank=dist.get_rank(),
        losses=losses,
        grads={(piece.name, piece.offset): piece.grad.clone() for piece in held},
        params={(piece.name, piece.offset): piece.weight.clone() for piece in held},
    )


def _loop_setup(model: list[Any], optimizer: Any) -> tuple[Any, Any]:
    """What training.py::train sets up before its loop; and what it does after the first step, if anything."""
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.utils import get_model_config
    from megatron.training import get_args
    from megatron.training.training import disable_forward_pre_hook, enable_forward_pre_hook

    args, config = get_args(), get_model_config(model[0])

    def one_or_all(found: list[Any]) -> Any:
        return found if len(found) > 1 else found[0]

    config.grad_scale_func = optimizer.scale_loss
    config.finalize_model_grads_func = finalize_model_grads
    if args.overlap_grad_reduce:
        config.no_sync_func = one_or_all([chunk.no_sync for chunk in model])
        if args.align_grad_reduce:
            config.grad_sync_func = one_or_all([chunk.start_grad_sync for chunk in model])
    if not args.overlap_param_gather:
        return config, None
    disable_forward_pre_hook(model, param_sync=False)

    def after_first_step() -> None:
        enable_forward_pre_hook(model)
        if args.align_param_gather:
            config.param_sync_func = one_or_all([chunk.start_param_sync for chunk in model])

    return config, after_first_step


def _save_and_load(model: list[Any], optimizer: Any, scheduler: Any) -> None:
    """Through the files and back: the weights are wiped in between."""
    from megatron.training.checkpointing import load_checkpoint, save_checkpoint

    save_checkpoint(1, model, optimizer, scheduler, 0)
    with torch.no_grad():
        for piece in pieces(model):
            piece.weight.zero_()
    load_checkpoint(model, optimizer, scheduler)
