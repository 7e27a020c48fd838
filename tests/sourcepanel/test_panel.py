"""What `write_panel` leaves in the site, read back as the browser would."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourcepanel import panel, panel_assets
from sourcepanel.config import License, Repository
from sourcepanel.errors import PathNotFound
from sourcepanel.lock import FileFacts, RepositoryLock
from sourcepanel.panel import PanelReport, data_path, write_panel
from sourcepanel.panel_assets import LATER, SCRIPTS, STYLES, safe_json
from sourcepanel.reference import Target
from sourcepanel.source import Source
from sourcepanel.strings import strings
from tests.support import tree
from tests.support.memory import COMMIT, TINY, MemorySnapshot, wheel, whole

ASSETS = Path(panel.__file__).parent / "assets"


def target(path: str, start: int | None = None, end: int | None = None, **facts: Any) -> Target:
    known = {"kind": "interior" if start else "file", "symbol": None, "blob": "b" * 40, "has_text": True, "href": "x"}
    return Target(**{"repository": TINY.name, "path": path, "start": start, "end": end or start, **known, **facts})


def write(out: Path, *targets: Target, source: Source | None = None, **options: Any) -> PanelReport:
    return write_panel(out, sources=[source or whole()], targets=targets, cache=None, **options)


def read(out: Path, name: str) -> tuple[str, Any]:
    """Key and data of a data file."""
    text = (out / "sourcepanel/src" / name).read_text(encoding="utf-8")
    body = text.removeprefix("SourcePanel.define(").removesuffix(");\n")
    key, rest = json.JSONDecoder().raw_decode(body)
    return key, json.loads(body[rest + 1 :])


PYTHON = next(path for path in sorted(tree.V2) if path.endswith(".py") and b"def " in tree.V2[path])


def test_a_file_and_the_folders_above_it(tmp_path: Path) -> None:
    report = write(tmp_path, target(PYTHON, 1, 2))
    key, data = read(tmp_path, f"tiny/{PYTHON}.js")
    assert key == f"tiny/{PYTHON}"
    assert data["kind"] == "file" and data["language"] == "Python"
    assert data["lines"] == tree.V2[PYTHON].count(b"\n")
    assert data["symbols"] and "<span class=" in data["sections"][0]
    above = [str(parent) for parent in PurePosixPath(PYTHON).parents]
    assert report.files == 1 and report.folders == len(above)
    for folder in above:
        name = "tiny/~.js" if folder == "." else f"tiny/{folder}/~.js"
        key, data = read(tmp_path, name)
        assert key == ("tiny/" if folder == "." else f"tiny/{folder}/")
        assert data["kind"] == "folder" and data["complete"]
    assert [
        name for name, _, here in read(tmp_path, f"tiny/{PurePosixPath(PYTHON).parent}/~.js")[1]["entries"] if here
    ] == [PurePosixPath(PYTHON).name]


def test_a_folder_lists_its_entries_folders_first(tmp_path: Path) -> None:
    source = Source(
        TINY, snapshot=MemorySnapshot({"b.py": b"", "A.py": b"", "z/c.py": b"", "z/d/e.py": b""}), locked=None
    )
    write(tmp_path, target("z", kind="folder"), target("b.py"), source=source)
    assert read(tmp_path, "tiny/~.js")[1]["entries"] == [
        ["z", True, True],
        ["A.py", False, False],
        ["b.py", False, True],
    ]
    assert read(tmp_path, "tiny/z/~.js")[1]["entries"] == [["d", True, False], ["c.py", False, False]]


def test_what_the_wheel_lacks_is_told_from_the_lock(tmp_path: Path) -> None:
    locked = RepositoryLock(
        url=TINY.url, ref=TINY.ref, commit=COMMIT, files={"pretrain.py": FileFacts(blob="c" * 40, lines=321)}
    )
    links = [
        target("pretrain.py", 30, 40, symbol="main", has_text=False, blob="c" * 40),
        target("pretrain.py", 3, symbol=None, has_text=False, blob="c" * 40),
        target("pretrain.py", 3, symbol=None, has_text=False, blob="c" * 40),
    ]
    report = write(tmp_path, *links, source=wheel(locked=locked))
    _, data = read(tmp_path, "tiny/pretrain.py.js")
    assert data == {
        "kind": "absent",
        "blob": "c" * 40,
        "lines": 321,
        "links": [[3, 3, "", "interior"], [30, 40, "main", "interior"]],
    }
    assert report.absent == ("tiny/pretrain.py",) and report.files == 0
    assert read(tmp_path, "tiny/~.js")[1]["complete"] is False


def test_binary_latin1_empty_and_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sourcepanel.render.MAX_HIGHLIGHT", 100)
    files = {"a.bin": b"\0", "l.py": b"# \xe9\n", "e.py": b"", "huge.py": b"x = 1\n" * 100, "t.txt": b"x\n"}
    write(tmp_path, *(target(path) for path in files), source=whole(files=files))
    assert read(tmp_path, "tiny/a.bin.js")[1]["kind"] == "binary"
    notices = {path: read(tmp_path, f"tiny/{path}.js")[1]["notice"] for path in files if path != "a.bin"}
    assert notices == {"l.py": "latin1", "e.py": "empty", "huge.py": "plain", "t.txt": ""}


def test_a_second_build_writes_nothing_and_forgets_what_is_no_longer_linked(tmp_path: Path) -> None:
    first = write(tmp_path, target(PYTHON), target("LICENSE"))
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*") if path.is_file()}
    again = write(tmp_path, target(PYTHON), target("LICENSE"))
    assert first.written == first.files + first.folders and again.written == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*") if path.is_file()} == stamps
    write(tmp_path, target(PYTHON))
    assert not (tmp_path / "sourcepanel/src/tiny/LICENSE.js").exists()
    assert (tmp_path / f"sourcepanel/src/tiny/{PYTHON}.js").exists()


def test_everything_a_page_loads_is_there(tmp_path: Path) -> None:
    write(tmp_path, target(PYTHON))
    assert {str(path.relative_to(tmp_path)) for path in (tmp_path / "sourcepanel").iterdir() if path.is_file()} == {
        *SCRIPTS,
        *STYLES,
        LATER,
    }


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_site_script_carries_strings_pin_and_licence(tmp_path: Path, language: str) -> None:
    write(tmp_path, target(PYTHON), language=language)
    text = (tmp_path / "sourcepanel/site.js").read_text(encoding="utf-8")
    data = json.loads(text.removeprefix("SourcePanel.configure(").removesuffix(");\n"))
    assert data["strings"] == {
        key.removeprefix("panel."): value for key, value in strings(language).items() if key.startswith("panel.")
    }
    assert data["repositories"]["tiny"] == {
        "ref": "v2.0",
        "commit": COMMIT,
        "blob": f"{TINY.url}/blob/{COMMIT}/",
        "tree": f"{TINY.url}/tree/{COMMIT}/",
        "license": ["© Tiny · Tiny", f"{TINY.url}/blob/{COMMIT}/LICENSE"],
    }


def test_scripts_and_style_are_small_and_still_whole(tmp_path: Path) -> None:
    write(tmp_path, target(PYTHON))
    sent = {name: (tmp_path / name).read_text(encoding="utf-8") for name in (*SCRIPTS, *STYLES, LATER)}
    sizes = {name: len(gzip.compress(text.encode(), mtime=0)) for name, text in sent.items()}
    assert sum(sizes[name] for name in (*SCRIPTS, *STYLES)) <= 20_000, "what every page loads"
    assert sizes[LATER] <= 14_000, "what comes with the first file"
    made = {SCRIPTS[0]: panel_assets._SCRIPTS, LATER: panel_assets._LATER, STYLES[0]: panel_assets._STYLES}
    for name, assets in made.items():
        lines = [line.strip() for file in assets for line in (ASSETS / file).read_text(encoding="utf-8").splitlines()]
        code = [re.sub(r"/\*\* .*? \*/ ?", "", line) for line in lines]
        code = [line for line in code if line and not line.startswith(("//", "/*", "*"))]
        assert sent[name].splitlines()[: len(code)] == code


def test_the_style_prints_the_pin(tmp_path: Path) -> None:
    write(tmp_path, target(PYTHON))
    style = (tmp_path / STYLES[0]).read_text(encoding="utf-8")
    assert f'a.sp-link[data-src^="tiny/"]::after {{ content: " [" attr(data-src) " @ {COMMIT[:8]}]"; }}' in style


@pytest.mark.parametrize(
    "path",
    ["../x.py", "a/../../x.py", "..", ".", "a/./b", "/etc/passwd", "a//b", "a\\..\\b", "a\0b", "a/.."],
)
def test_no_path_leaves_the_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(PathNotFound):
        data_path("tiny", path, folder=False)
    with pytest.raises(PathNotFound):
        write(tmp_path / "site", target(path))
    assert {entry.name for entry in tmp_path.iterdir()} <= {"site"}


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\\b"])
def test_no_repository_name_leaves_the_folder(name: str) -> None:
    with pytest.raises(PathNotFound):
        data_path(name, "a.py", folder=False)


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("a/b.py", False, "tiny/a/b.py.js"),
        ("a/b", True, "tiny/a/b/~.js"),
        ("a/b/", True, "tiny/a/b/~.js"),
        ("", True, "tiny/~.js"),
        (".github/x.yml", False, "tiny/~.github/x.yml.js"),
        ("a/~", False, "tiny/a/~~.js"),
        ("chart.js/in.js", False, "tiny/chart.js_/in.js.js"),
        ("chart.js_", True, "tiny/chart.js__/~.js"),
    ],
)
def test_data_path(path: str, folder: bool, expected: str) -> None:
    assert str(data_path("tiny", path, folder=folder)) == expected


segments = (
    st.text(st.sampled_from("a~.j s"), min_size=1, max_size=4) | st.sampled_from(["a.js", "a.js_", ".js", "~.js"])
).filter(lambda part: part not in (".", ".."))
places = st.tuples(st.lists(segments, min_size=1, max_size=3).map("/".join), st.booleans())


@given(places, places)
def test_two_places_never_share_a_data_file(one: tuple[str, bool], other: tuple[str, bool]) -> None:
    here, there = (data_path("r", path, folder=folder) for path, folder in (one, other))
    assert (here == there) == (one == other)
    assert here not in there.parents and there not in here.parents


@given(st.text(st.sampled_from("</script><!--> \u2028\u2029\\\"'x\n")))
def test_safe_json_is_json_and_harmless_in_html(text: str) -> None:
    safe = safe_json({"text": text})
    assert json.loads(safe) == {"text": text}
    assert not any(bad in safe for bad in ("</", "<!--", "\u2028", "\u2029"))


def test_two_repositories_stand_side_by_side(tmp_path: Path) -> None:
    other = Repository(
        name="other",
        url="https://github.com/example/other",
        ref="v1",
        commit="d" * 40,
        license=License(holder="Others", name="MIT", path="docs/LICENSE file"),
    )
    sources = [whole(), Source(other, snapshot=MemorySnapshot({"a.py": b"x = 1\n"}, commit="d" * 40), locked=None)]
    targets = [target(PYTHON), target("a.py", repository="other")]
    write_panel(tmp_path, sources=sources, targets=targets, cache=None)
    assert read(tmp_path, "other/a.py.js")[0] == "other/a.py"
    site = (tmp_path / "sourcepanel/site.js").read_text(encoding="utf-8")
    assert f"https://github.com/example/other/blob/{'d' * 40}/docs/LICENSE%20file" in site


def test_both_languages_say_the_same_things_with_the_same_gaps() -> None:
    zh, en = strings("zh-Hans"), strings("en")
    assert zh.keys() == en.keys()
    for key in zh:
        assert sorted(part.partition("}")[0] for part in zh[key].split("{")[1:]) == sorted(
            part.partition("}")[0] for part in en[key].split("{")[1:]
        ), key
    assert strings("fr") == en


def test_every_sentence_the_scripts_say_is_in_the_table() -> None:
    scripts = "".join(script.read_text(encoding="utf-8") for script in ASSETS.glob("*.js"))
    table = {key.removeprefix("panel.") for key in strings("zh") if key.startswith("panel.")}
    assert set(re.findall(r"""\bsay\("(\w+)\"""", scripts)) <= table
    # Notices are said by the name that the data gives.
    assert table - set(re.findall(r'"(\w+)"', scripts)) == {"empty", "latin1", "plain"}
