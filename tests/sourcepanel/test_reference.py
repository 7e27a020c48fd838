"""Links and inline code into values and back."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sourcepanel.config import Alias, License, Repository
from sourcepanel.reference import (
    MalformedLink,
    OtherRef,
    SourceRef,
    Target,
    format_link,
    identifiers,
    parse_code,
    parse_link,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LICENSE = License(holder="x", name="x", path="LICENSE")
TINY = Repository(
    name="tiny",
    url="https://github.com/Example/Tiny",
    ref="v2.0",
    commit=COMMIT,
    aliases=(Alias(url="https://github.com/someone/tiny-study", refs=("main", "reading/notes")),),
    checkout=Path("tiny"),
    license=LICENSE,
)
OTHER = Repository(name="other", url="https://github.com/example/other", ref="v1", commit="f" * 40, license=LICENSE)
REPOSITORIES = (TINY, OTHER)
FILES = {"a.py", "pkg/mod.py", "pkg"}
HOME = "https://github.com/Example/Tiny"


def exists(repository: str, path: str) -> bool:
    return repository == "tiny" and path in FILES


def at(path: str, start: int | None = None, end: int | None = None, *, folder: bool = False, repository="tiny"):
    return SourceRef(repository=repository, path=path, folder=folder, start=start, end=end or start)


FORMS = {
    # the views
    f"{HOME}/blob/v2.0/pkg/mod.py": at("pkg/mod.py"),
    f"{HOME}/raw/v2.0/pkg/mod.py": at("pkg/mod.py"),
    f"{HOME}/blame/v2.0/pkg/mod.py#L4": at("pkg/mod.py", 4),
    f"{HOME}/tree/v2.0/pkg": at("pkg", folder=True),
    f"{HOME}/tree/v2.0/pkg/": at("pkg", folder=True),
    f"{HOME}/blob/v2.0/pkg/": at("pkg", folder=True),
    f"{HOME}/tree/v2.0": at("", folder=True),
    f"{HOME}/tree/v2.0/": at("", folder=True),
    f"{HOME}/tree/v2.0#readme": at("", folder=True),
    "https://raw.githubusercontent.com/Example/Tiny/v2.0/pkg/mod.py": at("pkg/mod.py"),
    "https://raw.githubusercontent.com/Example/Tiny/refs/tags/v2.0/pkg/mod.py": at("pkg/mod.py"),
    # the lines
    f"{HOME}/blob/v2.0/a.py#L10": at("a.py", 10),
    f"{HOME}/blob/v2.0/a.py#L010": at("a.py", 10),
    f"{HOME}/blob/v2.0/a.py#L10-L20": at("a.py", 10, 20),
    f"{HOME}/blob/v2.0/a.py#L10-20": at("a.py", 10, 20),
    f"{HOME}/blob/v2.0/a.py#L20-L10": at("a.py", 20, 10),
    f"{HOME}/blob/v2.0/a.py#L10C5-L12C3": at("a.py", 10, 12),
    f"{HOME}/blob/v2.0/a.py#L10C5": at("a.py", 10),
    f"{HOME}/blob/v2.0/a.py?plain=1#L10%2DL20": at("a.py", 10, 20),
    f"{HOME}/blob/v2.0/a.py#": at("a.py"),
    f"{HOME}/blob/v2.0/README.md#how-to": at("README.md"),
    # the spellings of one address
    f"{HOME}/blob/v2.0/a%20b/%E6%B3%A8.py?plain=1": at("a b/注.py"),
    f"{HOME}/blob/v2.0/a%252e.py": at("a%2e.py"),
    f"{HOME}/blob/v2.0/pkg%2Fmod.py": at("pkg/mod.py"),
    "http://www.GitHub.com/eXample/tINY/blob/v2.0/a.py": at("a.py"),
    "//github.com/Example/Tiny/blob/v2.0/a.py": at("a.py"),
    "https://github.com:443/Example/Tiny.git/blob/v2.0/a.py": at("a.py"),
    f"  {HOME}/blob/v2.0/a.py\n": at("a.py"),
    # the pin under its other names
    f"{HOME}/blob/{COMMIT}/a.py": at("a.py"),
    f"{HOME}/blob/{COMMIT[:7]}/a.py": at("a.py"),
    f"{HOME}/blob/{COMMIT[:9].upper()}/a.py": at("a.py"),
    f"{HOME}/blob/refs/tags/v2.0/a.py": at("a.py"),
    "https://github.com/someone/tiny-study/blob/main/a.py#L3": at("a.py", 3),
    "https://github.com/someone/tiny-study/blob/v2.0/a.py": at("a.py"),
    "https://github.com/someone/tiny-study/tree/reading/notes/pkg": at("pkg", folder=True),
    "https://github.com/example/other/blob/v1/x.py": at("x.py", repository="other"),
    # not the pin
    f"{HOME}/blob/main/pkg/mod.py#L7": OtherRef("main", at("pkg/mod.py", 7)),
    f"{HOME}/tree/main": OtherRef("main", at("", folder=True)),
    f"{HOME}/blob/{COMMIT[:6]}/a.py": OtherRef(COMMIT[:6], at("a.py")),
    f"{HOME}/blob/{'e' * 40}/a.py": OtherRef("e" * 40, at("a.py")),
    f"{HOME}/blob/feature/deep/name/pkg/mod.py#L1-L2": OtherRef("feature/deep/name", at("pkg/mod.py", 1, 2)),
    f"{HOME}/tree/fix/it/pkg/": OtherRef("fix/it", at("pkg", folder=True)),
    f"{HOME}/blob/feature/deep/unknown.py": OtherRef("feature", at("deep/unknown.py")),
    "https://github.com/someone/tiny-study/blob/reading/pkg/mod.py": OtherRef("reading", at("pkg/mod.py")),
    # no source of a pinned repository
    HOME: None,
    f"{HOME}/": None,
    f"{HOME}/issues/12": None,
    f"{HOME}/pull/3/files#diff-1R20": None,
    f"{HOME}/commit/{COMMIT}": None,
    f"{HOME}/releases/tag/v2.0": None,
    f"{HOME}/actions": None,
    f"{HOME}/issues\\": None,
    f"{HOME}/compare/v1...v2": None,
    "https://github.com/Example/Tiny2/blob/v2.0/a.py": None,
    "https://github.com/Example/blob/v2.0/a.py": None,
    "https://github.com.evil.example/Example/Tiny/blob/v2.0/a.py": None,
    "https://notgithub.com/Example/Tiny/blob/v2.0/a.py": None,
    "https://github.com:8080/Example/Tiny/blob/v2.0/a.py": None,
    "https://gitlab.com/Example/Tiny/blob/v2.0/a.py": None,
    "ftp://github.com/Example/Tiny/blob/v2.0/a.py": None,
    "mailto:someone@github.com": None,
    "../blob/v2.0/a.py": None,
    "#L10": None,
    "": None,
    "https://[": None,
    "https://github.com:port/Example/Tiny/blob/v2.0/a.py": None,
}


@pytest.mark.parametrize(("link", "expected"), FORMS.items(), ids=FORMS)
def test_every_form_of_a_link(link, expected):
    assert parse_link(link, REPOSITORIES, exists=exists) == expected


MALFORMED = {
    f"{HOME}/blob/v2.0/../../etc/passwd": "`..`",
    f"{HOME}/blob/v2.0/%2e%2e/%2E%2E/etc/passwd": "`..`",
    f"{HOME}/blob/v2.0/..%2f..%2fetc/passwd": "`..`",
    f"{HOME}/blob/v2.0/pkg/./mod.py": "`..`",
    f"{HOME}/blob/../blob/v2.0/a.py": "`..`",
    "https://github.com/x/../Example/Tiny/blob/v2.0/a.py": "`..`",
    "https://raw.githubusercontent.com/Example/Tiny/v2.0/../a.py": "`..`",
    f"{HOME}/blob/v2.0/..\\..\\etc\\passwd": "backslash",
    f"{HOME}/blob/v2.0/pkg%5Cmod.py": "backslash",
    "https:\\\\github.com\\Example\\Tiny\\blob\\v2.0\\a.py": "backslash",
    f"{HOME}/blob/v2.0/a%00.py": "control",
    f"{HOME}/blob/v2.0/a\0.py": "control",
    f"{HOME}/blob/v2.0/a\ud800.py": "control",
    f"{HOME}/blob/v2.0/%ff.py": "UTF-8",
    f"{HOME}/blob/v2.0/%c0%ae%c0%ae/a.py": "UTF-8",
    f"{HOME}/blob/v2.0/pkg//mod.py": "empty segment",
    f"{HOME}/blob": "no branch",
    f"{HOME}/tree/": "no branch",
    f"{HOME}/blob/v2.0": "no file",
    f"{HOME}/blob/v2.0/": "no file",
    f"{HOME}/blob/v2.0/a.py#L": "#L10",
    f"{HOME}/blob/v2.0/a.py#10": "#L10",
    f"{HOME}/blob/v2.0/a.py#l10": "#L10",
    f"{HOME}/blob/v2.0/a.py#L10-": "#L10",
    f"{HOME}/blob/v2.0/a.py#L10,L20": "#L10",
    f"{HOME}/blob/v2.0/a.py#L10-L20-L30": "#L10",
    f"{HOME}/blob/v2.0/a.py#L１０": "#L10",
    f"{HOME}/blob/v2.0/a.py#train_step": "#L10",
    f"{HOME}/blob/v2.0/a.py#L{'9' * 5000}": "#L10",
    f"{HOME}/blob/v2.0/a.py#L0": "from 1",
    f"{HOME}/blob/v2.0/a.py#L1-L0": "from 1",
    f"{HOME}/tree/v2.0/pkg#L3": "folder",
    f"{HOME}/blob/v2.0/a.py/#L3": "folder",
}


@pytest.mark.parametrize(("link", "says"), MALFORMED.items(), ids=[link[:90] for link in MALFORMED])
def test_a_link_that_cannot_be_understood_says_why(link, says):
    found = parse_link(link, REPOSITORIES, exists=exists)
    assert isinstance(found, MalformedLink)
    assert says in found.reason


def test_without_a_tree_to_ask_the_ref_is_the_first_segment():
    found = parse_link(f"{HOME}/blob/feature/deep/pkg/mod.py", REPOSITORIES)
    assert found == OtherRef("feature", at("deep/pkg/mod.py"))


def test_a_very_long_link_is_read_in_one_go():
    asked = []
    link = f"{HOME}/blob/" + "a/" * 200_000
    assert isinstance(parse_link(link, REPOSITORIES, exists=lambda _, path: bool(asked.append(path))), OtherRef)
    assert len(asked) < 10


SEGMENT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1).filter(
    lambda text: text not in (".", "..") and "\ufffd" not in text
)
PATHS = st.lists(SEGMENT, min_size=1, max_size=5).map("/".join)
LINES = st.integers(1, 10**9 - 1)


@st.composite
def source_refs(draw):
    folder = draw(st.booleans())
    path = draw(st.one_of(st.just(""), PATHS) if folder else PATHS)
    start, end = draw(st.just((None, None)) if folder else st.one_of(st.just((None, None)), st.tuples(LINES, LINES)))
    return SourceRef(
        repository=draw(st.sampled_from(["tiny", "other"])), path=path, folder=folder, start=start, end=end
    )


@given(source_refs())
@example(SourceRef(repository="tiny", path="blob/v2.0/#?%2e &;=+.py", start=20, end=10))
@example(SourceRef(repository="tiny", path="refs/heads/x.py"))
def test_parse_undoes_format(ref):
    repository = next(r for r in REPOSITORIES if r.name == ref.repository)
    assert parse_link(format_link(ref, repository), REPOSITORIES, exists=exists) == ref


# fmt: off
PIECES = st.sampled_from([
    "https:", "//", "/", "github.com", "raw.githubusercontent.com", "Example", "Tiny", "blob", "tree", "v2.0", "a.py",
    "..", "%2e", "%", "%ff", "\\", "#", "L", "1", "-", "?", "[", "]", ":", "@", "::", "f", "\0", "\n", "refs", "heads",
])
# fmt: on


@given(st.one_of(st.text(), st.lists(PIECES).map("".join), st.lists(PIECES).map(lambda p: f"{HOME}/blob/{''.join(p)}")))
def test_no_text_crashes_a_parser_or_leaves_the_tree(text):
    for found in (parse_link(text, REPOSITORIES, exists=exists), parse_code(text, REPOSITORIES)):
        source = found.source if isinstance(found, OtherRef) else found
        if isinstance(source, SourceRef):
            assert not {"..", "."} & set(source.path.split("/"))
            assert not set(source.path) & set("\0\\")
            assert not source.path.startswith("/")


def code(path: str, symbol: str, repository: str = "tiny"):
    return SourceRef(repository=repository, path=path, symbol=symbol)


CODE = {
    "pkg/mod.py::train_step": code("pkg/mod.py", "train_step"),
    "pkg/mod.py::train_step()": code("pkg/mod.py", "train_step"),
    " pkg/mod.py::Trainer.Options.merge ": code("pkg/mod.py", "Trainer.Options.merge"),
    "pkg/mod.py::Trainer::step": code("pkg/mod.py", "Trainer.step"),
    "a.py::f": code("a.py", "f"),
    "kernels.cuh::launch": code("kernels.cuh", "launch"),
    "scripts/run::main": code("scripts/run", "main"),
    "tests/test_x.py::test_y": code("tests/test_x.py", "test_y"),
    "pkg/mod.py::train-step": code("pkg/mod.py", "train-step"),
    "tiny:pkg/mod.py::f": code("pkg/mod.py", "f"),
    "other:a.py::f": code("a.py", "f", "other"),
    "std::vector": None,
    "std::vector<int>": None,
    "torch::Tensor": None,
    "at::cuda::stream": None,
    "torch.nn::Module": None,
    "c10d/x::~Store": None,
    "::f": None,
    "a.py::": None,
    "a.py": None,
    "a.py: :f": None,
    "pkg/mod.py::f(x)": None,
    "torchrun pkg/mod.py::f": None,
    "https://github.com/a.py::f": None,
    "": None,
}


@pytest.mark.parametrize(("text", "expected"), CODE.items(), ids=CODE)
def test_inline_code(text, expected):
    assert parse_code(text, REPOSITORIES) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("../etc/x.py::f", "`..`"),
        ("pkg/../mod.py::f", "`..`"),
        ("pkg\\mod.py::f", "backslash"),
        ("/etc/x.py::f", "slash"),
        ("pkg//x.py::f", "slash"),
        ("pkg/\0.py::f", "control"),
        ("unknown:pkg/mod.py::f", "tiny, other"),
    ],
)
def test_inline_code_that_cannot_be_understood_says_why(text, says):
    found = parse_code(text, REPOSITORIES)
    assert isinstance(found, MalformedLink)
    assert says in found.reason


NAME = st.text(string.ascii_letters + "_", min_size=1)


@given(st.lists(NAME, min_size=1, max_size=3).map("/".join), st.lists(NAME, min_size=1, max_size=3).map(".".join))
def test_a_code_reference_is_its_own_key(path, symbol):
    ref = SourceRef(repository="tiny", path=f"{path}.py", symbol=symbol)
    assert parse_code(ref.key, REPOSITORIES) == ref
    assert parse_code(f"tiny:{ref.key}", REPOSITORIES) == ref


@pytest.mark.parametrize(
    ("text", "in_code", "in_prose"),
    [
        ("train_step", ("train_step",), ("train_step",)),
        (" Trainer.step() ", ("Trainer.step",), ("Trainer.step",)),
        ("DistributedOptimizer", ("DistributedOptimizer",), ("DistributedOptimizer",)),
        ("GPTModel", ("GPTModel",), ("GPTModel",)),
        ("train()", ("train",), ("train",)),
        ("train", ("train",), ()),
        ("GPUs", ("GPUs",), ()),
        ("pkg/mod.py::f", ("f",), ("f",)),
        ("training.py", (), ()),
        ("源码", (), ()),
        ("两个 word", (), ()),
        ("a + b", (), ()),
        ("", (), ()),
    ],
)
def test_what_counts_as_a_name(text, in_code, in_prose):
    assert identifiers(text, code=True) == in_code
    assert identifiers(text, code=False) == in_prose


def test_keys():
    assert at("", folder=True).key == "/"
    assert at("pkg", folder=True).key == "pkg/"
    assert at("a.py").key == "a.py"
    assert at("a.py", 3).key == "a.py#L3"
    assert at("a.py", 9, 3).key == "a.py#L9-L3"
    assert code("a.py", "A.b").key == "a.py::A.b"
    fields = {"repository": "tiny", "symbol": None, "blob": "", "has_text": True, "href": ""}
    assert Target(path="pkg", kind="folder", start=None, end=None, **fields).key == "tiny/pkg/"
    assert Target(path="", kind="folder", start=None, end=None, **fields).key == "tiny/"
    assert Target(path="a.py", kind="interior", start=3, end=9, **fields).key == "tiny/a.py#L3-L9"
