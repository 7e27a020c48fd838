"""A survey as data and as one HTML page that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import replace

from sourcepanel.drift.sidebyside import Row, side_by_side
from sourcepanel.drift.survey import Drifted, NoteDrift, Outcome, State, Survey
from sourcepanel.lock import spell
from sourcepanel.reference import SourceRef, format_link
from sourcepanel.symbols import Symbol

VERSION = 1


def as_data(survey: Survey) -> dict[str, object]:
    """What `drift --json` prints; new keys may appear, none changes its meaning."""
    move = survey.move
    return {
        "version": VERSION,
        "repository": move.repository.name,
        "from": {"ref": move.repository.ref, "commit": move.repository.commit},
        "to": {"ref": move.version.ref, "commit": move.version.commit},
        "history": survey.history,
        "notes": {note.page: {"state": note.freshness.value, **note.counts} for note in survey.notes},
        "references": [_reference(each) for each in survey.references],
        "wrong": [
            {"page": d.page, "line": d.line, "code": d.code.value, "message": d.message, "fix": d.fix}
            for note in survey.notes
            for d in note.wrong
        ],
    }


def signature(symbol: Symbol | None) -> str:
    """A definition in one line: its name and parameters."""
    return f"{symbol.name}{symbol.signature}" if symbol else ""


def where(outcome: Outcome, *, new: bool = False) -> str:
    """The place in one word, on either side."""
    ref = outcome.to if new else outcome.ref
    if ref is None:
        return ""
    start, end = (outcome.to_start, outcome.to_end) if new else (outcome.start, outcome.end)
    lines = f" ({spell(start, end)})" if ref.symbol and start and end else ""
    return f"{ref.key}{lines}"


def told(outcome: Outcome) -> str:
    """What became of it, in a few words."""
    if outcome.state is State.UNSEEN:
        return "not in this build's source"
    if outcome.state is State.GONE:
        return "gone"
    changed = ""
    if outcome.text == "changed":
        changed = f", {round(100 * (1 - outcome.likeness))} % changed"
        if outcome.changed_lines:
            changed += f" (old lines {_ranges(outcome.changed_lines)})"
    elif outcome.text == "cosmetic":
        changed = ", layout only"
    if outcome.state is State.SAME:
        return f"same place{changed}"
    here = {State.MOVED: "moved", State.CHANGED: "now", State.RENAMED: "went to another place, now"}[outcome.state]
    doubt = "" if outcome.sure or outcome.confidence == "certain" else f" [{outcome.confidence}]"
    return f"{here} {where(outcome, new=True)}{changed}{doubt}"


def rows(outcome: Outcome) -> tuple[Row, ...]:
    """The comparison of just this range; empty where the text is the same."""
    if outcome.text == "same" or outcome.start is None:
        return ()
    return side_by_side(outcome.old, outcome.new, old_start=outcome.start, new_start=outcome.to_start or 1)


def as_html(survey: Survey) -> str:
    """The report page: no script, no request, light or dark as the reader's system is."""
    move = survey.move
    title = f"{move.repository.name}: {move.repository.ref} → {move.version.ref}"
    notice = f"Source: © {move.repository.license.holder}, {move.repository.license.name}"
    licence = f"{move.target.url}/blob/{move.target.commit}/{move.target.license.path}"
    body = "".join(part for note in survey.notes for part in _note(note, survey))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{html.escape(title)}</h1>\n{_table(survey)}\n{body}"
        f'<footer>{html.escape(notice)}. <a href="{html.escape(licence)}">Licence</a></footer></body></html>\n'
    )


def _reference(each: Drifted) -> dict[str, object]:
    reference, outcome = each.reference, each.outcome
    return {
        "page": reference.page,
        "line": reference.line,
        "link": reference.raw,
        "key": reference.source.key,
        "state": outcome.state.value,
        "status": outcome.text,
        "confidence": outcome.confidence,
        "sure": outcome.sure,
        "method": outcome.method,
        "start": outcome.start,
        "end": outcome.end,
        "to": outcome.to.key if outcome.to else None,
        "to_path": outcome.to.path if outcome.to else None,
        "to_start": outcome.to_start,
        "to_end": outcome.to_end,
        "likeness": round(outcome.likeness, 3),
        "changed_lines": list(outcome.changed_lines) if outcome.text == "changed" else [],
        "symbol": signature(outcome.symbol),
        "to_symbol": signature(outcome.to_symbol),
    }


