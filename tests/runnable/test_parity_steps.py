"""Whole steps of our replays against Megatron's own modules, schedule, DDP and checkpoint at the pin, in one process.

Weights and batches are taken from the replay and given to Megatron. Tolerance: float32 sums that are made in another
order differ by a few units in the last place; 2e-6 of the largest number is what the replays allow themselves too.
"""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("einops", reason="the real Megatron needs einops")
pytest.importorskip("psutil", reason="the real Megatron needs psutil")

from runnable.lab import launch
from runnable.traces import Trace
from tests.support.megatron import Replay, brief, error, in_ranks, simple_loop, small_config

CLOSE = 2e-6


def test_a_training_step_is_megatrons(tmp_path, with_megatron):
    """ch01: two steps of the simple loop on 4 ranks: every gradient, every parameter, the loss, the calls in order.

    The model around Column and Row linear is the replay's on purpose (no attention); schedule, DDP, finalize and
    optimizer are Megatron's.
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

        ours = Replay("ch01", watch=("Model", "one_process", "forward_backward"))
        config = small_config()
        _, whole = ours.given["Model"]
        _, corpus, dp = ours.given["one_process"]
        m, steps, h = ours.module.M, ours.module.STEPS, ours.module.H

        class Model(MegatronModule):
            def __init__(self) -> None:
                super().__init__(config)
                self.model_type = ModelType.encoder_or_decoder
                for name in ("embedding", "norm", "head"):
                    setattr(self, name, torch.nn.Parameter(whole[name].clone()))
                more = {"config": config, "init_method": None, "bias": False}
                self.fc1 = ColumnParallelLinear(h, 4 * h, gather_output=False, **more)
                self.fc2 = RowParallelLinear(4 * h, h, input_is_parallel=True, skip_bias_add=False, **more)
                for name in ("fc1", "fc2"):
                    getattr(self, name).weight.data.copy_(ours.module.shard(ours.lab, name, whole[name]))

            def forward(self, tokens: Any, labels: Any) -> Any:
                x = F.embedding(tokens, self.embedding).transpose(0, 1)
                x = x + self.fc2(F.gelu(self.fc1(F.layer_norm(x, (h,)) * self.norm)[0]))[0]
                logits = F.linear(x, self.head).transpose(0, 1)
                return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)

            def set_input_tensor(self, tensor: Any) -> None:
                """One stage: nothing comes in."""

        def forward_step(batches: Any, model: Any) -> Any:
            tokens, labels, mask = next(batches)

            def loss_func(losses: Any) -> Any:
                loss = (losses * mask).sum() / mask.sum()
                return loss, {"lm loss": loss.detach().clone()}  # the schedule divides the loss in place

            return model(tokens, labels), loss_func

        mine = iter([b for i, b in enumerate(corpus) if i % dp == parallel_state.get_data_parallel_rank()])
        record = tracer(str(tree))
        record.install()
        found = list(simple_loop(Model(), config, mine, forward_step, m=m, steps=steps, lr=ours.module.LR))
        record.remove()
        errors = {}
        for step, (tensors, *_) in enumerate(found):
            for name, (grad, param) in tensors.items():
                name = name.removesuffix(".weight")
                errors[f"grad {step} {name}"] = error(ours.held[f"grad step {step} {name}"], grad)
                errors[f"param {step} {name}"] = error(ours.held[f"SGD 后 step {step} {name}"], param)
        losses = [sum(float(loss["lm loss"]) for loss in step) / m for _, step, _ in found]
        return (
            errors,
            losses,
            ours.returned["forward_backward"],
            brief(ours.calls, "tp", "dp"),
            brief(record.events, "tp", "dp-cp"),
        )

    for errors, losses, our_losses, our_calls, their_calls in with_megatron(body):
        assert len(errors) == 2 * 2 * 5
        assert max(errors.values()) < CLOSE, errors
        assert our_losses == pytest.approx(losses, rel=CLOSE)
        # Megatron reduces over DP × CP, which is the same group while CP is 1.
        assert [(phase, kind, group.removesuffix("-cp"), *shapes) for phase, kind, group, *shapes in their_calls] == (
            our_calls
        )
        assert len(our_calls) == 2 * (2 + 2 + 1)


def test_a_batch_travels_as_megatrons(tmp_path, with_megatron):
    """ch03: API, root, dtype and shape of every broadcast in order, and what arrives.

    Megatron sends two more for cu_seqlens, also when nothing is packed; the script says that it leaves them out.
    """

    def body(tree: Path) -> Any:
        return in_ranks(tmp_path, 2, lambda rank: both(rank, tree))

    def both(rank: int, tree: Path) -> Any:
        import torch
        from megatron.training import utils

        from runnable.megatron_cpu.driver import tracer

        ours = Replay("ch03", "--tp", 2, watch=("get_batch",))
        (batch,) = ours.returned["get_batch"]
        utils.get_args = lambda: SimpleNamespace(
            micro_batch_size=ours.module.B, seq_length=ours.module.S, pipeline_model_parallel_size=1, sft=False,
            hybrid_context_parallel=False, create_attention_mask_in_dataloader=False,
        )  # fmt: skip
        record = tracer(str(tree))
        record.install()
        got = utils.get_batch_on_this_tp_rank(iter([batch]) if rank == 0 else None)
        record.remove()
        same = {name: torch.equal(got[name], batch[name]) for name in batch}
        lists = (
            [
                (e.api, e.phase, e.root, e.before[0].dtype, tuple(e.before[0].shape))
                for e in calls
                if e.group[:2] == "tp"
            ]
            for calls in (ours.calls, record.events)
        )
        return same, *lists

    for same, our_calls, their_calls in with_megatron(body):
        assert same == dict.fromkeys(("tokens", "labels", "loss_mask", "position_ids"), True)
        unpacked = [("broadcast", "data", 0, "int64", ()), ("broadcast", "data", 0, "int32", (0,))]
        assert their_calls == our_calls + unpacked
        assert len(our_calls) == 4


NAMES_OF_GPT = {
    "embedding.word_embeddings.weight": "embedding",
    "decoder.final_layernorm.weight": "final_layernorm",
    "decoder.layers.0.input_layernorm.weight": "layer.input_layernorm",
    "decoder.layers.0.pre_mlp_layernorm.weight": "layer.pre_mlp_layernorm",
    "decoder.layers.0.self_attention.linear_qkv.weight": "layer.self_attention.qkv",
    "decoder.layers.0.self_attention.linear_proj.weight": "layer.self_attention.proj",
    "decoder.layers.0.mlp.linear_fc1.weight": "layer.mlp.fc1",
    "decoder.layers.0.mlp.linear_fc2.weight": "layer.mlp.fc2",
}
"""Megatron's parameter → the replay's."""


def test_a_gpt_block_is_megatrons(tmp_path, with_megatron):
    """ch04: GPTModel from Megatron's own local spec, TP=2 DP=2: logits, every gradient, every parameter, the calls.

    The loss is the replay's (a weighted sum of logits). Megatron's norms have a bias, here zero, whose gradient the
    replay does not have; its backward all-reduces run beside the weight gradient, the replay's are waited for.
    """

    def body(tree: Path) -> Any:
        return in_ranks(tmp_path, 4, lambda rank: both(rank, tree), tp=2)

    def both(rank: int, tree: Path) -> Any:
        import torch
        from megatron.core.models.gpt import GPTModel
        from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
        from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

        from runnable.megatron_cpu.driver import tracer

        seen: list[tuple[Any, list[Any]]] = []

        def spy(module: Any) -> None:
            """What each microbatch of the parallel model reads, and the gradient that its logits get."""
            forward = module.GPTModel.forward

            def watched(self: Any, tokens: Any) -> Any:
                logits = forward(self, tokens)
                if self.parts.lab is not None:
                    seen.append((tokens, grads := []))
                    logits.register_hook(lambda grad: grads.append(grad.clone()))
                return logits

            module.GPTModel.forward = watched

        ours = Replay("ch04", watch=("Parts",), spy=spy)
        script = ours.module
        whole, _ = ours.given["Parts"]
        config = small_config(
            num_attention_heads=script.HEADS, num_query_groups=script.GROUPS, kv_channels=script.D,
            ffn_hidden_size=4 * script.H,
        )  # fmt: skip
        model_parallel_cuda_manual_seed(1)  # attention dropout forks this stream, also when nothing is dropped
        model = GPTModel(
            config, get_gpt_layer_local_spec(), vocab_size=script.V, max_sequence_length=script.S,
            position_embedding_type="none", share_embeddings_and_output_weights=True,
        )  # fmt: skip
        for name, p in model.named_parameters():
            with torch.no_grad():
                p.copy_(
                    script.cut(ours.lab, NAMES_OF_GPT[name], whole[NAMES_OF_GPT[name]]) if name in NAMES_OF_GPT else 0
                )
        logits: list[Any] = []

        def forward_step(batches: Any, model: Any) -> Any:
            tokens, (grad,) = next(batches)
            out = model(tokens, None, None).transpose(0, 1)  # [s, b, V/t]
            logits.append(out.detach())
            return out, lambda out: ((out * grad * script.M).sum(), {})

        record = tracer(str(tree))
        record.install()
        ((tensors, *_),) = simple_loop(model, config, iter(seen), forward_step, m=script.M, steps=1, lr=script.LR)
        record.remove()
        errors = {"logits": error(ours.held["logits [s, b, V/t]"], logits[0])}
        for name, (grad, param) in tensors.items():
            if name in NAMES_OF_GPT:
                errors[f"grad {name}"] = error(ours.held[f"grad {NAMES_OF_GPT[name]}"], grad)
                errors[f"param {name}"] = error(ours.held[f"SGD 后 {NAMES_OF_GPT[name]}"], param)
        extra = sum(p.numel() for name, p in model.named_parameters() if name not in NAMES_OF_GPT)
        return errors, extra, brief(ours.calls, "tp", "dp"), brief(record.events, "tp", "dp-cp")

    for errors, extra, our_calls, their_calls in with_megatron(body):
        assert len(errors) == 1 + 2 * 8
        assert max(errors.values()) < CLOSE, errors
        assert extra == 3 * 16  # the biases of three norms
        block, their_block = ([call for call in calls if call[2] == "tp"] for calls in (our_calls, their_calls))
        assert block == their_block
        assert len(block) == 2 * (3 + 3)
        ((*what, (ours,), _),) = [call for call in our_calls if call[2] == "dp"]
        ((*_, (theirs,), _),) = [call for call in their_calls if call[2] == "dp-cp"]
        assert what == ["grad-sync", "all_reduce", "dp"]
        assert theirs == ours + extra


@pytest.mark.parametrize("tp", [2, 4])
def test_a_checkpoint_is_megatrons(tmp_path, with_megatron, tp):
    """ch07: where every shard lies, which shards are written, and the numbers in the files, weights and Adam's state.

    On purpose: a DTensor stands for ShardedTensor, the keys lack Megatron's `.weight`, and the count of finished steps
    is a tensor among the others, where Megatron writes it to `common.pt`.
    """

    def body(tree: Path) -> Any:
        return in_ranks(tmp_path, 4, save_both, tp=tp)

    def save_both(rank: int) -> Any:
        import torch
        import torch.distributed.checkpoint as dcp
        from megatron.core import dist_checkpointing, parallel_state
        from megatron.core.dist_checkpointing.mapping import ShardedTensor
        from megatron.core.dist_checkpointing.optimizer import make_sharded_optimizer_tensor
        from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
        from megatron.core.transformer.utils import make_sharded_tensors_for_checkpoint
        from torch.distributed.checkpoint import FileSystemReader
        from torch.distributed.tensor._utils import compute_local_shape_and_global_offset as place

        ours = Replay("ch07", "--tp", tp, "--dir", tmp_path / "ours", watch=("Trainer",))
        (trainer,) = ours.returned["Trainer"]
        h = ours.module.H
        more = {"config": small_config(tensor_model_parallel_size=tp), "init_method": None, "bias": False}
        layers = {
            "fc1": ColumnParallelLinear(h, 4 * h, gather_output=False, **more),
            "fc2": RowParallelLinear(4 * h, h, input_is_parallel=True, skip_bias_add=False, **more),
        }
        for name, layer in layers.items():
            layer.weight.data.copy_(trainer.params[name])
        groups = {
            "tp_group": parallel_state.get_tensor_model_parallel_group(),
            "dp_cp_group": parallel_state.get_data_parallel_group(with_context_parallel=True),
        }
        state = make_sharded_tensors_for_checkpoint({"norm": trainer.params["norm"].detach()}, "", {}, (), **groups)
        for name, layer in layers.items():
            found = layer.sharded_state_dict(f"{name}.", metadata=groups)
            state |= {key: value for key, value in found.items() if isinstance(value, ShardedTensor)}
        for key, value in list(state.items()):
            name = key.removesuffix(".weight")
            for kind in ("exp_avg", "exp_avg_sq"):
                state[f"{kind}.{key}"] = make_sharded_optimizer_tensor(value, trainer.state[f"{kind}.{name}"], kind)
        wanted = {
            key: (tuple(t.shape), *map(tuple, place(t.shape, t.device_mesh, t.placements)))
            for key, t in trainer.sharded().items()
            if key != "iteration"
        }
        placed = {
            key.removesuffix(".weight"): (tuple(t.global_shape), tuple(t.local_shape), tuple(t.global_offset))
            for key, t in state.items()
        }
        theirs = tmp_path / "theirs"
        if rank == 0:
            theirs.mkdir()
        torch.distributed.barrier()
        dist_checkpointing.save(state, str(theirs))
        written, values = [], []
        for folder in (tmp_path / "ours" / "iter_0000004", theirs):
            described = FileSystemReader(folder).read_metadata().state_dict_metadata
            tensors = {key: t for key, t in described.items() if hasattr(t, "chunks") and key != "iteration"}
            written.append(
                {
                    key.removesuffix(".weight"): (
                        tuple(t.size),
                        str(t.properties.dtype),
                        sorted((tuple(c.offsets), tuple(c.sizes)) for c in t.chunks),
                    )
                    for key, t in tensors.items()
                }
            )
            read = {key: torch.empty(t.size, dtype=t.properties.dtype) for key, t in tensors.items()}
            dcp.load(read, checkpoint_id=folder, no_dist=True)
            values.append({key.removesuffix(".weight"): value for key, value in read.items()})
        same = {key: torch.equal(value, values[1][key]) for key, value in values[0].items()}
        return wanted, placed, written, same

    for wanted, placed, (ours, theirs), same in with_megatron(body):
        assert wanted == placed
        assert ours == theirs
        assert len(ours["fc1"][2]) == tp  # each shard once, whatever the replicas
        assert len(ours["norm"][2]) == 1
        names = ("norm", "fc1", "fc2")
        assert same == dict.fromkeys([*names, *(f"{k}.{n}" for k in ("exp_avg", "exp_avg_sq") for n in names)], True)


def test_interleaved_sends_and_receives_are_megatrons(play, tmp_path, with_megatron):
    """ch11, PP=4 VPP=2: on every rank the sends in order, and the receives in order: direction, peer, shape and API.

    How the two lists interleave differs on purpose: Megatron fuses the messages of both directions into one call and
    posts receives early; the replay receives right before it computes, over one group for each direction.
    """

    def body(tree: Path) -> Any:
        from runnable.megatron_cpu import harness
        from runnable.megatron_cpu.run import Run

        return harness.execute(Run(pp=4, vpp=2, layers=8, microbatches=8), tree=tree).trace

    theirs = with_megatron(body)
    assert play("ch11", "--schedule", "interleaved", "--m", 8, "--out", tmp_path / "ours").code == 0
    ours = Trace.load(tmp_path / "ours.json")
    for rank in range(4):
        for kind in ("send", "recv"):
            lists = [[(e.phase, e.peer) for e in t.events(rank) if e.kind == kind] for t in (ours, theirs)]
            assert lists[0] == lists[1], (rank, kind)
            assert len(lists[0]) == 8 * (4 if rank in (1, 2) else 3)


def test_gpipe_sends_and_receives_are_torchs(play, tmp_path):
    """ch11: Megatron has no GPipe, so the judge is torch's own ScheduleGPipe, run for real: messages in order."""
    assert play("ch11", "--schedule", "gpipe", "--m", 6, "--out", tmp_path / "ours").code == 0
    ours = Trace.load(tmp_path / "ours.json")

    def rank(store: str) -> int:
        import torch
        import torch.distributed as dist
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

        from runnable.lab.trace import Tracer

        me = int(os.environ["RANK"])
        warnings.simplefilter("ignore")
        launch.use_loopback(4)
        dist.init_process_group("gloo", init_method=store, rank=me, world_size=4)
        try:
            stage = PipelineStage(torch.nn.Linear(8, 8), me, 4, torch.device("cpu"))
            schedule = ScheduleGPipe(stage, n_microbatches=6, loss_fn=torch.nn.functional.mse_loss)
            record = Tracer()
            record.install()
            x = torch.randn(24, 8)
            schedule.step(*([x] if me == 0 else []), **({"target": x} if me == 3 else {}))
            record.remove()
            # Before the first step the stages tell each other their shapes, as objects: not part of the schedule.
            calls = [(e.kind, e.peer) for e in record.events if (*e.before, *e.after)[0].shape == (4, 8)]
            (tmp_path / f"{me}").write_bytes(pickle.dumps(calls))
        finally:
            dist.destroy_process_group()
        return 0

    assert launch.fork_ranks(4, rank) == 0
    for me in range(4):
        found = [(e.kind, e.peer) for e in ours.events(me) if e.peer is not None]
        assert found == pickle.loads((tmp_path / f"{me}").read_bytes()), me
        assert len(found) == 6 * 2 * (2 if me in (1, 2) else 1)
