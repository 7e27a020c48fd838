"""Bytes of the recorded communication against the closed forms of the algorithms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from runnable.lab.ranks import Layout
from runnable.record import TRACES
from runnable.traces import Trace

Dims = Mapping[str, int]
Key = tuple[str, str, str]


def _activation(d: Dims) -> int:
    return 4 * d["s"] * d["b"] * d["h"]


FORMS: dict[str, dict[Key, Callable[[Dims, Mapping[str, int]], int]]] = {
    "ch01": {
        ("forward", "all_reduce", "tp"): lambda d, at: 2 * d["m"] * _activation(d),
        ("backward", "all_reduce", "tp"): lambda d, at: 2 * d["m"] * _activation(d),
        ("grad-sync", "all_reduce", "dp"): lambda d, at: (
            2 * 4 * (2 * d["V"] * d["h"] + d["h"] + 2 * d["f"] * d["h"] // d["tp"])
        ),
    },
    "ch04": {
        ("forward", "all_reduce", "tp"): lambda d, at: 3 * d["m"] * _activation(d),
        ("backward", "all_reduce", "tp"): lambda d, at: 3 * d["m"] * _activation(d),
    },
    "ch10": {
        ("forward", "all_reduce", "tp"): lambda d, at: d["m"] * _activation(d),
        ("backward", "all_reduce", "tp"): lambda d, at: d["m"] * _activation(d),
        ("grad-sync", "all_reduce", "dp"): lambda d, at: 4 * (3 * d["h"] + (2 * d["f"] * d["h"] + d["f"]) // d["tp"]),
    },
    "ch10-sp": {
        ("forward", "all_gather", "tp"): lambda d, at: d["m"] * _activation(d) // d["tp"],
        ("forward", "reduce_scatter", "tp"): lambda d, at: d["m"] * _activation(d),
        ("backward", "all_gather", "tp"): lambda d, at: 2 * d["m"] * _activation(d) // d["tp"],
        ("backward", "reduce_scatter", "tp"): lambda d, at: d["m"] * _activation(d),
    },
    "ch11": {
        ("forward", "send", "pp"): lambda d, at: (at["pp"] < d["p"] - 1) * d["m"] * _activation(d),
        ("backward", "send", "pp"): lambda d, at: (at["pp"] > 0) * d["m"] * _activation(d),
    },
    "ch11-interleaved": {
        ("forward", "send", "pp"): lambda d, at: (d["v"] - (at["pp"] == d["p"] - 1)) * d["m"] * _activation(d),
        ("backward", "send", "pp-back"): lambda d, at: (d["v"] - (at["pp"] == 0)) * d["m"] * _activation(d),
    },
    "megatron": {
        ("forward", "all_reduce", "tp"): lambda d, at: (
            d["m"] * (2 * d["L"] // d["pp"] + (at["pp"] == 0)) * _activation(d)
            + (at["pp"] == d["pp"] - 1) * 3 * d["m"] * 4 * d["s"] * d["b"]
        ),
        ("forward", "send", "pp"): lambda d, at: (at["pp"] < d["pp"] - 1) * d["m"] * _activation(d),
        ("backward", "send", "pp"): lambda d, at: (at["pp"] > 0) * d["m"] * _activation(d),
    },
}
"""Trace → (phase, kind, group) → bytes that a rank at these coordinates puts in, from the sizes alone."""


def byte_rows() -> list[dict[str, Any]]:
    """Recorded bytes of every rank against the closed form; one row a trace and kind of call."""
    rows = []
    for name, forms in FORMS.items():
        trace = Trace.load(TRACES / f"{name}.json")
        for key, form in forms.items():
            recorded = {r.rank: _bytes_in(trace, r.rank)[key] for r in trace.ranks}
            wanted = {rank: form(trace.dims, _place(trace, rank)) for rank in recorded}
            rows.append(
                {"trace": name, "call": " ".join(key), "ranks": len(recorded), "rank 0": recorded[0]}
                | {"most": max(recorded.values()), "equal": recorded == wanted}
            )
    return rows


def _bytes_in(trace: Trace, rank: int) -> Counter[Key]:
    found: Counter[Key] = Counter()
    for event in trace.events(rank):
        found[event.phase, event.kind, trace.groups[event.group].name] += event.bytes_in
    return found


def _place(trace: Trace, rank: int) -> dict[str, int]:
    sizes = {axis: int(trace.layout[axis]) for axis in ("tp", "cp", "pp")}
    return Layout(world=trace.world, **sizes).dense.place(rank)
