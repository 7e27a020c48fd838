"""The pin moves: every byte that must change changes, no other; what is uncertain stays and is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from sourcepanel.cli import main
from sourcepanel.config import load_config
from sourcepanel.lock import read_lock
from tests.sourcepanel.drift.site import NEW_FILES, NEXT, OLD_FILES, URL, Site, build_site, lines

BLOB = f"{URL}/blob/v1/engine"
NEW_BLOB = f"{URL}/blob/v2/engine"
TOTAL, TOTAL_THERE = lines("    total = a + b\n"), lines("    total = a + b\n", text=NEXT)
REPORT, REPORT_THERE = lines("    report(total)\n"), lines("    report(total)\n", text=NEXT)
LOSSES, LOSSES_THERE = lines("        losses.append(loss.item())\n"), lines("        losses.append(", text=NEXT)
LEGACY = lines("    model.legacy_forward()\n    model.legacy_backward()\n")

PAGE = (
    "\ufeff---\r\ntitle: T\r\n---\r\n\r\n# T  \r\n"
    f"\r\n[a]({BLOB}/loop.py#{TOTAL}), again [b]({BLOB}/loop.py#{TOTAL} 'title') \t \r\n"
    f"| x | y |\r\n|---|---|\r\n| [a]({BLOB}/loop.py#{REPORT}) | `engine/loop.py::helper`"
    " and `engine/data.py::read()` |\r\n"
    f'\r\n[ref style][r], [again][r] and [r].\r\n\r\n[r]: {BLOB}/loop.py#{REPORT} "t"\r\n'
    f"\r\nNote[^1].\r\n\r\n[^1]: [in a footnote]({BLOB}/loop.py#{TOTAL})\r\n"
    f'\r\n<a href="{BLOB}/data.py">raw</a> and [folder]({URL}/tree/v1/engine/)\r\n'
    f"\r\n```text\r\n{BLOB}/loop.py#{TOTAL}\r\n```\r\n"
    "\r\nNo final newline"
)
MOVED = (
    PAGE.replace(f"]({BLOB}/loop.py#{TOTAL}", f"]({NEW_BLOB}/loop.py#{TOTAL_THERE}")
    .replace(f"{BLOB}/loop.py#{REPORT}", f"{NEW_BLOB}/loop.py#{REPORT_THERE}")
    .replace("engine/data.py::read()", "engine/io/data.py::read()")
    .replace(f'"{BLOB}/data.py"', f'"{NEW_BLOB}/io/data.py"')
    .replace("/tree/v1/", "/tree/v2/")
)  # fmt: skip

UNSURE = (
    f"# U\n\n[changed]({BLOB}/loop.py#{LOSSES})\n[gone]({BLOB}/loop.py#{LEGACY})\n`engine/loop.py::old_way`\n"
    f"[alias](https://github.com/someone/engine-study/blob/main/engine/loop.py#{LOSSES})\n"
    f"`engine/loop.py::Engine.start` [sure]({BLOB}/loop.py#{TOTAL})\n"
)


def build(tmp_path: Path, page: str = PAGE, **more: object) -> Site:
    return build_site(tmp_path, {"note.md": page.encode(), "plain.md": b"# Nothing\r\n"}, **more)


def test_every_other_byte_stays(tmp_path: Path) -> None:
    site = build(tmp_path)
    done = site.run("repin", "--to", "v2", "--write")
    assert done.exit_code == 0, done.output
    assert site.page() == MOVED.encode()
    assert site.page("plain.md") == b"# Nothing\r\n"
    assert site.run("check").exit_code == 0
    assert site.git("status", "--porcelain").split() == [
        "M",
        "docs/note.md",
        "M",
        "sourcepanel.lock",
        "M",
        "sourcepanel.toml",
    ]


def test_the_configuration_keeps_its_comments(tmp_path: Path) -> None:
    site = build(tmp_path)
    before = (site.root / "sourcepanel.toml").read_bytes()
    site.run("repin", "--to", "v2", "--write")
    after = before.replace(b'ref = "v1"', b'ref = "v2"').replace(
        site.commits["v1"].encode(), site.commits["v2"].encode()
    )
    assert (site.root / "sourcepanel.toml").read_bytes() == after


def test_without_write_nothing_is_written(tmp_path: Path) -> None:
    site = build(tmp_path)
    before = site.files()
    done = site.run("repin", "--to", "v2")
    assert "would be written (--write): docs/note.md, sourcepanel.lock, sourcepanel.toml" in done.stdout
    assert site.files() == before


def test_twice_changes_nothing(tmp_path: Path) -> None:
    site = build(tmp_path, PAGE + "\r\n" + UNSURE)
    assert site.run("repin", "--to", "v2", "--write").exit_code == 1
    once = site.files()
    again = site.run("repin", "--to", "v2", "--write", "--allow-dirty")
    assert "nothing to write" in again.stdout
    assert site.files() == once


def test_there_and_back_restores_every_byte(tmp_path: Path) -> None:
    page = PAGE + "\r\n" + "\n".join(line for line in UNSURE.split("\n") if "alias" not in line)
    site = build(tmp_path, page)
    before = site.files()
    site.run("repin", "--to", "v2", "--write")
    assert site.files() != before
    back = site.run("repin", "--to", "v1", "--write", "--allow-dirty")
    assert back.exit_code == 0, back.output
    assert site.files() == before


def test_what_is_uncertain_is_left_marked_and_listed(tmp_path: Path) -> None:
    site = build(tmp_path, UNSURE)
    done = site.run("repin", "--to", "v2", "--write")
    assert done.exit_code == 1
    made = site.page().decode()
    assert made == UNSURE.replace("study/blob/main/", f"study/blob/{site.commits['v1']}/").replace(
        f"[sure]({BLOB}/loop.py#{TOTAL})", f"[sure]({NEW_BLOB}/loop.py#{TOTAL_THERE})"
    )
    left = read_lock(site.root / "sourcepanel.lock").repositories["engine"].left
    assert set(left) == {f"engine/loop.py#{LOSSES}", f"engine/loop.py#{LEGACY}", "engine/loop.py::old_way"}
    assert {facts.ref for facts in left.values()} == {"v1"}
    assert f"note.md:3: {BLOB}/loop.py#{LOSSES}: now engine/loop.py#{LOSSES_THERE}" in done.stdout
    assert f"note.md:4: {BLOB}/loop.py#{LEGACY}: gone" in done.stdout
    # A definition that is there under its name moves, and must be read again.
    assert "note.md:7: engine/loop.py::Engine.start" in done.stdout.partition("left at an earlier")[0]
    checked = site.run("check")
    assert checked.exit_code == 0, checked.output
    assert checked.stdout.count("left-behind") == 4
    assert "100 % of 6 references" in checked.stdout


def test_a_left_reference_is_a_warning_where_the_configuration_says_so(tmp_path: Path) -> None:
    site = build(tmp_path, UNSURE)
    site.run("repin", "--to", "v2", "--write")
    toml = site.root / "sourcepanel.toml"
    toml.write_text(toml.read_text() + '\n[levels]\nleft-behind = "warning"\n')
    assert site.run("check").exit_code == 1
    assert site.run("lock", "--check").exit_code == 0


def test_a_mended_link_leaves_the_lock(tmp_path: Path) -> None:
    site = build(tmp_path, UNSURE)
    site.run("repin", "--to", "v2", "--write")
    page = site.root / "docs/note.md"
    page.write_text(page.read_text().replace("`engine/loop.py::old_way`", "nothing"))
    assert "as left behind, which is no more" in site.run("check").stdout
    assert site.run("lock").exit_code == 0
    left = read_lock(site.root / "sourcepanel.lock").repositories["engine"].left
    assert "engine/loop.py::old_way" not in left
    assert len(left) == 2


def test_a_left_link_is_no_licence_for_other_old_links(tmp_path: Path) -> None:
    """Only what the move left is excused: a new link to the old version is still found."""
    site = build(tmp_path, UNSURE)
    site.run("repin", "--to", "v2", "--write")
    page = site.root / "docs/note.md"
    page.write_text(page.read_text() + f"[new]({BLOB}/loop.py#L1)\n[other]({URL}/blob/v0/engine/loop.py#{LOSSES})\n")
    checked = site.run("check")
    assert checked.exit_code == 1
    assert checked.stdout.count("other-ref") == 2


@pytest.mark.parametrize(
    ("answers", "ref", "exit_code"),
    [
        ("t\nt\nl\nl\n", f"{NEW_BLOB}/loop.py#{LOSSES_THERE}", 1),
        ("l\nl\nl\n", f"{BLOB}/loop.py#{LOSSES}", 1),
        ("k\nl\nl\n", f"{NEW_BLOB}/loop.py#{LOSSES}", 1),
    ],
)
def test_interactive_walks_the_uncertain_ones(tmp_path: Path, answers: str, ref: str, exit_code: int) -> None:
    site = build(tmp_path, UNSURE)
    done = CliRunner().invoke(
        main, ["--config", str(site.root), "repin", "--to", "v2", "--interactive", "--write"], input=answers
    )
    assert done.exit_code == exit_code, done.output
    assert f"[changed]({ref})" in site.page().decode()
    assert site.run("check").exit_code == 0


def test_quitting_writes_nothing(tmp_path: Path) -> None:
    site = build(tmp_path, UNSURE)
    before = site.files()
    done = CliRunner().invoke(
        main, ["--config", str(site.root), "repin", "--to", "v2", "--interactive", "--write"], input="t\nq\n"
    )
    assert done.exit_code == 2
    assert site.files() == before


def test_a_dirty_tree_is_refused_unless_told(tmp_path: Path) -> None:
    site = build(tmp_path)
    (site.root / "docs/plain.md").write_bytes(b"# Something\r\n")
    before = site.files()
    done = site.run("repin", "--to", "v2", "--write")
    assert done.exit_code == 2
    assert "uncommitted changes" in done.stderr
    assert "docs/plain.md" in done.stderr
    assert site.files() == before
    assert site.run("repin", "--to", "v2").exit_code == 0
    assert site.run("repin", "--to", "v2", "--write", "--allow-dirty").exit_code == 0


def test_pages_that_are_wrong_already_do_not_move(tmp_path: Path) -> None:
    site = build(tmp_path)
    page = site.root / "docs/plain.md"
    page.write_bytes(f"[x]({BLOB}/loop.py#L9999)\n".encode())
    site.commit()
    done = site.run("repin", "--to", "v2", "--write")
    assert done.exit_code == 2
    assert "must be right at the pin" in done.stderr
    assert "plain.md:1" in done.stderr


def test_a_name_that_the_new_lines_do_not_mention_is_left(tmp_path: Path) -> None:
    """The place is certain by its text; but the link's own words would be wrong there, so a person must look."""
    old = b"def keep_on():\n    first_line_of_it()\n    return 1\n"
    page = f"[`keep_on`]({BLOB}/other.py#L2)\n"
    files = {**OLD_FILES, "engine/other.py": old}
    site = build(tmp_path, page, old=files, new={**NEW_FILES, "engine/other.py": old.replace(b"keep_on", b"go_on")})
    done = site.run("repin", "--to", "v2", "--write")
    assert done.exit_code == 1, done.output
    assert site.page() == page.encode()
    assert "the text names keep_on" in done.stdout
    assert site.run("check").exit_code == 0


