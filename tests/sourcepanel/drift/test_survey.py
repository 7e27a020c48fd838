"""What becomes of each reference of a note, as data, in the terminal, on the report page and on the roadmap."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sourcepanel.config import load_config
from sourcepanel.drift.record import read_record
from sourcepanel.drift.sidebyside import side_by_side
from sourcepanel.errors import DriftError
from sourcepanel.lock import read_lock
from tests.sourcepanel.drift.site import LOOP, NEXT, URL, Site, build_site, lines

BLOB = f"{URL}/blob/v1/engine"
TOTAL = lines("    total = a + b\n    report(total)\n")
LOSSES = lines("        losses.append(loss.item())\n")
LEGACY = lines("    model.legacy_forward()\n    model.legacy_backward()\n")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    folder = f"[d]({URL}/tree/v1/engine) [r]({URL}/blob/v1/README.md)"
    fresh = f"# F\n\n[s]({BLOB}/stay.py#L2-L3) `engine/stay.py::stay` {folder}\n"
    moved = f"# M\n\n[t]({BLOB}/loop.py#{TOTAL}) `engine/loop.py::helper`\n\n[f]({BLOB}/data.py)\n"
    stale = (
        f"# S\n\n[l]({BLOB}/loop.py#{LOSSES})\n`engine/loop.py::Engine.start`\n[g]({BLOB}/loop.py#{LEGACY})\n"
        "`engine/loop.py::LIMIT`\n`engine/data.py::read`\n"
    )
    pages = {"fresh.md": fresh, "moved.md": moved, "stale.md": stale, "none.md": "# Nothing\n"}
    return build_site(tmp_path, {name: text.encode() for name, text in pages.items()})


def data(site: Site, *args: object) -> dict[str, Any]:
    done = site.run("drift", "--to", "v2", "--json", *args)
    assert done.exit_code in (0, 1), done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("switches", [(), ("--no-history",)])
def test_every_state(site: Site, switches: tuple[str, ...]) -> None:
    found = data(site, *switches)
    assert {page: note["state"] for page, note in found["notes"].items()} == {
        "fresh.md": "fresh", "moved.md": "moved", "stale.md": "stale",
    }  # fmt: skip
    states = {each["key"]: (each["state"], each["status"], each["to"], each["sure"]) for each in found["references"]}
    there = f"engine/loop.py#{lines('    total = a + b', text=NEXT)}"
    assert states == {
        "engine/stay.py#L2-L3": ("same", "same", "engine/stay.py#L2-L3", True),
        "engine/stay.py::stay": ("same", "same", "engine/stay.py::stay", True),
        "engine/": ("same", "same", "engine/", True),
        "README.md": ("same", "same", "README.md", True),
        f"engine/loop.py#{TOTAL}": ("moved", "same", f"{there}-L10", True),
        "engine/loop.py::helper": ("moved", "same", "engine/loop.py::helper", True),
        "engine/data.py": ("renamed", "same", "engine/io/data.py", True),
        f"engine/loop.py#{LOSSES}": (
            "changed",
            "changed",
            f"engine/loop.py#{lines('losses.append(', text=NEXT)}",
            False,
        ),
        "engine/loop.py::Engine.start": ("changed", "changed", "engine/loop.py::Engine.start", True),
        f"engine/loop.py#{LEGACY}": ("gone", "gone", None, False),
        "engine/loop.py::LIMIT": ("changed", "changed", "engine/loop.py::LIMIT", True),
        "engine/data.py::read": ("renamed", "same", "engine/io/data.py::read", True),
    }
    assert found["history"] is (switches == ())
    by_key = {each["key"]: each for each in found["references"]}
    start = by_key["engine/loop.py::Engine.start"]
    assert (start["symbol"], start["to_symbol"]) == ("Engine.start(self, speed)", "Engine.start(self, speed, gear=1)")
    assert start["changed_lines"] == [int(lines("    def start")[1:])]
    assert by_key["engine/stay.py#L2-L3"]["line"] == 3
    assert by_key["engine/loop.py::LIMIT"]["line"] == 6


def test_the_exit_code_says_whether_a_note_must_be_read_again(site: Site) -> None:
    assert site.run("drift", "--to", "v2", "moved.md").exit_code == 0
    assert site.run("drift", "--to", "v2").exit_code == 1
    assert site.run("drift", "--to", "v9").exit_code == 2
    assert site.run("drift").exit_code == 2
    assert site.run("drift", "--to", "v2", "--cases", "x").exit_code == 2


def test_the_terminal_shows_the_changed_range_side_by_side(site: Site) -> None:
    said = site.run("drift", "--to", "v2", "stale.md").stdout
    assert re.search(r"losses\.append\(loss\.item\(\)\).*losses\.append\(float", said)
    assert "- Engine.start(self, speed)" in said
    assert "+ Engine.start(self, speed, gear=1)" in said
    assert "helper" not in said
    brief = site.run("drift", "--to", "v2", "--no-diff", "stale.md").stdout
    assert "losses.append(" not in brief
    assert "1 gone" in brief


def test_what_is_wrong_at_the_pin_is_no_drift(site: Site) -> None:
    page = site.root / "docs/stale.md"
    page.write_text(page.read_text() + f"[x]({BLOB}/loop.py#L900)\n")
    found = data(site)
    assert [(wrong["page"], wrong["code"]) for wrong in found["wrong"]] == [("stale.md", "line-past-end")]
    assert not any("L900" in each["key"] for each in found["references"])


def test_the_report_page_needs_nothing_else(site: Site, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    site.run("drift", "--to", "v2", "--html", report)
    text = report.read_text()
    assert "<script" not in text
    assert not re.search(r"""(?:src|@import|url\()\s*=?\s*["']?http""", text)
    assert "light-dark(" in text
    assert "losses.append(float(loss.detach()))" in text
    assert f'href="{URL}/blob/{site.commits["v2"]}/engine/loop.py#L19"' in text
    assert "© Engine, Free" in text


def test_source_text_is_escaped_on_the_report_page(tmp_path: Path) -> None:
    bad = b"X = '<script>alert(1)</script>'\nY = call(X)\n"
    site = build_site(
        tmp_path, {"note.md": f"# N\n\n[x]({BLOB}/a.py#L1-L2)\n".encode()},
        old={"engine/a.py": bad, "LICENSE": b""}, new={"engine/a.py": bad.replace(b"Y =", b"Z ="), "LICENSE": b""},
    )  # fmt: skip
    report = tmp_path / "report.html"
    site.run("drift", "--to", "v2", "--html", report)
    assert "&lt;script&gt;alert" in report.read_text()
    assert "<script" not in report.read_text()


def test_a_saved_survey_holds_until_pin_or_references_change(site: Site) -> None:
    site.run("drift", "--to", "v2", "--save")
    config = load_config(site.root)
    lock = read_lock(config.path(config.lock))
    seen = read_record(config, lock=lock)
    assert {page: (each.freshness, each.ref, each.read_again) for page, each in seen.items()} == {
        "fresh.md": ("fresh", "v2", 0), "moved.md": ("moved", "v2", 0), "stale.md": ("stale", "v2", 4),
    }  # fmt: skip
    assert read_record(config, lock=lock, left={"fresh.md": 1, "none.md": 2, "moved.md": 0})["none.md"].read_again == 2
    pages = {**lock.pages, "moved.md": {"engine:README.md": 1}}
    assert set(read_record(config, lock=lock.model_copy(update={"pages": pages}))) == {"fresh.md", "stale.md"}
    (repository,) = config.repositories
    moved = config.model_copy(update={"repositories": (repository.model_copy(update={"commit": "1" * 40}),)})
    assert read_record(moved, lock=lock) == {}
    config.path(config.drift).write_text('{"version": 2}')
    with pytest.raises(DriftError, match=r"sourcepanel\.drift: cannot be read"):
        read_record(config, lock=lock)


def test_long_equal_stretches_are_folded() -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:20], "put in", *old[20:]]
    compared = side_by_side(old, new, old_start=101, new_start=1, context=2)
    assert [row.kind for row in compared] == ["folded", "equal", "equal", "added", "equal", "equal", "folded"]
    assert (compared[1].old_number, compared[1].new_number, compared[3].new_number) == (119, 19, 21)
    assert [row.kind for row in side_by_side(old[:3], [], context=1)] == ["removed"] * 3
    assert LOOP != NEXT
