"""Terms: read from the glossary's page, shown there, linked from the prose of others and from nothing else."""

from __future__ import annotations

from pathlib import Path

import markdown
import pytest

from sourcepanel.errors import ConfigError
from sourcepanel.notes.extension import NotesExtension
from sourcepanel.notes.glossary import Glossary, check_glossary, load_glossary
from sourcepanel.notes.roadmap import Roadmap
from sourcepanel.project import Project
from sourcepanel.strings import strings
from tests.support.golden import Golden

ROOT = Path(__file__).resolve().parents[3]

TP = "TP:\n  also: [张量并行]\n  zh: 切矩阵\n  en: splits matrices\n  link: tiny/core.py::split\n"
BATCH = "micro-batch:\n  zh: 一次 forward\n  en: one pass\n  link: notes/a.md\n"
PAGE = f"# 词\n\n```yaml glossary\n{TP}{BATCH}```\n"


@pytest.fixture
def glossary(tmp_path: Path) -> Glossary:
    (tmp_path / "glossary.md").write_text(PAGE, encoding="utf-8")
    return load_glossary(tmp_path / "glossary.md", docs=tmp_path)


def render(text: str, glossary: Glossary, *, page: str = "notes/a.md", language: str = "zh") -> str:
    extension = NotesExtension(
        roadmap=Roadmap(), page=lambda: page, note_exists=bool, script_exists=bool,
        strings=strings(language), glossary=glossary, language=language,
    )  # fmt: skip
    return markdown.markdown(text, extensions=[extension, "tables", "pymdownx.superfences"])


def link(term: str, text: str, title: str) -> str:
    return f'<a class="term" href="../glossary.md#{term}" title="{title}">{text}</a>'


def test_the_page_shows_every_term_once_with_its_place(glossary: Glossary, golden: Golden):
    assert list(check_glossary(PAGE)) == []
    golden("glossary.html", render(PAGE, glossary, page="glossary.md") + "\n")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("用 TP 和 TP", f"<p>用 {link('tp', 'TP', '切矩阵')} 和 TP</p>"),
        ("切成张量并行的", f"<p>切成{link('tp', '张量并行', '切矩阵')}的</p>"),
        ("**TP** 后", f"<p><strong>{link('tp', 'TP', '切矩阵')}</strong> 后</p>"),
        (
            "TP=2，micro-batch",
            f"<p>{link('tp', 'TP', '切矩阵')}=2，{link('micro-batch', 'micro-batch', '一次 forward')}</p>",
        ),
        ("`TP`", "<p><code>TP</code></p>"),
        ("[TP](x)", '<p><a href="x">TP</a></p>'),
        ("# TP", "<h1>TP</h1>"),
        ("TP-DP、TPU、xTP、a/TP、TP.size、TP_1", "<p>TP-DP、TPU、xTP、a/TP、TP.size、TP_1</p>"),
        ("```\nTP\n```", '<div class="highlight"><pre><span></span><code>TP\n</code></pre></div>'),
        ("<b>raw TP</b>", None),
    ],
)
def test_the_first_in_prose_leads_to_the_glossary(glossary: Glossary, text: str, html: str | None):
    made = render(text, glossary)
    assert made == html if html else 'class="term"' in made


def test_each_section_begins_anew(glossary: Glossary):
    made = render("TP TP\n\n## 一\n\nTP\n\n### 小\n\nTP\n\n## 二\n\n- TP\n- TP\n", glossary)
    assert made.count('class="term"') == 3


def test_the_tooltip_speaks_the_language_of_the_page(glossary: Glossary):
    assert 'title="splits matrices"' in render("TP", glossary, language="en")


def test_the_glossary_does_not_link_to_itself(glossary: Glossary):
    assert 'class="term"' not in render("TP", glossary, page="glossary.md")


def test_which_terms_a_page_uses(glossary: Glossary):
    text = "# TP\n\n一个 micro-batch，`TP`，[x](TP)\n\n```\nTP\n```\n"
    assert [term.name for term in glossary.used(text)] == ["micro-batch"]
    assert [term.name for term in glossary.used(text + "\n张量并行 TP micro-batch\n")] == ["micro-batch", "TP"]


@pytest.mark.parametrize(
    ("fence", "line", "message"),
    [
        (TP + TP, 8, "the glossary: TP stands twice, first on line 3"),
        (TP.replace("  en: splits matrices\n", ""), 3, "TP.en: Field required"),
        (TP + "  cn: x\n", 8, "TP.cn: Extra inputs are not permitted"),
        (TP.replace("张量并行", "PP") + TP.replace("TP:", "PP:"), 8, "PP stands twice, first on line 3"),
        (TP + TP.replace("TP:", "tp:").replace("张量并行", "x"), 8, "tp and TP have one anchor, tp"),
        ("- TP\n", 3, "the glossary: Input should be a valid dictionary"),
        ("a: [\n", 4, "the glossary: not valid YAML"),
    ],
)
def test_what_is_wrong_in_the_glossary_is_told_with_its_line(fence: str, line: int, message: str):
    found = list(check_glossary(f"\n```yaml glossary\n{fence}```\n"))
    assert (found[0].line, found[0].message[: len(message)]) == (line, message)


def test_a_glossary_that_is_not_there(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"none\.md: cannot be read"):
        load_glossary(tmp_path / "none.md", docs=tmp_path)


def test_the_sites_glossary_is_whole():
    glossary = load_glossary(ROOT / "docs/glossary.md", docs=ROOT / "docs")
    names = {term.name for term in glossary.terms}
    assert len(names) >= 35
    asked = "TP PP DP CP EP SP VPP micro-batch stage bucket main_grad shard rank all-reduce all-gather reduce-scatter"
    assert {*asked.split(), "global batch", "model chunk", "grad buffer", "sharded tensor", "process group"} <= names
    assert {"layer spec", "1F1B", "bubble", "loss mask", "grad scaler", "distributed optimizer", "checkpoint"} <= names
    assert all("\n" not in term.zh + term.en for term in glossary.terms)


def test_every_link_of_the_sites_glossary_is_right(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOURCEPANEL_BACKEND", "wheel")
    project = Project.open(ROOT, notify=print)
    (page,) = project.check(["glossary.md"], notes=False).pages
    assert page.diagnostics == ()
    assert page.checked == page.total >= 35
