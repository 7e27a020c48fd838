"""Two hosts on one machine: network and process namespaces joined by a cable, each running its own torchrun.

`unshare … python -m tests.support.two_hosts SCENARIO FOLDER` plays one scenario and prints what the hosts said (JSON).
Everything lives in the process namespace of that `unshare`: when it ends, no process of either host is left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ALONE = ["unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
"""The program that gives a scenario its own world."""
PORT = 29500


class Host:
    """A network of its own with one cable, and processes that all die with it."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder, self.address = number, folder, f"10.77.0.{number + 1}"
        holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sleep", "600"]
        )
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
        while not (found := children.read_text().split()):
            time.sleep(0.01)
        self.init = int(found[0])
        self.agents: list[subprocess.Popen[bytes]] = []

    def command(self, *argv: object) -> list[str]:
        """A command inside this host."""
        return ["nsenter", "--target", str(self.init), "--net", "--uts", "--pid", "--mount", "--", *map(str, argv)]

    def run(self, *argv: object) -> None:
        """A short command inside this host."""
        subprocess.run(self.command(*argv), check=True)

    def torchrun(self, chapter: str, *argv: object, elastic: bool = False) -> None:
        """Start this host's part of the job, with the flags that the README shows."""
        (script,) = (ROOT / "runnable").glob(f"{chapter}_*.py")
        rendezvous = ["--node-rank", self.number, "--master-addr", "10.77.0.1", "--master-port", PORT]
        if elastic:
            rendezvous = ["--max-restarts", 3, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"10.77.0.1:{PORT}"]
            rendezvous += ["--rdzv-id", "lab", "--local-addr", self.address]
        command = ["-m", "torch.distributed.run", "--nnodes", 2, "--nproc-per-node", 1, *rendezvous, script, *argv]
        env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
        env |= {
            "GLOO_SOCKET_IFNAME": "eth0",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
        }
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self.agents.append(
                subprocess.Popen(self.command(sys.executable, *command), stdout=out, stderr=err, env=env)
            )

    @property
    def out(self) -> Path:
        return self.folder / f"host{self.number}.out"

    @property
    def err(self) -> Path:
        return self.folder / f"host{self.number}.err"

    def said(self, limit: float) -> dict[str, Any]:
        """Wait for the last start; what it said. A host that goes on beyond the limit has no code."""
        try:
            code: int | None = self.agents[-1].wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        return {"code": code, "out": self.out.read_text(), "err": self.err.read_text()}

    def wait_for(self, text: str) -> None:
        """Until a rank of this host has printed this."""
        deadline = time.monotonic() + 150
        while not (self.out.exists() and text in self.out.read_text()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"host {self.number} never said {text!r}:\n{self.err.read_text()}")
            time.sleep(0.05)

    def die(self) -> None:
        """All processes of this host at once, as when the power goes."""
        os.kill(self.init, 9)


def hosts(folder: Path) -> tuple[Host, Host]:
    """Two of them and the cable."""
    a, b = Host(0, folder), Host(1, folder)
    ends = ["type", "veth", "peer", "name", "eth0", "netns", str(b.init)]
    subprocess.run(["ip", "link", "add", "name", "cable", *ends], check=True)
    subprocess.run(["ip", "link", "set", "cable", "netns", str(a.init)], check=True)
    a.run("ip", "link", "set", "cable", "name", "eth0")
    # Names come from a file and from nowhere else: a name server that cannot be reached costs seconds a question.
    names = folder / "hosts"
    names.write_text("127.0.0.1 localhost\n" + "".join(f"{h.address} host{h.number}\n" for h in (a, b)))
    (folder / "resolv.conf").touch()
    for host in (a, b):
        host.run("hostname", f"host{host.number}")
        host.run("mount", "--bind", names, "/etc/hosts")
        host.run("mount", "--bind", folder / "resolv.conf", "/etc/resolv.conf")
        host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            host.run("ip", "link", "set", device, "up")
    return a, b


def together(a: Host, b: Host, folder: Path) -> None:
    """One job, both hosts, to the end."""
    for host in (a, b):
        host.torchrun("ch10")


def power(a: Host, b: Host, folder: Path) -> None:
    """Host 1 dies in the middle."""
    for host in (a, b):
        host.torchrun("ch11", "--sleep", 1000)
    a.wait_for("rank 与 process group")
    time.sleep(2)
    b.die()


def cable(a: Host, b: Host, folder: Path) -> None:
    """The cable between them is pulled: no process dies, nothing is heard any more."""
    for host in (a, b):
        host.torchrun("ch11", "--sleep", 1000, "--timeout", 10)
    a.wait_for("rank 与 process group")
    time.sleep(2)
    a.run("ip", "link", "set", "eth0", "down")


def elastic(a: Host, b: Host, folder: Path) -> None:
    """The rank on host 1 dies in step 3; both agents start their ranks again, from the checkpoint."""
    for host in (a, b):
        host.torchrun("ch07", "--dir", folder / "checkpoint", "--die-at", 3, elastic=True)


SCENARIOS = {found.__name__: found for found in (together, power, cable, elastic)}


def main(name: str, folder: Path) -> None:
    """Play it; the seconds are counted from when the scenario has done its part."""
    a, b = hosts(folder)
    SCENARIOS[name](a, b, folder)
    start = time.monotonic()
    found = [host.said(150) for host in ((a,) if name in ("power", "cable") else (a, b))]
    print(json.dumps({"seconds": time.monotonic() - start, "hosts": found}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
