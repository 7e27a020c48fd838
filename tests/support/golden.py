"""Golden files: the expected output lies beside the test, in `golden/`."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Golden:
    """Compares text with `golden/<name>`; `--update-golden` writes what it got instead."""

    folder: Path
    update: bool

    def __call__(self, name: str, text: str) -> None:
        """Fail with a unified diff unless the file holds exactly `text`."""
        path = self.folder / name
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        if not path.exists():
            pytest.fail(f"no golden file {path}; write it with --update-golden and read it before you commit")
        expected = path.read_bytes().decode()
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(keepends=True), text.splitlines(keepends=True), f"golden/{name}", "got"
            )
            shown = "".join(line if line.endswith("\n") else f"{line}\n\\ no newline\n" for line in lines)
            pytest.fail(f"differs from {path} (accept with --update-golden):\n{shown}", pytrace=False)
