"""Ranges over two small trees: what each kind of change does to a reference."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sourcepanel.drift.judge import Placement
from sourcepanel.drift.relocate import Relocator
from sourcepanel.errors import PathNotFound
from sourcepanel.snapshot import git_blob_id
from sourcepanel.snapshot.git import GitSnapshot
from tests.support.tiny import TinyRepo, git

HEAD = """\
import os


def first(a, b):
    \"\"\"Add two numbers.\"\"\"
    total = a + b
    report(total)
    return total


"""

STEP = """\
def step(model, batch):
    \"\"\"One step.\"\"\"
    losses = []
    for micro in batch.split(4):
        loss = model.forward(micro)
        loss.backward()
        losses.append(loss.item())
    scale = 1.0 / len(losses)
    clip_gradients(model, scale)
    return sum(losses) * scale
"""

LOOP = "\n".join(STEP.split("\n")[3:7]) + "\n"


@dataclass
class Files:
    """A snapshot held in memory."""

    files: dict[str, str]
    commit = "0" * 40
    origin = "memory"
    complete = True

    def list(self) -> tuple[str, ...]:
        return tuple(sorted(self.files))

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise PathNotFound(path)
        return self.files[path].encode()

    def blob_id(self, path: str) -> str:
        return git_blob_id(self.read(path))


def move(old: dict[str, str], new: dict[str, str], start: int, end: int, *, path: str = "pkg/train.py") -> Placement:
    with Relocator.between(Files(old), Files(new)) as relocator:
        return relocator.relocate(path, start, end)


def lines(text: str, block: str) -> tuple[int, int]:
    """Where this block stands in the text, 1-based."""
    assert block in text
    start = text[: text.index(block)].count("\n") + 1
    return start, start + block.rstrip("\n").count("\n")


OLD = HEAD + STEP
LINE = "    clip_gradients(model, scale)\n"
PAD = "# one more comment line here\n" * 7
CALLER = """

def evaluate(model, batch):
    for micro in batch.split(4):
        report(model.forward(micro))
