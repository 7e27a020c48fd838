"""What a build costs: plain Material, ours cold and warm, and mkdocstrings with source, for the same notes.

`make bench`, or `python bench/build.py --rounds 5` with the extras `site` and `bench` installed. All variants run
in the same session, alternating, each in a fresh process on its own copy of the notes; the source snapshot is
fetched before and never measured. Writes `bench/build.json` and the section of `bench/RESULTS.md` between its marks.

- plain: Material with this site's theme settings and Markdown extensions, without our hooks, extension, theme
  overrides, styles and scripts: what the notes would cost if their links were only links.
- cold: our build with nothing in the cache but the snapshot: it renders, and indexes the source for its checks.
- warm: our build again, with the cache that the cold one left.
- mkdocstrings: plain, plus one page a referenced Python module with `show_source`. It is given only the
  referenced modules and the packages above them, so that it need not parse the rest of the tree.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from bench.results import Section
from sourcepanel.config import CONFIG_NAME, Config, load_config
from sourcepanel.lock import read_lock
from sourcepanel.panel import write_panel
from sourcepanel.project import Project
from sourcepanel.snapshot import open_snapshot
from sourcepanel.source import Source

ROOT = Path(__file__).resolve().parent.parent
SECTION = Section("build")
OURS = re.compile(r"sourcepanel|hooks|overrides", re.I)
"""What in mkdocs.yml belongs to this project and not to plain Material."""
DERIVED = ("render", "lines", "symbols")
"""Folders of the cache that builds fill from the snapshot."""
PACKAGES = ("mkdocs", "mkdocs-material", "mkdocstrings-python", "Pygments")
WARM_GOAL = 1.15
RENDER_GOAL = 5.0


@dataclass(frozen=True)
class Run:
    """One build in its own process."""

    seconds: float
    cpu: float
    """User and system time of the process and its children."""
    peak_mib: float
    site_bytes: int


@dataclass(frozen=True)
class Variant:
    """A copy of the project in one of the four shapes."""

    name: str
    folder: Path
    cache: Path
    before: Callable[[], None]
    """Puts the cache in the state that the variant's name promises."""
    command: tuple[str, ...] = ("mkdocs", "build", "--quiet")

    def run(self) -> Run:
        """Build once; a failed build ends the measurement with its output."""
        self.before()
        site = self.folder / "site"
        shutil.rmtree(site, ignore_errors=True)
        log = self.folder / "build.log"
        environment = {**os.environ, "SOURCEPANEL_CACHE": str(self.cache), "NO_MKDOCS_2_WARNING": "1"}
        with log.open("w") as output:
            start = time.perf_counter()
            process = subprocess.Popen(
                [str(Path(sys.executable).with_name(self.command[0])), *self.command[1:]],
                cwd=self.folder,
                env=environment,
                stdout=output,
                stderr=output,
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{self.name}: {' '.join(self.command)} failed\n{log.read_text(encoding='utf-8')}")
        unit = 1 if sys.platform == "darwin" else 1024
        size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 2**20, size)


class _Tagged:
    """A YAML node with a tag of MkDocs' own (`!!python/name:`, `!ENV`), carried through unread."""

    def __init__(self, node: yaml.Node) -> None:
        self.node = node


class _Loader(yaml.SafeLoader):
    pass


class _Dumper(yaml.SafeDumper):
    pass


_Loader.add_multi_constructor("", lambda _loader, _tag, node: _Tagged(node))
_Dumper.add_representer(_Tagged, lambda _dumper, value: value.node)


def plain_config(text: str) -> dict[str, Any]:
    """mkdocs.yml without what is ours; raises where that leaves no Material."""
    config = {key: value for key, value in yaml.load(text, _Loader).items() if key != "hooks"}
    theme = {key: value for key, value in config["theme"].items() if key != "custom_dir"}
    if theme.get("name") != "material":
        raise SystemExit("mkdocs.yml: the theme is not material")
    for key in ("extra_css", "extra_javascript", "validation"):
        config.pop(key, None)
    plugins = [plugin for plugin in config.get("plugins", ["search"]) if _name(plugin) in ("search", "offline")]
    extensions = [_without_ours(e) for e in config.get("markdown_extensions", []) if not OURS.search(_name(e))]
    return {**config, "theme": theme, "plugins": plugins, "markdown_extensions": extensions}


