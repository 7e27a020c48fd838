"""The part of `bench/RESULTS.md` that one program writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Section:
    """What stands between the marks of `bench/<name>.py`, and the figures behind it in `bench/<name>.json`."""

    name: str
    folder: Path = FOLDER

    @property
    def marks(self) -> tuple[str, str]:
        """The lines before and after."""
        return f"<!-- {self.name}: written by bench/{self.name}.py -->", f"<!-- {self.name}: end -->"

    def within(self, page: str) -> str:
        """The section as it stands in the page; raises when the marks are not there."""
        return self._cut(page)[1].strip("\n")

    def replace(self, page: str, text: str) -> str:
        """The page with the section exchanged; raises when the marks are not there."""
        before, _, after = self._cut(page)
        begin, end = self.marks
        return f"{before}{begin}\n{text}\n{end}{after}"

    def write(self, text: str, *, figures: object = None) -> None:
        """Put the section into RESULTS.md and the figures, if any, beside it."""
        page = self.folder / "RESULTS.md"
        page.write_text(self.replace(page.read_text(encoding="utf-8"), text), encoding="utf-8")
        if figures is not None:
            target = self.folder / f"{self.name}.json"
            target.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")

    def _cut(self, page: str) -> tuple[str, str, str]:
        begin, end = self.marks
        before, found, rest = page.partition(begin)
        middle, closed, after = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"bench/RESULTS.md lacks the lines {begin} and {end}")
        return before, middle, after
