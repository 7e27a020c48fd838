"""The line map against difflib-free truth: every kept line is found, every other is not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sourcepanel.drift.linemap import FileMap, Hunk


@st.composite
def edits(draw: st.DrawFn) -> tuple[list[Hunk], dict[int, int | None]]:
    """Hunks as git writes them for a random edit of a file, and where each old line went."""
    hunks, truth = [], {}
    old = new = 1
    for _ in range(draw(st.integers(0, 5))):
        keep = draw(st.integers(1, 4))
        for _ in range(keep):
            truth[old] = new
            old, new = old + 1, new + 1
        removed, added = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        if removed or added:
            hunks.append(Hunk(old if removed else old - 1, removed, new if added else new - 1, added))
        truth.update({old + i: None for i in range(removed)})
        old, new = old + removed, new + added
    for _ in range(3):
        truth[old] = new
        old, new = old + 1, new + 1
    return hunks, truth


@settings(max_examples=300)
@given(edits())
def test_lines_are_followed(case: tuple[list[Hunk], dict[int, int | None]]) -> None:
    hunks, truth = case
    file_map = FileMap("a.py", hunks)
    assert dict(zip(truth, file_map.follow(list(truth)), strict=True)) == truth
    assert file_map.follow([None, *truth, None]) == [None, *truth.values(), None]
    assert all(file_map.follow([line]) == [there] for line, there in truth.items())


@settings(max_examples=200)
@given(edits())
def test_the_inverse_leads_back(case: tuple[list[Hunk], dict[int, int | None]]) -> None:
    hunks, truth = case
    back = FileMap("b.py", hunks).inverse("a.py")
    assert back.new_path == "a.py"
    kept = {there: line for line, there in truth.items() if there is not None}
    assert back.follow(list(kept)) == list(kept.values())
