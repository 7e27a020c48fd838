"""What the panel is given of linked lines at another version: only where they differ, and how, line by line."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from sourcepanel import panel_assets, versions_view
from sourcepanel.config import Config
from sourcepanel.panel import write_panel
from sourcepanel.project import Project
from sourcepanel.reference import Target
from sourcepanel.versions_view import read_versions
from tests.support import tree
from tests.support.tiny import TinyRepo, build_wheel, wheel_files
from tests.support.versions import (
    ALL,
    NEW_LINES,
    NEXT,
    OLD_LINE,
    PARALLEL,
    ROW,
    STEP,
    TARGETS,
    TRAINING,
    WEIGHT,
    at,
    offer,
    target,
)


@pytest.fixture
def config(tiny_repo: TinyRepo, tmp_path: Path) -> Config:
    return offer(tiny_repo, tmp_path / "project")


def views(config: Config, targets: list[Target] = TARGETS) -> tuple[dict[str, Any], list[str]]:
    """By path, what differs at v4.0, and what was told."""
    told: list[str] = []
    project = Project.open(config.root, notify=told.append)
    found = read_versions(config, sources=project.sources, targets=targets, notify=told.append)
    commit = config.repositories[0].versions[1].commit
    assert all(set(versions) == {commit} for versions in found.values()), "only what the panel may offer"
    return {path: versions[commit] for (_, path), versions in found.items()}, told


def plain(view: Mapping[str, Any], signs: str) -> list[tuple[int, str]]:
    """Number and text of the lines with one of these signs."""
    rows = [(n, unescape(re.sub("<[^>]*>", "", html))) for sign, n, html in view["rows"] if sign and sign in signs]
    return [(n, text) for n, text in rows]


def check_changed(view: Mapping[str, Any]) -> None:
    """The marks of the changed step say what changed, at the right numbers, and nothing more."""
    now = NEXT.decode().split("\n")
    first = at(NEW_LINES[0], now)
    assert plain(view, "-") == [(at(OLD_LINE), OLD_LINE)]
    assert plain(view, "+") == [(first, NEW_LINES[0]), (first + 1, NEW_LINES[1])]
    assert [n for n, _ in plain(view, "+=")] == list(range(view["start"], view["end"] + 1))


def test_only_what_differs_is_shown_with_its_lines(config: Config) -> None:
    found, told = views(config)
    name = "{}-{}".format
    assert {path: {lines: view["status"] for lines, view in ranges.items()} for path, ranges in found.items()} == {
        TRAINING: {name(*STEP): "changed", name(*WEIGHT): "cosmetic", name(*ALL): "changed"},
        PARALLEL: {name(*ROW): "moved"},
        "pretrain.py": {"1-2": "gone"},
    }
    assert "5 of 6 linked ranges of tiny differ at 4.0" in told
    step = found[TRAINING][name(*STEP)]
    check_changed(step)
    now = NEXT.decode().split("\n")
    around = [(n, re.sub("<[^>]*>", "", html)) for sign, n, html in step["rows"] if sign == ""]
    before = [*range(step["start"] - 3, step["start"]), *range(step["end"] + 1, step["end"] + 4)]
    assert [n for n, _ in around] == before and all(unescape(text) == now[n - 1] for n, text in around)
    assert any("<span class=" in html for _, _, html in step["rows"]), "the lines are coloured"
    weight = found[TRAINING][name(*WEIGHT)]
    assert [text.strip() for _, text in plain(weight, "+-")] == [
        "return self.model.weight",
        "return self . model . weight",
    ]
    row = found[PARALLEL][name(*ROW)]
    assert (row["path"], row["start"], row["end"]) == ("tiny/core/layers.py", *ROW) and plain(row, "+-") == []
    gone = found["pretrain.py"]["1-2"]
    assert (gone["path"], gone["start"]) == ("", 0)
    assert plain(gone, "+=") == [] and [n for n, _ in plain(gone, "-")] == [1, 2]


def test_the_check_of_the_marks_can_fail(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    step = views(config)[0][TRAINING]["{}-{}".format(*STEP)]
    swapped = {"+": "-", "-": "+"}
    for broken in (
        [[swapped.get(sign, sign), n, html] for sign, n, html in step["rows"]],
        [["=" if sign == "+" else sign, n, html] for sign, n, html in step["rows"]],
        [row for row in step["rows"] if row[0] != "-"],
        [[sign, n + (sign == "+"), html] for sign, n, html in step["rows"]],
    ):
        with pytest.raises(AssertionError):
            check_changed({**step, "rows": broken})
    # A diff that is never looked at, in the module itself.
    monkeypatch.setattr(versions_view, "_rows", lambda old, new: (("+", n, html) for n, html in new[1]))
    (config.cache_dir / "versions").rename(config.cache_dir / "old")
    with pytest.raises(AssertionError):
        check_changed(views(config)[0][TRAINING]["{}-{}".format(*STEP)])


def test_a_warm_build_opens_nothing_and_a_changed_link_only_its_file(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = views(config)
    opened: list[str] = []
    compare = versions_view._Comparison._compare

    def watched(self: Any, sides: Any, targets: Mapping[str, Target]) -> Any:
        opened.append(next(iter(targets.values())).path)
        return compare(self, sides, targets)

    monkeypatch.setattr(versions_view._Comparison, "_compare", watched)
    move = versions_view.open_move
    monkeypatch.setattr(versions_view, "open_move", lambda *args, **options: pytest.fail("opened a version"))
    assert views(config)[0] == json.loads(json.dumps(first))
    monkeypatch.setattr(versions_view, "open_move", move)
    views(config, [*TARGETS, target(PARALLEL, (1, 1))])
    assert opened == [PARALLEL]
    # Another blob is another entry.
    opened.clear()
    views(config, [replace(one, blob="0" * 40) if one.path == PARALLEL else one for one in TARGETS])
    assert opened == [PARALLEL]


def test_a_version_that_cannot_be_had_is_told_in_one_line(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCEPANEL_BACKEND", "wheel")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    build_wheel(tmp_path / "wheels")
    inside = [one for one in TARGETS if one.path.startswith("tiny/")]
    found, told = views(config, inside)
    assert found == {}
    (line,) = [line for line in told if "4.0" in line and "downloading" not in line]
    assert line.startswith("the panel cannot show 2 of 2 linked files at 4.0: ") and "\n" not in line
    # With that wheel, the wheels alone will do.
    build_wheel(tmp_path / "wheels", wheel_files({**tree.V3, TRAINING: NEXT}), version="4.0")
    found, _ = views(config, inside)
    check_changed(found[TRAINING]["{}-{}".format(*STEP)])
    assert found[PARALLEL]["{}-{}".format(*ROW)]["path"] == "tiny/core/layers.py"


def test_the_panel_gets_a_script_for_each_file_and_version(config: Config, tmp_path: Path) -> None:
    project = Project.open(config.root, notify=lambda line: None)
    options: dict[str, Any] = {"sources": list(project.sources.values()), "targets": TARGETS, "cache": None}
    found = read_versions(config, sources=project.sources, targets=TARGETS, notify=lambda line: None)
    out, commit = tmp_path / "site", config.repositories[0].versions[1].commit
    write_panel(out, **options, versions=found)
    folder = out / "sourcepanel/versions" / commit / "tiny"
    assert sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.js")) == [
        "pretrain.py.js", f"{PARALLEL}.js", f"{TRAINING}.js",
    ]  # fmt: skip
    text = (folder / f"{TRAINING}.js").read_text(encoding="utf-8")
    assert text.startswith(f'SourcePanel.version("{commit}","tiny/{TRAINING}",{{')
    source = (out / "sourcepanel/src/tiny" / f"{TRAINING}.js").read_text(encoding="utf-8")
    assert f'"versions":{{"{commit}":["{STEP[0]}-{STEP[1]}","{WEIGHT[0]}-{WEIGHT[1]}","{ALL[0]}-{ALL[1]}"]}}' in source
    site = (out / "sourcepanel/site.js").read_text(encoding="utf-8")
    assert '"versions":[{"name":"4.0",' in site and '/blob/v4.0/"' in site and "v3.0" not in site
    write_panel(out, **options)
    assert not list(folder.rglob("*.js")), "what nothing names any more goes"


def test_script_and_style_are_small() -> None:
    sent = "".join(panel_assets._lean(panel_assets._ASSETS / name) for name in ("versions.js", "versions.css"))
    # Alone; packed with the others they take less.
    assert len(gzip.compress(sent.encode(), mtime=0)) <= 2_500
