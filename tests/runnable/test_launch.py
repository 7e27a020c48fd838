"""Starting and ending ranks: one clear message, a non-zero exit, within seconds, never a hang."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CH10 = ROOT / "runnable/ch10_tensor_parallel_linear.py"
ALONE = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")} | {"OMP_NUM_THREADS": "1"}


def test_torchrun_starts_the_same_script():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(CH10)]
    done = subprocess.run(command, capture_output=True, text=True, env=ALONE, timeout=90)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("全部通过") == 1


def test_two_agents_as_two_hosts():
    """torchrun's own flags make one job of two hosts; here both are this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    command += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
    agents = [
        subprocess.Popen(
            [*command, "--node-rank", str(node), str(CH10)],
            env=ALONE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for node in range(2)
    ]  # fmt: skip
    outputs = [agent.communicate(timeout=120) for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], outputs
    assert "".join(out for out, _ in outputs).count("全部通过") == 1


def test_demo_runs_a_chapter_by_number():
    command = [sys.executable, "-m", "runnable.demo", "10", "--np", "2"]
    done = subprocess.run(command, capture_output=True, text=True, env=ALONE, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stdout.count("全部通过")) == (0, 1), done.stderr


def test_demo_names_the_chapters_there_are():
    command = [sys.executable, "-m", "runnable.demo", "77"]
    done = subprocess.run(command, capture_output=True, text=True, env=ALONE, cwd=ROOT, timeout=60)
    assert done.returncode == 2
    assert "没有第 77 章" in done.stderr
    assert "10" in done.stderr


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--np", 3), "TP=3：s=8 与 f=64 都要能被 TP 整除"),
        (("--np", 4, "--tp", 3), "world size 4 不能被 tp×cp×pp = 3×1×1 = 3 整除"),
        (("--np", 0), "至少要 1 个 rank"),
        (("--np", 2, "--break", "no_dp"), "没有可去掉的通信"),
        (("--kill", 9), "没有这个 rank"),
        (("--break", "nothing"), "invalid choice"),
        (("--backend", "nccl"), "NCCL 要每个 rank 一个 GPU"),
    ],
)
def test_wrong_use_is_told_before_anything_starts(play, argv, says):
    result = play("ch10", *argv)
    assert result.code == 2, result.err
    assert says in result.err
    assert "Traceback" not in result.err


def test_a_rank_that_dies_ends_the_others(play):
    before = time.monotonic()
    result = play("ch10", "--kill", 1)
    assert result.code == 3
    assert "rank 1 以退出码 9 结束" in result.err
    for rank in (0, 2, 3):
        told = re.search(rf"\[rank {rank}/4\] 与其他 rank 的连接断了", result.err)
        assert told, result.err
    assert "Traceback" not in result.err
    assert time.monotonic() - before < 30  # a limit against hanging, not a measurement


def _rank(rank: int, world: int, port: int, *argv: str) -> subprocess.Popen[str]:
    env = ALONE | {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(world)}
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return subprocess.Popen([sys.executable, str(CH10), *argv], env=env, stderr=subprocess.PIPE, text=True)


def test_a_port_in_use_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = _rank(0, 2, port)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert f"127.0.0.1:{port} 已被占用" in err
    assert "Traceback" not in err


def test_a_rank_that_never_comes_is_a_timeout_not_a_hang():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = _rank(0, 2, port, "--timeout", "3")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "[rank 0/2] 等其他 rank 超时" in err, err
    assert "Traceback" not in err


def test_np_beside_torchrun_must_agree():
    process = _rank(0, 2, 1, "--np", "4")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "--np 4 与 torchrun 给的 world size 2 不符" in err


def test_missing_torch_is_one_line(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, importlib.abc\n"
        "class Hide(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': raise ModuleNotFoundError(name)\n"
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else real(name, *a)\n"
    )
    done = subprocess.run(
        [sys.executable, str(CH10)],
        capture_output=True,
        text=True,
        env=ALONE | {"PYTHONPATH": str(tmp_path)},
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("缺少 torch：")
    assert len(done.stderr.splitlines()) == 1


def test_a_bug_shows_its_traceback(play, monkeypatch, tmp_path):
    """The other side of the short messages: what is not a broken connection keeps its traceback."""
    result = play("ch10", "--out", "/proc/nowhere/x", "--np", 2)
    assert result.code == 3
    assert "Traceback" in result.err
    assert "[rank 0/2] 出错" in result.err
