"""The adapter and its hook in whole MkDocs builds of a tiny project."""

from __future__ import annotations

import ast
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from sourcepanel import mkdocs_adapter
from sourcepanel.cli import main as cli
from sourcepanel.config import load_config as read_config
from tests.support.runs import call, run, write_run
from tests.support.tiny import TinyRepo, write_config

HOOKS = Path(__file__).resolve().parents[2] / "hooks"
HOOK = HOOKS / "source_panel.py"
PAGE = "# 首页\n\n训练从 `tiny/training.py::train_step` 开始，见 [第 5 行]({url}/blob/v2.0/tiny/training.py#L5)。\n"
URL = "https://github.com/example/tiny"
THEME = "{{ page.content }}[{{ reading.label if reading }}]{{ config.extra.sourcepanel.pins[0].ref }}"
HEADINGS = '\n[notes]\npages = ["notes/*"]\nheadings = ["目标", "机制"]\nroadmap = "docs/chapters.yml"\n'
CHAPTERS = """\
rounds:
  - name: 第一轮
    title: 主链路
    question: 怎样完成？
    chapters:
{chapters}"""
CHAPTER = """\
      - {{number: {n}, title: T{n}, note: notes/{n}.md, script: runnable/{n}.py, record: 记 {n}}}
"""
COMMUNICATION = """
```yaml communication-record
title: 一次 all-reduce
api: all_reduce
group: tp
phase: forward
dtype: float32
before: "[s, b, h]"
after: "[s, b, h]"
count: 1
ranks: all
semantics: 合并 partial output
issued_by: tiny/training.py::train_step
trace: run
```
"""


@dataclass
class Project:
    """A project folder, and what its builds said."""

    root: Path
    log: pytest.LogCaptureFixture

    @property
    def site(self) -> Path:
        return self.root / "site"

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{url}", URL), encoding="utf-8")

    def build(self, *, strict: bool = False) -> list[str]:
        """Build as `mkdocs build` does; the warnings and errors of the source panel."""
        self.log.clear()
        with self.log.at_level(logging.INFO, mkdocs_adapter.LOGGER):
            build(load_config(str(self.root / "mkdocs.yml"), strict=strict, site_dir=str(self.site)))
        return self.told()

    def told(self) -> list[str]:
        ours = [r for r in self.log.records if r.name == mkdocs_adapter.LOGGER]
        return [r.getMessage() for r in ours if r.levelno >= logging.WARNING]

    def lock(self) -> None:
        done = CliRunner().invoke(cli, ["--config", str(self.root / "sourcepanel.toml"), "lock"])
        assert done.exit_code == 0, done.output

    def read(self, name: str) -> str:
        return (self.site / name).read_text(encoding="utf-8")


