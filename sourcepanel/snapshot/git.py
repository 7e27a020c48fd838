"""Backends that read git objects: a local checkout, and a shallow clone in the cache.

Only the objects of the pinned commit are read, never a work tree, an index or a branch, so a checkout
that is dirty, bare or at another commit gives the same files.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sourcepanel.config import Repository
from sourcepanel.errors import PathNotFound, SnapshotUnavailable
from sourcepanel.snapshot.base import check_blob
from sourcepanel.snapshot.cache import Cache, blames_cache
from sourcepanel.snapshot.process import Finished, run

if TYPE_CHECKING:
    from git import Repo

PROBE_TIMEOUT = 6.0
"""Seconds within which the server must answer before anything is fetched."""
FETCH_TIMEOUT = 900.0
_TELL_EVERY = 5.0

_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GCM_INTERACTIVE": "never",
    # A connection that stalls for that many seconds is given up, also when a read fetches a missing blob.
    "GIT_HTTP_LOW_SPEED_LIMIT": "1000",
    "GIT_HTTP_LOW_SPEED_TIME": "20",
}


def aimed_at(folder: Path, common: Path) -> dict[str, str]:
    """Names the repository outright.

    A mirror without a config file needs it, and so do we inside a git hook, where git's own variables
    name the repository that is being committed to.
    """
    return _QUIET | {
        "GIT_DIR": str(folder),
        "GIT_COMMON_DIR": str(common),
        "GIT_OBJECT_DIRECTORY": str(common / "objects"),
    }


class GitSnapshot:
    """The regular files of one commit in a git folder."""

    complete = True

    def __init__(self, folder: Path, *, commit: str, origin: str, fix: str) -> None:
        """Lists the commit at once; raises `SnapshotUnavailable` with `fix` when the folder does not hold it."""
        self.folder = folder
        self.commit = commit
        self.origin = origin
        self._fix = fix
        self._mutex = threading.Lock()
        self._opened: tuple[int, Repo] | None = None
        self._blobs = self._list()
        self._paths = tuple(sorted(self._blobs))

    def list(self) -> tuple[str, ...]:
        """All paths, sorted."""
        return self._paths

    def read(self, path: str) -> bytes:
        """The blob, checked against its own id: git does not do so when it reads from a pack."""
        blob = self.blob_id(path)
        # One `git cat-file --batch` serves all reads, so they take turns.
        with self._mutex:
            try:
                _, _, _, data = self._repo().git.get_object_data(blob)
            except (ValueError, OSError) as error:
                self._opened = None
                raise SnapshotUnavailable(f"{self.origin} cannot give {path}", why=str(error), fix=self._fix) from error
        return check_blob(path, data, blob=blob, fix=f"{self.origin} is damaged: git fsck tells more")

    def blob_id(self, path: str) -> str:
        """The id in the commit's tree."""
        try:
            return self._blobs[path]
        except KeyError:
            raise PathNotFound(path) from None

    def git(self, *args: str) -> str:
        """Run git on this repository's objects and return what it prints; raises `SnapshotUnavailable`."""
        from git import GitCommandError

        with self._mutex:
            try:
                data = self._repo().git.execute(
                    ["git", "-c", "core.quotepath=off", *args], stdout_as_string=False, strip_newline_in_stdout=False
                )
            except GitCommandError as error:
                why = str(error.stderr).strip().removeprefix("stderr: ").strip("'\n ")
                raise SnapshotUnavailable(f"git {args[0]} failed in {self.origin}", why=why, fix=self._fix) from None
        return bytes(data).decode("utf-8", errors="replace")

    def _list(self) -> Mapping[str, str]:
        git = self._repo().git
        from git import GitCommandError

        try:
            git.cat_file("-e", f"{self.commit}^{{commit}}")
            listing = git.ls_tree("-r", "-z", "--full-tree", self.commit, stdout_as_string=False)
        except GitCommandError as error:
            why = str(error.stderr).strip().removeprefix("stderr: ").strip("'\n ")
            missing = "Not a valid object name" in why or not why or "bad file" in why
            what = f"{self.origin} does not hold commit {self.commit}" if missing else f"{self.origin} cannot be read"
            raise SnapshotUnavailable(what, why="" if missing else why, fix=self._fix) from None
        blobs = {}
        for row in listing.split(b"\0"):
            meta, _, path = row.partition(b"\t")
            # 120000 is a symlink, 160000 a submodule.
            if meta.startswith((b"100644 ", b"100755 ", b"100664 ")):
                try:
                    blobs[path.decode("utf-8")] = meta.split()[2].decode("ascii")
                except UnicodeDecodeError:
                    # No link in a UTF-8 page can name it.
                    continue
        return blobs

    def _repo(self) -> Repo:
        """The repository, opened once per process: a fork must not share the pipe to cat-file."""
        if self._opened is None or self._opened[0] != os.getpid():
            repo = _open(self.folder)
            self._opened = (os.getpid(), repo)
            # The git process behind the reads ends with the snapshot, not when the collector happens to come by.
            weakref.finalize(self, repo.git.clear_cache)
        return self._opened[1]