def test_prose_that_names_the_old_pin_or_moved_lines_is_listed(tmp_path: Path) -> None:
    page = f"As of v1 it\n\n[line {TOTAL[1:]}]({BLOB}/loop.py#{TOTAL}) is so.\n"
    done = build(tmp_path, page).run("repin", "--to", "v2")
    listed = done.stdout.partition("the text itself")[2]
    assert "note.md:1: As of v1 it" in listed
    assert f"note.md:3: [line {TOTAL[1:]}]" in listed


def test_a_record_moves_with_the_rest(tmp_path: Path) -> None:
    fields = "".join(f"{name}: none\n" for name in ("inputs", "outputs", "core", "process_groups", "shards", "state"))
    record = f"```yaml function-record\nfunction: engine/data.py::read\n{fields}step: 读 `engine/data.py::read`\n```\n"
    site = build(tmp_path, f"# R\n\n{record}")
    assert site.run("check", "--stats").stdout.count("100 % of 2 references") == 1
    done = site.run("repin", "--to", "v2", "--write")
    assert done.exit_code == 0, done.output
    assert site.page().decode() == f"# R\n\n{record}".replace("engine/data.py", "engine/io/data.py")


def test_a_fault_while_writing_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = build(tmp_path)
    before, replace, count = site.files(), os.replace, 0

    def fails(*args: object) -> None:
        nonlocal count
        count += Path(str(args[1])).name in ("note.md", "sourcepanel.lock", "sourcepanel.toml")
        if count == 2:
            raise OSError(28, "No space left on device", str(args[1]))
        replace(*args)

    monkeypatch.setattr(os, "replace", fails)
    done = site.run("repin", "--to", "v2", "--write")
    assert done.exit_code == 2
    assert "No space left" in done.stderr
    assert site.files() == before


