"""Tables with an empty corner: the first column names the rows, so its cells are headers."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from markdown.treeprocessors import Treeprocessor


class RowHeaders(Treeprocessor):
    """Markdown has no row headers; a table whose first heading is empty means them.

    Without this a reader who hears the page gets cells of such a table without the name of their row, and an empty
    heading. A table that names its first column stays as it is.
    """

    def run(self, root: Element) -> None:
        """Change the tables of a page in place."""
        for table in root.iter("table"):
            head, body = table.find("thead/tr"), table.find("tbody")
            corner = head.find("th") if head is not None else None
            if corner is None or body is None or len(corner) or (corner.text or "").strip():
                continue
            corner.tag = "td"
            for row in body:
                if len(row):
                    row[0].tag = "th"
                    row[0].set("scope", "row")
