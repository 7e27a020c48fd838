"""What the panel shows of linked lines at the other versions that the configuration offers (`panel = true`).

Only lines that are not what and where they were count: text that changed (layout included), went to another file, or
is gone. Each version is compared with the pin line by line, indentation aside, as `drift` does it.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal

import pygments

from sourcepanel.config import Config, Repository, Version
from sourcepanel.drift.relocate import Relocator
from sourcepanel.drift.survey import Outcome, State, Tracer
from sourcepanel.drift.versions import open_move
from sourcepanel.errors import SnapshotUnavailable
from sourcepanel.files import write_atomically
from sourcepanel.reference import SourceRef, Target
from sourcepanel.render import RENDERER, render_cached
from sourcepanel.source import Source, SourceFile
from sourcepanel.verify import Place

CONTEXT = 3
"""Lines shown around a range."""
FORMAT = 1
"""Raise it whenever the same two versions would give another view: it is part of the cache's key."""

Notify = Callable[[str], None]
Sign = Literal["", "=", "+", "-"]
"""A line around the range, in it on both sides, only at the other version, only at the pin."""
Ranges = Mapping[str, Mapping[str, Any]]
"""`10-20` → the view of these lines: `status`, `unsure`, `path`, `start`, `end`, `rows` of (sign, number, HTML)."""
Views = Mapping[tuple[str, str], Mapping[str, Ranges]]
"""(repository, path) → commit → what differs there."""


def offered(repository: Repository) -> list[Version]:
    """The versions that the panel shows besides the pin."""
    return [version for version in repository.versions if version.panel and version.commit != repository.commit]


def version_name(version: Version) -> str:
    """What people call it: `0.18.2` where there is a wheel, else the tag."""
    return version.wheel or version.ref


def read_versions(config: Config, *, sources: Mapping[str, Source], targets: Iterable[Target], notify: Notify) -> Views:
    """The views of all linked ranges, kept in the cache file by file.

    A version that cannot be had here is told to `notify` in one line; the panel then offers what the cache holds.
    """
    ranges: dict[str, dict[str, dict[str, Target]]] = defaultdict(lambda: defaultdict(dict))
    for target in targets:
        if target.start and target.end and target.has_text:
            ranges[target.repository][target.path][f"{target.start}-{target.end}"] = target
    views: dict[tuple[str, str], dict[str, Ranges]] = defaultdict(dict)
    for name, linked in ranges.items():
        for version in offered(sources[name].repository):
            found = _Comparison(config, source=sources[name], version=version, notify=notify).read(linked)
            for path, different in found.items():
                if different:
                    views[name, path][version.commit] = different
            if found:
                count, total = sum(map(len, found.values())), sum(len(linked[path]) for path in found)
                notify(f"{count} of {total} linked ranges of {name} differ at {version_name(version)}")
    return views


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """Both trees, opened."""

    tracer: Tracer
    then: Source
    """The other version."""


