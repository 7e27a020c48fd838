"""What every construct of the language leads to."""

from __future__ import annotations

import pytest

from tests.sourcepanel.xref.cases import CASES
from tests.sourcepanel.xref.says import wrong


@pytest.mark.parametrize("name", CASES)
def test_identifiers_mean_what_their_lines_say(name):
    assert wrong(CASES[name]) == []
