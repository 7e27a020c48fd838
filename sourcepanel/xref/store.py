"""The index of a snapshot, kept between builds: made once for the same files and the same code."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

from sourcepanel.files import write_atomically
from sourcepanel.source import Source
from sourcepanel.xref.index import build_index, python_files
from sourcepanel.xref.model import USE_KINDS, Definition, FileIndex, Id, Occurrence, Status, Use


class Index(Mapping[str, FileIndex]):
    """All files of a snapshot by path; each is decoded when first asked for."""

    def __init__(self, text: str) -> None:
        """`text` as `dump` makes it; raises `ValueError` for anything else."""
        head, _, body = text.partition("\n")
        if head != _checksum(body):
            raise ValueError("the index is damaged")
        lines = body.split("\n")
        self._raw: list[list[Any]] = json.loads(lines[0])
        self._paths: list[str] = json.loads(lines[1])
        self._lines = dict(zip(self._paths, lines[2:], strict=True))
        self._made: dict[int, Definition] = {}
        self._files: dict[str, FileIndex] = {}

    def __getitem__(self, path: str) -> FileIndex:
        if path not in self._files:
            self._files[path] = self._decode(path, json.loads(self._lines[path]))
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def counts(self) -> Counter[Status]:
        """What became of the identifiers of all files."""
        return sum((Counter(index.counts) for index in self.values()), Counter())

    @property
    def definitions(self) -> Iterator[Definition]:
        """Everything that any file defines, the files themselves too."""
        return (self._definition(number) for number in range(len(self._raw)))

    def _definition(self, number: int) -> Definition:
        if number not in self._made:
            self._made[number] = Definition(*self._raw[number])
        return self._made[number]

    def _decode(self, path: str, data: dict[str, Any]) -> FileIndex:
        one = self._definition
        occurrences = tuple(
            Occurrence(line, start, end, tuple(map(one, targets)), "certain" if certain else "likely", USE_KINDS[kind])
            for line, start, end, kind, certain, targets in data["occurrences"]
        )
        uses = {
            one(number).id: tuple(
                Use(self._paths[file], line, USE_KINDS[kind], "certain" if certain else "likely")
                for file, line, kind, certain in used
            )
            for number, used in data["uses"]
        }
        overrides = {one(number).id: tuple(map(one, by)) for number, by in data["overrides"]}
        definitions = tuple(map(one, data["definitions"]))
        return FileIndex(path, definitions, occurrences, uses, overrides, data["counts"], data["parsed"])


def dump(files: list[FileIndex]) -> str:
    """The text of an index: a checksum, all definitions, all paths, and a line for each file."""
    numbers: dict[Id, int] = {}
    raw: list[list[Any]] = []
    paths = [file.path for file in files]
    places = {path: i for i, path in enumerate(paths)}

    def number(definition: Definition) -> int:
        if definition.id not in numbers:
            numbers[definition.id] = len(raw)
            raw.append(list(astuple(definition)))
        return numbers[definition.id]

    for file in files:
        number(Definition(file.path, "", "module"))
        for definition in file.definitions:
            number(definition)
    lines = [_json(_encode(file, number, places)) for file in files]
    body = "\n".join([_json(raw), _json(paths), *lines])
    return f"{_checksum(body)}\n{body}"


def _encode(file: FileIndex, number: Callable[[Definition], int], places: Mapping[str, int]) -> dict[str, object]:
    ids = {d.id: number(d) for d in (Definition(file.path, "", "module"), *file.definitions)}

    def mark(one: Occurrence | Use) -> tuple[int, int]:
        return USE_KINDS.index(one.kind), int(one.certainty == "certain")

    return {
        "definitions": [ids[d.id] for d in file.definitions],
        "occurrences": [[o.line, o.start, o.end, *mark(o), [*map(number, o.targets)]] for o in file.occurrences],
        "uses": [[ids[id_], [[places[u.path], u.line, *mark(u)] for u in used]] for id_, used in file.uses.items()],
        "overrides": [[ids[id_], [*map(number, by)]] for id_, by in file.overrides.items()],
        "counts": file.counts,
        "parsed": file.parsed,
    }


def cached_index(source: Source, *, cache: Path | None, notify: Callable[[str], None]) -> Index:
    """The index of a source, from `cache/xref` where the same code has made it of the same files.

    Raises `PinMismatch` for a file that is not the pin's. An entry that cannot be read or written only costs the
    time to make it, which `notify` is told of.
    """
    snapshot = source.snapshot
    blobs = [(path, snapshot.blob_id(path)) for path in sorted(source.seen) if path.endswith(".py")]
    key = hashlib.sha256(repr((_code(), sys.version_info[:2], blobs)).encode()).hexdigest()[:32]
    entry = cache / "xref" / f"{key}.jsonl" if cache else None
    with suppress(OSError, ValueError, TypeError, KeyError):
        return Index(entry.read_text(encoding="utf-8") if entry else "")
    notify(f"indexing {len(blobs)} Python files of {source.repository.name}")
    text = dump(list(build_index(python_files(source))))
    with suppress(OSError):
        if entry:
            write_atomically(entry, text)
    return Index(text)


@cache
def _code() -> str:
    """Names the code that makes an index: other code, another index."""
    folder = Path(__file__).parent
    files = [*sorted(folder.glob("*.py")), folder.parent / "symbols.py"]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
