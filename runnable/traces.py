"""The trace file: what a run sent, as deterministic JSON that a page can cite.

No times, no host names, no absolute paths: the same script on the same layout writes the same bytes. Needs pydantic
only, so that a site build can read traces without torch. `python -m runnable.traces` prints the JSON schema.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

SCHEMA = "latent-atlas/trace"
VERSION = 1

Phase = Literal[
    "setup", "data", "forward", "backward", "recompute", "grad-sync", "optimizer", "param-sync", "checkpoint", "logging"
]
Kind = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "all_to_all", "send",
    "recv", "barrier", "new_group",
]  # fmt: skip


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tensor(_Record):
    """One tensor of a call."""

    dtype: str
    shape: tuple[int, ...]


class Site(_Record):
    """A line of source: `path` is relative to the root of its tree."""

    path: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}"


class Event(_Record):
    """One call into a process group, as one rank saw it."""

    n: int
    """Order on this rank, from 0."""
    kind: Kind
    api: str
    """The function of torch.distributed that was called."""
    group: str
    """Key into `Trace.groups`."""
    phase: Phase
    before: tuple[Tensor, ...]
    """What this rank puts in; empty for a receive."""
    after: tuple[Tensor, ...]
    """What this rank gets out; empty for a send."""
    bytes_in: int
    bytes_out: int
    reduce: str | None = None
    """SUM, MAX, AVG, … of a reducing call."""
    root: int | None = None
    """Global rank of the root of a broadcast, reduce, gather or scatter."""
    peer: int | None = None
    """Global rank of the other end of a send or receive."""
    asynchronous: bool = False
    """The caller got the handle back and waits elsewhere."""
    label: str | None = None
    """What the script says this is: a microbatch, a bucket, a parameter."""
    module: str | None = None
    """The module at work, layers counted over all stages: decoder.layers.0.mlp.linear_fc2, in backward too."""
    site: Site | None
    """The line that issued the call."""
    stack: tuple[Site, ...] = ()
    """Where `site` is in a helper that only passes calls on: the callers behind the helpers, nearest first."""


class Group(_Record):
    """A process group that appears in the trace."""

    name: str
    """Short name: tp, dp-cp, …"""
    desc: str
    """Megatron's name: TENSOR_MODEL_PARALLEL_GROUP, …"""
    ranks: tuple[int, ...]


class RankTrace(_Record):
    """All calls of one rank, in order."""

    rank: int
    events: tuple[Event, ...]


class Trace(_Record):
    """One run of one script."""

    schema_: Literal["latent-atlas/trace"] = Field(SCHEMA, alias="schema")
    version: Literal[1] = VERSION
    source: str
    """What ran: a path in this project, or `Megatron-LM@<commit>` for the real one."""
    command: str
    world: int
    layout: dict[str, int | str]
    """tp, cp, ep, dp, pp and order."""
    dims: dict[str, int]
    """Values of the letters in symbolic shapes: s, b, h, …"""
    groups: dict[str, Group]
    ranks: tuple[RankTrace, ...]

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    def events(self, rank: int) -> tuple[Event, ...]:
        """The calls of a rank."""
        return next(r.events for r in self.ranks if r.rank == rank)

    def dumps(self) -> str:
        """The file's text: one line for each event, so that a diff is readable."""
        data = self.model_dump(mode="json", by_alias=True, exclude_defaults=False)
        ranks = data.pop("ranks")
        head = json.dumps(data, ensure_ascii=False, indent=1)[:-2]
        blocks = []
        for rank in ranks:
            lines = ",\n".join("   " + json.dumps(_bare(event), ensure_ascii=False) for event in rank["events"])
            blocks.append(f'  {{"rank": {rank["rank"]}, "events": [\n{lines}\n  ]}}')
        return head + ',\n "ranks": [\n' + ",\n".join(blocks) + "\n ]\n}\n"

    @classmethod
    def loads(cls, text: str) -> Self:
        """Parse and validate."""
        return cls.model_validate_json(text)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file; pydantic's message names the field that is wrong."""
        return cls.loads(path.read_text(encoding="utf-8"))

    def unmatched(self) -> list[str]:
        """What does not fit together between ranks: empty for a sound trace.

        Members of a group must issue the same collectives in the same order; every send needs its receive.
        """
        wrong = []
        calls = {r.rank: r.events for r in self.ranks}
        for key, group in self.groups.items():
            members = [m for m in group.ranks if m in calls]
            lists = [[e.kind for e in calls[m] if e.group == key and e.peer is None] for m in members]
            wrong += [
                f"group {group.name} {list(group.ranks)}: rank {m} issued {len(mine)} collectives {mine[:4]}…, "
                f"rank {members[0]} issued {len(lists[0])} {lists[0][:4]}…"
                for m, mine in zip(members, lists, strict=True)
                if mine != lists[0]
            ]
        flows = {
            (r, e.peer) if e.kind == "send" else (e.peer, r) for r in calls for e in calls[r] if e.peer is not None
        }
        for src, dst in sorted(flows):
            out = [e.before for e in calls.get(src, ()) if e.kind == "send" and e.peer == dst]
            into = [e.after for e in calls.get(dst, ()) if e.kind == "recv" and e.peer == src]
            if src in calls and dst in calls and out != into:
                wrong.append(f"rank {src} → rank {dst}: {len(out)} sends, {len(into)} receives, or other shapes")
        return wrong


def _bare(event: dict[str, object]) -> dict[str, object]:
    """An event without the fields that say nothing."""
    optional = ("reduce", "root", "peer", "label", "module")
    quiet = {key for key in optional if event[key] is None}
    quiet |= {key for key in ("asynchronous", "stack") if not event[key]}
    return {key: value for key, value in event.items() if key not in quiet}


def write_text(path: Path, text: str) -> None:
    """Write whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def schema() -> str:
    """The JSON schema of a trace file."""
    return json.dumps(Trace.model_json_schema(by_alias=True), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
