from __future__ import annotations

from pathlib import Path

import pytest

from sourcepanel.notes import source_index
from sourcepanel.notes.code_blocks import check_code_blocks
from sourcepanel.notes.source_index import build_index, open_index
from sourcepanel.snapshot.base import git_blob_id
from tests.support import tree

SOURCE = """\
import os


def train_step(model, optimizer):
    # one step
    optimizer.zero_grad(set_to_none=True)
    losses = forward_backward(model)

    success, norm = optimizer.step()
    return losses, success, norm
"""
OTHER = "\n".join(f"value_{i} = compute(value_{i})" for i in range(40))
INDEX = build_index([("pkg/train.py", SOURCE.encode()), ("pkg/other.py", OTHER.encode())])


def found(text: str) -> list[tuple[int, str]]:
    return [(f.line, f.message) for f in check_code_blocks(text, index=INDEX)]


def fence(*lines: str) -> str:
    return "\n".join(["正文", "", "```python", *lines, "```", ""])


COPY = SOURCE.split("\n")[5:10]


def test_three_lines_in_a_row_are_refused_wherever_they_stand():
    invented = [f"step_{i} = invented_here(step_{i})" for i in range(20)]
    text = fence(*invented, *COPY[:4], *invented)
    assert found(text) == [(24, "the code block repeats lines of pkg/train.py")]


@pytest.mark.parametrize(
    "lines",
    [
        [f"  {line}" for line in COPY],
        [line.replace("    ", "\t") for line in COPY],
        [line + "  " for line in COPY],
        [line.replace(" = ", "  =  ") for line in COPY],
        [part for line in COPY for part in (line, "", "# 说明", ")")],
        [line + "\r" for line in COPY],
    ],
    ids=["indented", "tabs", "trailing", "spaces", "interleaved", "crlf"],
)
def test_white_space_comments_and_brackets_do_not_hide_it(lines: list[str]):
    assert len(found(fence(*lines))) == 1


def test_most_lines_of_a_short_block():
    two = [COPY[0], "一段自己的话 of mine", COPY[4]]
    assert found(fence(*two)) == [(4, "2 of the 3 lines of the code block stand in pkg/train.py")]


@pytest.mark.parametrize(
    "text",
    [
        fence("pretrain", "  → train_step(model, optimizer)", "      → optimizer.step()"),
        fence(COPY[0]),
        fence(COPY[0], "# mine: a b", "first_thing = ours(1)", "second_thing = ours(2)", COPY[4]),
        fence("[s, b, h] → [s/tp, b, h]"),
        "```python\nnever closed",
        "",
    ],
    ids=["chain", "one-line", "minority", "layout", "open", "empty"],
)
def test_what_a_note_may_show(text: str):
    assert found(text) == []


def test_an_indented_block_and_a_pre_are_caught_too():
    assert [line for line, _ in found("说明\n\n" + "\n".join("    " + line for line in COPY))] == [3]
    assert [line for line, _ in found("<pre>\n" + "\n".join(COPY) + "\n</pre>\n")] == [2]


class TreeSnapshot:
    commit = "1" * 40
    origin = "a test"
    complete = True

    def __init__(self) -> None:
        self.reads = 0

    def list(self) -> tuple[str, ...]:
        return tuple(sorted(tree.V2))

    def read(self, path: str) -> bytes:
        self.reads += 1
        return tree.V2[path]

    def blob_id(self, path: str) -> str:
        return git_blob_id(tree.V2[path])


def test_the_index_is_built_once_and_kept(tmp_path: Path):
    snapshot, told = TreeSnapshot(), list[str]()
    first = open_index(snapshot, cache=tmp_path, notify=told.append)
    reads = snapshot.reads
    assert reads > 0
    assert first == open_index(snapshot, cache=tmp_path, notify=told.append)
    assert snapshot.reads == reads
    assert len(told) == 1
    text = fence(*tree.TRAINING.decode().split("\n"))
    assert [f.message for f in check_code_blocks(text, index=first)] == [
        "the code block repeats lines of tiny/training.py"
    ]


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"[]\n", b"not json", None], ids=["empty", "{}", "[]", "text", "cut"])
def test_a_damaged_cache_is_built_anew(tmp_path: Path, damage: bytes | None):
    whole = open_index(TreeSnapshot(), cache=tmp_path, notify=lambda _: None)
    (file,) = (tmp_path / "lines").iterdir()
    file.write_bytes(file.read_bytes()[:-4] if damage is None else damage)
    again = TreeSnapshot()
    assert open_index(again, cache=tmp_path, notify=lambda _: None) == whole
    assert again.reads > 0


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path):
    (tmp_path / "lines").write_text("a file where the folder should be")
    index = open_index(TreeSnapshot(), cache=tmp_path, notify=lambda _: None)
    assert "tiny/training.py" in index.paths
    assert [p.name for p in tmp_path.iterdir()] == ["lines"]


def test_only_source_files_are_indexed(tmp_path: Path):
    index = open_index(TreeSnapshot(), cache=tmp_path, notify=lambda _: None)
    assert all(path.endswith(source_index._SUFFIXES) for path in index.paths)
    assert not any(path.endswith(".md") for path in index.paths)
