"""How versions are named, and which two trees are opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from sourcepanel.config import Config, Version, load_config
from sourcepanel.drift.relocate import Relocator
from sourcepanel.drift.versions import Move, at_version, find_version, known_versions, open_move
from sourcepanel.errors import ConfigError, PinMismatch, SnapshotUnavailable
from sourcepanel.snapshot import git_blob_id
from tests.support import tree
from tests.support.tiny import TinyRepo, build_wheel, wheel_files, write_config


@pytest.fixture
def config(tiny_repo: TinyRepo, tmp_path: Path) -> Config:
    """v3.0 is listed, with its wheel; v1.0 is not."""
    path = write_config(tmp_path / "project", tiny_repo)
    more = f'[[repositories.versions]]\nref = "v3.0"\ncommit = "{tiny_repo.commits["v3.0"]}"\nwheel = "3.0"\n'
    path.write_text(path.read_text() + more)
    return load_config(path)


def move(config: Config, to: str, **options: object) -> Move:
    (repository,) = config.repositories
    return open_move(repository, to, root=config.root, cache=config.cache_dir, notify=lambda line: None, **options)


def test_the_pin_and_the_listed_versions_are_known(config: Config, tiny_repo: TinyRepo) -> None:
    (repository,) = config.repositories
    assert [version.ref for version in known_versions(repository)] == ["v2.0", "v3.0"]
    commit = tiny_repo.commits["v3.0"]
    for name in ("v3.0", "3.0", commit, commit[:7]):
        assert find_version(repository, name) == repository.versions[0]
    for name in ("v1.0", "3", commit[:6], "", "v2"):
        assert find_version(repository, name) is None
    assert find_version(repository, "2.0").ref == "v2.0"


def test_a_version_without_a_wheel_has_none(config: Config) -> None:
    (repository,) = config.repositories
    there = at_version(repository, Version(ref="x", commit="1" * 40))
    assert (there.ref, there.commit, there.wheel) == ("x", "1" * 40, None)
    assert at_version(repository, repository.versions[0]).wheel.version == "3.0"


@pytest.mark.parametrize("name", ["v1.0", "v3.0", "main", "HEAD~1"])
def test_a_clone_resolves_any_name(config: Config, tiny_repo: TinyRepo, name: str) -> None:
    found = move(config, name)
    assert found.new.commit == tiny_repo.git("rev-parse", f"{name}^{{commit}}")
    assert found.old.commit == tiny_repo.commit
    assert found.version.ref == name
    # What the configuration knows of that commit is kept, however it is called.
    assert found.version.wheel == {"v3.0": "3.0", "main": "3.0", "HEAD~1": "2.0"}.get(name)


def test_source_outranks_the_configured_checkout(config: Config, tiny_repo: TinyRepo, tmp_path: Path) -> None:
    (repository,) = config.repositories
    elsewhere = repository.model_copy(update={"checkout": tmp_path / "nowhere"})
    found = open_move(elsewhere, "v1.0", root=tmp_path, cache=tmp_path, notify=lambda line: None, source=tiny_repo.path)
    assert found.new.commit == tiny_repo.commits["v1.0"]


def test_a_name_that_nothing_knows(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SnapshotUnavailable, match=r"holds no tag, branch or commit v9"):
        move(config, "v9")
    monkeypatch.setenv("SOURCEPANEL_BACKEND", "wheel")
    with pytest.raises(ConfigError, match=r"v1\.0 is no known version of tiny(.|\n)*- v2\.0 \((.|\n)*- v3\.0 \("):
        move(config, "v1.0")


def test_a_clone_that_lacks_a_listed_commit(config: Config) -> None:
    (repository,) = config.repositories
    odd = repository.model_copy(update={"versions": (Version(ref="v4", commit="4" * 40),)})
    with pytest.raises(SnapshotUnavailable, match=f"holds no tag, branch or commit {'4' * 40}"):
        open_move(odd, "v4", root=config.root, cache=config.cache_dir, notify=lambda line: None)


def wheels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip finds tiny-engine 2.0 and 3.0 there, and has no index."""
    build_wheel(folder)
    build_wheel(folder, wheel_files(tree.V3), version="3.0")
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_CONFIG_FILE", "/dev/null"), ("PIP_FIND_LINKS", str(folder))):
        monkeypatch.setenv(name, value)


def test_wheel_to_wheel(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two wheels and no history give what the clone gives, for the files that the wheels hold."""
    with_clone = move(config, "v3.0")
    wheels(tmp_path / "wheels", monkeypatch)
    monkeypatch.setenv("SOURCEPANEL_BACKEND", "wheel")
    found = move(config, "3.0")
    assert (found.old.complete, found.new.complete) == (False, False)
    with (
        Relocator.between(found.old, found.new) as relocator,
        Relocator.between(with_clone.old, with_clone.new, history=False) as truth,
    ):
        assert relocator.history is None
        for path in found.old.list():
            file = truth.old.file(path)
            for line in range(1, len(file.lines) + 1):
                assert relocator.relocate(path, line, line) == truth.relocate(path, line, line), (path, line)


def test_the_old_side_is_held_against_the_lock(config: Config) -> None:
    blobs = {"tiny/training.py": git_blob_id(b"other")}
    found = move(config, "v3.0", blobs=blobs)
    with pytest.raises(PinMismatch):
        found.old.read("tiny/training.py")
    assert found.old.read("LICENSE")


def test_a_git_hook_does_not_redirect_the_scratch_repository(
    config: Config, tiny_repo: TinyRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tiny_repo.git("for-each-ref")
    wheels(tmp_path / "wheels", monkeypatch)
    monkeypatch.setenv("SOURCEPANEL_BACKEND", "wheel")
    found = move(config, "3.0")
    monkeypatch.setenv("GIT_DIR", str(tiny_repo.path / ".git"))
    with Relocator.between(found.old, found.new) as relocator:
        assert relocator.relocate("tiny/training.py", 1, 1).status == "same"
    monkeypatch.delenv("GIT_DIR")
    assert tiny_repo.git("for-each-ref") == before