def commit_of(folder: Path, name: str) -> str:
    """The full id of the commit that a tag, a branch or an abbreviated id names in this clone.

    Raises `SnapshotUnavailable` where it names none.
    """
    if not folder.is_dir():
        raise SnapshotUnavailable(f"no clone at {folder}", fix="name the folder of a git clone, or of a bare one")
    repo = _open(folder)
    from git import GitCommandError

    try:
        return str(repo.git.rev_parse("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"))
    except (GitCommandError, ValueError):  # a NUL in the name: no program can be given it
        what = f"{folder} holds no tag, branch or commit {name}"
        raise SnapshotUnavailable(what, fix=f"run: git -C {folder} fetch --tags") from None
    finally:
        repo.close()


def open_checkout(repository: Repository, path: Path, *, name: str) -> GitSnapshot:
    """The pin in a local clone, mirror or bare repository; `name` is how messages call the folder."""
    if not path.is_dir():
        fix = "correct the path in SOURCEPANEL_CHECKOUT or sourcepanel.toml"
        raise SnapshotUnavailable(f"no local checkout at {name}", fix=fix)
    fetch = f"git -C {path} fetch"
    fix = f"run: {fetch} origin tag {repository.ref} (or: {fetch} {repository.url} {repository.commit})"
    return GitSnapshot(path, commit=repository.commit, origin=f"local checkout {name}", fix=fix)


def open_clone(repository: Repository, *, cache: Cache, retry: bool = False) -> GitSnapshot:
    """The pin in a shallow clone in the cache, fetched when it is not there.

    A failure is remembered, and the next builds do not try, unless `retry`.
    """
    entry = f"{repository.name}-{repository.commit[:12]}.git"
    origin = f"cached clone of {repository.url.partition('://')[2] or repository.url}"
    remembered = None if retry else cache.failure(entry)
    if remembered and not (cache.folder / entry).is_dir():
        raise SnapshotUnavailable(
            remembered, why="tried a short while ago", fix="SOURCEPANEL_BACKEND=clone tries again"
        )
    try:
        folder = cache.entry(entry, build=lambda place: _fetch(repository, place, cache=cache))
    except _Unreachable as error:
        cache.remember_failure(entry, error.what)
        raise
    fix = f"remove {folder} and build again"
    return GitSnapshot(folder, commit=repository.commit, origin=origin, fix=fix)


class _Unreachable(SnapshotUnavailable):
    """The server, not this machine, is what failed."""


def _fetch(repository: Repository, place: Path, *, cache: Cache) -> None:
    """Fetch exactly the pinned commit, small files with it, large ones when they are read (if the server can)."""
    host = _host(repository.url)
    told = time.monotonic()

    def progress(line: str) -> None:
        nonlocal told
        if "%" in line and time.monotonic() - told > _TELL_EVERY:
            told = time.monotonic()
            cache.notify(f"fetching {repository.name}: {line}")

    for args in (("init", "--quiet", "--bare", "--template="), ("remote", "add", "origin", repository.url)):
        done = _git(place, *args, timeout=FETCH_TIMEOUT)
        if done.code:
            failure = SnapshotUnavailable(f"git {args[0]} failed in the cache {cache.folder}", why=done.reason)
            raise blames_cache(done.output, cache) or failure
    done = _git(place, "ls-remote", "origin", repository.ref, timeout=PROBE_TIMEOUT)
    if done.code:
        raise _Unreachable(f"{host} not reachable", why=done.reason, fix=f"check the way to {repository.url}")
    cache.notify(f"fetching {repository.name} at {repository.ref} from {host}")
    what = ("--no-tags", "--depth=1", "--filter=blob:limit=1m", "origin", f"{repository.commit}:refs/heads/pin")
    done = _git(place, "fetch", "--progress", *what, timeout=FETCH_TIMEOUT, on_line=progress)
    if done.code:
        fix = f"check that {repository.url} holds {repository.commit}"
        failure = _Unreachable(f"{host} did not give the pinned commit", why=done.reason, fix=fix)
        raise blames_cache(done.output, cache) or failure


def _git(place: Path, *args: str, timeout: float, on_line: Callable[[str], None] = lambda line: None) -> Finished:
    options = ("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "protocol.version=2")
    env = {name: value for name, value in os.environ.items() if name != "GIT_WORK_TREE"} | aimed_at(place, place)
    try:
        return run(["git", *options, *args], timeout=timeout, env=env, on_line=on_line)
    except FileNotFoundError:
        raise SnapshotUnavailable("git is not installed", fix="install git") from None


def _host(url: str) -> str:
    host = urlsplit(url).hostname or url
    return "GitHub" if host in ("github.com", "www.github.com") else host


def _open(folder: Path) -> Repo:
    try:
        # Not at the top: the import fails where git is missing, and the wheel needs no git.
        from git import InvalidGitRepositoryError, Repo
    except ImportError as error:
        why = str(error).strip().partition("\n")[0]
        raise SnapshotUnavailable("git is not installed", why=why, fix="install git") from None
    try:
        repo = Repo(folder)
    except InvalidGitRepositoryError:
        raise SnapshotUnavailable(
            f"{folder} is not a git repository", fix="name a clone of the pinned repository"
        ) from None
    # A `git replace` must not show another file under the pin's name.
    repo.git.update_environment(**aimed_at(Path(repo.git_dir), Path(repo.common_dir)), GIT_NO_REPLACE_OBJECTS="1")
    return repo
