"""References held against the source at the pin: what each mistake is called, and what is offered instead."""

from __future__ import annotations

import pytest

from sourcepanel.diagnostics import Code, Diagnostic, Level
from sourcepanel.errors import PinMismatch
from sourcepanel.lock import FileFacts, LinkFacts, RepositoryLock
from sourcepanel.names import misfit
from sourcepanel.reference import Finding, MalformedLink, OtherRef, Reference, SourceRef, Target, parse_code, parse_link
from sourcepanel.snapshot.base import PinnedSnapshot
from sourcepanel.source import Source
from sourcepanel.verify import Verifier
from tests.support.memory import COMMIT, TINY, MemorySnapshot, wheel, whole

PIN = f"https://github.com/example/tiny/blob/{COMMIT}/"


def reference(written: str, *names: str) -> Reference:
    """`path::symbol`, or what follows the pin in a GitHub link."""
    source = parse_code(written, [TINY]) if "::" in written else parse_link(PIN + written, [TINY])
    assert isinstance(source, SourceRef), source
    return Reference(page="notes/01.md", line=7, raw=written, text="", names=names, source=source)


def resolve(
    written: str, *names: str, source: Source | None = None, level: Level = Level.WARNING
) -> tuple[Target | None, tuple[Diagnostic, ...]]:
    verifier = Verifier({"tiny": source or whole()}, level=lambda code: level)
    return verifier.resolve(reference(written, *names))


@pytest.mark.parametrize(
    ("written", "kind", "lines", "symbol"),
    [
        ("tiny/training.py", "file", (None, None), None),
        ("tiny/core", "folder", (None, None), None),
        ("tiny/core/", "folder", (None, None), None),
        ("tiny/training.py::train_step", "definition", (29, 41), "train_step"),
        ("tiny/training.py::train_step.loss_func", "definition", (36, 37), "train_step.loss_func"),
        ("tiny/training.py::Trainer.Options.merge", "definition", (64, 65), "Trainer.Options.merge"),
        ("tiny/training.py::LEARNING_RATE", "definition", (5, 5), "LEARNING_RATE"),
        ("tiny/training.py::MOMENTUM", "definition", (5, 5), "MOMENTUM"),
        ("tiny/training.py::Trainer.kind", "definition", (47, 47), "Trainer.kind"),
        ("tiny/training.py#L29-L41", "definition", (29, 41), "train_step"),
        ("tiny/training.py#L33-L41", "definition", (33, 41), "train_step"),
        ("tiny/training.py#L33", "definition", (33, 33), "train_step"),
        ("tiny/training.py#L29-L40", "interior", (29, 40), "train_step"),
        ("tiny/training.py#L37", "interior", (37, 37), "train_step.loss_func"),
        ("tiny/training.py#L1-L3", "interior", (1, 3), None),
        ("README.md#L1-L3", "interior", (1, 3), None),
        ("tiny/data/form_feed.py#L4", "interior", (4, 4), "after"),
        ("tiny/data/latin1.py::Y", "definition", (2, 2), "Y"),
        ("tiny/data/weights.bin", "file", (None, None), None),
        ("docs/a%20b%23c.md", "file", (None, None), None),
    ],
)
def test_right_references(written: str, kind: str, lines: tuple[int | None, int | None], symbol: str | None):
    target, found = resolve(written)
    assert found == ()
    assert target is not None
    assert (target.kind, (target.start, target.end), target.symbol) == (kind, lines, symbol)


@pytest.mark.parametrize(
    ("written", "href"),
    [
        ("tiny/training.py::train_step", PIN + "tiny/training.py#L29-L41"),
        ("tiny/training.py#L37", PIN + "tiny/training.py#L37"),
        ("docs/a%20b%23c.md", PIN + "docs/a%20b%23c.md"),
        ("tiny/core/", PIN.replace("/blob/", "/tree/") + "tiny/core"),
    ],
)
def test_every_target_has_its_page_on_github(written: str, href: str):
    target, _ = resolve(written)
    assert target is not None
    assert target.href == href


