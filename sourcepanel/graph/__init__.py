"""The graph of notes: what speaks of what, laid out and drawn at build."""
