"""Start the ranks, end them, and say in one line what went wrong.

Under torchrun this process is one rank. Run with plain `python`, it imports once and forks `--np` ranks that meet
through a file, so no port can be in use. Exit codes: 0 all proved, 1 a proof failed, 2 wrong use, 3 a rank failed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn

import torch
import torch.distributed as dist

from runnable.lab.ranks import LayoutError
from runnable.lab.run import DTYPES, Lab, Script

FAILED, MISUSED, DIED = 1, 2, 3
_GRACE = 3.0
"""Seconds that the other ranks get to end by themselves after one has died."""


def main(script: Script, argv: list[str] | None = None) -> NoReturn:
    """Run a script as this process's part in it; never returns."""
    given = sys.argv[1:] if argv is None else argv
    args = _parse(script, given)
    if {"RANK", "WORLD_SIZE"} <= os.environ.keys():
        code = _one_rank(script, args, init_method="env://")
    else:
        code = _start_ranks(script, args)
    sys.stdout.flush()
    sys.exit(code)


def _parse(script: Script, argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"runnable/{script.name}.py",
        description=script.title,
        epilog=f"例：torchrun --nproc-per-node {script.np} runnable/{script.name}.py；"
        f"或 python runnable/{script.name}.py --np {script.np}（自己启动各 rank）",
    )
    common = parser.add_argument_group("启动")
    common.add_argument("--np", type=int, default=None, help=f"不用 torchrun 时启动几个 rank（默认 {script.np}）")
    common.add_argument(
        "--backend", choices=("auto", "gloo", "nccl"), default="auto", help="auto：每个 rank 有自己的 GPU 时用 NCCL"
    )
    common.add_argument("--timeout", type=float, default=30, help="一次通信最多等几秒（默认 30）")
    common.add_argument("--seed", type=int, default=1234)
    common.add_argument(
        "--dtype", choices=tuple(DTYPES), default="float32", help="float64 下误差降到 1e-12 以内：差别只是舍入"
    )
    common.add_argument("--kill", type=int, metavar="RANK", help="让这个 rank 中途退出，看其余 rank 怎样结束")
    output = parser.add_argument_group("输出")
    output.add_argument("--out", metavar="STEM", help="写 STEM.json（trace）、STEM.txt（输出）、STEM-*.svg；不含时间")
    output.add_argument("--chrome", metavar="FILE", help="写 chrome trace（含时间）")
    if script.breaks:
        rules = "；".join(f"{rule}：{text}" for rule, text in script.breaks.items())
        parser.add_argument(
            "--break", dest="broken", choices=tuple(script.breaks), help=f"去掉一条规则，看证明失败。{rules}"
        )
    else:
        parser.set_defaults(broken=None)
    script.arguments(parser.add_argument_group("本章"))  # type: ignore[arg-type]
    args = parser.parse_args(argv)
    shown = [a for a in argv if args.out is None or a not in ("--out", args.out)]
    args.command = shlex.join(["python", f"runnable/{script.name}.py", *shown])
    return args


def _start_ranks(script: Script, args: argparse.Namespace) -> int:
    world = script.np if args.np is None else args.np
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return complain(f"此系统上请用 torchrun 启动：torchrun --nproc-per-node {world} runnable/{script.name}.py")
    if world < 1:
        return complain(f"--np {world}：至少要 1 个 rank")
    try:
        script.layout(args, world)
    except LayoutError as error:
        return complain(str(error))
    for name in script.preload:
        importlib.import_module(name)
    return fork_ranks(world, lambda store: _one_rank(script, args, init_method=store))


