"""What the site shows is what the scripts say today: every recording, made again, equals the committed one."""

from __future__ import annotations

import pytest

from runnable.lab.report import Report
from runnable.record import MEGATRON, RECORDINGS, TRACES
from runnable.traces import Trace, schema


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_again_equals_the_committed(play, name, tmp_path):
    result = play(name[:4], *RECORDINGS[name], "--out", tmp_path / name)
    assert result.code == 0, result.out + result.err
    made = {p.name: p.read_text() for p in tmp_path.glob(f"{name}*") if p.suffix in (".json", ".txt", ".svg")}
    kept = {p.name: p.read_text() for p in TRACES.glob(f"{name}*") if _belongs(p.name, name)}
    assert made.keys() == kept.keys(), "run: python -m runnable.record"
    for file, text in made.items():
        assert text == kept[file], f"{file} differs; run: python -m runnable.record {name}"


def _belongs(file: str, name: str) -> bool:
    """ch10-comm.svg is of ch10, ch10-sp-comm.svg is of ch10-sp."""
    stem = file.rsplit(".", 1)[0]
    owners = [other for other in RECORDINGS if stem == other or stem.startswith(f"{other}-")]
    return max(owners, key=len) == name


def test_no_file_without_a_recording():
    stems = {p.stem for p in TRACES.iterdir() if p.suffix in (".json", ".txt")} - {"schema"}
    assert stems == {*RECORDINGS, *MEGATRON}


@pytest.mark.parametrize("name", [*RECORDINGS, *MEGATRON])
def test_traces_are_sound(name):
    trace = Trace.load(TRACES / f"{name}.json")
    assert trace.unmatched() == []
    assert Trace.loads(trace.dumps()) == trace


@pytest.mark.parametrize("name", MEGATRON)
def test_the_text_of_a_recording_shows_its_trace(name):
    """The traces are recorded again elsewhere; what a page takes in is the text, and its table must be theirs."""
    trace = Trace.load(TRACES / f"{name}.json")
    recorded = [rank.rank for rank in trace.ranks]
    report = Report(speaks=True, stable=True)
    report.communication(trace, rank=recorded[0])
    assert report.text().strip() in (TRACES / f"{name}.txt").read_text(), f"run: python -m runnable.record {name}"


def test_the_schema_file_is_the_models_schema():
    assert (TRACES / "schema.json").read_text() == schema()


def test_files_hold_no_machine(tmp_path):
    for path in TRACES.iterdir():
        text = path.read_text()
        for word in ("/tmp", "/home", "/root", "/work", "site-packages"):
            assert word not in text, f"{path.name} names a path of a machine: {word}"
