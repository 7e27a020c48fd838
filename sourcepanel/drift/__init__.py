"""Where a reference stands after the pin moves: two trees in, one placement per reference out."""
