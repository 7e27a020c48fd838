"""The outline of a Python file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourcepanel.symbols import SymbolTable
from tests.support.tree import V2

TRAINING = SymbolTable.parse(V2["tiny/training.py"].decode())


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("LEARNING_RATE", (5, 5, 5)),
        ("MOMENTUM", (5, 5, 5)),
        ("timed.wrapper", (11, 12, 14)),
        ("pretrain", (20, 21, 26)),
        ("train_step", (29, 33, 41)),
        ("train_step.loss_func", (36, 36, 37)),
        ("Trainer.kind", (47, 47, 47)),
        ("Trainer.Options.merge", (64, 64, 65)),
    ],
)
def test_spans_start_at_the_first_decorator(name: str, lines: tuple[int, int, int]):
    (symbol,) = TRAINING.get(name)
    assert (symbol.start, symbol.line, symbol.end) == lines


def test_a_name_defined_twice_keeps_both():
    assert [s.kind for s in TRAINING.get("Trainer.weight")] == ["method", "method"]
    assert len(TRAINING.get("schedule")) == 2, "both arms of an if"


def test_locals_of_a_function_are_no_symbols():
    assert TRAINING.get("train_step.loss") == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = b = 1", ["a", "b"]),
        ("(a, [b, *c]), d.e, f[0] = x", ["a", "b", "c"]),
        ("a: int", ["a"]),
        ("try:\n    import x\n    HAVE = 1\nexcept ImportError:\n    HAVE = 0", ["HAVE", "HAVE"]),
        ("with x as y:\n    def f(): ...", ["f"]),
        ("for i in x:\n    while i:\n        class C: v = 1", ["C", "C.v"]),
        ("match x:\n    case 1:\n        def g(): pass", ["g"]),
        ("async def f():\n    async def g(): pass", ["f", "f.g"]),
    ],
)
def test_definitions_are_found_wherever_they_stand(text: str, names: list[str]):
    assert sorted(s.name for s in SymbolTable.parse(text).symbols) == names


def test_signature_and_doc():
    (step,) = TRAINING.get("pretrain")
    assert (step.signature, step.doc) == ("(model, batches, *, steps=3)", "Run the whole training.")
    (column,) = SymbolTable.parse(V2["tiny/core/parallel.py"].decode()).get("ColumnParallel")
    assert column.signature == "(Layer)"


@pytest.mark.parametrize(
    ("lines", "inner"),
    [
        ((37, 37), "train_step.loss_func"),
        ((34, 37), "train_step"),
        ((5, 5), None),
        ((25, 40), None),
        ((64, 64), "Trainer.Options.merge"),
    ],
)
def test_enclosing_is_the_innermost(lines: tuple[int, int], inner: str | None):
    found = TRAINING.enclosing(*lines)
    assert (found and found.name) == inner


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("trian_step", "train_step"),
        ("merge", "Trainer.Options.merge"),
        ("Trainer.loss_func", "train_step.loss_func"),
        ("Trainr", "Trainer"),
    ],
)
def test_nearest_prefers_the_same_last_part(wrong: str, right: str):
    assert TRAINING.nearest(wrong)[0] == right


def test_nothing_near_is_nothing():
    assert TRAINING.nearest("zzz_qqq") == ()


@pytest.mark.parametrize("text", ["def half(:\n", "\0", "(" * 5000, "if x: pass\n" + "elif x: pass\n" * 20000])
def test_what_python_cannot_parse_has_no_symbols(text: str):
    table = SymbolTable.parse(text)
    assert table.symbols == ()
    assert not table.parsed


@given(st.text())
def test_no_text_crashes_it(text: str):
    SymbolTable.parse(text)
