"""`sourcepanel drift`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sourcepanel.cli.session import Session
from sourcepanel.config import Repository
from sourcepanel.drift.cases import answer, place_cases, read_cases
from sourcepanel.drift.versions import clone_at, open_move, resolve_version
from sourcepanel.errors import ConfigError
from sourcepanel.snapshot import Snapshot
from sourcepanel.snapshot.git import commit_of
from sourcepanel.snapshot.select import local_checkout


@click.command()
@click.option("--cases", type=click.Path(path_type=Path), help="Place the ranges of a file of JSON lines instead.")
@click.option("--source", type=click.Path(path_type=Path), help="A local clone that holds both versions.")
@click.option("--no-history", is_flag=True, help="Compare the two trees only, not the commits between them.")
@click.option("--repository", metavar="NAME", help="Which one, where sourcepanel.toml has several.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output, see below.")
@click.pass_obj
def drift(
    session: Session, cases: Path | None, source: Path | None, no_history: bool, repository: str | None, as_json: bool
) -> None:
    """Tell where each reference is at another version.

    \b
    --cases FILE reads one JSON object a line: {id, from_ref, to_ref, path, start, end},
    and prints one a line, in order:
      id           as given
      status       same, cosmetic, changed or gone
      to_path, to_start, to_end   null where it is gone
      confidence   certain, likely or unsure
      method       what led there
    """
    if cases is not None:
        _cases(session, cases, source=source, history=not no_history, name=repository)


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
