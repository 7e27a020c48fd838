"""Each reference on its own line, whatever stands around it; and no trace of how that is known."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown import Markdown

from sourcepanel.locate import PageLines, strip_marks
from sourcepanel.markdown import LINE_ATTRIBUTE, Page, SourcePanelExtension
from tests.sourcepanel.test_reference import HOME, REPOSITORIES

BLOB = f"{HOME}/blob/v2.0"
COMMON = ["tables", "footnotes", "admonition", "attr_list", "md_in_html", "toc", "def_list", "abbr"]
EXTENSIONS: dict[str, list[Any]] = {
    "plain": [*COMMON, "fenced_code", "smarty", "nl2br"],
    "pymdownx": [*COMMON]
    + [f"pymdownx.{name}" for name in ("superfences", "details", "tabbed", "inlinehilite", "magiclink", "betterem")]
    + [f"pymdownx.{name}" for name in ("critic", "tasklist", "smartsymbols", "snippets", "keys", "caret", "tilde")],
}
CONFIGS: dict[str, Any] = {"pymdownx.tabbed": {"alternate_style": True}, "pymdownx.critic": {"mode": "accept"}}


def convert(body: str, *, file: str | None = None, extensions: str = "plain"):
    """The HTML and what was found."""
    found: list[Any] = []
    ours = SourcePanelExtension(REPOSITORIES, lambda: Page(name="page.md", text=file), found.append)
    md = Markdown(extensions=[*EXTENSIONS[extensions], ours], extension_configs=CONFIGS)
    return md.convert(body), found


def fill(template: str) -> str:
    """`LINK`, `CODE` and `HIDE` become a link, inline code and what must not be found, each naming its line."""
    lines = []
    for number, line in enumerate(template.split("\n"), 1):
        line = line.replace("LINK", f"{BLOB}/a.py#L{number}").replace("HIDE", f"{BLOB}/hidden.py#L{number}")
        lines.append(line.replace("CODE", f"`a.py::line_{number}`").replace("DECOY", f"`hidden.py::line_{number}`"))
    return "\n".join(lines)


def check(template: str, *, extensions: str = "plain", front: str = "") -> None:
    """Every `LINK` and `CODE`, each on its own line, and nothing else."""
    body = fill(template)
    html, found = convert(body, file=front + body, extensions=extensions)
    assert {f.source.path for f in found} <= {"a.py"}
    shift = front.count("\n")
    expected = Counter(
        number + shift
        for number, line in enumerate(template.split("\n"), 1)
        for _ in range(line.count("LINK") + line.count("CODE"))
    )
    assert Counter(f.line for f in found) == expected
    for f in found:
        assert f.source.start == f.line - shift if f.source.start else f.source.symbol == f"line_{f.line - shift}"
    assert strip_marks(html) == html


PAGES = {
    "the same line thrice": "[x](LINK)\n[x](LINK) and [x](LINK), CODE and CODE\n",
    "autolinks": "see <LINK>\nand <LINK>\n",
    "headings": "# A [x](LINK) CODE {#id}\n\n[y](LINK)\n---\n\n### [z](LINK) ###\n\nCODE\n===\n",
    "table": "| a | b |\n|---|---|\n| [x](LINK) | [y](LINK) |\n| 1 | CODE CODE |\n",
    "nested lists": "1. one [x](LINK)\n\n    - two CODE\n\n        three [x](LINK)\n- [x](LINK)\n- [ ] CODE\n",
    "quote": "> > [x](LINK)\n>\n> - [x](LINK)\n> CODE\n",
    "admonition": '!!! note "title [x](LINK) CODE"\n\n    text [x](LINK)\n\n    !!! tip\n        CODE\n',
    "text over several lines": "[one\ntwo\nthree](LINK) and [x](\n<LINK>) [y](LINK\n'title')\n",
    "footnote before its use": "[^a]: see [x](LINK)\n\n    more CODE\n\ntext[^a] [x](LINK)\n",
    "footnote after its use": "text[^a] CODE\n\n[^a]: see CODE\n\nlast CODE\n",
    "definition list": "term [x](LINK)\n\n:   meaning CODE\n",
    "brackets, titles, images": "[a [b] `c]`](LINK \"t\") ![i](x.png) [![i](x.png)](LINK)\n[x](<LINK> 't'){: .c }\n",
    "code in links": "[`a` b](LINK) [**`a`**](LINK)\n``a.py::line_2`` or `` a.py::line_2 `` CODE{.k}\n".replace(
        "``a.py::line_2`` or `` a.py::line_2 ``", "CODE or CODE"
    ),
    "code inside a link is part of it": "[DECOY](LINK)\n",
    "emphasis around": "**CODE** *[x](LINK)* __CODE__ ~~CODE~~ ==CODE==\n",
    "HTML": '<div>\n<a href="LINK">x</a>\n</div>\n\n<p markdown="1">\n[x](LINK)\n</p>\n\ntext <a href=\'LINK\'>x</a>\n',
    "fences hold no links": "```\n[x](HIDE)\n```\n\n[x](LINK)\n\n~~~ md\n```\nDECOY\n~~~\n\nCODE\n",
    "an open fence is no fence": "text\n\n    ```\n    HIDE\n\n[x](LINK)\n",
    "comments hold no links": "<!-- [x](HIDE)\n<a href='HIDE'>x</a> -->\n\n[x](LINK) <!-- HIDE -->\n",
    "indented code holds no links": "text\n\n    [x](HIDE)\n\n[x](LINK)\n",
    "code holds no links": "`[x](HIDE)` ``<HIDE>``\n[x](LINK)\n",
    "escapes": "\\[x](y) \\`hidden.py::f` [x](LINK)\\\n[\\[y\\]](LINK)\n",
    "form feeds and other separators": "a\x0cb\u2028c\x0b\x1c[x](LINK)\n\n[y](LINK)\n",
    "tabs": "-\tCODE\n\n\t[x](LINK)\n",
    "last line without an end": "text\n\nCODE",
}


@pytest.mark.parametrize("extensions", EXTENSIONS)
@pytest.mark.parametrize("name", PAGES)
def test_lines(name, extensions):
    check(PAGES[name], extensions=extensions)


def test_blocks_of_pymdownx():
    page = (
        '??? note "CODE"\n    [x](LINK)\n\n=== "A"\n\n    CODE\n\n    ```\n    HIDE\n    ```\n\n=== "B"\n\n    CODE\n'
    )
    check(page, extensions="pymdownx")


def test_lines_count_from_the_top_of_the_file():
    check("[x](LINK)\n\nCODE\n", front="---\ntitle: T\nsource: https://github.com/Example/Tiny\n---\n\n")


def test_windows_line_ends():
    body = fill("[x](LINK)\n\nCODE\n- CODE\n")
    _, found = convert(body.replace("\n", "\r\n"), file=f"---\na: b\n---\n{body}".replace("\n", "\r\n"))
    assert [f.line for f in found] == [4, 6, 7]


def test_a_reference_style_link_stands_where_it_is_used():
    page = f"""[text][One] and [one][]

