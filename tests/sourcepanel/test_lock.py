"""The lock as a file: canonical, readable in a diff, and clear about what is wrong with it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourcepanel.errors import LockError
from sourcepanel.lock import (
    FileFacts,
    LinkFacts,
    Lock,
    RepositoryLock,
    format_lock,
    page_entry,
    parse_lock,
    read_lock,
    text_hash,
    write_lock,
)
from sourcepanel.reference import Reference, SourceRef
from tests.support.golden import Golden

HERE = Path("sourcepanel.lock")
LOCK = Lock(
    repositories={
        "tiny": RepositoryLock(
            url="https://github.com/example/tiny",
            ref="v2.0",
            commit="af5c6bfebf420b0c3282d43b2b65836555ea2e64",
            files={
                "tiny/training.py": FileFacts(blob="1" * 40, lines=74),
                "docs/说明.md": FileFacts(blob="2" * 40, lines=1),
            },
            links={
                "tiny/training.py::train_step": LinkFacts(
                    kind="definition", start=30, end=42, symbol="train_step", hash="0123456789abcdef"
                ),
                "tiny/core/": LinkFacts(kind="folder"),
                "docs/说明.md": LinkFacts(kind="file"),
            },
        )
    },
    pages={"notes/02.md": {"tiny:tiny/core/": 1}, "notes/01.md": {"tiny:tiny/training.py::train_step": 3}},
)


def test_format(golden: Golden):
    golden("tiny.lock", format_lock(LOCK))


def test_empty_lock_is_valid():
    assert parse_lock(format_lock(Lock()), path=HERE) == Lock()


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
hexes = st.text("0123456789abcdef", min_size=40, max_size=40)
links = st.builds(
    LinkFacts,
    kind=st.sampled_from(["definition", "interior", "file", "folder"]),
    start=st.none() | st.integers(1),
    end=st.none() | st.integers(1),
    symbol=st.none() | names,
    hash=names,
)
repositories = st.builds(
    RepositoryLock,
    url=names,
    ref=names,
    commit=hexes,
    files=st.dictionaries(names, st.builds(FileFacts, blob=hexes, lines=st.integers(0)), max_size=3),
    links=st.dictionaries(names, links, max_size=3),
)
locks = st.builds(
    Lock,
    version=st.just(1),
    repositories=st.dictionaries(names, repositories, max_size=2),
    pages=st.dictionaries(names, st.dictionaries(names, st.integers(1), max_size=3), max_size=3),
)


@given(locks, st.randoms())
def test_parse_inverts_format_and_order_does_not_matter(lock: Lock, rng: random.Random):
    text = format_lock(lock)
    assert parse_lock(text, path=HERE) == lock
    assert json.loads(text)["version"] == 1
    pages = list(lock.pages.items())
    rng.shuffle(pages)
    assert format_lock(lock.model_copy(update={"pages": dict(pages)})) == text
    assert text.endswith("}\n")


def test_one_line_per_fact():
    """A new link is one new line of diff, so two notes written side by side merge."""
    links = {**LOCK.repositories["tiny"].links, "tiny/core/parallel.py": LinkFacts(kind="file")}
    repository = LOCK.repositories["tiny"].model_copy(update={"links": links})
    before, after = (
        format_lock(x).splitlines() for x in (LOCK, LOCK.model_copy(update={"repositories": {"tiny": repository}}))
    )
    assert len(after) == len(before) + 1
    assert set(after) - set(before) == {'        "tiny/core/parallel.py": {"kind": "file"},'}


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (("{\n", "<<<<<<< HEAD\n{\n"), 1, "merge conflict; keep either side"),
        (('  "pages"', '=======\n  "pages"'), 19, "merge conflict"),
        (('"lines": 1},', '"lines": 1}'), 10, "not valid JSON"),
        (('"version": 1', '"version": 2'), 1, "newer sourcepanel (version 2, this sourcepanel reads up to 1); upgrade"),
        (('"version": 1', '"version": 0'), 2, "version"),
        (('"version": 1,', '"version": 1, "extra": 1,'), 2, "extra"),
        (("1" * 40, "x" * 40), 10, "blob"),
        (('"lines": 74', '"lines": -1'), 10, "lines"),
        (('"lines": 74', f'"lines": {"9" * 5000}'), 1, "not valid JSON"),
        (('"kind": "file"', '"kind": "flie"'), 13, "kind"),
        (('train_step": 3', 'train_step": 0'), 21, "greater than or equal to 1"),
        (('"tiny/core/": {"kind"', '"docs/说明.md": {"kind"'), 13, "twice"),
    ],
)
def test_bad_lock_names_line_and_cure(tmp_path: Path, change: tuple[str, str], line: int, message: str):
    text = format_lock(LOCK)
    assert change[0] in text
    path = tmp_path / "sourcepanel.lock"
    path.write_text(text.replace(*change, 1), encoding="utf-8")
    with pytest.raises(LockError) as caught:
        read_lock(path)
    said = str(caught.value)
    assert said.startswith(f"{path}:{line}: "), said
    assert message in said
    assert "sourcepanel" in said.rpartition(";")[2] or "upgrade" in said


def test_not_json_and_not_text(tmp_path: Path):
    path = tmp_path / "sourcepanel.lock"
    for data, message in ((b"[]", "the file"), (b"", "not valid JSON"), (b"\xff\xfe", "cannot be read")):
        path.write_bytes(data)
        with pytest.raises(LockError, match=message):
            read_lock(path)
    path.write_text("[" * 100_000)
    with pytest.raises(LockError, match="not valid JSON"):
        read_lock(path)


def test_missing_file_is_an_empty_lock(tmp_path: Path):
    assert read_lock(tmp_path / "sourcepanel.lock") == Lock()


def test_write_is_whole_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "sourcepanel.lock"
    assert write_lock(LOCK, path)
    assert not write_lock(LOCK, path), "nothing to write the second time"
    before = path.read_bytes()

    def full(self: Path, target: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(LockError, match="No space left on device; the old lock is untouched"):
        write_lock(Lock(), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["sourcepanel.lock"]


def test_a_repository_is_found_by_its_commit():
    commit = LOCK.repositories["tiny"].commit
    assert LOCK.repository("tiny", commit=commit) is LOCK.repositories["tiny"]
    assert LOCK.repository("tiny", commit="0" * 40) is None
    assert LOCK.repository("other", commit=commit) is None


def test_page_entry_holds_what_the_text_says():
    lines = SourceRef(repository="tiny", path="a.py", start=1, end=2)
    symbol = SourceRef(repository="tiny", path="a.py", symbol="f")

    def entry(source: SourceRef, *names: str) -> str:
        return page_entry(Reference(page="p.md", line=1, raw="", text="", names=names, source=source))

    assert entry(lines) == "tiny:a.py#L1-L2"
    assert entry(lines, "f", "g") == "tiny:a.py#L1-L2 (f, g)"
    assert entry(symbol, "f") == "tiny:a.py::f"


def test_text_hash_is_of_the_joined_lines():
    assert text_hash(["a", "b"]) == text_hash(["a\nb"]) != text_hash(["ab"])
    assert text_hash(["a", "b"]) == "7e18f737311b2dc3"
