"""Pages read as the site reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mkdocs.utils.meta import get_data

from sourcepanel.collect import BUILT_IN, PageReader, body_of, read_extensions, read_page
from sourcepanel.config import Config
from sourcepanel.errors import ConfigError, PageError
from sourcepanel.reference import Finding
from tests.support.tiny import URL

PIN = f"{URL}/blob/v2.0/"


def write(config: Config, name: str, text: str | bytes) -> Path:
    path = config.path(config.docs) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def found(config: Config, text: str | bytes) -> list[tuple[int, str]]:
    write(config, "notes/page.md", text)
    return [(f.line, f.raw) for f in PageReader(config).read("notes/page.md")]


def test_references_come_in_the_order_of_their_lines(tiny_config):
    page = (
        f"[^1]: shown last `a.py::one`\n\nx[^1] <a href='{PIN}a.py#L2'>x</a>\n\n[y]({PIN}a.py)\n[z]({URL}/blob/x/a.py)"
    )
    assert found(tiny_config, page) == [
        (1, "a.py::one"),
        (3, f"{PIN}a.py#L2"),
        (5, f"{PIN}a.py"),
        (6, f"{URL}/blob/x/a.py"),
    ]


def test_each_goes_to_resolve_with_its_page(tiny_config):
    write(tiny_config, "notes/a.md", "`a.py::f`")
    write(tiny_config, "b.md", f"`b.py::f` [x]({PIN}../b.py)")
    given = []
    reader = PageReader(tiny_config, exists=lambda repository, path: False)
    read = [reader.read(name, given.append) for name in tiny_config.page_names()]
    assert [(f.page, f.raw) for f in given] == [
        ("b.md", "b.py::f"),
        ("b.md", f"{PIN}../b.py"),
        ("notes/a.md", "a.py::f"),
    ]
    assert [f for page in read for f in page] == given
    assert isinstance(given[1], Finding)


def test_a_branch_with_slashes_is_split_where_the_pin_has_the_path(tiny_config):
    write(tiny_config, "a.md", f"[x]({URL}/blob/feature/deep/name/tiny/a.py)")
    (one,) = PageReader(tiny_config, exists=lambda repository, path: path == "tiny/a.py").read("a.md")
    assert (one.problem.ref, one.problem.source.path) == ("feature/deep/name", "tiny/a.py")


BODY = "`a.py::f`\n\n- `a.py::g`"
FORMS = {
    "plain": (BODY.encode(), [1, 3]),
    "byte order mark": (b"\xef\xbb\xbf" + BODY.encode(), [1, 3]),
    "CRLF": (BODY.replace("\n", "\r\n").encode(), [1, 3]),
    "CR": (BODY.replace("\n", "\r").encode(), [1, 3]),
    "front matter": (f"---\ntitle: T\n---\n{BODY}".encode(), [4, 6]),
    "front matter, all at once": (f"\ufeff---\r\ntitle: a.py::f\r\n---\r\n\r\n\r\n{BODY}".encode(), [6, 8]),
    "form feed, vertical tab, separators": (f"x\x0cy\x0bz\x1c\x1d\u2028\u2029\x85\n\n{BODY}".encode(), [3, 5]),
    "empty": (b"", []),
}


@pytest.mark.parametrize("form", FORMS)
def test_lines_of_the_file_whatever_its_form(tiny_config, form):
    data, lines = FORMS[form]
    assert [line for line, _ in found(tiny_config, data)] == lines


def test_a_page_that_is_not_utf8_is_named_with_the_byte(tiny_config):
    path = write(tiny_config, "bad.md", "一\n二\n".encode() + b"caf\xe9 `a.py::f`\n")
    with pytest.raises(PageError) as caught:
        PageReader(tiny_config).read("bad.md")
    assert str(caught.value) == f"{path}:3: not UTF-8 (byte 11 is 0xe9); save the page as UTF-8"


def test_a_file_that_a_page_takes_in_and_that_is_not_there_is_named(tiny_config):
    options = "pymdownx.snippets: {check_paths: true}"
    tiny_config.path(tiny_config.markdown).write_text(f"markdown_extensions: [{options}]\n")
    write(tiny_config, "bad.md", b'--8<-- "gone.txt"\n')
    with pytest.raises(PageError, match=r"^bad\.md: Snippet at path 'gone\.txt' could not be found; write"):
        PageReader(tiny_config).read("bad.md")


def test_a_page_that_is_not_there_is_named(tiny_config):
    with pytest.raises(PageError, match=r"gone\.md: cannot be read: No such file"):
        read_page(tiny_config.path(tiny_config.docs) / "gone.md")


@pytest.mark.parametrize(
    "text",
    [
        "---\na: b\n---\nbody\n",
        "---\na: b\n...  \n\n\nbody\n",
        "---\na: b\n---",
        "---\njust text\n---\nbody\n",
        "---\na: [b\n---\nbody\n",
        "---\n---\nbody\n",
        "--- \na:\n  b: `c`\n---\nbody\n",
        "\n---\na: b\n---\nbody\n",
        "# no front matter\n",
        "----\na: b\n----\n",
    ],
)
def test_front_matter_is_what_mkdocs_takes_for_it(text):
    assert body_of(text).strip("\n") == get_data(text)[0].strip("\n")


SITE = """
theme: {name: none}
strange: !relative $docs_dir
other: !anything {a: [1, !more 2]}
markdown_extensions:
  - admonition
  - toc:
      slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}
      permalink: !ENV [SP_TEST_UNSET, SP_TEST_SIGN, "#"]
      title: !ENV SP_TEST_UNSET
  - pymdownx.superfences:
      custom_fences:
        - name: mermaid
          class: mermaid
          format: !!python/name:pymdownx.superfences.fence_code_format
  - sourcepanel:
      config: elsewhere.toml
