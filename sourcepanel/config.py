"""`sourcepanel.toml`: read once, at the edge, into frozen values."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sourcepanel.diagnostics import DEFAULT_LEVELS, Code, Level
from sourcepanel.errors import ConfigError

CONFIG_NAME = "sourcepanel.toml"


def _address(url: str) -> str:
    """A web address as links are compared with it; raises `ValueError`."""
    if urlsplit(url).path.endswith("/"):
        raise ValueError("write it without the slash at its end")
    return url


def _distinct(repositories: tuple[Repository, ...]) -> tuple[Repository, ...]:
    names = [repository.name for repository in repositories]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two have the name {twice}; each needs its own")
    return repositories


_Address = Annotated[str, AfterValidator(_address)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Alias(_Table):
    """Another address of the same pin, e.g. a fork with the same paths."""

    url: _Address
    """Web address of the repository, without a trailing slash."""
    refs: tuple[str, ...] = ()
    """Branches or tags there that stand for the pin (its own `ref` and `commit` always do)."""


class Wheel(_Table):
    """The PyPI package that carries (part of) the tree."""

    package: str
    version: str
    python: str = "3.12"
    """Python version to ask PyPI for; the wheel is unpacked as plain files and never imported."""
    sha256: tuple[str, ...] = ()
    """Accepted checksums of the wheel file (one per platform); empty accepts any, the lock still checks each file."""


class Version(_Table):
    """Another version of a repository, to which `drift` and `repin` can look."""

    ref: str
    """Tag or branch, for people."""
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
    wheel: str | None = None
    """Version of the wheel's package that carries (part of) that tree."""
    sha256: tuple[str, ...] = ()
    """As for `Wheel`."""
    panel: bool = False
    """Whether the panel shows linked lines there too, where they differ from the pin's."""


class License(_Table):
    """The notice shown beside every source view."""

    holder: str
    name: str
    path: str
    """Path of the licence file in the repository."""


class Repository(_Table):
    """A pin: one repository at one commit, and where to read it."""

    name: Annotated[str, StringConstraints(pattern=r"^\w[\w.\-]*$")]
    """Short name, unique, used in addresses: `Megatron-LM`."""
    url: _Address
    """Web address, without a trailing slash: `https://github.com/NVIDIA/Megatron-LM`."""
    ref: str
    """Tag or branch at the pin, for people."""
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
    aliases: tuple[Alias, ...] = ()
    checkout: Path | None = None
    """Local clone; `SOURCEPANEL_CHECKOUT` overrides it (`name=path` when there are several repositories)."""
    wheel: Wheel | None = None
    license: License
    versions: tuple[Version, ...] = ()
    """Versions that can be named without a clone at hand; the pin itself need not be among them."""


class Notes(_Table):
    """What the checks ask of reading notes; without headings there is no template."""

    pages: tuple[str, ...] = ()
    """Shell patterns over paths relative to `docs` of the pages that follow the template (`*` also matches `/`)."""
    headings: tuple[str, ...] = ()
    """Second-level headings that each such page has, in this order."""
    roadmap: Path | None = None
    """YAML file of rounds and chapters."""
    glossary: Path | None = None
    """The page whose fences `yaml glossary` hold the site's terms."""
    scripts: Path | None = None
    """The page with a section for each chapter's program; its id is how the program's file name begins (`ch06`)."""
    note_template: Path | None = None
    """What `sourcepanel new` writes: text with `{number}`, `{title}`, `{headings}`, `{question}`, `{script}` …"""
    script_template: Path | None = None
    """The same for the chapter's program; without it none is written."""


class Coverage(_Table):
    """What the pages about the coverage of the source count."""

    folders: tuple[str, ...] = ()
    """Folders of the source that count, with all below them; empty for everything."""


