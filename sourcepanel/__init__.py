"""Source links in Markdown that open the pinned source, and are checked against it."""
