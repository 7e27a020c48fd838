"""`sourcepanel.toml`: what is wrong with it is told with file, line and the nearest key."""

from __future__ import annotations

from pathlib import Path

import pytest

from sourcepanel.config import load_config
from sourcepanel.diagnostics import Code, Level
from sourcepanel.errors import ConfigError
from tests.support.tiny import TinyRepo, write_config


@pytest.fixture
def path(tiny_repo: TinyRepo, tmp_path: Path) -> Path:
    return write_config(tmp_path / "project", tiny_repo, extra='docs = "docs"\n\n[levels]\nother-ref = "info"\n')


def test_read(path: Path):
    config = load_config(path)
    assert config == load_config(path.parent)
    assert config.root == path.parent.resolve()
    assert config.level(Code.OTHER_REF) is Level.INFO
    assert config.level(Code.MISSING_FILE) is Level.WARNING
    assert config.path(config.docs) == path.parent / "docs"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('docs = "docs"', 'docz = "docs"', 1, "unknown key docz; did you mean docs?"),
        ('ref = "v2.0"', 'reff = "v2.0"', 9, "unknown key repositories.0.reff; did you mean ref?"),
        ("other-ref", "other-reff", 4, "unknown key levels.other-reff; did you mean other-ref?"),
        ('"info"', '"loud"', 4, "levels.other-ref"),
        ("[repositories.wheel]", "[repositories.weel]", 17, "unknown key repositories.0.weel; did you mean wheel?"),
        ('holder = "Tiny Authors"', 'owner = "Tiny Authors"', 22, "owner"),
        ('refs = ["main"]', 'refs = "main"', 15, "repositories.0.aliases.0.refs"),
        ('package = "tiny-engine"', "", 17, "package"),
        ('docs = "docs"', "docs = ", 1, "not valid TOML"),
        ('docs = "docs"', "qqqqqqqq = 1", 1, "unknown key qqqqqqqq"),
        ('name = "tiny"', 'name = "ti/ny"', 7, "repositories.0.name"),
        ("example/tiny", "example/tiny/", 8, "write it without the slash at its end"),
        ("https://github.com/someone", "https://[::1", 14, "repositories.0.aliases.0.url"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(path: Path, old: str, new: str, line: int, message: str):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    first = [said for said in str(caught.value).splitlines() if message in said]
    assert first, str(caught.value)
    assert first[0].startswith(f"{path}:{line}: "), first[0]


def test_two_repositories_have_two_names(path: Path):
    text = path.read_text()
    path.write_text(text + text[text.index("[[repositories]]") :])
    with pytest.raises(ConfigError, match="two have the name tiny"):
        load_config(path)


@pytest.mark.parametrize("name", ["dosc", "sourcepanel.toml"])
def test_pages_are_never_looked_for_in_no_folder(path: Path, name: str):
    """Else a lock written then would forget every page."""
    path.write_text(path.read_text().replace('docs = "docs"', f'docs = "{name}"'))
    with pytest.raises(ConfigError, match=rf"{name}: no such folder; `docs`"):
        load_config(path).page_names()


def test_a_commit_is_forty_digits(path: Path, tiny_repo: TinyRepo):
    path.write_text(path.read_text().replace(tiny_repo.commit, tiny_repo.commit[:8]))
    with pytest.raises(ConfigError, match=rf"{path}:10: repositories.0.commit"):
        load_config(path)


def test_the_second_repository_has_lines_of_its_own(path: Path, tiny_repo: TinyRepo):
    text = path.read_text()
    second = text[text.index("[[repositories]]") :].replace(tiny_repo.commit, "short")
    path.write_text(text + second)
    line = path.read_text().count("\n", 0, path.read_text().index("short")) + 1
    with pytest.raises(ConfigError, match=rf"{path}:{line}: repositories.1.commit"):
        load_config(path)


def test_no_file_and_no_repository(tmp_path: Path):
    with pytest.raises(ConfigError, match="no such file; run in the folder that holds it, or name it with --config"):
        load_config(tmp_path / "sourcepanel.toml")
    (tmp_path / "sourcepanel.toml").write_text("repositories = []\n")
    with pytest.raises(ConfigError, match=r"sourcepanel.toml:1: repositories"):
        load_config(tmp_path)


def test_not_text(tmp_path: Path):
    (tmp_path / "sourcepanel.toml").write_bytes(b"docs = '\xff'\n")
    with pytest.raises(ConfigError, match=r"sourcepanel.toml: not UTF-8"):
        load_config(tmp_path)
