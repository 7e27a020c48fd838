"""The command line: `sourcepanel check` and `sourcepanel lock`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from sourcepanel.config import CONFIG_NAME
from sourcepanel.diagnostics import Diagnostic, Level
from sourcepanel.errors import SourcePanelError
from sourcepanel.lock import format_lock, write_lock
from sourcepanel.project import Project, Report
from sourcepanel.relock import Relocked, relock

_COLOURS = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.INFO: "cyan", Level.IGNORE: "dim"}
_SHOWN = 12
"""Entries that the summary of `lock` shows per page."""


@dataclass(frozen=True)
class _Session:
    """What every command needs: results go to `out`, progress and errors to `err`."""

    config: Path
    out: Console
    err: Console
    quiet: bool

    def open(self) -> Project:
        return Project.open(self.config, notify=self.notify)

    def notify(self, line: str) -> None:
        if not self.quiet:
            self.err.print(escape(line), style="dim", soft_wrap=True)

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[str], None]]:
        """A bar on a terminal, nothing elsewhere."""
        if self.quiet or not self.err.is_terminal:
            yield lambda page: None
            return
        with Progress(console=self.err, transient=True) as bar:
            task = bar.add_task("pages", total=total)
            yield lambda page: bar.update(task, advance=1, description=escape(page))


class _Group(click.Group):
    """Prints our own errors as one clean line and leaves with 2."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        try:
            return super().invoke(ctx)
        except SourcePanelError as error:
            Console(stderr=True).print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True, highlight=False)
            sys.exit(2)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=Path(CONFIG_NAME),
    show_default=True,
    help="The configuration, or the folder that holds it.",
)
@click.option("-q", "--quiet", is_flag=True, help="Results only: no progress, no notices.")
@click.version_option(package_name="sourcepanel")
@click.pass_context
def main(ctx: click.Context, config: Path, quiet: bool) -> None:
    """Keep the source links of Markdown pages right.

    Exit codes: 0 all is right, 1 something was found, 2 it could not be looked at.
    """
    ctx.obj = _Session(config, Console(highlight=False), Console(stderr=True, highlight=False), quiet)


