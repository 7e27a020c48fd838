"""No wrong word in any communication record of the site gets through."""

from __future__ import annotations

from pathlib import Path

import pytest

from sourcepanel.notes.records import check_records
from sourcepanel.project import Project
from tests.support.mutate_records import mutations, records, written

ROOT = Path(__file__).resolve().parents[3]
DOCS, TRACES = ROOT / "docs", ROOT / "docs/traces"
PAGES = [
    page.relative_to(DOCS).as_posix()
    for page in sorted(DOCS.rglob("*.md"))
    if records(page.read_text(encoding="utf-8"))
]


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("SOURCEPANEL_BACKEND", "wheel")
    return Project.open(ROOT, notify=print)


@pytest.mark.parametrize("page", PAGES)
def test_every_wrong_word_is_noticed(project: Project, page: str):
    tried, survivors = 0, []
    for record in records((DOCS / page).read_text(encoding="utf-8")):
        assert list(check_records(written(record), evidence=project.evidence)) == []
        for wrong in mutations(record, traces=TRACES):
            tried += 1
            if not list(check_records(written(wrong), evidence=project.evidence)):
                survivors.append(wrong)
    assert survivors == []
    assert tried > 10
