from __future__ import annotations

import markdown
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourcepanel.notes.evidence import Evidence
from sourcepanel.notes.extension import NotesExtension
from sourcepanel.notes.function_records import FUNCTIONS, FunctionRecord
from sourcepanel.notes.records import check_records
from sourcepanel.notes.roadmap import Roadmap
from sourcepanel.strings import strings
from tests.support.golden import Golden

FIELDS = {
    "function": "tiny/training.py::train_step",
    "inputs": "\n  - model: 模型\n  - 一段 `tiny/model.py::Model` 文字",
    "outputs": "无返回值",
    "core": "\n  - tiny/core.py::step: 走一步\n  - tiny/core.py::other",
    "process_groups": "none",
    "shards": "\n  每个 rank: 一份 batch",
    "state": "none",
    "step": "前向 → 反向",
}


def record(**changes: str | None) -> str:
    fields = {**FIELDS, **changes}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "正文\n\n```yaml function-record\n" + "\n".join(lines) + "\n```\n"


def found(text: str) -> list[tuple[int, str, str]]:
    return [(f.line, f.message, f.fix) for f in check_records(text, evidence=Evidence())]


def render(text: str) -> str:
    extension = NotesExtension(
        roadmap=Roadmap(), page=lambda: "a.md", note_exists=bool, script_exists=bool, strings=strings("zh")
    )
    return markdown.markdown(text, extensions=[extension, "pymdownx.superfences", "admonition", "md_in_html"])


def test_a_record_passes_and_is_a_table(golden: Golden):
    assert found(record()) == []
    golden("record.html", render(record()) + "\n")


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_required(name: str):
    ((line, message, fix),) = found(record(**{name: None}))
    assert (line, message) == (3, f"the record lacks the field {name}")
    assert fix.startswith("add it")


@pytest.mark.parametrize(
    ("changes", "line", "message", "fix"),
    [
        ({"extra": "x"}, 17, "unknown field extra", "the fields are function, inputs"),
        ({"process_group": "none"}, 17, "unknown field process_group", "did you mean process_groups?"),
        ({"function": "train_step"}, 4, "field function must be one `path::symbol`", "e.g."),
        ({"function": "'`a.py::f`'"}, 4, "field function must be one `path::symbol`", "e.g."),
        ({"outputs": ""}, 8, "field outputs is empty", ""),
        ({"outputs": "[]"}, 8, "field outputs is empty", ""),
        ({"outputs": "[{a: b, c: d}]"}, 8, "field outputs each entry is a text or one `name: meaning`", ""),
        ({"outputs": "[[x]]"}, 8, "field outputs must be text", ""),
        ({"outputs": "yes"}, 8, "field outputs must be text, not True", ""),
        ({"step": "''"}, 16, "field step must be text", ""),
        ({"step": "`a.py::f` 一步"}, 16, "the record: not valid YAML", "quote a value"),
        ({"outputs": "a: b: c"}, 8, "the record: not valid YAML", "quote a value"),
        ({"step": "x\nstep: y"}, 17, "the record: step stands twice, first on line 16", "keep one of them"),
        ({"step": "2026-99-99"}, 4, "the record: not valid YAML", ""),
    ],
)
def test_each_mistake_is_told_with_its_line(changes: dict[str, str], line: int, message: str, fix: str):
    told = found(record(**changes))
    assert len(told) == 1
    assert told[0][0] == line
    assert told[0][1].startswith(message)
    assert fix in told[0][2]
    assert "note-invalid" in render(record(**changes))


@pytest.mark.parametrize("body", ["", "- a\n- b", "just text", "null"])
def test_a_body_that_is_no_mapping(body: str):
    ((line, message, _),) = found(f"```yaml function-record\n{body}\n```\n")
    assert (line, message) == (1, "the record is not a list of fields")


def test_a_misspelt_fence_is_told():
    ((line, message, fix),) = found(record().replace("yaml function-record", "function-record"))
    assert (line, message, fix) == (3, "unknown kind of block `function-record`", "write ```yaml function-record")


def test_a_bare_reference_is_a_name_and_a_text_is_not():
    parsed = FUNCTIONS.read(record().split("\n")[3:-2], line=3).record
    assert isinstance(parsed, FunctionRecord)
    assert [(i.name, i.text) for i in parsed.core] == [("tiny/core.py::step", "走一步"), ("tiny/core.py::other", "")]
    assert [(i.name, i.text) for i in parsed.outputs] == [("", "无返回值")]


@pytest.mark.parametrize(
    "place",
    ["- 条目\n\n{}", "!!! note\n\n{}", "<div markdown>\n\n{}\n\n</div>", "> 引用\n\n{}"],
    ids=["list", "admonition", "div", "after-quote"],
)
def test_a_record_stands_where_it_was_written(place: str):
    block = record().partition("\n\n")[2]
    indent = "    " if place[0] in "-!" else ""
    page = place.format("\n".join(indent + line for line in block.split("\n")))
    html = render(page)
    assert html.count('<table class="function-record__table">') == 1
    around = {"-": ("<li>", "</li>\n</ul>"), "!": ("admonition note", "</div>\n</div>")}.get(place[0])
    if around:
        start, end = html.index(around[0]), html.rindex(around[1])
        assert start < html.index("<table") < end


def test_lines_after_a_record_keep_their_number():
    seen: list[list[str]] = []

    class Spy(markdown.preprocessors.Preprocessor):
        def run(self, lines: list[str]) -> list[str]:
            seen.append(lines)
            return lines

    extension = NotesExtension(
        roadmap=Roadmap(), page=lambda: "a.md", note_exists=bool, script_exists=bool, strings=strings("zh")
    )
    md = markdown.Markdown(extensions=[extension])
    md.preprocessors.register(Spy(md), "spy", 1)
    text = record() + "\n后面\n"
    md.convert(text)
    assert seen[0].index("后面") == text.split("\n").index("后面")


def test_a_page_is_not_shown_the_records_of_the_one_before():
    extension = NotesExtension(
        roadmap=Roadmap(), page=lambda: "a.md", note_exists=bool, script_exists=bool, strings=strings("zh")
    )
    md = markdown.Markdown(extensions=[extension])
    md.convert(record())
    assert "other_step" in md.reset().convert(record().replace("train_step", "other_step"))


@given(st.text(alphabet="abc:-[]{}`'\"\n #none|>&*!?", max_size=120))
def test_no_yaml_crashes_it(body: str):
    text = f"```yaml function-record\n{body}\n```\n"
    check_records(text, evidence=Evidence())
    for finding in check_records(text, evidence=Evidence()):
        assert finding.line >= 1
    render(text)
