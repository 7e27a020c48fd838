"""Help for those who write notes: find and print what a link points at, lay out a new chapter."""
