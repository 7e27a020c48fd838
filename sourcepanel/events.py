"""Communication that recorded runs saw, by the line of source that asked for it.

Of a trace only what points into a pinned repository at the pin counts: a run of another version speaks of other lines.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sourcepanel.config import Repository
from sourcepanel.errors import PageError
from sourcepanel.traces import pinned, places, read_data


@dataclass(frozen=True, kw_only=True)
class LineEvents:
    """What one run did at one line."""

    line: int
    trace: str
    """Name of the trace file, without its suffix."""
    url: str
    """The trace for people, else the file itself; relative to the site's root."""
    command: str
    calls: tuple[tuple[str, str, int], ...]
    """(function, group, how often over all ranks), the most frequent first."""

    @property
    def row(self) -> list[object]:
        """As the panel's data has it."""
        return [self.line, self.trace, self.url, self.command, [list(call) for call in self.calls]]


def read_events(
    folder: Path, *, docs: Path, repositories: Sequence[Repository]
) -> Mapping[tuple[str, str], tuple[LineEvents, ...]]:
    """(repository, path) → what the traces of this folder saw there, in order of lines.

    JSON files that are no traces are left alone. Raises `PageError` for a trace that cannot be read.
    """
    found: dict[tuple[str, str], list[LineEvents]] = defaultdict(list)
    for file in sorted(folder.glob("*.json")):
        trace = read_data(file)
        repository = pinned(str(trace.get("source", "")), repositories) if trace else None
        if trace is None or repository is None:
            continue
        readable = file.with_suffix(".txt")
        url = (readable if readable.is_file() else file).relative_to(docs).as_posix()
        try:
            seen = _places(trace)
        except (KeyError, TypeError) as error:
            raise PageError(f"{file}: not a whole trace ({error}); record it again") from None
        for (path, line), calls in seen.items():
            rows = tuple((api, group, count) for (api, group), count in calls.most_common())
            found[repository.name, path].append(
                LineEvents(line=line, trace=file.stem, url=url, command=str(trace["command"]), calls=rows)
            )
    return {place: tuple(sorted(rows, key=lambda row: (row.line, row.trace))) for place, rows in found.items()}


def _places(trace: Mapping[str, Any]) -> dict[tuple[str, int], Counter[tuple[str, str]]]:
    found: dict[tuple[str, int], Counter[tuple[str, str]]] = defaultdict(Counter)
    for rank in trace["ranks"]:
        for event in rank["events"]:
            call = (event["api"], trace["groups"][event["group"]]["name"])
            for path, line in places(event):
                found[path, line][call] += 1
    return found
