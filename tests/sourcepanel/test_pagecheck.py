"""A page against the lock's account of it."""

from __future__ import annotations

import pytest

from sourcepanel.diagnostics import Code, Level
from sourcepanel.ledger import audit, looks_like
from sourcepanel.lock import LinkFacts, RepositoryLock, page_entry
from sourcepanel.pagecheck import PageCheck, PageReport
from sourcepanel.reference import Finding, MalformedLink, Reference, SourceRef
from sourcepanel.source import Source
from sourcepanel.verify import Verifier
from tests.support.memory import COMMIT, TINY, wheel, whole

T = "tiny/training.py"


def reference(line: int, start: int, end: int | None = None, *names: str, path: str = T) -> Reference:
    source = SourceRef(repository="tiny", path=path, start=start, end=end or start)
    return Reference(page="p.md", line=line, raw=source.key, text="", names=names, source=source)


def symbol(line: int, name: str, path: str = T) -> Reference:
    source = SourceRef(repository="tiny", path=path, symbol=name)
    return Reference(page="p.md", line=line, raw=source.key, text=name, names=(), source=source)


def check(
    *found: Reference | Finding,
    locked: dict[str, int] | None,
    source: Source | None = None,
    levels: dict[Code, Level] | None = None,
    text: str = "",
) -> PageReport:
    sources = {"tiny": source or whole()}
    verifier = Verifier(sources, level=lambda code: (levels or {}).get(code, Level.WARNING))
    page = PageCheck("p.md", verifier=verifier, sources=sources, locked=locked)
    for each in found:
        page.resolve(each)
    return page.report(text=text)


def told(report: PageReport) -> list[tuple[str, int, str]]:
    return [(d.code.value, d.line, d.message) for d in report.diagnostics]


def test_a_page_as_the_lock_has_it():
    twice = [reference(3, 29, 41, "train_step"), reference(9, 29, 41, "train_step"), symbol(4, "pretrain")]
    entries = {"tiny:tiny/training.py#L29-L41 (train_step)": 2, "tiny:tiny/training.py::pretrain": 1}
    report = check(*twice, locked=entries)
    assert report.diagnostics == ()
    assert [t.symbol for t in report.targets] == ["train_step", "train_step", "pretrain"]
    assert (report.total, report.from_source, report.from_lock, report.checked) == (3, 3, 0, 3)


@pytest.mark.parametrize(
    ("locked", "expected"),
    [
        ({}, [("not-locked", 3, "the lock does not hold tiny:tiny/training.py#L29 for this page")]),
        (
            {"tiny:tiny/training.py#L28": 1},
            [
                (
                    "not-locked",
                    3,
                    "the lock does not hold tiny:tiny/training.py#L29 for this page; "
                    "it has tiny:tiny/training.py#L28 here: a slip of one digit?",
                )
            ],
        ),
        (
            {"tiny:tiny/training.py#L290-L299": 1},
            [
                (
                    "not-locked",
                    3,
                    "the lock does not hold tiny:tiny/training.py#L29 for this page; "
                    "it has tiny:tiny/training.py#L290-L299 here",
                )
            ],
        ),
        (
            {"tiny:tiny/training.py#L29": 3},
            [
                (
                    "stale-lock",
                    1,
                    "the lock holds tiny:tiny/training.py#L29 for this page 2 times more, which the page does not",
                )
            ],
        ),
        (
            {"tiny:tiny/training.py#L29": 1, "tiny:README.md": 1},
            [("stale-lock", 1, "the lock holds tiny:README.md for this page, which the page does not")],
        ),
        (
            {"tiny:README.md": 1},
            [
                ("stale-lock", 1, "the lock holds tiny:README.md for this page, which the page does not"),
                ("not-locked", 3, "the lock does not hold tiny:tiny/training.py#L29 for this page"),
            ],
        ),
        ({"tiny:tiny/training.py#L29 (pretrain)": 1}, [("not-locked", 3, None)]),
    ],
)
def test_a_page_that_differs(locked: dict[str, int], expected: list[tuple[str, int, str | None]]):
    found = told(check(reference(3, 29), locked=locked))
    assert [(code, line) for code, line, _ in found] == [(code, line) for code, line, _ in expected]
    assert all(message in (None, said) for (_, _, message), (_, _, said) in zip(expected, found, strict=True))