@pytest.fixture
def project(tiny_repo: TinyRepo, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Project:
    root = tmp_path / "project"
    config = write_config(root, tiny_repo)
    config.write_text(config.read_text() + HEADINGS)
    made = Project(root, caplog)
    made.write(
        "theme/main.html",
        "{{ page.content }}[{{ reading.label if reading }}]{{ config.extra.sourcepanel.pins[0].ref }}",
    )
    made.write(
        "mkdocs.yml",
        "site_name: tiny\ntheme: {name: null, custom_dir: theme, language: zh}\nuse_directory_urls: false\n"
        f"hooks: [{HOOK}]\nplugins: []\nmarkdown_extensions: [tables, toc, pymdownx.superfences]\n",
    )
    made.write("docs/index.md", PAGE)
    made.write("docs/chapters.yml", CHAPTERS.format(chapters=CHAPTER.format(n=1) + CHAPTER.format(n=2)))
    made.lock()
    return made


def test_a_page_gets_links_and_the_site_gets_the_panel(project: Project):
    assert project.build(strict=True) == []
    html = project.read("index.html")
    assert 'data-src="tiny/tiny/training.py#L5"' in html
    assert 'data-symbol="train_step"' in html
    assert html.endswith("v2.0")
    assert "SourcePanel.define(" in project.read("sourcepanel/src/tiny/tiny/training.py.js")


MAP = "<urlset>{% for file in pages %}{{ file.page.canonical_url }}{% endfor %}</urlset>"


@pytest.mark.parametrize("address", ["", "https://example.org/n/"], ids=["no address", "address"])
def test_a_reader_without_scripts_gets_plain_pages(project: Project, address: str):
    project.write("theme/main.html", "<body><article>{{ page.content }}</article><p></p></body>")
    project.write("theme/sitemap.xml", MAP)
    project.write("docs/deep/one.md", PAGE)
    project.write("docs/empty.md", "# Nothing\n")
    with (project.root / "mkdocs.yml").open("a", encoding="utf-8") as stream:
        stream.write(f"site_url: '{address}'\n")
    project.lock()
    assert project.build(strict=True) == []
    path = "sourcepanel/page/tiny/tiny/training.py.html"
    html = project.read("deep/one.html")
    offer = html.partition("<noscript>")[2].partition("</noscript></article><p>")[0]
    assert f'href="../{path}#L5"' in offer
    assert "<noscript>" not in project.read("empty.html")
    page = project.read(path)
    assert 'id="L5"' in page
    assert "首页" in page
    assert (f'<link rel="canonical" href="{address}{path}">' in page) == bool(address)
    assert (f"<loc>{address}{path}</loc>" in project.read("sitemap.xml")) == bool(address)


PASTED = "    loss = loss_func(model.forward(batch))\n    model.weight -= LEARNING_RATE * loss"
BAD = [
    ("`tiny/training.py::train_stepp`", 4, "missing-symbol"),
    ("[x]({url}/blob/v2.0/tiny/trainin.py)", 4, "missing-file"),
    ("[x]({url}/blob/v2.0/tiny/training.py#L99999)", 4, "line-past-end"),
    ("[x]({url}/blob/v2.0/tiny/training.py#L9-L5)", 4, "reversed-range"),
    ("[x]({url}/blob/v1.0/tiny/training.py)", 4, "other-ref"),
    ("[[indexx]]", 4, "note-link"),
    ("[[index#首]]", 4, "note-link"),
    ("```yaml function-record\nfunction: x\n```", 5, "record"),
    (
        "```python\n    loss = loss_func(model.forward(batch))\n    model.weight -= LEARNING_RATE * loss\n```",
        5,
        "pasted",
    ),
]


@pytest.mark.parametrize(("text", "line", "code"), BAD, ids=[code for _, _, code in BAD])
def test_each_mistake_is_a_warning_with_page_and_line(project: Project, text: str, line: int, code: str):
    project.write("docs/notes.md", f"---\ntitle: x\n---\n{text}\n")
    told = project.build()
    assert any(message.startswith(f"notes.md:{line}: ") and f"[{code}" in message for message in told), told


def test_the_build_and_the_command_line_say_the_same(project: Project):
    for number, (text, _, _) in enumerate(BAD):
        project.write(f"docs/bad{number}.md", f"# T\n\n{text}\n")
    built = set(project.build())
    done = CliRunner().invoke(cli, ["--config", str(project.root / "sourcepanel.toml"), "check", "--json"])
    checked = json.loads(done.stdout)
    findings = {(f["page"], f["line"], f["code"]) for f in checked["diagnostics"]}
    assert len(findings) >= len(BAD)
    for page, line, code in findings:
        assert any(message.startswith(f"{page}:{line}: ") and f"[{code}]" in message for message in built)
    assert len(built) == len(checked["diagnostics"])


def test_level_error_ends_the_build(project: Project):
    config = project.root / "sourcepanel.toml"
    config.write_text(config.read_text() + '\n[levels]\nmissing-symbol = "error"\n')
    project.write("docs/index.md", "`tiny/training.py::nope`\n")
    with pytest.raises(Abort):
        project.build()
    assert not (project.site / "sourcepanel").exists()


def test_level_ignore_says_nothing(project: Project):
    config = project.root / "sourcepanel.toml"
    config.write_text(config.read_text() + '\n[levels]\nmissing-symbol = "ignore"\nstale-lock = "ignore"\n')
    project.write("docs/index.md", "`tiny/training.py::nope`\n")
    assert not [message for message in project.build() if "missing-symbol" in message]


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda p: p.write("sourcepanel.toml", "repositries = []\n"), "sourcepanel.toml:1: unknown key repositries"),
        (lambda p: p.write("sourcepanel.lock", "{"), "sourcepanel.lock"),
        (lambda p: p.write("docs/chapters.yml", "rounds: 3\n"), "chapters.yml:1: rounds"),
        (lambda p: (p.root / "sourcepanel.toml").unlink(), "sourcepanel.toml: no such file"),
        (lambda p: (p.root / "docs/index.md").write_bytes(b"# a\n\xe9\n"), "index.md:2: not UTF-8"),
        (lambda p: p.write("docs/sourcepanel/src", "a file where the panel's data goes"), "sourcepanel/src"),
    ],
    ids=["config", "lock", "roadmap", "missing", "page", "output"],
)
def test_what_cannot_be_read_ends_the_build_in_one_sentence(
    project: Project, break_it: Callable[[Project], None], message: str
):
    break_it(project)
    with pytest.raises(Abort):
        project.build()
    (said,) = [r.getMessage() for r in project.log.records if r.levelno == logging.ERROR]
    assert said.startswith("sourcepanel: ")
    assert message in said


