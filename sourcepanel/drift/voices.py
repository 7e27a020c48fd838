"""A check in two voices: what is wrong at the pin, and what is right there but no longer so at a newer version.

The first was never true of this source and must be mended now; the second is no one's mistake, and `repin` deals
with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sourcepanel.diagnostics import Code, Diagnostic, Level
from sourcepanel.drift.report import told
from sourcepanel.drift.survey import State, Survey
from sourcepanel.pagecheck import BAD, PageReport
from sourcepanel.project import Project
from sourcepanel.reference import Reference

_NOWHERE = frozenset({Code.MISSING_FILE, Code.MISSING_SYMBOL, Code.LINE_PAST_END, Code.TEXT_MISMATCH})


@dataclass(frozen=True, kw_only=True)
class Voices:
    """How many references speak with which voice."""

    wrong: int
    """Wrong at the pin."""
    moved: int
    """Right at the pin; the same text at another place of the newer version."""
    changed: int
    """Right at the pin; another text there, or none."""
    same: int
    """Right at the pin, and where they were."""
    unseen: int
    """Right at the pin by the lock; this build's source of the newer version lacks the file."""


def count_voices(pages: Iterable[PageReport], survey: Survey) -> Voices:
    """Each reference once; one that is wrong at the pin is only that."""
    wrong = {(d.page, d.line, d.link) for page in pages for d in page.diagnostics if d.level in BAD}
    outcomes = [
        each.outcome
        for each in survey.references
        if (each.reference.page, each.reference.line, each.reference.raw) not in wrong
    ]
    changed = sum(o.state is not State.UNSEEN and o.text in ("changed", "gone") for o in outcomes)
    moved = sum(o.state in (State.MOVED, State.RENAMED) and o.text in ("same", "cosmetic") for o in outcomes)
    unseen = sum(o.state is State.UNSEEN for o in outcomes)
    same = len(outcomes) - changed - moved - unseen
    return Voices(wrong=len(wrong), moved=moved, changed=changed, same=same, unseen=unseen)


def drifted(survey: Survey, *, level: Level) -> list[Diagnostic]:
    """What is right at the pin and elsewhere, another or gone at the newer version."""
    pin, there = survey.move.repository.ref, survey.move.version.ref
    found = []
    for each in survey.references:
        outcome, reference = each.outcome, each.reference
        if outcome.state is State.UNSEEN or (outcome.state is State.SAME and outcome.text == "same"):
            continue
        message = f"right at {pin}; at {there}: {told(outcome)}"
        fix = f"nothing to mend here; `sourcepanel repin --to {there}` moves what it can"
        found.append(
            Diagnostic(
                code=Code.DRIFTED,
                level=level,
                page=reference.page,
                line=reference.line,
                link=reference.raw,
                message=message,
                fix=fix,
            )
        )
    return found if level is not Level.IGNORE else []


def explain_wrong(pages: Iterable[PageReport], *, there: Project, survey: Survey) -> Callable[[Diagnostic], Diagnostic]:
    """Adds to what is wrong at the pin that the newer version has it: then it was read there."""
    by_spelling = {
        (f.page, f.line, f.raw): f for page in pages for f in page.found if isinstance(f, Reference)
    }  # fmt: skip
    ref = survey.move.version.ref

    def explain(diagnostic: Diagnostic) -> Diagnostic:
        found = by_spelling.get((diagnostic.page, diagnostic.line, diagnostic.link))
        if diagnostic.code not in _NOWHERE or found is None or found.source.repository != survey.move.repository.name:
            return diagnostic
        target, problems = there.verifier.resolve(found)
        if target is None or problems:
            return diagnostic
        return replace(diagnostic, message=f"{diagnostic.message}; it is right at {ref}: was it read there?")

    return explain
