from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourcepanel.notes.template import check_template

HEADINGS = ("阅读目标", "源码位置", "Tensor / Process Group 语义", "遗留问题")


def note(*headings: str, body: str = "正文。") -> str:
    return "# 题目\n\n" + "\n".join(f"## {h}\n\n{body}\n" for h in headings)


def findings(text: str) -> list[tuple[int, str, str]]:
    return [(f.line, f.message, f.fix) for f in check_template(text, headings=HEADINGS)]


def test_a_whole_note_passes():
    assert findings(note(*HEADINGS)) == []


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: x\n---\n" + note(*HEADINGS),
        note(*HEADINGS).replace("\n", "\r\n"),
        note(*HEADINGS).replace("## 源码位置", "## 源码位置 {#where .big}"),
        note(*HEADINGS).replace("## 源码位置", "## 源码位置 ##"),
        note(*HEADINGS).replace("## 源码位置", "源码位置\n-----"),
        note(*HEADINGS).replace("## 源码位置", "<!-- ## 别的\n## 又一个 -->\n## 源码位置"),
        note(*HEADINGS, body="### 小节\n\n正文。"),
        note(*HEADINGS, body="```text\n## 不是标题\n```"),
        note(*HEADINGS, body="~~~~text\n~~~\n## 不是标题\n~~~~"),
        note(*HEADINGS, body="1. 条目\n\n    ```text\n    ## 不是标题\n    ```"),
    ],
    ids=["front-matter", "crlf", "attributes", "closed", "underlined", "comment", "sub", "fence", "tilde", "indented"],
)
def test_spellings_that_are_right(text: str):
    assert findings(text) == []


@pytest.mark.parametrize("name", HEADINGS)
def test_each_missing_heading_is_told_where_it_belongs(name: str):
    rest = [h for h in HEADINGS if h != name]
    text = note(*rest)
    ((line, message, fix),) = findings(text)
    assert message == f'heading "{name}" is missing'
    following = dict(pairwise([*HEADINGS, None])).get(name)
    lines = text.split("\n")
    assert line == (lines.index(f"## {following}") + 1 if following else len(lines))
    assert f"## {name}" in fix


@pytest.mark.parametrize("name", HEADINGS)
@pytest.mark.parametrize("body", ["", "<!-- 待写 -->", "### 只有小节"], ids=["blank", "comment", "sub-heading"])
def test_each_empty_section_is_told(name: str, body: str):
    text = note(*HEADINGS).replace(f"## {name}\n\n正文。", f"## {name}\n\n{body}")
    ((line, message, _),) = findings(text)
    assert message == f'section "{name}" is empty'
    assert text.split("\n")[line - 1] == f"## {name}"


def test_swapped_headings_name_one_to_move():
    text = note(HEADINGS[0], HEADINGS[2], HEADINGS[1], HEADINGS[3])
    assert findings(text) == [(11, f'heading "{HEADINGS[1]}" is out of order', f"put it after {HEADINGS[0]}")]


def test_a_last_heading_put_first():
    ((line, message, fix),) = findings(note(HEADINGS[3], *HEADINGS[:3]))
    assert (line, message, fix) == (3, f'heading "{HEADINGS[3]}" is out of order', f"put it after {HEADINGS[2]}")


def test_twice():
    ((line, message, _),) = findings(note(*HEADINGS, "源码位置"))
    assert (line, message) == (19, 'heading "源码位置" stands twice, first on line 7')


def test_a_misspelt_heading_is_told_with_the_right_one():
    text = note(*HEADINGS).replace("## Tensor / Process Group 语义", "## Tensor/Process Group 语义")
    unknown, missing = findings(text)
    assert unknown[1:] == (
        'heading "Tensor/Process Group 语义" is not in the template',
        "did you mean Tensor / Process Group 语义?",
    )
    assert missing[1] == 'heading "Tensor / Process Group 语义" is missing'


def test_a_foreign_heading():
    ((_, message, fix),) = findings(note(*HEADINGS, "Foo"))
    assert message == 'heading "Foo" is not in the template'
    assert fix.startswith("use ###")


@given(st.permutations(HEADINGS), st.sets(st.sampled_from(HEADINGS)))
def test_only_the_template_itself_passes(order: list[str], left_out: set[str]):
    chosen = [h for h in order if h not in left_out]
    assert (findings(note(*chosen)) == []) == (tuple(chosen) == HEADINGS)


@given(st.text(alphabet="#`~-=<>!\n ab\t\r", max_size=200))
def test_no_text_crashes_it(text: str):
    for line, _, _ in findings(text):
        assert 1 <= line <= text.count("\n") + 1
