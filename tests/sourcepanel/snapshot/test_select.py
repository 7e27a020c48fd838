"""Which backend is taken, what is told, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sourcepanel.config import Config, Repository
from sourcepanel.errors import ConfigError, PathNotFound, PinMismatch, SnapshotUnavailable
from sourcepanel.snapshot import Snapshot, open_snapshot
from tests.sourcepanel.snapshot.test_git import BAD_PATHS
from tests.support.tiny import TinyRepo, build_wheel, wheel_files

NoIndex = Callable[[Path], None]
Build = Callable[..., Snapshot]
TRAINING = "tiny/training.py"


def test_the_configured_checkout(tiny_config: Config, tiny_repo: TinyRepo, told: list[str]):
    (repository,) = tiny_config.repositories
    snapshot = open_snapshot(
        repository, root=tiny_config.root, cache=tiny_config.cache_dir, blobs=tiny_repo.blobs, notify=told.append
    )
    assert {path: snapshot.read(path) for path in snapshot.list()} == tiny_repo.files
    assert {path: snapshot.blob_id(path) for path in snapshot.list()} == tiny_repo.blobs
    assert (snapshot.commit, snapshot.complete, told) == (tiny_repo.commit, True, [])
    assert not tiny_config.cache_dir.exists(), "a checkout needs no cache"


def test_falls_back_from_clone_to_wheel_and_tells_it_in_one_line(
    repository: Repository, tiny_repo: TinyRepo, no_index: NoIndex, tiny_wheel: Path, build: Build, told: list[str]
):
    no_index(tiny_wheel.parent)
    snapshot = build(repository, **tiny_repo.blobs)
    held, all_ = len(wheel_files()), len(tiny_repo.files)
    line = f"127.0.0.1 not reachable: using tiny-engine 2.0 from PyPI, {held} of {all_} linked files"
    assert told == ["downloading tiny-engine 2.0 from PyPI", line]
    assert not snapshot.complete and held < all_
    told.clear()
    build(repository, **{TRAINING: tiny_repo.blobs[TRAINING], "pretrain.py": tiny_repo.blobs["pretrain.py"]})
    assert told == ["127.0.0.1 not reachable: using tiny-engine 2.0 from PyPI, 1 of 2 linked files"]
    told.clear()
    build(repository)
    assert told == [f"127.0.0.1 not reachable: using tiny-engine 2.0 from PyPI, {held} files"]


def test_prefers_the_clone_to_the_wheel(repository: Repository, tiny_repo: TinyRepo, build: Build):
    served = repository.model_copy(update={"url": tiny_repo.path.as_uri()})
    assert build(served).origin.startswith("cached clone of")


def test_a_checkout_that_only_others_have_is_passed_over(
    repository: Repository, no_index: NoIndex, tiny_wheel: Path, build: Build, told: list[str]
):
    no_index(tiny_wheel.parent)
    build(repository.model_copy(update={"checkout": Path("../elsewhere")}))
    assert told[0] == "no local checkout at ../elsewhere: looking elsewhere for tiny"
    assert told[-1].startswith("127.0.0.1 not reachable: using tiny-engine 2.0")


def test_a_configured_checkout_without_the_pin_is_an_error(
    repository: Repository, tiny_repo: TinyRepo, no_index: NoIndex, tiny_wheel: Path, build: Build
):
    no_index(tiny_wheel.parent)
    absent = repository.model_copy(update={"checkout": tiny_repo.path, "commit": "0123456789" * 4})
    with pytest.raises(SnapshotUnavailable, match=r"does not hold commit 0123456789.*fetch origin tag v2\.0"):
        build(absent)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("{repo}", True),
        ("tiny={repo}", True),
        ("other=/nowhere,tiny={repo}", True),
        (" tiny={repo} , other=/nowhere ", True),
        ("{relative}", True),
        ("other={repo}", False),
        ("", False),
    ],
)
def test_the_environment_names_a_checkout(
    repository: Repository, tiny_repo: TinyRepo, build: Build, monkeypatch: pytest.MonkeyPatch, value: str, found: bool
):
    monkeypatch.chdir(tiny_repo.path.parent)
    monkeypatch.setenv("SOURCEPANEL_CHECKOUT", value.format(repo=tiny_repo.path, relative=tiny_repo.path.name))
    if found:
        assert build(repository).origin.startswith("local checkout")
    else:
        with pytest.raises(SnapshotUnavailable, match="no source for tiny"):
            build(repository)


def test_the_environment_overrides_the_configuration(
    repository: Repository, tiny_repo: TinyRepo, build: Build, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SOURCEPANEL_CHECKOUT", "/nowhere")
    with pytest.raises(SnapshotUnavailable, match="no local checkout at /nowhere"):
        build(repository.model_copy(update={"checkout": tiny_repo.path}))


@pytest.mark.parametrize(
    ("backend", "origin"), [("checkout", "local checkout"), ("clone", "cached clone"), ("wheel", "tiny-engine 2.0")]
)
def test_a_backend_can_be_forced(
    repository: Repository,
    tiny_repo: TinyRepo,
    no_index: NoIndex,
    tiny_wheel: Path,
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    origin: str,
):
    no_index(tiny_wheel.parent)
    monkeypatch.setenv("SOURCEPANEL_BACKEND", backend)
    able = repository.model_copy(update={"checkout": tiny_repo.path, "url": tiny_repo.path.as_uri()})
    assert build(able).origin.startswith(origin)


@pytest.mark.parametrize(
    ("backend", "what"),
    [
        ("checkout", "no local checkout of tiny is named; set SOURCEPANEL_CHECKOUT"),
        ("clone", r"127\.0\.0\.1 not reachable"),
        ("wheel", "pip cannot download tiny-engine==2.0"),
    ],
)
def test_a_forced_backend_that_fails_is_not_replaced(
    repository: Repository, tiny_repo: TinyRepo, build: Build, monkeypatch: pytest.MonkeyPatch, backend: str, what: str
):
    monkeypatch.setenv("SOURCEPANEL_BACKEND", backend)
    able = repository if backend == "checkout" else repository.model_copy(update={"checkout": tiny_repo.path})
    with pytest.raises(SnapshotUnavailable, match=what):
        build(able)


def test_forcing_the_clone_tries_again_what_failed_a_short_while_ago(
    repository: Repository, build: Build, monkeypatch: pytest.MonkeyPatch
):
    for _ in range(2):
        with pytest.raises(SnapshotUnavailable) as error:
            build(repository)
    assert "tried a short while ago" in str(error.value)
    monkeypatch.setenv("SOURCEPANEL_BACKEND", "clone")
    with pytest.raises(SnapshotUnavailable) as error:
        build(repository)
    assert "tried a short while ago" not in str(error.value)


def test_an_unknown_backend_is_named(repository: Repository, build: Build, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOURCEPANEL_BACKEND", "zip")
    with pytest.raises(ConfigError, match="BACKEND=zip: no such backend; use one of checkout, clone, wheel"):
        build(repository)


def test_when_nothing_works_every_reason_and_the_cure_are_told(repository: Repository, build: Build):
    with pytest.raises(SnapshotUnavailable) as error:
        build(repository)
    for part in ("no source for tiny at v2.0", "SOURCEPANEL_CHECKOUT", "not reachable", "pip cannot download"):
        assert part in str(error.value)
    with pytest.raises(SnapshotUnavailable, match="no wheel configured"):
        build(repository.model_copy(update={"wheel": None}))


def clone_of(repository: Repository, repo: TinyRepo) -> Repository:
    return repository.model_copy(update={"url": repo.path.as_uri()})


def checkout_of(repository: Repository, repo: TinyRepo) -> Repository:
    return repository.model_copy(update={"checkout": repo.path})


def wheel_of(repository: Repository, repo: TinyRepo) -> Repository:
    return repository


BACKENDS = [checkout_of, clone_of, wheel_of]


@pytest.mark.parametrize("pin", BACKENDS)
def test_each_backend_is_held_against_the_lock(
    repository: Repository, tiny_repo: TinyRepo, no_index: NoIndex, tiny_wheel: Path, build: Build, pin
):
    """Each linked file in turn gets another id in the lock, and is refused by name; the others read."""
    no_index(tiny_wheel.parent)
    repository = pin(repository, tiny_repo)
    held = set(build(repository, **tiny_repo.blobs).list())
    assert len(held) >= len(wheel_files())
    for path in sorted(held):
        other = "0" * 40
        snapshot = build(repository, **{**tiny_repo.blobs, path: other})
        with pytest.raises(PinMismatch) as error:
            snapshot.read(path)
        for part in (path, other, tiny_repo.blobs[path], "sourcepanel lock"):
            assert part in str(error.value)
        assert snapshot.blob_id(path) == tiny_repo.blobs[path]
        for same in held - {path}:
            assert snapshot.read(same) == tiny_repo.files[same]


def test_a_wheel_of_other_content_is_refused_by_the_lock(
    repository: Repository, tiny_repo: TinyRepo, no_index: NoIndex, tmp_path: Path, build: Build
):
    """In order in itself, RECORD and all, but not the pin: another release under the same version."""
    files = {**wheel_files(), TRAINING: wheel_files()[TRAINING].replace(b"0.9", b"0.8")}
    no_index(build_wheel(tmp_path / "wheels", files).parent)
    snapshot = build(repository, **tiny_repo.blobs)
    with pytest.raises(PinMismatch, match=TRAINING):
        snapshot.read(TRAINING)
    assert build(repository).read(TRAINING) == files[TRAINING], "a file that is not linked is not in the lock"


def test_a_full_cache_stops_neither_silently_nor_with_a_traceback(
    repository: Repository, tiny_repo: TinyRepo, cache: Path, build: Build
):
    cache.write_text("a file where the cache should be")
    with pytest.raises(SnapshotUnavailable, match=r"(?s)cannot use the cache.*cannot use the cache.*"):
        build(clone_of(repository, tiny_repo))


@pytest.mark.parametrize("pin", BACKENDS)
def test_no_backend_leaves_the_tree(
    repository: Repository, tiny_repo: TinyRepo, no_index: NoIndex, tiny_wheel: Path, build: Build, pin
):
    no_index(tiny_wheel.parent)
    snapshot = build(pin(repository, tiny_repo))
    for path in BAD_PATHS:
        with pytest.raises(PathNotFound):
            snapshot.read(path)
