"""The fixtures themselves: what other tests lean on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sourcepanel.config import Config
from sourcepanel.snapshot.base import git_blob_id
from tests.support import tree
from tests.support.golden import Golden
from tests.support.tiny import BRANCH, TinyRepo


def test_repo_holds_the_tree_at_its_pin(tiny_repo: TinyRepo):
    rows = [row.split("\t") for row in tiny_repo.git("ls-tree", "-r", "-z", tiny_repo.commit).rstrip("\0").split("\0")]
    kinds = {path: meta.split() for meta, path in rows}
    regular = {path: blob for path, (mode, _, blob) in kinds.items() if mode in ("100644", "100755")}
    assert regular == tiny_repo.blobs
    assert {path for path, (mode, *_) in kinds.items() if mode == "120000"} == set(tree.SYMLINKS)
    assert kinds[tree.SUBMODULE][0] == "160000"
    assert kinds[tree.EXECUTABLE][0] == "100755"


def test_repo_ids_are_the_same_everywhere(tiny_repo: TinyRepo):
    assert tiny_repo.commit == "af5c6bfebf420b0c3282d43b2b65836555ea2e64"
    assert tiny_repo.git("rev-parse", BRANCH) == tiny_repo.commit
    assert tiny_repo.git("rev-parse", "HEAD") == tiny_repo.commits["v3.0"] != tiny_repo.commit


def test_blob_id_is_gits(tiny_repo: TinyRepo):
    assert git_blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert git_blob_id(tree.TRAINING) == tiny_repo.git("rev-parse", f"{tiny_repo.commit}:tiny/training.py")


def test_config_names_the_repo(tiny_config: Config, tiny_repo: TinyRepo):
    (repository,) = tiny_config.repositories
    assert (repository.commit, repository.checkout) == (tiny_repo.commit, tiny_repo.path)


def test_golden_fails_with_a_diff_and_updates(tmp_path: Path):
    compare, update = Golden(tmp_path, update=False), Golden(tmp_path, update=True)
    with pytest.raises(pytest.fail.Exception, match="no golden file"):
        compare("a/b.html", "one\r\n")
    update("a/b.html", "one\r\n")
    compare("a/b.html", "one\r\n")
    with pytest.raises(pytest.fail.Exception, match=r"(?s)-one\r\n\+one\n"):
        compare("a/b.html", "one\n")
