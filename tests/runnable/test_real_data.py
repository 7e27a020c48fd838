"""The data path of the pinned Megatron itself, on the six documents of note 03: files, indices, cache, masks, ranks."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runnable.ch03_data_and_batch_flow import SIZES, S
from runnable.lab import sampling

Body = Callable[[], Any]


@pytest.fixture
def with_data(with_megatron, helpers, tmp_path) -> Callable[[Body], Any]:
    """Run a body where Megatron is imported with its C++ helpers; the six documents lie in `tmp_path / "six"`."""

    def run(body: Body) -> Any:
        def inside(tree: Path) -> Any:
            sys.modules["megatron.core.datasets.helpers_cpp"] = helpers
            write(tmp_path / "six", SIZES)
            return body()

        return with_megatron(inside)

    return run


def write(prefix: Path, sizes: Iterable[int]) -> None:
    """Documents of these sizes, as the preprocessing leaves them; token t of document d is 100·d + t."""
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.uint16)
    for d, size in enumerate(sizes):
        builder.add_document(np.arange(100 * d, 100 * d + size), [size])
    builder.finalize(f"{prefix}.idx")


def real(prefix: Path, samples: int, **more: Any) -> Any:
    """The training split as `BlendedMegatronDatasetBuilder` makes it."""
    import warnings

    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig

    warnings.simplefilter("ignore")
    tokenizer = SimpleNamespace(eod=9999, vocab_size=600, unique_identifiers={"name": "numbers"})
    if "pad" in more:
        tokenizer.pad = more.pop("pad")
    config = GPTDatasetConfig(
        random_seed=1234, sequence_length=S, blend=([str(prefix)], None), split="1,0,0", tokenizer=tokenizer,
        **{"reset_position_ids": False, "reset_attention_mask": False, "eod_mask_loss": False} | more,
    )  # fmt: skip
    return BlendedMegatronDatasetBuilder(GPTDataset, [samples, 0, 0], lambda: True, config).build()[0]


REQUESTS = {7: (2, 0, 203), 8: (2, 0, 203), 9: (3, 8, 311), 16: (4, 0, 201)}
"""Samples asked for → epochs, samples before a last epoch that is shuffled by itself (0: none is), first token read."""


def test_the_three_indices_are_those_of_the_replay(with_data, tmp_path):
    def body() -> list[Any]:
        found = []
        for samples in REQUESTS:
            data = real(tmp_path / "six", samples)
            indices = (data.document_index, data.sample_index, data.shuffle_index)
            found.append(([index.tolist() for index in indices], [data[k]["tokens"].tolist() for k in range(8)]))
        return found

    for (epochs, apart, first), ((documents, starts, shuffle), tokens) in zip(
        REQUESTS.values(), with_data(body), strict=True
    ):
        random = np.random.RandomState(1234)
        order = sampling.document_index(len(SIZES), epochs, random, separate_last=bool(apart))
        index = sampling.sample_index(SIZES, order, S)
        total = len(index) - 1
        reading = sampling.shuffle_index(apart or total, total, random)
        assert (documents, [tuple(row) for row in starts], shuffle) == (order, index, reading)
        for k, found in enumerate(tokens):
            parts = sampling.pieces(index, order, SIZES, reading[k])
            assert found == [100 * d + t for d, a, b in parts for t in range(a, b)][:-1]
        assert tokens[0][0] == first
    assert [(tmp_path / f"six.{end}").stat().st_size for end in ("bin", "idx")] == [140, 162]


def test_another_node_without_the_cache_stops(with_data, tmp_path):
    """A rank that is not the first may not build the index, and finds none."""

    def body() -> str:
        import torch.distributed as dist
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=2)
        with pytest.raises(FileNotFoundError) as failed:
            real(tmp_path / "six", 8, path_to_cache=str(tmp_path / "elsewhere"))
        return failed.value.filename

    assert with_data(body).endswith("-GPTDataset-train-document_index.npy")


def test_replaced_files_meet_the_old_index(with_data, tmp_path):
    """The name of the cache holds the path, not the content: wrong samples, and only some of them raise."""

    def body() -> list[str]:
        before = real(tmp_path / "six", 8)
        right = [before[k]["tokens"].tolist() for k in range(8)]
        write(tmp_path / "six", reversed(SIZES))
        after = real(tmp_path / "six", 8)
        assert after.sample_index.tolist() == before.sample_index.tolist()
        seen = []
        for k in range(8):
            try:
                seen.append("same" if after[k]["tokens"].tolist() == right[k] else "other")
            except Exception as failed:
                seen.append(type(failed).__name__)
        return seen

    seen = with_data(body)
    assert "other" in seen and len(set(seen) - {"other", "same"}) >= 1, seen


def test_the_first_samples_padding_stays_in_the_cached_loss_mask(with_data, tmp_path):
    """503 as the padding: it is the label at 3 of sample 0. Any of the three switches turns the cache off."""

    def body() -> list[list[int]]:
        zeros = []
        for more in ({}, {"eod_mask_loss": True}):
            data = real(tmp_path / "six", 8, pad=503, **more)
            zeros += [(data[k]["loss_mask"] == 0).nonzero().flatten().tolist() for k in (0, 1)]
        return zeros

    assert with_data(body) == [[3], [3], [3], []]


def test_what_each_switch_changes(with_megatron):
    """Eight tokens, three documents."""

    def body(tree: Path) -> dict[str, Any]:
        import torch
        from megatron.core.datasets.gpt_dataset import _get_ltor_masks_and_position_ids

        found = {}
        for name, switches in {"off": (), "position": (0,), "attention": (1,), "loss": (2,)}.items():
            on = [k in switches for k in range(3)]
            mask, loss, position = _get_ltor_masks_and_position_ids(
                torch.tensor([1, 2, 0, 3, 4, 5, 0, 6]), 0, *on, True
            )
            seen = [[k for k in range(8) if not mask[0, q, k]] for q in (3, 7)]
            found[name] = (position.tolist(), seen, loss.tolist())
        return found

    found = with_megatron(body)
    straight, causal, ones = list(range(8)), [list(range(4)), list(range(8))], [1.0] * 8
    assert found == {
        "off": (straight, causal, ones),
        "position": ([0, 1, 2, 0, 1, 2, 3, 0], causal, ones),
        "attention": (straight, [[3], [7]], ones),
        "loss": (straight, causal, [1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0]),
    }


CHANGES, SAME, ALONE = "changes", "same", "as if alone"


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        ("learned_absolute", [CHANGES, CHANGES, SAME, ALONE, CHANGES]),
        ("rope", [CHANGES, CHANGES, ALONE, ALONE, CHANGES]),
    ],
)
def test_what_the_second_document_sees(with_megatron, kind, want):
    """Logits of the second document when the first is another one: no switch, positions, mask, both, both but no mask.

    `ALONE`: they are also those of the second document by itself.
    """

    def body(tree: Path) -> tuple[list[str], bool]:
        import warnings

        warnings.simplefilter("ignore")
        import torch
        import torch.distributed as dist
        from megatron.core import parallel_state
        from megatron.core.datasets.gpt_dataset import _get_ltor_masks_and_position_ids
        from megatron.core.models.gpt import GPTModel
        from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
        from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
        from megatron.core.transformer import TransformerConfig
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
        parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
        model_parallel_cuda_manual_seed(1234)
        torch.manual_seed(1234)
        config = TransformerConfig(
            num_layers=4, hidden_size=32, num_attention_heads=4, hidden_dropout=0.0, attention_dropout=0.0
        )
        model = GPTModel(config, get_gpt_layer_local_spec(), 64, 16, position_embedding_type=kind).eval()

        def logits(tokens: list[int], position: bool, attention: bool, create: bool = True) -> torch.Tensor:
            text = torch.tensor(tokens)
            mask, _, places = _get_ltor_masks_and_position_ids(text, 0, position, attention, False, create)
            with torch.no_grad():
                return model(text[None], places[None], None if mask is None else mask[None])[0]

        one, other, second = [1, 2, 3, 4, 0], [9, 8, 7, 6, 0], [11, 12, 13, 14, 15, 16]
        alone = logits(second, False, False)
        found, first_two = [], []
        for case in ((False, False), (True, False), (False, True), (True, True), (True, True, False)):
            a, b = (logits(first + second, *case)[len(first) :] for first in (one, other))
            first_two.append(a)
            same, by_itself = torch.equal(a, b), torch.allclose(a, alone, atol=1e-5)
            found.append(ALONE if same and by_itself else SAME if same else CHANGES)
        return found, torch.equal(first_two[0], first_two[1])

    found, positions_do_nothing = with_megatron(body)
    assert found == want
    assert positions_do_nothing == (kind == "rope")


def counted(calls: dict[str, int], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, each call noted under its name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return function(*args, **kwargs)

    return call


def test_eight_ranks_get_the_batch_of_the_note(with_data, tmp_path):
    """TP=2 CP=2 DP=2 over gloo: one barrier to build, then sampler, broadcasts over TP, slices over CP."""

    def body() -> list[Any]:
        import torch.distributed as dist
        from megatron.core import parallel_state
        from megatron.core.utils import get_batch_on_this_cp_rank
        from megatron.training import global_vars, utils
        from megatron.training.datasets.data_samplers import build_pretraining_data_loader

        from runnable.lab import launch

        def rank(store: str) -> int:
            me = int(os.environ["RANK"])
            launch.use_loopback(8)
            dist.init_process_group("gloo", init_method=store, rank=me, world_size=8)
            try:
                parallel_state.initialize_model_parallel(tensor_model_parallel_size=2, context_parallel_size=2)
                args = SimpleNamespace(
                    micro_batch_size=2, seq_length=S, create_attention_mask_in_dataloader=True, sft=False,
                    hybrid_context_parallel=False, pipeline_model_parallel_size=1, full_validation=False,
                    dataloader_type="single", num_workers=0, exit_signal_handler=False,
                )  # fmt: skip
                global_vars.set_args(args)
                reads = parallel_state.get_tensor_model_parallel_rank() == 0
                calls = {"barrier": 0, "broadcast": 0, "all_reduce": 0, "all_gather_into_tensor": 0}
                for name in calls:
                    setattr(dist, name, counted(calls, name, getattr(dist, name)))
                data = real(tmp_path / "six", 8)
                loader = iter(build_pretraining_data_loader(data, 0)) if reads else None
                built = dict(calls)
                whole = utils.get_batch_on_this_tp_rank(loader)
                shapes = [tuple(whole["attention_mask"].shape)]
                batch = get_batch_on_this_cp_rank({k: whole[k] for k in ("tokens", "labels", "attention_mask")})
                shapes.append(tuple(batch["attention_mask"].shape))
                found = (batch["tokens"][0].tolist(), shapes, built, calls)
                (tmp_path / f"rank{me}").write_bytes(pickle.dumps(found))
            finally:
                dist.destroy_process_group()
            return 0

        assert launch.fork_ranks(8, rank) == 0
        return [pickle.loads((tmp_path / f"rank{r}").read_bytes()) for r in range(8)]

    lines = {
        0: [203, 500, 501, 502, 511, 512, 513, 514],
        2: [503, 504, 505, 506, 507, 508, 509, 510],
        4: [311, 312, 313, 314, 402, 403, 404, 405],
        6: [315, 316, 317, 318, 319, 320, 400, 401],
    }
    for rank, (tokens, shapes, built, calls) in enumerate(with_data(body)):
        assert tokens == lines[rank - rank % 2], rank
        assert shapes == [(2, 1, 16, 16), (2, 1, 8, 16)]
        assert {k: n for k, n in built.items() if n} == {"barrier": 1}
        # Five tensors, the length of cu_seqlens, the empty cu_seqlens.
        assert {k: n for k, n in calls.items() if n} == {"barrier": 1, "broadcast": 7}
