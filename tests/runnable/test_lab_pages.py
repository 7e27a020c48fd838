"""The lab's pages show every script and every recording, and name only rules that can be broken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runnable.demo import scripts
from runnable.record import MEGATRON, RECORDINGS, TRACES

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = (ROOT / "docs/lab/scripts.md").read_text(encoding="utf-8")
REAL = (ROOT / "docs/lab/megatron.md").read_text(encoding="utf-8")
INCLUDED = re.compile(r'--8<-- "([^"]+)"')
_PARTS = re.split(r"^## .*\{#(.+)\}$", SCRIPTS, flags=re.MULTILINE)[1:]
SECTIONS = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))
"""Anchor → the text below that heading."""


@pytest.mark.parametrize("chapter", sorted(scripts()))
def test_a_section_shows_what_was_recorded_and_breaks_what_can_be_broken(chapter):
    text = SECTIONS[f"ch{chapter}"]
    assert {f"{n}.txt" for n in RECORDINGS if n.startswith(f"ch{chapter}")} <= set(INCLUDED.findall(text))
    source = scripts()[chapter].read_text(encoding="utf-8")
    rules = re.findall(r"--break (\w+)", text)
    assert rules
    assert all(f'"{rule}": "' in source for rule in rules)
    for command in re.findall(r"^\$ python -m runnable\.demo (\S+)", text, flags=re.MULTILINE):
        assert command == chapter


def test_every_section_has_a_script():
    assert [name for name in SECTIONS if name.startswith("ch")] == [f"ch{chapter}" for chapter in sorted(scripts())]


def test_the_real_megatrons_recordings_are_shown():
    assert {f"{name}.txt" for name in MEGATRON} <= set(INCLUDED.findall(REAL))


def test_what_is_included_is_there():
    for name in INCLUDED.findall(SCRIPTS + REAL):
        assert (TRACES / name).is_file(), name
