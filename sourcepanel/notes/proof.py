"""A communication record held against the run that it names: what the run shows, or why it does not show that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sourcepanel.diagnostics import Code
from sourcepanel.notes.arithmetic import CannotCompute
from sourcepanel.notes.claims import NONE, Symbols, fits, spans
from sourcepanel.notes.communications import COMMUNICATIONS, CommunicationRecord
from sourcepanel.notes.evidence import Evidence, Issuer, Unusable
from sourcepanel.notes.fenced_yaml import Parsed
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.outline import read_outline
from sourcepanel.traces import Call, Place, Shape, Trace

T = TypeVar("T")
_NEAREST = 3


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A record that its run shows."""

    record: CommunicationRecord
    trace: Trace
    issuer: Issuer
    ranks: tuple[int, ...]
    before: tuple[tuple[Shape, ...], ...]
    """Every set of shapes that was seen; several only where the record leaves a size open."""
    after: tuple[tuple[Shape, ...], ...]
    counts: tuple[tuple[str, int, tuple[int, ...]], ...]
    """Formula, value, ranks."""
    lines: tuple[Place, ...]
    """The lines inside `issued_by` that made the call, or called the helper that did."""
    replay: Trace | None


class _Disproof(Exception):
    """One field that cannot stand."""

    def __init__(self, field: str, message: str, fix: str = "") -> None:
        self.field, self.message, self.fix = field, message, fix
        super().__init__(message)


@dataclass(frozen=True)
class _Claim:
    """A record with its symbols evaluated for one run."""

    record: CommunicationRecord
    before: tuple[tuple[int | None, ...], ...]
    after: tuple[tuple[int | None, ...], ...]
    issuer: Issuer | None
    """None where it does not matter which line made the call."""

    def is_shown_by(self, call: Call) -> bool:
        """Whether this call is one of those that the record speaks of; most are told apart by their names."""
        record = self.record
        named = (call.api, call.group, call.phase) == (record.api, record.group, record.phase)
        return named and not self.misfits(call)

    def misfits(self, call: Call) -> list[str]:
        """The fields that this call contradicts."""
        record = self.record
        tests = {
            "api": call.api == record.api,
            "group": call.group == record.group,
            "phase": call.phase == record.phase,
            "dtype": call.dtypes == record.dtype,
            "before": fits(call.before, self.before),
            "after": fits(call.after, self.after),
            "issued_by": self.issuer is None or self.issuer.holds(call.places) is not None,
        }
        return [field for field, right in tests.items() if not right]


def check_communications(text: str, *, evidence: Evidence) -> Iterator[Finding]:
    """The communication records of a page that are well written, and that their runs do not show."""
    for fence in read_outline(text).fences:
        if COMMUNICATIONS.is_in(fence):
            parsed = COMMUNICATIONS.read(fence.body, line=fence.line)
            proof = prove(parsed, evidence=evidence) if parsed.record else None
            if isinstance(proof, Finding):
                yield proof


def prove(parsed: Parsed[CommunicationRecord], *, evidence: Evidence) -> Proof | Finding:
    """What the run shows of this record, or the first thing in it that the run does not show."""
    assert parsed.record is not None
    try:
        return _prove(parsed.record, evidence)
    except _Disproof as wrong:
        line = parsed.line_of(wrong.field)
        return Finding(code=Code.UNPROVED, line=line, subject=wrong.field, message=wrong.message, fix=wrong.fix)


def _prove(record: CommunicationRecord, evidence: Evidence) -> Proof:
    trace = _try("trace", lambda: evidence.trace(record.trace))
    issuer = _try("issued_by", lambda: evidence.issuer(record.issued_by, trace=trace))
    ranks = _try("ranks", lambda: record.ranks.of(trace))
    counts = _try("count", lambda: record.count.of(trace, ranks))
    claim = _claim(record, trace, issuer)
    seen = {rank: [call for call in calls if claim.is_shown_by(call)] for rank, calls in trace.calls.items()}
    if not any(seen.values()):
        raise _nothing(claim, trace)
    if outside := sorted(rank for rank, calls in seen.items() if calls and rank not in ranks):
        raise _Disproof("ranks", f"the trace {trace.name} shows this call on rank {spans(outside)} too, "
                        f"the record says {spans(ranks)} alone")  # fmt: skip
    for formula, value, part in counts:
        if wrong := {rank: len(seen[rank]) for rank in part if len(seen[rank]) != value}:
            shown = "; ".join(f"{count} on rank {spans(on)}" for count, on in _grouped(wrong))
            said = f"the record says {value}" if formula == str(value) else f"{formula} is {value}"
            raise _Disproof("count", f"{said}, but the trace {trace.name} shows {shown}")
    calls = [call for rank in ranks for call in seen[rank]]
    return Proof(
        record=record,
        trace=trace,
        issuer=issuer,
        ranks=ranks,
        before=tuple(dict.fromkeys(call.before for call in calls)),
        after=tuple(dict.fromkeys(call.after for call in calls)),
        counts=tuple(counts),
        lines=tuple(sorted({place for call in calls if (place := issuer.holds(call.places))})),
        replay=_replay(record, evidence) if record.replay else None,
    )


