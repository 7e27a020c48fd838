"""What `check --stats` counts: blocks that name code, with and without a reference; records, proved or not."""

from __future__ import annotations

import pytest

from sourcepanel.notes.blocks import bare, naming_blocks
from sourcepanel.notes.evidence import Evidence
from sourcepanel.notes.stats import Names, page_stats, totals
from sourcepanel.xref.model import Definition, DefinitionKind


def definition(name: str, kind: DefinitionKind) -> Definition:
    return Definition("a.py", name, kind)


NAMES = Names(
    [
        definition("", "module"),
        definition("train", "function"),
        definition("train_step", "function"),
        definition("Model", "class"),
        definition("Model.forward", "method"),
        definition("Model.num_layers", "attribute"),
        definition("--micro-batch", "option"),
    ]
)

PAGE = """\
# `train_step` in a heading

First `train_step`
and `Model`.

- item `Model.forward`
- item with a [link](x) and `num_layers`
    1. deeper `train`

| a | `train_step` |
|---|---|
| no | code |

> quoted ``train_step()`` twice, `train_step`

```text
train_step
```
not code: `torch.train_step`, `forward`, `step`, `x`, `a.py`, `--micro-batch`, `a.py::train_step`
"""


def test_blocks_that_name_code():
    blocks = naming_blocks(PAGE, defined=NAMES)
    assert [(block.start, block.end, block.names) for block in blocks] == [
        (3, 4, ("train_step", "Model")),
        (6, 6, ("Model.forward",)),
        (7, 7, ("num_layers",)),
        (8, 8, ("train",)),
        (10, 10, ("train_step",)),
        (14, 14, ("train_step",)),
    ]
    assert [block.start for block in bare(blocks, references={4, 7, 9})] == [6, 8, 10, 14]


@pytest.mark.parametrize(
    ("name", "defined"),
    [
        ("train", True),
        ("Model", True),
        ("Model.forward", True),
        ("forward", False),
        ("x.num_layers", True),
        ("micro_batch", False),
    ],
)
def test_names_that_are_the_snapshots(name: str, defined: bool):
    assert NAMES(name) is defined


def test_a_page_is_counted():
    records = "```yaml function-record\nfunction: a.py::f\n```\n\n```yaml communication-record\ntitle: x\n```\n"
    stats = page_stats(PAGE + records, keys=["a", "b", "a"], lines={4}, defined=NAMES, evidence=Evidence())
    assert stats.counts == {
        "distinct": 2,
        "function_records": 0,
        "communication_records": 1,
        "proved": 0,
        "naming_blocks": 6,
        "bare_blocks": 5,
    }
    assert totals([stats, stats]) == {
        "function_records": 0, "communication_records": 2, "proved": 0, "naming_blocks": 12, "bare_blocks": 10
    }  # fmt: skip
    assert totals([]) == {}
