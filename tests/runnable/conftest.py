"""Real processes: each play forks a launcher that has torch already, so a run costs tenths of a second."""

from __future__ import annotations

import os
import pickle
import runpy
import shutil
import subprocess
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNNABLE = ROOT / "runnable"

pytest.importorskip("torch", reason="the lab needs torch")
sys.path.insert(0, str(ROOT))


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., Result]:
    """Run a script of `runnable/` by its chapter (`"ch10"`) with arguments, as `python` would."""
    import torch.distributed  # noqa: F401  (before the fork, once)

    from runnable.lab import launch  # noqa: F401

    def run(chapter: str, *argv: object, limit: float = 60) -> Result:
        (script,) = RUNNABLE.glob(f"{chapter}_*.py")
        out, err = tmp_path / "stdout", tmp_path / "stderr"
        pid = os.fork()
        if pid == 0:
            _become(script, [str(a) for a in argv], out, err)
        deadline = time.monotonic() + limit
        while not (done := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.killpg(pid, 9)
                os.waitpid(pid, 0)
                pytest.fail(f"{chapter} {argv} did not end within {limit} s:\n{out.read_text()}\n{err.read_text()}")
            time.sleep(0.02)
        return Result(os.waitstatus_to_exitcode(done[1]), out.read_text(), err.read_text())

    return run


@pytest.fixture(scope="session")
def helpers(tmp_path_factory) -> Any:
    """The C++ helpers of the pin, compiled here."""
    pybind11 = pytest.importorskip("pybind11", reason="compiling Megatron's helpers needs pybind11")
    if not shutil.which("g++"):
        pytest.skip("compiling Megatron's helpers needs g++")
    from runnable.lab.pin import megatron_tree

    folder = tmp_path_factory.mktemp("helpers")
    source = megatron_tree() / "megatron/core/datasets/helpers.cpp"
    target = folder / f"helpers_cpp{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = ["-I" + pybind11.get_include(), "-I" + sysconfig.get_path("include")]
    command = ["g++", "-O0", "-shared", "-std=c++17", "-fPIC", *include, str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sys.path.insert(0, str(folder))
    import helpers_cpp

    return helpers_cpp


@pytest.fixture
def with_megatron(tmp_path: Path) -> Callable[[Callable[[Path], Any]], Any]:
    """Run a body in a fork in which torch is patched and Megatron imported, and take its result home."""
    pytest.importorskip("einops", reason="the real Megatron needs einops")

    def run(body: Callable[[Path], Any]) -> Any:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                from runnable.megatron_cpu import harness

                (tmp_path / "result").write_bytes(pickle.dumps(body(harness.prepare())))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        return pickle.loads((tmp_path / "result").read_bytes())

    return run


def _become(script: Path, argv: list[str], out: Path, err: Path) -> None:
    """In the child: take over the streams, run the script, never return."""
    code = 70
    try:
        os.setpgid(0, 0)
        for path, stream in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), stream)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        for name in ("RANK", "WORLD_SIZE"):
            os.environ.pop(name, None)
        sys.argv = [str(script), *argv]
        runpy.run_path(str(script), run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
