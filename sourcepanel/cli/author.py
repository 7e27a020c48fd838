"""`sourcepanel link`, `show`, `new` and `completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class
from rich.markup import escape
from rich.syntax import Syntax

from sourcepanel.authoring.find import find, markdown_link
from sourcepanel.authoring.new import lay_out
from sourcepanel.cli.session import Session
from sourcepanel.errors import SymbolNotFound
from sourcepanel.lock import spell
from sourcepanel.project import Project
from sourcepanel.reference import SourceRef
from sourcepanel.verify import Place

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("words", metavar="SYMBOL|PATH|PATH:LINE")
@click.option("--code", is_flag=True, help="As inline code `path::symbol`, where it is a definition.")
@click.pass_obj
def link(session: Session, words: str, code: bool) -> None:
    """Print the Markdown link for a place at the pin, checked.

    \b
    sourcepanel link train_step
    sourcepanel link megatron/training/training.py:1777-1790
    sourcepanel link --code DistributedOptimizer.step
    """
    project = session.open()
    ref, place = _place(project, words)
    target = place.target
    assert target is not None
    if code:
        if target.kind != "definition" or not target.symbol:
            raise SymbolNotFound(f"{ref.key} is no definition; only a definition is written as `path::symbol`")
        several = len(project.config.repositories) > 1
        click.echo(f"`{f'{ref.repository}:' if several else ''}{target.path}::{target.symbol}`")
        return
    lines = None if target.start is None or target.end is None else (target.start, target.end)
    name = target.symbol if target.kind == "definition" and target.symbol else _label(ref, target.path, lines)
    click.echo(markdown_link(ref, project.sources[ref.repository].repository, text=f"`{name}`", lines=lines))


@click.command()
@click.argument("words", metavar="SYMBOL|PATH|PATH:LINE|LINK")
@click.option("--context", type=click.IntRange(0, 1000), default=0, help="Lines to show around it.")
@click.pass_obj
def show(session: Session, words: str, context: int) -> None:
    """Print the lines that a reference points at."""
    project = session.open()
    place = _place(project, words)[1]
    target = place.target
    assert target is not None
    if target.kind == "folder":
        inside = f"{target.path}/" if target.path else ""
        source = project.sources[target.repository]
        names = {p[len(inside) :].partition("/") for p in source.paths if p.startswith(inside)}
        for name in sorted({head + slash for head, slash, _ in names}):
            click.echo(name)
        return
    file = place.file
    if file is None or not file.has_text:
        raise SymbolNotFound(f"{target.path} has no text here: it is binary, or this build's source lacks it")
    start, end = target.start or 1, target.end or file.count
    low, high = max(1, start - context), min(file.count, end + context)
    inside = f" in {target.symbol}" if target.symbol else ""
    pin = project.sources[target.repository].repository
    session.out.print(
        f"[bold]{escape(target.path)}[/] {spell(start, end) if file.count else ''}{escape(inside)} "
        f"[dim]{escape(pin.ref)} ({pin.commit[:8]})[/]",
        soft_wrap=True,
    )
    session.out.print(
        Syntax(
            "\n".join(file.span(low, high)),
            Syntax.guess_lexer(target.path, file.text[:1000]),
            line_numbers=True,
            start_line=low,
            highlight_lines=set(range(start, end + 1)) if context else None,
            theme="ansi_dark",
            word_wrap=True,
        )
    )
    session.out.print(f"[dim]{escape(target.href)}[/]", soft_wrap=True)


@click.command()
@click.argument("number", type=click.IntRange(1))
@click.argument("title", required=False)
@click.pass_obj
def new(session: Session, number: int, title: str | None) -> None:
    """Lay out chapter NUMBER of the roadmap: its note and its script, from the templates.

    TITLE stands in for the roadmap's.
    """
    config = session.load()
    laid = lay_out(config, number, title)
    for path in laid.written:
        session.out.print(f"written: {escape(path.relative_to(config.root).as_posix())}", soft_wrap=True)
    for path in laid.kept:
        session.out.print(f"kept: {escape(path.relative_to(config.root).as_posix())} is there already", soft_wrap=True)
    session.out.print(
        f"next: add {escape(laid.note)} to nav in {escape(config.markdown.name)}, write each section, "
        "then run `sourcepanel check` and `sourcepanel lock`",
        soft_wrap=True,
    )


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes the shell complete commands and options.

    \b
    bash: source <(sourcepanel completion bash)   in ~/.bashrc
    zsh:  source <(sourcepanel completion zsh)    in ~/.zshrc
    fish: sourcepanel completion fish > ~/.config/fish/completions/sourcepanel.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(ctx.find_root().command, {}, "sourcepanel", "_SOURCEPANEL_COMPLETE").source())


def _place(project: Project, words: str) -> tuple[SourceRef, Place]:
    """The reference and where it leads; raises `SymbolNotFound` with the nearest right answer."""
    ref = find(project, words)
    place = project.verifier.place(ref)
    if place.target is None:
        problems = place.problems or ()
        said = "; ".join(f"{p.message}{f'; {p.fix}' if p.fix else ''}" for p in problems)
        raise SymbolNotFound(said or f"{ref.key} cannot be looked at: this build's source lacks the file")
    return ref, place


def _label(ref: SourceRef, path: str, lines: tuple[int, int] | None) -> str:
    name = path.rpartition("/")[2] or ref.repository
    return name if lines is None else f"{name}#{spell(*lines)}"
