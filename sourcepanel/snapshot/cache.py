"""The cache folder: entries appear whole or not at all, however many builds run and wherever one is stopped.

An entry is made in a temporary folder beside its place, under a lock that dies with its process, and
moved there in one step. What a killed build left behind is swept by the next one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from sourcepanel.errors import SnapshotUnavailable

RETRY_AFTER = 3600.0
"""Seconds for which a backend that failed is not tried again."""
WAIT_FOR_OTHER = 1200.0
"""Seconds to wait for another build that is making the same entry."""

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}


class Cache:
    """Entries by name in one folder, which is made when first written to."""

    def __init__(self, folder: Path, *, notify: Callable[[str], None]) -> None:
        self.folder = folder
        self.notify = notify

    def entry(self, name: str, *, build: Callable[[Path], None]) -> Path:
        """The folder of this name; where it is missing, `build` fills an empty folder that becomes it.

        Raises `SnapshotUnavailable` when the cache cannot be written; what `build` raises goes through.
        """
        name = _safe(name)
        place = self.folder / name
        if place.is_dir():
            return place
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._locked(name):
                self._sweep(name)
                if not place.is_dir():
                    self._make(place, build)
        return place

    def failure(self, name: str) -> str | None:
        """Why this entry could not be made a short while ago; None when it is time to try (again)."""
        path = self.folder / f"{_safe(name)}.failed"
        try:
            age = time.time() - path.stat().st_mtime
            return path.read_text(encoding="utf-8") if 0 <= age < RETRY_AFTER else None
        except (OSError, UnicodeDecodeError):
            return None

    def remember_failure(self, name: str, reason: str) -> None:
        """Spare the next builds the wait; a cache that cannot be written forgets."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = self.folder / f".{_safe(name)}.failed-{os.getpid()}"
            temporary.write_text(reason, encoding="utf-8")
            temporary.replace(self.folder / f"{_safe(name)}.failed")

    def _make(self, place: Path, build: Callable[[Path], None]) -> None:
        temporary = Path(tempfile.mkdtemp(prefix=f".{place.name}~", dir=self.folder))
        try:
            # mkdtemp keeps others out; a shared cache is for them too.
            temporary.chmod(0o755)
            build(temporary)
            temporary.replace(place)
        except BaseException:
            _remove(temporary)
            raise

    def _sweep(self, name: str) -> None:
        """Remove what builds that were killed left; only the holder of the lock may.

        No name holds a `~`, so another entry whose name starts like this one is left alone.
        """
        for leftover in self.folder.glob(f".{name}~*"):
            _remove(leftover)

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        lock = FileLock(self.folder / f"{name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self.notify(f"another build is fetching {name}: waiting for it to end")
            try:
                lock.acquire(timeout=WAIT_FOR_OTHER)
            except Timeout:
                raise SnapshotUnavailable(
                    f"another build still holds {self.folder / f'{name}.lock'}", fix="end that build, then build again"
                ) from None
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Says what to do about a cache that is full or read-only."""
        try:
            yield
        except OSError as error:
            raise self.explain(error) from error

    def explain(self, error: OSError) -> SnapshotUnavailable:
        """An error of the file system, with its cure."""
        elsewhere = "or set SOURCEPANEL_CACHE to a folder elsewhere"
        why = error.strerror or str(error)
        if error.errno in _FULL:
            return SnapshotUnavailable(
                f"no space left for the cache {self.folder}", why=why, fix=f"free some, {elsewhere}"
            )
        if error.errno in _FORBIDDEN:
            what = f"cannot write to the cache {self.folder}"
            return SnapshotUnavailable(what, why=why, fix=f"make it writable, {elsewhere}")
        return SnapshotUnavailable(f"cannot use the cache {self.folder}", why=str(error), fix=f"remove it, {elsewhere}")


def blames_cache(output: Sequence[str], cache: Cache) -> SnapshotUnavailable | None:
    """The same for a program that ran into it and said so in words."""
    # Not EACCES: a server says "Permission denied" too.
    for number in (*_FULL, errno.EROFS):
        if any(os.strerror(number) in line for line in output):
            return cache.explain(OSError(number, os.strerror(number)))
    return None


def _safe(name: str) -> str:
    """A name that is one path component on every system."""
    return re.sub(r"[^\w.\-]", "_", name).lstrip(".") or "_"


def _remove(path: Path) -> None:
    """Remove a folder that may hold read-only files (git's objects are, which Windows minds)."""

    def retry(function: Callable[[str], object], name: str, _: object) -> None:
        with contextlib.suppress(OSError):
            Path(name).chmod(stat.S_IRWXU)
            function(name)

    shutil.rmtree(path, onerror=retry)
