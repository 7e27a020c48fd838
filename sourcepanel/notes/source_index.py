"""An index of the pinned source by line, to tell quickly whether a text repeats it.

Lines are compared with their white space collapsed; lines too plain to prove anything (`else:`, `return x`, a lone
bracket) are passed over. Two tables: runs of three lines that follow each other, and single lines. Both hold
64-bit hashes sorted for bisection, so that a repository of a thousand files takes a few megabytes on disk and
milliseconds to load.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sourcepanel.errors import PathNotFound
from sourcepanel.snapshot.base import Snapshot

RUN = 3
_VERSION = 1
_SUFFIXES = (".py", ".cpp", ".cc", ".cu", ".cuh", ".h", ".sh")
_SPACE = re.compile(r"\s+")
_COMMENT = re.compile(r"^(#|//|\*|/\*)")
_WORDS = re.compile(r"[A-Za-z_]{2,}")


def significant(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines that say something, as (index, collapsed text): at least two words of two letters, no comment."""
    for index, line in enumerate(lines):
        text = _SPACE.sub(" ", line).strip()
        if len(_WORDS.findall(text)) >= 2 and len(text) >= 10 and not _COMMENT.match(text):
            yield index, text


def _hash(*parts: str) -> int:
    digest = hashlib.blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


@dataclass(frozen=True, kw_only=True)
class SourceIndex:
    """Hashes of runs and lines, each with the number of the file that holds it."""

    paths: tuple[str, ...]
    runs: array[int]
    run_files: array[int]
    lines: array[int]
    line_files: array[int]

    def run(self, texts: Sequence[str]) -> str | None:
        """A file in which these `RUN` lines follow each other."""
        return next(_lookup(self.paths, self.runs, self.run_files, _hash(*texts)), None)

    def files(self, text: str) -> Iterator[str]:
        """The files that hold this line."""
        return _lookup(self.paths, self.lines, self.line_files, _hash(text))


def _lookup(paths: Sequence[str], hashes: array[int], files: array[int], value: int) -> Iterator[str]:
    at = bisect_left(hashes, value)
    while at < len(hashes) and hashes[at] == value:
        yield paths[files[at]]
        at += 1


def build_index(files: Iterable[tuple[str, bytes]]) -> SourceIndex:
    """Index these files; bytes that are not UTF-8 are read with replacement characters."""
    paths: list[str] = []
    runs: set[tuple[int, int]] = set()
    lines: set[tuple[int, int]] = set()
    for path, data in files:
        number = len(paths)
        paths.append(path)
        texts = [text for _, text in significant(data.decode("utf-8", "replace").split("\n"))]
        lines.update((_hash(text), number) for text in texts)
        runs.update((_hash(*texts[i : i + RUN]), number) for i in range(len(texts) - RUN + 1))
    return SourceIndex(
        paths=tuple(paths),
        **_columns("runs", "run_files", runs),
        **_columns("lines", "line_files", lines),
    )


def _columns(hashes: str, files: str, pairs: set[tuple[int, int]]) -> dict[str, array[int]]:
    ordered = sorted(pairs)
    return {hashes: array("Q", (h for h, _ in ordered)), files: array("I", (f for _, f in ordered))}


def open_index(snapshot: Snapshot, *, cache: Path, notify: Callable[[str], None]) -> SourceIndex:
    """The index of a snapshot, from the cache where it has been built before.

    A cache that cannot be read is built anew; one that cannot be written is done without.
    """
    paths = [p for p in snapshot.list() if p.endswith(_SUFFIXES)]
    name = hashlib.blake2b("\n".join([snapshot.commit, *paths]).encode("utf-8"), digest_size=12).hexdigest()
    file = cache / "lines" / f"{name}.v{_VERSION}.{sys.byteorder}"
    index = _load(file)
    if index is None:
        notify(f"indexing {len(paths)} source files for the code-block check")
        index = build_index(_read_all(snapshot, paths))
        _save(file, index)
    return index


def _read_all(snapshot: Snapshot, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        try:
            yield path, snapshot.read(path)
        except PathNotFound:
            continue


def _tables(index: SourceIndex) -> tuple[array[int], ...]:
    return index.runs, index.run_files, index.lines, index.line_files


def _save(file: Path, index: SourceIndex) -> None:
    head = {"paths": index.paths, "sizes": [[t.typecode, len(t)] for t in _tables(index)]}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(json.dumps(head).encode() + b"\n")
            for table in _tables(index):
                out.write(table.tobytes())
        Path(temporary).replace(file)
    except OSError:
        return


def _load(file: Path) -> SourceIndex | None:
    try:
        head_line, _, data = file.read_bytes().partition(b"\n")
        head = json.loads(head_line)
        tables: list[array[int]] = []
        for code, size in head["sizes"]:
            table: array[int] = array(code)
            step = table.itemsize * size
            table.frombytes(data[:step])
            data = data[step:]
            tables.append(table)
            if len(table) != size:
                return None
        runs, run_files, lines, line_files = tables
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return SourceIndex(paths=tuple(head["paths"]), runs=runs, run_files=run_files, lines=lines, line_files=line_files)
