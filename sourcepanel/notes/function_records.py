"""Function records: what one function takes, gives, calls and changes, as YAML in a fence `yaml function-record`.

Every field is written out; a list that would be empty says `none`, so that "none" is a claim and not an omission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from sourcepanel.notes.fenced_yaml import Definition, Kind, Text, one_text

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
        return Item(name=one_text(name), text="" if text is None else one_text(text))
    text = one_text(entry)
    # A bare `path::symbol` is a name: it must become a checked link, whether or not it says more.
    return Item(name=text, text="") if "::" in text and not set(text) & set(" `[") else Item(name="", text=text)


Items = Annotated[tuple[Item, ...], BeforeValidator(_items)]


class FunctionRecord(BaseModel):
    """One function read in the first round."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    function: Definition
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
    step: Text
    """The step of the simple loop it corresponds to; inline Markdown."""


FUNCTIONS = Kind(
    "yaml function-record",
    FunctionRecord,
    cures={"function": ("must be one `path::symbol`", "e.g. megatron/core/x.py::Class.method")},
    missing=lambda field: f"add it; write `{field}: {NONE}` for nothing",
)
