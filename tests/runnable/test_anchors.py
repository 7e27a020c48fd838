"""Each Megatron symbol that a script says it replays is there at the pin."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from runnable.lab.pin import megatron_tree

RUNNABLE = Path(__file__).resolve().parents[2] / "runnable"
ANCHOR = re.compile(r"\b(megatron/[\w/]+\.py|examples/[\w/]+\.py|pretrain_gpt\.py)::([\w.]+)")
SCRIPTS = (
    sorted(RUNNABLE.glob("ch*.py")) + sorted(RUNNABLE.glob("lab/*.py")) + sorted(RUNNABLE.glob("megatron_cpu/*.py"))
)


def anchors(path: Path) -> set[tuple[str, str]]:
    return {(m[1], m[2].rstrip(".")) for m in ANCHOR.finditer(path.read_text(encoding="utf-8"))}


def symbols(tree: ast.AST, prefix: str = "") -> set[str]:
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found |= {prefix + node.name} | symbols(node, f"{prefix}{node.name}.")
    return found


@pytest.mark.parametrize("script", sorted(RUNNABLE.glob("ch*.py")), ids=lambda p: p.stem)
def test_scripts_name_what_they_replay_and_leave_out(script):
    doc = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    assert doc.splitlines()[0].startswith("torchrun --nproc-per-node ")
    assert f"runnable/{script.name}" in doc.splitlines()[0]
    assert anchors(script)
    assert "Leaves out" in doc
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 250


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_anchors_resolve_at_the_pin(path):
    tree = megatron_tree()
    for file, symbol in sorted(anchors(path)):
        source = tree / file
        if not source.is_file() and not file.startswith("megatron/"):
            continue  # the wheel has no root scripts; `sourcepanel check` verifies those against the lock
        assert symbol in symbols(ast.parse(source.read_text(encoding="utf-8"))), f"{path.name}: {file}::{symbol}"
