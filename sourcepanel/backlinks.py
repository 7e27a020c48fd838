"""Who speaks of a page, and who speaks of a symbol: the sentences, with the link marked in them, by their page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from sourcepanel.mentions import Mention
from sourcepanel.reference import Target

Symbol = tuple[str, str, str]
"""Repository, path and qualified name."""

SHOWN = 3
"""Sentences of one page that stand open; the others are folded below them."""


def backlinks(links: Iterable[Mention]) -> dict[str, tuple[Mention, ...]]:
    """For each page (its address, without a fragment) the links to it that authors wrote, in the order given."""
    found: dict[str, list[Mention]] = defaultdict(list)
    for link in links:
        if not link.made:
            found[link.key.partition("#")[0]].append(link)
    return {page: tuple(each) for page, each in found.items()}


def symbol_mentions(mentions: Iterable[Mention], targets: Iterable[Target]) -> dict[Symbol, tuple[Mention, ...]]:
    """For each symbol that a link into the source names or lies in, the sentences of those links.

    A link to lines stands with the symbol that encloses them; one to a whole file with none.
    """
    symbols = {target.key: (target.repository, target.path, target.symbol) for target in targets if target.symbol}
    found: dict[Symbol, list[Mention]] = defaultdict(list)
    for mention in mentions:
        repository, path, symbol = symbols.get(mention.key, ("", "", None))
        if symbol:
            found[repository, path, symbol].append(mention)
    return {symbol: tuple(each) for symbol, each in sorted(found.items())}


def backlinks_section(links: Sequence[Mention], *, up: str, strings: Mapping[str, str]) -> str:
    """The section at the end of a page; empty where nobody speaks of it. `up` leads to the site's root."""
    if not links:
        return ""
    return (
        f'<section class="backlinks" aria-labelledby="backlinks"><h2 id="backlinks">{escape(strings["note.backlinks"])}'
        f"</h2>{sentences_by_page(links, up=up, strings=strings)}</section>"
    )


def sentences_by_page(links: Sequence[Mention], *, up: str, strings: Mapping[str, str]) -> str:
    """The sentences as a list of lists, one a page, in the order of each page's first sentence."""
    pages: dict[str, list[Mention]] = defaultdict(list)
    for link in links:
        pages[link.url.partition("#")[0]].append(link)
    rows = "".join(_page(url, found, up=up, strings=strings) for url, found in pages.items())
    return f'<ul class="backlinks__pages">{rows}</ul>'


def _page(url: str, links: Sequence[Mention], *, up: str, strings: Mapping[str, str]) -> str:
    rows = [_sentence(link, up=up) for link in links]
    rest = rows[SHOWN:]
    more = ""
    if rest:
        label = escape(strings["note.backlinksMore"].format(count=len(rest)))
        more = f"<details><summary>{label}</summary><ul>{''.join(rest)}</ul></details>"
    title = escape(links[0].page)
    return f'<li><a href="{escape(up + url)}">{title}</a><ul>{"".join(rows[:SHOWN])}</ul>{more}</li>'


def _sentence(link: Mention, *, up: str) -> str:
    heading = f'<span class="backlinks__heading">{escape(link.heading)}</span> ' if link.heading else ""
    mark = f'<a href="{escape(up + link.url)}"><mark>{escape(link.text)}</mark></a>'
    return f"<li>{heading}{escape(link.before)}{mark}{escape(link.after)}</li>"
