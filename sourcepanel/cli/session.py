"""What the commands share: where results go, how errors end, how a page is named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from sourcepanel.config import Config, load_config
from sourcepanel.diagnostics import Diagnostic, Level
from sourcepanel.errors import SourcePanelError
from sourcepanel.project import Project

_COLOURS = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.INFO: "cyan", Level.IGNORE: "dim"}


@dataclass(frozen=True)
class Session:
    """What every command needs: results go to `out`, progress and errors to `err`."""

    config: Path
    out: Console
    err: Console
    quiet: bool

    def open(self) -> Project:
        """The project that the configuration names."""
        return Project.open(self.config, notify=self.notify)

    def load(self) -> Config:
        """The configuration alone."""
        return load_config(self.config)

    def notify(self, line: str) -> None:
        """One line of progress."""
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


class Group(click.Group):
    """Prints our own errors as one clean line and leaves with 2."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command."""
        try:
            return super().invoke(ctx)
        except SourcePanelError as error:
            Console(stderr=True).print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True, highlight=False)
            sys.exit(2)


def page_name(project: Project, page: Path) -> str:
    """A page as named on the command line: from here, or from the docs folder."""
    docs = project.config.path(project.config.docs)
    known = project.config.page_names()
    for candidate in (page.resolve(), (docs / page).resolve()):
        if candidate.is_relative_to(docs) and (name := candidate.relative_to(docs).as_posix()) in known:
            return name
    raise click.UsageError(f"{page} is no page: there is none such under {docs}, or `exclude` leaves it out")


def print_finding(out: Console, finding: Diagnostic) -> None:
    """One finding, with its cure on a line of its own."""
    colour = _COLOURS[finding.level]
    fix = f"\n    → {escape(finding.fix)}" if finding.fix else ""
    out.print(
        f"{escape(finding.page)}:{finding.line}: [{colour}]{finding.level}[/] {escape(finding.message)} "
        rf"[dim]\[{finding.code}] {escape(finding.link)}[/]{fix}",
        soft_wrap=True,
    )


def counted(number: int, thing: str) -> str:
    """`1 page`, `2 pages`."""
    return f"{number} {thing}" + ("" if number == 1 else "s")
