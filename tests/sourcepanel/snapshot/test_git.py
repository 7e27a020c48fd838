"""The local checkout: only the objects of the pinned commit count."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sourcepanel.config import Repository
from sourcepanel.errors import PathNotFound, PinMismatch, SnapshotUnavailable
from sourcepanel.snapshot.git import GitSnapshot, open_checkout
from tests.support import tree
from tests.support.tiny import TinyRepo, git


@pytest.fixture
def snapshot(repository: Repository, tiny_repo: TinyRepo) -> GitSnapshot:
    return open_checkout(repository, tiny_repo.path, name="tiny")


def contents(snapshot: GitSnapshot) -> dict[str, bytes]:
    return {path: snapshot.read(path) for path in snapshot.list()}


def test_gives_every_regular_file_and_nothing_else(snapshot: GitSnapshot, tiny_repo: TinyRepo):
    assert contents(snapshot) == tiny_repo.files
    assert list(snapshot.list()) == sorted(snapshot.list())
    assert {path: snapshot.blob_id(path) for path in snapshot.list()} == tiny_repo.blobs
    assert (snapshot.commit, snapshot.origin, snapshot.complete) == (tiny_repo.commit, "local checkout tiny", True)


@pytest.mark.parametrize("path", [*tree.SYMLINKS, tree.SUBMODULE, "tiny/outside/passwd", "tiny/loop/README.md"])
def test_symlinks_and_submodules_are_no_files(snapshot: GitSnapshot, path: str):
    assert path not in snapshot.list()
    with pytest.raises(PathNotFound):
        snapshot.read(path)


BAD_PATHS = [
    "../../etc/passwd",
    "/etc/passwd",
    "tiny/../../../etc/passwd",
    "tiny/../README.md",
    "./README.md",
    "tiny//training.py",
    "tiny/training.py/",
    "tiny",
    "",
    ".",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/etc/passwd",
    "..\\..\\etc\\passwd",
    "tiny\\training.py",
    "C:\\Windows\\win.ini",
    "README.md\0",
    "tiny/training.py\0.md",
    "tiny/TRAINING.py",
    "HEAD",
    "\ud800",
    "tiny/training.py\n",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_outside_the_tree_is_not_found(snapshot: GitSnapshot, path: str):
    with pytest.raises(PathNotFound) as error:
        snapshot.read(path)
    assert error.value.path == path
    with pytest.raises(PathNotFound):
        snapshot.blob_id(path)


def dirty(repo: TinyRepo) -> None:
    (repo.path / "tiny/training.py").write_text("changed\n")
    (repo.path / "untracked.py").write_text("new\n")
    repo.git("add", "tiny/training.py")


def moved(repo: TinyRepo) -> None:
    repo.git("checkout", "--quiet", "--force", "v1.0")


def emptied(repo: TinyRepo) -> None:
    for path in repo.path.iterdir():
        if path.name != ".git" and path.is_file():
            path.unlink()
    (repo.path / ".git/index").unlink()


def replaced(repo: TinyRepo) -> None:
    repo.git("replace", repo.commits["v2.0"], repo.commits["v1.0"])


def packed(repo: TinyRepo) -> None:
    repo.git("gc", "--quiet")


def tag_moved(repo: TinyRepo) -> None:
    repo.git("tag", "--force", "v2.0", "v1.0")


@pytest.mark.parametrize("change", [dirty, moved, emptied, replaced, packed, tag_moved])
def test_the_state_of_the_checkout_does_not_matter(repository: Repository, tiny_repo: TinyRepo, change):
    change(tiny_repo)
    assert contents(open_checkout(repository, tiny_repo.path, name="tiny")) == tiny_repo.files


def bare(repo: TinyRepo) -> Path:
    git(repo.path.parent, "clone", "--quiet", "--mirror", str(repo.path), "mirror")
    return repo.path.parent / "mirror"


def without_config(repo: TinyRepo) -> Path:
    path = bare(repo)
    (path / "config").unlink()
    return path


def worktree(repo: TinyRepo) -> Path:
    repo.git("worktree", "add", "--quiet", "../linked", "v1.0")
    return repo.path.parent / "linked"


@pytest.mark.parametrize("make", [bare, without_config, worktree])
def test_any_kind_of_clone_will_do(repository: Repository, tiny_repo: TinyRepo, make):
    assert contents(open_checkout(repository, make(tiny_repo), name="clone")) == tiny_repo.files


def test_inside_a_git_hook_the_right_repository_is_read(
    repository: Repository, tiny_repo: TinyRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    git(tmp_path, "init", "--quiet", "other")
    other = tmp_path / "other/.git"
    monkeypatch.setenv("GIT_DIR", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / "objects"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert contents(open_checkout(repository, tiny_repo.path, name="tiny")) == tiny_repo.files


def test_a_missing_commit_says_what_to_fetch(repository: Repository, tiny_repo: TinyRepo):
    absent = repository.model_copy(update={"commit": "0123456789" * 4})
    with pytest.raises(SnapshotUnavailable) as error:
        open_checkout(absent, tiny_repo.path, name="../tiny")
    for part in ("local checkout ../tiny does not hold commit 0123456789", "git -C", "fetch origin tag v2.0"):
        assert part in str(error.value)


def test_a_commit_id_that_names_a_blob_is_refused(repository: Repository, tiny_repo: TinyRepo):
    blob = repository.model_copy(update={"commit": tiny_repo.blobs["LICENSE"]})
    with pytest.raises(SnapshotUnavailable):
        open_checkout(blob, tiny_repo.path, name="tiny")


def test_a_folder_that_is_no_repository_is_refused_even_inside_one(repository: Repository, tiny_repo: TinyRepo):
    with pytest.raises(SnapshotUnavailable, match="is not a git repository"):
        open_checkout(repository, tiny_repo.path / "tiny", name="tiny/tiny")
    with pytest.raises(SnapshotUnavailable, match="no local checkout at gone"):
        open_checkout(repository, tiny_repo.path / "gone", name="gone")


def test_a_changed_object_is_refused_by_name(repository: Repository, tiny_repo: TinyRepo):
    path, other = "tiny/training.py", tiny_repo.blobs["README.md"]
    objects = tiny_repo.path / ".git/objects"
    place = objects / tiny_repo.blobs[path][:2] / tiny_repo.blobs[path][2:]
    place.chmod(0o644)
    place.write_bytes((objects / other[:2] / other[2:]).read_bytes())
    snapshot = open_checkout(repository, tiny_repo.path, name="tiny")
    with pytest.raises((PinMismatch, SnapshotUnavailable), match=path):
        snapshot.read(path)
    assert snapshot.read("LICENSE") == tiny_repo.files["LICENSE"], "one bad object must not spoil the others"


def test_a_lost_object_is_told_by_name_and_the_rest_still_reads(repository: Repository, tiny_repo: TinyRepo):
    blob = tiny_repo.blobs["README.md"]
    (tiny_repo.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    snapshot = open_checkout(repository, tiny_repo.path, name="tiny")
    with pytest.raises(SnapshotUnavailable, match=r"cannot give README\.md"):
        snapshot.read("README.md")
    assert snapshot.read("LICENSE") == tiny_repo.files["LICENSE"]


def test_threads_read_what_they_asked_for(snapshot: GitSnapshot, tiny_repo: TinyRepo):
    paths = list(snapshot.list()) * 20
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(snapshot.read, paths))
    assert read == [tiny_repo.files[path] for path in paths]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_its_own_pipe(snapshot: GitSnapshot, tiny_repo: TinyRepo):
    snapshot.read("LICENSE")
    parents = snapshot._repo()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            own = snapshot.read("README.md") == tiny_repo.files["README.md"] and snapshot._repo() is not parents
            os.write(write, b"1" if own else b"0")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1) == b"1"
    os.close(read)
    os.close(write)
    assert snapshot.read("pretrain.py") == tiny_repo.files["pretrain.py"]


def test_without_git_it_says_so(tiny_repo: TinyRepo, tmp_path: Path):
    script = (
        "import sys; from pathlib import Path; from sourcepanel.errors import SnapshotUnavailable\n"
        "from sourcepanel.snapshot.git import GitSnapshot\n"
        "try: GitSnapshot(Path(sys.argv[1]), commit='0' * 40, origin='x', fix='y')\n"
        "except SnapshotUnavailable as error: print(error)"
    )
    env = {**os.environ, "PATH": str(tmp_path)}
    command = [sys.executable, "-c", script, str(tiny_repo.path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("git is not installed")
