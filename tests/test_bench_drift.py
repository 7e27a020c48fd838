"""bench/drift.py: that answers are judged as the table says, and that the simpler ways do what their names claim."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import drift as bench
from sourcepanel.drift.judge import GONE, Placement
from tests.sourcepanel.drift.site import DATA, LOOP, NEXT, Site, build_site

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return build_site(tmp_path, {"note.md": b"# N\n"})


def number(line: str, text: str) -> int:
    return text[: text.index(line)].count("\n") + 1


def truth(expect: str, path: str | None, start: int | None, end: int | None, **more: Any) -> dict[str, Any]:
    place = {"to_path": path, "to_start": start, "to_end": end}
    return {"expect": expect, "accept": [expect], "tol": [0, 0], **place, **more}


def answer(status: str, path: str | None = "a.py", start: int = 5, end: int = 6) -> Placement:
    return Placement(
        status=status, path=path, start=start, end=end, confidence="certain", method="", overlap=1.0
    )  # fmt: skip


@pytest.mark.parametrize(
    ("right", "given", "ok", "silent"),
    [
        (truth("same", "a.py", 5, 6), answer("same"), 1, 0),
        (truth("same", "a.py", 4, 6), answer("same"), 0, 1),
        (truth("same", "a.py", 4, 6, tol=[1, 0]), answer("same"), 1, 0),
        (truth("same", "b.py", 5, 6), answer("same"), 0, 1),
        (truth("same", "a.py", 5, 6), answer("changed"), 0, 0),
        (truth("changed", "a.py", 5, 6), answer("same"), 0, 1),
        (truth("same", "a.py", 5, 6), GONE, 0, 0),
        (truth("gone", None, None, None), GONE, 1, 0),
        (truth("gone", None, None, None, accept=["gone", "changed"]), answer("changed"), 1, 0),
        (truth("gone", None, None, None), answer("same"), 0, 1),
    ],
)
def test_an_answer_counts_as_the_table_says(right: dict[str, Any], given: Placement, ok: int, silent: int) -> None:
    score = bench.Score()
    score.count(right, given)
    assert (score.ok, score.silent) == (ok, silent)


@pytest.mark.parametrize(
    ("name", "inside_edited", "in_renamed_file"),
    [("naive", False, False), ("git diff", True, True), ("symbol + offset", True, False), ("blame", True, True),
     ("two snapshots", True, True), ("history", True, True)],
)  # fmt: skip
def test_each_way_follows_what_its_name_claims(
    site: Site, name: str, inside_edited: bool, in_renamed_file: bool
) -> None:
    """A line below an insertion, and a line of a file that was renamed."""
    pair = bench._pair(site.clone, "v1", "v2")
    line, there = number("    report(total)", LOOP), number("    report(total)", NEXT)
    read = number("    with open", DATA)
    with bench.METHODS[name](*pair) as place:
        found = place("engine/loop.py", line, line)
        assert ((found.status, found.start) == ("same", there)) is inside_edited
        moved = place("engine/data.py", read, read)
        assert ((moved.path, moved.start) == ("engine/io/data.py", read)) is in_renamed_file
        assert place("engine/loop.py", number("def old_way", LOOP), number("def old_way", LOOP)).status != "same"


def test_the_program_measures_and_prints(site: Site, tmp_path: Path) -> None:
    line, there = number("    report(total)", LOOP), number("    report(total)", NEXT)
    case = {"id": 1, "from_ref": "v1", "to_ref": "v2", "path": "engine/loop.py", "start": line, "end": line}
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(case | truth("same", "engine/loop.py", there, there)) + "\n")
    before = (ROOT / "bench/RESULTS.md").read_bytes()
    command = [sys.executable, ROOT / "bench/drift.py", cases, "--source", site.clone, "--references", "5", "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=_environment())
    assert done.returncode == 0, done.stderr
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in done.stdout.splitlines() if "|" in line}
    assert rows["history"][1:5] == ["100.0", "100.0", "100.0", "0"]
    assert rows["naive"][1] == "0.0"
    assert (ROOT / "bench/RESULTS.md").read_bytes() == before


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}
