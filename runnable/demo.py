"""`python -m runnable.demo 10 --np 4 [--break no_f …]`: run a chapter's script by its number; `--list` shows all."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def scripts() -> dict[str, Path]:
    """Chapter number, two digits → script."""
    return {path.name[2:4]: path for path in sorted(HERE.glob("ch[0-9][0-9]_*.py"))}


def main(argv: list[str]) -> int:
    """Run, list, or say what is wrong; the script's exit code."""
    known = scripts()
    if not argv or argv[0] in ("-h", "--help", "--list"):
        print(__doc__)
        for number, path in known.items():
            first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]
            print(f"  {number}  {path.name:38} {first}")
        return 0
    number = argv[0].removeprefix("ch").zfill(2)
    if number not in known:
        print(f"没有第 {argv[0]} 章的脚本；现有：{', '.join(known)}", file=sys.stderr)
        return 2
    sys.argv = [str(known[number]), *argv[1:]]
    runpy.run_path(str(known[number]), run_name="__main__")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
