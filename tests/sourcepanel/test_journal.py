"""Several files replaced as one: killed at every step, with the disk full at every step, and by two at once."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from sourcepanel import journal
from sourcepanel.errors import DriftError
from sourcepanel.journal import recover, replace_all

NAMES = ("docs/a.md", "docs/deep/b.md", "sourcepanel.lock")
STEPS = ("replace", "link", "unlink", "fsync", "open", "mkdir")
"""Calls of `os` at which a run can be stopped."""


@pytest.fixture
def files(tmp_path: Path) -> dict[Path, bytes]:
    for number, name in enumerate(NAMES):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"old %d\r\n" % number)
        path.chmod(0o640)
    return {tmp_path / name: b"new %d \n" % number for number, name in enumerate(NAMES)}


def state(root: Path) -> dict[str, bytes]:
    """Every file but the one that processes lock, which may stay."""
    paths = [p for p in sorted(root.rglob("*")) if p.is_file() and p.name != journal._LOCK]
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in paths}


def at_step(step: int, then: Callable[[], None]) -> dict[str, Callable[..., object]]:
    """Stand-ins for the functions of `os` that count their calls and do `then` before call number `step`."""
    count = 0

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            nonlocal count
            count += 1
            if count == step:
                then()
            return function(*args, **kwargs)

        return call

    return {name: counting(getattr(os, name)) for name in STEPS}


def killed_at(step: int, files: dict[Path, bytes], root: Path) -> bool:
    """Run in a child that dies, without any cleaning up, before its `step`-th call; whether it died."""
    child = os.fork()
    if child == 0:
        for name, stand_in in at_step(step, lambda: os._exit(9)).items():
            setattr(os, name, stand_in)
        try:
            replace_all(root, files)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_all_files_get_their_new_content_and_nothing_is_left(files: dict[Path, bytes], tmp_path: Path) -> None:
    replace_all(tmp_path, files)
    assert state(tmp_path) == {path.relative_to(tmp_path).as_posix(): data for path, data in files.items()}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o640}
    assert not recover(tmp_path, notify=pytest.fail)


def test_killed_at_every_step(files: dict[Path, bytes], tmp_path: Path) -> None:
    """After each death the next run finds either all old files or all new ones, and sweeps."""
    old = state(tmp_path)
    new = {path.relative_to(tmp_path).as_posix(): data for path, data in files.items()}
    seen, step = [], 1
    while killed_at(step, files, tmp_path):
        half = {name: data for name, data in state(tmp_path).items() if name in old}
        seen.append(half)
        recover(tmp_path, notify=lambda line: None)
        assert state(tmp_path) in (old, new), step
        for path in files:
            path.write_bytes(old[path.relative_to(tmp_path).as_posix()])
        step += 1
    assert step > 20
    # The test reached the moments that matter: some files new, some old.
    assert any(half not in (old, new) for half in seen)


def test_killed_while_recovering(files: dict[Path, bytes], tmp_path: Path) -> None:
    old = state(tmp_path)
    new = {path.relative_to(tmp_path).as_posix(): data for path, data in files.items()}
    middle = next(step for step in range(1, 99) if killed_at(step, files, tmp_path) and _is_half(tmp_path, old, new))
    assert middle
    for step in range(1, 99):
        child = os.fork()
        if child == 0:
            for name, stand_in in at_step(step, lambda: os._exit(9)).items():
                setattr(os, name, stand_in)
            recover(tmp_path, notify=lambda line: None)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            break
    recover(tmp_path, notify=lambda line: None)
    assert state(tmp_path) == old


def _is_half(root: Path, old: dict[str, bytes], new: dict[str, bytes]) -> bool:
    half = {name: data for name, data in state(root).items() if name in old}
    if half in (old, new):
        recover(root, notify=lambda line: None)
        for name, data in old.items():
            (root / name).write_bytes(data)
        return False
    return True


def test_the_disk_is_full_at_every_step(
    files: dict[Path, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of the file system becomes one clear message, and every file is as it was."""
    old = state(tmp_path)

    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    told = reached = 0
    for step in range(1, 200):
        with monkeypatch.context() as patched:
            for name, stand_in in at_step(step, full).items():
                patched.setattr(os, name, stand_in)
            try:
                replace_all(tmp_path, files)
            except DriftError as error:
                assert "No space left" in str(error)
                assert state(tmp_path) == old, step
                told += 1
                continue
            except OSError:
                # Past the point of no return: the new files stand, and the rest is swept below.
                reached = step
        recover(tmp_path, notify=lambda line: None)
        assert state(tmp_path) == {path.relative_to(tmp_path).as_posix(): data for path, data in files.items()}, step
        for path in files:
            path.write_bytes(old[path.relative_to(tmp_path).as_posix()])
        if step > reached + 30:
            break
    assert told > 3


def test_an_interrupted_run_puts_everything_back(
    files: dict[Path, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, count, replace = state(tmp_path), 0, os.replace

    def interrupted(*args: str) -> None:
        nonlocal count
        count += 1
        # 1: the plan becomes the journal; 2: the first file; 3: the second.
        if count == 3:
            raise KeyboardInterrupt
        replace(*args)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_all(tmp_path, files)
    assert state(tmp_path) == old


def test_without_hard_links_a_copy_is_kept(
    files: dict[Path, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", no_links)
    test_an_interrupted_run_puts_everything_back(files, tmp_path, monkeypatch)


def test_two_runs_do_not_meet(files: dict[Path, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_WAIT", 0.1)
    old = state(tmp_path)
    with FileLock(tmp_path / journal._LOCK), pytest.raises(DriftError, match="another run is replacing files"):
        replace_all(tmp_path, files)
    assert {path: path.read_bytes() for path in files} == {tmp_path / name: data for name, data in old.items()}


def test_a_damaged_journal_is_told(tmp_path: Path) -> None:
    (tmp_path / journal.JOURNAL).write_text("[")
    with pytest.raises(DriftError, match="is damaged"):
        recover(tmp_path, notify=lambda line: None)
