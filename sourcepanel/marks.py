"""What stands beside the lines of a file: sentences of notes, and events of traces."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sourcepanel.events import LineEvents
from sourcepanel.mentions import Mention

_KEY = re.compile(r"(?P<file>.*?)(?:#L(?P<start>[0-9]+)(?:-L(?P<end>[0-9]+))?)?", re.DOTALL)


class Marks:
    """All of them, by file."""

    def __init__(self, mentions: Iterable[Mention], events: Mapping[tuple[str, str], Sequence[LineEvents]]) -> None:
        self._events = events
        self._mentions: dict[str, list[list[object]]] = defaultdict(list)
        for mention in mentions:
            # The lines stand at the end: a file's own name may hold `#L` too.
            hit = _KEY.fullmatch(mention.key)
            assert hit is not None
            start = int(hit["start"] or 0)
            self._mentions[hit["file"]].append([start, int(hit["end"] or start), *mention.row])

    def of(self, repository: str, path: str) -> dict[str, object]:
        """Those of one file, in order of lines; a kind of which there is none is left out."""
        mentions = self._mentions.get(f"{repository}/{path}", ())
        found = {
            "mentions": sorted(mentions, key=lambda row: (row[0], row[1])),
            "events": [event.row for event in self._events.get((repository, path), ())],
        }
        return {name: rows for name, rows in found.items() if rows}