"""


def test_extensions_are_those_of_the_site(tiny_config, monkeypatch):
    from pymdownx.superfences import fence_code_format

    file = tiny_config.path(tiny_config.markdown)
    file.write_text(SITE, encoding="utf-8")
    extensions = read_extensions(file)
    assert list(extensions) == [*BUILT_IN, "admonition", "pymdownx.superfences", "sourcepanel"]
    assert extensions["toc"]["slugify"]("A B", "-") == "a-b"
    assert extensions["toc"]["permalink"] == "#"
    assert extensions["toc"]["title"] is None
    assert extensions["pymdownx.superfences"]["custom_fences"][0]["format"] is fence_code_format
    monkeypatch.setenv("SP_TEST_SIGN", "¶")
    assert read_extensions(file)["toc"]["permalink"] == "¶"


def test_pages_are_read_with_them(tiny_config):
    page = f"{PIN}a.py\n\n!!! note\n    `a.py::f`\n\n- a\n\n    ```\n    # `a.py::g`\n    ```\n"
    tiny_config.path(tiny_config.markdown).write_text("site_name: x\n")
    assert (1, f"{PIN}a.py") not in found(tiny_config, page)
    assert (9, "a.py::g") in found(tiny_config, page)
    site = SITE.replace("title: !ENV SP_TEST_UNSET", "").replace("- admonition", "- admonition\n  - pymdownx.magiclink")
    tiny_config.path(tiny_config.markdown).write_text(site, encoding="utf-8")
    assert found(tiny_config, page) == [(1, f"{PIN}a.py"), (4, "a.py::f")]


@pytest.mark.parametrize("listed", ["{admonition: , toc: {permalink: true}}", "[admonition, toc: {permalink: true}]"])
def test_both_spellings_of_the_list(tmp_path, listed):
    file = tmp_path / "site.yml"
    file.write_text(f"markdown_extensions: {listed}\n")
    assert read_extensions(file)["toc"] == {"permalink": True}
    file.write_text("site_name: x\n")
    assert read_extensions(file) == {name: {} for name in BUILT_IN}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: b\nmarkdown_extensions: [x", "site.yml:2: "),
        (
            "markdown_extensions:\n  - toc:\n      slugify: !!python/name:no.such.name\n",
            "site.yml:3: cannot import no.such.name",
        ),
        ("a: 1\nb: !!python/name:os.nothing\n", "site.yml:2: cannot import os.nothing"),
        ("a: !!python/name:nothing\n", "site.yml:1: cannot import nothing"),
        ("markdown_extensions: [[toc]]", "each entry is a name"),
        ("markdown_extensions: [toc: 3]", "each entry is a name"),
        ("markdown_extensions: toc", "each entry is a name"),
        (b"a: \xff", "site.yml: not UTF-8 (byte 3)"),
        ("a: \0", "site.yml: not valid YAML"),
        (None, "`markdown` in sourcepanel.toml"),
    ],
)
def test_a_site_file_that_cannot_be_used_is_named(tmp_path, text, says):
    file = tmp_path / "site.yml"
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as caught:
        read_extensions(file)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("listed", "says"), [("[no_such_extension]", "no_such_extension"), ("[toc: {no_such_option: 1}]", "no_such_option")]
)
def test_an_extension_that_cannot_be_loaded_is_named(tiny_config, listed, says):
    tiny_config.path(tiny_config.markdown).write_text(f"markdown_extensions: {listed}\n")
    write(tiny_config, "a.md", "x")
    with pytest.raises(ConfigError, match=rf"mkdocs\.yml: markdown_extensions: .*{says}"):
        PageReader(tiny_config).read("a.md")
