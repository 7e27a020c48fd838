"""What Lighthouse says of the main pages, and what each of them weighs.

`python bench/audit.py` with the extras `site` and `test` installed, a Chromium, and Lighthouse on the PATH or in
`LIGHTHOUSE` (a command; it is an npm package: `npm install lighthouse`, Node 20 or newer). Builds the site, serves it
on this machine the way a host does (compressed, with a lifetime for caches), and runs Lighthouse's mobile and desktop
forms on each page, `--rounds` times; each score is the median. Then axe-core looks at every page of the site, whole,
in both palettes. Writes `bench/audit.json` and the section of `bench/RESULTS.md` between its marks.

The scores for accessibility, best practices and SEO come from the page alone. The one for performance is reckoned
from this machine's work under Lighthouse's slow phone and network, so it moves with what else runs here; the bytes do
not.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import sync_playwright
from rich.console import Console

from bench.results import Section

ROOT = Path(__file__).resolve().parent.parent
SECTION = Section("audit")
PAGES = ("index", "notes/05-forward-loss-backward", "lab/megatron", "glossary", "roadmap")
FORMS: Mapping[str, tuple[str, ...]] = {"mobile": (), "desktop": ("--preset=desktop",)}
SCORES = ("performance", "accessibility", "best-practices", "seo")
FIGURES = {
    "first-contentful-paint": "FCP s",
    "largest-contentful-paint": "LCP s",
    "total-blocking-time": "TBT ms",
    "cumulative-layout-shift": "CLS",
    "total-byte-weight": "KiB sent",
}
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu")
COMPRESSED = (".html", ".css", ".js", ".svg", ".json", ".xml")
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"

Reading = dict[str, float]


class Host(SimpleHTTPRequestHandler):
    """A static host as they are: text compressed, everything kept for a year."""

    def do_GET(self) -> None:
        """Answer with the compressed file where that is smaller to send."""
        path = Path(self.translate_path(self.path))
        if path.suffix not in COMPRESSED or not path.is_file():
            super().do_GET()
            return
        body = gzip.compress(path.read_bytes(), 6, mtime=0)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        """Every answer may be kept."""
        self.send_header("Cache-Control", "max-age=31536000")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The address of the folder on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def build(folder: Path) -> Path:
    """The real site, without a warning."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    return folder


def lighthouse(command: Sequence[str], url: str, form: str, *, chromium: str, report: Path) -> dict[str, Any]:
    """One report."""
    arguments = [url, *FORMS[form], "--quiet", "--output=json", f"--output-path={report}"]
    arguments += [f"--only-categories={','.join(SCORES)}", f"--chrome-flags={' '.join(FLAGS)}"]
    subprocess.run([*command, *arguments], check=True, env={**os.environ, "CHROME_PATH": chromium})
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


def read(report: Mapping[str, Any]) -> tuple[Reading, list[str]]:
    """Scores of 100 and figures of one report, and the names of the audits outside performance that failed."""
    categories, audits = report["categories"], report["audits"]
    reading: Reading = {name: round(100 * categories[name]["score"]) for name in SCORES}
    reading |= {name: float(audits[name]["numericValue"]) for name in FIGURES}
    judged = {ref["id"] for name in SCORES[1:] for ref in categories[name]["auditRefs"] if ref["weight"]}
    return reading, sorted(name for name in judged if audits[name]["score"] == 0)


def median(readings: Sequence[Reading]) -> Reading:
    """The middle of each figure by itself."""
    return {name: statistics.median(each[name] for each in readings) for name in readings[0]}


