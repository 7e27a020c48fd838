"""Every field of a communication record that a run decides, made wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from sourcepanel.notes.communications import COMMUNICATIONS
from sourcepanel.notes.outline import read_outline

ELSEWHERE = "megatron/core/num_microbatches_calculator.py::get_num_microbatches"
"""A definition that calls nothing."""


def records(text: str) -> list[dict[str, Any]]:
    """The communication records of a page, as plain data."""
    fences = [fence for fence in read_outline(text).fences if COMMUNICATIONS.is_in(fence)]
    return [yaml.safe_load("\n".join(fence.body)) for fence in fences]


def written(record: Mapping[str, Any]) -> str:
    """A page that holds this record alone."""
    body = yaml.safe_dump(dict(record), allow_unicode=True, sort_keys=False)
    return f"```{COMMUNICATIONS.fence}\n{body}```\n"


def mutations(record: Mapping[str, Any], *, traces: Path, elsewhere: str = ELSEWHERE) -> Iterator[dict[str, Any]]:
    """The record with one thing in it changed, each so that the run does not show it any more."""
    trace = json.loads((traces / f"{record['trace']}.json").read_text(encoding="utf-8"))
    events = [event for rank in trace["ranks"] for event in rank["events"]]
    seen = {(event["api"], trace["groups"][event["group"]]["name"], event["phase"]) for event in events}
    own = (record["api"], record["group"], record["phase"])
    for at, field in enumerate(("api", "group", "phase")):
        for other in sorted({call[at] for call in seen} | {f"{own[at]}x"}):
            # What is another call of the run would be another true record.
            if (*own[:at], other, *own[at + 1 :]) not in seen:
                yield {**record, field: other}
    yield {**record, "dtype": "float8"}
    yield {**record, "issued_by": elsewhere}
    for field in ("before", "after"):
        yield from ({**record, field: shapes} for shapes in _shapes(record[field]))
    yield from ({**record, "count": count} for count in _counts(record["count"]))


def _shapes(value: Any) -> Iterator[Any]:
    if value == "none":
        yield "[1]"
        return
    yield "none"
    one = isinstance(value, str) or not any(isinstance(v, list) or str(v).startswith("[") for v in value)
    shapes = [value] if one else list(value)
    yield [*shapes, "[1]"]
    for at, shape in enumerate(shapes):
        sizes = [size.strip() for size in shape[1:-1].split(",")] if isinstance(shape, str) else [str(s) for s in shape]
        sizes = [size for size in sizes if size]
        changed = [[*sizes, "1"]]
        changed += [[*sizes[:n], f"{size} + 1", *sizes[n + 1 :]] for n, size in enumerate(sizes) if size != "*"]
        changed += [sizes[:-1]] if sizes else []
        yield from ([*shapes[:at], f"[{', '.join(made)}]", *shapes[at + 1 :]] for made in changed)


def _counts(value: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        yield from (f"({value}) + 1", f"({value}) * 2")
        return
    for ranks, formula in value.items():
        yield {**value, ranks: f"({formula}) + 1"}
        if len(value) > 1:
            yield {other: kept for other, kept in value.items() if other != ranks}
