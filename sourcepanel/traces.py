"""Recorded runs: what each rank sent, read from the trace files that the lab writes.

Schema `latent-atlas/trace`, version 1 (`docs/traces/schema.json`). A trace either ran a pinned repository at the pin,
so that its lines are lines of that repository, or a program of this project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sourcepanel.config import Repository
from sourcepanel.errors import PageError

SCHEMA = "latent-atlas/trace"
VERSION = 1

Shape = tuple[int, ...]
Place = tuple[str, int]
"""A path and a line."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call into a process group, as one rank saw it."""

    api: str
    group: str
    """Short name: tp, dp-cp, …"""
    phase: str
    dtypes: frozenset[str]
    """Of all tensors, before and after; empty for a call without any."""
    before: tuple[Shape, ...]
    """What the rank puts in; empty for a receive."""
    after: tuple[Shape, ...]
    """What it gets out; empty for a send."""
    places: tuple[Place, ...]
    """The line that made the call; where that is a helper, behind it the lines that called the helper."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One run."""

    name: str
    """Of its file, without the suffix."""
    file: Path
    source: str
    """What ran: `Name@commit`, or a program of this project."""
    world: int
    layout: Mapping[str, int | str]
    dims: Mapping[str, int]
    calls: Mapping[int, tuple[Call, ...]]
    """By rank; a run may have recorded some ranks only."""

    @property
    def readable(self) -> Path:
        """The run for people, else the file itself."""
        text = self.file.with_suffix(".txt")
        return text if text.is_file() else self.file

    @property
    def names(self) -> dict[str, int]:
        """What may stand in a symbolic shape: the run's dimensions and the sizes of its layout."""
        sizes = {axis: size for axis, size in self.layout.items() if isinstance(size, int)}
        return {"world": self.world, **sizes, **self.dims}

    def coordinates(self, rank: int) -> dict[str, int]:
        """Where a rank sits: the leftmost axis of the order varies fastest; `ep` counts on the grid of experts."""
        sizes = {axis: size for axis, size in self.layout.items() if isinstance(size, int)}
        place = self._place(rank, {**sizes, "ep": 1})
        if sizes.get("ep", 1) > 1:
            tensor, stages = sizes.get("etp", sizes.get("tp", 1)), sizes.get("pp", 1)
            experts = {"tp": tensor, "cp": 1, "dp": self.world // (tensor * sizes["ep"] * stages)}
            place["ep"] = self._place(rank, {**sizes, **experts})["ep"]
        return place

    def _place(self, rank: int, sizes: Mapping[str, int]) -> dict[str, int]:
        place = {}
        for axis in str(self.layout.get("order", "tp-cp-ep-dp-pp")).split("-"):
            rank, place[axis] = divmod(rank, sizes.get(axis, 1))
        return place


class Traces:
    """The traces of one folder, each read when first asked for and again when its file changes."""

    def __init__(self, folder: Path | None = None) -> None:
        """Without a folder there are none."""
        self.folder = folder
        self._read: dict[Path, tuple[tuple[int, int], Trace | None]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that may be a trace's, sorted."""
        return tuple(sorted(file.stem for file in self.folder.glob("*.json"))) if self.folder else ()

    def get(self, name: str) -> Trace | None:
        """The trace of this name, None where there is none; raises `PageError` for one that cannot be read."""
        if self.folder is None or name not in self.names:
            return None
        file = self.folder / f"{name}.json"
        stat = file.stat()
        state = (stat.st_mtime_ns, stat.st_size)
        if self._read.get(file, (None,))[0] != state:
            self._read[file] = (state, _trace(file))
        return self._read[file][1]


def read_data(file: Path) -> Mapping[str, Any] | None:
    """What a trace file holds, unchecked but for schema and version; None for JSON that is no trace."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PageError(f"{file}: no JSON: {error}; record the trace again") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        return None
    if data.get("version") != VERSION:
        raise PageError(f"{file}: a trace of version {data.get('version')}; this build reads version {VERSION}")
    return data


def pinned(source: str, repositories: Sequence[Repository]) -> Repository | None:
    """The repository whose pin ran: `Name@commit` or `Name@ref`."""
    name, _, at = source.partition("@")
    for repository in repositories:
        if name == repository.name and at and (at == repository.ref or repository.commit.startswith(at)):
            return repository
    return None


def places(event: Mapping[str, Any]) -> Iterator[Place]:
    """The line that asked, and behind a helper the lines that asked the helper; each once."""
    sites = [event["site"], *event.get("stack", ())]
    yield from dict.fromkeys((site["path"], site["line"]) for site in sites if site)


def _trace(file: Path) -> Trace | None:
    data = read_data(file)
    if data is None:
        return None
    try:
        groups = {key: group["name"] for key, group in data["groups"].items()}
        return Trace(
            name=file.stem,
            file=file,
            source=data["source"],
            world=data["world"],
            layout=data["layout"],
            dims=data["dims"],
            calls={r["rank"]: tuple(_call(event, groups) for event in r["events"]) for r in data["ranks"]},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise PageError(f"{file}: not a whole trace ({error}); record it again") from None


def _call(event: Mapping[str, Any], groups: Mapping[str, str]) -> Call:
    tensors = [*event["before"], *event["after"]]
    return Call(
        api=event["api"],
        group=groups[event["group"]],
        phase=event["phase"],
        dtypes=frozenset(tensor["dtype"] for tensor in tensors),
        before=tuple(tuple(tensor["shape"]) for tensor in event["before"]),
        after=tuple(tuple(tensor["shape"]) for tensor in event["after"]),
        places=tuple(places(event)),
    )
