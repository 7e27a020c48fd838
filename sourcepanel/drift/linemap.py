"""Which old line is which new line, by git's own diff between two trees."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sourcepanel.cpp_symbols import SUFFIXES as CPP

Git = Callable[..., str]
"""Runs git in the repository that holds both trees: `git("diff", …)` gives what it prints."""

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Hunk:
    """`old_count` lines from `old_start` became `new_count` lines from `new_start` (1-based; a count may be 0)."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int


@dataclass
class FileMap:
    """The hunks of one file, in order; lines outside them are equal up to white space."""

    new_path: str | None
    hunks: list[Hunk] = field(default_factory=list)

    def follow(self, lines: Sequence[int | None]) -> list[int | None]:
        """Where each of these ascending lines stands now; None inside a hunk, and for a gap in the sequence."""
        found: list[int | None] = []
        ends = [(h.old_start + h.old_count if h.old_count else h.old_start + 1, h) for h in self.hunks]
        index, shift, lost_to = 0, 0, 0
        # git writes the line *before* an empty side, so an empty side starts one later.
        for line in lines:
            if line is None:
                found.append(None)
                continue
            while index < len(ends) and line >= (ends[index][0] - ends[index][1].old_count):
                lost_to, hunk = ends[index]
                shift = (hunk.new_start + hunk.new_count if hunk.new_count else hunk.new_start + 1) - lost_to
                index += 1
            found.append(None if line < lost_to else line + shift)
        return found

    def inverse(self, old_path: str) -> FileMap:
        """The map of the way back; `old_path` is the name before the change."""
        return FileMap(old_path, [Hunk(h.new_start, h.new_count, h.old_start, h.old_count) for h in self.hunks])


_DIFF = ["--no-ext-diff", "--no-textconv", "--no-color", "-U0", "-w", "--histogram", "-M", "-l0"]
_DIFF += ["--src-prefix=a/", "--dst-prefix=b/"]


def diff_trees(git: Git, old: str, new: str) -> dict[str, FileMap]:
    """Old path → map, for every file that changed, was renamed or is gone; other files are as they were.

    Histogram diff without white space: of the line diffs measured on Megatron's history it loses the fewest lines.
    """
    return _parse(git("diff", *_DIFF, old, new).split("\n"))


class History:
    """A file's way from one commit to another, commit by commit: back to their merge base, then forward.

    A change that was made and taken back, or code that passed through a third place, is lost to the diff of the two
    ends and kept here.
    """

    def __init__(self, git: Git, old: str, new: str) -> None:
        base = git("merge-base", old, new).strip()
        self._back = _log(git, f"{base}..{old}")
        self._forth = _log(git, f"{base}..{new}")[::-1]
        for maps in self._back:
            for path, file_map in list(maps.items()):
                del maps[path]
                if file_map.new_path:
                    maps[file_map.new_path] = file_map.inverse(path)

    def file_map(self, path: str) -> Journey:
        """The composed map of one file."""
        steps: list[FileMap] = []
        here: str | None = path
        for maps in [*self._back, *self._forth]:
            if here is not None and here in maps:
                steps.append(maps[here])
                here = maps[here].new_path
        return Journey(here, steps)


@dataclass(frozen=True)
class Journey:
    """Maps applied one after the other."""

    new_path: str | None
    steps: list[FileMap]

    def follow(self, lines: Sequence[int | None]) -> list[int | None]:
        """Where each of these ascending lines stands now; None once a commit rewrote it."""
        for step in self.steps:
            lines = step.follow(lines)
        return list(lines)


def _log(git: Git, commits: str) -> list[dict[str, FileMap]]:
    """The maps of each commit, newest first."""
    text = git(
        "log",
        "--first-parent",
        "-m",
        "-p",
        "--format=%x00",
        *_DIFF,
        commits,
        "--",
        *(f"*{suffix}" for suffix in (".py", *CPP)),
    )
    return [_parse(part.split("\n")) for part in text.split("\0")[1:]]


def _parse(lines: list[str]) -> dict[str, FileMap]:
    maps: dict[str, FileMap] = {}
    current: FileMap | None = None
    old_path = ""
    left = 0  # lines of the hunk still to skip: they may look like headers
    for line in lines:
        if left and line[:1] in "+-":
            left -= 1
            continue
        if line.startswith("diff --git "):
            current = None
            # Without a rename both names are equal: "a/<name> b/<name>".
            half = (len(line) - len("diff --git ") - 1) // 2
            old_path = line[len("diff --git ") :][2:half]
            current = maps[old_path] = FileMap(old_path)
        elif line.startswith("rename from ") and current:
            del maps[old_path]
            old_path = line[len("rename from ") :]
            maps[old_path] = current
        elif line.startswith("rename to ") and current:
            current.new_path = line[len("rename to ") :]
        elif line.startswith("deleted file") and current:
            current.new_path = None
        elif line.startswith("new file") and current:
            del maps[old_path]
            current = None
        elif current and (hunk := _HUNK.match(line)):
            a, b, c, d = (int(part) if part is not None else 1 for part in hunk.groups())
            current.hunks.append(Hunk(a, b, c, d))
            left = b + d
        elif hunk := _HUNK.match(line):
            left = sum(int(part) if part is not None else 1 for part in (hunk[2], hunk[4]))
    return maps