def _name(entry: object) -> str:
    return str(next(iter(entry))) if isinstance(entry, dict) else str(entry)


def _without_ours(extension: object) -> object:
    """An extension's options without values that name our modules (custom fences, for one)."""
    if not isinstance(extension, dict):
        return extension
    name, options = next(iter(extension.items()))
    if not isinstance(options, dict):
        return extension
    kept = {}
    for key, value in options.items():
        if isinstance(value, list):
            value = [item for item in value if not OURS.search(_spelled(item))]
        if not isinstance(value, list) and OURS.search(_spelled(value)):
            continue
        kept[key] = value
    return {name: kept}


def _spelled(value: object) -> str:
    return yaml.dump(value, Dumper=_Dumper)


def copy_project(target: Path) -> None:
    """What a build reads: every file that git knows or would add, but the tests."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if PurePosixPath(name).parts[0] not in ("tests", "bench") and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)


def referenced(config: Config, target: Path) -> dict[str, int]:
    """Write the referenced Python modules that this snapshot has to `target`; their paths and line counts."""
    lock, lines = read_lock(config.path(config.lock)), {}
    for repository in config.repositories:
        locked = lock.repository(repository.name, commit=repository.commit)
        files = locked.files if locked else {}
        snapshot = open_snapshot(
            repository,
            root=config.root,
            cache=config.cache_dir,
            blobs={path: file.blob for path, file in files.items()},
            notify=print,
        )
        present = set(snapshot.list())
        modules = [path for path in files if path.endswith(".py") and "/" in path and path in present]
        for path in [*modules, *_packages(modules, present)]:
            data = snapshot.read(path)
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(data)
            if path in modules:
                lines[path] = data.count(b"\n")
    return lines


def _packages(modules: Iterable[str], present: set[str]) -> list[str]:
    """The `__init__.py` of every package above the modules."""
    above = {str(parent / "__init__.py") for module in modules for parent in PurePosixPath(module).parents}
    return sorted(above & present - set(modules))


def prepare(work: Path, config: Config) -> tuple[list[Variant], dict[str, int]]:
    """The four copies, and the source lines that cold and mkdocstrings both render."""
    tree, cache = work / "tree", config.cache_dir
    lines = referenced(config, tree)
    folders = {name: work / name for name in ("plain", "ours", "mkdocstrings")}
    for folder in folders.values():
        copy_project(folder)
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    plain = plain_config(text)
    _write_config(folders["plain"], plain)
    options = {"show_source": True, "show_root_heading": True, "members_order": "source", "filters": []}
    handler = {"default_handler": "python", "handlers": {"python": {"paths": [str(tree)], "options": options}}}
    _write_config(folders["mkdocstrings"], {**plain, "plugins": [*plain["plugins"], {"mkdocstrings": handler}]})
    pages = folders["mkdocstrings"] / config.docs / "modules"
    pages.mkdir()
    for path in lines:
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        (pages / f"{name}.md").write_text(f"# {name}\n\n::: {name}\n", encoding="utf-8")
    # What builds make from the snapshot is removed again and again, so the cache is a copy.
    own = work / "cache"
    shutil.copytree(cache, own, symlinks=True)

    def nothing() -> None:
        pass

    def empty() -> None:
        for name in DERIVED:
            shutil.rmtree(own / name, ignore_errors=True)

    return [
        Variant("plain", folders["plain"], own, nothing),
        Variant("cold", folders["ours"], own, empty),
        Variant("warm", folders["ours"], own, nothing),
        Variant("mkdocstrings", folders["mkdocstrings"], own, nothing),
    ], lines


def _write_config(folder: Path, config: dict[str, Any]) -> None:
    text = yaml.dump(config, Dumper=_Dumper, allow_unicode=True, sort_keys=False)
    (folder / "mkdocs.yml").write_text(text, encoding="utf-8")


def measure(variants: list[Variant], *, rounds: int, console: Console) -> dict[str, list[Run]]:
    """One unmeasured round, then the rounds; warm always follows cold, the others change places."""
    runs: dict[str, list[Run]] = {variant.name: [] for variant in variants}
    plain, cold, warm, peer = variants
    for number in range(rounds + 1):
        order = [plain, cold, warm, peer] if number % 2 else [peer, cold, warm, plain]
        for variant in order:
            run = variant.run()
            console.print(f"round {number} {variant.name}: {run.seconds:.2f} s" + ("" if number else " (not counted)"))
            if number:
                runs[variant.name].append(run)
    return runs


def rendering(config: Config, paths: Iterable[str], *, rounds: int) -> list[float]:
    """CPU seconds, each round anew, to parse and render these files and to write what the panel loads of them."""
    project = Project.open(config.root / CONFIG_NAME, notify=lambda line: None)
    targets = [t for t in project.check().targets if t.path in set(paths)]
    seconds = []
    for _ in range(rounds):
        fresh = [Source(s.repository, snapshot=s.snapshot, locked=s.locked) for s in project.sources.values()]
        with tempfile.TemporaryDirectory() as out:
            start = time.process_time()
            write_panel(Path(out), sources=fresh, targets=targets, cache=None)
            seconds.append(time.process_time() - start)
    return seconds


def summarize(runs: dict[str, list[Run]], lines: dict[str, int], rendered: list[float]) -> dict[str, Any]:
    """Medians and the two figures of merit, both from CPU seconds: every build is one process, and on a shared
    machine the wall clock measures the others."""
    middle = {
        name: {key: statistics.median(asdict(run)[key] for run in each) for key in asdict(each[0])}
        for name, each in runs.items()
    }
    total = sum(lines.values())
    extra = {name: middle[name]["cpu"] - middle["plain"]["cpu"] for name in ("cold", "mkdocstrings")}
    extra["panel"] = statistics.median(rendered)
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "rounds": len(runs["plain"]),
        "modules": len(lines),
        "lines": total,
        "median": middle,
        "spread": {n: [min(r.seconds for r in each), max(r.seconds for r in each)] for n, each in runs.items()},
        "warm_over_plain": middle["warm"]["cpu"] / middle["plain"]["cpu"],
        "microseconds_per_line": {name: 1e6 * seconds / total for name, seconds in extra.items()},
        "render_speedup": extra["mkdocstrings"] / extra["panel"],
        "build_speedup": extra["mkdocstrings"] / extra["cold"],
    }


def markdown(result: dict[str, Any]) -> str:
    """The section of RESULTS.md."""
    rows = [
        f"| {name} | {m['seconds']:.2f} ({low:.2f}–{high:.2f}) | {m['cpu']:.2f} | {m['peak_mib']:.0f} "
        f"| {m['site_bytes'] / 1e6:.2f} |"
        for name, m in result["median"].items()
        for low, high in [result["spread"][name]]
    ]
    per_line = result["microseconds_per_line"]
    used = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return "\n".join(
        [
            f"Python {result['python']}, {result['machine']}; {used}; medians of {result['rounds']} alternating rounds "
            f"(least and most in brackets); {result['modules']} referenced modules, {result['lines']:,} lines.",
            "",
            "| build | seconds | CPU seconds | peak MiB | site MB |",
            "|---|--:|--:|--:|--:|",
            *rows,
            "",
            f"- CPU, warm / plain: **{result['warm_over_plain']:.2f}** (goal ≤ {WARM_GOAL})",
            f"- CPU a source line, rendered and written: the panel {per_line['panel']:.0f} µs, mkdocstrings (its build "
            f"less plain) {per_line['mkdocstrings']:.0f} µs: **{result['render_speedup']:.1f} ×** "
            f"(goal ≥ {RENDER_GOAL:.0f})",
            f"- CPU a source line, all that a cold build adds to plain (reading, verifying, indexing, rendering): "
            f"{per_line['cold']:.0f} µs: {result['build_speedup']:.1f} ×",
        ]
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="print only, write no results")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        config = load_config(ROOT)
        variants, lines = prepare(Path(folder), config)
        runs = measure(variants, rounds=arguments.rounds, console=console)
        result = summarize(runs, lines, rendering(config, lines, rounds=arguments.rounds))
    result["versions"] = {name: version(name) for name in PACKAGES}
    table = Table("build", "seconds", "CPU", "peak MiB", "site MB", title="medians")
    for name, m in result["median"].items():
        table.add_row(
            name, f"{m['seconds']:.2f}", f"{m['cpu']:.2f}", f"{m['peak_mib']:.0f}", f"{m['site_bytes'] / 1e6:.2f}"
        )
    console.print(table)
    section = markdown(result)
    console.print("\n".join(section.splitlines()[-3:]))
    if not arguments.dry:
        SECTION.write(section, figures=result)


if __name__ == "__main__":
    main()
