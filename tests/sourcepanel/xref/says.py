"""Small sources that say themselves what their identifiers mean.

A comment `#> f=b.py:f g=~c.py:A.g h=local` at the end of a line says: `f` on this line is certainly the definition
`f` of `b.py`, `g` is likely `A.g` of `c.py`, and `h` is no link. Several likely targets are joined by `|`, a line
is added where a name is defined twice (`b.py:f@7`), `b.py` alone is the file itself, and `*` says the same of every
identifier of the line that is not named.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

from sourcepanel.snapshot.base import git_blob_id
from sourcepanel.source import SourceFile, decode, split_lines
from sourcepanel.xref.index import open_linker
from sourcepanel.xref.links import Linked

FATES = {"local", "outside", "unknown"}


def source_file(path: str, text: str | bytes) -> SourceFile:
    data = text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode()
    decoded, encoding = decode(data)
    lines = split_lines(decoded)
    return SourceFile(path, git_blob_id(data), len(lines), encoding, lines)


def source_files(sources: Mapping[str, str | bytes]) -> dict[str, SourceFile]:
    return {path: source_file(path, text) for path, text in sources.items()}


def wrong(sources: Mapping[str, str | bytes]) -> list[str]:
    """Every identifier that is not what its line says; an empty case is wrong, too."""
    files = source_files(sources)
    linker = open_linker(files)
    found: list[str] = []
    said = 0
    for path, file in files.items():
        linked: dict[int, list[Linked]] = {}
        for entry in linker.link(path) if path.endswith(".py") else ():
            linked.setdefault(entry.line, []).append(entry)
        for number, line in enumerate(file.lines, 1):
            for name, expected in _expected(line):
                here = [e for e in linked.get(number, []) if line[e.start : e.end] == name]
                got = {spell(e, with_line="@" in expected) for e in here} or {"nothing"}
                said += 1
                if got != {expected}:
                    found.append(f"{path}:{number}: {name} is {' and '.join(sorted(got))}, not {expected}")
    return found if said else ["the case says nothing"]


def spell(linked: Linked, *, with_line: bool = False) -> str:
    if linked.status in FATES:
        return linked.status
    names = [f"{d.path}:{d.name}".rstrip(":") + (f"@{d.line}" if with_line else "") for d in linked.targets]
    return ("~" if linked.status == "likely" else "") + "|".join(names)


def _expected(line: str) -> Iterator[tuple[str, str]]:
    if "#>" in line:
        for word in line.partition("#>")[2].split():
            name, _, expected = word.partition("=")
            assert re.fullmatch(r"\w+", name), line
            assert expected, line
            yield name, expected
