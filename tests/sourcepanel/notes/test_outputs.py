"""Whether a note shows what its program printed; and that all it shows is made again by a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from runnable.record import MEGATRON, RECORDINGS
from sourcepanel.diagnostics import DEFAULT_LEVELS, Code, Level
from sourcepanel.notes.outputs import check_outputs, included
from sourcepanel.notes.roadmap import Chapter, Roadmap, Round

DOCS = Path(__file__).resolve().parents[3] / "docs"
CHAPTER = Chapter(number=1, title="T", note="notes/1.md", script="run/ch01.py", record="r")
ROADMAP = Roadmap(rounds=(Round(name="n", title="t", question="q", chapters=(CHAPTER,)),))


def findings(tmp_path: Path, text: str, *, page: str = "notes/1.md", script: bool = True) -> list[Code]:
    (tmp_path / "run").mkdir()
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces/ch01.txt").touch()
    if script:
        (tmp_path / "run/ch01.py").touch()
    found = check_outputs(page, text, roadmap=ROADMAP, traces=tmp_path / "traces", root=tmp_path)
    return [finding.code for finding in found]


@pytest.mark.parametrize(
    "text", ['--8<-- "ch01.txt"', '    ```text\n    --8<-- "ch01.txt"\n    ```', "---8<--- 'ch01.txt:10:20'"]
)
def test_a_note_that_shows_an_output(tmp_path: Path, text: str):
    assert findings(tmp_path, f"# 1\n\n{text}\n") == []


@pytest.mark.parametrize("text", ["", '--8<-- "ch01-comm.svg"', 'as in --8<-- "ch01.txt"', "ch01.txt"])
def test_a_note_that_shows_none_is_told_of_and_never_fails(tmp_path: Path, text: str):
    assert findings(tmp_path, f"# 1\n\n{text}\n") == [Code.NO_OUTPUT]
    assert DEFAULT_LEVELS[Code.NO_OUTPUT] is Level.INFO


def test_a_page_without_a_program_needs_none(tmp_path: Path):
    assert findings(tmp_path, "# 1\n", page="notes/2.md") == []
    (tmp_path / "b").mkdir()
    assert findings(tmp_path / "b", "# 1\n", script=False) == []


def test_every_output_on_a_page_is_recorded_again_by_a_test():
    """`tests/runnable` plays these programs and compares what they write; nothing else may be taken in."""
    compared = {*RECORDINGS, *MEGATRON}
    pages = {page: included(page.read_text(encoding="utf-8")) for page in DOCS.rglob("*.md")}
    outputs = [name for names in pages.values() for name in names]
    assert len(outputs) > 20
    stray = [
        (page.name, name) for page, names in pages.items() for name in names
        if not any(name == f"{run}.txt" or (name.startswith(f"{run}-") and name.endswith(".svg")) for run in compared)
    ]  # fmt: skip
    assert stray == []
