"""`sourcepanel repin`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from sourcepanel.cli.drift import pick
from sourcepanel.cli.session import Session
from sourcepanel.cli.survey import print_outcome
from sourcepanel.config import Repository, Version
from sourcepanel.drift.relocate import Relocator
from sourcepanel.drift.repin import Choice, Found, Plan, Planner
from sourcepanel.drift.report import told, where
from sourcepanel.drift.survey import Outcome, Tracer
from sourcepanel.drift.versions import Move, find_version, open_move
from sourcepanel.errors import DriftError, SourcePanelError
from sourcepanel.journal import replace_all
from sourcepanel.lock import LeftFacts
from sourcepanel.project import Project
from sourcepanel.snapshot.process import run

_ANSWERS: dict[str, Choice] = {"t": "take", "k": "keep", "l": "leave"}


@click.command()
@click.option("--to", metavar="VERSION", required=True, help="A tag, branch, commit or known version.")
@click.option("--write", is_flag=True, help="Write the notes, the lock and the pin; without it nothing is written.")
@click.option("--interactive", is_flag=True, help="Ask about each reference that cannot be moved with certainty.")
@click.option("--allow-dirty", is_flag=True, help="Write although git has uncommitted changes here.")
@click.option("--source", type=click.Path(path_type=Path), help="A local clone that holds both versions.")
@click.option("--no-history", is_flag=True, help="Compare the two trees only, not the commits between them.")
@click.option("--repository", metavar="NAME", help="Which one, where sourcepanel.toml has several.")
@click.pass_obj
def repin(
    session: Session,
    to: str,
    write: bool,
    interactive: bool,
    allow_dirty: bool,
    source: Path | None,
    no_history: bool,
    repository: str | None,
) -> None:
    """Move the pin: rewrite the links of all pages, the lock and sourcepanel.toml.

    A link moves by itself only where its text is the same at the new version, or where it names a definition that
    is still there under its name. All others stay at the old version, are marked in the lock and listed; `check`
    then tells of them (`left-behind`) until somebody mends them. All files are written, or none.

    Exit codes: 0 every reference has moved, 1 some are left, 2 it could not be done.
    """
    project = session.open()
    pin = pick(project.config.repositories, repository)
    if write and not allow_dirty:
        refuse_dirty(project.config.root)
    plan = planned(
        session, project, pin, to,
        source=source, history=not no_history, choose=_ask(session.out) if interactive else None,
    )  # fmt: skip
    _print(session.out, plan)
    if write and plan.contents:
        replace_all(project.config.root, plan.contents)
    names = ", ".join(sorted(path.relative_to(project.config.root).as_posix() for path in plan.contents))
    if not plan.contents:
        session.out.print("nothing to write")
    else:
        session.out.print(f"{'written' if write else 'would be written (--write)'}: {escape(names)}", soft_wrap=True)
    sys.exit(int(bool(plan.left)))


def planned(
    session: Session,
    project: Project,
    pin: Repository,
    to: str,
    *,
    source: Path | None,
    history: bool,
    choose: Callable[[Found, Outcome], Choice] | None,
) -> Plan:
    """The move of this repository to a version, checked, not written."""
    config = project.config

    def opened(since: Version | None, blobs: dict[str, str]) -> Move:
        return open_move(
            pin, to, root=config.root, cache=config.cache_dir, notify=session.notify,
            blobs=blobs, source=source, since=since,
        )  # fmt: skip

    locked = project.lock.repository(pin.name, commit=pin.commit)
    move = opened(None, {path: facts.blob for path, facts in locked.files.items()} if locked else {})
    with ExitStack() as stack:
        earlier: dict[str, Tracer | None] = {}

        def since(facts: LeftFacts) -> Tracer | None:
            if facts.commit not in earlier:
                known = find_version(pin, facts.commit) or Version(ref=facts.ref, commit=facts.commit)
                try:
                    between = opened(known, {})
                except SourcePanelError as error:
                    session.notify(f"what is left at {facts.ref} cannot be traced: {error}")
                    earlier[facts.commit] = None
                else:
                    relocator = Relocator.between(between.old, between.new, history=history)
                    earlier[facts.commit] = Tracer(stack.enter_context(relocator))
            return earlier[facts.commit]

        tracer = Tracer(stack.enter_context(Relocator.between(move.old, move.new, history=history)))
        planner = Planner(project=project, move=move, tracer=tracer, since=since)
        if choose is not None:
            planner.choose = choose
        return planner.plan()


def refuse_dirty(root: Path) -> None:
    """Raises `DriftError` where git has uncommitted changes; a folder without git is taken as it is."""
    try:
        done = run(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"], timeout=60)
    except OSError:
        return
    if done.code == 0 and done.output:
        listed = "".join(f"\n  {line}" for line in done.output[:10])
        raise DriftError(f"git has uncommitted changes in {root}; commit them, or say --allow-dirty:{listed}")


def _ask(out: Console) -> Callable[[Found, Outcome], Choice]:
    def ask(found: Found, outcome: Outcome) -> Choice:
        out.print(f"[bold]{escape(found.page)}[/]", soft_wrap=True)
        print_outcome(out, outcome, line=found.line, diff=True)
        choices = {"t": f"take {where(outcome, new=True)}"} if outcome.to else {}
        choices |= {"k": "keep it as written for the new pin", "l": "leave it at the old one", "q": "quit"}
        for key, meaning in choices.items():
            out.print(f"    {key}  {escape(meaning)}", soft_wrap=True)
        answer = click.prompt("  ", type=click.Choice(list(choices)), default="l", show_choices=True)
        if answer == "q":
            raise DriftError("ended; nothing was written")
        return _ANSWERS[answer]

    return ask


def _print(out: Console, plan: Plan) -> None:
    move = plan.move
    if plan.read_again:
        out.print("[bold yellow]moved, but it says something else now: read these again[/]")
        for step in plan.read_again:
            assert step.outcome is not None
            said = f"{step.found.page}:{step.found.line}: {where(step.outcome)}: {told(step.outcome)}"
            out.print(f"  {escape(said)}", soft_wrap=True)
    if plan.left:
        out.print("[bold red]left at an earlier version: look at these[/]")
        for step in plan.left:
            assert step.left is not None
            proposal = told(step.outcome) if step.outcome else f"stays at {step.left.ref}"
            why = f" ({step.why})" if step.why else ""
            out.print(
                f"  {escape(step.found.page)}:{step.found.line}: {escape(step.found.raw)}: {escape(proposal + why)}",
                soft_wrap=True,
            )
    if plan.mentions:
        out.print("[bold]the text itself names the old pin or lines that moved: look at these[/]")
        for page, line, text in plan.mentions:
            out.print(f"  {escape(page)}:{line}: {escape(text[:120])}", soft_wrap=True)
    total, moved, left = len(plan.steps), len(plan.moved), len(plan.left)
    out.print(
        f"{escape(move.repository.name)} {escape(move.repository.ref)} → {escape(move.version.ref)}: "
        f"{total} references, {moved} written anew, {total - moved - left} as they were, {left} left",
        soft_wrap=True,
    )
