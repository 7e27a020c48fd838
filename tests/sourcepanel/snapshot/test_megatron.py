"""The real pin: what the wheel holds is what the clone holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from sourcepanel.config import Repository, load_config
from sourcepanel.snapshot.base import git_blob_id
from sourcepanel.snapshot.cache import Cache
from sourcepanel.snapshot.git import open_checkout
from sourcepanel.snapshot.wheel import WheelSnapshot, open_wheel

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def pin() -> Repository:
    return load_config(ROOT).repositories[0]


@pytest.fixture(scope="module")
def wheel(pin: Repository, tmp_path_factory: pytest.TempPathFactory) -> WheelSnapshot:
    """Fetched by the pip of this machine, with its own settings (module scope: before `no_index`)."""
    return open_wheel(pin, cache=Cache(tmp_path_factory.mktemp("cache"), notify=print))


def test_the_wheel_holds_the_packages_the_notes_read(wheel: WheelSnapshot):
    listed = set(wheel.list())
    assert {"megatron/training/training.py", "megatron/core/parallel_state.py"} <= listed
    assert "pretrain_gpt.py" not in listed
    assert all(git_blob_id(wheel.read(path)) == wheel.blob_id(path) for path in listed)


@pytest.mark.clone
def test_the_wheel_is_byte_for_byte_the_clone(
    pin: Repository, wheel: WheelSnapshot, megatron_checkout: Path, record_property
):
    clone = open_checkout(pin, megatron_checkout, name="clone")
    both = set(clone.list()) & set(wheel.list())
    differ = [path for path in sorted(both) if clone.blob_id(path) != wheel.blob_id(path)]
    record_property("both", len(both))
    assert differ == []
    assert set(wheel.list()) <= set(clone.list())
    assert len(both) > 400
    assert all(clone.read(path) == wheel.read(path) for path in both)
