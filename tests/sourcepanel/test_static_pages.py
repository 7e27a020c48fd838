"""The plain pages of source: valid by themselves, whole, and where links say they are."""

from __future__ import annotations

import gzip
import html
import re
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from sourcepanel import static_pages as module
from sourcepanel.errors import PathNotFound
from sourcepanel.mentions import Mention
from sourcepanel.reference import Target
from sourcepanel.source import Source
from sourcepanel.static_pages import extend_sitemap, noscript, page_path, page_url, static_pages, write_static_pages
from sourcepanel.xref.store import cached_index
from tests.support import tree
from tests.support.memory import COMMIT, whole
from tests.support.tiny import URL

SITE = "https://example.org/notes/"


def target(path: str, start: int | None = None, end: int | None = None, **facts: Any) -> Target:
    known = {"kind": "interior" if start else "file", "symbol": None, "blob": "b" * 40, "has_text": True, "href": "x"}
    return Target(**{"repository": "tiny", "path": path, "start": start, "end": end or start, **known, **facts})


def pages(*targets: Target, source: Source | None = None, **options: Any) -> dict[str, str]:
    made = static_pages(source or whole(), targets, cache=None, **options)
    return {page.path.as_posix(): page.html for page in made}


def one(*targets: Target, **options: Any) -> str:
    [page] = pages(*targets, **options).values()
    return page


