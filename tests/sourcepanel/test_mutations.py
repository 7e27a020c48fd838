"""No slip in a reference gets past a check: every one is tried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sourcepanel.config import Config
from sourcepanel.lock import write_lock
from sourcepanel.project import Project
from sourcepanel.relock import relock
from tests.support.mutate import Slip, apply, slips, survivors
from tests.support.tiny import URL

PIN = f"{URL}/blob/v2.0/"
NOTE = f"""# A note

See [`train_step`]({PIN}tiny/training.py#L29-L41) and `tiny/training.py::train_step.loss_func`,
then [the same]({PIN}tiny/training.py#L29-L41) and [again]({PIN}tiny/training.py#L29-L41).

| where | what |
|---|---|
| [`merge`]({PIN}tiny/training.py#L64-L65) | `tiny/core/parallel.py::RowParallel` |
| [{PIN}README.md]({PIN}README.md) | [`main`]({PIN}pretrain.py#L6) |

- `pretrain.py::main` twice: `pretrain.py::main`
- `pretrain.py::main` once more
- [core]({URL}/tree/v2.0/tiny/core) and [another][there], [`A`]({PIN}tiny/data/form_feed.py#L1)

[there]: {PIN}docs/a%20b%23c.md
"""


@pytest.fixture
def project(tiny_config: Config) -> Project:
    (tiny_config.path(tiny_config.docs) / "notes").mkdir()
    (tiny_config.path(tiny_config.docs) / "notes/01.md").write_text(NOTE, encoding="utf-8")
    made = relock(Project.open(tiny_config.root, notify=print))
    assert made.lock is not None, made.wrong
    write_lock(made.lock, tiny_config.path(tiny_config.lock))
    return Project.open(tiny_config.root, notify=print)


def test_every_slip_is_noticed_on_its_line(project: Project, tmp_path: Path):
    missed, tried = survivors(project, "notes/01.md", work=tmp_path / "work")
    assert missed == []
    assert tried > 800


def test_the_lock_is_what_notices_a_slip_to_another_valid_place(project: Project, tmp_path: Path):
    """The control: without the account of pages, slips that stay inside the file pass."""
    page = project.lock.pages["notes/01.md"]
    loose = project.config.model_copy(update={"levels": {"not-locked": "ignore", "stale-lock": "ignore"}})
    blind = replace(project, config=loose, lock=project.lock.model_copy(update={"pages": {"notes/01.md": page}}))
    missed, _ = survivors(blind, "notes/01.md", work=tmp_path / "work")
    assert {slip.part for slip in missed} >= {"digit"}


def test_slips_cover_every_digit_and_letter(project: Project):
    (page,) = project.check(["notes/01.md"]).pages
    made = slips(NOTE, page.references)
    first = [slip for slip in made if slip.reference is page.references[0]]
    assert sum(slip.part == "digit" for slip in first) == 4 * 9
    assert sum(slip.part == "path" for slip in first) == len("tinytrainingpy") * 3
    assert sum(slip.part == "name" for slip in first) == len("trainstep") * 3
    assert {slip.part for slip in made} == {"digit", "path", "symbol", "name"}
    slip: Slip
    for slip in made:
        assert apply(NOTE, [slip]) != NOTE
