"""Record every call into a process group, on the class that all of torch.distributed goes through.

The methods of `torch.distributed.ProcessGroup` are replaced, so a call is seen under whatever name it was imported
(`dist_all_gather_func`, `P2POp(isend)`, a coalescing manager …) and however early that was. C++-only callers escape;
there are none on these paths.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from runnable.lab.calls import METHODS, OPTIONS, P2P, REDUCING, ROOTED, SPEC, event_of, shapes
from runnable.lab.ranks import SHORT
from runnable.lab.stack import Walker, Way
from runnable.traces import Event, Group, Kind, Phase, RankTrace

ROOT = Path(__file__).resolve().parents[2]
_LAB = str(Path(__file__).resolve().parent)


@dataclass
class Span:
    """A stretch of time on this rank, for the timeline only."""

    name: str
    category: str
    start: int
    end: int = 0


@dataclass
class Tracer:
    """One for each process; install before the first call to record.

    A call costs as little as can be while the program runs: what it says is kept as it came, and becomes an `Event`
    when somebody asks for `events`.
    """

    trees: tuple[tuple[str, str], ...] = ((str(ROOT / "runnable") + "/", "runnable/"),)
    """Folders whose lines count as issuing lines, and what to write in place of the folder."""
    skip: tuple[str, ...] = (_LAB,)
    """Folders inside the trees that only carry calls on."""
    helpers: frozenset[str] = frozenset()
    """Functions of the trees that only pass a call on: the callers of such a line are kept in `Event.stack`."""
    describe: Callable[[str, Kind, int | None], Phase | None] = lambda function, kind, peer: None
    """Phase by the qualified name of a function on the stack, for a program that does not use `phase()`; of a call of
    this kind with this peer. "recompute" counts only from inside the backward that issued the call."""
    module_of: Callable[[], str | None] = lambda: None
    """The module that is at work (`ModuleNames`)."""
    spans: list[Span] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    on: bool = True
    _phase: list[Phase] = field(default_factory=lambda: ["setup"])
    _label: list[str | None] = field(default_factory=lambda: [None])
    _marks: list[tuple[Phase, str]] = field(default_factory=list)
    _inside: bool = False
    _saved: dict[str, Any] = field(default_factory=dict)
    _undo: list[Callable[[], None]] = field(default_factory=list)
    _stack: Walker = field(init=False)
    _members: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """torch's unique name of a group → its key and its ranks."""
    _raw: list[dict[str, Any]] = field(default_factory=list)
    _events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stack = Walker(self.trees, self.skip)

    @property
    def events(self) -> list[Event]:
        """All calls so far, in order."""
        self._events += [event_of(n, raw, self.helpers) for n, raw in enumerate(self._raw, len(self._events))]
        self._raw.clear()
        return self._events

    def install(self) -> None:
        """Replace the methods of the class; `remove` puts them back."""
        for name in METHODS:
            if hasattr(dist.ProcessGroup, name) and name not in self._saved:
                original = getattr(dist.ProcessGroup, name)
                # What the class holds, not what it hands out: only the former binds to a group when put back.
                self._saved[name] = vars(dist.ProcessGroup)[name]
                setattr(dist.ProcessGroup, name, self._wrap(name, original))

    def watch_groups(self) -> None:
        """Record too which groups are made: a call that every rank makes, members or not. For calls by module name."""
        make = dist.new_group

        def new_group(ranks: Sequence[int] | None = None, *args: Any, **kwargs: Any) -> Any:
            if self.on:
                members = tuple(range(dist.get_world_size()) if ranks is None else ranks)
                way = self._stack.walk(sys._getframe(1))
                key = self._known_group(str(kwargs.get("group_desc")), members)
                empty = {"before": (), "after": (), "asynchronous": False}
                self._add({"kind": "new_group", "api": "new_group", "group": key} | empty, way)
            with self.paused():
                return make(ranks, *args, **kwargs)

        dist.new_group = new_group
        self._undo.append(lambda: setattr(dist, "new_group", make))

    def remove(self) -> None:
        """Undo `install` and `watch_groups`."""
        for name, method in self._saved.items():
            setattr(dist.ProcessGroup, name, method)
        self._saved.clear()
        while self._undo:
            self._undo.pop()()

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Calls inside belong to this phase; calls from the autograd engine are backward all the same."""
        self._phase.append(name)
        try:
            yield
        finally:
            self._phase.pop()

    @contextmanager
    def label(self, text: str) -> Iterator[None]:
        """Calls inside carry this label."""
        self._label.append(text)
        try:
            yield
        finally:
            self._label.pop()

    @contextmanager
    def marks(self, marks: Sequence[tuple[Phase, str]]) -> Iterator[None]:
        """The calls inside get these phases and labels, one each, in order: for several calls made by one API."""
        self._marks = list(marks)
        try:
            yield
        finally:
            self._marks = []

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Calls inside are the lab's own and are not recorded."""
        before, self.on = self.on, False
        try:
            yield
        finally:
            self.on = before

    @contextmanager
    def span(self, name: str, category: str = "compute") -> Iterator[None]:
        """Time what happens inside."""
        span = Span(name, category, time.perf_counter_ns())
        try:
            yield
        finally:
            span.end = time.perf_counter_ns()
            self.spans.append(span)

    def result(self, rank: int) -> RankTrace:
        """What this rank did so far."""
        return RankTrace(rank=rank, events=tuple(self.events))

    def _wrap(self, method: str, original: Callable[..., Any]) -> Callable[..., Any]:
        kind, put, got = SPEC[method]

        def call(group: dist.ProcessGroup, *args: Any, **kwargs: Any) -> Any:
            # torch's newer methods call older ones; only the outermost call is the user's.
            if not self.on or self._inside:
                return original(group, *args, **kwargs)
            api = self._record(kind, group, (*args, *kwargs.values()), put, got)
            self._inside = True
            start = time.perf_counter_ns()
            try:
                return original(group, *args, **kwargs)
            finally:
                self.spans.append(Span(api, f"comm:{kind}", start, time.perf_counter_ns()))
                self._inside = False

        call.__name__ = method
        return call

    def _record(
        self, kind: Kind, group: dist.ProcessGroup, given: tuple[Any, ...], put: int | None, got: int | None
    ) -> str:
        """Keep the call; the API's name."""
        key, ranks = self._group(group)
        way = self._stack.walk(sys._getframe(2))
        before = () if put is None else shapes(given[put])
        after = before if put == got else () if got is None else shapes(given[got])
        raw = {"kind": kind, "api": way.api, "group": key, "before": before, "after": after}
        raw["asynchronous"] = not way.waits
        if kind in P2P:
            raw["peer"] = ranks[given[1]]
        elif kind in OPTIONS:
            options = next(value for value in given if type(value).__name__.endswith("Options"))
            if kind in REDUCING:
                raw["reduce"] = options.reduceOp
            if kind in ROOTED:
                raw["root"] = ranks[options.rootRank]
        self._add(raw, way)
        return way.api

    def _add(self, raw: dict[str, Any], way: Way) -> None:
        if self._marks:
            raw["phase"], raw["label"] = self._marks.pop(0)
        else:
            raw["phase"], raw["label"] = self._phase_of(way, raw["kind"], raw.get("peer")), self._label[-1]
        raw["module"], raw["stack"] = self.module_of(), way.stack
        self._raw.append(raw)

    def _phase_of(self, way: Way, kind: Kind, peer: int | None) -> Phase:
        named = ((i, self.describe(code.function, kind, peer)) for i, (code, _) in enumerate(way.stack))
        found = next(((i, phase) for i, phase in named if phase), None)
        if torch._C._current_graph_task_id() == -1:
            return found[1] if found else self._phase[-1]
        return "recompute" if found and found[1] == "recompute" and found[0] < way.inner else "backward"

    def _group(self, group: dist.ProcessGroup) -> tuple[str, tuple[int, ...]]:
        found = self._members.get(group.group_name)
        if found is None:
            ranks = tuple(dist.get_process_group_ranks(group))
            found = self._members[group.group_name] = self._known_group(group.group_desc, ranks), ranks
        return found

    def _known_group(self, desc: str, ranks: tuple[int, ...]) -> str:
        name = SHORT.get(desc, desc)
        key = f"{name}[{','.join(map(str, ranks))}]"
        if key not in self.groups:
            self.groups[key] = Group(name=name, desc=desc, ranks=ranks)
        return key
