"""`sourcepanel drift`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from sourcepanel.cli.session import Session, page_name
from sourcepanel.cli.survey import print_survey
from sourcepanel.config import Repository
from sourcepanel.drift.cases import answer, place_cases, read_cases
from sourcepanel.drift.record import write_record
from sourcepanel.drift.relocate import Relocator
from sourcepanel.drift.report import as_data, as_html
from sourcepanel.drift.survey import Freshness, Survey, survey
from sourcepanel.drift.versions import clone_at, open_move, resolve_version
from sourcepanel.errors import ConfigError
from sourcepanel.files import write_atomically
from sourcepanel.pagecheck import PageReport
from sourcepanel.project import Project
from sourcepanel.snapshot import Snapshot
from sourcepanel.snapshot.git import commit_of
from sourcepanel.snapshot.select import local_checkout


@click.command()
@click.argument("pages", nargs=-1, type=click.Path(path_type=Path))
@click.option("--to", metavar="VERSION", help="A tag, branch, commit or known version.")
@click.option("--cases", type=click.Path(path_type=Path), help="Place the ranges of a file of JSON lines instead.")
@click.option("--source", type=click.Path(path_type=Path), help="A local clone that holds both versions.")
@click.option("--no-history", is_flag=True, help="Compare the two trees only, not the commits between them.")
@click.option("--repository", metavar="NAME", help="Which one, where sourcepanel.toml has several.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output, see below.")
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write a report page that needs nothing else.")
@click.option("--save", is_flag=True, help="Keep each note's state where the roadmap finds it.")
@click.option("--diff/--no-diff", default=True, show_default=True, help="Whether to show changed ranges side by side.")
@click.pass_obj
def drift(
    session: Session,
    pages: tuple[Path, ...],
    to: str | None,
    cases: Path | None,
    source: Path | None,
    no_history: bool,
    repository: str | None,
    as_json: bool,
    page: Path | None,
    save: bool,
    diff: bool,
) -> None:
    """Tell where each reference of PAGES (default: all) is at another version.

    Exit codes: 0 all notes are as true there as here, 1 some must be read again, 2 it could not be looked at.

    \b
    --to VERSION --json prints one object:
      version      1; new keys may appear, none changes its meaning
      from, to     {ref, commit}
      notes        {page: {state: fresh|moved|stale, <state of references>: count}}
      references   list of {page, line, link, key, state, status, confidence, sure, method,
                   start, end, to, to_path, to_start, to_end, likeness, changed_lines,
                   symbol, to_symbol}
      wrong        what is wrong at the pin already: {page, line, code, message, fix}

    \b
    --cases FILE reads one JSON object a line: {id, from_ref, to_ref, path, start, end},
    and prints one a line, in order:
      id           as given
      status       same, cosmetic, changed or gone
      to_path, to_start, to_end   null where it is gone
      confidence   certain, likely or unsure
      method       what led there
    """
    if (to is None) == (cases is None):
        raise click.UsageError("say --to VERSION, or --cases FILE")
    if cases is not None:
        _cases(session, cases, source=source, history=not no_history, name=repository)
        return
    assert to is not None
    project = session.open()
    names = [page_name(project, each) for each in pages] or None
    with session.progress(len(names or project.config.page_names())) as seen:
        report = project.check(names, notes=False, seen=seen)
    found = survey_pages(session, project, report.pages, to, source=source, history=not no_history, name=repository)
    if page is not None:
        write_atomically(page, as_html(found))
    if save:
        path = write_record(found, config=project.config, lock=project.lock)
        session.notify(f"{path} written")
    if as_json:
        click.echo(json.dumps(as_data(found), ensure_ascii=False, indent=1))
    else:
        print_survey(session.out, found, diff=diff)
    sys.exit(int(any(note.freshness is Freshness.STALE or note.wrong for note in found.notes)))


def survey_pages(
    session: Session,
    project: Project,
    pages: tuple[PageReport, ...],
    to: str,
    *,
    source: Path | None,
    history: bool,
    name: str | None,
) -> Survey:
    """Every reference of these pages at the version `to`."""
    config = project.config
    repository = pick(config.repositories, name)
    locked = project.lock.repository(repository.name, commit=repository.commit)
    blobs = {path: facts.blob for path, facts in locked.files.items()} if locked else {}
    move = open_move(
        repository, to, root=config.root, cache=config.cache_dir, notify=session.notify, blobs=blobs, source=source
    )
    with Relocator.between(move.old, move.new, history=history) as relocator:
        return survey(project, pages, move=move, relocator=relocator)


def _cases(session: Session, path: Path, *, source: Path | None, history: bool, name: str | None) -> None:
    asked = read_cases(path)

    def from_clone(old: str, new: str) -> tuple[Snapshot, Snapshot]:
        assert source is not None
        before, after = (clone_at(source, commit=commit_of(source, ref)) for ref in (old, new))
        return before, after

    def from_config(old: str, new: str) -> tuple[Snapshot, Snapshot]:
        config = session.load()
        pin = pick(config.repositories, name)
        since = resolve_version(pin, old, clone=local_checkout(pin, root=config.root))
        move = open_move(pin, new, root=config.root, cache=config.cache_dir, notify=session.notify, since=since)
        return move.old, move.new

    placements = place_cases(asked, open_pair=from_clone if source else from_config, history=history)
    for case, placement in zip(asked, placements, strict=True):
        click.echo(json.dumps(answer(case, placement), ensure_ascii=False))


def pick(repositories: tuple[Repository, ...], name: str | None) -> Repository:
    """The repository of this name, or the only one."""
    names = ", ".join(repository.name for repository in repositories)
    if name is None and len(repositories) > 1:
        raise click.UsageError(f"sourcepanel.toml has several repositories; name one with --repository: {names}")
    found = [repository for repository in repositories if name in (None, repository.name)]
    if not found:
        raise ConfigError(f"sourcepanel.toml has no repository {name}; it has {names}")
    return found[0]
