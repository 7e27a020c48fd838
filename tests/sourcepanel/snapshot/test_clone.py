"""The cached shallow clone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sourcepanel.config import Repository
from sourcepanel.errors import SnapshotUnavailable
from sourcepanel.snapshot import cache as cache_module
from sourcepanel.snapshot import git as git_module
from sourcepanel.snapshot.cache import Cache
from sourcepanel.snapshot.git import GitSnapshot, open_clone
from tests.support.tiny import TinyRepo, git


@pytest.fixture
def served(repository: Repository, tiny_repo: TinyRepo) -> Repository:
    """The pin, its server being the tiny repository itself."""
    return repository.model_copy(update={"url": tiny_repo.path.as_uri()})


def clone(repository: Repository, cache: Path, told: list[str], *, retry: bool = False) -> GitSnapshot:
    return open_clone(repository, cache=Cache(cache, notify=told.append), retry=retry)


@pytest.mark.parametrize("allow_filter", ["true", "false"])
def test_fetches_exactly_the_pinned_commit(
    served: Repository, tiny_repo: TinyRepo, cache: Path, told: list[str], allow_filter: str
):
    tiny_repo.git("config", "uploadpack.allowFilter", allow_filter)
    snapshot = clone(served, cache, told)
    assert {path: snapshot.read(path) for path in snapshot.list()} == tiny_repo.files
    assert git(snapshot.folder, "rev-list", "--all") == tiny_repo.commit, "no other commit comes along"
    assert told == [f"fetching tiny at v2.0 from {git_module._host(served.url)}"]
    assert [path.name for path in cache.iterdir() if path.name.startswith(".")] == []


def test_the_second_build_asks_no_server(served: Repository, tiny_repo: TinyRepo, cache: Path, told: list[str]):
    clone(served, cache, told)
    tiny_repo.path.rename(tiny_repo.path.parent / "gone")
    snapshot = clone(served, cache, told)
    assert {path: snapshot.read(path) for path in snapshot.list()} == tiny_repo.files
    assert len(told) == 1


def test_a_file_left_on_the_server_is_fetched_when_read(
    served: Repository, tiny_repo: TinyRepo, cache: Path, told: list[str]
):
    big = bytes(range(256)) * 8192
    (tiny_repo.path / "big.bin").write_bytes(big)
    tiny_repo.git("add", "big.bin")
    tiny_repo.git("commit", "--quiet", "--message", "Big")
    tiny_repo.git("config", "uploadpack.allowFilter", "true")
    pin = served.model_copy(update={"commit": tiny_repo.git("rev-parse", "HEAD")})
    snapshot = clone(pin, cache, told)
    missing = git(snapshot.folder, "rev-list", "--objects", "--missing=print", "pin")
    assert f"?{snapshot.blob_id('big.bin')}" in missing.splitlines()
    assert snapshot.read("big.bin") == big
    other = clone(pin, cache.parent / "other", told)
    tiny_repo.path.rename(tiny_repo.path.parent / "gone")
    with pytest.raises(SnapshotUnavailable, match=r"cannot give big\.bin"):
        other.read("big.bin")
    assert other.read("LICENSE") == tiny_repo.files["LICENSE"]


def test_a_commit_the_server_lacks(served: Repository, cache: Path, told: list[str]):
    absent = served.model_copy(update={"commit": "0123456789" * 4})
    with pytest.raises(SnapshotUnavailable, match="did not give the pinned commit"):
        clone(absent, cache, told)
    assert not (cache / "tiny-012345678901.git").exists()
    assert not list(cache.glob(".tiny*"))


@pytest.fixture
def silent_server() -> Iterator[tuple[str, list[int]]]:
    """Takes connections and never answers: a firewall that swallows, or a server that hangs."""
    taken: list[int] = []
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return
                taken.append(1)

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/tiny", taken
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in kept:
        connection.close()


def test_a_silent_server_is_given_up_and_remembered(
    repository: Repository,
    cache: Path,
    told: list[str],
    silent_server: tuple[str, list[int]],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(git_module, "PROBE_TIMEOUT", 0.5)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    url, taken = silent_server
    pin = repository.model_copy(update={"url": url})
    with pytest.raises(SnapshotUnavailable, match=r"127\.0\.0\.1 not reachable \(no answer in time\)"):
        clone(pin, cache, told)
    assert len(taken) == 1
    with pytest.raises(SnapshotUnavailable, match=r"127\.0\.0\.1 not reachable \(tried a short while ago\)"):
        clone(pin, cache, told)
    assert len(taken) == 1, "the second build does not try"
    with pytest.raises(SnapshotUnavailable, match="no answer in time"):
        clone(pin, cache, told, retry=True)
    assert len(taken) == 2, "unless it is asked to"
    monkeypatch.setattr(cache_module, "RETRY_AFTER", 0.0)
    with pytest.raises(SnapshotUnavailable, match="no answer in time"):
        clone(pin, cache, told)
    assert len(taken) == 3, "or the failure is old"
    assert not list(cache.glob(".tiny*"))


def test_another_commit_or_a_clone_in_the_cache_is_not_held_back(
    served: Repository, tiny_repo: TinyRepo, cache: Path, told: list[str]
):
    entry = clone(served, cache, told).folder.name
    Cache(cache, notify=told.append).remember_failure(entry, "server not reachable")
    assert clone(served, cache, told).commit == tiny_repo.commit
    older = served.model_copy(update={"commit": tiny_repo.commits["v1.0"], "ref": "v1.0"})
    assert "tiny/web/escape.py" not in clone(older, cache, told).list()


def test_progress_is_told_now_and_then(
    served: Repository, cache: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(git_module, "_TELL_EVERY", -1.0)
    clone(served, cache, told)
    assert any(line.startswith("fetching tiny: ") and "100%" in line for line in told)


def test_a_damaged_clone_says_what_to_remove(served: Repository, tiny_repo: TinyRepo, cache: Path, told: list[str]):
    folder = clone(served, cache, told).folder
    for pack in (folder / "objects").rglob("*"):
        if pack.is_file():
            pack.chmod(0o644)
            pack.unlink()
    tiny_repo.path.rename(tiny_repo.path.parent / "gone")
    with pytest.raises(SnapshotUnavailable, match=r"does not hold commit .*remove .* and build again"):
        clone(served, cache, told)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/NVIDIA/Megatron-LM", "GitHub"),
        ("https://git.example.org/a/b", "git.example.org"),
        ("/srv/mirror", "/srv/mirror"),
    ],
)
def test_the_server_has_a_name_people_know(url: str, name: str):
    assert git_module._host(url) == name
