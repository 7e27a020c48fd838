"""How the site grows: builds of 200, 1,000 and 2,000 synthetic notes, ten source references each.

`make bench WHAT=scale`, or `python bench/scale.py --notes 200 1000 2000` with the extras `site`, `test` and `bench`
installed and a Chromium. Each size is a copy of this project with its own pages replaced by notes of nine sections
that link to definitions of the pin, to each other and to terms of the glossary. Every build is a fresh process on a
warm cache of the source, first without the render cache of an earlier size. Writes `bench/scale.json`,
`bench/scale.svg` and the section of `bench/RESULTS.md` between its marks.

- lock: `sourcepanel lock`, which verifies every reference against the source.
- build: `mkdocs build --strict`; peak is that process's resident memory.
- page: bytes of the median note's HTML; index: of the search index.
- search: from the last letter of a query to the first result shown; the first query also builds the index.
- graph: until the page of the whole graph is quiet, and the elements of its picture.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pygal
from playwright.sync_api import Page, sync_playwright
from pygal.style import Style
from rich.console import Console

from bench.build import ROOT, Run, Variant, copy_project
from bench.results import Section
from bench.serve import FLAGS, find_chromium, served
from sourcepanel.config import Config, load_config
from sourcepanel.lock import read_lock
from sourcepanel.project import Sources

SECTION = Section("scale")
SIZES = (200, 1000, 2000)
REFERENCES = 10
QUERIES = ("梯度同步", "DistributedOptimizer", "第 7 篇")
KEPT = ("glossary.md", "graph.md")
"""Pages of the project that stay: what a synthetic note links to, and the page of the whole graph."""
SENTENCES = (
    "这一步把每个 rank 上的梯度合成一份，然后才更新参数。",
    "micro-batch 的 loss 先按 loss mask 求和，再除以 token 数。",
    "词表被切成几段，每个 rank 只算自己那一段的 logits。",
    "组里的每个 rank 都要调用，否则其余的一直等下去。",
    "分片的坐标由全局形状、偏移和本地形状三者给出。",
)


@dataclass(frozen=True)
class Size:
    """What one size cost."""

    notes: int
    references: int
    lock: Run
    build: Run
    page_bytes: int
    index_bytes: int
    search_ms: tuple[float, ...]
    """One a query."""
    graph_ms: float
    graph_nodes: int
    """Elements of the picture."""


def definitions(config: Config, *, count: int) -> list[str]:
    """`path::symbol` of that many definitions of the pin, spread over its files, the same every time."""
    source = Sources(config, lock=read_lock(config.path(config.lock)), notify=print)[config.repositories[0].name]
    python = [path for path in source.snapshot.list() if path.startswith("megatron/core/") and path.endswith(".py")]
    found = []
    for path in sorted(python):
        symbols = source.file(path).symbols
        known = [one for one in symbols.symbols if one.kind != "variable" and len(symbols.get(one.name)) == 1]
        found += [f"{path}::{one.name}" for one in known]
    return random.Random(0).sample(found, count)


def note(number: int, notes: int, *, headings: Sequence[str], targets: Sequence[str]) -> str:
    """One synthetic note: every heading, ten references, three links to others."""
    chance = random.Random(number)
    references = chance.sample(list(targets), REFERENCES)
    lines = [f"# {number:04} 第 {number} 篇", ""]
    for place, heading in enumerate(headings):
        lines += [f"## {heading}", ""]
        for reference in references[place::9]:
            lines += [f"{chance.choice(SENTENCES)}见 `{reference}`，{chance.choice(SENTENCES)}", ""]
        lines += [chance.choice(SENTENCES) * 3, ""]
        if place < 3:
            lines += [f"接着读 [[{chance.randrange(1, notes + 1):04}]]。", ""]
    return "\n".join(lines)


def prepare(folder: Path, notes: int, config: Config, *, targets: Sequence[str]) -> None:
    """The project with its pages replaced."""
    copy_project(folder)
    docs = folder / config.docs
    for page in docs.rglob("*.md"):
        if page.name not in KEPT:
            page.unlink()
    (docs / "notes").mkdir(exist_ok=True)
    assert config.notes is not None
    headings = config.notes.headings
    for number in range(1, notes + 1):
        text = note(number, notes, headings=headings, targets=targets)
        (docs / f"notes/{number:04}.md").write_text(text, encoding="utf-8")
    (docs / "index.md").write_text("# Scale\n\n" + SENTENCES[0] + "\n", encoding="utf-8")
    glossary = docs / "glossary.md"
    # Its links to pages that are gone would be warnings.
    text = re.sub(r"\b(?:lab|about|notes)/[\w.-]+\.md(?:#[^\s)]*)?", "index.md", glossary.read_text(encoding="utf-8"))
    glossary.write_text(text, encoding="utf-8")
    shutil.rmtree(docs / "traces")
    settings = (folder / "sourcepanel.toml").read_text(encoding="utf-8")
    kept = [line for line in settings.splitlines() if not re.match(r"(traces|roadmap|graph)\s*=", line)]
    (folder / "sourcepanel.toml").write_text("\n".join(kept) + "\n", encoding="utf-8")
    site = (folder / "mkdocs.yml").read_text(encoding="utf-8")
    site = re.sub(r"(?m)^nav:\n(?:[ -].*\n|\n)+", "", site)
    site = site.replace("base_path: [docs/traces]", "base_path: [docs]")
    (folder / "mkdocs.yml").write_text(site, encoding="utf-8")
    (folder / "sourcepanel.lock").unlink()


def run(folder: Path, *command: str, cache: Path) -> Run:
    """One measured process; a failed one ends the measurement with its output."""
    return Variant(command[0], folder, cache, lambda: None, command=command).run()


def look(page: Page, base: str) -> tuple[tuple[float, ...], float, int]:
    """Search and the graph, as a reader meets them."""
    page.goto(f"{base}/index.html", wait_until="networkidle")
    times = []
    for query in QUERIES:
        page.locator(".md-search__input").focus()
        page.locator(".md-search__input").fill(query[:-1])
        page.wait_for_timeout(200)
        times.append(
            page.evaluate(
                """(query) => new Promise((done) => {
                    const field = document.querySelector(".md-search__input");
                    document.querySelectorAll(".md-search-result__item").forEach((one) => one.remove());
                    const start = performance.now();
                    field.value = query;
                    for (const type of ["input", "keyup"]) field.dispatchEvent(new Event(type, { bubbles: true }));
                    const look = () => document.querySelector(".md-search-result__item")
                      ? done(performance.now() - start) : requestAnimationFrame(look);
                    look();
                })""",
                query,
            )
        )
        page.keyboard.press("Escape")
    page.goto(f"{base}/graph.html", wait_until="load")
    took = page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
    )
    return tuple(times), took, page.locator(".md-content svg *").count()


def measure(notes: int, work: Path, config: Config, *, targets: Sequence[str], console: Console) -> Size:
    """Build one size and look at it."""
    folder, cache = work / str(notes), work / "cache"
    folder.mkdir()
    prepare(folder, notes, config, targets=targets)
    lock = run(folder, "sourcepanel", "lock", cache=cache)
    console.print(f"{notes:,} notes: lock {lock.seconds:.1f} s")
    build = run(folder, "mkdocs", "build", "--strict", cache=cache)
    console.print(f"{notes:,} notes: build {build.seconds:.1f} s, {build.peak_mib:.0f} MiB")
    site = folder / "site"
    pages = [path.stat().st_size for path in (site / "notes").glob("*.html")]
    assert len(pages) == notes, f"{len(pages)} pages of {notes} notes"
    index = (site / "search/search_index.json").stat().st_size
    with served(site) as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        times, graph, nodes = look(browser.new_page(), base)
        browser.close()
    facts = json.loads((folder / "sourcepanel.lock").read_text(encoding="utf-8"))["pages"]
    references = sum(sum(each.values()) for each in facts.values())
    shutil.rmtree(folder)
    return Size(notes, references, lock, build, int(statistics.median(pages)), index, times, graph, nodes)


def plot(sizes: Sequence[Size]) -> str:
    """CPU seconds against notes, with the line that starts at the first size and grows in proportion."""
    style = Style(background="#fff", plot_background="#fff", colors=("#b45309", "#0f766e", "#9ca3af"))
    chart = pygal.XY(
        width=640, height=360, style=style, js=[], title="CPU seconds of a build and a lock",
        x_title="notes", y_title="s", show_x_guides=True, no_prefix=True,
    )  # fmt: skip
    chart.add("build", [(s.notes, round(s.build.cpu, 1)) for s in sizes])
    chart.add("lock", [(s.notes, round(s.lock.cpu, 1)) for s in sizes])
    first = sizes[0]
    chart.add(
        "in proportion", [(s.notes, round(first.build.cpu * s.notes / first.notes, 1)) for s in sizes], dots_size=0
    )
    return str(chart.render(is_unicode=True))


def markdown(sizes: Sequence[Size]) -> str:
    """The section of RESULTS.md."""
    rows = [
        f"| {s.notes:,} | {s.references:,} | {s.lock.cpu:.1f} | {s.build.seconds:.1f} | {s.build.cpu:.1f} "
        f"| {1000 * s.build.cpu / s.notes:.1f} | {s.build.peak_mib:.0f} | {s.build.site_bytes / 1e6:.0f} "
        f"| {s.page_bytes / 1000:.0f} | {s.index_bytes / 1e6:.1f} | {', '.join(f'{ms:.0f}' for ms in s.search_ms)} "
        f"| {s.graph_ms:.0f} | {s.graph_nodes:,} |"
        for s in sizes
    ]
    first, last = sizes[0], sizes[-1]
    growth = (last.build.cpu / first.build.cpu) / (last.notes / first.notes)
    return "\n".join(
        [
            f"{os.cpu_count()} cores; one build a size, in its own process. CPU seconds; the wall clock of a shared "
            "machine stands beside.",
            "",
            "| notes | references | lock, CPU s | build, s | build, CPU s | CPU ms a note | peak MiB | site MB "
            f"| page kB | index MB | search ms ({', '.join(QUERIES)}) | graph ms | graph elements |",
            "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
            *rows,
            "",
            f"- {last.notes / first.notes:.0f} × the notes cost {last.build.cpu / first.build.cpu:.1f} × the CPU: "
            f"**{growth:.2f}** of growth in proportion (1 is linear)",
            "",
            "![CPU seconds of builds against the number of notes](scale.svg)",
        ]
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--dry", action="store_true", help="print only, write no results")
    arguments = parser.parse_args()
    if find_chromium() is None:
        sys.exit("no Chromium: install the Debian package chromium, or name a browser in CHROMIUM")
    config, console = load_config(ROOT), Console()
    targets = definitions(config, count=2000)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        shutil.copytree(config.cache_dir, work / "cache", symlinks=True)
        sizes = [measure(n, work, config, targets=targets, console=console) for n in sorted(arguments.notes)]
    section = markdown(sizes)
    print(section)
    if not arguments.dry:
        figures: dict[str, Any] = {"sizes": [asdict(size) for size in sizes]}
        SECTION.write(section, figures=figures)
        (ROOT / "bench/scale.svg").write_text(plot(sizes), encoding="utf-8")


if __name__ == "__main__":
    main()