def test_a_killed_run_is_undone_by_the_next_command(tmp_path: Path) -> None:
    site = build(tmp_path)
    before = site.files()
    child = os.fork()
    if child == 0:
        replace, count = os.replace, 0

        def dies(*args: object) -> None:
            nonlocal count
            count += Path(str(args[1])).name in ("note.md", "sourcepanel.lock", "sourcepanel.toml")
            if count == 2:
                os._exit(9)
            replace(*args)

        os.replace = dies
        try:
            site.run("repin", "--to", "v2", "--write")
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert site.page() == MOVED.encode(), "the child died between two files"
    checked = site.run("check")
    assert checked.exit_code == 0, checked.output
    assert "are as they were before it" in checked.stderr
    assert {n: d for n, d in site.files().items() if not n.endswith("-lock")} == before


def test_the_wheel_of_a_listed_version_moves_too(tmp_path: Path) -> None:
    site = build(tmp_path, toml='\n[repositories.wheel]\npackage = "engine"\nversion = "1.0"  # now\n')
    toml = site.root / "sourcepanel.toml"
    listed = f'\n[[repositories.versions]]\nref = "v2"\ncommit = "{site.commits["v2"]}"\nwheel = "2.0"\n'
    toml.write_text(toml.read_text() + listed)
    site.commit()
    done = site.run("repin", "--to", "2.0", "--write")
    assert done.exit_code == 0, done.output
    assert 'version = "2.0"  # now' in toml.read_text()
    (repository,) = load_config(site.root).repositories
    assert (repository.ref, repository.wheel.version) == ("v2", "2.0")


