"""The command line: what it prints, and with which code it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sourcepanel.cli import main
from sourcepanel.config import Config
from sourcepanel.lock import read_lock
from tests.support.golden import Golden
from tests.support.tiny import URL

NOTE = f"""See `tiny/training.py::train_step` and [`main`]({URL}/blob/v2.0/pretrain.py#L6).
"""
WRONG = f"""# Wrong

- [`merge`]({URL}/blob/v2.0/tiny/training.py#L29-L41) and [old]({URL}/blob/v1.0/tiny/training.py#L29)
- `tiny/training.py::trian_step`, [past]({URL}/blob/v2.0/README.md#L30-L2), [a \\[bold\\]]({URL}/blob/v2.0/READ.md)
"""


@pytest.fixture
def root(tiny_config: Config) -> Path:
    (tiny_config.root / "docs/notes").mkdir()
    (tiny_config.root / "docs/notes/01.md").write_text(NOTE)
    return tiny_config.root


def run(root: Path, *args: str) -> Result:
    result = CliRunner().invoke(main, ["--config", str(root), *args], env={"COLUMNS": "200"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_lock_then_check(root: Path):
    assert run(root, "check").exit_code == 1
    assert run(root, "lock", "--check").exit_code == 1
    assert not (root / "sourcepanel.lock").exists(), "--check writes nothing"
    locked = run(root, "lock")
    assert (locked.exit_code, locked.stdout.splitlines()) == (
        0,
        [
            "pin tiny: new",
            "notes/01.md +2 -0",
            "  + tiny:pretrain.py#L6 (main)",
            "  + tiny:tiny/training.py::train_step",
            "sourcepanel.lock written: 3 files, 2 links, 1 page",
        ],
    )
    again = run(root, "lock")
    assert (again.exit_code, again.stdout) == (0, "sourcepanel.lock is up to date\n")
    assert run(root, "lock", "--check").exit_code == 0
    checked = run(root, "check")
    assert (checked.exit_code, checked.stdout) == (0, "100 % of 2 references in 1 page checked: all right\n")


def test_check_prints_findings_with_their_cure(root: Path, golden: Golden):
    (root / "docs/notes/02.md").write_text(WRONG)
    run(root, "lock")
    result = run(root, "check", "--stats")
    assert result.exit_code == 1
    golden("check.txt", result.stdout)


def test_json_is_stable(root: Path, golden: Golden):
    (root / "docs/notes/02.md").write_text(WRONG)
    result = run(root, "check", "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert set(data["counts"]) == {
        "pages", "references", "from_source", "from_lock", "unchecked", "error", "warning", "info",
    }  # fmt: skip
    assert data["counts"]["warning"] == len(data["diagnostics"]) == sum(p["findings"] for p in data["pages"].values())
    golden("check.json", result.stdout)


def test_no_strict_lets_warnings_pass(root: Path):
    assert run(root, "check", "--no-strict").exit_code == 0
    assert "1 warning" in run(root, "check", "--no-strict").stdout


def test_quiet_prints_findings_only(root: Path):
    run(root, "lock")
    assert run(root, "-q", "check").output == ""
    (root / "docs/notes/01.md").write_text(NOTE + "`tiny/training.py::nope`\n")
    assert "defines no nope" in run(root, "-q", "check").output


@pytest.mark.parametrize("named", ["notes/01.md", "docs/notes/01.md", "absolute"])
def test_pages_are_named_from_here_or_from_the_docs(root: Path, named: str, monkeypatch: pytest.MonkeyPatch):
    (root / "docs/notes/02.md").write_text(WRONG)
    run(root, "-q", "lock")
    monkeypatch.chdir(root)
    page = str(root / "docs/notes/01.md") if named == "absolute" else named
    assert json.loads(run(root, "check", "--json", page).stdout)["counts"]["pages"] == 1


def test_a_page_that_is_none(root: Path):
    result = run(root, "check", "notes/03.md")
    assert result.exit_code == 2
    assert "notes/03.md is no page" in result.stderr


def test_wrong_pages_are_not_locked(root: Path):
    run(root, "lock")
    before = read_lock(root / "sourcepanel.lock")
    (root / "docs/notes/02.md").write_text(WRONG)
    result = run(root, "lock")
    assert result.exit_code == 1
    assert "defines no trian_step" in result.stdout
    assert "sourcepanel.lock not written: mend these first" in result.stderr
    assert read_lock(root / "sourcepanel.lock") == before


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("sourcepanel.toml", "docs = 1\n", "sourcepanel.toml:1: docs"),
        ("sourcepanel.lock", "<<<<<<< HEAD\n", "sourcepanel.lock:1: unresolved merge conflict"),
        ("mkdocs.yml", "markdown_extensions: [no.such.thing]\n", "mkdocs.yml: markdown_extensions"),
    ],
)
def test_our_errors_are_one_clean_line(root: Path, file: str, text: str, message: str):
    (root / file).write_text(text)
    result = run(root, "check")
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_no_configuration(tmp_path: Path):
    result = run(tmp_path / "nowhere", "check")
    assert result.exit_code == 2
    assert "--config" in result.stderr


def test_help_documents_the_json(root: Path):
    text = run(root, "check", "--help").stdout
    for word in ("diagnostics", "from_lock", "unchecked", "--strict", "--stats"):
        assert word in text


def test_the_installed_command(root: Path):
    """Without a terminal there is no progress bar and no colour."""
    script = "from sourcepanel.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "--config", str(root), "lock"], capture_output=True, text=True, check=True
    )
    assert "\x1b" not in done.stdout + done.stderr
    version = subprocess.run([sys.executable, "-c", script, "--version"], capture_output=True, text=True, check=True)
    assert "version" in version.stdout


def test_stats_count_what_is_said_without_a_reference(root: Path):
    (root / "docs/notes/02.md").write_text(
        "- `loss_func` alone\n- `LEARNING_RATE`, see `tiny/training.py::train_step`\n"
    )
    run(root, "lock")
    listed = run(root, "check", "--bare", "notes/02.md")
    assert listed.stdout.splitlines()[0] == "notes/02.md:1: loss_func"
    page = json.loads(run(root, "check", "--stats", "--json").stdout)["pages"]["notes/02.md"]
    assert page["bare"] == [{"line": 1, "end": 1, "names": ["loss_func"]}]
    assert (page["references"], page["distinct"], page["naming_blocks"], page["bare_blocks"]) == (1, 1, 2, 1)
    counts = json.loads(run(root, "check", "--stats", "--json").stdout)["counts"]
    assert (counts["naming_blocks"], counts["bare_blocks"], counts["proved"]) == (3, 1, 0)
