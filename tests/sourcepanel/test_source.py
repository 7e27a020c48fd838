"""Facts about files at the pin, from the snapshot and from the lock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourcepanel.lock import FileFacts, LinkFacts, RepositoryLock
from sourcepanel.snapshot.base import git_blob_id
from sourcepanel.source import SourceFile, decode, split_lines
from tests.support import tree
from tests.support.memory import COMMIT, MemorySnapshot, wheel, whole

LOCKED = RepositoryLock(
    url="https://github.com/example/tiny",
    ref="v2.0",
    commit=COMMIT,
    files={"pretrain.py": FileFacts(blob="1" * 40, lines=7)},
    links={"examples/": LinkFacts(kind="folder")},
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ()),
        ("\n", ("",)),
        ("a", ("a",)),
        ("a\n", ("a",)),
        ("a\n\n", ("a", "")),
        ("a\r\nb\r\n", ("a", "b")),
        ("a\x0cb\x0b\u2028\u0085c\nd", ("a\x0cb\x0b\u2028\u0085c", "d")),
        ("a\rb\n", ("a\rb",)),
    ],
)
def test_lines_are_counted_as_editors_do(text: str, lines: tuple[str, ...]):
    assert split_lines(text) == lines


@given(st.text(st.characters(exclude_characters="\r\n")), st.integers(1, 100))
def test_a_final_newline_adds_no_line(line: str, times: int):
    assert len(split_lines(f"{line}\n" * times)) == times
    assert len(split_lines("\n".join(["x"] * times))) == times


def test_decode_says_when_it_guesses():
    assert decode("héllo".encode()) == ("héllo", "utf-8")
    assert decode("héllo".encode("latin-1")) == ("héllo", "latin-1")
    assert decode(b"GIF\0") == ("", "binary")


@given(st.binary())
def test_no_bytes_crash_it(data: bytes):
    text, encoding = decode(data)
    assert (encoding == "binary") == (b"\0" in data)
    split_lines(text)


@pytest.mark.parametrize(
    ("path", "count", "encoding", "symbols"),
    [
        ("tiny/training.py", 76, "utf-8", 16),
        ("tiny/data/bom.py", 2, "utf-8", 1),
        ("tiny/data/crlf.py", 5, "utf-8", 1),
        ("tiny/data/form_feed.py", 4, "utf-8", 2),
        ("tiny/data/latin1.py", 2, "latin-1", 1),
        ("tiny/data/no_newline.py", 2, "utf-8", 1),
        ("tiny/core/__init__.py", 0, "utf-8", 0),
        ("tiny/data/weights.bin", 0, "binary", 0),
        ("tiny/broken.py", 2, "utf-8", 0),
        ("README.md", 3, "utf-8", 0),
    ],
)
def test_files(path: str, count: int, encoding: str, symbols: int):
    file = whole().file(path)
    assert file is not None
    assert (file.count, file.encoding, len(file.symbols.symbols)) == (count, encoding, symbols)
    assert file.blob == git_blob_id(tree.V2[path])
    assert file.has_text == (encoding != "binary")


def test_symbols_stand_on_the_lines_that_editors_show():
    """Python ends lines at a lone carriage return, GitHub does not; a form feed ends none for either."""
    file = SourceFile("a.py", "", 3, "utf-8", split_lines("x = 1  # a\rb\n\x0c\ndef f(): ...\n"))
    assert [(s.name, s.line) for s in file.symbols.symbols] == [("x", 1), ("f", 3)]


def test_each_file_is_read_once():
    source = whole()
    assert source.file("tiny/training.py") is source.file("tiny/training.py")
    assert isinstance(source.snapshot, MemorySnapshot)
    assert source.snapshot.reads == ["tiny/training.py"]


def test_the_lock_fills_what_the_wheel_lacks():
    source = wheel(locked=LOCKED)
    file = source.file("pretrain.py")
    assert file == SourceFile("pretrain.py", "1" * 40, 7, "absent")
    assert not file.has_text
    assert source.file("README.md") is None
    assert "pretrain.py" in source.paths
    assert "pretrain.py" not in source.seen
    assert {"examples", "tiny/core", ""} <= source.folders
    assert [source.has(path) for path in ("examples", "pretrain.py", "tiny/training.py", "README.md")] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("tiny/parallel.py", "tiny/core/parallel.py"),
        ("tiny/trainin.py", "tiny/training.py"),
        ("tiny/cores/parallel.py", "tiny/core/parallel.py"),
        ("tiny/cora/", "tiny/core/"),
        ("core", "tiny/core/"),
    ],
)
def test_nearest_looks_for_the_same_name_elsewhere_first(wrong: str, right: str):
    assert whole().nearest(wrong)[0] == right


def test_nearest_does_not_guess_wildly():
    assert whole().nearest("zzz/qqq_www_eee.py") == ()