@pytest.mark.parametrize(
    ("written", "code", "message", "fix"),
    [
        (
            "tiny/parallel.py",
            Code.MISSING_FILE,
            "no file or folder tiny/parallel.py at the pin",
            "tiny/core/parallel.py",
        ),
        (
            "tiny/trainin.py#L3",
            Code.MISSING_FILE,
            "no file or folder tiny/trainin.py",
            "did you mean tiny/training.py?",
        ),
        ("tiny/outside", Code.MISSING_FILE, "no file or folder tiny/outside", ""),
        ("tiny/training.py#L77", Code.LINE_PAST_END, "L77 is past the end: tiny/training.py has 76 lines", ""),
        ("tiny/training.py#L70-L77", Code.LINE_PAST_END, "has 76 lines", ""),
        ("tiny/core/__init__.py#L1", Code.LINE_PAST_END, "has 0 lines", ""),
        ("tiny/data/weights.bin#L1", Code.LINE_PAST_END, "is a binary file and has no lines", ""),
        ("tiny/core#L1", Code.LINE_PAST_END, "tiny/core is a folder and has no lines", ""),
        ("tiny/training.py#L41-L29", Code.REVERSED_RANGE, "the range runs backwards: L41-L29", "write #L29-L41"),
        ("tiny/training.py::trian_step", Code.MISSING_SYMBOL, "defines no trian_step", "train_step (L29-L41)"),
        ("tiny/training.py::loss_func", Code.MISSING_SYMBOL, "defines no loss_func", "train_step.loss_func (L36-L37)"),
        ("tiny/core/parallel.py::RowParalel", Code.MISSING_SYMBOL, "defines no RowParalel", "RowParallel (L18-L23)"),
        ("tiny/training.py::qqqqqq", Code.MISSING_SYMBOL, "defines no qqqqqq", ""),
        ("tiny/broken.py::half", Code.MISSING_SYMBOL, "not code that can be parsed", "link the lines instead"),
        ("tiny/core::Layer", Code.MISSING_SYMBOL, "is a folder and defines nothing", ""),
        ("tiny/training.py::schedule", Code.AMBIGUOUS_SYMBOL, "defines schedule 2 times", "#L70-L71, #L75-L76"),
        ("tiny/training.py::Trainer.weight", Code.AMBIGUOUS_SYMBOL, "Trainer.weight 2 times", "#L52-L55, #L57-L59"),
    ],
)
def test_wrong_references(written: str, code: Code, message: str, fix: str):
    _, told = resolve(written)
    assert [d.code for d in told] == [code]
    assert message in told[0].message
    assert fix in told[0].fix
    assert bool(fix) == bool(told[0].fix)


def test_a_reversed_range_still_opens():
    target, _ = resolve("tiny/training.py#L41-L29")
    assert target is not None
    assert (target.start, target.end, target.symbol) == (29, 41, "train_step")


def test_a_finding_says_where_it_stands_and_how_much_it_weighs():
    _, (found,) = resolve("tiny/training.py#L99", level=Level.ERROR)
    assert (found.page, found.line, found.link, found.level) == ("notes/01.md", 7, "tiny/training.py#L99", Level.ERROR)
    assert resolve("tiny/training.py#L99", level=Level.IGNORE) == (None, ())


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("tiny/training.py#L29-L41", "train_step"),
        ("tiny/training.py#L29-L41", "train_step()"),
        ("tiny/training.py#L33", "training.train_step"),
        ("tiny/training.py#L37", "train_step"),
        ("tiny/training.py#L20-L26", "train_step"),
        ("tiny/training.py#L20-L65", "Trainer"),
        ("tiny/training.py#L50", "self.model"),
        ("tiny/training.py#L64-L65", "Options.merge"),
        ("tiny/training.py#L64-L65", "Trainer.Options.merge"),
        ("tiny/training.py", "pretrain"),
        ("tiny/training.py", "functools"),
        ("tiny/training.py#L1", "training.py"),
        ("tiny/training.py#L1", "tiny.training"),
        ("tiny/core/__init__.py", "tiny.core"),
        ("tools/run.sh#L2", "python"),
        ("tiny/core/", "anything"),
        ("tiny/training.py::train_step", "train_step"),
    ],
)
def test_names_that_fit(written: str, name: str):
    assert resolve(written, name)[1] == ()