def fork_ranks(world: int, body: Callable[[str], int]) -> int:
    """Fork `world` ranks that meet through a file; `body` gets its address, its result is the rank's exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryDirectory(prefix="lab-") as folder:
        ranks = {}
        for rank in range(world):
            pid = os.fork()
            if pid == 0:
                local = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world}
                os.environ |= {name: str(value) for name, value in local.items()}
                _child(body, f"file://{folder}/store")
            ranks[pid] = rank
        return _wait(ranks)


def _child(body: Callable[[str], int], store: str) -> NoReturn:
    code = DIED
    try:
        code = body(store)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(ranks: dict[int, int]) -> int:
    """Collect the ranks; when one dies the others get a moment, then they are ended."""
    codes: dict[int, int] = {}
    deadline = None
    try:
        while ranks:
            for pid in list(ranks):
                done, status = os.waitpid(pid, os.WNOHANG)
                if not done:
                    continue
                rank, code = ranks.pop(pid), os.waitstatus_to_exitcode(status)
                codes[rank] = code
                if code not in (0, FAILED, MISUSED) and deadline is None:
                    how = f"被信号 {signal.Signals(-code).name} 结束" if code < 0 else f"以退出码 {code} 结束"
                    complain(f"rank {rank} {how}；其余 rank 随之停止")
                    deadline = time.monotonic() + _GRACE
            if deadline is not None and time.monotonic() > deadline:
                _end(ranks)
                break
            time.sleep(0.01)
    except KeyboardInterrupt:
        _end(ranks)
        return 130
    if deadline is not None:
        return DIED
    return max(codes.values())


def _end(ranks: dict[int, int]) -> None:
    for pid in ranks:
        os.kill(pid, signal.SIGKILL)
    for pid in ranks:
        os.waitpid(pid, 0)


def _one_rank(script: Script, args: argparse.Namespace, *, init_method: str) -> int:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    me = f"[rank {rank}/{world}]"
    try:
        layout = script.layout(args, world)
        backend, device = _backend(args.backend)
    except LayoutError as error:
        return complain(f"{me} {error}")
    if args.np not in (None, world):
        return complain(f"{me} --np {args.np} 与 torchrun 给的 world size {world} 不符；用 torchrun 时不写 --np")
    if args.kill is not None and not 0 <= args.kill < world:
        return complain(f"{me} --kill {args.kill}：没有这个 rank")
    torch.set_num_threads(1)
    # The scripts call the names that Megatron calls; torch 2.13 renamed them.
    warnings.filterwarnings("ignore", message=".*is deprecated", category=FutureWarning)
    use_loopback(world)
    try:
        dist.init_process_group(
            backend, init_method=init_method, rank=rank, world_size=world, timeout=timedelta(seconds=args.timeout)
        )
        lab = Lab(script, args, layout, rank=rank, device=device)
        lab.open()
        if rank == args.kill:
            print(f"{me} --kill：到此退出", flush=True)
            os._exit(9)
        script.run(lab)
        return lab.finish()
    except Exception as error:
        return explain(me, error)
    finally:
        # Without this some runs abort after correct output.
        if dist.is_initialized():
            dist.destroy_process_group()


def explain(me: str, error: Exception) -> int:
    """A failure of the connection in one line; anything else is a bug and shows its traceback."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if text.startswith("["):
        text = text.partition("] ")[2].partition(". ")[0]  # gloo puts its own file before, and a greeting after
    # A TypeError of torch lists signatures, "timeout" among their arguments: no failure of the connection.
    lowered = str(error).lower() if isinstance(error, (RuntimeError, OSError)) else ""
    if "eaddrinuse" in lowered or "address already in use" in lowered:
        at = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
        complain(f"{me} {at} 已被占用：换一个 MASTER_PORT（torchrun --master-port …），或用 torchrun --standalone")
    elif "connection" in lowered or "socket" in lowered or "peer" in lowered:
        complain(f"{me} 与其他 rank 的连接断了：有 rank 已退出，请看它自己的报错（{text}）")
    elif "timed out" in lowered or "timeout" in lowered:
        complain(f"{me} 等其他 rank 超时：有 rank 没有来、卡住，或没有发起同一个通信；--timeout 可以改长（{text}）")
    else:
        complain(f"{traceback.format_exc()}{me} 出错：{type(error).__name__}: {text}")
    return DIED


def _backend(wanted: str) -> tuple[str, torch.device]:
    local, here = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "nccl" or (wanted == "auto" and gpus >= here):
        if gpus < here:
            need = f"--backend nccl：本机 {gpus} 个 GPU，{here} 个 rank；NCCL 要每个 rank 一个 GPU"
            raise LayoutError(f"{need}，请用 --backend gloo")
        torch.cuda.set_device(local)
        return "nccl", torch.device("cuda", local)
    return "gloo", torch.device("cpu")


def use_loopback(world: int) -> None:
    """With all ranks on this machine gloo need not find out which address the host name has."""
    alone = os.environ.get("LOCAL_WORLD_SIZE") == str(world)
    names = {name for _, name in socket.if_nameindex()}
    if alone and "lo" in names:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def complain(text: str) -> int:
    """Say it on stderr; the exit code of wrong use."""
    print(text, file=sys.stderr, flush=True)
    return MISUSED
