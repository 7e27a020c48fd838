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
from types import CodeType, FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from runnable.lab.calls import METHODS, SPEC, asynchronous, operator, shapes, tensors_in
from runnable.lab.ranks import SHORT
from runnable.traces import Event, Group, Kind, Phase, RankTrace, Site

ROOT = Path(__file__).resolve().parents[2]
_LAB = str(Path(__file__).resolve().parent)

_ENGINE = torch.autograd.graph._engine_run_backward.__code__
"""Below it on the stack is a backward, above it what that backward runs."""


@dataclass
class _Way:
    """How a call got here."""

    api: str = ""
    """The function of torch.distributed."""
    stack: list[Site] = field(default_factory=list)
    """The lines of the trees on the stack, nearest first."""
    inner: int = sys.maxsize
    """How many of them run inside the innermost backward, if one runs."""
    waits: bool = True
    """Whether torch.distributed itself waits for the end."""


@dataclass
class Span:
    """A stretch of time on this rank, for the timeline only."""

    name: str
    category: str
    start: int
    end: int = 0


@dataclass
class Tracer:
    """One for each process; install before the first call to record."""

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
    events: list[Event] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    on: bool = True
    _phase: list[Phase] = field(default_factory=lambda: ["setup"])
    _label: list[str | None] = field(default_factory=lambda: [None])
    _marks: list[tuple[Phase, str]] = field(default_factory=list)
    _inside: bool = False
    _saved: dict[str, Any] = field(default_factory=dict)
    _undo: list[Callable[[], None]] = field(default_factory=list)
    _known: dict[CodeType, str | None] = field(default_factory=dict)

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
                way = self._walk(sys._getframe(1))
                way.api = "new_group"
                self._add("new_group", self._known_group(str(kwargs.get("group_desc")), members), way)
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
            given = (*args, *kwargs.values())
            self._record(kind, group, given, put, got)
            name = self.events[-1].api
            self._inside = True
            try:
                with self.span(name, f"comm:{kind}"):
                    return original(group, *args, **kwargs)
            finally:
                self._inside = False

        call.__name__ = method
        return call

    def _record(
        self, kind: Kind, group: dist.ProcessGroup, given: tuple[Any, ...], put: int | None, got: int | None
    ) -> None:
        before = [] if put is None else list(tensors_in(given[put]))
        after = [] if got is None else list(tensors_in(given[got]))
        options = next((value for value in given if type(value).__name__.endswith("Options")), None)
        way = self._walk(sys._getframe(2))
        peer = dist.get_global_rank(group, given[1]) if kind in ("send", "recv") else None
        self._add(
            kind,
            self._group(group),
            way,
            before=shapes(before),
            after=shapes(after),
            bytes_in=sum(t.numel() * t.element_size() for t in before),
            bytes_out=sum(t.numel() * t.element_size() for t in after),
            reduce=operator(options) if kind in ("all_reduce", "reduce_scatter", "reduce") else None,
            root=dist.get_global_rank(group, options.rootRank)
            if kind in ("broadcast", "reduce", "gather", "scatter")
            else None,
            peer=peer,
            asynchronous=not way.waits,
        )

    def _add(self, kind: Kind, group: str, way: _Way, **more: Any) -> None:
        stack = way.stack
        if self._marks:
            phase, label = self._marks.pop(0)
        else:
            phase, label = self._phase_of(way, kind, more.get("peer")), self._label[-1]
        passed = next((i for i, s in enumerate(stack) if s.function.rsplit(".", 1)[-1] not in self.helpers), 0)
        quiet: dict[str, Any] = {"before": (), "after": (), "bytes_in": 0, "bytes_out": 0}
        self.events.append(
            Event.model_construct(
                n=len(self.events),
                kind=kind,
                api=way.api,
                group=group,
                phase=phase,
                label=label,
                module=self.module_of(),
                site=stack[0] if stack else None,
                stack=tuple(stack[passed : passed + 5]) if passed else (),
                **(quiet | more),
            )
        )

    def _phase_of(self, way: _Way, kind: Kind, peer: int | None) -> Phase:
        named = ((i, self.describe(site.function, kind, peer)) for i, site in enumerate(way.stack))
        found = next(((i, phase) for i, phase in named if phase), None)
        if torch._C._current_graph_task_id() == -1:
            return found[1] if found else self._phase[-1]
        return "recompute" if found and found[1] == "recompute" and found[0] < way.inner else "backward"

    def _group(self, group: dist.ProcessGroup) -> str:
        return self._known_group(group.group_desc, tuple(dist.get_process_group_ranks(group)))

    def _known_group(self, desc: str, ranks: tuple[int, ...]) -> str:
        name = SHORT.get(desc, desc)
        key = f"{name}[{','.join(map(str, ranks))}]"
        if key not in self.groups:
            self.groups[key] = Group(name=name, desc=desc, ranks=ranks)
        return key

    def _walk(self, frame: FrameType | None) -> _Way:
        way = _Way()
        while frame is not None:
            code = frame.f_code
            if not way.stack and code.co_filename == c10d.__file__ and code.co_name != "wrapper":
                way.api = code.co_name
                way.waits = not asynchronous(code.co_name, frame.f_locals)
            elif code is _ENGINE:
                way.inner = min(way.inner, len(way.stack))
            else:
                path = self._path(code)
                if path is not None:
                    way.stack.append(Site.model_construct(path=path, line=frame.f_lineno, function=code.co_qualname))
            frame = frame.f_back
        return way

    def _path(self, code: CodeType) -> str | None:
        if code not in self._known:
            name = code.co_filename
            inside = [] if name.startswith(self.skip) else [(f, to) for f, to in self.trees if name.startswith(f)]
            self._known[code] = inside[0][1] + name[len(inside[0][0]) :] if inside else None
        return self._known[code]