@pytest.mark.parametrize(
    ("written", "name", "message", "fix"),
    [
        ("tiny/training.py#L20-L21", "train_step", "which L20-L21 neither belongs", "train_step is at L29-L41"),
        ("tiny/training.py#L29", "train_ste", "names train_ste,", "did you mean train_step"),
        ("tiny/training.py#L33-L41", "rain_step", "names rain_step,", "train_step"),
        ("tiny/training.py#L1", "schedule", "L1 neither", "schedule is at L70-L71 and schedule is at L75-L76"),
        ("tiny/training.py#L64-L65", "Optionz.merge", "Optionz does not occur in tiny/training.py", "Trainer.Options"),
        ("tiny/training.py#L1", "self.model", "names self.model", "model occurs at L21, L25, L33, L39, L40"),
        ("tiny/training.py", "pretrian", "the file neither", "pretrain"),
        ("tools/run.sh#L1", "python", "names python", "python occurs at L2"),
        ("README.md", "train_step", "names train_step", ""),
    ],
)
def test_names_that_do_not_fit(written: str, name: str, message: str, fix: str):
    target, told = resolve(written, name)
    assert target is not None, "the place itself is right, so it still opens"
    assert [d.code for d in told] == [Code.TEXT_MISMATCH]
    assert message in told[0].message
    assert fix in told[0].fix


def test_every_name_of_a_text_is_held_against_the_range():
    _, told = resolve("tiny/training.py#L29-L41", "train_step", "nope", "loss_func", "neither_this")
    assert [d.message.split(",")[0] for d in told] == ["the text names nope", "the text names neither_this"]


def test_misfit_is_about_whole_words():
    source = whole()
    file = source.file("tiny/training.py")
    target = (
        Verifier({"tiny": source}, level=lambda code: Level.WARNING)
        .place(reference("tiny/training.py#L25").source)
        .target
    )
    assert file and target
    assert misfit("batches", target=target, file=file) is None
    assert misfit("batch", target=target, file=file) is not None


@pytest.mark.parametrize(
    ("written", "at_pin"),
    [
        ("tiny/training.py#L37", "at the pin L37 is inside train_step.loss_func"),
        ("tiny/training.py#L29-L41", "at the pin L29-L41 are train_step"),
        ("tiny/training.py#L1", "at the pin L1 is outside any symbol"),
        ("tiny/training.py", "the pin has this file (76 lines)"),
        ("tiny/training.py#L99", "L99 is past the end: tiny/training.py has 76 lines"),
        ("tiny/parallel.py", "no file or folder tiny/parallel.py at the pin (did you mean tiny/core/parallel.py?)"),
        ("tiny/core/", "the pin has the folder tiny/core"),
    ],
)
def test_a_link_to_another_ref_tells_what_the_pin_has(written: str, at_pin: str):
    problem = OtherRef("v1.0", reference(written).source)
    finding = Finding(page="notes/01.md", line=3, raw="…/v1.0/…", text="x", problem=problem)
    target, (told,) = Verifier({"tiny": whole()}, level=lambda code: Level.WARNING).resolve(finding)
    assert target is None
    assert (told.code, told.line, told.message) == (Code.OTHER_REF, 3, "points at v1.0, not at the pin v2.0 (af5c6bfe)")
    assert told.fix == at_pin


