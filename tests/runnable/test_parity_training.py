"""How losses are scaled and gradients synchronised, against Megatron's own schedule, DDP, finalize and optimizers.

Weights and batches are taken from the replay. Tolerance as in test_parity_steps.py: float32 sums in another order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("einops", reason="the real Megatron needs einops")
pytest.importorskip("psutil", reason="the real Megatron needs psutil")

from tests.support.megatron import Replay, brief, error, in_ranks, simple_loop, small_config

CLOSE = 2e-6
CONVENTIONS = {
    "per-microbatch": (3, False),
    "per-token": (3, True),
    "legacy": (2, False),
    "legacy, per-token": (2, True),
}
"""The replay's name → values that loss_func returns, calculate_per_token_loss. The replay leaves out the last."""


@pytest.mark.parametrize("tp", [1, 2])
def test_each_loss_scaling_convention_is_megatrons(tmp_path, with_megatron, tp):
    """ch05, CP=2, unequal masks, m = 4: gradients and parameters of each convention, the calls in order.

    calculate_per_token_loss with a loss_func of two values has no token count to divide by, and DDP does not average:
    Megatron's gradient is then the legacy one times DP·CP.
    """

    def body(tree: Path) -> Any:
        return in_ranks(tmp_path, 4, lambda rank: both(rank, tree), tp=tp, cp=2)

    def both(rank: int, tree: Path) -> Any:
        import torch
        import torch.nn.functional as F  # noqa: N812
        from megatron.core import parallel_state
        from megatron.core.enums import ModelType
        from megatron.core.tensor_parallel import vocab_parallel_cross_entropy
        from megatron.core.tensor_parallel.layers import ColumnParallelLinear
        from megatron.core.transformer.module import MegatronModule

        from runnable.megatron_cpu.driver import tracer

        ours = Replay("ch05", "--tp", tp, "--cp", 2, watch=("one_process", "step"))
        script = ours.module
        _, whole, *_ = ours.given["one_process"]
        *_, data = ours.given["step"]

        class Head(MegatronModule):
            def __init__(self, config: Any) -> None:
                super().__init__(config)
                self.model_type = ModelType.encoder_or_decoder
                self.body = torch.nn.Parameter(whole["body"].clone())
                self.out = ColumnParallelLinear(
                    script.H, script.V, config=config, init_method=None, bias=False, gather_output=False
                )
                self.out.weight.data.copy_(whole["out"].chunk(tp)[parallel_state.get_tensor_model_parallel_rank()])

            def forward(self, x: Any, target: Any) -> Any:
                return vocab_parallel_cross_entropy(self.out(torch.tanh(F.linear(x, self.body)))[0], target)

            def set_input_tensor(self, tensor: Any) -> None:
                """One stage: nothing comes in."""

        def step(values: int, per_token: bool) -> dict[str, tuple[Any, Any]]:
            def forward_step(batches: Any, model: Any) -> Any:
                x, target, mask = next(batches)

                def loss_func(losses: Any) -> Any:
                    total, tokens = (losses * mask).sum(), mask.sum()
                    if values == 3:
                        return total, tokens.int(), {}
                    torch.distributed.all_reduce(tokens, group=parallel_state.get_context_parallel_group())
                    return total / tokens, {}

                return model(x, target), loss_func

            config = small_config(
                tensor_model_parallel_size=tp, context_parallel_size=2, calculate_per_token_loss=per_token
            )
            ((tensors, *_),) = simple_loop(
                Head(config), config, iter(data), forward_step, m=script.M, steps=1, lr=script.LR
            )
            return {name.removesuffix(".weight"): pair for name, pair in tensors.items()}

        record = tracer(str(tree))
        record.install()
        found = {name: step(*how) for name, how in CONVENTIONS.items() if name in script.CONVENTIONS}
        record.remove()
        found["legacy, per-token"] = step(*CONVENTIONS["legacy, per-token"])
        errors = {
            (mine, theirs, name, kind): error(ours.held[f"{prefix} {mine}: {name}"], tensors[name][index])
            for mine in script.CONVENTIONS
            for theirs, tensors in found.items()
            for name in ("body", "out")
            for index, (kind, prefix) in enumerate((("grad", "grad"), ("param", "SGD 后")))
        }
        too_much = [
            error(ours.held[f"grad legacy: {n}"] * 4 / tp, found["legacy, per-token"][n][0]) for n in ("body", "out")
        ]
        # Megatron does not sum an input's gradient over a TP group of one rank; the replay does.
        dropped = ("logging", "backward") if tp == 1 else ("logging",)
        calls = [call for call in brief(ours.calls, "tp", "dp-cp") if call[0] not in dropped]
        return errors, too_much, calls, brief(record.events, "tp", "dp-cp")

    for errors, too_much, our_calls, their_calls in with_megatron(body):
        same = {key: value for key, value in errors.items() if key[0] == key[1]}
        assert len(same) == 3 * 2 * 2
        assert max(same.values()) < CLOSE, same
        assert max(too_much) < CLOSE
        others = [value for key, value in errors.items() if key[0] != key[1] and key[3] == "grad"]
        assert min(others) > 1e-3  # what passes above is this convention and no other
        first = 3  # the token losses, before the first step
        assert our_calls[first:] == their_calls
        assert len(their_calls) == 3 * 4 * (3 + (tp > 1)) + 3 + 1