"""


@pytest.mark.parametrize(
    ("block", "new", "status", "there", "confidence"),
    [
        pytest.param(LOOP, OLD, "same", LOOP, "certain", id="nothing changed"),
        pytest.param(LOOP, PAD + OLD, "same", LOOP, "certain", id="moved down"),
        pytest.param(LINE, STEP + "\n\n" + HEAD, "same", LINE, "certain", id="definitions swapped"),
        pytest.param(STEP, PAD + OLD, "same", STEP, "certain", id="whole definition moved"),
        pytest.param(
            LINE, OLD.replace(LINE, f"    if scale:\n    {LINE}"), "same", f"    {LINE}", "certain", id="re-indented"
        ),
        pytest.param(
            LOOP,
            OLD.replace("loss.item()", "float(loss)"),
            "changed",
            LOOP.replace("loss.item()", "float(loss)"),
            "likely",
            id="one line edited at the edge",
        ),
        pytest.param(
            LOOP,
            OLD.replace("        loss.backward()\n", "        loss.backward()\n        count(loss)\n"),
            "changed",
            LOOP.replace("        loss.backward()\n", "        loss.backward()\n        count(loss)\n"),
            "likely",
            id="one line put inside",
        ),
        pytest.param(
            STEP,
            OLD + "    # appended\n",
            "same",
            STEP,
            "certain",
            id="a comment after the definition is not part of it",
        ),
        pytest.param(
            STEP,
            OLD.replace("return sum(losses) * scale", "scaled = sum(losses) * scale\n    return scaled"),
            "changed",
            STEP.replace("return sum(losses) * scale", "scaled = sum(losses) * scale\n    return scaled"),
            "likely",
            id="a definition that grew at its end is followed whole",
        ),
        pytest.param(
            "    losses = []\n    for micro in batch.split(4):\n        loss = model.forward(micro)\n",
            OLD.replace("loss = model.forward(micro)", "loss = model.forward(micro,)"),
            "cosmetic",
            "    losses = []\n    for micro in batch.split(4):\n        loss = model.forward(micro,)\n",
            "certain",
            id="only a trailing comma",
        ),
        pytest.param(LOOP, HEAD, "gone", None, "likely", id="deleted"),
    ],
)
def test_one_file(block: str, new: str, status: str, there: str | None, confidence: str) -> None:
    start, end = lines(OLD, block)
    placed = move({"pkg/train.py": OLD}, {"pkg/train.py": new}, start, end)
    assert (placed.status, placed.confidence) == (status, confidence)
    if there is None:
        assert placed.start is None
    else:
        assert (placed.start, placed.end) == lines(new, there)


def test_a_renamed_file_is_followed() -> None:
    placed = move({"pkg/train.py": OLD}, {"pkg/loop.py": PAD + OLD}, *lines(OLD, LOOP))
    assert (placed.status, placed.path, placed.start) == ("same", "pkg/loop.py", lines(PAD + OLD, LOOP)[0])


def test_code_that_left_its_file_is_found_and_is_not_certain_as_a_definition() -> None:
    new = {"pkg/train.py": HEAD, "pkg/steps.py": "import torch\n\n\n" + STEP}
    placed = move({"pkg/train.py": OLD}, new, *lines(OLD, STEP))
    assert (placed.status, placed.path, placed.confidence) == ("same", "pkg/steps.py", "likely")


@pytest.mark.parametrize(("kept", "confidence"), [(10, "certain"), (5, "likely")])
def test_one_line_in_another_file_is_certain_only_where_its_definition_went_there_whole(
    kept: int, confidence: str
) -> None:
    body = STEP.rstrip().split("\n")
    there = "\n".join([*body[:2], *(f"    other_{n} = {n}" for n in range(10 - kept)), *body[12 - kept :]]) + "\n"
    assert LINE in there
    new = {"pkg/train.py": HEAD, "pkg/steps.py": "import torch\n\n\n" + there}
    placed = move({"pkg/train.py": OLD}, new, *lines(OLD, LINE))
    assert (placed.status, placed.path, placed.confidence) == ("same", "pkg/steps.py", confidence)


def test_a_body_split_off_from_a_wrapper_that_keeps_the_name() -> None:
    wrapper = "def step(model, batch):\n    with profiled():\n        return step_impl(model, batch)\n\n\n"
    new = HEAD + wrapper + STEP.replace("def step(", "def step_impl(")
    placed = move({"pkg/train.py": OLD}, {"pkg/train.py": new}, *lines(OLD, LOOP))
    assert (placed.status, placed.start) == ("same", lines(new, LOOP)[0])


TWIN = "    total = a + b\n    report(total)\n"
SECOND = "\n\ndef second(a, b):\n    check(a)\n    total = a + b\n    report(total)\n    return -total\n"


def test_a_twin_that_remains_is_never_taken_for_the_one_that_was_deleted() -> None:
    old = HEAD + STEP + SECOND
    new = HEAD.replace(TWIN, "    total = add(a, b)\n") + STEP + SECOND
    placed = move({"pkg/train.py": old}, {"pkg/train.py": new}, *lines(old, TWIN))
    assert placed.status in ("changed", "gone")
    assert placed.confidence != "certain"


def test_one_of_two_twins_is_left_and_nothing_around_it_says_which() -> None:
    old = "x = 1\nregister_hook(step)\ny = 2\nz = 3\np = 4\nregister_hook(step)\nq = 5\n"
    new = "r = 9\nregister_hook(step)\ns = 8\n"
    for line in (2, 6):
        placed = move({"pkg/train.py": old}, {"pkg/train.py": new}, line, line)
        assert placed.status in ("changed", "gone")
        assert placed.confidence != "certain"


def test_a_copy_that_stood_elsewhere_before_is_not_where_deleted_code_went() -> None:
    copy = {"pkg/other.py": "def other(a, b):\n" + TWIN + "    return a\n"}
    old = {"pkg/train.py": OLD, **copy}
    placed = move(old, {"pkg/train.py": STEP, **copy}, *lines(OLD, TWIN))
    assert placed.status in ("changed", "gone")
    assert placed.confidence != "certain"


def test_a_file_that_is_gone_without_trace() -> None:
    placed = move({"pkg/train.py": OLD}, {"pkg/unrelated.py": "x = 1\n"}, 4, 5)
    assert (placed.status, placed.path, placed.start, placed.end) == ("gone", None, None, None)


@pytest.mark.parametrize("text", ["def f(:\n    x = 1\n    y = call(x)\n", "\n\n\n", ""])
def test_text_that_is_not_python_is_compared_line_by_line(text: str) -> None:
    for path in ("pkg/a.py", "pkg/a.cu"):
        placed = move({path: text + "last = line(1)\n"}, {path: "# new\n" + text + "last = line(1)\n"}, 1, 1, path=path)
        assert placed.status in ("same", "changed", "gone")


def test_history_follows_what_the_two_ends_do_not_show(tiny_repo: TinyRepo) -> None:
    """The block goes to another name and comes back changed in every other line: only the commits tell."""
    old, new = (
        GitSnapshot(tiny_repo.path, commit=tiny_repo.commits[tag], origin=tag, fix="") for tag in ("v2.0", "v3.0")
    )
    with Relocator.between(old, new) as with_history, Relocator.between(old, new, history=False) as without:
        assert with_history.history is not None
        assert without.history is None
        for path in (p for p in old.list() if p.endswith(".py")):
            count = len(old.read(path).decode("utf-8", "replace").split("\n")) - 1
            for line in range(1, count + 1):
                a, b = with_history.relocate(path, line, line), without.relocate(path, line, line)
                if a.status == b.status == "same":
                    assert (a.path, a.start) == (b.path, b.start)


def test_history_needs_the_commits_between(tiny_repo: TinyRepo, tmp_path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--bare", "--depth=1", f"file://{tiny_repo.path}", str(shallow))
    git(shallow, "fetch", "--quiet", "--depth=1", "origin", "tag", "v1.0")
    old, new = (GitSnapshot(shallow, commit=tiny_repo.commits[tag], origin=tag, fix="") for tag in ("v1.0", "v3.0"))
    with Relocator.between(old, new) as relocator:
        assert relocator.history is None
        assert relocator.relocate(next(p for p in old.list() if p.endswith(".py")), 1, 1).status


KERNEL = """\
template <typename T>
__global__ void scale(T* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    data[i] *= 2;
  }
}

int helper(int a) {
  return checked(a) + 1;
}
"""


def test_a_kernel_is_followed_by_its_name() -> None:
    new = "#include <x>\n\n" + KERNEL.replace("data[i] *= 2;", "data[i] *= 2;\n    count(i);\n    log(i);")
    old_end, new_end = KERNEL.index("\n}\n") + 2, new.index("\n}\n") + 2
    placed = move({"a.cu": KERNEL}, {"a.cu": new}, 1, KERNEL[:old_end].count("\n") + 1, path="a.cu")
    assert (placed.status, placed.method, placed.start) == ("changed", "symbol", 3)
    assert placed.end == new[:new_end].count("\n") + 1
    line = move(
        {"a.cu": KERNEL}, {"b/a.cu": "int z;\n" + KERNEL}, *lines(KERNEL, "  return checked(a) + 1;\n"), path="a.cu"
    )
    assert (line.status, line.path, line.confidence) == ("same", "b/a.cu", "certain")
