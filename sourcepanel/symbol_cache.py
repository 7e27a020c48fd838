"""Symbol tables kept between builds: parsing the linked files is most of what a build with a warm cache would do."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from sourcepanel.files import write_atomically
from sourcepanel.symbols import Symbol, SymbolTable

_VERSION = 1
"""Raise it whenever the same text would give another table."""


def cached_symbols(text: str, *, blob: str, cache: Path | None) -> SymbolTable:
    """`SymbolTable.parse(text)`, kept under `cache/symbols` by blob, Python's version (it is the parser) and ours.

    An entry that cannot be read or written only costs the time.
    """
    if cache is None:
        return SymbolTable.parse(text)
    python = "{}.{}".format(*sys.version_info)
    entry = cache / "symbols" / blob[:2] / f"{blob}.v{_VERSION}-py{python}.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        return _load(entry.read_text(encoding="utf-8"))
    table = SymbolTable.parse(text)
    with suppress(OSError):
        write_atomically(entry, _dump(table))
    return table


def _dump(table: SymbolTable) -> str:
    return json.dumps({"parsed": table.parsed, "symbols": [astuple(symbol) for symbol in table.symbols]})


def _load(text: str) -> SymbolTable:
    data = json.loads(text)
    return SymbolTable(tuple(Symbol(*symbol) for symbol in data["symbols"]), parsed=bool(data["parsed"]))