def test_nothing_leaks_from_one_build_into_the_next(project: Project):
    assert project.build() == []
    project.write("docs/other.md", "[x]({url}/blob/v2.0/tiny/core/parallel.py)\n\n`tiny/training.py::nope`\n")
    told = project.build()
    assert any("other.md:3" in message for message in told)
    assert (project.site / "sourcepanel/src/tiny/tiny/core/parallel.py.js").exists()
    (project.root / "docs/other.md").unlink()
    assert project.build() == []
    assert not (project.site / "sourcepanel/src/tiny/tiny/core/parallel.py.js").exists()


def test_sources_are_opened_once_as_long_as_configuration_and_lock_stay(project: Project):
    project.build()
    first = mkdocs_adapter._current().project
    project.build()
    assert mkdocs_adapter._current().project is first
    project.write("docs/index.md", PAGE + "\n`tiny/training.py::pretrain`\n")
    assert len(project.build()) == 1
    project.lock()
    assert project.build() == []
    assert mkdocs_adapter._current().project is not first


NOTE = "# N\n\n## 目标\n\n看 `tiny/training.py::pretrain`。\n\n## 机制\n\n见 `tiny/training.py::train_step`。\n"


def test_the_roadmap_shows_what_the_checks_found(project: Project):
    project.write("docs/index.md", PAGE + "\n<!-- roadmap 1 -->\n")
    project.write("docs/notes/1.md", NOTE)
    project.lock()
    assert project.build() == []
    html = project.read("index.html")
    assert 'data-note="notes/1.md">已校验 2 处引用</span>' in html
    assert 'data-note="notes/2.md">计划中</span>' in html
    assert '<a class="sp-made" href="notes/1.html">T1</a>' in html
    project.write("docs/notes/1.md", NOTE.replace("## 机制", "## 机理"))
    assert len(project.build()) == 2
    assert 'data-note="notes/1.md">草稿</span>' in project.read("index.html")


def test_notes_show_their_reading_time_and_other_pages_do_not(project: Project):
    project.write("docs/notes/1.md", NOTE + "字" * 2000 + "\n")
    project.lock()
    project.build()
    assert "[阅读约 8 分钟]" in project.read("notes/1.html")
    assert "[]" in project.read("index.html")


RECORD = """\
# T

```yaml function-record
function: tiny/training.py::pretrain
inputs: none
outputs: none
core:
  - tiny/training.py::Trainer: 持有模型
process_groups: none
shards: none
state: none
step: 见 `tiny/training.py::train_step`
```
"""


def test_references_in_a_record_are_checked_and_locked(project: Project):
    project.write("docs/index.md", RECORD)
    project.lock()
    assert project.build() == []
    assert project.read("index.html").count('class="sp-link"') == 3
    for line, name in ((4, "pretrain"), (8, "Trainer"), (12, "train_step")):
        project.write("docs/index.md", RECORD.replace(f"::{name}", f"::{name}x"))
        assert any(m.startswith(f"index.md:{line}: ") and f"did you mean {name}" in m for m in project.build())


