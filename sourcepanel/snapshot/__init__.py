"""Where the pinned source is read from: a checkout, a cached clone, or the wheel."""
