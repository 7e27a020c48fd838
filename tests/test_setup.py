"""tools/setup.py: what counts as up to date, what is made anew, and what a person is told."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def setup():
    spec = importlib.util.spec_from_file_location("project_setup", ROOT / "tools/setup.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def env(setup, tmp_path):
    """An environment whose python is this one, with pip at hand, and nothing installed yet."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "constraints.txt").write_text("a==1\n")
    env = setup.Environment(tmp_path)
    env.python.parent.mkdir(parents=True)
    fake_python(env, exit_code=0)
    (env.folder / "pyvenv.cfg").write_text("version = 3.11.7\n")
    return env


def fake_python(env, *, exit_code: int, stderr: str = "") -> None:
    """A stand-in for the environment's interpreter: notes its arguments, prints, ends."""
    script = f"""\
        #!/bin/sh
        echo "$@" >> "{env.root}/calls"
        printf '%s\\n' "{stderr}" >&2
        exit {exit_code}
        """
    env.python.write_text(textwrap.dedent(script))
    env.python.chmod(0o755)


def calls(env) -> str:
    path = env.root / "calls"
    return path.read_text() if path.exists() else ""


def test_second_run_starts_nothing(setup, env):
    assert setup.main(["site"], root=env.root) == 0
    assert "--constraint constraints.txt --editable .[site]" in calls(env)
    (env.root / "calls").unlink()
    assert setup.main(["site"], root=env.root) == 0
    assert calls(env) == ""


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt", ".venv/pyvenv.cfg"])
def test_a_changed_input_makes_a_layer_stale(setup, env, changed):
    setup.main(["site"], root=env.root)
    assert env.ready("site")
    path = env.root / changed
    path.write_text(path.read_text() + "# changed\n")
    assert not env.ready("site")
    setup.main(["site"], root=env.root)
    assert env.ready("site")


def test_a_moved_clone_is_stale(setup, env, tmp_path):
    setup.main(["site"], root=env.root)
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("pyproject.toml", "constraints.txt", ".venv"):
        (env.root / name).rename(moved / name)
    assert not setup.Environment(moved).ready("site")


def test_layers_are_separate(setup, env):
    setup.main(["site"], root=env.root)
    assert not env.ready("test")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda env: env.unfinished.touch(), "interrupted"),
        (lambda env: env.python.unlink(), "no working python"),
        (lambda env: fake_python(env, exit_code=1, stderr="older than 3.11"), "older than 3.11"),
        (lambda env: fake_python(env, exit_code=1, stderr="No module named pip"), "No module named pip"),
    ],
    ids=["interrupted", "no-python", "old-python", "no-pip"],
)
def test_a_broken_environment_is_made_anew(setup, env, monkeypatch, capsys, damage, reason):
    setup.main(["site"], root=env.root)
    damage(env)

    def create(folder, **_options):
        env.python.parent.mkdir()
        fake_python(env, exit_code=0)

    monkeypatch.setattr(setup.venv, "create", create)
    (env.folder / "left-over").touch()
    (env.root / "constraints.txt").write_text("a==2\n")
    assert setup.main(["site"], root=env.root) == 0
    assert reason in capsys.readouterr().out
    assert not (env.folder / "left-over").exists()
    assert env.ready("site")


def test_a_folder_that_is_no_environment_is_not_removed(setup, env, capsys):
    env.python.unlink()
    (env.folder / "pyvenv.cfg").unlink()
    (env.folder / "diary.txt").write_text("mine")
    assert setup.main(["site"], root=env.root) == 1
    assert "is not a virtual environment" in capsys.readouterr().err
    assert (env.folder / "diary.txt").exists()


def test_a_killed_pip_leaves_its_mark_and_a_failed_one_does_not(setup, env, monkeypatch):
    fake_python(env, exit_code=1)
    monkeypatch.setattr(setup.Environment, "broken", lambda _env: "")
    assert setup.main(["site"], root=env.root) == 1
    assert not env.unfinished.exists()

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(setup.subprocess, "Popen", interrupted)
    assert setup.main(["site"], root=env.root) == 130
    assert env.unfinished.exists()


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        ("WARNING: Retrying after connection broken by NewConnectionError", "needs the network"),
        ("ERROR: Temporary failure in name resolution", "needs the network"),
        ("ERROR: Could not build wheels for jieba", "make distclean"),
    ],
)
def test_a_failed_installation_says_what_to_do(setup, env, monkeypatch, capsys, stderr, told):
    monkeypatch.setattr(setup.Environment, "broken", lambda _env: "")
    fake_python(env, exit_code=1, stderr=stderr)
    assert setup.main(["site"], root=env.root) == 1
    captured = capsys.readouterr().err
    assert stderr in captured
    assert told in captured
    assert not env.ready("site")


def test_no_ensurepip_names_the_package(setup, env, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    assert setup.main(["site"], root=env.root) == 1
    assert f"python3.{sys.version_info.minor}-venv" in capsys.readouterr().err


def test_no_git_is_told(setup, env, monkeypatch, capsys):
    monkeypatch.setattr(setup.shutil, "which", lambda _name: None)
    assert setup.main(["site"], root=env.root) == 1
    assert "git is not installed" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "nonsense"])
def test_wrong_arguments_show_the_usage(setup, capsys, name):
    assert setup.main([name] if name else []) == 2
    assert "usage:" in capsys.readouterr().err


def test_browser_lookup_order(setup, env, monkeypatch):
    programs = {"google-chrome": "/opt/chrome"}
    monkeypatch.setattr(setup.shutil, "which", programs.get)
    monkeypatch.delenv("CHROMIUM", raising=False)
    assert setup.find_browser(env) == "/opt/chrome"
    programs["chromium"] = "/opt/chromium"
    assert setup.find_browser(env) == "/opt/chromium"
    monkeypatch.setenv("CHROMIUM", "/nowhere/chrome")
    with pytest.raises(setup.SetupError, match="no such program"):
        setup.find_browser(env)


def test_no_browser_anywhere_is_told_with_ways_out(setup, env, monkeypatch, capsys):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(setup.shutil, "which", lambda name: "/bin/git" if name == "git" else None)
    assert setup.main(["site"], root=env.root) == 0
    fake_python(env, exit_code=1)
    assert setup.main(["browser"], root=env.root) == 1
    assert "make test CHROMIUM=" in capsys.readouterr().err


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # Without what a surrounding `make test PYTHON=…` hands down.
    inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "PYTHON")}
    command = ["make", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**inherited, **environment}, capture_output=True, text=True, check=False
    )


def test_make_refuses_an_old_python_by_name(tmp_path):
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.18" && exit 0\nexit 1\n')
    old.chmod(0o755)
    run = make("site", f"PYTHON={old}")
    assert run.returncode
    assert "needs Python 3.11 or newer, found Python 3.9.18" in run.stderr


def test_make_finds_a_new_enough_python_behind_an_old_python3(tmp_path):
    for name, code in {"python3": 1, "python3.13": 1, "python3.12": 0}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    run = make("--dry-run", "site", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert '"python3.12" tools/setup.py site' in run.stdout
