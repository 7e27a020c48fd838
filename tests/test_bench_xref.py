"""bench/xref.py: that a sample is drawn and judged as it says, and that no source text is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench import xref as bench
from sourcepanel.xref.links import Linked
from sourcepanel.xref.model import Definition
from tests.sourcepanel.xref.says import source_files

ROOT = Path(__file__).resolve().parent.parent
A = Definition("m/a.py", "A.f", "method", 3, 3, 4)
B = Definition("m/b.py", "", "module")


@pytest.mark.parametrize(
    ("status", "targets", "truth", "verdict"),
    [
        ("certain", (A,), "m/a.py::A.f", "right"),
        ("certain", (A,), "m/a.py::A.g", "wrong"),
        ("certain", (B,), "m/b.py", "right"),
        ("certain", (A,), "outside", "wrong"),
        ("likely", (B, A), "m/a.py::A.f", "likely and right"),
        ("likely", (A,), "open", "likely and wrong"),
        ("unknown", (), "m/a.py::A.f", "unresolved though resolvable"),
        ("unknown", (), "b.py", "unresolved though resolvable"),
        ("unknown", (), "outside", "rightly unresolved"),
        ("unknown", (), "open", "rightly unresolved"),
        ("certain", (A,), None, "not checked"),
    ],
)
def test_the_verdict_compares_the_answer_with_what_was_read(status, targets, truth, verdict):
    one = bench.Drawn("x.py", "f", Linked(1, 0, 1, status, "call", targets))
    assert bench.verdict(one, truth) == verdict


def test_the_same_seed_draws_the_same_and_another_one_others():
    files = source_files({"m/a.py": "def f(): ...\n" + "f()\n" * 300, "n/b.py": "x = 1\nx\n"})
    every = bench.identifiers(files, under="m/")
    assert {one.path for one in every} == {"m/a.py"}
    first, again, other = (
        bench.draw(list(order), seed=seed) for order, seed in ((every, 1), (every[::-1], 1), (every, 2))
    )
    assert len(first[0]) == bench.WANTED
    assert first == again
    assert first != other


def test_each_place_of_the_samples_is_a_place_and_each_meaning_a_name():
    noted = json.loads((ROOT / "bench/xref_sample.json").read_text(encoding="utf-8"))
    assert [len(truths) for truths in noted.values()] == [100, 100]
    for truths in noted.values():
        for place, truth in truths.items():
            assert re.fullmatch(r"[\w/]+\.py:\d+:\d+ \w+", place)
            assert re.fullmatch(r"outside|open|[\w/]+\.py(::(--)?[\w.-]+)?", truth)


def test_the_results_are_written_and_all_checked():
    text = (ROOT / "bench/RESULTS.md").read_text(encoding="utf-8")
    part = bench.SECTION.within(text)
    rows = re.findall(r"^\| [\w/]+\.py:\d+ \| `\w+` \| ([\w ]+) \|$", part, re.M)
    assert len(rows) == 200
    assert set(rows) <= {
        "right", "likely and right", "rightly unresolved", "unresolved though resolvable", "wrong", "likely and wrong",
    }  # fmt: skip
