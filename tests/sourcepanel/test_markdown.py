"""What the extension makes of a page: the links, their attributes, and everything else left alone."""

from __future__ import annotations

from typing import Any

import pytest
from markdown import Markdown
from markdown.serializers import to_xhtml_string

from sourcepanel.config import Config
from sourcepanel.markdown import Page, SourcePanelExtension, decorate, link_element
from sourcepanel.project import Project
from sourcepanel.rawhtml import rewrite_links
from sourcepanel.reference import Finding, Reference, Target
from tests.sourcepanel.test_reference import COMMIT, HOME, REPOSITORIES
from tests.support.tiny import URL

BLOB = f"{HOME}/blob/v2.0"
PIN = f"{URL}/blob/v2.0/"

FORMS = f"""# Heading with `tiny/training.py::train_step` {{#own-id}}

## Heading with [`Trainer`]({PIN}tiny/training.py#L46-L70)

A file [training]({PIN}tiny/training.py), a line [x]({PIN}tiny/training.py#L29 "own title"), a range
[over
two lines]({URL}/blob/v2.0/tiny/training.py?plain=1#L29C1-L41C3){{ .md-button }}, a folder <{URL}/tree/v2.0/tiny/core/>,
the [root]({URL}/tree/v2.0), [raw](https://raw.githubusercontent.com/example/tiny/v2.0/README.md),
[the fork](https://github.com/someone/tiny-study/blob/main/pretrain.py#L6), [encoded]({PIN}docs/a%20b%23c.md),
[by label][label], [label][], [label] and ``tiny/core/parallel.py::RowParallel.forward()``.

| in a table | `tiny/training.py::Trainer.Options` |
|---|---|
| [`schedule`]({PIN}tiny/training.py#L72-L73) | `std::vector<int>` and `torch::Tensor` |

!!! note "In a title `pretrain.py::main`"

    - in a list in an admonition[^1]

      > quoted `tiny/core/parallel.py::Layer`

<p class="kept" markdown="1">*Markdown* in HTML `pretrain.py::main`</p>

<div><a HREF="{PIN}tiny/training.py#L1" class='mine'>in <code>HTML</code></a> <!-- {PIN}gone.py --></div>

Inline <a href="{PIN}README.md">HTML</a>.

Wrong: [other ref]({URL}/blob/main/pretrain.py#L6), [traversal]({PIN}../../etc/passwd), [no such]({PIN}gone.py),
[past the end]({PIN}README.md#L99), `tiny/training.py::gone`, `tiny/../x.py::f`.

Left alone: [home]({URL}), [issue]({URL}/issues/1), [another](https://github.com/example/huge/blob/v2.0/a.py#L1),
[relative](other.md#L10), <someone@example.org>, `[x]({PIN}pretrain.py)`.

```text
{PIN}pretrain.py#L1 pretrain.py::main
```

[label]: {PIN}tiny/data/form_feed.py#L3-L4
[^1]: A footnote with `tiny/training.py::timed`.
"""


@pytest.fixture
def project(tiny_config: Config) -> Project:
    return Project.open(tiny_config.root, notify=print)


def render(page: str, project: Project, *, language: str = "zh", more: list[Any] | None = None):
    """HTML, the converter and everything found, each on real source."""
    found: list[Any] = []
    check = project.page("page.md")

    def resolve(reference):
        found.append(reference)
        return check.resolve(reference)

    ours = SourcePanelExtension(
        project.config.repositories, lambda: Page(name="page.md"), resolve, exists=project.exists, language=language
    )
    names = ["tables", "footnotes", "admonition", "attr_list", "md_in_html", "toc", "fenced_code"]
    md = Markdown(extensions=[*names, *(more or []), ours])
    return md.convert(page), md, found


def test_every_form_on_one_page(project, golden):
    html, _, found = render(FORMS, project)
    golden("every-form.html", html)
    assert html.count("sp-link") == len(found)


