"""A pin without a checkout, and a machine on which pip finds only what the test gives it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sourcepanel.config import License, Repository, Wheel
from sourcepanel.snapshot import Snapshot, open_snapshot
from tests.support.tiny import TinyRepo

UNREACHABLE = "http://127.0.0.1:9/tiny"
"""Port 9 of this machine: refused at once."""


@pytest.fixture
def repository(tiny_repo: TinyRepo) -> Repository:
    """The tiny pin: its server is not reachable, it has a wheel, and no checkout is named."""
    return Repository(
        name="tiny",
        url=UNREACHABLE,
        ref="v2.0",
        commit=tiny_repo.commit,
        wheel=Wheel(package="tiny-engine", version="2.0"),
        license=License(holder="Tiny Authors", name="Tiny licence", path="LICENSE"),
    )


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Path], None]:
    """Pip has no index; `no_index(folder)` lets it find the wheels of a folder."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return lambda folder: monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


@pytest.fixture
def told() -> list[str]:
    """Everything the last builds told."""
    return []


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def build(tmp_path: Path, cache: Path, told: list[str]) -> Callable[..., Snapshot]:
    """Opens the snapshot as a build does."""

    def build(repository: Repository, **blobs: str) -> Snapshot:
        return open_snapshot(repository, root=tmp_path, cache=cache, blobs=blobs, notify=told.append)

    return build