def test_a_page_says_who_links_to_it(project: Project):
    project.write("theme/main.html", "<body><article>{{ page.content }}</article></body>")
    project.write("docs/deep/one.md", "# 一\n\n## 节\n\n先。见 [[index#首页|那一页]] 的开头。\n")
    project.write("docs/index.md", PAGE + "\n又见 [这里](deep/one.md#节)。\n")
    project.lock()
    assert project.build(strict=True) == []
    index, one = project.read("index.html"), project.read("deep/one.html")
    assert re.search(
        r'<a href="../index.html#(\S+)" id="ln-1">那一页|<a id="ln-1" href="../index.html#(\S+)">那一页', one
    )
    spoken = '节</span> 见 <a href="deep/one.html#ln-1"><mark>那一页</mark></a> 的开头。'
    assert spoken in index.partition('<section class="backlinks"')[2]
    assert '又见 <a href="../index.html#ln-1"><mark>这里</mark></a>。' in one.partition('<section class="backlinks"')[2]


def test_a_page_shows_what_it_is_joined_to_and_one_page_shows_all(project: Project):
    project.write("theme/main.html", "<body><article>{{ page.content }}</article></body>")
    project.write("docs/notes/1.md", NOTE + "\n见 [[index]]。\n")
    project.write("docs/map.md", "# 图\n\n<!-- graph -->\n")
    project.lock()
    assert project.build(strict=True) == []
    whole, note = project.read("map.html"), project.read("notes/1.html")
    places = json.loads(project.read("sourcepanel/graph.json"))
    assert set(places) == {"note:notes/1.md", "page:index.md", "source:tiny/tiny/training.py"}
    assert whole.count('class="graph__node') == 3
    assert "graph-local" not in whole
    assert "<!-- graph -->" not in whole
    assert note.partition('class="graph-local"')[2].count('class="graph__node') == 3
    assert '<a href="../map.html">看整张关系图谱</a>' in note
    assert "graph__svg" not in project.read("index.html").partition('class="graph-local"')[0]
    for name in ("graph.js", "graph.css"):
        assert f'sourcepanel/{name}"' in note
        assert project.read(f"sourcepanel/{name}")
    moved = {name: [x + 100, y] for name, (x, y) in places.items()}
    project.write("sourcepanel.graph", json.dumps(moved))
    assert project.build(strict=True) == []
    assert json.loads(project.read("sourcepanel/graph.json")) == moved, "places of an earlier build are kept"
    project.write("sourcepanel.graph", "{")
    with pytest.raises(Abort):
        project.build()


def test_serve_watches_what_a_build_depends_on(project: Project):
    project.build()
    watched: list[str] = []

    class Server:
        def watch(self, path: str) -> None:
            watched.append(path)

    mkdocs_adapter.on_serve(Server(), None, None)  # type: ignore[arg-type]
    assert watched == [str(project.root / "sourcepanel.toml"), str(project.root / "sourcepanel.lock")]


def test_the_hook_names_every_event_of_the_adapter_and_does_nothing_else():
    events = {name for name in vars(mkdocs_adapter) if name.startswith("on_")}
    tree = ast.parse(HOOK.read_text(encoding="utf-8"))
    named = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert named == events
    assert {type(node) for node in tree.body} <= {ast.Expr, ast.ImportFrom, ast.Assign}


def test_a_communication_record_that_its_run_does_not_show_fails_the_build(project: Project):
    config = project.root / "sourcepanel.toml"
    config.write_text('traces = "traces"\n' + config.read_text(encoding="utf-8"), encoding="utf-8")
    commit = read_config(config).repositories[0].commit
    write_run(project.root / "docs/traces", "run", run({0: [call(("tiny/training.py", 38))]}, source=f"tiny@{commit}"))
    project.write("docs/index.md", PAGE + COMMUNICATION)
    project.lock()
    assert project.build(strict=True) == []
    html = project.read("index.html")
    assert 'data-src="tiny/tiny/training.py#L38"' in html, "the line that made the call opens too"
    assert "[s, b, h] = [8, 2, 6]" in html
    assert "training.py#L38" not in (project.root / "sourcepanel.lock").read_text(encoding="utf-8")
    project.write("docs/index.md", (PAGE + COMMUNICATION).replace("[s, b, h]", "[s, h, b]"))
    with pytest.raises(Abort):
        project.build(strict=True)
    (told,) = project.told()
    assert told.startswith("index.md:11: the trace run shows no forward all_reduce tp [8, 6, 2]")
