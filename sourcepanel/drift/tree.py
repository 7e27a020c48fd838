"""One side of a move: the files of a snapshot, split and parsed once."""

from __future__ import annotations

import io
import re
import tokenize
from collections import defaultdict
from functools import cached_property

from sourcepanel.cpp_symbols import SUFFIXES as CPP
from sourcepanel.cpp_symbols import parse_cpp
from sourcepanel.errors import PathNotFound
from sourcepanel.snapshot.base import Snapshot
from sourcepanel.source import decode, split_lines
from sourcepanel.symbols import Symbol, SymbolTable

SOURCE_SUFFIXES = (".py", *CPP, ".sh", ".yaml", ".yml", ".toml", ".md", ".txt", ".json")
_QUOTES = re.compile(r"^([A-Za-z]*)('''|\"\"\"|'|\")(.*)\2$", re.DOTALL)
_DEFINES = re.compile(r"(?m)^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_DEFINES_CPP = re.compile(r"\b(\w+)[ \t\n]*(?:\(|\{|:[^:])")
_TRIVIAL = re.compile(r"[\s()\[\]{},:;\"'`#*/-]*|else:|try:|pass|return|finally:|\"\"\".*")


def squeeze(line: str) -> str:
    """The line without white space: how lines are compared, as `git diff -w` does."""
    return "".join(line.split())


def is_trivial(line: str) -> bool:
    """Blank, brackets or a bare keyword: such a line says nothing about where code went."""
    return _TRIVIAL.fullmatch(line.strip()) is not None


class Tree:
    """Lines, symbols and tokens of the files of one snapshot; everything lazy and kept."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._files: dict[str, SourceFile | None] = {}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Paths that can hold code or prose."""
        return tuple(p for p in self.snapshot.list() if p.endswith(SOURCE_SUFFIXES))

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset(self.snapshot.list())

    def has(self, path: str) -> bool:
        """Whether the tree holds this file; reads nothing."""
        return path in self._all

    def file(self, path: str | None) -> SourceFile | None:
        """The file, or None where the tree has none."""
        if path is None:
            return None
        if path not in self._files:
            try:
                data = self.snapshot.read(path)
            except PathNotFound:
                self._files[path] = None
            else:
                self._files[path] = SourceFile(path, decode(data)[0])
        return self._files[path]

    def at(self, path: str) -> SourceFile:
        """A file that is known to be there; raises `PathNotFound`."""
        file = self.file(path)
        if file is None:
            raise PathNotFound(path)
        return file

    @cached_property
    def code(self) -> tuple[SourceFile, ...]:
        """The files with code, tests left out: a test that calls a function is not where it went."""
        return tuple(self.at(p) for p in self.paths if p.endswith((".py", *CPP)) and not p.startswith("tests/"))

    @cached_property
    def places(self) -> dict[str, list[tuple[str, int]]]:
        """Squeezed line → where it stands in the whole tree; trivial lines are not indexed."""
        index: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for file in self.code:
            for number, key in enumerate(file.keys, start=1):
                if key and not is_trivial(file.lines[number - 1]):
                    index[key].append((file.path, number))
        return index

    @cached_property
    def _naming(self) -> dict[str, list[SourceFile]]:
        """Name → the files that seem to define it: a glance that spares parsing the whole tree."""
        index: dict[str, list[SourceFile]] = defaultdict(list)
        for file in self.code:
            for name in dict.fromkeys(_glance(file).findall("\n".join(file.lines))):
                index[name].append(file)
        return index

    def definitions(self, name: str) -> list[tuple[str, Symbol]]:
        """The classes and functions of this unqualified name in the whole tree."""
        return [
            (file.path, symbol)
            for file in self._naming.get(name, [])
            for symbol in file.table.symbols
            if symbol.kind != "variable" and symbol.name.rpartition(".")[2] == name
        ]


def _glance(file: SourceFile) -> re.Pattern[str]:
    return _DEFINES_CPP if file.path.endswith(CPP) else _DEFINES


class SourceFile:
    """One file: `lines` as written, `keys` squeezed, symbols and code tokens on demand."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.lines = split_lines(text)
        self.keys = tuple(squeeze(line) for line in self.lines)

    @cached_property
    def table(self) -> SymbolTable:
        """Definitions; empty for other languages."""
        if self.path.endswith(CPP):
            return parse_cpp("\n".join(self.lines))
        if not self.path.endswith((".py", ".pyi")):
            return SymbolTable(parsed=False)
        # As the verifier reads it: the names must be the same ones.
        return SymbolTable.parse("\n".join(self.lines).replace("\r", " ").removeprefix("\ufeff") + "\n")

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        """Squeezed line → its line numbers, ascending."""
        index: dict[str, list[int]] = defaultdict(list)
        for number, key in enumerate(self.keys, start=1):
            index[key].append(number)
        return index

    def occurrences(self, block: tuple[str, ...]) -> list[int]:
        """First lines of every place where these squeezed lines stand one after the other."""
        if not block:
            return []
        return [n for n in self.positions.get(block[0], []) if self.keys[n - 1 : n - 1 + len(block)] == block]

    @cached_property
    def _tokens(self) -> list[tuple[int, str]] | None:
        """(line, text) of every token, comments and docstrings too: layout, quotes and trailing commas aside."""
        if not self.table.parsed or not self.path.endswith((".py", ".pyi")):
            return None
        found: list[tuple[int, str]] = []
        layout = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        try:
            for token in tokenize.generate_tokens(io.StringIO("\n".join(self.lines) + "\n").readline):
                if token.type in layout:
                    continue
                text = token.string
                if token.type == tokenize.STRING:
                    text = _QUOTES.sub(r"\1'\3'", text)
                if text in ")]}" and found and found[-1][1] == ",":
                    found.pop()
                # A docstring counts line by line: a range may begin inside it.
                found += [(token.start[0] + i, squeeze(part)) for i, part in enumerate(text.split("\n"))]
        except (tokenize.TokenError, IndentationError, SyntaxError):
            return None
        return found

    def tokens(self, start: int, end: int) -> tuple[str, ...] | None:
        """What formatting leaves alone: the tokens that begin in these lines; None where the file is not Python."""
        if self._tokens is None:
            return None
        return tuple(text for line, text in self._tokens if start <= line <= end)
