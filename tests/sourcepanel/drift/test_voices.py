"""Wrong at the pin is one thing, moved since is another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sourcepanel.drift.site import NEXT, URL, Site, build_site, lines

BLOB = f"{URL}/blob/v1/engine"
TOTAL = lines("    total = a + b\n")
LOSSES = lines("        losses.append(loss.item())\n")
RIGHT = (
    f"# N\n\n[m]({BLOB}/loop.py#{TOTAL})\n[c]({BLOB}/loop.py#{LOSSES})\n"
    "`engine/loop.py::old_way`\n`engine/stay.py::stay`\n"
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return build_site(tmp_path, {"note.md": RIGHT.encode()})


def test_what_moved_since_fails_nothing(site: Site) -> None:
    done = site.run("check", "--against", "v2")
    assert done.exit_code == 0, done.output
    assert "100 % of 4 references in 1 page checked: all right" in done.stdout
    assert "0 wrong at the pin, 4 right; of these at v2: 1 the same, 1 moved, 2 changed or gone" in done.stdout
    assert (
        f"note.md:3: info right at v1; at v2: moved engine/loop.py#{lines('    total = a', text=NEXT)}" in done.stdout
    )
    assert "note.md:5: info right at v1; at v2: gone" in done.stdout
    assert "note.md:6" not in done.stdout


def test_without_against_only_the_pin_counts(site: Site) -> None:
    done = site.run("check")
    assert done.exit_code == 0
    assert "right at" not in done.stdout


@pytest.mark.parametrize(
    ("link", "code", "was_read_there"),
    [
        (f"[x]({BLOB}/loop.py#L900)", "line-past-end", False),
        ("`engine/loop.py::nowhere`", "missing-symbol", False),
        ("`engine/io/data.py::read`", "missing-file", True),
        (f"[`read`]({BLOB}/io/data.py#L1)", "missing-file", True),
    ],
)
def test_what_is_wrong_at_the_pin_stays_wrong(site: Site, link: str, code: str, was_read_there: bool) -> None:
    """A reference that only the newer version bears out is wrong, too, but told how it came about."""
    page = site.root / "docs/note.md"
    page.write_text(RIGHT + link + "\n")
    done = site.run("check", "--against", "v2", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["against"] == {"wrong": 1, "moved": 1, "changed": 2, "same": 1, "unseen": 0}
    by_level = {level: [d for d in found["diagnostics"] if d["level"] == level] for level in ("warning", "info")}
    (wrong,) = (d for d in by_level["warning"] if d["code"] == code)
    assert wrong["line"] == 7
    assert ("it is right at v2: was it read there?" in wrong["message"]) is was_read_there
    assert {d["code"] for d in by_level["info"]} == {"drifted"}
    assert found["counts"]["unchecked"] == 0


def test_a_level_makes_drift_fail(site: Site) -> None:
    toml = site.root / "sourcepanel.toml"
    before = toml.read_text()
    toml.write_text(before + '\n[levels]\ndrifted = "warning"\n')
    assert site.run("check", "--against", "v2").exit_code == 1
    toml.write_text(before + '\n[levels]\ndrifted = "ignore"\n')
    done = site.run("check", "--against", "v2")
    assert done.exit_code == 0
    assert "right at" not in done.stdout
    assert "2 changed or gone" in done.stdout
