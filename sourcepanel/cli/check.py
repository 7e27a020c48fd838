"""`sourcepanel check`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sourcepanel.cli.drift import survey_pages
from sourcepanel.cli.session import Session, counted, page_name, print_finding
from sourcepanel.diagnostics import Code, Level
from sourcepanel.drift.voices import Voices, count_voices, drifted, explain_wrong
from sourcepanel.lock import Lock
from sourcepanel.notes.stats import PageStats, totals
from sourcepanel.project import Project, Report

_WIDE = 130


@click.command()
@click.argument("pages", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output, see below.")
@click.option("--strict/--no-strict", default=True, show_default=True, help="Whether warnings fail.")
@click.option("--stats", is_flag=True, help="Counts per page: what is referred to, recorded, proved, and only said.")
@click.option("--bare", is_flag=True, help="List each paragraph, item and row that names code without a reference.")
@click.option("--against", metavar="VERSION", help="Also tell what is right at the pin and not so there.")
@click.option("--repository", metavar="NAME", help="Whose version, where sourcepanel.toml has several.")
@click.pass_obj
def check(
    session: Session,
    pages: tuple[Path, ...],
    as_json: bool,
    strict: bool,
    stats: bool,
    bare: bool,
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
    --stats adds for each page: references, the different places they name, what
    has answered them, function records, communication records that their runs
    show (proved/all), and blocks that name code (bare/all).

    \b
    With --stats or --bare each page of --json also has {distinct, function_records,
    communication_records, proved, naming_blocks, bare_blocks, bare: list of
    {line, end, names}}, and counts their sums. A naming block is a paragraph,
    list item or table row with inline code that the source defines; it is bare
    where no reference stands in it. Whether a reference fits what is said, no
    count can tell.
    """
    project = session.open()
    names = [page_name(project, page) for page in pages] or None
    with session.progress(len(names or project.config.page_names())) as seen:
        report = project.check(names, seen=seen)
    counted = {page.page: project.stats(page) for page in report.pages} if stats or bare else {}
    voices = None
    if against is not None:
        report, voices = _against(session, project, report, against, name=repository)
    if as_json:
        click.echo(json.dumps(_as_json(report, voices, counted), ensure_ascii=False, indent=2))
    else:
        for finding in report.diagnostics:
            print_finding(session.out, finding)
        if bare:
            for page, found in counted.items():
                for block in found.bare:
                    session.out.print(escape(f"{page}:{block.start}: {', '.join(block.names)}"), soft_wrap=True)
        if stats:
            # A report that is piped is not cut at the width of no terminal.
            wide = Console(file=session.out.file, width=max(session.out.width, _WIDE), highlight=False)
            wide.print(_table(report, counted))
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


def _as_json(report: Report, voices: Voices | None, stats: Mapping[str, PageStats]) -> dict[str, object]:
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
                **(_stats(stats[page.page]) if page.page in stats else {}),
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
            **totals(stats.values()),
        },
        **({"against": asdict(voices)} if voices else {}),
    }


def _stats(page: PageStats) -> dict[str, object]:
    blocks = [{"line": block.start, "end": block.end, "names": list(block.names)} for block in page.bare]
    return {**page.counts, "bare": blocks}


def _table(report: Report, stats: Mapping[str, PageStats]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("page", overflow="fold")
    columns = ("references", "places", "by source", "by lock", "unchecked", "findings", "functions", "proved", "bare")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for page in report.pages:
        counted = stats[page.page]
        counts = (page.total, counted.distinct, page.from_source, page.from_lock, page.total - page.checked)
        proved = f"{counted.proved}/{counted.communications}"
        bare = f"{len(counted.bare)}/{counted.blocks}"
        row = (*counts, len(page.diagnostics), counted.functions, proved, bare)
        table.add_row(escape(page.page), *map(str, row))
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
