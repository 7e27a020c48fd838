"""What every kind of record shares: a fence of YAML read into a model, and each mistake in it told with its line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from sourcepanel.diagnostics import Code
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.outline import Fence
from sourcepanel.notes.yaml_text import YamlProblem, YamlText, load_yaml

Model = TypeVar("Model", bound=BaseModel)


def one_text(value: object) -> str:
    """The text of a field, its white space collapsed; raises `ValueError`."""
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        return " ".join(str(value).split())
    raise ValueError(f"must be text, not {value!r}; quote it")


Text = Annotated[str, BeforeValidator(one_text)]
Definition = Annotated[str, StringConstraints(pattern=r"^[^\s`:]+::[A-Za-z_][\w.]*$")]
"""`path::symbol`, without backticks."""


@dataclass(frozen=True)
class Kind(Generic[Model]):
    """One kind of record."""

    fence: str
    """What follows the three backticks: `yaml function-record`."""
    model: type[Model]
    cures: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By field: what to say, and what to write, whatever pydantic finds wrong with it."""
    missing: Callable[[str], str] = "add `{}: …`".format
    """How a field that is left away is added."""

    def is_in(self, fence: Fence) -> bool:
        """Whether this fence holds such a record."""
        return fence.info.split() == self.fence.split()

    def read(self, body: Sequence[str], *, line: int) -> Parsed[Model]:
        """The record, or what is wrong with it; `line` is that of the opening fence."""
        try:
            text = load_yaml("\n".join(body), offset=line)
        except YamlProblem as error:
            fix = "quote a value that starts with ` or holds `: `" if "not valid" in str(error) else "keep one of them"
            return Parsed(line, findings=(found(error.line, self.fence, f"the record: {error}", fix),))
        if not isinstance(text.data, dict):
            first = next(iter(self.model.model_fields))
            fix = f"write `{first}: …` and each other field on a line of its own"
            return Parsed(line, findings=(found(line, self.fence, "the record is not a list of fields", fix),))
        try:
            return Parsed(line, record=self.model.model_validate(text.data), text=text)
        except ValidationError as error:
            findings = tuple(self._explain(problem, text, line) for problem in error.errors())
            return Parsed(line, text=text, findings=findings)

    def _explain(self, problem: ErrorDetails, text: YamlText, line: int) -> Finding:
        name = str(problem["loc"][0])
        at = text.line((name,)) if (name,) in text.lines else line
        if problem["type"] == "missing":
            return found(at, name, f"the record lacks the field {name}", self.missing(name))
        if problem["type"] == "extra_forbidden":
            near = difflib.get_close_matches(name, self.model.model_fields, n=1)
            fix = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(self.model.model_fields)}"
            return found(at, name, f"unknown field {name}", fix)
        if name in self.cures:
            message, fix = self.cures[name]
            return found(at, name, f"field {name} {message}", fix)
        return found(at, name, f"field {name} {str(problem['msg']).removeprefix('Value error, ')}")


@dataclass(frozen=True)
class Parsed(Generic[Model]):
    """A fence as read: the record, or the findings that say why there is none."""

    line: int
    """Of the opening fence."""
    record: Model | None = None
    text: YamlText | None = None
    findings: tuple[Finding, ...] = ()

    def line_of(self, field: str) -> int:
        """The line of a field; of the fence, where the field is left away."""
        return self.text.line((field,)) if self.text and (field,) in self.text.lines else self.line


def found(line: int, subject: str, message: str, fix: str = "") -> Finding:
    """A record that is not valid."""
    return Finding(code=Code.RECORD, line=line, subject=subject, message=message, fix=fix)
