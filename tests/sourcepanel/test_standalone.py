"""The extension by its name, in a plain Python-Markdown that knows nothing of the site."""

from __future__ import annotations

import logging
import tomllib
from pathlib import Path

import pytest
from markdown import Markdown

from sourcepanel.config import Config
from sourcepanel.errors import ConfigError
from sourcepanel.lock import write_lock
from sourcepanel.project import Project
from sourcepanel.relock import relock

NAME = "sourcepanel.standalone"
NOTE = "---\ntitle: T\n---\n\n# Title\n\n## Two\n\n`tiny/training.py::train_step` and `pretrain.py::main`\n"


@pytest.fixture
def config(tiny_config: Config) -> Config:
    docs = tiny_config.path(tiny_config.docs)
    (docs / "a.md").write_text(NOTE, encoding="utf-8")
    (docs / "b.md").write_text("# Other\n", encoding="utf-8")
    made = relock(Project.open(tiny_config.root, notify=print))
    assert made.lock is not None
    write_lock(made.lock, tiny_config.path(tiny_config.lock))
    return tiny_config


def convert(config: Config, text: str, **options: str) -> str:
    md = Markdown(
        extensions=["toc", NAME], extension_configs={NAME: {"config": str(config.root / "sourcepanel.toml"), **options}}
    )
    return md.convert(text)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage().partition(" [")[0] for r in caplog.records if r.levelno >= logging.WARNING]


def test_links_are_made_and_a_good_page_is_quiet(config, caplog):
    html = convert(config, NOTE.partition("---\n\n")[2])
    assert html.count("data-src=") == 2
    assert "已校验 @ v2.0" in html
    assert told(caplog) == []
    assert "verified @ v2.0" in convert(config, NOTE, language="en")


def test_a_finding_names_page_and_line(config, caplog):
    page = config.path(config.docs) / "a.md"
    page.write_text(NOTE.replace("::main", "::mian"), encoding="utf-8")
    html = convert(config, page.read_text(encoding="utf-8").partition("---\n\n")[2])
    assert html.count("data-src=") == 1
    (message,) = told(caplog)
    assert message.startswith("a.md:9: pretrain.py defines no mian; did you mean main (L6-L7)?")


def test_a_text_that_is_no_page_is_checked_without_the_lock(config, caplog):
    html = convert(config, "a fragment: `pretrain.py::main`, `pretrain.py::gone`")
    assert html.count("data-src=") == 1
    (message,) = told(caplog)
    assert message.startswith("(unknown page):1: pretrain.py defines no gone")


def test_one_converter_may_read_many_pages(config, caplog):
    md = Markdown(extensions=["toc", NAME], extension_configs={NAME: {"config": str(config.root / "sourcepanel.toml")}})
    for _ in range(2):
        assert md.reset().convert(NOTE).count("data-src=") == 2
        assert "data-src" not in md.reset().convert("# Other")
    assert told(caplog) == []


def test_a_missing_configuration_is_told(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        Markdown(extensions=[NAME], extension_configs={NAME: {"config": str(tmp_path / "sourcepanel.toml")}})


def test_the_name_is_registered():
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"]["markdown.extensions"]["sourcepanel"] == f"{NAME}:makeExtension"