def test_a_pin_that_is_not_written_plainly_is_told(tmp_path: Path) -> None:
    site = build(tmp_path)
    toml = site.root / "sourcepanel.toml"
    toml.write_text(toml.read_text().replace('ref = "v1"', 'ref = """v1"""'))
    site.commit()
    before = site.files()
    done = site.run("repin", "--to", "v2", "--write")
    assert done.exit_code == 2
    assert "cannot find where the pin of engine is written" in done.stderr
    assert site.files() == before


def test_only_the_named_repository_moves(tmp_path: Path) -> None:
    site = build(tmp_path, f"[a]({BLOB}/loop.py#{TOTAL})\n")
    toml = site.root / "sourcepanel.toml"
    second = toml.read_text().replace('name = "engine"', 'name = "twin"').replace("example/engine", "example/twin")
    second = second[: second.index("[[repositories.aliases]]")] + second[second.index("[repositories.license]") :]
    toml.write_text(toml.read_text() + "\n" + second)
    other = "https://github.com/example/twin/blob/v1/engine"
    page = (
        f"[a]({BLOB}/loop.py#{TOTAL}) [b]({other}/loop.py#{TOTAL}) `twin:engine/data.py::read` `engine/data.py::read`\n"
    )
    (site.root / "docs/note.md").write_text(page)
    assert site.run("lock").exit_code == 0
    site.commit()
    asked = site.run("repin", "--to", "v2")
    assert asked.exit_code == 2
    assert "name one with --repository: engine, twin" in asked.stderr
    done = site.run("repin", "--to", "v2", "--repository", "engine", "--write")
    assert done.exit_code == 0, done.output
    assert site.page().decode() == page.replace(f"{BLOB}/loop.py#{TOTAL}", f"{NEW_BLOB}/loop.py#{TOTAL_THERE}").replace(
        "`engine/data.py", "`engine/io/data.py"
    )
    assert site.run("check").exit_code == 0
    refs = {r.name: r.ref for r in load_config(site.root).repositories}
    assert refs == {"engine": "v2", "twin": "v1"}
    assert site.run("repin", "--to", "v2", "--repository", "nobody").exit_code == 2
