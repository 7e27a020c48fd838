"""The seeds of ch02 against Megatron's own: one process plays every rank under torch's fake process group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runnable.lab.ranks import Layout


def roles(world: int, **sizes: int) -> Iterator[int]:
    """Each rank in turn, with Megatron's groups as that rank has them. Only where Megatron is imported."""
    import torch.distributed as dist
    from megatron.core import parallel_state
    from torch.testing._internal.distributed.fake_pg import FakeStore

    for rank in range(world):
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
        parallel_state.initialize_model_parallel(create_gloo_process_groups=False, **sizes)
        yield rank
        parallel_state.destroy_model_parallel()
        dist.destroy_process_group()


@pytest.mark.parametrize(
    ("sizes", "random_init"), [((8, 2, 2, 1, 1), False), ((8, 2, 1, 2, 1), True), ((16, 2, 2, 1, 4), False)]
)
def test_seeds_are_those_that_set_random_seed_sets(sizes, random_init, with_megatron):
    """Name and seed of every stream on every rank, as Megatron's tracker is told them."""
    world, tp, pp, cp, ep = sizes

    def body(tree: Path) -> list[dict[str, int]]:
        from megatron.core.tensor_parallel.random import CudaRNGStatesTracker
        from megatron.training.initialize import _set_random_seed

        told: list[dict[str, int]] = []
        add = CudaRNGStatesTracker.add

        def record(self: Any, name: str, seed: int) -> None:
            told[-1][name] = seed
            add(self, name, seed)

        CudaRNGStatesTracker.add = record
        for _ in roles(
            world,
            tensor_model_parallel_size=tp,
            pipeline_model_parallel_size=pp,
            context_parallel_size=cp,
            expert_model_parallel_size=ep,
        ):
            told.append({})
            _set_random_seed(1234, random_init)
        return told

    from runnable.ch02_distributed_initialization import seeds

    layout = Layout(world=world, tp=tp, pp=pp, cp=cp, ep=ep)
    args = SimpleNamespace(seed=1234, data_parallel_random_init=random_init)
    told = with_megatron(body)
    assert len(told) == world
    for rank, theirs in enumerate(told):
        place = layout.dense.place(rank)
        lab = SimpleNamespace(place=place, layout=layout, rank=rank, args=args, broken=lambda rule: False)
        assert seeds(lab) == theirs, rank


@pytest.mark.parametrize(("on_cpu", "pairs"), [(False, [(1, 2)]), (True, [(0, 1), (2, 3)])], ids=["gpu", "cpu"])
def test_which_experts_start_alike(on_cpu, pairs, with_megatron):
    """PP=2 EP=2. By the expert stream, (pp=0, ep=1) and (pp=1, ep=0) have one seed, hence one set of weights; made
    with --use-cpu-initialization, both EP ranks of a stage take theirs from the one CPU stream of that stage."""

    def body(tree: Path) -> list[tuple[int, int]]:
        import warnings

        import torch
        from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
        from megatron.core.transformer import TransformerConfig
        from megatron.core.transformer.mlp import MLPSubmodules
        from megatron.core.transformer.moe.experts import SequentialMLP
        from megatron.core.transformer.moe.moe_utils import get_default_pg_collection
        from megatron.training.initialize import _set_random_seed

        warnings.simplefilter("ignore")
        layers = []
        for _ in roles(4, pipeline_model_parallel_size=2, expert_model_parallel_size=2):
            _set_random_seed(1234)
            config = TransformerConfig(
                num_layers=2, hidden_size=12, num_attention_heads=4, moe_ffn_hidden_size=48, num_moe_experts=4,
                expert_model_parallel_size=2, pipeline_model_parallel_size=2, pipeline_dtype=torch.float32,
                add_bias_linear=False, use_cpu_initialization=on_cpu,
            )  # fmt: skip
            parts = MLPSubmodules(linear_fc1=ColumnParallelLinear, linear_fc2=RowParallelLinear)
            made = SequentialMLP(2, config, parts, pg_collection=get_default_pg_collection())
            layers.append([weight.detach().clone() for weight in made.parameters()])
        assert [len(weights) for weights in layers] == [4] * 4
        alike = [[all(map(torch.equal, a, b)), any(map(torch.equal, a, b))] for b in layers for a in layers]
        assert all(every == some for every, some in alike)
        return [(a, b) for b in range(4) for a in range(b) if alike[4 * b + a][0]]

    assert with_megatron(body) == pairs
