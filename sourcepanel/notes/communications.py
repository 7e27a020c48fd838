"""Communication records: one kind of call into a process group, as YAML in a fence `yaml communication-record`.

Everything in it but its words is evaluated against a recorded run: see `proof`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from sourcepanel.notes.claims import NONE, Counts, RankSet, Shapes
from sourcepanel.notes.fenced_yaml import Kind, Text, one_text


def _names(value: object) -> frozenset[str]:
    if value == NONE:
        return frozenset()
    return frozenset(one_text(entry) for entry in (value if isinstance(value, list) else [value]))


class CommunicationRecord(BaseModel):
    """A claim about what ranks send, and where the proof is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Text
    """Inline Markdown."""
    api: Text
    """The function of torch.distributed, as the trace names it."""
    group: Text
    """The trace's short name of the group."""
    phase: Text
    dtype: Annotated[frozenset[str], BeforeValidator(_names)]
    """Of all tensors of the call; several where they differ, none for a call without tensors."""
    before: Shapes
    """Of what each rank puts in."""
    after: Shapes
    """Of what each rank gets out."""
    count: Counts
    """Calls of each rank in the recorded run."""
    ranks: RankSet
    """Those that make the call; all others make none."""
    semantics: Text
    """The duty that the call carries; inline Markdown."""
    issued_by: Text
    """Where the call is made: `path::symbol`, or the address of lines at the pin."""
    trace: Text
    """The run that proves it."""
    replay: Text | None = None
    """Another run that shows the same call, with its own dimensions."""


COMMUNICATIONS = Kind("yaml communication-record", CommunicationRecord)
