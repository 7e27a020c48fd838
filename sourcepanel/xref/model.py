"""What the index says, as values: definitions, the identifiers that lead to them, and who uses what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Certainty = Literal["certain", "likely"]
"""`certain`: by Python's own rules for names, by the class that `self` stands for, or by an annotation, this and
nothing else of the snapshot is meant. `likely`: one of several, or one that only its name points at."""

Status = Literal["certain", "likely", "local", "outside", "unknown"]
"""What became of an identifier. `local`: a parameter or a function's variable; `outside`: the standard library or
another package; `unknown`: nothing can be said."""

DefinitionKind = Literal["module", "class", "function", "method", "variable", "attribute", "option"]
"""`attribute`: known from `self.name = …` in a method alone; `option`: of the command line, `--name`."""

UseKind = Literal["call", "import", "base", "set", "other"]
"""How a definition is used; a decorator is a call, `set` an assignment after the first."""

USE_KINDS: tuple[UseKind, ...] = ("call", "import", "base", "set", "other")


Id = tuple[str, str, int]
"""Path, qualified name and line: tells a definition from every other of the snapshot."""


@dataclass(frozen=True)
class Definition:
    """Where something is defined. Lines are 1-based and inclusive."""

    path: str
    name: str
    """Qualified within the file, as `Symbol.name`; empty for the file itself."""
    kind: DefinitionKind
    start: int = 0
    """First line, decorators included; 0 for a file."""
    line: int = 0
    """Where the name stands."""
    end: int = 0
    column: int = 0
    """Where on `line` the name starts, in characters from 0."""
    signature: str = ""
    """`(x) -> int` for callables, `(Base)` for classes, `: int = 4` for variables, cut where long."""
    doc: str = ""
    """First line of the docstring; for a variable, of the string that stands below it."""

    @property
    def key(self) -> str:
        """Address in the panel without the repository: `path`, `path#L10`, `path#L10-L20`."""
        if not self.start:
            return self.path
        return f"{self.path}#L{self.start}" + (f"-L{self.end}" if self.end != self.start else "")

    @property
    def id(self) -> Id:
        """What names it."""
        return self.path, self.name, self.line


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One identifier in a file, and the definitions it leads to."""

    line: int
    start: int
    end: int
    """Columns in characters from 0, the end exclusive, as `SourceFile.lines` has them."""
    targets: tuple[Definition, ...]
    """One for a certain link; for a likely one up to `MAX_TARGETS`, the best first."""
    certainty: Certainty
    kind: UseKind


@dataclass(frozen=True, slots=True)
class Use:
    """One place that uses a definition."""

    path: str
    line: int
    kind: UseKind
    certainty: Certainty


MAX_TARGETS = 4
"""An identifier that may mean more things than this is no link."""


@dataclass(frozen=True)
class FileIndex:
    """All that is known of one Python file."""

    path: str
    definitions: tuple[Definition, ...] = ()
    """In order of their lines; the file itself is not among them."""
    occurrences: tuple[Occurrence, ...] = ()
    """In order of their places, never overlapping."""
    uses: Mapping[Id, tuple[Use, ...]] = field(default_factory=dict)
    """`Definition.id` → who uses it; in order of path and line. Also of the file itself."""
    overrides: Mapping[Id, tuple[Definition, ...]] = field(default_factory=dict)
    """`Definition.id` of a method → the methods of subclasses that take its place."""
    counts: Mapping[Status, int] = field(default_factory=dict)
    """How many identifiers met which fate."""
    parsed: bool = True
    """False for a file that Python cannot parse: it has nothing of all this."""
