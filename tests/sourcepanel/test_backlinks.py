"""Links between pages with their sentences, and the sections made of them."""

from __future__ import annotations

import pytest

from sourcepanel.backlinks import SHOWN, backlinks, backlinks_section, symbol_mentions
from sourcepanel.mentions import Mention, read_mentions
from sourcepanel.reference import Target
from sourcepanel.strings import strings


def links(html: str, url: str = "notes/01.html") -> tuple[Mention, ...]:
    return read_mentions(html, page="一", url=url)[2]


@pytest.mark.parametrize(
    ("url", "href", "key"),
    [
        ("notes/01.html", "02.html", "notes/02.html"),
        ("notes/01.html", "../index.html#a", "index.html#a"),
        ("notes/01.html", "02.html#%E8%8A%82", "notes/02.html#节"),
        ("notes/%E4%B8%80.html", "%E4%BA%8C.html", "notes/二.html"),
        ("notes/01/", "../02/", "notes/02/"),
        ("notes/01/", "../../", ""),
        ("notes/01.html", "#a", None),
        ("notes/01.html", "01.html#a", None),
        ("notes/01.html", "../../else.html", None),
        ("notes/01.html", "https://example.org/notes/02.html", None),
        ("notes/01.html", "//example.org/02.html", None),
        ("notes/01.html", "/02.html", None),
        ("notes/01.html", "../traces/run.txt", None),
        ("notes/01.html", "mailto:a@example.org", None),
    ],
)
def test_which_links_lead_to_another_page(url: str, href: str, key: str | None) -> None:
    found = links(f'<p>在 <a href="{href}">那里</a>。</p>', url)
    assert [one.key for one in found] == ([] if key in (None, "") else [key])


PAGE = (
    '<h2 id="j">机制<a class="headerlink" href="#j">¶</a></h2><p>先。由 <a href="02.html#x">甲 & 乙</a> 完成。再。</p>'
    '<p><a class="term" href="02.html#t">词</a> <a class="sp-made" href="02.html">表</a> '
    '<a class="sp-link" data-src="tiny/a.py" href="https://example.org">f</a></p>'
).replace("& 乙", "&amp; 乙")


def test_a_link_has_its_sentence_its_heading_and_an_id() -> None:
    html, source, pages = read_mentions(PAGE, page="一", url="notes/01.html")
    (link,) = [one for one in pages if not one.made]
    assert (link.before, link.text, link.after) == ("由 ", "甲 & 乙", " 完成。")
    assert (link.heading, link.section, link.url) == ("机制", "j", "notes/01.html#ln-1")
    assert '<a id="ln-1" href="02.html#x">' in html
    assert [one.url for one in pages if one.made] == ["notes/01.html"] * 2
    assert html.count(" id=") == 3
    assert [one.url for one in source] == ["notes/01.html#sp-1"]


def test_backlinks_hold_what_authors_wrote_and_not_what_the_build_made() -> None:
    found = backlinks(links(PAGE))
    assert {page: len(each) for page, each in found.items()} == {"notes/02.html": 1}


def test_the_section_marks_the_link_in_its_sentence_and_leads_to_it() -> None:
    html = backlinks_section(backlinks(links(PAGE))["notes/02.html"], up="../", strings=strings())
    assert '<h2 id="backlinks">反向链接</h2>' in html
    assert '<li><a href="../notes/01.html">一</a>' in html
    sentence = '由 <a href="../notes/01.html#ln-1"><mark>甲 &amp; 乙</mark></a> 完成。'
    assert f'<span class="backlinks__heading">机制</span> {sentence}' in html
    assert backlinks_section((), up="", strings=strings()) == ""


def test_sentences_stand_by_page_and_many_of_one_are_folded() -> None:
    many = links("".join(f'<p>{n} <a href="02.html">x</a></p>' for n in range(SHOWN + 2)))
    other = links('<p>z <a href="02.html">x</a></p>', "notes/03.html")
    html = backlinks_section((*many[:1], *other, *many[1:]), up="", strings=strings())
    assert html.index('href="notes/01.html"') < html.index(f"另外 2 处</summary><ul><li>{SHOWN} ") < html.index("z ")
    assert html.count("<mark>") == SHOWN + 3
    assert html.count("<details>") == 1


def target(path: str, start: int, symbol: str | None) -> Target:
    return Target(
        repository="tiny", path=path, kind="definition", start=start, end=start, symbol=symbol,
        blob="b", has_text=True, href="",
    )  # fmt: skip


def test_a_symbol_has_the_sentences_of_all_links_into_it() -> None:
    targets = [target("a.py", 3, "f"), target("a.py", 4, "f"), target("a.py", 9, None), target("b.py", 3, "f")]
    html = "".join(
        f'<p>{n} <a class="sp-link" data-src="{one.key}" href="x">f</a></p>' for n, one in enumerate(targets)
    )
    found = symbol_mentions(read_mentions(html, page="一", url="1.html")[1], targets)
    said = {symbol: [one.before for one in each] for symbol, each in found.items()}
    assert said == {("tiny", "a.py", "f"): ["0 ", "1 "], ("tiny", "b.py", "f"): ["3 "]}
