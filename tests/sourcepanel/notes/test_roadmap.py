from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import markdown
import pytest

from sourcepanel.errors import ConfigError
from sourcepanel.notes.extension import NotesExtension
from sourcepanel.notes.roadmap import NoteState, Roadmap, Stage, fill_states, load_roadmap, note_states, state_slot
from sourcepanel.strings import strings
from tests.support.golden import Golden

CHAPTERS = """\
rounds:
  - name: 第一轮
    title: 主链路
    question: 一步是怎样完成的？
    chapters:
      - number: 1
        title: Overview & more
        note: notes/01-overview.md
        script: runnable/ch01.py
        record: 记下 `train_step` 的输入
      - number: 2
        title: Init
        note: notes/02-init.md
        script: runnable/ch02.py
        record: 记下 group
"""


def load(tmp_path: Path, text: str) -> Roadmap:
    (tmp_path / "chapters.yml").write_text(text, encoding="utf-8")
    return load_roadmap(tmp_path / "chapters.yml")


def render(roadmap: Roadmap, text: str, *, page: str = "roadmap.md") -> str:
    extension = NotesExtension(
        roadmap=roadmap,
        page=lambda: page,
        note_exists=lambda note: note.startswith("notes/01"),
        script_exists=lambda script: script == "runnable/ch01.py",
        strings=strings("zh"),
    )
    return markdown.markdown(text, extensions=[extension, "pymdownx.superfences"])


def test_a_round_is_its_question_and_a_table(tmp_path: Path, golden: Golden):
    html = render(load(tmp_path, CHAPTERS), "前\n\n<!-- roadmap 1 -->\n\n后\n")
    golden("roadmap.html", html + "\n")


def test_a_round_can_be_a_list_of_its_chapters(tmp_path: Path):
    asked = CHAPTERS.replace("        note: notes/01", "        question: 谁在读？\n        note: notes/01")
    html = render(load(tmp_path, asked), "<!-- roadmap 1 list -->")
    assert html.count("<li") == 2 and "<table" not in html
    assert '<li value="1"><strong><a class="sp-made" href="notes/01-overview.md">' in html.replace("\n", "")
    assert "谁在读？" in html and "记下 group" in html, "without a question, what to record"


def test_links_are_relative_to_the_page(tmp_path: Path):
    roadmap = load(tmp_path, CHAPTERS)
    assert 'href="notes/01-overview.md"' in render(roadmap, "<!-- roadmap 1 -->")
    assert 'href="../notes/01-overview.md"' in render(roadmap, "<!-- roadmap 1 -->", page="about/x.md")


@pytest.mark.parametrize("mark", ["<!-- roadmap 2 -->", "<!-- roadmap 0 -->"])
def test_a_round_that_is_not_there_is_shown_as_such(tmp_path: Path, mark: str):
    assert "note-invalid" in render(load(tmp_path, CHAPTERS), mark)


def test_a_mark_inside_a_fence_is_text(tmp_path: Path):
    assert "<table" not in render(load(tmp_path, CHAPTERS), "```text\n<!-- roadmap 1 -->\n```")


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("number: 2", "number: 1", 11, "number 1 stands twice, first on line 6"),
        ("notes/02-init.md", "notes/01-overview.md", 13, "note notes/01-overview.md stands twice, first on line 8"),
        ("runnable/ch02.py", "runnable/ch01.py", 14, "script runnable/ch01.py stands twice, first on line 9"),
        ("        title: Init\n", "", 11, "rounds.0.chapters.1.title: Field required"),
        ("record: 记下 group", "recrod: 记下 group", 15, "recrod: Extra inputs are not permitted"),
        ("number: 2", "number: two", 11, "number: Input should be a valid integer"),
        ("notes/02-init.md", "/etc/passwd.md", 13, "note: String should match"),
        ("notes/02-init.md", "../x.md", 13, "note: String should match"),
        ("notes/02-init.md", "notes/02-init", 13, "note: String should match"),
        ("    question: 一步是怎样完成的？\n", "", 2, "rounds.0.question: Field required"),
        ("    question: 一步", "    title: again\n    question: 一步", 4, "title stands twice, first on line 3"),
        ("rounds:", "rounds: [", 2, "not valid YAML"),
        (CHAPTERS, "- x", 1, "the file: Input should be a valid dictionary"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, old: str, new: str, line: int, message: str):
    assert old in CHAPTERS
    with pytest.raises(ConfigError) as error:
        load(tmp_path, CHAPTERS.replace(old, new))
    found = [text for text in str(error.value).split("\n") if message in text]
    assert found, str(error.value)
    assert found[0].startswith(f"{tmp_path}/chapters.yml:{line}: ")


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"chapters\.yml: cannot be read"):
        load_roadmap(tmp_path / "chapters.yml")


@pytest.mark.parametrize(
    ("references", "findings", "state"),
    [
        ({}, (), NoteState(stage=Stage.PLANNED)),
        ({"notes/01-overview.md": 12}, (), NoteState(stage=Stage.VERIFIED, references=12)),
        ({"notes/01-overview.md": 12}, ("notes/01-overview.md",), NoteState(stage=Stage.DRAFT, references=12)),
        ({"notes/01-overview.md": 0}, (), NoteState(stage=Stage.DRAFT)),
        ({"notes/01-overview.md": 12}, ("other.md",), NoteState(stage=Stage.VERIFIED, references=12)),
    ],
)
def test_the_state_is_computed(tmp_path: Path, references: dict[str, int], findings: tuple[str, ...], state: NoteState):
    roadmap = load(tmp_path, CHAPTERS)
    assert note_states(roadmap, references=references, findings=findings)["notes/01-overview.md"] == state


def test_the_state_fills_the_slot_that_the_table_left(tmp_path: Path):
    html = render(load(tmp_path, CHAPTERS), "<!-- roadmap 1 -->")
    assert state_slot("notes/01-overview.md") in html
    states = {"notes/01-overview.md": NoteState(stage=Stage.VERIFIED, references=7)}
    filled = fill_states(html, states=states, strings=strings("zh"))
    assert 'class="note-state note-state--verified" data-note="notes/01-overview.md">已校验 7 处引用</span>' in filled
    assert state_slot("notes/02-init.md") in filled


@dataclass(frozen=True)
class Seen:
    freshness: str
    ref: str
    read_again: int


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (Seen("fresh", "v2", 0), "与 v2 一致"),
        (Seen("moved", "v2", 0), "在 v2 只是移动"),
        (Seen("stale", "<v2>", 3), "在 &lt;v2&gt; 有 3 处变了"),
    ],
)
def test_a_note_tells_how_it_stands_at_a_newer_version(tmp_path: Path, seen: Seen, text: str):
    note = "notes/01-overview.md"
    roadmap = load(tmp_path, CHAPTERS)
    states = note_states(roadmap, references={note: 7}, findings=(), drift={note: seen, "notes/02-init.md": seen})
    filled = fill_states(state_slot(note) + state_slot("notes/02-init.md"), states=states, strings=strings("zh"))
    assert f'</span> <span class="note-drift note-drift--{seen.freshness}">{text}</span>' in filled
    # A note that is not written stands nowhere.
    assert filled.count("note-drift--") == 1