class Config(_Table):
    """The whole file; every path is relative to `root`."""

    root: Path = Field(exclude=True)
    """Folder that holds `sourcepanel.toml`."""
    docs: Path = Path("docs")
    lock: Path = Path("sourcepanel.lock")
    drift: Path = Path("sourcepanel.drift")
    """What `drift --save` writes for the roadmap; need not exist."""
    graph: Path = Path("sourcepanel.graph")
    """Where the nodes of the graph stand (a build's `sourcepanel/graph.json`); need not exist."""
    cache: Path = Path(".cache/sourcepanel")
    """Snapshots and rendered files; may be removed at any time. `SOURCEPANEL_CACHE` overrides it."""
    markdown: Path = Path("mkdocs.yml")
    """YAML file whose `markdown_extensions` say how pages are read."""
    traces: Path | None = None
    """Folder below `docs` with the traces of recorded runs; their events are marked beside the lines."""
    extent: Literal["linked", "reachable", "everything"] = "reachable"
    """Which files the site carries: the linked ones, those in which something is defined that they name too, or all."""
    exclude: tuple[str, ...] = ()
    """Shell patterns over paths relative to `docs` (`*` also matches `/`) of Markdown files that are not pages."""
    notes: Notes = Notes()
    coverage: Coverage = Coverage()
    levels: dict[Code, Level] = Field(default_factory=dict)
    repositories: Annotated[tuple[Repository, ...], AfterValidator(_distinct)] = Field(min_length=1)

    def level(self, code: Code) -> Level:
        """The level of a finding: the file's, else the default."""
        return self.levels.get(code, DEFAULT_LEVELS[code])

    def path(self, value: Path) -> Path:
        """A path of this file, made absolute."""
        return (self.root / value).resolve()

    @property
    def cache_dir(self) -> Path:
        """Absolute cache folder; made by those who write to it."""
        return self.path(Path(os.environ.get("SOURCEPANEL_CACHE") or self.cache))

    def pages(self) -> list[Path]:
        """All Markdown pages under `docs`, sorted, absolute; raises `ConfigError` where that is no folder."""
        docs = self.path(self.docs)
        if not docs.is_dir():
            raise ConfigError(f"{docs}: no such folder; `docs` in {CONFIG_NAME} must name that of the pages")
        names = ((page, page.relative_to(docs).as_posix()) for page in sorted(docs.rglob("*.md")))
        return [page for page, name in names if not any(fnmatchcase(name, pattern) for pattern in self.exclude)]

    def page_names(self) -> list[str]:
        """The same pages, each as its path relative to `docs`: the name it has in findings and in the lock."""
        docs = self.path(self.docs)
        return [page.relative_to(docs).as_posix() for page in self.pages()]


def load_config(path: Path = Path(CONFIG_NAME)) -> Config:
    """Read and validate; raises `ConfigError` naming file, line, key and the nearest valid key."""
    if path.is_dir():
        path = path / CONFIG_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; run in the folder that holds it, or name it with --config") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = at[1] if at else text.count("\n") + 1
        raise ConfigError(f"{path}:{line}: not valid TOML: {error}") from None
    try:
        return Config.model_validate({**data, "root": path.parent.resolve()})
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(path, text, e) for e in error.errors())) from None


def _explain(path: Path, text: str, error: object) -> str:
    """One pydantic error in our words, with the line on which the key stands."""
    assert isinstance(error, dict)
    loc = [part for part in error["loc"] if part != "[key]"]
    key, line = next((part for part in reversed(loc) if isinstance(part, str)), ""), _line_of(text, loc)
    dotted = ".".join(map(str, loc))
    if error["type"] == "extra_forbidden" or error["loc"][-1] == "[key]":
        known = sorted(_known_keys())
        near = difflib.get_close_matches(key, known, n=1)
        return f"{path}:{line}: unknown key {dotted}" + (f"; did you mean {near[0]}?" if near else "")
    return f"{path}:{line}: {dotted}: {error['msg']}"


def _line_of(text: str, loc: Sequence[str | int]) -> int:
    """The line of a key, each part of the way looked for after the one before; of its table where it is missing."""
    start = position = 0
    for index, part in enumerate(loc):
        if not isinstance(part, str):
            continue
        # The n-th table of an array is the n-th header of that name.
        nth = next((n for n in loc[index + 1 : index + 2] if isinstance(n, int)), 0)
        stands = rf"(?m)^[ \t]*(?:\[+[\w.\-]*)?\b{re.escape(part)}\b[ \t]*[\]=]|[{{,][ \t]*{re.escape(part)}[ \t]*="
        hits = list(re.compile(stands).finditer(text, position))
        if hits:
            hit = hits[min(nth, len(hits) - 1)]
            start, position = hit.start(), hit.end()
    return text.count("\n", 0, start) + 1


def _known_keys() -> set[str]:
    tables = (Config, Repository, Alias, Wheel, License, Version, Notes, Coverage)
    return {name for table in tables for name in table.model_fields} - {"root"} | {code.value for code in Code}
