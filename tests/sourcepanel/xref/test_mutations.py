"""Each rule of the resolution is guarded by a case: without the rule the case fails."""

from __future__ import annotations

import pytest

from sourcepanel.xref import annotations, builder, classes, infer, links, modules, names, recorder, strings
from sourcepanel.xref.values import NOTHING, OUTSIDE_SITES, UNKNOWN, Sites
from tests.sourcepanel.xref.cases import CASES
from tests.sourcepanel.xref.says import wrong

NO_GUESS = ("unknown", ())

MUTATIONS = [
    ("what a class binds its methods do not see", names.Names, "_seen", lambda self, of, n, line: self.bound(of, n)),
    ("a later definition hides an imported one", names, "live", list),
    ("both arms of an if", names, "live", lambda bound: list(bound)[-1:]),
    ("conditional import with a stand-in", names, "is_none", lambda binding: False),
    ("overloads, setters and wrapping by hand", names, "_goes_on", lambda binding, found: False),
    ("star import with __all__", names, "exported", lambda scope: None),
    ("star import", names.Names, "_gives", lambda self, star, name: False),
    ("star import from another package", names.Names, "_starred_outside", lambda self, scope: False),
    ("re-export through a package", names.Names, "_end", lambda self, binding, name: OUTSIDE_SITES),
    ("a script beside its helper", modules.Modules, "_beside", lambda self, name, importer: None),
    ("a package below another folder", modules.Modules, "_by_package", lambda self, files: {}),
    ("global and nonlocal", builder._Builder, "visit_Global", lambda self, node: None),
    ("global and nonlocal", builder._Builder, "visit_Nonlocal", lambda self, node: None),
    ("self and its bases", recorder.Recorder, "_keep_attributes", lambda self: None),
    ("match", builder._Builder, "visit_Match", lambda self, node: self.generic_visit(node)),
    ("what lists are filled with", recorder.Recorder, "_grow", lambda self, container, expr: None),
    ("what lists are filled with", infer, "grown", lambda values, by: values),
    ("what the command line says", recorder.Recorder, "_option", lambda self, node: None),
    ("annotations, also as strings", recorder, "parse_annotations", lambda expr, lines: expr),
    ("annotations, also as strings", strings._Parser, "_shift", lambda self, node, value: None),
    ("a diamond", classes, "_merge", lambda lines: [e for line in lines for e in line]),
    ("a diamond", classes.Classes, "below", lambda self, cls: []),
    ("names with two underscores", classes.Classes, "member", lambda self, cls, name, kind: self._search(
        self.order(cls)[kind == "super" :], name, instance=kind != "class")),
    ("bare bases", classes, "_BARE", frozenset()),
    ("a base from another package", classes.Classes, "order", lambda self, cls: (cls,)),
    ("a method that an instance replaces", classes.Classes, "own", lambda self, cls, name, instance: Sites(
        tuple(cls.bindings.get(name) or (cls.attributes.get(name, ()) if instance else ())))),
    ("properties and class attributes", infer, "is_property", lambda binding: False),
    ("cls and static methods", infer, "_CLASSES_OF_METHODS", frozenset()),
    ("self reassigned", infer.Inference, "_from_sites", lambda self, sites, instance=False: self.binding(sites.items[0])
        if sites.items and not hasattr(sites.items[0], "path") else NOTHING),
    ("by annotation", annotations.Annotations, "_alias", lambda self, expr, scope: None),
    ("by annotation", annotations.Annotations, "_generic", lambda self, expr, scope, method: UNKNOWN),
    ("by assignment", infer, "take", lambda value, step: UNKNOWN),
    ("by annotation", infer, "subscript", lambda value, index: UNKNOWN),
    ("through calls", infer.Inference, "_result", lambda self, function: UNKNOWN),
    ("through calls", infer.Inference, "_known", lambda self, name, args, scope, plain: None),
    ("through other packages", infer, "of_iterables", lambda name, given: UNKNOWN),
    ("through other packages", infer, "holds_own", lambda values: False),
    ("through other packages", annotations, "_LISTS", frozenset()),
    ("fields of data classes", links, "parameters", lambda arguments: []),
    ("isinstance", builder, "holds", lambda test: {}),
    ("isinstance", builder, "fails", lambda test: {}),
    ("isinstance", builder, "after", lambda statement: {}),
    ("isinstance", recorder.Recorder, "_forget", lambda self, name: None),
    ("isinstance", recorder.Recorder, "_forget_assigned", lambda self, loop: None),
    ("isinstance", annotations.Annotations, "of_classes", lambda self, expr, scope: UNKNOWN),
    ("singletons set by class methods", recorder, "decorators", lambda node: set()),
    ("only the name is left", links.Linker, "_replaces", lambda self, binding, others: False),
    ("only the name is left", links, "_COMMON", frozenset()),
    ("what only subclasses have", links.Linker, "_guess", lambda self, *of: NO_GUESS),
    ("what the command line says", links.Linker, "_reached", lambda self, path: frozenset()),
    ("fields of data classes", links.Linker, "_field", lambda self, reference: OUTSIDE_SITES),
    ("locals and parameters are no links", links, "defines", lambda binding: True),
    ("a circle does not hide what one of its modules defines", names.Names, "member", lambda self, module, name:
        self._members.setdefault((module, name), Sites()) if (module, name) in self._members
        else self._members.setdefault((module, name), self._member(module, name))),
]  # fmt: skip


@pytest.mark.parametrize(("case", "owner", "name", "broken"), MUTATIONS, ids=[f"{m[0]}: {m[2]}" for m in MUTATIONS])
def test_without_the_rule_its_case_fails(monkeypatch, case, owner, name, broken):
    assert wrong(CASES[case]) == []
    monkeypatch.setattr(owner, name, broken)
    try:
        found = wrong(CASES[case])
    except (RecursionError, ValueError) as error:
        found = [repr(error)]
    assert found


def test_a_case_that_says_nothing_is_wrong():
    assert wrong({"a.py": "x = 1\n"}) == ["the case says nothing"]
    assert wrong({"a.py": "X = 1\nX  #> X=b.py:X\n"}) == ["a.py:2: X is a.py:X, not b.py:X"]
