"""Two hosts: one job over a cable, a host that dies, a cable that is pulled, an elastic restart from the checkpoint."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.two_hosts import ALONE, ROOT


@pytest.fixture
def scenario(tmp_path: Path) -> Any:
    """Play one; everything it started is gone afterwards."""
    if missing := [tool for tool in ("unshare", "nsenter", "ip", "mount", "hostname") if not shutil.which(tool)]:
        pytest.skip(f"two hosts on one machine need {', '.join(missing)}")
    trial = subprocess.run([*ALONE, "ip", "link", "add", "name", "a", "type", "veth", "peer", "name", "b"], **QUIET)
    if trial.returncode:
        pytest.skip(f"this machine allows no network namespaces: {trial.stderr.strip()}")

    def play(name: str) -> list[dict[str, Any]]:
        command = [*ALONE, sys.executable, "-m", "tests.support.two_hosts", name, str(tmp_path)]
        done = subprocess.run(command, **QUIET, cwd=ROOT, timeout=400)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["hosts"]

    return play


QUIET: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def test_one_job_on_two_hosts(scenario):
    first, second = scenario("together")
    assert (first["code"], second["code"]) == (0, 0), first["err"] + second["err"]
    assert first["out"].count("全部通过") == 1
    assert second["out"] == ""


def test_a_host_that_dies_ends_the_other_with_a_message(scenario):
    (left,) = scenario("power")
    assert left["code"] == 1, left["err"]  # torchrun's own code for a rank that failed
    assert "[rank 0/2] 与其他 rank 的连接断了" in left["err"]
    assert "exitcode  : 3" in left["err"]
    assert "全部通过" not in left["out"]


def test_a_pulled_cable_is_a_timeout_not_a_hang(scenario):
    """Nobody closes a connection here, so --timeout must hold for every group, not for the world's alone."""
    (left,) = scenario("cable")
    assert left["code"] == 1, left["err"]
    assert "[rank 0/2] 等其他 rank 超时" in left["err"]


def test_an_elastic_restart_goes_on_from_the_checkpoint(scenario, play, tmp_path):
    """The rank on host 1 dies in step 3; both start again at step 2 and repeat step 3 to the bit."""
    assert play("ch07", "--np", 2, "--dir", tmp_path / "whole").code == 0
    whole = losses((tmp_path / "stdout").read_text())
    first, second = scenario("elastic")
    assert (first["code"], second["code"]) == (0, 0), first["err"] + second["err"]
    assert "exitcode: 9" in second["err"]
    before, after = first["out"].split("从第 2 步恢复")
    assert "没有 checkpoint：从头开始" in before
    assert losses(before) == {step: whole[step] for step in ("1", "2", "3")}
    assert losses(after) == {step: whole[step] for step in ("3", "4")}
    assert "全部通过" in after


def losses(text: str) -> dict[str, str]:
    return dict(re.findall(r"step (\d) loss (0x\S+)", text))
