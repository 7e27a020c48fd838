"""The real note against the committed lock, with the wheel alone: no slip in any of its references passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sourcepanel.project import Project
from tests.support.mutate import survivors

ROOT = Path(__file__).parents[2]
NOTE = "notes/01-training-run-overview.md"


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("SOURCEPANEL_BACKEND", "wheel")
    return Project.open(ROOT, notify=print)


def test_every_reference_of_the_note_is_answered(project: Project):
    (page,) = project.check([NOTE], notes=False).pages
    assert page.diagnostics == ()
    assert page.checked == page.total > 100
    assert page.from_lock > 0, "the root scripts are not in the wheel, and links to them are checked all the same"


def test_every_slip_in_the_note_is_noticed_on_its_line(project: Project, tmp_path: Path):
    missed, tried = survivors(project, NOTE, work=tmp_path, every=False)
    print(f"{tried - len(missed)} of {tried} slips noticed")
    assert missed == []
    assert tried > 5000
