"""How a person names a version, and the two trees between which references then move.

A clone resolves any tag, branch or commit; without one, the versions that `sourcepanel.toml` lists are known, and
read from where the pin itself is read (a cached clone, or the wheel).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sourcepanel.config import Repository, Version
from sourcepanel.errors import ConfigError
from sourcepanel.snapshot import PinnedSnapshot, Snapshot, open_snapshot
from sourcepanel.snapshot.cache import Cache
from sourcepanel.snapshot.git import GitSnapshot, commit_of
from sourcepanel.snapshot.select import local_checkout
from sourcepanel.snapshot.wheel import open_wheel

Notify = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Move:
    """A repository at two versions, both readable; `old` and `new` come from the same kind of place."""

    repository: Repository
    """At the old version."""
    version: Version
    """The new one."""
    old: Snapshot
    new: Snapshot

    @property
    def target(self) -> Repository:
        """The repository as it is after the move."""
        return at_version(self.repository, self.version)


def known_versions(repository: Repository) -> tuple[Version, ...]:
    """The pin and what the configuration lists, each once."""
    wheel = repository.wheel
    pin = Version(
        ref=repository.ref,
        commit=repository.commit,
        wheel=wheel.version if wheel else None,
        sha256=wheel.sha256 if wheel else (),
    )
    return (pin, *(version for version in repository.versions if version.commit != repository.commit))


def find_version(repository: Repository, name: str) -> Version | None:
    """The known version of this tag, wheel version or commit (seven digits are enough); None for any other name."""
    for version in known_versions(repository):
        if name in (version.ref, version.wheel, version.commit):
            return version
        if re.fullmatch(r"[0-9a-f]{7,39}", name.lower()) and version.commit.startswith(name.lower()):
            return version
    return None


def at_version(repository: Repository, version: Version) -> Repository:
    """The repository with its pin at another version; without a wheel where that version names none."""
    wheel = repository.wheel
    if wheel is not None:
        changed = {"version": version.wheel, "sha256": version.sha256}
        wheel = wheel.model_copy(update=changed) if version.wheel else None
    return repository.model_copy(update={"ref": version.ref, "commit": version.commit, "wheel": wheel})


def resolve_version(repository: Repository, name: str, *, clone: Path | None) -> Version:
    """The version of this name; raises `ConfigError` listing what is known, `SnapshotUnavailable` for the clone."""
    known = find_version(repository, name)
    if clone is None:
        if known is None:
            listed = "".join(f"\n  - {_tell(version)}" for version in known_versions(repository))
            fix = "name a clone with --source or SOURCEPANEL_CHECKOUT, or list it under [[repositories.versions]]"
            raise ConfigError(f"{name} is no known version of {repository.name}; {fix}. Known:{listed}")
        return known
    if known is None:
        commit = commit_of(clone, name)
        # A commit that stands in the configuration keeps its wheel, however it is called here.
        same = [version for version in known_versions(repository) if version.commit == commit]
        return same[0].model_copy(update={"ref": name}) if same else Version(ref=name, commit=commit)
    commit_of(clone, known.commit)
    return known


def open_move(
    repository: Repository,
    to: str,
    *,
    root: Path,
    cache: Path,
    notify: Notify,
    blobs: dict[str, str] | None = None,
    source: Path | None = None,
    since: Version | None = None,
) -> Move:
    """The pin (or `since`) and the version `to`, from `source` or the configured checkout, else from their wheels.

    `blobs` are the lock's ids of the pin's files. Raises `ConfigError` for a name that nothing knows, and
    `SnapshotUnavailable` where a tree cannot be had.
    """
    here = repository if since is None else at_version(repository, since)
    clone = source or local_checkout(repository, root=root)
    version = resolve_version(repository, to, clone=clone)
    there = at_version(repository, version)
    held = blobs if blobs and since is None else {}
    if clone is not None:
        pinned = _checked(clone_at(clone, commit=here.commit), held)
        return Move(repository=here, version=version, old=pinned, new=clone_at(clone, commit=there.commit))
    new = open_snapshot(there, root=root, cache=cache, blobs={}, notify=notify)
    old = open_snapshot(here, root=root, cache=cache, blobs=held, notify=notify)
    # A file that the wheel lacks would look as if it had gone.
    if old.complete and not new.complete and here.wheel:
        old = _checked(open_wheel(here, cache=Cache(cache, notify=notify)), held)
    return Move(repository=here, version=version, old=old, new=new)


def clone_at(clone: Path, *, commit: str) -> GitSnapshot:
    """One commit of a clone."""
    fix = f"run: git -C {clone} fetch origin {commit}"
    return GitSnapshot(clone, commit=commit, origin=f"clone {clone}", fix=fix)


def _checked(snapshot: Snapshot, blobs: dict[str, str]) -> Snapshot:
    fix = "the lock is not of this commit: run sourcepanel lock first"
    return PinnedSnapshot(snapshot, blobs, fix) if blobs else snapshot


def _tell(version: Version) -> str:
    wheel = f", wheel {version.wheel}" if version.wheel else ""
    return f"{version.ref} ({version.commit[:8]}{wheel})"
