"""`drift --cases`: one answer a case, in order, and bad lines named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sourcepanel.cli import main
from tests.support.tiny import TinyRepo, write_config

GOOD = {"id": "a", "from_ref": "v1.0", "to_ref": "v2.0", "path": "tiny/training.py", "start": 1, "end": 1}


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def write(path: Path, *cases: object) -> Path:
    path.write_text("".join((case if isinstance(case, str) else json.dumps(case)) + "\n" for case in cases))
    return path


@pytest.mark.parametrize("switches", [(), ("--no-history",)])
def test_one_line_a_case_in_order(tiny_repo: TinyRepo, tmp_path: Path, switches: tuple[str, ...]) -> None:
    """Pairs of versions alternate; the answers keep the order of the cases."""
    cases = [
        {**GOOD, "id": 1},
        {**GOOD, "id": 2, "from_ref": "v2.0", "to_ref": "v3.0"},
        {**GOOD, "id": None, "note": "ignored"},
        "",
        {**GOOD, "id": "last", "from_ref": tiny_repo.commits["v3.0"][:9], "to_ref": "v2.0"},
    ]
    path = write(tmp_path / "cases.jsonl", *cases)
    done = run("drift", "--cases", path, "--json", "--source", tiny_repo.path, *switches)
    assert done.exit_code == 0, done.output
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, None, "last"]
    keys = ["id", "status", "to_path", "to_start", "to_end", "confidence", "method"]
    assert all(list(answer) == keys for answer in answers)
    assert {answer["status"] for answer in answers} <= {"same", "cosmetic", "changed", "gone"}


def test_without_source_the_configured_checkout_is_read(tiny_repo: TinyRepo, tmp_path: Path) -> None:
    config = write_config(tmp_path / "project", tiny_repo)
    path = write(tmp_path / "cases.jsonl", GOOD)
    done = run("--config", config, "drift", "--cases", path, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["to_path"] == "tiny/training.py"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not valid JSON"),
        ("[1]", "not list"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "path"}), "lacks path"),
        (json.dumps({**GOOD, "start": "1"}), "start"),
        (json.dumps({**GOOD, "start": 0}), "start"),
        (json.dumps({**GOOD, "start": 3, "end": 2}), "ends (2) before it starts (3)"),
        (json.dumps({**GOOD, "path": "no/such.py"}), "no file no/such.py at v1.0"),
        (json.dumps({**GOOD, "end": 10_000}), "past the end"),
        (json.dumps({**GOOD, "to_ref": "v9"}), "holds no tag, branch or commit v9"),
        (json.dumps({**GOOD, "to_ref": "--all"}), "holds no tag, branch or commit --all"),
        (json.dumps({**GOOD, "from_ref": ""}), "from_ref"),
        (json.dumps({**GOOD, "to_ref": "v1\0"}), "holds no tag, branch or commit"),
        (json.dumps({**GOOD, "id": "\ud800"}), "id"),
        (f'{{"start": {"9" * 5000}}}', "not valid JSON"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_printed(tiny_repo: TinyRepo, tmp_path: Path, line: str, told: str) -> None:
    path = write(tmp_path / "cases.jsonl", GOOD, "", line)
    done = run("drift", "--cases", path, "--json", "--source", tiny_repo.path)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert f"{path}:3: " in done.stderr
    assert told in done.stderr


@pytest.mark.parametrize("name", ["missing.jsonl", "latin1.jsonl"])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "latin1.jsonl").write_bytes(b"\xff\n")
    done = run("drift", "--cases", tmp_path / name, "--source", tmp_path)
    assert done.exit_code == 2
    assert f"{tmp_path / name}: " in done.stderr


def test_a_source_that_is_no_clone(tmp_path: Path) -> None:
    path = write(tmp_path / "cases.jsonl", GOOD)
    for folder, told in ((tmp_path / "nowhere", "no clone at"), (tmp_path, "not a git repository")):
        done = run("drift", "--cases", path, "--source", folder)
        assert done.exit_code == 2
        assert told in done.stderr
