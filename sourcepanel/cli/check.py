"""`sourcepanel check`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from sourcepanel.cli.drift import survey_pages
from sourcepanel.cli.session import Session, counted, page_name, print_finding
from sourcepanel.diagnostics import Code, Level
from sourcepanel.drift.voices import Voices, count_voices, drifted, explain_wrong
from sourcepanel.lock import Lock
from sourcepanel.project import Project, Report


@click.command()
@click.argument("pages", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output, see below.")
@click.option("--strict/--no-strict", default=True, show_default=True, help="Whether warnings fail.")
@click.option("--stats", is_flag=True, help="Counts per page.")
@click.option("--against", metavar="VERSION", help="Also tell what is right at the pin and not so there.")
@click.option("--repository", metavar="NAME", help="Whose version, where sourcepanel.toml has several.")
@click.pass_obj
def check(
    session: Session,
    pages: tuple[Path, ...],
    as_json: bool,
    strict: bool,
    stats: bool,
    against: str | None,
    repository: str | None,
) -> None:
    """Hold the references of PAGES (default: all) against the pin and the lock.

    \b
    --json prints one object:
      version      1; new keys may appear, none changes its meaning
      diagnostics  list of {code, level, page, line, link, message, fix}
      pages        {page: {references, from_source, from_lock, findings}}
      counts       {pages, references, from_source, from_lock, unchecked,
                    error, warning, info}
      against      with --against only: {wrong, moved, changed, same, unseen}
    """
    project = session.open()
    names = [page_name(project, page) for page in pages] or None
    with session.progress(len(names or project.config.page_names())) as seen:
        report = project.check(names, seen=seen)
    voices = None
    if against is not None:
        report, voices = _against(session, project, report, against, name=repository)
    if as_json:
        click.echo(json.dumps(_as_json(report, voices), ensure_ascii=False, indent=2))
    else:
        for finding in report.diagnostics:
            print_finding(session.out, finding)
        if stats:
            session.out.print(_table(report))
        if not session.quiet:
            session.out.print(_summary(report), soft_wrap=True)
            if voices is not None:
                session.out.print(_tell(voices, against), soft_wrap=True)
    sys.exit(int(report.fails(strict=strict)))


def _against(session: Session, project: Project, report: Report, to: str, *, name: str | None) -> tuple[Report, Voices]:
    """The report with the second voice, and how many speak with which."""
    found = survey_pages(session, project, report.pages, to, source=None, history=True, name=name)
    move = found.move
    repositories = tuple(move.target if r.name == move.target.name else r for r in project.config.repositories)
    config = project.config.model_copy(update={"repositories": repositories})
    there = Project(config, Lock(), session.notify, given={move.target.name: move.new})
    explain = explain_wrong(report.pages, there=there, survey=found)
    second = drifted(found, level=project.config.level(Code.DRIFTED))
    pages = tuple(
        replace(
            page,
            diagnostics=tuple(
                sorted(
                    [*map(explain, page.diagnostics), *(d for d in second if d.page == page.page)], key=lambda d: d.line
                )
            ),
        )
        for page in report.pages
    )
    return replace(report, pages=pages), count_voices(report.pages, found)


def _tell(voices: Voices, against: str | None) -> str:
    parts = [
        f"{voices.wrong} wrong at the pin",
        f"{voices.same + voices.moved + voices.changed + voices.unseen} right",
    ]
    since = [f"{voices.same} the same", f"{voices.moved} moved", f"{voices.changed} changed or gone"]
    since += [f"{voices.unseen} in files that this build lacks"] if voices.unseen else []
    return f"{parts[0]}, {parts[1]}; of these at {escape(against or '')}: {', '.join(since)}"


def _as_json(report: Report, voices: Voices | None) -> dict[str, object]:
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
        **({"against": asdict(voices)} if voices else {}),
    }


def _table(report: Report) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("page", overflow="fold")
    for column in ("references", "by source", "by lock", "unchecked", "findings"):
        table.add_column(column, justify="right")
    for page in report.pages:
        counts = (page.total, page.from_source, page.from_lock, page.total - page.checked, len(page.diagnostics))
        table.add_row(escape(page.page), *map(str, counts))
    return table


def _summary(report: Report) -> str:
    checked = report.from_source + report.from_lock
    share = 100 * checked // report.total if report.total else 100
    by_lock = f", {report.from_lock} of them by the lock alone" if report.from_lock else ""
    found = [counted(n, level.value) for level in (Level.ERROR, Level.WARNING) if (n := report.count(level))]
    return (
        f"{share} % of {counted(report.total, 'reference')} in {counted(len(report.pages), 'page')} checked{by_lock}: "
        + (", ".join(found) or "all right")
    )
