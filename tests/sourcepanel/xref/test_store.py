"""The index kept between builds: the same as one made now, and never a reason to fail."""

from __future__ import annotations

import pytest

from sourcepanel.errors import PinMismatch
from sourcepanel.project import Project
from sourcepanel.xref import store
from sourcepanel.xref.index import build_index, python_files
from sourcepanel.xref.store import Index, cached_index, dump
from tests.sourcepanel.xref.cases import CASES
from tests.sourcepanel.xref.says import source_files


@pytest.fixture
def source(tiny_config):
    return Project.open(tiny_config.root, notify=print).sources["tiny"]


def entries(cache):
    return sorted((cache / "xref").glob("*"))


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost_on_the_way(name):
    built = list(build_index(source_files(CASES[name])))
    index = Index(dump(built))
    assert list(index) == [file.path for file in built]
    assert [index[path] for path in index] == built


def test_an_empty_snapshot_has_an_empty_index():
    assert dict(Index(dump([]))) == {}


def test_the_second_build_makes_nothing(source, tmp_path, monkeypatch):
    told = []
    first = cached_index(source, cache=tmp_path, notify=told.append)
    assert len(told) == 1
    assert f"{len(first)} Python files" in told[0]
    monkeypatch.setattr(store, "build_index", None)
    assert dict(cached_index(source, cache=tmp_path, notify=told.append)) == dict(first)
    assert len(told) == 1
    assert first.counts["certain"] > 5


def test_all_python_files_are_in_it_and_nothing_else(source, tmp_path):
    index = cached_index(source, cache=tmp_path, notify=print)
    assert set(index) == {path for path in source.seen if path.endswith(".py")}
    assert not index["tiny/broken.py"].parsed
    [run] = [o for o in index["examples/run_loop.py"].occurrences if o.line == 4]
    assert (run.targets[0].path, run.targets[0].name) == ("tiny/training.py", "pretrain")
    assert run.targets[0].doc == "Run the whole training."


@pytest.mark.parametrize(
    "damage",
    [lambda t: "", lambda t: t[:-1], lambda t: t.replace("pretrain", "pretrbin", 1), lambda t: t.partition("\n")[2]],
    ids=["empty", "cut", "changed", "headless"],
)
def test_a_damaged_entry_is_made_anew(source, tmp_path, damage):
    cached_index(source, cache=tmp_path, notify=print)
    [entry] = entries(tmp_path)
    whole = entry.read_text(encoding="utf-8")
    entry.write_text(damage(whole), encoding="utf-8")
    told = []
    cached_index(source, cache=tmp_path, notify=told.append)
    assert told
    assert entry.read_text(encoding="utf-8") == whole


def test_other_code_another_python_and_other_files_have_their_own_entries(source, tmp_path, tiny_repo, monkeypatch):
    cached_index(source, cache=tmp_path, notify=print)
    with monkeypatch.context() as patch:
        patch.setattr(store, "_code", lambda: "changed")
        cached_index(source, cache=tmp_path, notify=print)
    with monkeypatch.context() as patch:
        patch.setattr(store.sys, "version_info", (3, 99, 0))
        cached_index(source, cache=tmp_path, notify=print)
    with monkeypatch.context() as patch:
        patch.setattr(type(source.snapshot), "blob_id", lambda self, path: "0" * 40)
        cached_index(source, cache=tmp_path, notify=print)
    assert len(entries(tmp_path)) == 4


def test_a_cache_that_cannot_be_written_costs_only_the_time(source, tmp_path):
    (tmp_path / "xref").write_text("a file where a folder should be")
    assert len(cached_index(source, cache=tmp_path, notify=print)) > 5
    assert len(cached_index(source, cache=None, notify=print)) > 5


def test_a_file_that_is_not_the_pins_is_refused(tiny_config, tmp_path, monkeypatch):
    source = Project.open(tiny_config.root, notify=print).sources["tiny"]
    object.__setattr__(source.snapshot, "blobs", {"tiny/training.py": "0" * 40})
    with pytest.raises(PinMismatch, match=r"tiny/training\.py"):
        cached_index(source, cache=tmp_path, notify=print)
    assert not (tmp_path / "xref").exists()


def test_text_that_is_no_utf8_is_bearable():
    [file] = build_index(source_files({"a.py": b"# caf\xe9\nX = 1\nX\n"}))
    assert len(file.occurrences) == 1


def test_python_files_leaves_out_what_has_no_text(source):
    files = python_files(source)
    assert "tiny/data/latin1.py" in files
    assert all(file.has_text for file in files.values())
