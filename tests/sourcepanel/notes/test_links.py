"""Links by the name of a note: where they lead, and what is told of a wrong one, in a check and in Markdown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown import Markdown

from sourcepanel.diagnostics import Code, Level
from sourcepanel.notes.extension import NotesExtension
from sourcepanel.notes.links import PageNames, Place, Wrong
from sourcepanel.notes.roadmap import Roadmap
from sourcepanel.project import Project
from sourcepanel.strings import strings
from tests.support.tiny import TinyRepo, write_config

PAGES = {
    "index.md": "# Home\n",
    "notes/01-run.md": "# 01 Training Run\n\n## 机制解释\n\n## A `b` c {#given}\n\n## 重复\n\n## 重复\n",
    "notes/02-init.md": "# 02 Init\n",
    "parallel/02-init.md": "# 02 Other\n",
    "glossary.md": "# Words\n",
}
NAMES = PageNames(lambda: list(PAGES), lambda name: PAGES[name], terms=lambda page: [("DP", "dp")] * (page[0] == "g"))


@pytest.mark.parametrize(
    ("name", "heading", "page", "anchor", "title"),
    [
        ("01-run", None, "notes/01-run.md", "", "01 Training Run"),
        ("notes/01-run", None, "notes/01-run.md", "", "01 Training Run"),
        ("01-run.md", None, "notes/01-run.md", "", "01 Training Run"),
        ("01 training  Run", None, "notes/01-run.md", "", "01 Training Run"),
        ("parallel/02-init", None, "parallel/02-init.md", "", "02 Other"),
        ("01-run", "A b c", "notes/01-run.md", "given", "01 Training Run › A b c"),
        ("01-run", "A `b` c", "notes/01-run.md", "given", "01 Training Run › A b c"),
        ("01-run", "given", "notes/01-run.md", "given", "01 Training Run › A b c"),
        ("01-run", "重复", "notes/01-run.md", "s重复", "01 Training Run › 重复"),
        ("01-run", "s重复_1", "notes/01-run.md", "s重复_1", "01 Training Run › 重复"),
        ("glossary", "DP", "glossary.md", "dp", "Words › DP"),
        ("", "home", "index.md", "shome", "Home"),
    ],
)
def test_a_name_leads_to_its_place(name: str, heading: str | None, page: str, anchor: str, title: str) -> None:
    found = NAMES.find(name, heading, page="index.md", slug=lambda text, _: f"s{text.lower()}")
    assert found == Place(page, anchor, title)


@pytest.mark.parametrize(
    ("name", "heading", "message", "fix"),
    [
        ("01-rum", None, "no page has the name 01-rum", "did you mean 01-run"),
        ("01 Training Rum", None, "no page has the name", "did you mean 01 training run"),
        ("02-init", None, "02-init names 2 pages", "write notes/02-init or parallel/02-init"),
        ("01-run", "机制解", "notes/01-run.md has no heading 机制解", "did you mean 机制解释?"),
        ("zzz", None, "no page has the name zzz", "write it as code"),
        ("", None, "names no page", "name one"),
        ("../notes/01-run", None, "no page has the name", "did you mean notes/01-run"),
    ],
)
def test_a_wrong_one_is_told_with_the_nearest_right_one(name: str, heading: str | None, message: str, fix: str) -> None:
    found = NAMES.find(name, heading, page="index.md")
    assert isinstance(found, Wrong)
    assert message in found.message
    assert fix in found.fix


def convert(text: str, *, page: str = "notes/02-init.md") -> tuple[str, list[str]]:
    """The HTML of a page, and what is told of it."""
    extension = NotesExtension(
        roadmap=Roadmap(), page=lambda: page, note_exists=bool, script_exists=bool, strings=strings(), pages=NAMES
    )
    html = Markdown(extensions=["tables", "fenced_code", "toc", extension]).convert(text)
    return html, [finding.message for finding in extension.findings]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("见 [[01-run]]。", '见 <a href="01-run.md">01 Training Run</a>。'),
        ("[[01-run#given|看 *这里*]]", '<a href="01-run.md#given">看 <em>这里</em></a>'),
        ("[[ glossary # DP ]]", '<a href="../glossary.md#dp">Words › DP</a>'),
        ("|a|\n|-|\n|[[01-run\\|b]]|", '<td><a href="01-run.md">b</a></td>'),
        ("[[01-run\\|b]]", '<a href="01-run.md">b</a>'),
        ("[[01-run#A `b` c]]", '<a href="01-run.md#given">01 Training Run › A b c</a>'),
        ("`[[nope]]`", "<code>[[nope]]</code>"),
        ("    [[nope]]", "<pre><code>[[nope]]\n</code></pre>"),
        ("```\n[[nope]]\n```", "<pre><code>[[nope]]\n</code></pre>"),
        ("\\[[nope]]", "[[nope]]"),
        ("[[1]](https://example.org)", '<a href="https://example.org">[1]</a>'),
        ("[see [[01-run]]](https://example.org)", '<a href="https://example.org">see [[01-run]]</a>'),
    ],
)
def test_markdown_says_what_is_a_link(text: str, html: str) -> None:
    made, told = convert(text)
    assert html in made
    assert told == []


def test_a_wrong_link_stays_text_and_says_why() -> None:
    made, told = convert("见 [[01-rum]] 和 [[01-run]]")
    assert told == ["no page has the name 01-rum"]
    assert re.search(r'<span class="sp-broken" title="[^"]*01-rum[^"]*">\[\[01-rum\]\]</span>', made)
    assert convert("[[#02 Init]]") == ('<p><a href="#02-init">02 Init</a></p>', [])


PAGE = """\
---
title: x
---
# 首页

见 [[two]]，[[two#节|那一节]]。

    [[nope]]

| a |
|---|
| [[two\\|好]] [[twoo]] |

先 [[two#结]]，后 `[[two#结]]` 与
[[two#结]]。
"""


def test_a_check_names_line_code_and_fix(tiny_repo: TinyRepo, tmp_path: Path) -> None:
    config = write_config(tmp_path / "site", tiny_repo)
    docs = config.parent / "docs"
    (docs / "deep").mkdir()
    (docs / "index.md").write_text(PAGE, encoding="utf-8")
    (docs / "deep/two.md").write_text("# Two\n\n## 节\n", encoding="utf-8")
    report = Project.open(config, notify=lambda line: None).check()
    assert [(d.page, d.line, d.link, d.code, d.level) for d in report.diagnostics] == [
        ("index.md", 12, "[[twoo]]", Code.NOTE_LINK, Level.WARNING),
        ("index.md", 14, "[[two#结]]", Code.NOTE_LINK, Level.WARNING),
        ("index.md", 15, "[[two#结]]", Code.NOTE_LINK, Level.WARNING),
    ]
    assert report.diagnostics[0].fix == "did you mean two?"
    assert report.fails()
    (docs / "index.md").write_text(PAGE.replace("twoo", "two").replace("结", "节"), encoding="utf-8")
    assert Project.open(config, notify=lambda line: None).check().diagnostics == ()