def test_a_malformed_link_says_why():
    finding = Finding(page="p.md", line=3, raw="r", text="x", problem=MalformedLink("the path holds a backslash"))
    _, (told,) = Verifier({"tiny": whole()}, level=lambda code: Level.WARNING).resolve(finding)
    assert (told.code, told.message) == (Code.MALFORMED_LINK, "the path holds a backslash")


def locked(**links: LinkFacts) -> RepositoryLock:
    """What the lock would hold of two files, right in all but what is given."""
    file = whole().file("tiny/training.py")
    assert file
    return RepositoryLock(
        url=TINY.url,
        ref="v2.0",
        commit=COMMIT,
        files={
            "tiny/training.py": FileFacts(blob=file.blob, lines=76),
            "pretrain.py": FileFacts(blob="1" * 40, lines=7),
        },
        links={"pretrain.py#L6": LinkFacts(kind="definition", start=6, end=6, symbol="main", hash="0" * 16), **links},
    )


MAIN = LinkFacts(kind="definition", start=6, end=7, symbol="main", hash="0" * 16)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("pretrain.py#L6", ("definition", 6, 6, "main")),
        ("pretrain.py::main", ("definition", 6, 7, "main")),
        ("pretrain.py", ("file", None, None, None)),
    ],
)
def test_what_the_wheel_lacks_is_answered_by_the_lock(written: str, expected: tuple[object, ...]):
    target, told = resolve(written, "main", source=wheel(locked=locked(**{"pretrain.py::main": MAIN})))
    assert told == ()
    assert target is not None
    assert (target.kind, target.start, target.end, target.symbol) == expected
    assert (target.has_text, target.blob) == (False, "1" * 40)


def test_what_neither_knows_is_not_claimed():
    source = wheel(locked=locked())
    assert resolve("pretrain.py#L5", source=source) == (None, ()), "the page audit tells it as not locked"
    _, (past,) = resolve("pretrain.py#L8", source=source)
    assert (past.code, past.message) == (Code.LINE_PAST_END, "L8 is past the end: pretrain.py has 7 lines")
    _, (missing,) = resolve("examples/run_loop.py", source=source)
    assert missing.code is Code.MISSING_FILE
    assert "neither the lock nor this build's source (tiny-engine 2.0) has examples/run_loop.py" in missing.message
    assert "sourcepanel lock" in missing.fix


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": 30}, "definition L30-L41 in train_step"),
        ({"symbol": "other"}, "in other"),
        ({"kind": "interior"}, "interior"),
        ({"hash": "f" * 16}, "ffffffffffffffff"),
    ],
)
def test_every_fact_of_the_lock_is_compared(change: dict[str, object], message: str):
    key = "tiny/training.py::train_step"
    right = Verifier({"tiny": whole()}, level=lambda code: Level.WARNING).place(reference(key).source).facts
    assert right
    assert resolve(key, source=whole(locked=locked(**{key: right})))[1] == ()
    _, (told,) = resolve(key, source=whole(locked=locked(**{key: right.model_copy(update=change)})))
    assert told.code is Code.LOCK_MISMATCH
    assert message in told.message


def test_the_facts_of_the_file_are_compared():
    lock = locked()
    other = {**lock.files, "tiny/training.py": FileFacts(blob="2" * 40, lines=75)}
    _, (told,) = resolve("tiny/training.py", source=whole(locked=lock.model_copy(update={"files": other})))
    assert told.code is Code.LOCK_MISMATCH
    assert "22222222 with 75 lines; at the pin it is" in told.message


def test_a_file_that_is_not_the_pins_is_refused_by_name():
    snapshot = PinnedSnapshot(MemorySnapshot(), {"tiny/training.py": "3" * 40}, "remove the cache")
    source = Source(TINY, snapshot=snapshot, locked=None)
    with pytest.raises(PinMismatch):
        source.file("tiny/training.py")
    target, (told,) = resolve("tiny/training.py", source=source)
    assert target is None
    assert told.code is Code.LOCK_MISMATCH
    assert "tiny/training.py is not the file of the pin" in told.message
