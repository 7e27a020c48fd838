"""What a record can be held against: recorded runs, the pinned source, and the programs of this project."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sourcepanel.config import Config, Repository
from sourcepanel.reference import SourceRef, Target, format_link, parse_code, parse_link
from sourcepanel.symbols import SymbolTable
from sourcepanel.traces import Place, Trace, Traces, pinned


class Unusable(ValueError):
    """A trace or a place that cannot prove anything; with the nearest right answer in `fix`."""

    def __init__(self, message: str, fix: str = "") -> None:
        self.fix = fix
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class Issuer:
    """The lines that are said to make a call."""

    path: str
    start: int
    end: int
    target: Target | None
    """In the pinned repository; None in a program of this project."""

    def holds(self, places: Sequence[Place]) -> Place | None:
        """The first of these lines that is one of its own."""
        return next(
            ((path, line) for path, line in places if path == self.path and self.start <= line <= self.end), None
        )

    def line(self, number: int, repositories: Sequence[Repository]) -> Target | None:
        """One of its lines, as the panel opens it."""
        if self.target is None:
            return None
        repository = next(r for r in repositories if r.name == self.target.repository)
        place = SourceRef(repository=repository.name, path=self.path, start=number, end=number)
        return replace(
            self.target, kind="interior", start=number, end=number, href=format_link(place, repository)
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All of it for one site; without traces nothing can be proved."""

    root: Path = Path()
    docs: Path = Path()
    traces: Traces = field(default_factory=Traces)
    repositories: tuple[Repository, ...] = ()
    find: Callable[[SourceRef], Target | None] = lambda ref: None
    """Where a reference points at the pin."""

    @classmethod
    def of(cls, config: Config, *, find: Callable[[SourceRef], Target | None]) -> Evidence:
        """The evidence of a site."""
        docs = config.path(config.docs)
        return cls(
            root=config.root,
            docs=docs,
            traces=Traces(docs / config.traces if config.traces else None),
            repositories=config.repositories,
            find=find,
        )

    def trace(self, name: str) -> Trace:
        """The run of this name; raises `Unusable` for none, and for one of another version than the pin."""
        trace = self.traces.get(name)
        if trace is None:
            near = difflib.get_close_matches(name, self.traces.names, n=1)
            known = ", ".join(self.traces.names) or "none: `traces` in sourcepanel.toml names their folder"
            raise Unusable(f"there is no trace {name}", f"did you mean {near[0]}?" if near else f"there are {known}")
        if "@" in trace.source and pinned(trace.source, self.repositories) is None:
            raise Unusable(f"the trace {name} ran {trace.source}, which is not the pin", "record it again at the pin")
        return trace

    def issuer(self, written: str, *, trace: Trace) -> Issuer:
        """The lines that `issued_by` names, in the tree that the run ran; raises `Unusable`."""
        repository = pinned(trace.source, self.repositories)
        if repository is None:
            return self._own(written)
        parsed = parse_link(written, self.repositories) or parse_code(written, self.repositories)
        if not isinstance(parsed, SourceRef) or parsed.repository != repository.name:
            fix = "write one `path::symbol` without backticks, or the address of lines at the pin"
            raise Unusable(f"{written} names no place in {repository.name}, which the trace {trace.name} ran", fix)
        target = self.find(parsed)
        if target is None or target.start is None or target.end is None:
            raise Unusable(f"{written} is no definition and no lines at the pin", f"see `sourcepanel link {written}`")
        return Issuer(path=target.path, start=target.start, end=target.end, target=target)

    def is_own(self, written: str) -> bool:
        """Whether this is a `path::symbol` in a file of this project."""
        path, _, name = written.partition("::")
        file = (self.root / path).resolve()
        try:
            return bool(name) and file.is_relative_to(self.root.resolve()) and file.is_file()
        except OSError:  # a name that no file can have
            return False

    def _own(self, written: str) -> Issuer:
        if not self.is_own(written):
            raise Unusable(f"{written} names no file of this project", "write `path::symbol`, the path from its root")
        path, _, name = written.partition("::")
        file = self.root / path
        table = SymbolTable.parse(file.read_text(encoding="utf-8"))
        found = table.get(name)
        if len(found) != 1:
            near = table.nearest(name)
            times = f"defines {name} {len(found)} times" if found else f"defines no {name}"
            raise Unusable(f"{path} {times}", f"did you mean {near[0]}?" if near and not found else "")
        return Issuer(path=path, start=found[0].start, end=found[0].end, target=None)
