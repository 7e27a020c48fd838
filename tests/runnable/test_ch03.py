"""The way of the data: indices as Megatron builds them, the same batch on TP ranks, zigzag slices, packed documents."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

from runnable.lab import sampling
from runnable.lab.pin import megatron_tree

RULES = ("no_extra_token", "dp_same", "tp_reads", "no_zigzag", "no_cu_seqlens")


@pytest.mark.parametrize(
    "argv", [("--np", 4), ("--np", 4, "--tp", 4), ("--np", 4, "--tp", 1), ("--np", 1), ("--seed", 7)]
)
def test_every_rank_gets_its_batch(play, argv):
    result = play("ch03", *argv)
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize("rule", RULES)
def test_a_dropped_rule_is_caught(play, rule):
    result = play("ch03", "--break", rule)
    assert result.code == 1, result.out + result.err
    assert "✗" in result.out


def megatron(path: str, *names: str, **scope: Any) -> dict[str, Any]:
    """Definitions of a file at the pin, executed alone."""
    body = ast.parse((megatron_tree() / path).read_text()).body
    kept = [node for node in body if getattr(node, "name", None) in names]
    assert len(kept) == len(names)
    future = ast.parse("from __future__ import annotations").body
    exec(compile(ast.Module([*future, *kept], []), path, "exec"), scope)
    return scope


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("epochs", [1, 3])
def test_document_and_shuffle_index_are_megatrons(epochs, separate):
    path = "megatron/core/datasets/gpt_dataset.py"
    theirs = megatron(path, "_build_document_index", "_build_shuffle_index", numpy=np)
    a, b = np.random.RandomState(5), np.random.RandomState(5)
    want = theirs["_build_document_index"](np.arange(11), epochs, a, separate)
    assert sampling.document_index(11, epochs, b, separate_last=separate) == want.tolist()
    for first, total in ((20, 20), (13, 20)):
        assert sampling.shuffle_index(first, total, b) == theirs["_build_shuffle_index"](first, total, a).tolist()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_replicas_read_what_megatrons_sampler_gives_them(ranks):
    sampler = megatron("megatron/training/datasets/data_samplers.py", "MegatronPretrainingSampler")
    for rank in range(ranks):
        theirs = sampler["MegatronPretrainingSampler"](
            total_samples=37, consumed_samples=4, micro_batch_size=2, data_parallel_rank=rank, data_parallel_size=ranks
        )
        assert list(sampling.replica_batches(37, 4, 2, rank, ranks)) == list(theirs)


@pytest.mark.parametrize("ranks", [2, 4])
def test_zigzag_is_megatrons(ranks):
    import torch

    scope = megatron(
        "megatron/core/utils.py",
        "get_batch_on_this_cp_rank",
        torch=torch,
        get_pg_size=lambda group: ranks,
        get_pg_rank=lambda group: group,
    )
    for rank in range(ranks):
        batch = {"tokens": torch.arange(32).expand(2, 32)}
        found = scope["get_batch_on_this_cp_rank"](batch, cp_group=rank)
        assert found["tokens"][0].tolist() == sampling.zigzag(32, rank, ranks)
    assert sorted(p for r in range(ranks) for p in sampling.zigzag(32, r, ranks)) == list(range(32))


def test_sample_index_and_blend_are_the_cpp_helpers(helpers):
    sizes, order = [7, 13, 4, 21, 9, 16], [1, 2, 5, 2, 3, 4, 1, 0, 4, 5, 0, 3]
    for length in (5, 16, 20):
        args = (np.array(sizes, np.int32), np.array(order, np.int32), length, 2, sum(sizes), True, 1)
        theirs = helpers.build_sample_idx_int32(*args)
        assert [tuple(row) for row in theirs.tolist()] == sampling.sample_index(sizes, order, length)
    for weights in ((0.7, 0.3), (0.5, 0.25, 0.25)):
        dataset, sample = np.zeros(50, np.int16), np.zeros(50, np.int64)
        helpers.build_blending_indices(dataset, sample, np.array(weights), len(weights), 50, False)
        assert sampling.blend(weights, 50) == list(zip(dataset.tolist(), sample.tolist(), strict=True))
