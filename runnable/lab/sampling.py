"""From documents to samples, as data: which tokens of which documents make up which sample, in which order.

Replays `megatron/core/datasets/gpt_dataset.py::_build_document_index`,
`megatron/core/datasets/gpt_dataset.py::_build_shuffle_index`, the C++ helpers build_sample_idx and
build_blending_indices of megatron/core/datasets/helpers.cpp, and
`megatron/training/datasets/data_samplers.py::MegatronPretrainingSampler`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np


def document_index(documents: int, epochs: int, random: np.random.RandomState, *, separate_last: bool) -> list[int]:
    """Every document once for each epoch, shuffled across epochs; the last epoch apart when it is only partly used."""
    if separate_last and epochs > 1:
        first = document_index(documents, epochs - 1, random, separate_last=False)
        return first + document_index(documents, 1, random, separate_last=False)
    order = np.tile(np.arange(documents, dtype=np.int32), epochs)
    random.shuffle(order)
    return [int(i) for i in order]


def sample_index(sizes: Sequence[int], order: Sequence[int], length: int, *, extra: int = 1) -> list[tuple[int, int]]:
    """Where each sample starts: (position in `order`, offset in that document); one entry more than samples.

    A sample has length + extra tokens, and the next one starts `length` later: its last token is read twice, once as
    the label of its predecessor and once as input.
    """
    count = (sum(sizes[d] for d in order) - extra) // length
    found, position, offset = [(0, 0)], 0, 0
    while len(found) <= count:
        left = length + extra
        while left > 0:
            here = sizes[order[position]] - offset
            left -= here
            if left <= 0:
                offset += left + here - extra
            else:
                position, offset = position + 1, 0
        found.append((position, offset))
    return found


def shuffle_index(first: int, total: int, random: np.random.RandomState) -> list[int]:
    """The order in which samples are read: shuffled, the samples of the separate last epoch among themselves."""
    parts = [np.arange(first, dtype=np.uint32), np.arange(first, total, dtype=np.uint32)]
    for part in parts[: 1 if first == total else 2]:
        random.shuffle(part)
    return [int(i) for part in parts for i in part]


def pieces(
    index: Sequence[tuple[int, int]], order: Sequence[int], sizes: Sequence[int], sample: int, *, extra: int = 1
) -> list[tuple[int, int, int]]:
    """The stretches (document, start, end) that make up a sample."""
    (first, start), (last, end) = index[sample], index[sample + 1]
    found = []
    for position in range(first, last + 1):
        document = order[position]
        a = start if position == first else 0
        b = end + extra if position == last else sizes[document]
        found.append((document, a, b))
    return found


def blend(weights: Sequence[float], size: int) -> list[tuple[int, int]]:
    """(dataset, its sample) for each sample: always the dataset that lags most behind its weight."""
    used, found = [0] * len(weights), []
    for i in range(size):
        lag = [w * max(i, 1) - n for w, n in zip(weights, used, strict=True)]
        chosen = lag.index(max(lag))
        found.append((chosen, used[chosen]))
        used[chosen] += 1
    return found


def replica_batches(total: int, consumed: int, micro: int, rank: int, ranks: int) -> Iterator[list[int]]:
    """The microbatches of one data-parallel rank: consecutive samples dealt out in runs of `micro`."""
    batch = micro * ranks
    for start in range(consumed, total - batch + 1, batch):
        yield list(range(start + rank * micro, start + (rank + 1) * micro))


def zigzag(length: int, rank: int, ranks: int) -> list[int]:
    """Positions of a context-parallel rank: chunks `rank` and 2·ranks-1-rank of 2·ranks: equal causal work."""
    chunk = length // (2 * ranks)
    return [p for c in (rank, 2 * ranks - 1 - rank) for p in range(c * chunk, (c + 1) * chunk)]
