"""Chooses where the pinned source is read from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from sourcepanel.config import Repository
from sourcepanel.errors import ConfigError, SnapshotUnavailable
from sourcepanel.snapshot.base import PinnedSnapshot, Snapshot
from sourcepanel.snapshot.cache import Cache
from sourcepanel.snapshot.git import open_checkout, open_clone
from sourcepanel.snapshot.wheel import open_wheel

BACKENDS = ("checkout", "clone", "wheel")


def open_snapshot(
    repository: Repository,
    *,
    root: Path,
    cache: Path,
    blobs: Mapping[str, str],
    notify: Callable[[str], None],
) -> Snapshot:
    """The readable tree at the pin, from the first backend that can give it.

    Tried in this order: the local checkout, where one is named; the cached shallow clone; the wheel.
    A fallback is told to `notify` in one line, and so is the progress of a download.

    - `root` is the folder that a relative checkout in the configuration starts from.
    - `blobs` maps each linked file to its git blob id in the lock: a file with another id is refused by
      name (`PinMismatch`) when it is read. Empty while the lock is being written.

    Environment:

    - `SOURCEPANEL_CHECKOUT=path`, or `name=path[,name=path]` with several repositories, names the local
      clone and overrides the configuration. It must hold the pinned commit; a relative path starts here.
    - `SOURCEPANEL_BACKEND=checkout|clone|wheel` allows that backend only.

    Raises `SnapshotUnavailable` when no backend can give the tree, and when a checkout that was named
    cannot: to read another source than the one asked for would hide the mistake. Only a checkout that
    `sourcepanel.toml` names and this machine does not have is passed over.
    """
    store = Cache(cache, notify=notify)
    opened = _open(repository, root=root, store=store, notify=notify, blobs=blobs)
    fix = f"{opened.origin} differs from sourcepanel.lock: if the pin was moved, run sourcepanel lock"
    return PinnedSnapshot(opened, blobs, fix)


def local_checkout(repository: Repository, *, root: Path) -> Path | None:
    """The local clone that `open_snapshot` would read, or None where it would look elsewhere."""
    if os.environ.get("SOURCEPANEL_BACKEND", "").strip() not in ("", "checkout"):
        return None
    if named := _checkout_from_environment(repository.name):
        return Path.cwd() / named.expanduser()
    folder = root / repository.checkout.expanduser() if repository.checkout else None
    return folder if folder and folder.exists() else None


def _open(
    repository: Repository, *, root: Path, store: Cache, notify: Callable[[str], None], blobs: Mapping[str, str]
) -> Snapshot:
    forced = os.environ.get("SOURCEPANEL_BACKEND", "").strip()
    if forced not in ("", *BACKENDS):
        raise ConfigError(f"SOURCEPANEL_BACKEND={forced}: no such backend; use one of {', '.join(BACKENDS)}")
    named = _checkout_from_environment(repository.name)
    path = named or repository.checkout
    if forced in ("", "checkout") and path is not None:
        folder = (Path.cwd() if named else root) / path.expanduser()
        if named or forced or folder.exists():
            return open_checkout(repository, folder, name=str(path))
        notify(f"no local checkout at {path}: looking elsewhere for {repository.name}")
    if forced == "checkout":
        fix = "set SOURCEPANEL_CHECKOUT to a clone, or unset SOURCEPANEL_BACKEND"
        raise SnapshotUnavailable(f"no local checkout of {repository.name} is named", fix=fix)
    failures: list[SnapshotUnavailable] = []
    if forced in ("", "clone"):
        try:
            return open_clone(repository, cache=store, retry=bool(forced))
        except SnapshotUnavailable as error:
            failures.append(error)
    if forced in ("", "wheel"):
        try:
            snapshot = open_wheel(repository, cache=store)
        except SnapshotUnavailable as error:
            failures.append(error)
        else:
            if failures:
                notify(f"{failures[0].what}: using {snapshot.origin}, {_count(snapshot, blobs)}")
            return snapshot
    fix = f"set SOURCEPANEL_CHECKOUT to a clone of {repository.url} that holds {repository.ref}"
    reasons = "".join(f"\n  - {error}" for error in failures)
    raise SnapshotUnavailable(f"no source for {repository.name} at {repository.ref}; {fix}:{reasons}")


def _count(snapshot: Snapshot, blobs: Mapping[str, str]) -> str:
    held = snapshot.list()
    return f"{len(blobs.keys() & set(held))} of {len(blobs)} linked files" if blobs else f"{len(held)} files"


def _checkout_from_environment(name: str) -> Path | None:
    """This repository's part of SOURCEPANEL_CHECKOUT."""
    value = os.environ.get("SOURCEPANEL_CHECKOUT", "").strip()
    if not re.match(r"[\w.\-]+=", value):
        return Path(value) if value else None
    named = dict(part.strip().partition("=")[::2] for part in value.split(","))
    return Path(named[name]) if named.get(name) else None
