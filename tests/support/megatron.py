"""Parity tests: ranks in which both sides run, the replay and Megatron's own code."""

from __future__ import annotations

import importlib
import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from runnable.traces import Event


def in_ranks(folder: Path, world: int, body: Callable[[int], Any], *, tp: int | None = None, cp: int = 1) -> list[Any]:
    """body(rank) in forked ranks with the model-parallel groups of TP = world, or of `tp`, and CP = `cp`."""
    import torch.distributed as dist

    from runnable.lab import launch

    def rank(store: str) -> int:
        me = int(os.environ["RANK"])
        warnings.simplefilter("ignore")  # Megatron's own, and torch's about names that Megatron calls
        launch.use_loopback(world)
        dist.init_process_group("gloo", init_method=store, rank=me, world_size=world)
        try:
            from megatron.core import parallel_state

            parallel_state.initialize_model_parallel(tensor_model_parallel_size=tp or world, context_parallel_size=cp)
            (folder / f"rank{me}").write_bytes(pickle.dumps(body(me)))
        finally:
            dist.destroy_process_group()
        return 0

    assert launch.fork_ranks(world, rank) == 0
    return [pickle.loads((folder / f"rank{r}").read_bytes()) for r in range(world)]


class Replay:
    """A chapter's script run in this rank: what it compared, what it sent, and what its functions were given."""

    def __init__(
        self,
        chapter: str,
        *argv: object,
        watch: Iterable[str] = (),
        spy: Callable[[ModuleType], None] = lambda module: None,
    ) -> None:
        import torch

        from runnable.lab import launch, run

        (path,) = (Path(__file__).resolve().parents[2] / "runnable").glob(f"{chapter}_*.py")
        self.module: ModuleType = importlib.import_module(f"runnable.{path.stem}")
        self.held: dict[str, Any] = {}
        """Name of a check → the tensor of this rank."""
        self.given: dict[str, tuple[Any, ...]] = {}
        """Watched function or class → the arguments of its last call."""
        self.returned: dict[str, list[Any]] = {name: [] for name in watch}
        """Watched function or class → what its calls returned."""
        script, world = self.module.SCRIPT, int(os.environ["WORLD_SIZE"])
        args = launch._parse(script, [str(a) for a in argv])
        self.lab = lab = run.Lab(
            script, args, script.layout(args, world), rank=int(os.environ["RANK"]), device=torch.device("cpu")
        )
        lab.report._speaks = False
        check = lab.check

        def keep(name: str, got: Any, want: Any, **more: Any) -> None:
            self.held[name] = got.detach().clone()
            check(name, got, want, **more)

        lab.check = keep  # type: ignore[method-assign]
        for name in self.returned:
            self._watch(name)
        spy(self.module)
        lab.open()
        try:
            script.run(lab)
        finally:
            lab.tracer.remove()
        assert not lab._failed, lab._failed
        self.calls = list(lab.tracer.events)

    def _watch(self, name: str) -> None:
        original = getattr(self.module, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.given[name] = args
            self.returned[name].append(original(*args, **kwargs))
            return self.returned[name][-1]

        setattr(self.module, name, call)


def brief(events: Iterable[Event], *groups: str) -> list[tuple[Any, ...]]:
    """Phase, kind, group and shapes of the calls in these groups, in order."""
    found = []
    for event in events:
        group = event.group.partition("[")[0]
        if group in groups:
            shapes = [tuple(t.shape) for t in (*event.before[:1], *event.after[:1])]
            found.append((event.phase, event.kind, group, *shapes))
    return found


def small_config(**more: Any) -> Any:
    """One layer, nothing dropped, nothing fused, weights left to the test."""
    from megatron.core.transformer import TransformerConfig

    given = {"num_attention_heads": 4, "tensor_model_parallel_size": 2, "perform_initialization": False}
    return TransformerConfig(
        num_layers=1, hidden_size=16, add_bias_linear=False, use_cpu_initialization=True,
        gradient_accumulation_fusion=False, hidden_dropout=0.0, attention_dropout=0.0, **(given | more),
    )  # fmt: skip


def simple_loop(
    module: Any,
    config: Any,
    batches: Iterator[Any],
    forward_step: Any,
    *,
    m: int,
    steps: int,
    lr: float,
    momentum: float = 0.0,
    clip: float = 0.0,
    **ddp: Any,
) -> Iterator[tuple[dict[str, tuple[Any, Any]], Any, float | None]]:
    """The loop of examples/run_simple_mcore_train_loop.py around Megatron's own schedule, DDP, finalize and optimizer.

    `ddp` goes to DistributedDataParallelConfig. Yields after each step what the ranks hold: {name: (gradient before
    clipping, parameter)}, the losses of its microbatches, and the gradient norm.
    """
    import torch
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.pipeline_parallel import get_forward_backward_func

    model = DistributedDataParallel(config, DistributedDataParallelConfig(**ddp), module)
    # As training.py does: the schedule syncs in the last microbatch only, and passes the number of tokens on.
    config.no_sync_func, config.finalize_model_grads_func = model.no_sync, finalize_model_grads
    sharded = bool(ddp.get("use_distributed_optimizer"))
    optimizer = get_megatron_optimizer(
        OptimizerConfig(
            optimizer="adam" if sharded else "sgd", lr=lr, sgd_momentum=momentum, clip_grad=clip, weight_decay=0.0,
            use_distributed_optimizer=sharded,
        ),
        [model],
    )  # fmt: skip
    if sharded:
        # DistributedOptimizer takes Adam alone; what updates its shards is ours, the rest of the step is its own.
        (inner,) = optimizer.chained_optimizers
        sgd = torch.optim.SGD([torch.empty(0)], lr=lr, momentum=momentum)
        # Shards are views of the parameters, which the constructor does not take; Megatron too puts them in later.
        sgd.param_groups = [sgd.param_groups[0] | {"params": group["params"]} for group in inner.optimizer.param_groups]
        inner.optimizer = sgd
    for _ in range(steps):
        model.zero_grad_buffer()
        optimizer.zero_grad()
        losses = get_forward_backward_func()(
            forward_step_func=forward_step, data_iterator=batches, model=model, num_microbatches=m,
            seq_length=1, micro_batch_size=1, forward_only=False,
        )  # fmt: skip
        grads = {name: p.main_grad.clone() for name, p in module.named_parameters()}
        _, norm, _ = optimizer.step()
        yield {name: (grads[name], p.detach().clone()) for name, p in module.named_parameters()}, losses, norm


def error(got: Any, want: Any) -> float:
    """Largest difference over the largest number."""
    assert got.shape == want.shape
    return float((got - want).abs().max() / want.abs().max())