def _ranges(lines: tuple[int, ...]) -> str:
    """`3-5, 9`: runs of numbers, at most four of them."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:4])
    return shown + (", …" if len(runs) > 4 else "")


def _table(survey: Survey) -> str:
    head = "".join(f"<th>{state.value}</th>" for state in State)
    lines = "".join(
        f'<tr><td><a href="#{html.escape(note.page)}">{html.escape(note.page)}</a></td>'
        f'<td class="{note.freshness}">{note.freshness}</td>'
        + "".join(f"<td>{note.counts.get(state.value, 0) or ''}</td>" for state in State)
        + "</tr>"
        for note in survey.notes
    )
    return f"<table class=counts><tr><th>note</th><th>state</th>{head}</tr>{lines}</table>"


def _note(note: NoteDrift, survey: Survey) -> Iterator[str]:
    yield f'<h2 id="{html.escape(note.page)}">{html.escape(note.page)} <small>{note.freshness}</small></h2>\n'
    for wrong in note.wrong:
        yield f"<p class=gone>wrong at the pin: {html.escape(str(wrong))}</p>\n"
    for each in note.references:
        if each.outcome.state is not State.SAME or each.outcome.text != "same":
            yield from _item(each, survey)


def _item(each: Drifted, survey: Survey) -> Iterator[str]:
    outcome, move = each.outcome, survey.move
    compared = rows(outcome)
    opened = " open" if outcome.needs_reading else ""
    tag, start = ("details", f"<details{opened}><summary>") if compared else ("div", "<div class=line><p>")
    yield f"{start}<b class={outcome.state}>{outcome.state}</b> line {each.reference.line}: "
    yield f"<code>{html.escape(where(outcome))}</code> — {html.escape(told(outcome))}"
    yield "</summary>" if compared else "</p>"
    before, after = signature(outcome.symbol), signature(outcome.to_symbol)
    if before != after and outcome.state is not State.GONE:
        yield f"<p><del>{html.escape(before)}</del><br><ins>{html.escape(after)}</ins></p>"
    if compared:
        sides = [(move.repository, outcome.ref, outcome.start, outcome.end)]
        if outcome.to:
            sides.append((move.target, outcome.to, outcome.to_start, outcome.to_end))
        heads = "".join(
            f'<th colspan=2><a href="{html.escape(format_link(_lines(ref, start, end), side))}">'
            f"{html.escape(side.ref)}</a></th>"
            for side, ref, start, end in sides
        )
        yield f"<div class=scroll><table class=diff><tr>{heads}</tr>{''.join(map(_row, compared))}</table></div>"
    yield f"</{tag}>\n"


def _lines(ref: SourceRef, start: int | None, end: int | None) -> SourceRef:
    return replace(ref, symbol=None, start=start, end=end)


def _row(row: Row) -> str:
    if row.kind == "folded":
        return "<tr class=folded><td colspan=4>⋯</td></tr>"
    cells = ((row.old_number, row.old, "old"), (row.new_number, row.new, "new"))
    inner = "".join(
        f"<td class=n>{'' if number is None else number}</td><td class={side}>{html.escape(text)}</td>"
        for number, text, side in cells
    )
    return f"<tr class={row.kind}>{inner}</tr>"


_STYLE = """
:root { color-scheme: light dark; --red: light-dark(#ffebe9, #4a1d1d); --green: light-dark(#dafbe1, #143d22);
  --line: light-dark(#d0d7de, #3d444d); --quiet: light-dark(#59636e, #9198a1); }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 100rem; padding: 0 1rem;
  background: light-dark(#fff, #0d1117); color: light-dark(#1f2328, #e6edf3); }
a { color: light-dark(#0550ae, #79b8ff); }
table { border-collapse: collapse; } .counts td, .counts th { padding: .2rem .8rem; text-align: left;
  border-bottom: 1px solid var(--line); }
details, .line { margin: .3rem 0; border-left: 3px solid var(--line); padding-left: .8rem; }
.line p { margin: 0; } summary { cursor: pointer; } footer, small, .n { color: var(--quiet); }
.scroll { overflow-x: auto; } .diff { width: 100%; font: 13px/1.4 ui-monospace, monospace; }
.diff td { white-space: pre-wrap; overflow-wrap: anywhere; vertical-align: top; padding: 0 .5rem; }
.diff .n { text-align: right; user-select: none; white-space: nowrap; width: 1%; }
.diff th { text-align: left; padding: .2rem .5rem; }
.changed .old, .removed .old, del { background: var(--red); }
.changed .new, .added .new, ins { background: var(--green); }
del, ins { text-decoration: none; } .folded td { text-align: center; color: var(--quiet); }
b.gone, b.changed, .stale, p.gone { color: light-dark(#a40e26, #ff8182); }
b.moved, b.renamed, .moved { color: light-dark(#7d4e00, #e3b341); } .fresh { color: light-dark(#116329, #56d364); }
footer { margin-top: 2rem; border-top: 1px solid var(--line); }
"""
