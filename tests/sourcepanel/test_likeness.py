"""Spellings that differ in one place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sourcepanel.likeness import is_slip, likeness

words = st.text("ab/.", max_size=8)


@given(words, words)
def test_likeness_is_a_symmetric_share(a: str, b: str):
    assert 0 <= likeness(a, b) == likeness(b, a) <= 1
    assert (likeness(a, b) == 1) == (a == b)


@given(words, st.integers(0, 8), st.sampled_from(["", "a", "x"]), st.booleans())
def test_a_slip_is_one_letter_more_fewer_or_other(word: str, place: int, new: str, insert: bool):
    changed = word[:place] + new + word[place if insert else place + 1 :]
    assert is_slip(word, changed) == (word != changed)


def test_two_slips_are_none():
    assert is_slip("training.py", "trainin.py")
    assert is_slip("training.py", "traiming.py")
    assert not is_slip("training.py", "raimning.py")
    assert not is_slip("training.py", "training.py")
    assert likeness("a.py#L10-L20", "a.py#L10-L21") > 0.9
