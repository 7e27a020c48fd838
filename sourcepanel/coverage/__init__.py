"""How much of the pinned source the notes speak of, what they say where, and what is worth reading next."""
