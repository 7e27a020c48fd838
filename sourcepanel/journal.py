"""Several files replaced as one: all of them, or none, whatever happens in between.

New contents and a second name for each old file are laid beside their places first. A journal then says what is
about to happen; from that moment a run that is killed is undone by the next one that looks (`recover`), because
half a move is worse than none. Only when all files are in place is the journal called done.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from sourcepanel.errors import DriftError

PLAN, JOURNAL, DONE = (f".sourcepanel-{stage}" for stage in ("plan", "journal", "done"))
"""One file that is renamed on the way, and names the files concerned: while they are being prepared, while they are
being replaced, while what was needed for that is removed."""
_NEW, _OLD, _LOCK = ".sourcepanel-new", ".sourcepanel-old", ".sourcepanel-lock"
_WAIT = 10.0
"""Seconds to wait for another process that is replacing files here."""


def replace_all(root: Path, contents: Mapping[Path, bytes]) -> None:
    """Give each file (absolute, existing, below `root`) its new content; raises `DriftError`, having changed nothing.

    Only a crash of the machine or the process in the middle leaves something to `recover`.
    """
    with _alone(root):
        _undo(root)
        try:
            names = [path.relative_to(root).as_posix() for path in contents]
            _write(root / PLAN, json.dumps(names, ensure_ascii=False).encode())
            for path, data in contents.items():
                _write(_beside(path, _NEW), data)
                shutil.copymode(path, _beside(path, _NEW))
                _keep(path)
            _sync(*{path.parent for path in contents})
            _rename(root / PLAN, root / JOURNAL)
            for path in contents:
                _beside(path, _NEW).replace(path)
            _sync(*{path.parent for path in contents})
            _rename(root / JOURNAL, root / DONE)
        except BaseException as error:
            _undo(root)
            if isinstance(error, OSError):
                reason = f"{error.filename or root}: {error.strerror or error}"
                raise DriftError(f"nothing was written: {reason}; all files are as they were") from None
            raise
        _undo(root)


def recover(root: Path, *, notify: Callable[[str], None]) -> bool:
    """Undo what a killed run left half done; returns whether files were restored. A running one is waited for."""
    if not any((root / stage).exists() for stage in (PLAN, JOURNAL, DONE)):
        return False
    with _alone(root):
        restored = _undo(root)
    if restored:
        notify(f"a run that was killed had replaced some files: {restored} files are as they were before it")
    return bool(restored)


def _undo(root: Path) -> int:
    """Put the old files back if some may be new, and sweep; returns how many files were put back."""
    restored = 0
    for stage in (PLAN, JOURNAL, DONE):
        marker = root / stage
        if not marker.exists():
            continue
        paths = _named(root, marker)
        for path in paths if stage == JOURNAL else ():
            if _beside(path, _OLD).exists():
                _beside(path, _OLD).replace(path)
                restored += 1
        _sync(*{path.parent for path in paths})
        for path in paths:
            for suffix in (_NEW, _OLD):
                _beside(path, suffix).unlink(missing_ok=True)
        marker.unlink()
        _sync(root)
    return restored


def _named(root: Path, marker: Path) -> list[Path]:
    """The files a marker names; a plan that is cut short was made before anything else was."""
    try:
        return [root / name for name in json.loads(marker.read_bytes())]
    except ValueError:
        if marker.name == PLAN:
            return []
        raise DriftError(f"{marker} is damaged; restore the files from version control and remove it") from None


def _keep(path: Path) -> None:
    """A second name for the file as it is, or a copy where the file system has no hard links."""
    kept = _beside(path, _OLD)
    kept.unlink(missing_ok=True)
    try:
        kept.hardlink_to(path)
    except OSError:
        _write(kept, path.read_bytes())
        shutil.copymode(path, kept)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f".{path.name}{suffix}")


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _rename(old: Path, new: Path) -> None:
    old.replace(new)
    _sync(new.parent)


def _sync(*folders: Path) -> None:
    """Make renames in these folders lasting, where the system can."""
    for folder in folders:
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    lock = FileLock(root / _LOCK)
    try:
        lock.acquire(timeout=_WAIT)
    except Timeout:
        raise DriftError(f"another run is replacing files in {root}; let it end, then try again") from None
    except OSError as error:
        raise DriftError(f"cannot write in {root}: {error.strerror or error}; nothing was written") from None
    try:
        yield
    finally:
        # Removed while it is held: who waits for it makes a new one.
        with contextlib.suppress(OSError):
            (root / _LOCK).unlink()
        lock.release()
