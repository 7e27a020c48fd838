"""The cache folder: whole entries or none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sourcepanel.errors import SnapshotUnavailable
from sourcepanel.snapshot import cache as cache_module
from sourcepanel.snapshot.cache import Cache, blames_cache


@pytest.fixture
def store(cache: Path, told: list[str]) -> Cache:
    return Cache(cache, notify=told.append)


def fill(place: Path) -> None:
    (place / "file").write_text("whole")


def never(place: Path) -> None:
    pytest.fail("built a second time")


def test_an_entry_is_built_once(store: Cache):
    place = store.entry("thing", build=fill)
    assert (place / "file").read_text() == "whole"
    assert store.entry("thing", build=never) == place


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_build_that_fails_leaves_nothing(store: Cache, error: type[BaseException]):
    def half(place: Path) -> None:
        fill(place)
        (place / "file").chmod(0o444)
        raise error

    with pytest.raises(error):
        store.entry("thing", build=half)
    assert [path.name for path in store.folder.iterdir()] == ["thing.lock"]
    assert (store.entry("thing", build=fill) / "file").read_text() == "whole"


KILLED = """
import os, signal, sys
from pathlib import Path
from sourcepanel.snapshot.cache import Cache

def build(place):
    (place / "file").write_text("ha")
    if sys.argv[2] == "building":
        os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[2] == "moving":
    Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)
Cache(Path(sys.argv[1]), notify=print).entry("thing", build=build)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("when", ["building", "moving"])
def test_a_build_that_is_killed_leaves_nothing_that_the_next_trusts(store: Cache, told: list[str], when: str):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(store.folder), when])
    assert killed.returncode == -9
    assert [path.name[:7] for path in store.folder.glob(".*")] == [".thing~"], "half an entry is left"
    assert (store.entry("thing", build=fill) / "file").read_text() == "whole"
    assert not list(store.folder.glob(".*")), "and is swept"
    assert told == [], "the lock died with its process: no wait"


def test_an_interrupted_build_of_another_entry_is_left_alone(store: Cache):
    """It may be running: only the holder of its lock may sweep it."""
    for name in (".other~abc", ".thing-two~abc"):
        (store.folder / name).mkdir(parents=True)
    store.entry("thing", build=fill)
    assert sorted(path.name for path in store.folder.glob(".*")) == [".other~abc", ".thing-two~abc"]


HOLDER = textwrap.dedent("""
    import sys
    from pathlib import Path
    from sourcepanel.snapshot.cache import Cache

    def build(place):
        print("building", flush=True)
        sys.stdin.readline()
        (place / "file").write_text("theirs")

    Cache(Path(sys.argv[1]), notify=print).entry("thing", build=build)
""")


def test_two_builds_at_once_build_once_and_the_second_says_that_it_waits(store: Cache, told: list[str]):
    command = [sys.executable, "-c", HOLDER, str(store.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin and other.stdout
        assert other.stdout.readline() == "building\n"
        got: list[Path] = []
        second = threading.Thread(target=lambda: got.append(store.entry("thing", build=never)))
        second.start()
        while not told and second.is_alive():
            time.sleep(0.01)
        assert told == ["another build is fetching thing: waiting for it to end"]
        assert not got
        other.stdin.write("go\n")
        other.stdin.close()
        second.join()
        assert other.wait() == 0
    assert (got[0] / "file").read_text() == "theirs"


def test_a_build_that_never_ends_is_not_waited_for_for_ever(
    store: Cache, told: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cache_module, "WAIT_FOR_OTHER", 0.1)
    command = [sys.executable, "-c", HOLDER, str(store.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "building\n"
        with pytest.raises(SnapshotUnavailable, match=r"another build still holds .*thing\.lock"):
            store.entry("thing", build=never)
        other.kill()


FULL, READ_ONLY = "no space left for the cache", "cannot write to the cache"


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOSPC, FULL),
        (errno.EDQUOT, FULL),
        (errno.EROFS, READ_ONLY),
        (errno.EACCES, READ_ONLY),
        (errno.EIO, "cannot use the cache"),
    ],
)
@pytest.mark.parametrize("where", ["mkdir", "replace", "write_text"])
def test_a_cache_that_cannot_be_written_says_what_to_do(
    store: Cache, monkeypatch: pytest.MonkeyPatch, number: int, what: str, where: str
):
    def fail(*args: object, **how: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(Path, where, fail)
        with pytest.raises(SnapshotUnavailable) as error:
            store.entry("thing", build=fill)
        store.remember_failure("thing", "cannot be written down either, and that is no error")
    assert what in str(error.value) and str(store.folder) in str(error.value)
    assert os.strerror(number) in str(error.value) and "SOURCEPANEL_CACHE" in str(error.value)
    assert not list(store.folder.glob(".thing~*")) and not (store.folder / "thing").exists()
    assert (store.entry("thing", build=fill) / "file").read_text() == "whole"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_permission_to_write(store: Cache):
    store.folder.mkdir()
    store.folder.chmod(0o555)
    with pytest.raises(SnapshotUnavailable, match=READ_ONLY):
        store.entry("thing", build=fill)


def test_a_file_in_the_way(store: Cache):
    store.folder.write_text("a file")
    with pytest.raises(SnapshotUnavailable, match="cannot use the cache"):
        store.entry("thing", build=fill)


def test_a_full_entry_needs_no_permission_to_write(store: Cache, monkeypatch: pytest.MonkeyPatch):
    place = store.entry("thing", build=fill)
    for name in ("mkdir", "replace", "touch", "write_text"):
        monkeypatch.setattr(Path, name, lambda *_, **__: pytest.fail("wrote"))
    monkeypatch.setattr(cache_module, "FileLock", lambda *_: pytest.fail("locked"))
    assert store.entry("thing", build=never) == place


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ("fatal: write error: No space left on device", FULL),
        ("error: unable to create temporary file: Read-only file system", READ_ONLY),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", FULL),
        ("git@server: Permission denied (publickey).", None),
        ("fatal: Could not resolve host", None),
    ],
)
def test_a_programs_complaint_is_understood(store: Cache, output: str, what: str | None):
    error = blames_cache(("Receiving objects: 10%", output), store)
    assert error is None if what is None else error is not None and what in str(error)


def test_names_are_one_component(store: Cache):
    assert store.entry("../a/b", build=fill).parent == store.folder
    assert store.entry("..", build=fill).parent == store.folder


@pytest.fixture
def age(store: Cache) -> Callable[[float], None]:
    def age(seconds: float) -> None:
        then = time.time() - seconds
        os.utime(store.folder / "thing.failed", (then, then))

    return age


def test_a_failure_is_remembered_for_a_while(store: Cache, age: Callable[[float], None]):
    assert store.failure("thing") is None
    store.remember_failure("thing", "server away")
    assert store.failure("thing") == "server away"
    assert store.failure("other") is None
    age(cache_module.RETRY_AFTER + 60)
    assert store.failure("thing") is None
    age(-3600)
    assert store.failure("thing") is None, "a clock that was set back must not hold us for long"
