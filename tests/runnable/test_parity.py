"""Our replays against Megatron's own code at the pin, piece by piece: same numbers, same calls in the same order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("einops", reason="the real Megatron needs einops")

from runnable.lab.ranks import Layout
from runnable.traces import Trace
from tests.support.megatron import in_ranks


@pytest.mark.parametrize("sizes", [(8, 2, 2, 1, 1), (16, 2, 2, 2, 2), (32, 4, 2, 1, 4)])
def test_groups_are_those_that_initialize_model_parallel_makes(sizes, with_megatron):
    """ch02: every group by Megatron's own name, asked of the real function under torch's fake process group."""
    world, tp, pp, cp, ep = sizes

    def body(tree: Path) -> dict[str, list[list[int]]]:
        import torch.distributed as dist
        from megatron.core import parallel_state
        from torch.testing._internal.distributed.fake_pg import FakeStore

        made: dict[str, list[list[int]]] = {}
        new_group = dist.new_group

        def record(ranks: Any = None, *args: Any, group_desc: str = "", **kwargs: Any) -> Any:
            made.setdefault(group_desc, []).append(list(ranks))
            return new_group(ranks, *args, group_desc=group_desc, **kwargs)

        dist.new_group = record
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=tp,
            pipeline_model_parallel_size=pp,
            context_parallel_size=cp,
            expert_model_parallel_size=ep,
            create_gloo_process_groups=False,
        )
        return made

    made = with_megatron(body)
    ours = Layout(world=world, tp=tp, pp=pp, cp=cp, ep=ep).all_groups()
    assert ours.keys() <= made.keys()
    for name, groups in ours.items():
        assert made[name] == groups, name
    assert list(ours) == [name for name in made if name in ours]


@pytest.mark.parametrize("sp", [False, True])
def test_the_linear_pair_is_megatrons(play, with_megatron, tmp_path, sp):
    """ch10: gradients of the same weights and input, and the calls of forward and backward, in order."""
    argv = ["--np", 2, "--tp", 2, *(["--sp"] if sp else [])]
    assert play("ch10", *argv, "--out", tmp_path / "ours").code == 0
    calls = [e for e in Trace.load(tmp_path / "ours.json").events(0) if e.label == "microbatch 0"]
    ours = [(e.phase, e.kind, e.before[0].shape, e.after[0].shape, e.asynchronous) for e in calls]

    def body(tree: Path) -> Any:
        return in_ranks(tmp_path, 2, lambda rank: pair(rank, tree))

    def pair(rank: int, tree: Path) -> Any:
        import warnings

        import torch
        from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
        from megatron.core.transformer import TransformerConfig

        from runnable.megatron_cpu.driver import tracer

        F = torch.nn.functional  # noqa: N806
        warnings.simplefilter("ignore")
        config = TransformerConfig(
            num_layers=1, hidden_size=16, num_attention_heads=2, tensor_model_parallel_size=2, sequence_parallel=sp,
            perform_initialization=False, gradient_accumulation_fusion=False,
        )  # fmt: skip
        column = ColumnParallelLinear(16, 64, config=config, init_method=None, bias=True, gather_output=False)
        row = RowParallelLinear(
            64, 16, config=config, init_method=None, bias=True, input_is_parallel=True, skip_bias_add=False
        )
        torch.manual_seed(3)
        a, b, c, d, x = (torch.randn(*n) / 4 for n in ((64, 16), (64,), (16, 64), (16,), (8, 2, 16)))
        whole = [t.clone().requires_grad_() for t in (a, b, c, d, x)]
        F.linear(F.gelu(F.linear(whole[4], whole[0], whole[1])), whole[2], whole[3]).square().sum().backward()
        want_x = whole[4].grad.chunk(2)[rank] if sp else whole[4].grad
        want = [whole[0].grad.chunk(2)[rank], whole[1].grad.chunk(2)[rank], whole[2].grad.chunk(2, 1)[rank], want_x]
        with torch.no_grad():
            for p, value in ((column.weight, a.chunk(2)[rank]), (column.bias, b.chunk(2)[rank])):
                p.copy_(value)
            row.weight.copy_(c.chunk(2, 1)[rank])
            row.bias.copy_(d)
        x = (x.chunk(2)[rank] if sp else x).clone().requires_grad_()
        record = tracer(str(tree))
        record.install()
        with record.phase("forward"):
            y, _ = row(F.gelu(column(x)[0]))
        y.square().sum().backward()
        record.remove()
        got = [column.weight.grad, column.bias.grad, row.weight.grad, x.grad]
        errors = [((g - w).abs().max() / w.abs().max()).item() for g, w in zip(got, want, strict=True)]
        made = [(e.phase, e.kind, e.before[0].shape, e.after[0].shape, e.asynchronous) for e in record.events]
        return errors, made

    for errors, theirs in with_megatron(body):
        assert max(errors) < 2e-6  # float32 sums in another order
        assert ours == theirs


def test_the_cross_entropy_is_megatrons(with_megatron, tmp_path):
    """ch05: losses and gradients of the same logits, bit for bit or nearly, and the same three all-reduces."""

    def body(tree: Path) -> Any:
        return in_ranks(tmp_path, 2, lambda rank: both(rank, tree))

    def both(rank: int, tree: Path) -> Any:
        import runpy

        import torch
        import torch.distributed as dist
        from megatron.core.tensor_parallel import vocab_parallel_cross_entropy

        from runnable.megatron_cpu.driver import tracer

        script = next((Path(__file__).parents[2] / "runnable").glob("ch05_*.py"))
        ours = runpy.run_path(str(script))["VocabParallelCrossEntropy"]
        lab = SimpleNamespace(group=lambda name: dist.group.WORLD, broken=lambda rule: False)
        torch.manual_seed(0)
        logits, target = torch.randn(6, 2, 24).chunk(2, -1)[rank].contiguous(), torch.randint(0, 24, (6, 2))
        found, calls = [], []
        for function in (lambda x: vocab_parallel_cross_entropy(x, target), lambda x: ours.apply(x, target, lab)):
            record = tracer(str(tree))
            record.install()
            x = logits.clone().requires_grad_()
            loss = function(x * 1.0)
            loss.sum().backward()
            record.remove()
            found.append((loss.detach(), x.grad))
            calls.append([(e.kind, e.reduce, e.before[0].shape) for e in record.events])
        errors = [(a - b).abs().max().item() for a, b in zip(*found, strict=True)]
        return errors, calls

    for errors, (theirs, ours) in with_megatron(body):
        assert max(errors) < 1e-6
        assert ours == theirs
        assert [reduce for _, reduce, _ in ours] == ["MAX", "SUM", "SUM"]


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("bucket", [1, 150, 400])
def test_buckets_lie_where_megatron_puts_them(with_megatron, tmp_path, bucket, sharded):
    """ch06: starts and ends of buckets and parameters in the flat buffer."""
    from runnable.lab.buckets import plan

    sizes = {"a": 30, "b": 144, "c": 12, "d": 200, "e": 7}

    def body(tree: Path) -> Any:
        return in_ranks(tmp_path, 2, real)

    def real(rank: int) -> Any:
        import torch
        from megatron.core import parallel_state
        from megatron.core.distributed import DistributedDataParallelConfig
        from megatron.core.distributed.param_and_grad_buffer import _ParamAndGradBuffer

        params = {name: torch.nn.Parameter(torch.zeros(n)) for name, n in sizes.items()}
        group = parallel_state.get_tensor_model_parallel_group()
        buffer = _ParamAndGradBuffer(
            DistributedDataParallelConfig(use_distributed_optimizer=sharded, overlap_grad_reduce=True),
            torch.float32, torch.float32, [(p, name) for name, p in params.items()],
            group, bucket, {p: name for name, p in params.items()},
            1.0, list(range(len(params))), False,
            # Without it the pin asks parallel_state for a function that is not there.
            SimpleNamespace(dp_cp=group, tp=group),
        )  # fmt: skip
        places = {name: tuple(buffer.param_index_map[p]) for name, p in params.items()}
        return [tuple(b) for b in buffer.bucket_indices], places

    ours = plan(sizes, at_least=bucket, ranks=2, sharded=sharded)
    for starts, places in with_megatron(body):
        assert [(b.start, b.end) for b in ours] == starts
        assert {name: (*where, b.index) for b in ours for name, where in b.params.items()} == places
