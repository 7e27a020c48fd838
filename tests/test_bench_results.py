"""bench/results.py: that a program writes its own section of the results and nothing else."""

from __future__ import annotations

import json

import pytest

from bench.results import FOLDER, Section

PAGE = """\
# Results
<!-- one: written by bench/one.py -->
old
<!-- one: end -->
between
<!-- two: written by bench/two.py -->
kept
<!-- two: end -->
"""


def test_only_what_stands_between_the_marks_is_written(tmp_path):
    (tmp_path / "RESULTS.md").write_text(PAGE, encoding="utf-8")
    section = Section("one", tmp_path)
    section.write("new\nlines", figures={"a": 1})
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert page == PAGE.replace("old", "new\nlines")
    assert section.within(page) == "new\nlines"
    assert json.loads((tmp_path / "one.json").read_text(encoding="utf-8")) == {"a": 1}


@pytest.mark.parametrize("mark", Section("one").marks)
def test_a_page_without_its_marks_is_refused_and_left_alone(tmp_path, mark):
    page = tmp_path / "RESULTS.md"
    page.write_text(PAGE.replace(mark, ""), encoding="utf-8")
    before = page.read_bytes()
    with pytest.raises(SystemExit, match="lacks the lines"):
        Section("one", tmp_path).write("new")
    assert page.read_bytes() == before


def test_every_program_that_writes_has_its_section():
    page = (FOLDER / "RESULTS.md").read_text(encoding="utf-8")
    programs = [path.stem for path in FOLDER.glob("*.py") if "SECTION = Section(" in path.read_text(encoding="utf-8")]
    assert {"build", "drift", "xref", "lab", "panel"} <= set(programs)
    for name in programs:
        assert Section(name).within(page)
