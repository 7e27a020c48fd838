"""Columns, ranges, kinds of use, definitions and who uses them."""

from __future__ import annotations

import pytest

from sourcepanel.xref.index import build_index
from sourcepanel.xref.model import FileIndex
from tests.sourcepanel.xref.cases import CASES
from tests.sourcepanel.xref.says import source_files


def index(sources) -> dict[str, FileIndex]:
    return {file.path: file for file in build_index(source_files(sources))}


SOURCES = {
    "m.py": '''
        """The module."""

        def decorate(f):
            return f

        @decorate
        async def run(x: int,
                      y=2) -> int:
            """Run it.

            More.
            """

        class A(Base):
            """An A."""

            size: int = 4
            """How big."""

            def __init__(self):
                self.late = {
                    "x": 1,
                }

            def f(self): ...

        LONG = [
            1, 2,
        ]
        for I in range(3): ...
    ''',
    "a.py": """
        import m
        from m import A, run

        class B(A):
            def f(self): run(1)

        run(A)
        m.A.size = 3
        other = m.LONG
        fs = [run, run]
    """,
}


def test_definitions_know_their_places_and_what_they_say():
    got = {d.name: d for d in index(SOURCES)["m.py"].definitions}
    facts = {n: (d.kind, d.start, d.line, d.end, d.column, d.signature, d.doc) for n, d in got.items()}
    assert facts == {
        "decorate": ("function", 3, 3, 4, 4, "(f)", ""),
        "run": ("function", 6, 7, 12, 10, "(x: int, y=2) -> int", "Run it."),
        "A": ("class", 14, 14, 25, 6, "(Base)", "An A."),
        "A.size": ("variable", 17, 17, 17, 4, ": int = 4", "How big."),
        "A.__init__": ("method", 20, 20, 23, 8, "(self)", ""),
        "A.late": ("attribute", 21, 21, 23, 13, "= {'x': 1}", ""),
        "A.f": ("method", 25, 25, 25, 8, "(self)", ""),
        "LONG": ("variable", 27, 27, 29, 0, "= [1, 2]", ""),
        "I": ("variable", 30, 30, 30, 4, "", ""),
    }
    assert got["run"].key == "m.py#L6-L12"
    assert got["A.size"].key == "m.py#L17"


def test_a_long_value_is_cut():
    [one] = index({"a.py": f"X = {'1' * 200}\n"})["a.py"].definitions
    assert len(one.signature) == 80
    assert one.signature.endswith("…")


def test_uses_are_gathered_with_their_kind_and_certainty():
    m = index(SOURCES)["m.py"]
    named = {d.name: d.id for d in m.definitions}
    uses = {name: [(u.path, u.line, u.kind, u.certainty) for u in m.uses.get(i, ())] for name, i in named.items()}
    assert uses["run"] == [
        ("a.py", 2, "import", "certain"),
        ("a.py", 5, "call", "certain"),
        ("a.py", 7, "call", "certain"),
        ("a.py", 10, "other", "certain"),
        ("a.py", 10, "other", "certain"),
    ]
    assert [use[1:3] for use in uses["A"]] == [(2, "import"), (4, "base"), (7, "other"), (8, "other")]
    assert uses["A.size"] == [("a.py", 8, "set", "certain")]
    assert uses["decorate"] == [("m.py", 6, "call", "certain")]
    assert [(u.line, u.kind) for u in m.uses["m.py", "", 0]] == [
        (1, "import"),
        (2, "import"),
        (8, "other"),
        (9, "other"),
    ]
    likely = index({"a.py": "def g(x): x.find_me()\nclass A:\n    def find_me(self): ...\n"})["a.py"]
    assert [u.certainty for used in likely.uses.values() for u in used] == ["likely"]


def test_overrides_lead_from_a_method_to_those_of_subclasses():
    files = index(SOURCES)
    [(of, by)] = files["m.py"].overrides.items()
    assert (of[1], [(d.path, d.name) for d in by]) == ("A.f", [("a.py", "B.f")])
    assert files["a.py"].overrides == {}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("def f(): ...\nf(f)\n", [(2, 0, 1), (2, 2, 3)]),
        ("X = 1\n'漢字', X, '🎉', X\n", [(2, 6, 7), (2, 14, 15)]),
        ("X = 1\nif X:\n\tX\n", [(2, 3, 4), (3, 1, 2)]),
        ("\ufeffX = 1; X\n", [(1, 8, 9)]),
        ("X = 1\r\nX\r\n", [(2, 0, 1)]),
        ("X = 1\n\x0cX\n", [(2, 1, 2)]),
        ("X = 1\n(\n  X\n  . real)\n", [(3, 2, 3)]),
        ("class A:\n    x = 1\n(A\n  .x)\n", [(3, 1, 2), (4, 3, 4)]),
        ("class A: ...\nx: 'A'\ny: ' A'\nz: '''A'''\nw: 'A' 'B'\nv: '\\x41'\n", [(2, 4, 5), (3, 5, 6), (4, 6, 7)]),
        ("ﬁ = 1\nﬁ\n", []),
        ("X = 1\nf'{X}{X:{X}}'\n", [(2, 3, 4), (2, 6, 7), (2, 9, 10)]),
    ],
    ids=["plain", "wide", "tab", "bom", "crlf", "form feed", "lines", "attribute", "strings", "normalised", "f-string"],
)
def test_columns_are_those_of_the_lines(text, places):
    files = source_files({"a.py": text.encode()})
    [file] = build_index(files)
    got = [(o.line, o.start, o.end) for o in file.occurrences]
    assert got == places


@pytest.mark.parametrize("name", CASES)
def test_occurrences_are_identifiers_in_order_and_their_targets_are_defined(name):
    files = source_files(CASES[name])
    made = {file.path: file for file in build_index(files)}
    known = {d.id for file in made.values() for d in file.definitions} | {(path, "", 0) for path in files}
    for path, file in made.items():
        last = (0, 0)
        for one in file.occurrences:
            text = files[path].lines[one.line - 1][one.start : one.end]
            assert text.isidentifier()
            assert (one.line, one.start) >= last
            assert {target.id for target in one.targets} <= known
            assert one.certainty == "likely" or len(one.targets) == 1
            last = one.line, one.end
        for one in file.definitions:
            line = files[path].lines[one.line - 1]
            last_part = one.name.rpartition(".")[2]
            assert one.kind == "option" or line.startswith(last_part, one.column), (one, line)
        assert set(file.uses) | set(file.overrides) <= known
        assert sum(file.counts.values()) >= len(file.occurrences)


def test_a_file_that_python_cannot_parse_has_nothing():
    files = index({"a.py": "def f(:\n", "b.py": "x = 1\n"})
    assert (files["a.py"].parsed, files["a.py"].definitions, files["a.py"].occurrences) == (False, (), ())
    assert files["b.py"].parsed


def test_nesting_beyond_reason_is_no_crash():
    deep = "x = " + "(" * 90 + "1" + ")" * 90 + "\ny = " + "+".join(["x"] * 3000) + "\nz = x" + ".a" * 900 + "\n"
    [file] = build_index(source_files({"a.py": deep.encode()}))
    assert file.path == "a.py"


def test_building_again_says_the_same():
    for sources in (SOURCES, *CASES.values()):
        assert index(sources) == index(dict(reversed(sources.items())))
