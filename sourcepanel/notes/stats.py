"""How much of a page is proved, in numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sourcepanel.notes.blocks import Block, Defined, bare, naming_blocks
from sourcepanel.notes.communications import COMMUNICATIONS
from sourcepanel.notes.evidence import Evidence
from sourcepanel.notes.function_records import FUNCTIONS
from sourcepanel.notes.outline import read_outline
from sourcepanel.notes.proof import Proof, prove
from sourcepanel.reference import identifiers
from sourcepanel.xref.model import Definition

_SHORTEST = 3
"""Letters of a name; `h` and `tp` in a note are sizes, whatever some file calls so."""


@dataclass(frozen=True, kw_only=True)
class PageStats:
    """One page, counted."""

    distinct: int
    """Different places that its references name."""
    functions: int
    """Function records that are well written."""
    communications: int
    """Communication records, right or wrong."""
    proved: int
    """How many of them their runs show."""
    blocks: int
    """Paragraphs, list items and table rows that name code of the snapshot."""
    bare: tuple[Block, ...]
    """Those among them without a reference."""

    @property
    def counts(self) -> dict[str, int]:
        """As `check --json` tells them."""
        return {
            "distinct": self.distinct,
            "function_records": self.functions,
            "communication_records": self.communications,
            "proved": self.proved,
            "naming_blocks": self.blocks,
            "bare_blocks": len(self.bare),
        }


def page_stats(
    text: str, *, keys: Collection[str], lines: Collection[int], defined: Defined, evidence: Evidence
) -> PageStats:
    """Count a page; `keys` and `lines` are those of its references."""
    fences = [fence for fence in read_outline(text).fences if fence.end > fence.line]
    functions = [FUNCTIONS.read(fence.body, line=fence.line) for fence in fences if FUNCTIONS.is_in(fence)]
    claims = [COMMUNICATIONS.read(fence.body, line=fence.line) for fence in fences if COMMUNICATIONS.is_in(fence)]
    blocks = naming_blocks(text, defined=defined)
    return PageStats(
        distinct=len(set(keys)),
        functions=sum(parsed.record is not None for parsed in functions),
        communications=len(claims),
        proved=sum(isinstance(prove(parsed, evidence=evidence), Proof) for parsed in claims if parsed.record),
        blocks=len(blocks),
        bare=bare(blocks, references=lines),
    )


class Names:
    """What the snapshots define, by the last part of each name.

    A word of any language (`forward`, `step`) counts only where a file defines it at its top level; else only with
    what stands before it (`Model.forward`).
    """

    def __init__(self, definitions: Iterable[Definition]) -> None:
        """Files and options of the command line are no names."""
        self._names: set[str] = set()
        for definition in definitions:
            name = definition.name.rpartition(".")[2]
            shaped = bool(identifiers(name, code=False))
            top = definition.kind in ("class", "function") and "." not in definition.name
            if definition.kind not in ("module", "option") and len(name) >= _SHORTEST:
                self._names.add(name if shaped or top else definition.name)

    def __call__(self, name: str) -> bool:
        """Whether this name, or the last part of it, is one."""
        return name in self._names or name.rpartition(".")[2] in self._names


def totals(stats: Iterable[PageStats]) -> Mapping[str, int]:
    """The sums over all pages; `distinct` is not one, for pages share places."""
    counted = [page.counts for page in stats]
    keys = [key for key in counted[0] if key != "distinct"] if counted else []
    return {key: sum(page[key] for page in counted) for key in keys}
