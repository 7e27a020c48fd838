"""How well references are followed from one version to another, and how fast: ours against four simpler ways.

    python bench/drift.py CASES --source CLONE [--references 1000] [--skip blame]

CASES is a file of JSON lines as `sourcepanel drift --cases` reads it, each with what is right: `expect` (same,
cosmetic, changed, gone), `accept` (the answers that count), `to_path`, `to_start`, `to_end` and `tol`. Writes the
section of `bench/RESULTS.md` between its marks, and `bench/drift.json`.

- naive: the same lines of the same file.
- git diff: the first and the last line through the hunks of one diff of the two trees (histogram, renames).
- symbol + offset: the enclosing definition by its name in the same file, the range at its old distance from there.
- blame: `git blame -w -M` of both versions; lines that one commit wrote at one place are the same line.
- two snapshots, history: ours, by the two trees alone and with the commits between them.

The simpler ways are given what they lack, so that all can be compared: a place counts as `same` or `cosmetic` by the
same comparison of the text as ours. Time is CPU time of this process and the git processes it starts.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import resource
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from bench.results import Section
from sourcepanel.drift.cases import Case, read_cases
from sourcepanel.drift.judge import GONE, Placement, compare
from sourcepanel.drift.linemap import FileMap, diff_trees
from sourcepanel.drift.relocate import Relocator
from sourcepanel.drift.tree import Tree
from sourcepanel.drift.versions import clone_at
from sourcepanel.snapshot.git import GitSnapshot, commit_of

ROOT = Path(__file__).resolve().parent.parent
SECTION = Section("drift")
SEED = 20260822
SIZES = (1, 5, 9, 15)
"""Lines of the random ranges that are timed."""

Place = Callable[[str, int, int], Placement]


@contextmanager
def naive(old: GitSnapshot, new: GitSnapshot) -> Iterator[Place]:
    """The same lines of the same file."""
    trees = Tree(old), Tree(new)
    yield lambda path, start, end: _placed(*trees, path, start, end, path, start, end)


@contextmanager
def git_diff(old: GitSnapshot, new: GitSnapshot) -> Iterator[Place]:
    """Both ends through the hunks."""
    trees, maps = (Tree(old), Tree(new)), diff_trees(old.git, old.commit, new.commit)

    def place(path: str, start: int, end: int) -> Placement:
        file_map = maps.get(path, FileMap(path))
        low, high = file_map.follow([start])[0], file_map.follow([end])[0]
        return _placed(*trees, path, start, end, file_map.new_path, low, high)

    yield place


@contextmanager
def symbol_offset(old: GitSnapshot, new: GitSnapshot) -> Iterator[Place]:
    """By the name of the definition around the range."""
    before, after = Tree(old), Tree(new)

    def place(path: str, start: int, end: int) -> Placement:
        home, there = before.at(path).table.enclosing(start, end), after.file(path)
        found = there.table.get(home.name) if home and there else ()
        shift = found[0].start - home.start if home and found else (0 if home is None else None)
        low, high = (None, None) if shift is None else (start + shift, end + shift)
        return _placed(before, after, path, start, end, path, low, high)

    yield place


@contextmanager
def blame(old: GitSnapshot, new: GitSnapshot) -> Iterator[Place]:
    """By who wrote each line, and where."""
    trees, maps = (Tree(old), Tree(new)), diff_trees(old.git, old.commit, new.commit)
    known: dict[tuple[str, str], list[str]] = {}

    def written(snapshot: GitSnapshot, path: str) -> list[str]:
        if (snapshot.commit, path) not in known:
            text = snapshot.git("blame", "-w", "-M", "-s", "-f", "-n", "-l", snapshot.commit, "--", path)
            known[snapshot.commit, path] = re.findall(r"(?m)^\^?([0-9a-f]{39,40} +.*? +\d+) +\d+\)", text)
        return known[snapshot.commit, path]

    def place(path: str, start: int, end: int) -> Placement:
        there = maps.get(path, FileMap(path)).new_path
        if there is None or trees[1].file(there) is None:
            return GONE
        numbers = {origin: number for number, origin in enumerate(written(new, there), 1)}
        origins = written(old, path)
        low, high = numbers.get(origins[start - 1]), numbers.get(origins[end - 1])
        return _placed(*trees, path, start, end, there, low, high)

    yield place


@contextmanager
def _ours(old: GitSnapshot, new: GitSnapshot, *, history: bool) -> Iterator[Place]:
    with Relocator.between(old, new, history=history) as relocator:
        yield relocator.relocate


METHODS: dict[str, Any] = {
    "naive": naive,
    "git diff": git_diff,
    "symbol + offset": symbol_offset,
    "blame": blame,
    "two snapshots": lambda old, new: _ours(old, new, history=False),
    "history": lambda old, new: _ours(old, new, history=True),
}


def _placed(
    old: Tree, new: Tree, path: str, start: int, end: int, there: str | None, low: int | None, high: int | None
) -> Placement:
    """A place with its text compared; gone where there is none, or it is none."""
    file = new.file(there)
    if file is None or low is None or high is None or not 1 <= low <= high <= len(file.lines):
        return GONE
    status = compare(old.at(path), start, end, file, low, high)
    sure = "certain" if status in ("same", "cosmetic") else "likely"
    return Placement(status=status, path=there, start=low, end=high, confidence=sure, method="", overlap=1.0)


@dataclass
class Score:
    """How the answers to the cases turned out."""

    cases: int = 0
    ok: int = 0
    """The answer is one of those that count, at the right place."""
    placed: int = 0
    """Answers that name a place for text that is still there."""
    right: int = 0
    """Of these, the right one."""
    expected: int = 0
    """Cases whose text is still there."""
    silent: int = 0
    """Wrong, and called unchanged: it would be rewritten unseen."""
    confidence: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def count(self, truth: dict[str, Any], answer: Placement) -> None:
        """One case."""
        alive = truth["expect"] != "gone" and truth["to_path"] is not None
        right = alive and answer.path == truth["to_path"] and _near(truth, answer)
        ok = answer.status in truth["accept"] and (right or not alive or answer.status == "gone")
        self.cases += 1
        self.ok += ok
        self.placed += alive and answer.path is not None
        self.right += right
        self.expected += alive
        self.silent += not ok and answer.status in ("same", "cosmetic")
        self.confidence[answer.confidence, ok] += 1

    @property
    def precision(self) -> float:
        """Share of the places named that are right."""
        return self.right / self.placed if self.placed else 0.0

    @property
    def recall(self) -> float:
        """Share of what is still there that was found."""
        return self.right / self.expected if self.expected else 0.0


def _near(truth: dict[str, Any], answer: Placement) -> bool:
    if answer.start is None or answer.end is None:
        return False
    return (
        abs(answer.start - truth["to_start"]) <= truth["tol"][0]
        and abs(answer.end - truth["to_end"]) <= truth["tol"][1]
    )


def judge(name: str, cases: Sequence[tuple[Case, dict[str, Any]]], source: Path) -> Score:
    """All cases by one method."""
    groups: dict[tuple[str, str], list[tuple[Case, dict[str, Any]]]] = defaultdict(list)
    for case, truth in cases:
        groups[case.from_ref, case.to_ref].append((case, truth))
    score = Score()
    for refs, group in groups.items():
        with METHODS[name](*_pair(source, *refs)) as place:
            for case, truth in group:
                score.count(truth, place(case.path, case.start, case.end))
    return score


def clock(
    name: str, refs: tuple[str, str], ranges: Sequence[tuple[str, int, int]], source: Path
) -> tuple[float, float]:
    """CPU seconds until the first range can be asked for, and for all of them."""
    pair = _pair(source, *refs)
    began = _cpu()
    with METHODS[name](*pair) as place:
        ready = _cpu()
        for path, start, end in ranges:
            place(path, start, end)
        return ready - began, _cpu() - ready


def random_ranges(source: Path, refs: tuple[str, str], files: Sequence[str], count: int) -> list[tuple[str, int, int]]:
    """Ranges of the old version in these files, the same in every run."""
    chance = random.Random(SEED)
    tree = Tree(_pair(source, *refs)[0])
    lengths = {path: len(file.lines) for path in files if (file := tree.file(path)) and len(file.lines) > max(SIZES)}
    found = []
    for _ in range(count):
        path, size = chance.choice(sorted(lengths)), chance.choice(SIZES)
        start = chance.randint(1, lengths[path] - size + 1)
        found.append((path, start, start + size - 1))
    return found


def _pair(source: Path, old: str, new: str) -> tuple[GitSnapshot, GitSnapshot]:
    return clone_at(source, commit=commit_of(source, old)), clone_at(source, commit=commit_of(source, new))


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def markdown(result: dict[str, Any]) -> str:
    """The section of RESULTS.md."""
    lines = [
        f"{result['machine']}; {result['cases']} cases in {result['files']} files, weighted to hard ones, so the "
        f"shares are not those of real links. Time: {result['references']} random ranges in those files, "
        f"{result['timed'][0]} → {result['timed'][1]}.",
        "",
        "| method | ok % | precision % | recall % | silent | CPU s to begin | CPU s for 1,000 references |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in result["methods"].items():
        shares = (row["ok"] / row["cases"], row["precision"], row["recall"])
        cells = [name, *(f"{100 * share:.1f}" for share in shares), str(row["silent"])]
        cells += [f"{row['begin']:.2f}", f"{row['per_thousand']:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    ours = result["methods"].get("history")
    if ours:
        total = ours["begin"] + ours["per_thousand"]
        lines += ["", f"- history, 1,000 references from cold: **{total:.1f} s** of CPU (goal ≤ 10)"]
        for level, (right, count) in ours["confidence"].items():
            lines.append(f"- of the answers called *{level}*, {right} of {count} are right")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--source", type=Path, required=True, help="a clone that holds all versions of the cases")
    parser.add_argument("--references", type=int, default=1000)
    parser.add_argument("--skip", nargs="*", default=[], choices=list(METHODS), help="blame takes minutes")
    parser.add_argument("--dry-run", action="store_true", help="print only")
    arguments = parser.parse_args()
    console = Console()
    truths = [json.loads(line) for line in arguments.cases.read_text(encoding="utf-8").splitlines() if line.strip()]
    cases = list(zip(read_cases(arguments.cases), truths, strict=True))
    files = sorted({case.path for case, _ in cases})
    timed, _ = Counter((case.from_ref, case.to_ref) for case, _ in cases if not _is_id(case.to_ref)).most_common(1)[0]
    ranges = random_ranges(arguments.source, timed, files, arguments.references)
    rows: dict[str, dict[str, Any]] = {}
    for name in track([name for name in METHODS if name not in arguments.skip], console=console, transient=True):
        score = judge(name, cases, arguments.source)
        begin, all_of_them = clock(name, timed, ranges, arguments.source)
        levels = sorted({level for level, _ in score.confidence}, key=["certain", "likely", "unsure"].index)
        by_level = {
            lv: (score.confidence[lv, True], sum(score.confidence[lv, ok] for ok in (True, False))) for lv in levels
        }
        rows[name] = {
            "cases": score.cases, "ok": score.ok, "precision": score.precision, "recall": score.recall,
            "silent": score.silent, "begin": begin, "per_thousand": 1000 * all_of_them / len(ranges),
            "confidence": by_level,
        }  # fmt: skip
    result = {
        "machine": f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        "cases": len(cases), "files": len(files), "references": len(ranges), "timed": list(timed), "methods": rows,
    }  # fmt: skip
    section = markdown(result)
    console.print(section, markup=False, soft_wrap=True)
    if not arguments.dry_run:
        SECTION.write(section, figures=result)


def _is_id(ref: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{40}", ref) is not None


if __name__ == "__main__":
    main()