def _replay(record: CommunicationRecord, evidence: Evidence) -> Trace:
    assert record.replay is not None
    name = record.replay
    trace = _try("replay", lambda: evidence.trace(name))
    try:
        claim = _claim(record, trace, None)
    except _Disproof as wrong:
        raise _Disproof("replay", f"{name} cannot show {wrong.field}: {wrong.message}", wrong.fix) from None
    if not any(claim.is_shown_by(call) for calls in trace.calls.values() for call in calls):
        nothing = _nothing(claim, trace)
        raise _Disproof("replay", nothing.message, nothing.fix)
    return trace


def _claim(record: CommunicationRecord, trace: Trace, issuer: Issuer | None) -> _Claim:
    def values(field: str, shapes: Iterable[Symbols]) -> tuple[tuple[int | None, ...], ...]:
        return _try(field, lambda: tuple(shape.values(trace.names) for shape in shapes))

    return _Claim(record, values("before", record.before), values("after", record.after), issuer)


def _try(field: str, compute: Callable[[], T]) -> T:
    try:
        return compute()
    except CannotCompute as error:
        raise _Disproof(field, f"field {field}: {error}") from None
    except Unusable as error:
        raise _Disproof(field, str(error), error.fix) from None


def _nothing(claim: _Claim, trace: Trace) -> _Disproof:
    """No such call: the first field that the likest call contradicts, and what the run shows instead."""
    found: dict[tuple[str, ...], tuple[list[str], Counter[int]]] = {}
    for rank, calls in trace.calls.items():
        for call in calls:
            told = _tell(call)
            found.setdefault(told, (claim.misfits(call), Counter()))[1][rank] += 1
    near = sorted(found.items(), key=lambda item: len(item[1][0]))[:_NEAREST]
    if not near:
        return _Disproof("trace", f"the trace {trace.name} holds no call at all")
    field = near[0][1][0][0]
    shown = " | ".join(f"{' '.join(told)}, {_often(ranks)}" for told, (_, ranks) in near)
    shapes = f"{_shapes(claim.before)} → {_shapes(claim.after)}"
    record = claim.record
    said = f"{record.phase} {record.api} {record.group} {shapes} {_dtypes(record.dtype)}"
    by = f" by {record.issued_by}" if claim.issuer else ""
    return _Disproof(field, f"the trace {trace.name} shows no {said}{by}", f"it shows {shown}")


def _tell(call: Call) -> tuple[str, ...]:
    path, line = call.places[0] if call.places else ("?", 0)
    shapes = f"{_shapes(call.before)} → {_shapes(call.after)}"
    return (call.phase, call.api, call.group, shapes, _dtypes(call.dtypes), f"at {path}:{line}")


def _dtypes(dtypes: Collection[str]) -> str:
    return ", ".join(sorted(dtypes)) or NONE


def _shapes(shapes: Iterable[tuple[int | None, ...]]) -> str:
    return ", ".join(f"[{', '.join('*' if size is None else str(size) for size in shape)}]" for shape in shapes) or NONE


def _often(ranks: Counter[int]) -> str:
    return "; ".join(f"{count} × on rank {spans(on)}" for count, on in _grouped(ranks))


def _grouped(counts: dict[int, int]) -> list[tuple[int, list[int]]]:
    """Ranks that share a count, most calls first."""
    return [(c, [rank for rank in counts if counts[rank] == c]) for c in sorted(set(counts.values()), reverse=True)]
