"""How a survey looks in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from sourcepanel.drift.report import rows, signature, told, where
from sourcepanel.drift.sidebyside import Row
from sourcepanel.drift.survey import Drifted, Freshness, NoteDrift, Outcome, State, Survey

_COLOURS = {
    State.SAME: "green", State.MOVED: "cyan", State.CHANGED: "yellow", State.RENAMED: "magenta",
    State.GONE: "bold red", State.UNSEEN: "dim",
    Freshness.FRESH: "green", Freshness.MOVED: "cyan", Freshness.STALE: "yellow",
}  # fmt: skip
_SIDES = {"changed": ("red", "green"), "removed": ("red", ""), "added": ("", "green"), "equal": ("dim", "dim")}


def print_survey(out: Console, survey: Survey, *, diff: bool) -> None:
    """Note by note, what is not as it was; then the sum."""
    move = survey.move
    for note in survey.notes:
        _note(out, note, diff=diff)
    way = "commit by commit" if survey.history else "by the two trees"
    out.print(
        f"{escape(move.repository.name)} {escape(move.repository.ref)} → {escape(move.version.ref)} ({way}): "
        + _counts([each.outcome for each in survey.references]),
        soft_wrap=True,
    )


def print_outcome(out: Console, outcome: Outcome, *, line: int, diff: bool) -> None:
    """One reference: from where to where, the signatures if they differ, the changed lines side by side."""
    colour = _COLOURS[outcome.state]
    out.print(
        f"  [{colour}]{outcome.state:8}[/] line {line}: {escape(where(outcome))}: {escape(told(outcome))}",
        soft_wrap=True,
    )
    before, after = signature(outcome.symbol), signature(outcome.to_symbol)
    if before != after and outcome.to_start is not None:
        out.print(f"           [red]- {escape(before)}[/]\n           [green]+ {escape(after)}[/]", soft_wrap=True)
    if diff and (compared := rows(outcome)):
        out.print(_compared(compared))


def _note(out: Console, note: NoteDrift, *, diff: bool) -> None:
    outcomes = [each.outcome for each in note.references]
    out.print(f"[bold]{escape(note.page)}[/] [{_COLOURS[note.freshness]}]{note.freshness}[/]: {_counts(outcomes)}")
    for wrong in note.wrong:
        out.print(f"  [bold red]wrong at the pin[/] {escape(str(wrong))}", soft_wrap=True)
    for each in _moved(note):
        print_outcome(out, each.outcome, line=each.reference.line, diff=diff)


def _moved(note: NoteDrift) -> list[Drifted]:
    """All but those that are just as they were and those that nothing is known of; the worst first."""
    order = [State.GONE, State.RENAMED, State.CHANGED, State.MOVED, State.SAME]
    shown = [e for e in note.references if e.outcome.state in order and _is_news(e.outcome)]
    return sorted(shown, key=lambda each: (order.index(each.outcome.state), each.outcome.likeness))


def _is_news(outcome: Outcome) -> bool:
    return outcome.state is not State.SAME or outcome.text != "same"


def _counts(outcomes: list[Outcome]) -> str:
    counts = {state: sum(outcome.state is state for outcome in outcomes) for state in State}
    return ", ".join(f"[{_COLOURS[state]}]{count} {state}[/]" for state, count in counts.items() if count)


def _compared(compared: tuple[Row, ...]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), expand=True)
    for ratio in (None, 1, None, 1):
        table.add_column(ratio=ratio, overflow="fold", justify="left" if ratio else "right", no_wrap=not ratio)
    for row in compared:
        if row.kind == "folded":
            table.add_row("", Text("⋯", style="dim"), "", Text("⋯", style="dim"))
            continue
        left, right = _SIDES[row.kind]
        numbers = ["" if n is None else str(n) for n in (row.old_number, row.new_number)]
        table.add_row(
            Text(numbers[0], style="dim"),
            Text(row.old, style=left),
            Text(numbers[1], style="dim"),
            Text(row.new, style=right),
        )
    return table
