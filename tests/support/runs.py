"""Small recorded runs, as the lab writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LAYOUT = {"tp": 2, "cp": 1, "ep": 1, "dp": 1, "pp": 2, "order": "tp-cp-ep-dp-pp"}
DIMS = {"s": 8, "b": 2, "h": 6, "m": 3}


def call(
    site: tuple[str, int] | None,
    *,
    before: Sequence[Sequence[int]] = ((8, 2, 6),),
    after: Sequence[Sequence[int]] | None = None,
    stack: Sequence[tuple[str, int]] = (),
    dtype: str = "float32",
    **facts: str,
) -> dict[str, Any]:
    """One event: an all-reduce of `[s, b, h]` in the forward pass, but for what is said."""
    places = [place and {"path": place[0], "line": place[1], "function": "f"} for place in (site, *stack)]
    return {
        "api": "all_reduce",
        "group": "tp",
        "phase": "forward",
        "before": [{"dtype": dtype, "shape": list(shape)} for shape in before],
        "after": [{"dtype": dtype, "shape": list(shape)} for shape in (before if after is None else after)],
        "site": places[0],
        **({"stack": places[1:]} if stack else {}),
        **facts,
    }


def run(calls: Mapping[int, Sequence[Mapping[str, Any]]], *, source: str, **facts: Any) -> dict[str, Any]:
    """A trace of tp=2, pp=2 on four ranks."""
    groups = {event["group"] for events in calls.values() for event in events}
    return {
        "schema": "latent-atlas/trace",
        "version": 1,
        "source": source,
        "command": "run",
        "world": 4,
        "layout": LAYOUT,
        "dims": DIMS,
        "groups": {name: {"name": name, "desc": name.upper(), "ranks": [0, 1]} for name in sorted(groups)},
        "ranks": [{"rank": rank, "events": list(events)} for rank, events in calls.items()],
        **facts,
    }


def write_run(folder: Path, name: str, data: object) -> Path:
    """Write a trace file; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    return file