@pytest.mark.parametrize("sharded", [False, True])
def test_gradient_sync_and_step_are_megatrons(tmp_path, with_megatron, sharded):
    """ch06, TP=2 DP=2, two steps with overlap: norm, clipped gradients in the buckets, parameters, the calls in order.

    On purpose: SGD with momentum stands in DistributedOptimizer for its Adam; Megatron sends each bucket through
    _coalescing_manager, so kinds are compared, not APIs; the replay's norm is a number without dimensions, Megatron's
    has one, so counts are compared, not shapes; a call made inside backward is of that phase in the replay alone.
    """

    def body(tree: Path) -> Any:
        return in_ranks(tmp_path, 4, lambda rank: both(rank, tree), tp=2)

    def both(rank: int, tree: Path) -> Any:
        import torch
        import torch.nn.functional as F  # noqa: N812
        from megatron.core import parallel_state
        from megatron.core.enums import ModelType
        from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
        from megatron.core.transformer.module import MegatronModule

        from runnable.megatron_cpu.driver import tracer

        ours = Replay("ch06", *(["--dist-opt"] if sharded else []), watch=("one_process", "Buffers"))
        script, (buffers,) = ours.module, ours.returned["Buffers"]
        whole, xs, ys = ours.given["one_process"]
        h, m = script.H, script.M
        # Initialization also marks which weights TP cuts, and so which ones count on every rank in the norm.
        config = small_config(perform_initialization=True)

        class Norm(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.empty(h))

        class Model(MegatronModule):
            def __init__(self) -> None:
                super().__init__(config)
                self.model_type = ModelType.encoder_or_decoder
                more = {"config": config, "init_method": torch.nn.init.zeros_}
                self.norm = Norm()
                self.col = ColumnParallelLinear(h, 2 * h, bias=False, gather_output=False, **more)
                self.row = RowParallelLinear(2 * h, h, bias=True, input_is_parallel=True, skip_bias_add=False, **more)
                place = parallel_state.get_tensor_model_parallel_rank()
                for name, p in self.named_parameters():
                    name = NAMES[name]
                    value = whole[name].chunk(2, script.SPLIT[name])[place] if name in script.SPLIT else whole[name]
                    p.data.copy_(value)

            def forward(self, x: Any) -> Any:
                return self.row(F.gelu(self.col(F.layer_norm(x, (h,)) * self.norm.weight)[0]))[0]

            def set_input_tensor(self, tensor: Any) -> None:
                """One stage: nothing comes in."""

        def forward_step(batches: Any, model: Any) -> Any:
            x, want = next(batches)
            return model(x), lambda out: ((out - want).square().mean(), {})

        first = parallel_state.get_data_parallel_rank() * m
        batches = iter([(xs[first + k, s], ys[first + k, s]) for s in range(script.STEPS) for k in range(m)])
        model = Model()
        record = tracer(str(tree))
        record.install()
        found = list(
            simple_loop(
                model, config, batches, forward_step, m=m, steps=script.STEPS, lr=script.LR, momentum=script.MOMENTUM,
                clip=script.CLIP, bucket_size=150, overlap_grad_reduce=True, use_distributed_optimizer=sharded,
            )
        )  # fmt: skip
        record.remove()
        errors = {"norm": error(ours.held["grad norm（每步）"], torch.tensor([float(norm) for *_, norm in found]))}
        grads = {NAMES[name]: p.main_grad for name, p in model.named_parameters()}
        for bucket in buffers.buckets:
            flat = torch.zeros_like(buffers.grads)
            for name, (start, end) in bucket.params.items():
                flat[start:end] = grads[name].flatten()
            errors[f"grad {bucket.index}"] = error(ours.held[f"grad bucket {bucket.index}"], buffers.own(flat, bucket))
        for name, (_, param) in found[-1][0].items():
            errors[f"param {name}"] = error(ours.held[f"{script.STEPS} 步后 {NAMES[name]}"], param)
        # The group of the norm has another name in Megatron (all who share optimizer shards), and the same members.
        names = {"tp-dp-cp": "norm", "dist-opt": "norm", "tp-pp": "norm", "tp": "tp", "dp-cp": "dp-cp"}

        def told(events: Any) -> list[Any]:
            found = []
            for event in events:
                name, _, members = event.group.partition("[")
                if name in names:
                    found.append((event.kind, names[name], members, *counts(event)))
            return found

        return errors, told(ours.calls), told(record.events)

    for errors, our_calls, their_calls in with_megatron(body):
        assert len(errors) == 1 + 2 + 4
        assert max(errors.values()) < CLOSE, errors
        assert our_calls == their_calls
        assert len(our_calls) == 2 * (2 * 2 + 2 + 1 + (2 if sharded else 0))


NAMES = {"norm.weight": "norm", "col.weight": "col", "row.weight": "row", "row.bias": "bias"}
"""Megatron's parameter → the replay's."""


def counts(event: Any) -> tuple[int, int]:
    """Numbers that go in and come out."""
    from math import prod

    return sum(prod(t.shape) for t in event.before), sum(prod(t.shape) for t in event.after)