def test_what_the_browser_reads(project):
    html, _, _ = render(
        f"[x]({PIN}tiny/training.py#L33-L35) `tiny/training.py::train_step` [c]({URL}/tree/v2.0/tiny)", project
    )
    commit = project.config.repositories[0].commit
    here = f"{URL}/blob/{commit}/tiny/training.py"
    verified = f"已校验 @ v2.0 ({commit[:8]})"
    assert 'class="sp-link" data-kind="interior" data-src="tiny/tiny/training.py#L33-L35"' in html
    assert f'href="{PIN}tiny/training.py#L33-L35" title="tiny/training.py#L33-L35 · {verified}"' in html
    assert f'data-symbol="train_step" href="{here}#L29-L41"' in html
    assert "<code>train_step</code></a>" in html
    assert f'data-kind="folder" data-src="tiny/tiny/" href="{URL}/tree/v2.0/tiny" title="tiny/ · {verified}"' in html
    assert "verified @ v2.0" in render("`pretrain.py::main`", project, language="en")[0]


def test_headings_read_as_they_look(project):
    page = f"# A `pretrain.py::main`\n\n## B [`x` y]({PIN}pretrain.py#L6)\n\n## C {{#c}}\n"
    html, md, _ = render(page, project)
    (first,) = md.toc_tokens
    second, third = first["children"]
    assert (first["id"], first["name"]) == ("a-main", "A main")
    assert (second["id"], second["name"]) == ("b-x-y", "B x y")
    assert third["id"] == "c"
    assert '<h1 id="a-main">A <a class="sp-link"' in html


def test_the_reference_knows_text_and_names(project):
    page = (
        f"[see `Trainer.weight` and `a + b` here]({PIN}tiny/training.py#L1) [train_step]({PIN}tiny/training.py#L1) "
        f"[the loop]({PIN}tiny/training.py#L1) [`pretrain.py::main`]({PIN}pretrain.py#L6) `pretrain.py::main()` "
        f"[a &amp; b\\_c &lt;]({PIN}tiny/\\_\\_init\\_\\_.py)"
    )
    for more in ([], ["pymdownx.inlinehilite"]):
        _, _, found = render(page, project, more=more)
        assert [(f.text, f.names) for f in found] == [
            ("see Trainer.weight and a + b here", ("Trainer.weight",)),
            ("train_step", ("train_step",)),
            ("the loop", ()),
            ("pretrain.py::main", ("main",)),
            ("pretrain.py::main()", ()),
            ("a & b_c <", ()),
        ]
        assert found[-1].source.path == "tiny/__init__.py"
        assert {f.page for f in found} == {"page.md"}


def test_highlighted_inline_code_is_a_reference_too(project):
    md_options = ["pymdownx.highlight", "pymdownx.inlinehilite"]
    html, _, found = render("`#!python pretrain.py::main` and `#!python x = 1`", project, more=md_options)
    assert [f.raw for f in found] == ["pretrain.py::main"]
    assert "<code>main</code></a>" in html
    assert '<code class="highlight">' in html


def test_a_broken_reference_is_shown_as_written_and_says_why(project):
    html, _, found = render(f"`pretrain.py::gone()` [x]({PIN}a/../b.py) [y]({URL}/blob/main/pretrain.py)", project)
    assert '<span class="sp-link sp-broken"' in html
    assert "<code>pretrain.py::gone()</code></span>" in html
    assert f'<a class="sp-link sp-broken" href="{PIN}a/../b.py" title="此链接没有通过校验：the path holds' in html
    assert "data-src" not in html
    assert [type(f) for f in found] == [Reference, Finding, Finding]


def test_text_that_looks_like_markup_stays_text(project):
    html, _, found = render('`a/x.py::<img/src=x>` `a/x&lt;y.py::f` `a/"b.py::f`', project)
    assert "<img" not in html
    assert "<code>a/x&amp;lt;y.py::f</code></span>" in html
    assert [f.raw for f in found] == ["a/x&lt;y.py::f"]


