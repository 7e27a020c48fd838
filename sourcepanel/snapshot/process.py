"""Runs git and pip: bounded in time, stoppable as a whole, watched line by line."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_KEPT_LINES = 40


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    code: int
    output: tuple[str, ...]
    """The last lines of what it printed, both streams."""
    timed_out: bool = False

    @property
    def reason(self) -> str:
        """Its last word, for an error message: the last line that speaks of an error, else the last line."""
        if self.timed_out:
            return "no answer in time"
        errors = [line for line in self.output if line.lower().startswith(("error", "fatal"))]
        last = (errors or list(self.output) or [f"exit code {self.code}"])[-1]
        return last.partition(": ")[2] if last.lower().startswith(("error: ", "fatal: ")) else last


def run(
    command: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] = lambda line: None,
) -> Finished:
    """Run to the end, or until `timeout` seconds have passed; no child outlives this call.

    `env` is the whole environment, ours by default. Raises `OSError` when the program is not there.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Universal newlines: a progress line that ends in \r is a line too.
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**(os.environ if env is None else env), "LC_ALL": "C"},
        # A group of its own: git's helpers hold the pipe, so killing git alone would leave us waiting.
        start_new_session=True,
    )
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(timeout, stop)
    timer.daemon = True
    timer.start()
    kept: deque[str] = deque(maxlen=_KEPT_LINES)
    try:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                if line.strip():
                    kept.append(line.strip())
                    on_line(line.strip())
        code = process.wait()
    finally:
        timer.cancel()
        if process.poll() is None:
            _kill(process)
            process.wait()
    return Finished(code, tuple(kept), timed_out=late.is_set())


def _kill(process: subprocess.Popen[str]) -> None:
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
    else:
        process.kill()
