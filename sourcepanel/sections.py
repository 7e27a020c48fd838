"""The beginning of each section of a page, so that other pages can show it beside a link without asking a server."""

from __future__ import annotations

from html.parser import HTMLParser

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905
BLOCKS = 4
"""Top-level blocks of a section that are kept, its heading included."""
MOST = 4000
"""Characters of HTML; a block that would go beyond is left out."""


def read_sections(html: str) -> dict[str, str]:
    """Id of a heading → the HTML of the heading and the first blocks below it, in order of the page."""
    reader = _Reader(html)
    reader.feed(html)
    reader.close()
    found: dict[str, str] = {}
    blocks = reader.blocks
    for i, (tag, name, start, _) in enumerate(blocks):
        if tag not in _HEADINGS or not name:
            continue
        end = blocks[i][3]
        for next_tag, _, _, next_end in blocks[i + 1 : i + BLOCKS]:
            if next_tag in _HEADINGS or next_end - start > MOST:
                break
            end = next_end
        found[name] = html[start:end]
    return found


class _Reader(HTMLParser):
    """The elements at the top level with their places."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self._lines = [0]
        for line in html.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._depth: list[str] = []
        self._start = (0, "", "")
        self.blocks: list[tuple[str, str, int, int]] = []
        """(tag, id, start, end)."""

    def _at(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        if not self._depth:
            self._start = (self._at(), tag, dict(attrs).get("id") or "")
        self._depth.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._depth:
            return
        # An end tag may be left out, as of `<li>` and `<p>` in raw HTML.
        while self._depth.pop() != tag:
            pass
        if not self._depth:
            start, name, id_ = self._start
            self.blocks.append((name, id_, start, self._at() + len(f"</{tag}>")))
