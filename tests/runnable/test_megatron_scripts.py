"""Megatron's own scripts, unmodified, on CPUs: train, save, resume with the same losses, reshard; the simple loop."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("einops", reason="the real Megatron needs einops")
pytest.importorskip("psutil", reason="the real Megatron needs psutil")

ROOT = Path(__file__).resolve().parents[2]
MODEL = [
    *("--num-layers", "2", "--hidden-size", "16", "--num-attention-heads", "4", "--seq-length", "16"),
    *("--max-position-embeddings", "16", "--micro-batch-size", "2", "--global-batch-size", "4", "--train-iters", "5"),
    *("--lr", "0.001", "--lr-decay-style", "constant", "--attention-dropout", "0", "--hidden-dropout", "0"),
    *("--mock-data", "--tokenizer-type", "NullTokenizer", "--vocab-size", "63", "--make-vocab-size-divisible-by", "1"),
    *("--log-interval", "1", "--eval-iters", "0", "--eval-interval", "100", "--ckpt-format", "torch_dist"),
]
CHECKOUT = os.environ.get("SOURCEPANEL_CHECKOUT", "")


@pytest.fixture
def clone(monkeypatch) -> None:
    """The scripts come from the clone that the person named; the wheel has none."""
    monkeypatch.setenv("SOURCEPANEL_CHECKOUT", CHECKOUT)


def start(script: str, *argv: str, to: Path, ranks: int = 2) -> str:
    command = [
        sys.executable,
        "-m",
        "runnable.megatron_cpu.scripts",
        "--np",
        str(ranks),
        "--to",
        str(to),
        script,
        *argv,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def losses(log: str) -> dict[int, float]:
    """Iteration → printed loss."""
    found = re.findall(r"iteration +(\d+)/.*lm loss: (\S+)", log)
    return {int(iteration): float(loss) for iteration, loss in found}


@pytest.mark.clone
def test_pretrain_gpt_trains_saves_resumes_and_reshards(clone, tmp_path):
    """The losses after a resume are the uninterrupted run's, in the same layout and in two others."""
    saving = ("--tensor-model-parallel-size", "2", "--save", "ckpt", "--save-interval", "2")
    whole = losses(start("pretrain_gpt.py", *MODEL, *saving, to=tmp_path))
    assert list(whole) == [1, 2, 3, 4, 5]
    tracker = tmp_path / "ckpt" / "latest_checkpointed_iteration.txt"
    tracker.write_text("2")
    layouts = (("--tensor-model-parallel-size", "2"), ("--pipeline-model-parallel-size", "2"), ())
    for layout in layouts:
        argv = (*MODEL, *layout, "--load", "ckpt")
        again = losses(start("pretrain_gpt.py", *argv, to=tmp_path, ranks=2 if layout else 1))
        # training_log keeps the first iteration after a start for the next line: its mean is of two.
        want = {3: whole[3], 4: (whole[3] + whole[4]) / 2, 5: whole[5]}
        assert again == pytest.approx(want, abs=2e-6), layout


@pytest.mark.clone
def test_the_simple_loop_runs_as_it_stands(clone, tmp_path):
    """Five iterations, its checkpoint saved and loaded: and the loss stays at ln 100, since nothing is learnt."""
    log = start("examples/run_simple_mcore_train_loop.py", to=tmp_path)
    found = [float(x) for x in re.findall(r"Iteration \d+: Losses reduced: .*tensor\(([\d.]+)", log)]
    assert len(found) == 10  # both ranks print
    assert found == pytest.approx([4.6052] * 10, abs=0.02)
    assert log.count("Successfully loaded the model") == 2


BODY = """
import os, sys
from pathlib import Path
from runnable.megatron_cpu import harness, scripts
script, folder, name = sys.argv[1:]
tree = harness.prepare()
os.environ["PATH"] = ""  # a machine that can compile would not miss what stands in for the compiled helpers
code, log = scripts.run(script, [], world=2, tree=tree, folder=Path(folder), without=frozenset({name}))
print(log)
sys.exit(code)
"""


@pytest.mark.clone
def test_the_patch_for_scripts_is_still_needed(clone, tmp_path):
    command = [sys.executable, "-c", BODY, "examples/run_simple_mcore_train_loop.py", str(tmp_path), "helpers_cpp"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 3, done.stdout[-2000:] + done.stderr[-2000:]
    assert "No such file or directory: 'make'" in done.stdout


def test_without_a_full_clone_it_says_so(monkeypatch, tmp_path, capsys):
    from runnable.megatron_cpu import harness, scripts

    monkeypatch.setattr(harness, "prepare", lambda: tmp_path)
    assert scripts.main(["pretrain_gpt.py"]) == 2
    assert "SOURCEPANEL_CHECKOUT" in capsys.readouterr().err
