"""Tables with an empty corner have row headers; others stay as they are."""

from __future__ import annotations

import markdown
import pytest

from sourcepanel.notes.extension import NotesExtension
from sourcepanel.notes.roadmap import Roadmap
from sourcepanel.strings import strings


def render(text: str) -> str:
    extension = NotesExtension(
        roadmap=Roadmap(), page=lambda: "a.md", note_exists=bool, script_exists=bool, strings=strings("zh")
    )
    return markdown.markdown(text, extensions=[extension, "tables"])


def test_the_first_column_of_an_empty_corner_names_the_rows():
    html = render("|  | a | b |\n|---|---|---|\n| **x** | 1 | 2 |\n| y | 3 | 4 |\n")
    assert html.count('<th scope="row">') == 2 and '<th scope="row"><strong>x</strong></th>' in html
    assert html.count("<th>") == 2 and html.count("<td></td>") == 1, "the corner itself is no heading"


@pytest.mark.parametrize("corner", ["行", "`x`", "**行**"])
def test_a_table_that_names_its_first_column_stays(corner: str):
    html = render(f"| {corner} | a |\n|---|---|\n| x | 1 |\n")
    assert "scope=" not in html and html.count("<th>") == 2 and html.count("<td>") == 2