def test_the_same_link_a_thousand_times(project):
    page = "\n".join(f"[x{n}]({PIN}tiny/training.py#L29-L41) `pretrain.py::main`" for n in range(1000))
    html, _, found = render(page, project)
    assert [f.line for f in found] == [n for n in range(1, 1001) for _ in range(2)]
    assert html.count("data-src") == 2000


def test_one_extension_serves_many_pages():
    pages = iter([Page(name="a.md", text="x\n\n`a.py::f`"), Page(name="b.md"), Page(name="c.md")])
    found: list[Any] = []
    md = Markdown(extensions=[SourcePanelExtension(REPOSITORIES, lambda: next(pages), found.append)])
    md.convert("`a.py::f`")
    md.reset().convert(f"[x][r]\n\n[r]: {BLOB}/b.py")
    md.reset().convert("[x][r] `a.py::g`")
    assert [(f.page, f.line, f.source.path) for f in found] == [
        ("a.md", 3, "a.py"),
        ("b.md", 1, "b.py"),
        ("c.md", 1, "a.py"),
    ]


def test_links_made_elsewhere_are_the_same_links(project):
    """`link_element` is what the extension itself puts into the tree."""
    for page in ("`tiny/training.py::train_step`", "`tiny/training.py::gone`"):
        html, _, found = render(page, project)
        target = project.page("x").resolve(found[0])
        made = link_element(found[0], target, repositories=project.config.repositories)
        assert html == f"<p>{to_xhtml_string(made)}</p>"


def test_a_link_made_elsewhere_from_an_address(project):
    (found,) = render(f"[text]({PIN}pretrain.py#L6)", project)[2]
    made = link_element(found, project.page("x").resolve(found), repositories=project.config.repositories)
    assert (made.text, made.get("href"), made.get("data-src")) == (
        "text",
        f"{PIN}pretrain.py#L6",
        "tiny/pretrain.py#L6",
    )


def test_own_attributes_are_kept():
    target = Target(
        repository="tiny",
        path="a.py",
        kind="file",
        start=None,
        end=None,
        symbol=None,
        blob="b",
        has_text=True,
        href="h",
    )
    found = Finding(page="p", line=1, raw="r", text="t", problem=None)  # type: ignore[arg-type]
    own = {"href": "h", "class": "x y", "title": "mine", "id": "i"}
    assert decorate(own, found, target, repositories=REPOSITORIES, language="en") == {
        "href": "h",
        "class": "sp-link x y",
        "title": f"mine · a.py · verified @ v2.0 ({COMMIT[:8]})",
        "id": "i",
        "data-src": "tiny/a.py",
        "data-kind": "file",
    }
    assert own["class"] == "x y"


HTML_CASES = {
    '<p><a href="u">t</a></p>': '<p><a href="NEW">t</a></p>',
    "<A\n HREF=u  >t</A>": '<a href="NEW">t</A>',
    "<a href='u' download>": '<a href="NEW" download="">',
    '<a id="é" href="u&amp;v"/>x': '<a id="é" href="NEW"/>x',
    "一\n二<a href=u>三\n</a><a href=u>四</a>": '一\n二<a href="NEW">三\n</a><a href="NEW">四</a>',
    "<!-- <a href=u> -->": None,
    "<script>'<a href=u>'</script><style><a href=u></style>": None,
    "<a name=u>t</a> <abbr href=u>": None,
    "<a href=": None,
    "< a href=u>": None,
    "&lt;a href=u&gt;": None,
}


@pytest.mark.parametrize(("source", "expected"), HTML_CASES.items())
def test_links_in_html(source, expected):
    assert rewrite_links(source, lambda attributes, text, codes: {**attributes, "href": "NEW"}) == (expected or source)
    assert rewrite_links(source, lambda attributes, text, codes: None) == source


def test_the_text_of_links_in_html():
    seen = []
    source = "<a href=1>see <b>the <code>x</code></b> &amp; <code>y&lt;</code></a> no <code>z</code><a href=2></a>"
    rewrite_links(source, lambda attributes, text, codes: seen.append((attributes["href"], text, codes)))
    assert seen == [("1", "see the x & y<", ["x", "y<"]), ("2", "", [])]
