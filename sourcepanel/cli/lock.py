"""`sourcepanel lock`."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.markup import escape

from sourcepanel.cli.session import Session, counted, print_finding
from sourcepanel.lock import format_lock, write_lock
from sourcepanel.relock import Relocked, relock

_SHOWN = 12
"""Entries that the summary of `lock` shows per page."""


@click.command()
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit with 1 if the lock would change.")
@click.pass_obj
def lock(session: Session, only_check: bool) -> None:
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
            print_finding(session.out, finding)
        session.err.print(f"{path.name} not written: mend these first", style="bold red")
        sys.exit(1)
    text = format_lock(made.lock)
    changes = not path.exists() or path.read_text(encoding="utf-8") != text
    print_changes(session.out, made)
    if only_check:
        session.out.print(f"{path.name} " + ("would change: run `sourcepanel lock`" if changes else "is up to date"))
        sys.exit(int(changes))
    write_lock(made.lock, path)
    session.out.print(f"{path.name} " + (f"written: {_size(made)}" if changes else "is up to date"))


def print_changes(out: Console, made: Relocked) -> None:
    """What a new lock says that the old one did not."""
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
    return f"{counted(files, 'file')}, {counted(links, 'link')}, {counted(len(made.lock.pages), 'page')}"
