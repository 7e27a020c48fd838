"""Communication records against small runs: what is shown, and what is said of each thing that is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import markdown
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourcepanel.diagnostics import Code
from sourcepanel.markdown import Page, SourcePanelExtension
from sourcepanel.notes.evidence import Evidence
from sourcepanel.notes.extension import NotesExtension
from sourcepanel.notes.records import check_records
from sourcepanel.notes.roadmap import Roadmap
from sourcepanel.reference import Reference, SourceRef, Target
from sourcepanel.strings import strings
from sourcepanel.traces import Traces
from tests.support.golden import Golden
from tests.support.memory import COMMIT, TINY
from tests.support.mutate_records import mutations, records, written
from tests.support.runs import call, run, write_run

PINNED = "tiny/core.py"
DEFINITIONS = {"reduce": (10, 20), "helper": (30, 40), "flat": (42, 48), "send": (50, 60)}
OWN = "def other():\n    pass\n\n\ndef step():\n    all_reduce()\n"

FIELDS = {
    "title": "前向 `all-reduce`",
    "api": "all_reduce",
    "group": "tp",
    "phase": "forward",
    "dtype": "float32",
    "before": '"[s, b, h]"',
    "after": '"[s, b, h]"',
    "count": "m - 1",
    "ranks": "pp=0",
    "semantics": "合并 partial output",
    "issued_by": "tiny/core.py::reduce",
    "trace": "real",
    "replay": "ours",
}
OPTIONAL = {"replay"}


def record(**changes: str | None) -> str:
    fields = {**FIELDS, **changes}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "正文\n\n```yaml communication-record\n" + "\n".join(lines) + "\n```\n"


def line(field: str) -> int:
    """The line of a field in `record()`."""
    return list(FIELDS).index(field) + 4


def target(ref: SourceRef) -> Target | None:
    """What the pin has there."""
    start, end = DEFINITIONS.get(ref.symbol, (None, None)) if ref.symbol else (ref.start, ref.end)
    if ref.path != PINNED or start is None:
        return None
    return Target(
        repository="tiny", path=ref.path, kind="definition", start=start, end=end, symbol=ref.symbol,
        blob="0" * 40, has_text=True, href=f"https://github.com/example/tiny/blob/{COMMIT}/{ref.path}#L{start}-L{end}",
    )  # fmt: skip


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """Two runs of the pin (one of another version), one of our own program."""
    docs = tmp_path / "docs"
    reduce, other = call((PINNED, 12)), call((PINNED, 12), phase="backward")
    sent = call((PINNED, 35), stack=[(PINNED, 55)], api="isend", group="pp", after=())
    got = call((PINNED, 35), api="isend", group="pp", before=(), after=[(8, 2, 6)])
    flat = [call((PINNED, 45), api="coalesced", before=[(size,), (2,)], phase="grad-sync") for size in (90, 70)]
    calls = {
        0: [reduce, reduce, other, sent, flat[0]],
        1: [reduce, reduce, other, sent, flat[0]],
        2: [other, other, got, flat[1]],
        3: [other, other, got, flat[1]],
    }
    write_run(docs / "traces", "real", run(calls, source=f"tiny@{COMMIT}"))
    write_run(docs / "traces", "old", run(calls, source="tiny@v0.1"))
    small = {"dims": {"s": 4, "b": 1, "h": 2, "m": 9}, "layout": {"tp": 2, "pp": 1, "order": "tp-pp"}}
    mine = [call(("ours.py", 6), before=[(4, 1, 2)])]
    write_run(docs / "traces", "ours", run({0: mine, 1: mine}, source="ours.py", **small))
    (tmp_path / "ours.py").write_text(OWN, encoding="utf-8")
    write_run(docs / "traces", "schema", {"no": "trace"})
    return Evidence(
        root=tmp_path, docs=docs, traces=Traces(docs / "traces"), repositories=(TINY,), find=target
    )  # fmt: skip


def found(text: str, evidence: Evidence) -> list[tuple[int, Code, str, str]]:
    return [(f.line, f.code, f.message, f.fix) for f in check_records(text, evidence=evidence)]


def render(text: str, evidence: Evidence, *, language: str = "zh") -> str:
    def resolve(reference: object) -> Target | None:
        return target(reference.source) if isinstance(reference, Reference) else None

    extension = NotesExtension(
        roadmap=Roadmap(), page=lambda: "notes/a.md", note_exists=bool, script_exists=bool,
        strings=strings(language), evidence=evidence, language=language,
    )  # fmt: skip
    ours = SourcePanelExtension([TINY], lambda: Page(name="notes/a.md"), resolve, language=language)
    return markdown.markdown(text, extensions=[extension, ours, "pymdownx.superfences"])


SEND = {
    "api": "isend", "group": "pp", "after": "none", "count": "1", "replay": None,
    "issued_by": "tiny/core.py::send",
}  # fmt: skip
RECEIVE = {**SEND, "before": "none", "after": '"[s, b, h]"', "ranks": "pp=pp-1", "issued_by": "tiny/core.py::helper"}
FLAT = {
    "api": "coalesced", "phase": "grad-sync", "before": "['[*]', '[b]']", "after": "['[*]', '[b]']",
    "count": "1", "ranks": "all", "issued_by": "tiny/core.py::flat", "replay": None,
}  # fmt: skip
LOCAL = {"trace": "ours", "issued_by": "ours.py::step", "count": "1", "ranks": "all", "replay": None}
BACKWARD = {"phase": "backward", "ranks": "all", "replay": None}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"before": "[s, b, h]", "after": "[16/2, b, (h)]", "replay": None},
        {"before": "'[*, b, h]'"},
        {"ranks": "[0, 1]", "count": "2"},
        FLAT,
        {**FLAT, "before": "[[90], [2]]", "after": "[[90], [2]]", "ranks": "pp=0"},
        {**BACKWARD, "count": "\n  pp=0: 1\n  pp=1: tp"},
        {**SEND, "issued_by": "tiny/core.py::helper"},
        SEND,
        {**SEND, "issued_by": f"https://github.com/example/tiny/blob/{COMMIT}/tiny/core.py#L30-L40"},
        RECEIVE,
        LOCAL,
    ],
)
def test_what_a_run_shows_passes(evidence: Evidence, changes: dict[str, str | None]):
    assert found(record(**changes), evidence) == []


def test_the_fixture_is_what_the_golden_page_shows(evidence: Evidence, golden: Golden):
    blocks = [record(), record(**FLAT), record(**SEND), record(**{**BACKWARD, "count": "{pp=0: 1, pp=1: tp}"})]
    page = "\n".join(block.partition("\n\n")[2] for block in blocks) + "\n" + record(**LOCAL)
    assert found(page, evidence) == []
    html = render(page, evidence)
    assert html.count("<table") == 2, "four that stand together, and one after a paragraph"
    golden("communications.html", html + "\n")


def test_lines_named_outright_are_linked_once(evidence: Evidence):
    """A definition is followed by the line that made the call; a range that a note names is not."""
    lines = f"https://github.com/example/tiny/blob/{COMMIT}/tiny/core.py#L11-L13"
    assert ">core.py:12</a>" in render(record(), evidence)
    html = render(record(issued_by=lines), evidence)
    assert html.count(">core.py:") == 1
    assert ">core.py:11–13</a>" in html


def test_in_english(evidence: Evidence):
    html = render(record(), evidence, language="en")
    assert "proved by <a" in html
    assert ">real</a>" in html


@pytest.mark.parametrize("name", sorted(FIELDS.keys() - OPTIONAL))
def test_every_field_is_required(evidence: Evidence, name: str):
    ((at, code, message, fix),) = found(record(**{name: None}), evidence)
    assert (at, code, message) == (3, Code.RECORD, f"the record lacks the field {name}")
    assert fix == f"add `{name}: …`"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("before", "s, b", 'holds `s, b`; a shape is written "[s, b, h]"'),
        ("before", "'[s,, b]'", "in which a size is missing"),
        ("before", "3", "must be a shape"),
        ("after", "{s: b}", "must be a shape"),
        ("after", "['[s]', s]", "holds `s`"),
        ("count", "{}", "is empty"),
        ("count", "[1]", "must be text"),
        ("count", "{x: 1}", "must be all, coordinates"),
        ("ranks", "some", "must be all, coordinates like pp=0,tp=1, or a list of ranks, not 'some'"),
        ("ranks", "[a]", "must be all, coordinates"),
        ("ranks", "pp==0", "must be all, coordinates"),
        ("ranks", "true", "must be all, coordinates"),
        ("title", "''", "must be text"),
        ("dtype", "[1, [2]]", "must be text"),
    ],
)
def test_a_field_that_is_not_well_written(evidence: Evidence, field: str, value: str, message: str):
    ((at, code, said, _),) = found(record(**{field: value}), evidence)
    assert (at, code) == (line(field), Code.RECORD)
    assert message in said
    assert "note-invalid" in render(record(**{field: value}), evidence)


@pytest.mark.parametrize(
    ("changes", "field", "message", "fix"),
    [
        ({"api": "all_gather"}, "api", "the trace real shows no forward all_gather tp [8, 2, 6] → [8, 2, 6]", "2 × on"),
        ({"group": "dp"}, "group", "shows no forward all_reduce dp", "forward all_reduce tp [8, 2, 6]"),
        ({"phase": "setup"}, "phase", "shows no setup all_reduce", "it shows forward all_reduce"),
        ({"dtype": "bfloat16"}, "dtype", "[8, 2, 6] bfloat16", "float32 at tiny/core.py:12"),
        ({"dtype": "none"}, "dtype", "[8, 2, 6] none", "float32"),
        ({"dtype": "[float32, int64]"}, "dtype", "float32, int64", "float32"),
        ({"before": '"[s, b]"'}, "before", "[8, 2] → [8, 2, 6]", "[8, 2, 6] → [8, 2, 6]"),
        ({"before": '"[s, *, h + 1]"'}, "before", "[8, *, 7] → [8, 2, 6]", "[8, 2, 6] → [8, 2, 6]"),
        ({"after": '"[h, b, s]"'}, "after", "[8, 2, 6] → [6, 2, 8]", "[8, 2, 6] → [8, 2, 6]"),
        ({"after": "none"}, "after", "[8, 2, 6] → none", "[8, 2, 6] → [8, 2, 6]"),
        ({"after": "['[s, b, h]', '[s, b, h]']"}, "after", "[8, 2, 6], [8, 2, 6]", "[8, 2, 6]"),
        ({"before": '"[s, B, h]"'}, "before", "field before: the run has no B; did you mean b?", ""),
        ({"before": '"[s / 3, b, h]"'}, "before", "8 / 3 leaves a rest", ""),
        ({"before": '"[s ** 2, b, h]"'}, "before", "`s ** 2` is not arithmetic", ""),
        ({"before": '"[s(), b, h]"'}, "before", "`s()` is not arithmetic", ""),
        ({"before": '"[s, 1.0, h]"'}, "before", "`1.0` is not arithmetic", ""),
        ({"before": '"[s, b //, h]"'}, "before", "`b //` is not arithmetic", ""),
        ({"count": "m % (b - 2)"}, "count", "field count: `m % (b - 2)` divides by zero", ""),
        ({"count": "m"}, "count", "m is 3, but the trace real shows 2 on rank 0–1", ""),
        ({"count": "3"}, "count", "the record says 3, but the trace real shows 2 on rank 0–1", ""),
        ({"count": "m - 3"}, "count", "m - 3 is 0; a call that is not made has no record", ""),
        ({"count": "{tp=0: 2}"}, "count", "speaks of rank 0, 2, the field ranks of 0–1", ""),
        ({"count": "{pp=0: 2, tp=1: 2}"}, "count", "says two things of rank 1", ""),
        ({"ranks": "all"}, "count", "m - 1 is 2, but the trace real shows 0 on rank 2–3", ""),
        ({"ranks": "[0]"}, "ranks", "shows this call on rank 1 too, the record says 0 alone", ""),
        ({"ranks": "[7]"}, "ranks", "the run recorded no rank 7; it has 0–3", ""),
        ({"ranks": "pp=2"}, "ranks", "no rank of the run is at pp=2", ""),
        ({"ranks": "xp=0"}, "ranks", "the run's layout has no axis xp; it has tp, cp, ep, dp, pp", ""),
        ({"ranks": "pp=q"}, "ranks", "the run has no q", ""),
        ({"issued_by": "tiny/core.py::helper"}, "issued_by", "by tiny/core.py::helper", "tiny/core.py:12"),
        ({"issued_by": "tiny/core.py::redue"}, "issued_by", "is no definition and no lines at the pin", "sourcepanel"),
        ({"issued_by": "reduce"}, "issued_by", "reduce names no place in tiny", "write one"),
        ({"issued_by": "https://example.org/a"}, "issued_by", "names no place in tiny", "write one"),
        ({"trace": "reel"}, "trace", "there is no trace reel", "did you mean real?"),
        ({"trace": "schema"}, "trace", "there is no trace schema", ""),
        ({"trace": "old"}, "trace", "the trace old ran tiny@v0.1, which is not the pin", "record it again"),
        ({**LOCAL, "issued_by": "ours.py::stop"}, "issued_by", "ours.py defines no stop", "did you mean step?"),
        ({**LOCAL, "issued_by": "ours.py::other"}, "issued_by", "shows no", "ours.py:6"),
        ({**LOCAL, "issued_by": "nothing.py::f"}, "issued_by", "names no file of this project", "write"),
        ({**LOCAL, "issued_by": "../../x.py::f"}, "issued_by", "names no file of this project", "write"),
        ({"replay": "our"}, "replay", "there is no trace our", "did you mean ours?"),
        ({"phase": "backward", "count": "1", "ranks": "pp=0"}, "ranks", "on rank 2–3 too", ""),
        ({**BACKWARD, "count": "{pp=0: 1, pp=1: 2}", "replay": "ours"}, "replay", "ours shows no backward", "forward"),
        ({**FLAT, "after": "['[*]', '[s]']"}, "after", "[*], [2] → [*], [8]", "[90], [2] → [90], [2]"),
    ],
)
def test_what_the_run_does_not_show_is_told_with_what_it_shows(
    evidence: Evidence, changes: dict[str, str | None], field: str, message: str, fix: str
):
    given = {**FIELDS, **changes}
    ((at, code, said, cure),) = found(record(**changes), evidence)
    lines = [name for name in given if given[name] is not None]
    assert at == lines.index(field) + 4
    assert message in said
    assert fix in cure
    assert code in (Code.UNPROVED, Code.RECORD)
    html = render(record(**changes), evidence)
    assert "note-invalid" in html
    assert "<table" not in html


def test_a_replay_that_lacks_a_size_is_told(evidence: Evidence):
    ((at, _, said, _),) = found(record(before='"[s, b, 3 * dp * b]"'), evidence)
    assert at == line("replay")
    assert said.startswith("ours cannot show before: field before: the run has no dp")


def test_a_run_that_recorded_nothing(evidence: Evidence):
    assert evidence.traces.folder
    write_run(evidence.traces.folder, "empty", run({0: []}, source=f"tiny@{COMMIT}"))
    ((at, _, said, _),) = found(record(trace="empty", replay=None), evidence)
    assert (at, said) == (line("trace"), "the trace empty holds no call at all")


def test_a_run_that_is_recorded_anew_is_read_anew(evidence: Evidence):
    assert found(record(), evidence) == []
    assert evidence.traces.folder
    write_run(evidence.traces.folder, "real", run({0: [call((PINNED, 12))]}, source=f"tiny@{COMMIT}"))
    assert [f[2] for f in found(record(), evidence)] == ["m - 1 is 2, but the trace real shows 1 on rank 0"]


def test_experts_are_counted_on_their_own_grid(evidence: Evidence):
    layout = {"tp": 2, "cp": 1, "ep": 2, "dp": 2, "pp": 1, "order": "tp-cp-ep-dp-pp"}
    calls = {rank: [call((PINNED, 12))] if rank in (2, 3) else [] for rank in range(4)}
    assert evidence.traces.folder
    write_run(evidence.traces.folder, "moe", run(calls, source=f"tiny@{COMMIT}", layout=layout))
    assert found(record(trace="moe", ranks="ep=1", count="1", replay=None), evidence) == []
    assert found(record(trace="moe", ranks="dp=1", count="1", replay=None), evidence) == []
    assert len(found(record(trace="moe", ranks="ep=0", count="1", replay=None), evidence)) == 1


def test_without_traces_nothing_is_proved(evidence: Evidence):
    ((_, _, said, fix),) = found(record(), replace(evidence, traces=Traces()))
    assert said == "there is no trace real"
    assert "`traces` in sourcepanel.toml" in fix


@settings(deadline=None)
@given(st.text(alphabet="abc:-[]{}`'\"\n #none|>&*!?=,0/%", max_size=120))
def test_no_text_crashes_it(body: str):
    for field in ("before", "count", "ranks", "issued_by"):
        check = list(check_records(record(**{field: body}), evidence=Evidence()))
        assert all(finding.line >= 1 for finding in check)


@pytest.mark.parametrize("changes", [{}, FLAT, SEND, {**BACKWARD, "count": "{pp=0: 1, pp=1: tp}"}])
def test_no_mutation_gets_through(evidence: Evidence, changes: dict[str, str | None]):
    """The mutations with which the real pages are tried, on records of every form."""
    assert evidence.traces.folder
    ((one,),) = [records(record(**changes))]
    assert found(written(one), evidence) == []
    tried = list(mutations(one, traces=evidence.traces.folder, elsewhere="tiny/core.py::nothing"))
    assert {tuple(k for k in one if one[k] != wrong[k]) for wrong in tried} == {
        ("api",), ("group",), ("phase",), ("dtype",), ("issued_by",), ("before",), ("after",), ("count",)
    }  # fmt: skip
    assert [wrong for wrong in tried if not found(written(wrong), evidence)] == []