def test_once_more_than_the_lock_says_is_told_at_the_last():
    report = check(reference(3, 29), reference(5, 29), locked={"tiny:tiny/training.py#L29": 1})
    assert [(d.code, d.line) for d in report.diagnostics] == [(Code.NOT_LOCKED, 5)]


def test_a_page_the_lock_does_not_know_is_told_once():
    report = check(reference(5, 29), reference(6, 30), reference(7, 31), locked=None)
    assert told(report) == [("not-locked", 5, "the lock does not know this page (3 references)")]
    assert check(locked=None).diagnostics == ()


def test_what_is_wrong_anyway_is_not_told_twice():
    report = check(reference(5, 99), locked={"tiny:tiny/training.py#L9": 1})
    assert [(d.code, d.line) for d in report.diagnostics] == [(Code.LINE_PAST_END, 5)]


def test_what_is_only_information_does_not_hide_the_lock():
    levels = {Code.TEXT_MISMATCH: Level.INFO}
    report = check(reference(5, 1, 2, "nope"), locked={}, levels=levels)
    assert [d.code for d in report.diagnostics] == [Code.TEXT_MISMATCH, Code.NOT_LOCKED]


@pytest.mark.parametrize("code", [Code.NOT_LOCKED, Code.STALE_LOCK])
def test_levels_hold_for_the_lock_too(code: Code):
    found = check(reference(3, 29), locked={"tiny:README.md": 1}, levels={code: Level.IGNORE})
    assert [d.code for d in found.diagnostics] == [{Code.NOT_LOCKED, Code.STALE_LOCK}.difference({code}).pop()]


def test_a_listed_reference_needs_facts():
    locked = RepositoryLock(url=TINY.url, ref="v2.0", commit=COMMIT, links={})
    report = check(reference(3, 29), locked={"tiny:tiny/training.py#L29": 1}, source=whole(locked=locked))
    assert told(report) == [
        ("lock-mismatch", 3, "the lock lists tiny/training.py#L29 for this page, but has no facts about it")
    ]


def test_shares_tell_who_answered():
    facts = {"pretrain.py#L6": LinkFacts(kind="definition", start=6, end=6, symbol="main", hash="0" * 16)}
    lock = {"files": {"pretrain.py": {"blob": "1" * 40, "lines": 7}}, "links": facts}
    source = wheel(locked=RepositoryLock.model_validate({"url": TINY.url, "ref": "v2.0", "commit": COMMIT, **lock}))
    found = [
        reference(1, 29),
        reference(2, 6, path="pretrain.py"),
        reference(3, 8, path="pretrain.py"),
        reference(4, 5, path="pretrain.py"),
        reference(5, 1, path="README.md"),
        Finding(page="p.md", line=6, raw="r", text="", problem=MalformedLink("why")),
    ]
    report = check(*found, locked=None, source=source)
    assert (report.total, report.from_source, report.from_lock, report.checked) == (6, 2, 2, 4)


def test_a_reference_that_a_slip_unmade_is_told_on_its_line():
    text = "# A\n\n`pretrain.py::main`\n\n`pretrain.pz::main` and https://x.org/README.md\n"
    locked = {"tiny:pretrain.py::main": 2}
    (found,) = check(symbol(3, "main", "pretrain.py"), locked=locked, text=text).diagnostics
    assert (found.code, found.line) == (Code.STALE_LOCK, 5)
    assert looks_like("tiny:pretrain.py::main", "nothing\nlike it") == 1
    assert looks_like("tiny:a/b.py#L1 (name)", "x\nhttps://g.com/o/r/blob/v/a/c.py#L1\n") == 2


def test_audit_pairs_each_entry_once():
    found = [reference(1, 10), reference(2, 11)]
    result = audit(found, locked={"tiny:tiny/training.py#L12": 1})
    assert [unlocked.instead for unlocked in result.unlocked] == ["tiny:tiny/training.py#L12", None]
    assert result.stale == ()
    assert page_entry(found[0]) == "tiny:tiny/training.py#L10"
