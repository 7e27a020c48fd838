"""Fixtures for every test: a tiny repository, a tiny wheel, a configuration, golden files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from sourcepanel.config import Config, load_config
from tests.support.golden import Golden
from tests.support.tiny import TinyRepo, build_repo, build_wheel, write_config

CHECKOUT = os.environ.get("SOURCEPANEL_CHECKOUT", "")
"""As the person set it; the tests themselves, and what they start, never see it nor any other setting of the engine."""
for _name in [name for name in os.environ if name.startswith("SOURCEPANEL_")]:
    del os.environ[_name]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not CHECKOUT:
        skip = pytest.mark.skip(reason="needs the full history: set SOURCEPANEL_CHECKOUT to a clone of Megatron-LM")
        for item in items:
            if "clone" in item.keywords:
                item.add_marker(skip)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden("page.html", text)` compares with `golden/page.html` beside the test module."""
    return Golden(request.path.parent / "golden", request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def _built_repo(tmp_path_factory: pytest.TempPathFactory) -> TinyRepo:
    return build_repo(tmp_path_factory.mktemp("built") / "tiny")


@pytest.fixture
def tiny_repo(_built_repo: TinyRepo, tmp_path: Path) -> TinyRepo:
    """The test's own copy of the tiny repository, free to be damaged."""
    path = tmp_path / "tiny"
    shutil.copytree(_built_repo.path, path, symlinks=True)
    return TinyRepo(path, _built_repo.commits)


@pytest.fixture
def tiny_wheel(tmp_path: Path) -> Path:
    """A wheel with the `tiny/` part of the pin, alone in its folder (usable as `--find-links`)."""
    return build_wheel(tmp_path / "wheels")


@pytest.fixture
def tiny_config(tiny_repo: TinyRepo, tmp_path: Path) -> Config:
    """A project in `tmp_path/project` whose only repository is the tiny one, at v2.0."""
    return load_config(write_config(tmp_path / "project", tiny_repo))


@pytest.fixture(scope="session")
def megatron_checkout() -> Path:
    """The real clone, for tests marked `clone`."""
    return Path(CHECKOUT.rpartition("=")[2])
