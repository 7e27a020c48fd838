"""Function records: what one function takes, gives, calls and changes, as YAML in a fence `yaml function-record`.

Every field is written out; a list that would be empty says `none`, so that "none" is a claim and not an omission.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from sourcepanel.diagnostics import Code
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.outline import Fence, read_outline
from sourcepanel.notes.yaml_text import YamlProblem, YamlText, load_yaml

FENCE = "yaml function-record"

NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Item:
    """One entry of a list: a name with its meaning, or a text alone."""

    name: str
    """An identifier or `path::symbol`; empty for a text alone."""
    text: str
    """Inline Markdown; may be empty when there is a name."""


def _items(value: object) -> object:
    """`none`, a text, a list of texts and `name: meaning`, or a mapping."""
    if value == NONE:
        return ()
    if value is None or value == [] or value == {}:
        raise ValueError(f"is empty; write {NONE} when there is nothing")
    if isinstance(value, Mapping):
        value = [{name: text} for name, text in value.items()]
    entries = value if isinstance(value, list) else [value]
    return tuple(_item(entry) for entry in entries)


def _item(entry: object) -> Item:
    if isinstance(entry, Mapping):
        if len(entry) != 1:
            raise ValueError("each entry is a text or one `name: meaning`")
        ((name, text),) = entry.items()
        return Item(name=_text(name), text="" if text is None else _text(text))
    text = _text(entry)
    # A bare `path::symbol` is a name: it must become a checked link, whether or not it says more.
    return Item(name=text, text="") if "::" in text and not set(text) & set(" `[") else Item(name="", text=text)


def _text(value: object) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        return " ".join(str(value).split())
    raise ValueError(f"must be text, not {value!r}; quote it")


Items = Annotated[tuple[Item, ...], BeforeValidator(_items)]
Reference = Annotated[str, StringConstraints(pattern=r"^[^\s`:]+::[A-Za-z_][\w.]*$")]


class FunctionRecord(BaseModel):
    """One function read in the first round."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    function: Reference
    """`path::symbol`, without backticks."""
    inputs: Items
    outputs: Items
    core: Items
    """Megatron-Core components called."""
    process_groups: Items
    shards: Items
    """Tensor or batch shards involved."""
    state: Items
    """Training state changed."""
    step: Annotated[str, BeforeValidator(_text)]
    """The step of the simple loop it corresponds to; inline Markdown."""


def is_record(fence: Fence) -> bool:
    """Whether this fence holds a function record."""
    return fence.info.split() == FENCE.split()


def check_records(text: str) -> Iterator[Finding]:
    """Everything that is wrong in the function records of a page."""
    for fence in read_outline(text).fences:
        if is_record(fence):
            _, findings = parse_record(fence.body, line=fence.line)
            yield from findings
        elif "function-record" in fence.info:
            yield _finding(fence.line, fence.info, f"unknown kind of block `{fence.info}`", f"write ```{FENCE}")


def parse_record(body: Sequence[str], *, line: int) -> tuple[FunctionRecord | None, tuple[Finding, ...]]:
    """The record, or what is wrong with it; `line` is that of the opening fence."""
    try:
        text = load_yaml("\n".join(body), offset=line)
    except YamlProblem as error:
        fix = "quote a value that starts with ` or holds `: `" if "not valid" in str(error) else "keep one of them"
        return None, (_finding(error.line, FENCE, f"the record: {error}", fix),)
    if not isinstance(text.data, dict):
        return None, (_finding(line, FENCE, "the record is not a list of fields", "write `function: path::symbol` …"),)
    try:
        return FunctionRecord.model_validate(text.data), ()
    except ValidationError as error:
        return None, tuple(_explain(problem, text, line) for problem in error.errors())


def _explain(problem: ErrorDetails, text: YamlText, line: int) -> Finding:
    field = str(problem["loc"][0])
    at = text.line((field,)) if (field,) in text.lines else line
    if problem["type"] == "missing":
        return _finding(
            at, field, f"the record lacks the field {field}", f"add it; write `{field}: {NONE}` for nothing"
        )
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(field, FunctionRecord.model_fields, n=1)
        fix = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(FunctionRecord.model_fields)}"
        return _finding(at, field, f"unknown field {field}", fix)
    if field == "function":
        return _finding(at, field, "field function must be one `path::symbol`", "e.g. megatron/core/x.py::Class.method")
    message = str(problem["msg"]).removeprefix("Value error, ")
    return _finding(at, field, f"field {field} {message}")


def _finding(line: int, subject: str, message: str, fix: str = "") -> Finding:
    return Finding(code=Code.RECORD, line=line, subject=subject, message=message, fix=fix)
