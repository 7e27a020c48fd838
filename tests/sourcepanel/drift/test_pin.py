"""The pin in `sourcepanel.toml`: three values change, no other byte."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sourcepanel.config import License, Repository, Wheel
from sourcepanel.drift.pin import move_pin
from sourcepanel.errors import DriftError

A, B, C = "a1" * 20, "b2" * 20, "c3" * 20
LICENSE = License(holder="E", name="E", path="LICENSE")
OLD = Repository(name="two", url="u", ref="v1", commit=A, wheel=Wheel(package="two", version="1.0"), license=LICENSE)
NEW = OLD.model_copy(update={"ref": "v2", "commit": B, "wheel": Wheel(package="two", version="2.0")})

OTHER = f'[[repositories]]\nname = "one"\nref = "v1"\ncommit = "{C}"\n[repositories.wheel]\nversion = "1.0"\n'
TABLES = (
    f"# {A} stays here\r\n{OTHER}\n[[repositories]]  # ours\r\nname='two'\nref  =  'v1' # v1\ncommit = \"{A}\"\t\n"
    f'[[repositories.versions]]\nref = "v1"\ncommit = "{A}"\nwheel = "1.0"\n'
    '[repositories.wheel]\r\npackage = "two"\nversion = "1.0"\n[levels]\n'
)
INLINE = (
    f'[[repositories]]\nname = "two"\ncommit = "{A}"\nref = "v1"\n'
    f'versions = [{{ ref = "v1", commit = "{A}", wheel = "1.0" }}]\n'
    'wheel = { version = "1.0", package = "two" } # version = "1.0"\n'
)


def test_tables() -> None:
    made = move_pin(TABLES.encode(), old=OLD, new=NEW, path=Path("x.toml")).decode()
    expected = (
        TABLES.replace("ref  =  'v1' # v1", "ref  =  'v2' # v1")
        .replace(f'commit = "{A}"\t', f'commit = "{B}"\t')
        .replace('package = "two"\nversion = "1.0"', 'package = "two"\nversion = "2.0"')
    )
    assert made == expected


def test_inline_tables() -> None:
    made = move_pin(INLINE.encode(), old=OLD, new=NEW, path=Path("x.toml")).decode()
    assert made == INLINE.replace(f'commit = "{A}"\nref = "v1"', f'commit = "{B}"\nref = "v2"').replace(
        '{ version = "1.0"', '{ version = "2.0"'
    )
    (found,) = tomllib.loads(made)["repositories"]
    assert (found["ref"], found["commit"], found["wheel"]["version"]) == ("v2", B, "2.0")
    assert found["versions"] == tomllib.loads(INLINE)["repositories"][0]["versions"]


def test_there_and_back() -> None:
    for text in (TABLES.encode(), INLINE.encode()):
        there = move_pin(text, old=OLD, new=NEW, path=Path("x.toml"))
        assert move_pin(there, old=NEW, new=OLD, path=Path("x.toml")) == text


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('ref = "v1"', 'ref = "\\u0076\\u0031"'),
        ('ref = "v1"', '"ref" = "v1"'),
        ('version = "1.0", ', 'version = """1.0""", '),
    ],
)
def test_an_unusual_spelling_is_told_and_not_guessed(was: str, now: str) -> None:
    text = INLINE.replace(was, now, 1)
    assert text != INLINE
    with pytest.raises(DriftError, match="cannot find where the pin of two is written"):
        move_pin(text.encode(), old=OLD, new=NEW, path=Path("x.toml"))