@main.command()
@click.argument("pages", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output, see below.")
@click.option("--strict/--no-strict", default=True, show_default=True, help="Whether warnings fail.")
@click.option("--stats", is_flag=True, help="Counts per page.")
@click.pass_obj
def check(session: _Session, pages: tuple[Path, ...], as_json: bool, strict: bool, stats: bool) -> None:
    """Hold the references of PAGES (default: all) against the pin and the lock.

    \b
    --json prints one object:
      version      1; new keys may appear, none changes its meaning
      diagnostics  list of {code, level, page, line, link, message, fix}
      pages        {page: {references, from_source, from_lock, findings}}
      counts       {pages, references, from_source, from_lock, unchecked,
                    error, warning, info}
    """
    project = session.open()
    names = [_page_name(project, page) for page in pages] or None
    with session.progress(len(names or project.config.page_names())) as seen:
        report = project.check(names, seen=seen)
    if as_json:
        click.echo(json.dumps(_as_json(report), ensure_ascii=False, indent=2))
    else:
        for finding in report.diagnostics:
            _print_finding(session.out, finding)
        if stats:
            session.out.print(_table(report))
        if not session.quiet:
            session.out.print(_summary(report), soft_wrap=True)
    sys.exit(int(report.fails(strict=strict)))


@main.command()
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit with 1 if the lock would change.")
@click.pass_obj
def lock(session: _Session, only_check: bool) -> None:
    """Write the lock that the pages need, and tell what changes.

    Needs the whole tree of the pin for links into files that are not locked yet; with the wheel alone,
    what the lock says of files outside the wheel stays as it is.
    """
    project = session.open()
    path = project.config.path(project.config.lock)
    with session.progress(len(project.config.page_names())) as seen:
        made = relock(project, seen=seen)
    if made.lock is None:
        for finding in made.wrong:
            _print_finding(session.out, finding)
        session.err.print(f"{path.name} not written: mend these first", style="bold red")
        sys.exit(1)
    text = format_lock(made.lock)
    changes = not path.exists() or path.read_text(encoding="utf-8") != text
    _print_changes(session.out, made)
    if only_check:
        session.out.print(f"{path.name} " + ("would change: run `sourcepanel lock`" if changes else "is up to date"))
        sys.exit(int(changes))
    write_lock(made.lock, path)
    session.out.print(f"{path.name} " + (f"written: {_size(made)}" if changes else "is up to date"))


def _page_name(project: Project, page: Path) -> str:
    """A page as named on the command line: from here, or from the docs folder."""
    docs = project.config.path(project.config.docs)
    known = project.config.page_names()
    for candidate in (page.resolve(), (docs / page).resolve()):
        if candidate.is_relative_to(docs) and (name := candidate.relative_to(docs).as_posix()) in known:
            return name
    raise click.UsageError(f"{page} is no page: there is none such under {docs}, or `exclude` leaves it out")


def _as_json(report: Report) -> dict[str, object]:
    levels = {level.value: report.count(level) for level in (Level.ERROR, Level.WARNING, Level.INFO)}
    return {
        "version": 1,
        "diagnostics": [asdict(finding) for finding in report.diagnostics],
        "pages": {
            page.page: {
                "references": page.total,
                "from_source": page.from_source,
                "from_lock": page.from_lock,
                "findings": len(page.diagnostics),
            }
            for page in report.pages
        },
        "counts": {
            "pages": len(report.pages),
            "references": report.total,
            "from_source": report.from_source,
            "from_lock": report.from_lock,
            "unchecked": report.total - report.from_source - report.from_lock,
            **levels,
        },
    }


def _print_finding(out: Console, finding: Diagnostic) -> None:
    colour = _COLOURS[finding.level]
    fix = f"\n    → {escape(finding.fix)}" if finding.fix else ""
    out.print(
        f"{escape(finding.page)}:{finding.line}: [{colour}]{finding.level}[/] {escape(finding.message)} "
        rf"[dim]\[{finding.code}] {escape(finding.link)}[/]{fix}",
        soft_wrap=True,
    )


def _table(report: Report) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("page", overflow="fold")
    for column in ("references", "by source", "by lock", "unchecked", "findings"):
        table.add_column(column, justify="right")
    for page in report.pages:
        counts = (page.total, page.from_source, page.from_lock, page.total - page.checked, len(page.diagnostics))
        table.add_row(escape(page.page), *map(str, counts))
    return table


def _summary(report: Report) -> str:
    checked = report.from_source + report.from_lock
    share = f"{100 * checked / report.total:.0f} %" if report.total else "100 %"
    if report.total and checked < report.total and share == "100 %":
        share = "99 %"
    by_lock = f", {report.from_lock} of them by the lock alone" if report.from_lock else ""
    found = [f"{n} {level}{'s' * (n != 1)}" for level in (Level.ERROR, Level.WARNING) if (n := report.count(level))]
    return f"{share} of {report.total} references in {len(report.pages)} pages checked{by_lock}: " + (
        ", ".join(found) or "all right"
    )


def _print_changes(out: Console, made: Relocked) -> None:
    for pin in made.pins:
        out.print(f"[bold]pin[/] {escape(pin)}")
    for page in made.pages:
        out.print(f"[bold]{escape(page.page)}[/] +{len(page.added)} -{len(page.removed)}")
        for sign, colour, entries in (("-", "red", page.removed), ("+", "green", page.added)):
            for entry in entries[:_SHOWN]:
                out.print(f"  [{colour}]{sign} {escape(entry)}[/]", soft_wrap=True)
            if len(entries) > _SHOWN:
                out.print(f"  [{colour}]{sign} … {len(entries) - _SHOWN} more[/]")
    for entry, before, after in made.facts:
        out.print(f"[bold]changed[/] {escape(entry)}: {escape(before.tell())} → {escape(after.tell())}", soft_wrap=True)


def _size(made: Relocked) -> str:
    assert made.lock is not None
    repositories = made.lock.repositories.values()
    files, links = sum(len(r.files) for r in repositories), sum(len(r.links) for r in repositories)
    return f"{files} files, {links} links, {len(made.lock.pages)} pages"
