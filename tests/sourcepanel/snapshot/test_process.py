"""Commands: bounded in time, with everything they started."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from sourcepanel.snapshot.process import Finished, run


def test_tells_each_line_as_it_comes_also_those_that_overwrite_each_other():
    lines: list[str] = []
    script = "import sys; sys.stdout.write('1%\\r2%\\r\\n\\n'); sys.stdout.flush()"
    script += "; sys.stderr.write('fatal: no\\n'); sys.exit(3)"
    done = run([sys.executable, "-c", script], timeout=60, on_line=lines.append)
    assert lines == ["1%", "2%", "fatal: no"]
    assert done == Finished(3, ("1%", "2%", "fatal: no"))


@pytest.mark.skipif(os.name != "posix", reason="process groups")
@pytest.mark.parametrize("stop", ["timeout", "exception"])
def test_grandchildren_are_stopped_too(stop: str):
    """Git's helper holds the pipe: to wait for its end would be to wait for ever."""
    command = ["sh", "-c", "sleep 600 & echo $!; wait"]
    pids: list[int] = []

    def on_line(line: str) -> None:
        pids.append(int(line))
        if stop == "exception":
            raise KeyboardInterrupt

    if stop == "exception":
        with pytest.raises(KeyboardInterrupt):
            run(command, timeout=60, on_line=on_line)
    else:
        assert run(command, timeout=2, on_line=on_line).timed_out
    assert pids
    while _alive(pids[0]):
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    """Whether the process runs; a killed orphan may stay a zombie where no init reaps it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def test_leaves_no_thread_behind():
    before = threading.active_count()
    assert run([sys.executable, "-c", ""], timeout=60).code == 0
    assert threading.active_count() <= before + 1


def test_no_such_program():
    with pytest.raises(FileNotFoundError):
        run(["no-such-program-anywhere"], timeout=60)


@pytest.mark.parametrize(
    ("done", "reason"),
    [
        (Finished(1, ("hint", "fatal: could not resolve host", "and so on")), "could not resolve host"),
        (
            Finished(1, ("ERROR: first", "ERROR: No matching distribution found for a==1")),
            "No matching distribution found for a==1",
        ),
        (Finished(1, ("No module named pip",)), "No module named pip"),
        (Finished(7, ()), "exit code 7"),
        (Finished(-9, ("Receiving 1%",), timed_out=True), "no answer in time"),
    ],
)
def test_the_last_word(done: Finished, reason: str):
    assert done.reason == reason