class Reader(HTMLParser):
    """Elements, ids, links and the text of the code, and that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.links: list[dict[str, str | None]] = []
        self.code = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if "id" in found:
            self.ids.append(str(found["id"]))
        if tag == "a":
            self.links.append(found)
        if tag not in ("meta", "link"):
            self.open.append(f"{tag}.{found.get('class', '')}")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().partition(".")[0] == tag

    def handle_data(self, data: str) -> None:
        if "code." in self.open and self.open[-1] != "a.n":
            self.code += data


@pytest.mark.parametrize("path", [p for p in tree.V2 if p != "tiny/data/weights.bin"])
def test_every_line_has_an_id_and_the_text_is_the_file(path):
    source = whole()
    page = Reader(one(target(path), source=source))
    file = source.file(path)
    assert page.code == "".join(f"{line}\n" for line in file.lines)
    assert [i for i in page.ids if re.fullmatch(r"L\d+", i)] == [f"L{n}" for n in range(1, file.count + 1)]
    assert len(set(page.ids)) == len(page.ids)
    numbers = [link["href"] for link in page.links if link.get("class") == "n"]
    assert numbers == [f"#L{n}" for n in range(1, file.count + 1)]


def test_there_is_a_page_for_each_linked_file_with_text_and_no_other():
    made = pages(
        target("tiny/training.py", 29, 41),
        target("tiny/training.py", 3),
        target("LICENSE"),
        target("tiny/core", kind="folder"),
        target("tiny/data/weights.bin"),
        target("gone.py", has_text=False),
        target("elsewhere.py", repository="other"),
    )
    assert list(made) == ["sourcepanel/page/tiny/LICENSE.html", "sourcepanel/page/tiny/tiny/training.py.html"]


def test_ranges_that_notes_link_have_ids_of_their_own():
    page = one(target("tiny/training.py", 29, 41), target("tiny/training.py", 29, 30), target("tiny/training.py", 5))
    ids = Reader(page).ids
    assert ids.index("L29-L30") < ids.index("L29-L41") < ids.index("L29")
    assert "L5-L5" not in ids
    assert '<i id="L29-L41" style="--n:13"></i>' in page


def test_a_page_says_where_it_comes_from_and_whose_it_is():
    page = one(target("tiny/training.py"), site_url=SITE)
    assert f'href="{URL}/blob/{COMMIT}/tiny/training.py"' in page
    assert f'href="{URL}/blob/{COMMIT}/LICENSE"' in page
    assert "Tiny" in page
    assert f"v2.0 ({COMMIT[:8]})" in page
    assert "<title>tiny/training.py · tiny v2.0</title>" in page
    assert '<link rel="canonical" href="https://example.org/notes/sourcepanel/page/tiny/tiny/training.py.html">' in page
    assert '<html lang="zh">' in page
    assert "大纲" in page
    assert "Outline" in one(target("tiny/training.py"), language="en")


def test_search_engines_are_let_in_unless_told_otherwise():
    assert "noindex" not in one(target("LICENSE"))
    assert '<meta name="robots" content="noindex">' in one(target("LICENSE"), indexed=False)
    assert "canonical" not in one(target("LICENSE"))


def test_nothing_of_the_source_becomes_markup():
    page = one(target("tiny/web/escape.py"))
    assert "<script" not in page
    assert "<img" not in page
    nasty = {'a"<b>&.py': b"def f(): ...\n"}
    hard = Reader(one(target('a"<b>&.py'), source=whole(files={**tree.V2, **nasty})))
    assert hard.code == "def f(): ...\n"


def test_the_outline_lists_classes_and_functions():
    page = Reader(one(target("tiny/core/parallel.py")))
    named = [link["href"] for link in page.links if str(link["href"]).startswith("#L") and "class" not in link]
    symbols = [s for s in whole().file("tiny/core/parallel.py").symbols.symbols if s.kind != "variable"]
    assert named == [f"#L{s.line}" for s in symbols]
    assert "<nav" not in one(target("LICENSE"))


def test_notes_that_speak_of_the_file_are_named_with_their_sentence():
    said = {"page": "第 <1> 章", "url": "notes/01.html#src-3", "heading": "", "before": "看 ", "after": " 一步"}
    mention = Mention(key="tiny/tiny/training.py#L29-L41", text="train_step", **said)
    page = one(target("tiny/training.py"), mentions=[mention])
    assert '<a href="../../../../notes/01.html#src-3">第 &lt;1&gt; 章</a>' in page
    assert "看 <mark>train_step</mark> 一步" in page
    assert "<aside" not in one(target("LICENSE"), mentions=[mention])


def test_identifiers_lead_to_pages_that_are_there():
    source = whole()
    index = cached_index(source, cache=None, notify=print)
    made = pages(target("pretrain.py"), target("tiny/training.py"), source=source, index=index)
    page = made["sourcepanel/page/tiny/pretrain.py.html"]
    assert '<a href="../../../sourcepanel/page/tiny/tiny/training.py.html#L21">pretrain</a>' in page
    assert '<a href="#L' in made["sourcepanel/page/tiny/tiny/training.py.html"]
    assert "#L21" not in one(target("pretrain.py"), source=source, index=index)
    for name, text in made.items():
        reader = Reader(text)
        for link in reader.links:
            url = urlsplit(str(link["href"]))
            if url.scheme:
                continue
            place = Path("/", PurePosixPath(name).parent, unquote(url.path)).resolve() if url.path else Path("/", name)
            there = place.relative_to("/").as_posix()
            if there != "index.html":
                assert there in made
                assert not url.fragment or url.fragment in Reader(made[there]).ids


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("a.py", "sourcepanel/page/tiny/a.py.html"),
        ("LICENSE", "sourcepanel/page/tiny/LICENSE.html"),
        (".github/x.yml", "sourcepanel/page/tiny/~.github/x.yml.html"),
        ("docs/a b#c.md", "sourcepanel/page/tiny/docs/a%20b%23c.md.html"),
        ("docs/说明.md", "sourcepanel/page/tiny/docs/%E8%AF%B4%E6%98%8E.md.html"),
    ],
)
def test_addresses(path, url):
    assert page_url("tiny", path) == url
    assert page_url("tiny", path, start=3, end=3) == f"{url}#L3"
    assert page_url("tiny", path, start=3, end=5) == f"{url}#L3-L5"
    assert unquote(url) == page_path("tiny", path).as_posix()
    with pytest.raises(PathNotFound):
        page_path("tiny", f"../{path}")


def test_noscript_lists_what_a_page_links_to_once():
    training = "../sourcepanel/page/tiny/tiny/training.py.html"
    given = [target("tiny/training.py", 29, 41), target("LICENSE"), target("tiny/training.py", 5), target("LICENSE")]
    found = noscript([*given, target("x.py", has_text=False)], up="../")
    assert found.startswith("<noscript>")
    assert re.findall('<a href="([^"]*)">([^<]*)</a>', found) == [
        (training, "tiny/training.py"),
        (f"{training}#L5", "L5"),
        (f"{training}#L29-L41", "L29-L41"),
        ("../sourcepanel/page/tiny/LICENSE.html", "LICENSE"),
    ]
    assert "JavaScript" in html.unescape(found)
    assert noscript([target("tiny/core", kind="folder")], up="") == ""


def written(out: Path) -> set[str]:
    return {file.relative_to(out).as_posix() for file in out.rglob("*") if file.is_file()}


def test_a_later_build_leaves_only_its_own_pages_and_touches_nothing_that_is_right(tmp_path):
    first = list(static_pages(whole(), [target("LICENSE"), target("pretrain.py")], cache=None))
    names = write_static_pages(tmp_path, first)
    assert written(tmp_path) == {*map(str, names), "sourcepanel/page.css"}
    before = (tmp_path / names[0]).stat().st_mtime_ns
    (tmp_path / names[1]).write_text("changed", encoding="utf-8")
    assert write_static_pages(tmp_path, first) == names
    assert (tmp_path / names[0]).stat().st_mtime_ns == before
    assert (tmp_path / names[1]).read_text(encoding="utf-8") == first[1].html
    write_static_pages(tmp_path, first[:1])
    assert written(tmp_path) == {str(names[0]), "sourcepanel/page.css"}
    assert write_static_pages(tmp_path / "none", []) == ()
    assert not (tmp_path / "none").exists()


MAP = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://x">\n    <url><loc>https://a/</loc></url>\n</urlset>'
)


def test_the_sitemap_names_each_page_once(tmp_path):
    (tmp_path / "sitemap.xml").write_text(MAP, encoding="utf-8")
    (tmp_path / "sitemap.xml.gz").write_bytes(gzip.compress(MAP.encode()))
    paths = [page_path("tiny", "LICENSE"), page_path("tiny", "docs/a b#c.md")]
    assert extend_sitemap(tmp_path, paths, site_url=SITE) == 2
    assert extend_sitemap(tmp_path, paths, site_url=SITE) == 0
    text = (tmp_path / "sitemap.xml").read_text(encoding="utf-8")
    assert re.findall("<loc>([^<]*)</loc>", text) == [
        "https://a/",
        "https://example.org/notes/sourcepanel/page/tiny/LICENSE.html",
        "https://example.org/notes/sourcepanel/page/tiny/docs/a%20b%23c.md.html",
    ]
    assert text.endswith("</urlset>")
    assert gzip.decompress((tmp_path / "sitemap.xml.gz").read_bytes()).decode() == text


def test_a_site_without_address_or_sitemap_has_none_to_extend(tmp_path):
    paths = [page_path("tiny", "LICENSE")]
    assert extend_sitemap(tmp_path, paths, site_url=SITE) == 0
    (tmp_path / "sitemap.xml").write_text("<urlset>", encoding="utf-8")
    assert extend_sitemap(tmp_path, paths, site_url=SITE) == 0
    assert extend_sitemap(tmp_path, paths, site_url="") == 0
    assert (tmp_path / "sitemap.xml").read_text(encoding="utf-8") == "<urlset>"


ODD = ("docs/a b#c.md", "sourcepanel/page/tiny/docs/a%20b%23c.md.html")
MUTATIONS = [
    ("escape", lambda text, quote=True: text, test_notes_that_speak_of_the_file_are_named_with_their_sentence, ()),
    ("_lines", lambda parts, ranges: "".join(parts), test_every_line_has_an_id_and_the_text_is_the_file, ("LICENSE",)),
    ("_outline", lambda symbols, text: "", test_the_outline_lists_classes_and_functions, ()),
    ("quote", lambda text: text, test_addresses, ODD),
    ("weave", lambda sections, links, size: sections, test_identifiers_lead_to_pages_that_are_there, ()),
]


@pytest.mark.parametrize(("name", "broken", "test", "given"), MUTATIONS, ids=[m[0] for m in MUTATIONS])
def test_each_guard_notices(monkeypatch, name, broken, test, given):
    test(*given)
    monkeypatch.setattr(module, name, broken)
    with pytest.raises((AssertionError, ValueError)):
        test(*given)


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    a, b = sorted((light(one), light(other)), reverse=True)
    return (a + 0.05) / (b + 0.05)


def test_every_colour_of_text_is_readable_on_every_ground():
    style = (Path(module.__file__).parent / "assets/page.css").read_text(encoding="utf-8")
    tokens = {n: (a, b) for n, a, b in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", style)}
    grounds = ("bg", "soft", "mark")
    texts = [name for name in tokens if name not in (*grounds, "rule", "edge")]
    assert len(texts) == 9
    for i in (0, 1):
        for text in texts:
            for ground in grounds:
                assert contrast(tokens[text][i], tokens[ground][i]) >= 4.5, (text, ground, i)
