"""Help for authors: `link`, `show`, `new`, completion, the editor's tasks."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sourcepanel.cli import main
from sourcepanel.config import load_config
from sourcepanel.notes.template import check_template
from sourcepanel.reference import SourceRef, parse_code, parse_link
from tests.support.tiny import URL, TinyRepo, write_config

ROOT = Path(__file__).resolve().parents[2]
BLOB = f"{URL}/blob/v2.0"
CHAPTERS = """\
rounds:
  - name: First
    title: T
    question: How?
    chapters:
      - {number: 1, title: Overview, note: notes/01-overview.md, script: runnable/ch01.py, record: the steps}
      - {number: 8, title: State, note: parallel/08-state.md, script: runnable/ch08.py, record: groups}
"""
NOTES = '\n[notes]\npages = ["*"]\nheadings = ["Goal", "Open"]\nroadmap = "docs/chapters.yml"\n'


@pytest.fixture
def config(tiny_repo: TinyRepo, tmp_path: Path) -> Path:
    path = write_config(tmp_path / "project", tiny_repo)
    path.write_text(path.read_text() + NOTES)
    (path.parent / "docs/chapters.yml").write_text(CHAPTERS)
    return path


def run(config: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["--config", str(config), *args])


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("train_step", f"[`train_step`]({BLOB}/tiny/training.py#L29-L41)"),
        ("train_step()", f"[`train_step`]({BLOB}/tiny/training.py#L29-L41)"),
        ("Trainer.__init__", f"[`Trainer.__init__`]({BLOB}/tiny/training.py#L49-L50)"),
        ("Options.merge", f"[`Trainer.Options.merge`]({BLOB}/tiny/training.py#L64-L65)"),
        ("LEARNING_RATE", f"[`LEARNING_RATE`]({BLOB}/tiny/training.py#L5)"),
        ("tiny/training.py::pretrain", f"[`pretrain`]({BLOB}/tiny/training.py#L20-L26)"),
        ("tiny/training.py:24-25", f"[`training.py#L24-L25`]({BLOB}/tiny/training.py#L24-L25)"),
        ("tiny/training.py#L24", f"[`training.py#L24`]({BLOB}/tiny/training.py#L24)"),
        ("tiny/training.py:21", f"[`pretrain`]({BLOB}/tiny/training.py#L21)"),
        ("tiny/training.py", f"[`training.py`]({BLOB}/tiny/training.py)"),
        ("tiny/core/", f"[`core`]({URL}/tree/v2.0/tiny/core)"),
        (f"{BLOB}/pretrain.py#L6", f"[`main`]({BLOB}/pretrain.py#L6)"),
        ("docs/a b#c.md", f"[`a b#c.md`]({BLOB}/docs/a%20b%23c.md)"),
    ],
)
def test_link(config: Path, words: str, printed: str) -> None:
    done = run(config, "link", words)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{printed}\n"
    address = re.search(r"\]\((.*)\)$", printed)[1]
    assert isinstance(parse_link(address, load_config(config).repositories), SourceRef)


def test_link_as_code(config: Path) -> None:
    done = run(config, "link", "--code", "Trainer.Options")
    assert done.stdout == "`tiny/training.py::Trainer.Options`\n"
    assert isinstance(parse_code(done.stdout.strip("`\n"), load_config(config).repositories), SourceRef)
    done = run(config, "link", "--code", "tiny/training.py:24")
    assert done.exit_code == 2
    assert "is no definition" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("forward", "3 definitions are named forward; say which:\n  - tiny/core/parallel.py::Layer.forward"),
        ("nowhere", "nothing at the pin is named nowhere"),
        ("Layer.pretrain", "did you mean tiny/training.py::pretrain?"),
        ("tiny/trainin.py", "did you mean tiny/training.py"),
        ("tiny/training.py:900", "past the end"),
        ("tiny/training.py::train_stop", "did you mean train_step"),
        (f"{URL}/blob/v1.0/pretrain.py", "names another version"),
        ("a sentence of words", "is no link, no path of the pin and no name"),
    ],
)
def test_what_leads_nowhere_is_told_with_the_nearest_right_answer(config: Path, words: str, told: str) -> None:
    for command in ("link", "show"):
        done = run(config, command, words)
        assert done.exit_code == 2
        assert told in done.stderr
        assert done.stdout == ""


def test_show_prints_the_lines_with_their_numbers(config: Path) -> None:
    done = run(config, "show", "tiny/training.py:32-33")
    assert "tiny/training.py L32-L33 in train_step v2.0" in done.stdout
    numbers = re.findall(r"(?m)^\s*[❱ ]*\s*(\d+) ", done.stdout)
    assert numbers == ["32", "33"]
    around = run(config, "show", "--context", "1", "tiny/training.py:32-33")
    assert re.findall(r"(?m)^\s*[❱ ]*\s*(\d+) ", around.stdout) == ["31", "32", "33", "34"]
    assert run(config, "show", "tiny/core").stdout.split() == ["__init__.py", "parallel.py"]


def test_new_lays_out_a_note_that_only_lacks_its_text(config: Path) -> None:
    done = run(config, "new", "08", "Parallel State")
    assert done.exit_code == 0, done.output
    text = (config.parent / "docs/parallel/08-state.md").read_text()
    assert text.startswith("# 08 Parallel State\n")
    assert [finding.message for finding in check_template(text, headings=("Goal", "Open"))] == [
        'section "Goal" is empty',
        'section "Open" is empty',
    ]
    assert "add parallel/08-state.md to nav in mkdocs.yml" in done.stdout
    # No template for scripts is configured.
    assert not (config.parent / "runnable").exists()


def test_new_never_touches_what_is_there(config: Path) -> None:
    note = config.parent / "docs/notes/01-overview.md"
    note.parent.mkdir()
    note.write_text("mine\n")
    done = run(config, "new", "1")
    assert done.exit_code == 2
    assert "exists already" in done.stderr
    assert note.read_text() == "mine\n"
    for number, told in (("9", "no chapter 09; add it there first. It has 01, 08"), ("x", "not a valid integer")):
        done = run(config, "new", number)
        assert done.exit_code == 2
        assert told in done.stderr


def test_new_fills_templates_and_keeps_a_script(config: Path) -> None:
    config.write_text(config.read_text() + 'note_template = "n.md"\nscript_template = "s.py"\n')
    (config.parent / "n.md").write_text("{number}|{title}|{question}|{record}|{script}|{ref}|{other}|{}\n")
    (config.parent / "s.py").write_text("# {module} {title} {1}\n")
    run(config, "new", "8")
    assert (config.parent / "docs/parallel/08-state.md").read_text() == (
        "08|State|How?|groups|runnable/ch08.py|v2.0|{other}|{}\n"
    )
    script = config.parent / "runnable/ch08.py"
    assert script.read_text() == "# ch08 State {1}\n"
    (config.parent / "docs/parallel/08-state.md").unlink()
    script.write_text("mine\n")
    done = run(config, "new", "8")
    assert "kept: runnable/ch08.py is there already" in done.stdout
    assert script.read_text() == "mine\n"
    (config.parent / "s.py").unlink()
    (config.parent / "n.md").write_bytes(b"\xff")
    (config.parent / "docs/parallel/08-state.md").unlink()
    assert "template cannot be read" in run(config, "new", "8").stderr
    assert not (config.parent / "docs/parallel/08-state.md").exists()


def test_our_own_templates_give_a_note_and_a_script_that_parse() -> None:
    notes = load_config(ROOT).notes
    note = (ROOT / notes.note_template).read_text(encoding="utf-8")
    assert note.startswith("# {number} {title}\n")
    assert "{headings}" in note
    script = (ROOT / notes.script_template).read_text(encoding="utf-8")
    doc = ast.get_docstring(ast.parse(script))
    assert doc.startswith("torchrun --nproc-per-node ")
    assert "Leaves out" in doc


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(config: Path, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.shell_completion.BashComplete._check_version", staticmethod(lambda: None))
    done = run(config, "completion", shell)
    assert done.exit_code == 0
    assert "_SOURCEPANEL_COMPLETE" in done.stdout
    env = {"_SOURCEPANEL_COMPLETE": "bash_complete", "COMP_WORDS": "sourcepanel re", "COMP_CWORD": "1"}
    offered = CliRunner(env=env).invoke(main, [], prog_name="sourcepanel").stdout
    assert "repin" in offered


def test_the_editor_finds_each_finding(config: Path) -> None:
    """The problem matcher reads what `check` prints: file, line, severity and message of every finding."""
    (config.parent / "docs/a b.md").write_text(f"x\n[y]({BLOB}/pretrain.py#L900)\n")
    tasks = json.loads((ROOT / ".vscode/tasks.json").read_text())["tasks"]
    for task in tasks:
        pattern = task["problemMatcher"]["pattern"]
        lines = run(config, *task["args"][:2]).stdout.splitlines()
        found = [hit for line in lines if (hit := re.search(pattern["regexp"], line))]
        past = [h for h in found if h[pattern["line"]] == "2"]
        assert [(h[pattern["file"]], h[pattern["severity"]]) for h in past] == [("a b.md", "warning")]
        assert "past the end" in past[0][pattern["message"]]
        assert len(found) == sum(": warning " in line for line in lines)
