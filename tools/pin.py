"""Write `constraints.txt`: every package of every extra, at the version that pip resolves today.

Resolved under the oldest Python we support, in an environment of its own: `python tools/pin.py [PYTHON]`.
Local version parts (`+cpu`) are cut, so that the file says nothing about where a package came from.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "constraints.txt"
HEAD = """\
# Written by `make pin` (tools/pin.py); do not edit. All extras, for Python 3.11 to 3.13.
"""
FOREIGN = re.compile(r"(nvidia|cuda|triton)\b", re.I)
"""Packages that torch alone chooses, per platform, and pins itself."""


def pinned(freeze: str) -> list[str]:
    """The lines of `pip freeze` that constrain: `name==version`, no paths, no local parts."""
    lines = [re.sub(r"\+[\w.]+$", "", line) for line in freeze.splitlines() if re.fullmatch(r"[\w.\-]+==\S+", line)]
    return sorted((line for line in lines if not FOREIGN.match(line)), key=str.lower)


def main(python: str = "python3.11") -> None:
    """Resolve, and replace the file in one step."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    with tempfile.TemporaryDirectory() as folder:
        run = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run([*run, "install", "--upgrade", "pip"], check=True)
        subprocess.run([*run, "install", f"{ROOT}[{','.join(sorted(extras))}]"], check=True)
        freeze = [*run, "freeze", "--all", "--exclude", "pip"]
        text = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    lines = [line for line in pinned(text) if not line.startswith("sourcepanel==")]
    draft = TARGET.with_suffix(".tmp")
    draft.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    draft.replace(TARGET)
    print(f"{TARGET.name}: {len(lines)} packages")


if __name__ == "__main__":
    main(*sys.argv[1:2])
