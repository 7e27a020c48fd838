"""How long from a click on a source link until its line is painted: our panel, a naive one, a viewcode page.

`python bench/panel.py --rounds 7` with the extras `site`, `test` and `bench` installed, and a Chromium. All ways run
in the same session, alternating, each first open in a browser context of its own (nothing cached), at full speed and
with the processor throttled. Writes `bench/panel.json` and the section of `bench/RESULTS.md` between its marks.

- panel: a page of this engine under Material; the click opens the source panel at the definition.
- naive: the same page and the same data, every line put in as a row of a table (`naive_panel.js`).
- viewcode: a click on a `[source]` link of Sphinx's viewcode, which opens the page of that module.

Painted means: the definition's line stands in the window, and the frame that shows it has been produced by the main
thread; what the compositor does after that is the same for all and not counted. Repeated: the same link once more
after the panel was closed, or after the viewcode page was left.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, sync_playwright
from rich.console import Console

from bench.panel_sites import File, build_ours, build_viewcode, choose
from bench.results import Section
from bench.serve import FLAGS, find_chromium, served
from sourcepanel.config import load_config
from sourcepanel.lock import read_lock
from sourcepanel.panel_assets import LATER, SCRIPTS, STYLES
from sourcepanel.project import Sources

ROOT = Path(__file__).resolve().parent.parent
SECTION = Section("panel")
THROTTLES = (1, 4)
WAYS = ("panel", "naive", "viewcode")
PACKAGES = ("Sphinx", "mkdocs-material")
GOALS = {"naive": 10.0, "viewcode": 3.0}

PROBE = """
globalThis.untilPainted = (find) => new Promise((done) => {
  let frames = 0;
  const look = () => requestAnimationFrame(() => {
    frames += 1;
    const box = find()?.getBoundingClientRect();
    if (!box?.height || box.top < -4 || box.top > innerHeight - 16) return look();
    // A message posted in a frame is delivered when that frame has been produced.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done({ at: performance.timeOrigin + performance.now(), frames });
    port2.postMessage(0);
  });
  look();
});
globalThis.now = () => performance.timeOrigin + performance.now();
if (location.pathname.includes("/_modules/")) {
  globalThis.painted = untilPainted(() => document.querySelector(":target"));
}
"""


@dataclass(frozen=True)
class Open:
    """One click."""

    milliseconds: float
    frames: int
    """Frames from the click to the one that shows the line; 1 is the next one. Of a new page: its own frames."""
    nodes: int
    """Elements that stand in the panel, or on the page, when all is quiet."""


class Clicks:
    """The three ways to open a file, in a browser."""

    def __init__(self, browser: Browser, *, ours: str, viewcode: str, repository: str) -> None:
        self._browser = browser
        self._ours = ours
        self._viewcode = viewcode
        self._repository = repository

    def both(self, way: str, file: File, *, throttle: int) -> tuple[Open, Open]:
        """The first and a repeated open."""
        context = self._browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_init_script(PROBE)
        page = context.new_page()
        try:
            cdp = context.new_cdp_session(page)
            act = {"panel": self._panel, "naive": self._naive, "viewcode": self._page}[way]
            return act(context, page, cdp, file, throttle)
        finally:
            context.close()

    def _panel(self, _: BrowserContext, page: Page, cdp: CDPSession, file: File, throttle: int) -> tuple[Open, Open]:
        self._start(page, cdp, f"{self._ours}/index.html", throttle)
        click = """([path, line]) => {
            const link = [...document.querySelectorAll("a.sp-link")].find((one) => one.dataset.src.includes(path));
            const start = now();
            link.click();
            return untilPainted(() => document.querySelector(`.sp-panel .sp-l.sp-on:has([data-n="${line}"])`))
              .then(({ at, frames }) => ({ milliseconds: at - start, frames }));
        }"""
        count = "() => document.querySelectorAll('.sp-panel *').length"
        return self._twice(page, click, [file.path, file.line], "() => SourcePanel.close()", count)

    def _naive(self, _: BrowserContext, page: Page, cdp: CDPSession, file: File, throttle: int) -> tuple[Open, Open]:
        self._start(page, cdp, f"{self._ours}/index.html", 1)
        page.add_script_tag(url=f"{self._ours}/naive_panel.js")
        self._throttle(page, cdp, throttle)
        click = """([key, path, line]) => {
            const start = now();
            naive.open(key, path, line);
            return untilPainted(() => document.getElementById(`row-${line}`))
              .then(({ at, frames }) => ({ milliseconds: at - start, frames }));
        }"""
        key = f"{self._repository}/{file.path}"
        count = "() => document.querySelectorAll('aside:last-child *').length"
        values = [key, f"sourcepanel/src/{key}.js", file.line]
        return self._twice(page, click, values, "() => naive.close()", count)

    def _twice(self, page: Page, click: str, values: list[Any], close: str, count: str) -> tuple[Open, Open]:
        opens = []
        for _ in range(2):
            seen = page.evaluate(click, values)
            page.wait_for_timeout(1500)
            opens.append(Open(**seen, nodes=page.evaluate(count)))
            page.evaluate(close)
            page.wait_for_timeout(500)
        return opens[0], opens[1]

    def _page(self, _: BrowserContext, page: Page, cdp: CDPSession, file: File, throttle: int) -> tuple[Open, Open]:
        opens = []
        for _visit in range(2):
            self._start(page, cdp, f"{self._viewcode}/index.html", throttle)
            start = page.evaluate(
                """(end) => {
                const link = [...document.querySelectorAll("a")].find((one) => one.href.endsWith(end));
                const start = now();
                setTimeout(() => link.click());
                return start;
            }""",
                f"/{file.module.replace('.', '/')}.html#{file.symbol}",
            )
            page.wait_for_url("**/_modules/**", wait_until="commit")
            seen = page.evaluate("() => painted")
            page.wait_for_timeout(1000)
            nodes = page.evaluate("() => document.querySelectorAll('*').length")
            opens.append(Open(seen["at"] - start, seen["frames"], nodes))
        return opens[0], opens[1]

    def _start(self, page: Page, cdp: CDPSession, url: str, throttle: int) -> None:
        cdp.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        page.goto(url, wait_until="networkidle")
        self._throttle(page, cdp, throttle)

    def _throttle(self, page: Page, cdp: CDPSession, rate: int) -> None:
        page.wait_for_timeout(300)
        cdp.send("Emulation.setCPUThrottlingRate", {"rate": rate})


def measure(clicks: Clicks, files: Sequence[File], *, rounds: int, console: Console) -> list[dict[str, Any]]:
    """One unmeasured round, then the rounds; the ways alternate within each."""
    found: dict[tuple[int, str, str], list[tuple[Open, Open]]] = {}
    for number in range(rounds + 1):
        for throttle in THROTTLES:
            for file in files:
                for way in WAYS if number % 2 else reversed(WAYS):
                    both = clicks.both(way, file, throttle=throttle)
                    if number:
                        found.setdefault((throttle, file.path, way), []).append(both)
        console.print(f"round {number} of {rounds}" + ("" if number else " (not counted)"))
    return [
        {
            "throttle": throttle, "path": path, "way": way, "nodes": statistics.median(b.nodes for _, b in both),
            **{
                name: {
                    "ms": statistics.median(o.milliseconds for o in opens),
                    "least": min(o.milliseconds for o in opens),
                    "most": max(o.milliseconds for o in opens),
                    "frames": statistics.median(o.frames for o in opens),
                }
                for name, opens in (("first", [a for a, _ in both]), ("repeated", [b for _, b in both]))
            },
        }
        for (throttle, path, way), both in found.items()
    ]  # fmt: skip


def sizes(site: Path) -> dict[str, int]:
    """Gzipped bytes of what every page loads of the panel, and of what the first open adds."""
    return {name: len(gzip.compress((site / name).read_bytes(), 9)) for name in (*SCRIPTS, *STYLES, LATER)}


def markdown(result: Mapping[str, Any]) -> str:
    """The section of RESULTS.md."""
    rows = {(row["throttle"], row["path"], row["way"]): row for row in result["rows"]}
    used = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    out = [
        f"{result['machine']}; {used}; medians of {result['rounds']} alternating rounds (least–most). Milliseconds "
        "from the click to the frame that shows the line.",
        "",
        "| file | lines | CPU | way | first open | repeated | frames, repeated | elements |",
        "|---|--:|--:|---|--:|--:|--:|--:|",
    ]
    for file in result["files"]:
        for throttle in THROTTLES:
            for way in WAYS:
                row = rows[throttle, file["path"], way]
                spans = [f"{o['ms']:.0f} ({o['least']:.0f}–{o['most']:.0f})" for o in (row["first"], row["repeated"])]
                speed = "full" if throttle == 1 else f"1/{throttle}"
                frames = "" if way == "viewcode" else f"{row['repeated']['frames']:.0f}"
                out.append(
                    f"| {Path(file['path']).name} | {file['lines']:,} | {speed} | {way} | {spans[0]} | {spans[1]} "
                    f"| {frames} | {row['nodes']:,.0f} |"
                )
    longest = result["files"][-1]["path"]
    out.append("")
    for throttle in THROTTLES:
        speed = "at full speed" if throttle == 1 else f"throttled {throttle}×"
        ours = rows[throttle, longest, "panel"]
        said = [
            f"{rows[throttle, longest, peer]['first']['ms'] / ours['first']['ms']:.1f} × faster than {peer} "
            f"(goal ≥ {goal:.0f})"
            for peer, goal in GOALS.items()
        ]
        out.append(f"- longest file, first open, {speed}: **{'; '.join(said)}**")
        repeats = [rows[throttle, file["path"], "panel"]["repeated"]["frames"] for file in result["files"]]
        out.append(f"- repeated opens of the panel, {speed}: painted in frame {max(repeats):.0f} or earlier (goal ≤ 2)")
    late = result["bytes"][LATER]
    out.append(
        f"- script and style, gzipped: {(sum(result['bytes'].values()) - late) / 1000:.1f} kB with the page "
        f"(goal ≤ 20), {late / 1000:.1f} kB more with the first open"
    )
    return "\n".join(out)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dry", action="store_true", help="print only, write no results")
    arguments = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        sys.exit("no Chromium: install the Debian package chromium, or name a browser in CHROMIUM")
    console = Console()
    config = load_config(ROOT)
    source = Sources(config, lock=read_lock(config.path(config.lock)), notify=print)[config.repositories[0].name]
    files = choose(source)
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        folders = Path(work, "ours"), Path(work, "viewcode")
        for folder in folders:
            folder.mkdir()
        site, pages = build_ours(folders[0], files), build_viewcode(folders[1], source, files)
        packed = sizes(site)
        with served(site) as ours, served(pages) as viewcode, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
            clicks = Clicks(browser, ours=ours, viewcode=viewcode, repository=source.repository.name)
            rows = measure(clicks, files, rounds=arguments.rounds, console=console)
            used = {
                "Chromium": browser.version,
                "Sphinx": version("Sphinx"),
                "mkdocs-material": version("mkdocs-material"),
            }
            browser.close()
    result = {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores", "versions": used,
        "rounds": arguments.rounds, "files": [vars(file) for file in files], "bytes": packed, "rows": rows,
    }  # fmt: skip
    section = markdown(result)
    print(section)
    if not arguments.dry:
        SECTION.write(section, figures=result)


if __name__ == "__main__":
    main()
