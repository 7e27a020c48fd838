"""The sentence around each source link, and what traces say of lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sourcepanel.errors import PageError
from sourcepanel.events import read_events
from sourcepanel.marks import Marks
from sourcepanel.mentions import MOST, read_mentions
from sourcepanel.sections import read_sections
from tests.support.memory import COMMIT, TINY

LINK = '<a class="sp-link" data-src="tiny/a.py#L3-L4"><code>f</code></a>'


@pytest.mark.parametrize(
    ("html", "before", "after"),
    [
        (f"<p>先。这一步由 {LINK} 完成，v0.17 后。再。</p>", "这一步由 ", " 完成，v0.17 后。"),
        (f"<p>First. Then {LINK}\n runs. Last.</p>", "Then ", " runs."),
        (f"<p>谁调用它？{LINK}</p><p>下一段</p>", "", ""),
        (f"<ul><li>甲</li><li>乙 {LINK}<ul><li>丙</li></ul></li></ul>", "乙 ", ""),
        (f"<table><tr><td>甲</td><td>{LINK}</td><td>丙</td></tr></table>", "甲 · ", " · 丙"),
        (f"<pre>code</pre><script>1;</script><div>在 {LINK}</div>", "在 ", ""),
        (f"<p>{'长' * 200}{LINK}{'短' * 200}</p>", "…" + "长" * MOST, "短" * MOST + "…"),
    ],
)
def test_the_sentence_around_a_link(html: str, before: str, after: str) -> None:
    (mention,) = read_mentions(html, page="页", url="p.html")[1]
    assert (mention.before, mention.text, mention.after) == (before, "f", after)


def test_each_link_gets_an_id_and_keeps_its_own() -> None:
    html = f'<h2 id="x">节 <code>c</code><a class="headerlink" href="#x">¶</a></h2>\n<p>{LINK} é\n{LINK}</p>'
    html += '<p><a id="own" class="sp-link" data-src="tiny/b.py">b</a> <a class="sp-link sp-broken">x</a></p>'
    made, mentions, _ = read_mentions(html, page="页", url="p.html")
    assert [m.url for m in mentions] == ["p.html#sp-1", "p.html#sp-2", "p.html#own"]
    assert {m.heading for m in mentions} == {"节 c"}
    assert made.replace(' id="sp-1"', "").replace(' id="sp-2"', "") == html
    assert made.index('<a id="sp-1" class="sp-link"') < made.index("é") < made.index('<a id="sp-2" class="sp-link"')


@pytest.mark.parametrize(("name", "lines"), [("h#L10.py", "#L3-L4"), ("a#Lb.py", ""), ("c-L2.py", "#L3")])
def test_the_lines_of_a_mention_stand_at_the_end_of_its_key(name: str, lines: str) -> None:
    html = f'<p><a class="sp-link" data-src="tiny/{name}{lines}">x</a></p>'
    marks = Marks(read_mentions(html, page="页", url="p.html")[1], {})
    ((start, end, *_),) = marks.of("tiny", name)["mentions"]  # type: ignore[misc]
    assert (start, end) == {"#L3-L4": (3, 4), "#L3": (3, 3), "": (0, 0)}[lines]


def trace(**facts: Any) -> dict[str, Any]:
    site = {"path": "a.py", "line": 3, "function": "f"}
    event = {"api": "all_reduce", "group": "g", "site": site, "stack": [{**site, "line": 9}, site]}
    other = {"api": "broadcast", "group": "g", "site": None}
    ranks = [{"rank": rank, "events": [event, event, other]} for rank in (0, 1)]
    made = {"schema": "latent-atlas/trace", "version": 1, "source": f"tiny@{COMMIT}", "command": "run"}
    return {**made, "groups": {"g": {"name": "tp"}}, "ranks": ranks, **facts}


def events(folder: Path, data: object) -> Any:
    (folder / "t").mkdir()
    (folder / "t/run.json").write_text(json.dumps(data), encoding="utf-8")
    return read_events(folder / "t", docs=folder, repositories=[TINY])


def test_events_stand_at_the_line_that_asked_and_its_callers(tmp_path: Path) -> None:
    found = events(tmp_path, trace())
    assert list(found) == [("tiny", "a.py")]
    calls = [["all_reduce", "tp", 4]]
    rows = [[3, "run", "t/run.json", "run", calls], [9, "run", "t/run.json", "run", calls]]
    assert [event.row for event in found["tiny", "a.py"]] == rows
    assert Marks([], found).of("tiny", "a.py") == {"events": rows}
    (tmp_path / "t/run.txt").write_text("for people", encoding="utf-8")
    again = read_events(tmp_path / "t", docs=tmp_path, repositories=[TINY])
    assert {event.url for event in again["tiny", "a.py"]} == {"t/run.txt"}


@pytest.mark.parametrize(
    "data", [[1], trace(schema="other"), trace(source="tiny@v1.0"), trace(source="runnable/a.py"), trace(source="")]
)
def test_what_is_no_trace_of_the_pin_says_nothing(tmp_path: Path, data: object) -> None:
    assert events(tmp_path, data) == {}


@pytest.mark.parametrize(
    ("data", "said"),
    [(trace(version=2), "version 2"), (trace(ranks=[{}]), "whole trace"), (trace(groups={}), "whole trace")],
)
def test_a_broken_trace_ends_the_build_by_name(tmp_path: Path, data: object, said: str) -> None:
    with pytest.raises(PageError, match=rf"run\.json.*{said}"):
        events(tmp_path, data)


def test_sections_begin_at_headings_and_end_before_the_next() -> None:
    html = '<h1 id="t">T</h1>\n<p>a<br>b</p><div><h2 id="in">no</h2></div>\n<h2 id="反向">反</h2><ul><li>x<li>y</ul>'
    html += "<p>1</p><p>2</p><p>3</p><h3>nameless</h3><h2 id='long'>L</h2><p>" + "x" * 5000 + "</p>"
    assert read_sections(html) == {
        "t": '<h1 id="t">T</h1>\n<p>a<br>b</p><div><h2 id="in">no</h2></div>',
        "反向": '<h2 id="反向">反</h2><ul><li>x<li>y</ul><p>1</p><p>2</p>',
        "long": "<h2 id='long'>L</h2>",
    }
