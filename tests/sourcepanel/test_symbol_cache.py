"""The cache of symbol tables: the same answer as parsing, and never a reason to fail."""

from __future__ import annotations

import pytest

from sourcepanel import symbol_cache
from sourcepanel.symbol_cache import cached_symbols
from sourcepanel.symbols import SymbolTable

TEXT = 'class A(B):\n    """Says it."""\n\n    x: int = 1\n\n    def f(self, *, n=1) -> int:\n        def g(): ...\n'
BLOB = "ab" * 20


def entries(cache):
    return [path for path in (cache / "symbols").rglob("*") if path.is_file()]


@pytest.mark.parametrize("text", [TEXT, "", "def broken(:\n"], ids=["code", "empty", "broken"])
def test_the_cached_table_is_the_parsed_one(tmp_path, monkeypatch, text):
    parsed = SymbolTable.parse(text)
    first = cached_symbols(text, blob=BLOB, cache=tmp_path)
    monkeypatch.setattr(symbol_cache.SymbolTable, "parse", None)
    second = cached_symbols(text, blob=BLOB, cache=tmp_path)
    assert first.symbols == second.symbols == parsed.symbols
    assert first.parsed == second.parsed == parsed.parsed
    assert second.get("A.f") == parsed.get("A.f")


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"parsed": true, "symbols": [[1]]}', '{"parsed": true}'])
def test_a_damaged_entry_is_made_anew(tmp_path, damage):
    cached_symbols(TEXT, blob=BLOB, cache=tmp_path)
    [entry] = entries(tmp_path)
    whole = entry.read_text()
    entry.write_text(damage)
    assert cached_symbols(TEXT, blob=BLOB, cache=tmp_path).symbols == SymbolTable.parse(TEXT).symbols
    assert entry.read_text() == whole


def test_another_python_has_its_own_entry(tmp_path, monkeypatch):
    cached_symbols(TEXT, blob=BLOB, cache=tmp_path)
    monkeypatch.setattr(symbol_cache.sys, "version_info", (3, 99, 0))
    cached_symbols(TEXT, blob=BLOB, cache=tmp_path)
    assert len(entries(tmp_path)) == 2


def test_a_cache_that_cannot_be_written_costs_only_the_time(tmp_path):
    (tmp_path / "symbols").write_text("a file where a folder should be")
    assert cached_symbols(TEXT, blob=BLOB, cache=tmp_path).get("A.f")


def test_without_a_cache_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cached_symbols(TEXT, blob=BLOB, cache=None).get("A.f.g")
    assert list(tmp_path.iterdir()) == []