class _Comparison:
    """One repository at its pin and at one other version."""

    def __init__(self, config: Config, *, source: Source, version: Version, notify: Notify) -> None:
        self._config = config
        self._source = source
        self._version = version
        self._notify = notify

    def read(self, linked: Mapping[str, Mapping[str, Target]]) -> dict[str, Ranges]:
        """What differs, by file; a file of which nothing is known here is left out."""
        found: dict[str, Ranges] = {}
        for path, targets in linked.items():
            with suppress(OSError, ValueError):
                found[path] = json.loads(self._entry(path, targets).read_text(encoding="utf-8"))
        missing = [path for path in linked if path not in found]
        if not missing:
            return found
        try:
            with self._opened() as sides:
                for path in missing:
                    found[path] = self._compare(sides, linked[path])
                    with suppress(OSError):
                        write_atomically(self._entry(path, linked[path]), json.dumps(found[path], ensure_ascii=False))
        except SnapshotUnavailable as error:
            why = error.what.partition("\n")[0].rstrip(":")
            files = f"{len(missing)} of {len(linked)} linked files"
            self._notify(f"the panel cannot show {files} at {version_name(self._version)}: {why}")
        return found

    def _entry(self, path: str, targets: Mapping[str, Target]) -> Path:
        """Its name holds everything the views depend on: a commit never changes, nor do files of one blob."""
        blob = next(iter(targets.values())).blob
        commits = (self._source.repository.commit, self._version.commit)
        named = sorted((lines, target.kind, target.symbol or "") for lines, target in targets.items())
        parts = (FORMAT, RENDERER, pygments.__version__, commits, self._source.snapshot.complete, path, blob, named)
        name = hashlib.sha256(repr(parts).encode()).hexdigest()
        return self._config.cache_dir / "versions" / name[:2] / f"{name}.json"

    @contextmanager
    def _opened(self) -> Iterator[_Sides]:
        locked, cache = self._source.locked, self._config.cache_dir
        move = open_move(
            self._source.repository,
            self._version.commit,
            root=self._config.root,
            cache=cache,
            notify=self._notify,
            blobs={path: facts.blob for path, facts in locked.files.items()} if locked else None,
        )
        with Relocator.between(move.old, move.new) as relocator:
            yield _Sides(
                tracer=Tracer(relocator), then=Source(move.target, snapshot=move.new, locked=None, cache=cache)
            )

    def _compare(self, sides: _Sides, targets: Mapping[str, Target]) -> Ranges:
        found = {}
        for lines, target in targets.items():
            symbol = target.symbol if target.kind == "definition" else None
            ref = SourceRef(
                repository=target.repository, path=target.path, start=target.start, end=target.end, symbol=symbol
            )
            outcome = sides.tracer.trace(ref, Place(target))
            if view := self._view(outcome, sides):
                found[lines] = view
        return found

    def _view(self, outcome: Outcome, sides: _Sides) -> dict[str, Any] | None:
        """What is shown of one range; None where there is nothing to tell."""
        path, to = outcome.ref.path, outcome.to
        elsewhere = to is not None and to.path != path
        if outcome.state is State.UNSEEN or (outcome.text == "same" and not elsewhere):
            return None
        old, a, b = self._source.file(path), outcome.start, outcome.end
        assert old is not None and a is not None and b is not None
        there = sides.then.file(to.path) if to else None
        c, d = outcome.to_start, outcome.to_end
        if to is None or there is None or c is None or d is None:
            stays = path if sides.then.has(path) else ""
            rows: list[tuple[Sign, int, str]] = [("-", n, html) for n, html in self._html(old, a, b)]
            return {"status": "gone", "unsure": False, "path": stays, "start": 0, "end": 0, "rows": rows}
        compared = list(
            _rows(
                (old.span(a, b), self._html(old, a, b)),
                (there.span(c, d), self._html(there, c, d)),
            )
        )
        differs = any(sign in "+-" for sign, _, _ in compared)
        if not differs and not elsewhere:
            # The same text, but perhaps a twin of it: no line tells the reader anything.
            return None
        before, after = max(1, c - CONTEXT), min(there.count, d + CONTEXT)
        rows = [
            *(("", n, html) for n, html in self._html(there, before, c - 1)),
            *compared,
            *(("", n, html) for n, html in self._html(there, d + 1, after)),
        ]
        return {
            "status": outcome.text if differs else "moved",
            "unsure": outcome.confidence == "unsure" or (elsewhere and outcome.confidence != "certain"),
            "path": to.path,
            "start": c,
            "end": d,
            "rows": rows,
        }

    def _html(self, file: SourceFile, start: int, end: int) -> list[tuple[int, str]]:
        """The numbered lines of a range, coloured."""
        lines = "\n".join(render_cached(file, cache=self._config.cache_dir).sections).split("\n")
        return [(n, lines[n - 1]) for n in range(start, end + 1)]


def _rows(
    old: tuple[Sequence[str], list[tuple[int, str]]], new: tuple[Sequence[str], list[tuple[int, str]]]
) -> Iterator[tuple[Sign, int, str]]:
    """The lines of both sides in one column, each with its sign."""
    a, b = ([line.strip() for line in lines] for lines, _ in (old, new))
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (("-", n, html) for n, html in old[1][i:j])
        yield from (("=" if tag == "equal" else "+", n, html) for n, html in new[1][k:m])