def look(base: str, site: Path, *, chromium: str) -> dict[str, int]:
    """How many pages axe-core looked at, how many rules it tried that apply, and how many were broken."""
    pages = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    # The page for what is not there, and the plain pages of source files, have tests of their own.
    pages = [page for page in pages if page != "404.html" and not page.startswith("sourcepanel/")]
    total = {"pages": 2 * len(pages), "passes": 0, "violations": 0}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS[1:]))
        for scheme in ("light", "dark"):
            page = browser.new_context(color_scheme="light" if scheme == "light" else "dark").new_page()
            for name in pages:
                page.goto(base + name)
                page.evaluate(AXE.read_text(encoding="utf-8"))
                found = page.evaluate("async () => { const r = await axe.run(); return [r.passes, r.violations]; }")
                total["passes"] += len(found[0])
                total["violations"] += len(found[1])
        browser.close()
    return total


def render(figures: Mapping[str, Any]) -> str:
    """The section, from the figures alone."""
    head = ["page", "form", "performance", "accessibility", "best practices", "SEO", *FIGURES.values()]
    lines = [
        f"{figures['machine']}; {figures['browser']}, Lighthouse {figures['lighthouse']}; "
        f"the median of {figures['rounds']} report(s) each; served compressed from this machine.",
        "",
        f"| {' | '.join(head)} |",
        f"|---|---|{'--:|' * (len(head) - 2)}",
    ]
    for row in figures["rows"]:
        reading = row["reading"]
        shown = [f"{reading[name]:.0f}" for name in SCORES]
        shown += [
            f"{reading['first-contentful-paint'] / 1000:.1f}",
            f"{reading['largest-contentful-paint'] / 1000:.1f}",
            f"{reading['total-blocking-time']:.0f}",
            f"{reading['cumulative-layout-shift']:.3f}",
            f"{reading['total-byte-weight'] / 1024:.0f}",
        ]
        lines.append(f"| {row['page']} | {row['form']} | {' | '.join(shown)} |")
    failed = sorted({name for row in figures["rows"] for name in row["failed"]})
    axe = figures["axe"]
    lines += [
        "",
        f"- Audits of accessibility, best practices and SEO that fail on some page: {', '.join(failed) or 'none'}",
        f"- axe-core, every page whole in both palettes: {axe['pages']} looks, {axe['passes']} rules kept, "
        f"**{axe['violations']} broken**",
    ]
    return "\n".join(lines)


def measure(command: Sequence[str], *, chromium: str, rounds: int, console: Console) -> dict[str, Any]:
    """Build, serve, and gather all figures."""
    rows: list[dict[str, Any]] = []
    seen: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site, report = build(folder / "site"), folder / "report.json"
        with serve(site) as base:
            for page in PAGES:
                for form in FORMS:
                    reports = [
                        lighthouse(command, f"{base}{page}.html", form, chromium=chromium, report=report)
                        for _ in range(rounds)
                    ]
                    seen = reports[-1]
                    readings = [read(report) for report in reports]
                    reading = median([each for each, _ in readings])
                    failed = sorted({audit for _, audits in readings for audit in audits})
                    rows.append({"page": page, "form": form, "reading": reading, "failed": failed})
                    console.print(f"{page} {form}: {', '.join(f'{name} {reading[name]:.0f}' for name in SCORES)}")
            axe = look(base, site, chromium=chromium)
    browser = next(part for part in seen["environment"]["hostUserAgent"].split() if "Chrome/" in part)
    return {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "browser": browser.replace("HeadlessChrome/", "Chromium ").replace("Chrome/", "Chromium "),
        "lighthouse": seen["lighthouseVersion"],
        "rounds": rounds,
        "rows": rows,
        "axe": axe,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="reports a page and form (default 3)")
    options = parser.parse_args(arguments)
    command = shlex.split(os.environ.get("LIGHTHOUSE", "lighthouse"))
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or shutil.which(command[0]) is None:
        raise SystemExit("bench/audit.py needs a Chromium (CHROMIUM) and Lighthouse (LIGHTHOUSE): see its docstring")
    figures = measure(command, chromium=chromium, rounds=options.rounds, console=Console(stderr=True))
    SECTION.write(render(figures), figures=figures)


if __name__ == "__main__":
    main()