> [ONE]

[one]: <{BLOB}/a.py#L7> "title"
[far one]: {BLOB}/a.py#L9
[^1]: {BLOB}/a.py#L1

see [x][far
one] [^1] [text `one`][one], [one](other.html), [one]: no definition

![one] and [one][missing]

    [one]: {BLOB}/a.py#L8
"""
    html, found = convert(page)
    assert [(f.text, f.source.start, f.line) for f in found] == [
        ("text", 7, 1),
        ("one", 7, 1),
        ("ONE", 7, 3),
        ("x", 9, 9),
        ("text one", 7, 10),
        ("one", 7, 10),
        ("one", 7, 12),
    ]
    assert f'<img alt="one" src="{BLOB}/a.py#L7" title="title" />' in html


def test_the_same_page_in_which_others_changed_lines():
    file = "---\na: b\n---\n# Title\n\none\n\n`a.py::f` here\n\n`a.py::g`\n"
    body = "# Title\n\nan inserted line\n\none!\n\n`a.py::f` here\n\n`a.py::g`\n"
    _, found = convert(body, file=file)
    assert [(f.raw, f.line) for f in found] == [("a.py::f", 8), ("a.py::g", 10)]


def test_references_made_of_a_fenced_block_stand_in_it():
    class Box(SourcePanelExtension):
        """Replaces each fenced block by the inline code of its lines, as a table of records does."""

        def extendMarkdown(self, md):  # noqa: N802
            super().extendMarkdown(md)
            run = md.parser.parseDocument

            def parse(lines):
                tree = run(lines)
                for line in (5, 11):
                    box = md.parser.root.makeelement("div", {LINE_ATTRIBUTE: str(line)})
                    for name in ("g", "f", "f"):
                        box.append(box.makeelement("p", {}))
                        box[-1].text = f"`a.py::{name}`"
                    tree.getroot().append(box)
                return tree

            md.parser.parseDocument = parse

    page = "`a.py::f`\n\n    a.py::f\n\n```yaml\nf: a.py::f\nff: a.py::ff\nmore: a.py::f a.py::g\n```\n\n" + (
        "```yaml\ng: a.py::g\nf: a.py::f, a.py::f\n```\n"
    )
    found: list[Any] = []
    md = Markdown(extensions=["fenced_code", Box(REPOSITORIES, lambda: Page(name="page.md"), found.append)])
    html = md.convert(page)
    assert LINE_ATTRIBUTE not in html
    expected = [("f", 1), ("g", 8), ("f", 6), ("f", 8), ("g", 12), ("f", 13), ("f", 13)]
    assert [(f.source.symbol, f.line) for f in found] == expected


def test_what_others_read_before_markdown_is_not_marked():
    front = "---\nsource: https://github.com/x\n---\n"
    md = Markdown(extensions=["meta", SourcePanelExtension(REPOSITORIES, lambda: Page(name="page.md"), id)])
    assert md.convert(f"{front}\nx") == "<p>x</p>"
    assert md.Meta["source"] == ["https://github.com/x"]
    for text in (f"{front}x", '--8<-- "https://github.com/x.md"', "```\nhttps://github.com/x `a::b`\n```"):
        assert PageLines(text.split("\n"), urls=[HOME]).marked() == text.split("\n")


def test_a_text_that_no_mark_reached_is_looked_for():
    assert PageLines(["a.py::f", "```", "a.py::f", "```"]).take("a.py::f") == ("a.py::f", 3)
    lines = PageLines(["a.py::ff", "x a.py::f", "a.py::f"])
    assert [lines.take(text) for text in ("a.py::f", "a.py::f", "a.py::f", "b")] == [
        ("a.py::f", 2),
        ("a.py::f", 3),
        ("a.py::f", 3),
        ("b", 1),
    ]


# fmt: off
BLOCKS = st.sampled_from([
    "[x](LINK)", "[x\ny](LINK)", "CODE and [`x`](LINK) CODE", "<LINK>", "# [x](LINK) CODE", "> CODE\n> [x](LINK)",
    "- CODE\n\n    [x](LINK)\n- CODE", "| CODE | b |\n|---|---|\n| c | [x](LINK) |", "```\nHIDE\nDECOY\n```",
    "!!! note\n    [x](LINK)\n\n    ```\n    HIDE\n    ```\n\n    CODE", "<!-- HIDE\n\nDECOY -->", "a\n\n\n\nb",
    '<div>\n<a href="LINK">x</a></div>', "note[^1] CODE", "    HIDE", "1. [x](LINK)\n2. CODE [y](LINK)", "***",
    "~~~\n```\nHIDE\n~~~", "*[TP]: HIDE", "TP `not::a_reference` `std::vector` [other](https://github.com/a/b)",
    "a\tCODE\t[x](LINK)\tb", "a\n===",
])
# fmt: on


@settings(deadline=None)
@given(st.lists(BLOCKS, max_size=12), st.sampled_from(["", "---\na: b\n---\n", "---\na: b\n---\n\n\n"]))
def test_any_number_of_links_on_any_lines(blocks, front):
    # Paragraphs between, so that no list or indented block takes in what follows; a footnote's text comes last.
    page = "\n\n.\n\n".join(blocks) + "\n\n.\n\n[^1]: CODE\n\n    [x](LINK)\n"
    check(page if any("[^1]" in block for block in blocks) else page.partition("[^1]: ")[0], front=front)


# fmt: off
SCRAPS = st.sampled_from([
    "`", "``", "```\n", "~~~\n", "a::b", " ", "\n", "\n\n", "    ", "\t", "*", "**", "_", "[", "]", "(", ")",
    "[r]", "[r][]", "[r]: ", "[^1]", "[^1]: ", "<", ">", "> ", "- ", "1. ", "# ", "|", "---", "!!! note\n", "\\",
    "https://github.com/Example/Tiny/issues", "https://github.com/x/y#z", "<https://github.com/x_y_z>", "<!--", "-->",
    "<a href='https://github.com/x'>", "</a>", "&amp;", "{.c}", "x", "中文", "*[x]: ", ":", ":   ", "<div markdown>",
    "</div>", '"', "\x0c", "\r",
])
# fmt: on


@settings(deadline=None)
@given(st.lists(SCRAPS, max_size=30).map("".join), st.sampled_from(list(EXTENSIONS)))
@example("a::b\\`", "plain")
@example("[r\\]\n\n[r\\]: https://github.com/x", "plain")
@example("https://github.com/x\t.", "plain")
def test_a_page_without_references_is_left_exactly_as_it_is(text, extensions):
    md = Markdown(extensions=EXTENSIONS[extensions], extension_configs=CONFIGS)
    html, found = convert(text, extensions=extensions)
    assert html == md.convert(text)
    assert found == []


@settings(deadline=None)
@given(st.text(), st.lists(st.text()))
def test_marks_come_out_again(file, pieces):
    body = "\n".join([*pieces, "`a::b` https://github.com/x [l] ", f"[l]: {BLOB}/a.py"])
    marked = "\n".join(PageLines(body.split("\n"), file=file, urls=[HOME]).marked())
    assert strip_marks(marked).expandtabs(4) == re.sub(r"\r(?=\n|$)", "", strip_marks(body)).expandtabs(4)
