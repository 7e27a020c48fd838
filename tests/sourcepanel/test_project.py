"""A whole project: its pages, lock and sources together; and how the next lock is made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sourcepanel.config import Config, load_config
from sourcepanel.diagnostics import Code
from sourcepanel.errors import LockError, PinMismatch
from sourcepanel.lock import Lock, format_lock, read_lock, write_lock
from sourcepanel.project import Project, Report
from sourcepanel.relock import Relocked, relock
from tests.support.tiny import URL, TinyRepo, build_wheel, wheel_files

PIN = f"{URL}/blob/v2.0/"
NOTE = f"""See `tiny/training.py::train_step`, [`main`]({PIN}pretrain.py#L6) and [core]({URL}/tree/v2.0/tiny/core).
Then `tiny/training.py::train_step` again, and [the scripts]({URL}/tree/v2.0/examples).
"""


class Site:
    """The tiny project with pages that a test writes."""

    def __init__(self, config: Config, repo: TinyRepo) -> None:
        self.root = config.root
        self.repo = repo
        self.lock_path = config.path(config.lock)
        self.said: list[str] = []

    def page(self, text: str, name: str = "notes/01.md") -> None:
        path = self.root / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def open(self) -> Project:
        return Project.open(self.root, notify=self.said.append)

    def check(self) -> Report:
        return self.open().check()

    def codes(self) -> list[tuple[str, str]]:
        return [(d.code.value, d.page) for d in self.check().diagnostics]

    def relock(self) -> Relocked:
        return relock(self.open())

    def write_lock(self) -> Lock:
        made = self.relock()
        assert made.lock is not None, made.wrong
        write_lock(made.lock, self.lock_path)
        return made.lock

    def configure(self, old: str, new: str) -> None:
        path = self.root / "sourcepanel.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))


@pytest.fixture
def site(tiny_config: Config, tiny_repo: TinyRepo) -> Site:
    made = Site(tiny_config, tiny_repo)
    made.page(NOTE)
    return made


@pytest.fixture
def use_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """From now on the wheel alone, holding these files."""

    def use(files: dict[str, bytes] | None = None) -> None:
        monkeypatch.setenv("SOURCEPANEL_BACKEND", "wheel")
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_FIND_LINKS", str(build_wheel(tmp_path / "links", files).parent))

    return use


def test_a_locked_project_is_right(site: Site):
    lock = site.write_lock()
    assert lock.pages == {
        "notes/01.md": {
            "tiny:tiny/training.py::train_step": 2,
            "tiny:pretrain.py#L6 (main)": 1,
            "tiny:tiny/core/": 1,
            "tiny:examples/": 1,
        }
    }
    assert set(lock.repositories["tiny"].files) == {"LICENSE", "pretrain.py", "tiny/training.py"}
    assert read_lock(site.lock_path) == lock
    report = site.check()
    assert report.diagnostics == ()
    assert (report.total, report.from_source, report.from_lock) == (5, 5, 0)
    assert [t.key for t in report.targets] == [
        "tiny/tiny/training.py#L29-L41",
        "tiny/pretrain.py#L6",
        "tiny/tiny/core/",
        "tiny/examples/",
    ]
    assert not report.fails()


def test_the_lock_does_not_depend_on_when_it_is_made(site: Site):
    site.page("`tiny/core/parallel.py::RowParallel`", "a.md")
    first = format_lock(site.write_lock())
    assert format_lock(site.write_lock()) == first
    assert site.relock().pages == ()


def test_nothing_is_opened_before_it_is_needed(site: Site):
    site.configure(site.repo.path.as_posix(), "/nowhere")
    project = site.open()
    assert list(project.sources) == ["tiny"]
    assert site.said == []


def test_what_the_wheel_lacks_is_checked_by_the_lock(site: Site, use_wheel: Callable[..., None]):
    site.write_lock()
    use_wheel()
    report = site.check()
    assert report.diagnostics == ()
    assert (report.total, report.from_source, report.from_lock) == (5, 4, 1)
    assert [t.has_text for t in report.targets] == [True, False, False, False]


def test_one_file_of_the_wheel_differs(site: Site, use_wheel: Callable[..., None]):
    before = site.write_lock()
    use_wheel({**wheel_files(), "tiny/training.py": b"# not the pin\n"})
    found = site.open().check(notes=False).diagnostics
    assert {d.code for d in found} == {Code.LOCK_MISMATCH}
    assert "tiny/training.py is not the file of the pin" in found[0].message
    for refused in (site.relock, site.check):
        with pytest.raises(PinMismatch, match=r"tiny/training.py is not the file of the pin"):
            refused()
    assert read_lock(site.lock_path) == before


def test_the_wheel_alone_keeps_what_it_cannot_see_and_updates_the_rest(site: Site, use_wheel: Callable[..., None]):
    before = site.write_lock()
    use_wheel()
    site.page(NOTE + "\nAnd `tiny/core/parallel.py::Layer`; `pretrain.py#L6` is mentioned only.\n")
    after = site.write_lock()
    was, now = before.repositories["tiny"], after.repositories["tiny"]
    assert now.files["pretrain.py"] == was.files["pretrain.py"]
    assert now.files["LICENSE"] == was.files["LICENSE"]
    assert set(now.links) - set(was.links) == {"tiny/core/parallel.py::Layer"}
    assert site.check().diagnostics == ()


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (
            "`pretrain.py::main`",
            "notes/01.md:4: tiny-engine 2.0 .*does not hold pretrain.py, and the lock does not know",
        ),
        (
            f"[`pretrain`]({PIN}pretrain.py#L6)",
            r"tiny:pretrain.py#L6 \(pretrain\); run `sourcepanel lock` with a full clone",
        ),
    ],
)
def test_the_wheel_alone_cannot_vouch_for_what_it_cannot_see(
    site: Site, use_wheel: Callable[..., None], added: str, message: str
):
    site.write_lock()
    use_wheel()
    site.page(NOTE + f"\n{added}\n")
    with pytest.raises(LockError, match=message):
        site.relock()


def test_a_reference_may_move_to_another_page_without_the_source(site: Site, use_wheel: Callable[..., None]):
    site.write_lock()
    use_wheel()
    site.page("nothing here")
    site.page(NOTE, "notes/02.md")
    made = site.relock()
    assert made.lock is not None
    assert [(p.page, len(p.added), len(p.removed)) for p in made.pages] == [
        ("notes/01.md", 0, 5),
        ("notes/02.md", 5, 0),
    ]
    assert set(made.lock.pages) == {"notes/02.md"}


def test_an_unknown_file_outside_the_wheel(site: Site, use_wheel: Callable[..., None]):
    site.write_lock()
    use_wheel()
    site.page(NOTE + f"\n[new]({PIN}README.md)\n")
    (found,) = site.relock().wrong
    assert found.code is Code.MISSING_FILE
    assert "SOURCEPANEL_CHECKOUT" in found.fix


def test_pages_that_are_wrong_are_not_locked(site: Site):
    before = site.write_lock()
    site.page(NOTE + "\n`tiny/training.py::no_such`\n")
    made = site.relock()
    assert made.lock is None
    assert [(d.code, d.line) for d in made.wrong] == [(Code.MISSING_SYMBOL, 4)]
    assert read_lock(site.lock_path) == before


def test_the_form_of_a_note_does_not_keep_it_from_being_locked(site: Site):
    site.configure("[[repositories]]", '[notes]\npages = ["notes/*"]\nheadings = ["Purpose"]\n\n[[repositories]]')
    site.write_lock()
    assert site.codes() == [("template", "notes/01.md")]
    assert site.open().check(notes=False).diagnostics == ()


def test_changes_are_told_page_by_page(site: Site):
    site.write_lock()
    site.page(NOTE.replace("train_step` again", "pretrain` again"))
    made = site.relock()
    (page,) = made.pages
    assert (page.page, page.added, page.removed) == (
        "notes/01.md",
        ("tiny:tiny/training.py::pretrain",),
        ("tiny:tiny/training.py::train_step",),
    )
    assert (made.facts, made.pins) == ((), ())


def test_a_moved_pin_is_told_once_and_relocked(site: Site):
    site.write_lock()
    new = site.repo.commits["v3.0"]
    site.configure(site.repo.commit, new)
    site.configure('ref = "v2.0"', 'ref = "v3.0"')
    site.page(NOTE.replace("v2.0", "v3.0"))
    found = site.check().diagnostics
    assert [(d.code, d.page, d.line) for d in found] == [(Code.LOCK_MISMATCH, "sourcepanel.lock", 1)] * 2
    assert f"commit {site.repo.commit}" in found[0].message
    made = site.relock()
    assert made.pins == (f"tiny: v2.0 ({site.repo.commit[:8]}) → v3.0 ({new[:8]})",)
    ((entry, before, after),) = made.facts
    assert (entry, before.start, after.start) == ("tiny:tiny/training.py::train_step", 29, 32)
    site.write_lock()
    assert site.codes() == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"hash": "', '"hash": "0', "the lock says"),
        ('"lines": 76', '"lines": 75', "with 75 lines; at the pin it is"),
        ('"kind": "folder"', '"kind": "file"', "the lock says file"),
        ('"url": "https://github.com/example/tiny"', '"url": "https://github.com/other/tiny"', "written for url"),
    ],
)
def test_a_lock_edited_by_hand_is_told(site: Site, old: str, new: str, message: str):
    site.write_lock()
    text = site.lock_path.read_text()
    assert old in text
    site.lock_path.write_text(text.replace(old, new, 1))
    found = site.check().diagnostics
    assert {d.code for d in found} == {Code.LOCK_MISMATCH}
    assert any(message in d.message for d in found), found
    assert site.relock().lock is not None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r'("LICENSE": {"blob": ")\w{40}', rf"\g<1>{'0' * 40}", "LICENSE is not the file of the pin"),
        (r'("LICENSE": .*"lines": )\d+', r"\g<1>999", "with 999 lines; at the pin it has"),
    ],
)
def test_the_licence_is_held_against_the_lock_though_no_page_links_it(site: Site, old: str, new: str, message: str):
    site.write_lock()
    text = site.lock_path.read_text()
    site.lock_path.write_text(re.sub(old, new, text))
    (found,) = site.check().diagnostics
    assert (found.code, found.page, found.link) == (Code.LOCK_MISMATCH, "sourcepanel.lock", "LICENSE")
    assert message in found.message


def test_a_whole_tree_outranks_a_wrong_lock(site: Site):
    """Git's own ids vouch for a checkout: a blob that was edited in the lock is mended from it."""
    right = format_lock(site.write_lock())
    blob = site.repo.blobs["tiny/training.py"]
    site.lock_path.write_text(right.replace(blob, "0" * 40))
    with pytest.raises(PinMismatch):
        site.check()
    assert format_lock(site.write_lock()) == right


def test_what_no_page_needs_is_stale(site: Site):
    site.write_lock()
    data = json.loads(site.lock_path.read_text())
    data["pages"]["notes/gone.md"] = {"tiny:README.md": 1}
    data["repositories"]["tiny"]["links"]["README.md"] = {"kind": "file"}
    data["repositories"]["gone"] = {**data["repositories"]["tiny"], "files": {}, "links": {}}
    site.lock_path.write_text(json.dumps(data))
    found = site.check().diagnostics
    assert {d.code for d in found} == {Code.STALE_LOCK}
    assert sorted(d.link for d in found) == ["README.md", "gone", "notes/gone.md"]
    assert site.open().check(["notes/01.md"]).diagnostics == (), "one page alone says nothing about the others"
    made = site.relock()
    assert made.pins == ("gone: gone",)
    assert [page.page for page in made.pages] == ["notes/gone.md"]


def test_a_changed_reference_is_told_once(site: Site):
    site.write_lock()
    site.page(NOTE.replace("pretrain.py#L6", "pretrain.py#L7"))
    (found,) = site.check().diagnostics
    assert (found.code, found.page, found.line) == (Code.NOT_LOCKED, "notes/01.md", 1)


def test_another_ref_is_told_once(site: Site):
    """Not also as missing from the page, on a line that only looks like it."""
    site.write_lock()
    site.page(NOTE.replace("blob/v2.0/pretrain.py", "blob/v3.0/pretrain.py"))
    (found,) = site.check().diagnostics
    assert (found.code, found.page, found.line) == (Code.OTHER_REF, "notes/01.md", 1)
    site.page(NOTE.replace("blob/v2.0/pretrain.py", "blob/v3.0/pretrain.py"), "notes/02.md")
    site.page("Nothing.")
    assert ("stale-lock", "notes/01.md") in site.codes(), "another page does not stand in for it"


def test_a_licence_that_the_pin_lacks(site: Site):
    site.configure('path = "LICENSE"', 'path = "LICENCE"')
    site.page("no links")
    (found,) = site.check().diagnostics
    assert (found.code, found.link) == (Code.MISSING_FILE, "LICENCE")


def test_without_a_lock_each_page_is_told_once(site: Site):
    assert site.codes() == [("not-locked", "notes/01.md")]


def test_levels_decide_what_fails(site: Site):
    assert site.check().fails()
    assert not site.check().fails(strict=False)
    site.configure("[[repositories]]", '[levels]\nnot-locked = "error"\n\n[[repositories]]')
    assert site.check().fails(strict=False)
    site.configure('"error"', '"info"')
    assert not site.check().fails()


def test_excluded_pages_are_not_pages(site: Site):
    site.write_lock()
    site.configure("[[repositories]]", 'exclude = ["notes/*"]\n[[repositories]]')
    assert load_config(site.root).page_names() == []
    assert ("stale-lock", "sourcepanel.lock") in site.codes()


def test_two_repositories_are_kept_apart(site: Site):
    text = (site.root / "sourcepanel.toml").read_text()
    other = (
        text[text.index("[[repositories]]") :]
        .replace('"tiny"', '"twin"')
        .replace(URL, "https://github.com/example/twin")
    )
    other = other.replace("someone/tiny-study", "someone/twin-study")
    (site.root / "sourcepanel.toml").write_text(text + other)
    site.page("`tiny/training.py::train_step` and `twin:tiny/training.py::pretrain`\n")
    lock = site.write_lock()
    assert lock.pages["notes/01.md"] == {"tiny:tiny/training.py::train_step": 1, "twin:tiny/training.py::pretrain": 1}
    assert [set(r.links) for r in lock.repositories.values()] == [
        {"tiny/training.py::train_step"},
        {"tiny/training.py::pretrain"},
    ]
    assert site.codes() == []
