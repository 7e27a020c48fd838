"""Megatron's own scripts, unmodified, from a full clone: `pretrain_gpt.py` and the simple loop, on CPUs.

`python -m runnable.megatron_cpu.scripts --np 2 pretrain_gpt.py ARGS…` starts the ranks as torchrun would; arguments
that a CPU needs are put before ARGS. The wheel has none of these scripts.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing.util
import os
import runpy
import sys
import types
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed as dist

from runnable.lab import launch, sampling
from runnable.megatron_cpu import harness, patches

ON_CPU = {
    "pretrain_gpt.py": (
        *("--transformer-impl", "local", "--distributed-backend", "gloo", "--no-masked-softmax-fusion"),
        *("--no-gradient-accumulation-fusion", "--no-persist-layer-norm", "--no-bias-gelu-fusion"),
        *("--no-bias-dropout-fusion", "--no-rope-fusion", "--num-workers", "0"),
    ),
    "examples/run_simple_mcore_train_loop.py": (),
}
"""Script → the arguments that choose code without CUDA kernels."""


@patches.patch(
    "helpers_cpp",
    "the index of samples is built in C++, compiled with make at the start: the lab's replay of it, which a test holds "
    "against the C++, stands in, so no compiler is needed",
    when=patches.SCRIPTS,
)
def _helpers() -> None:
    def sample_index(sizes: Any, order: Any, length: int, epochs: int, tokens: int, drop: bool, extra: int) -> Any:
        if not drop:
            raise ValueError("only whole samples: --no-drop-last-partial-validation-sequence is not replayed")
        return np.array(sampling.sample_index(sizes.tolist(), order.tolist(), length, extra=extra), dtype=np.int32)

    def blending(dataset: Any, sample: Any, weights: Sequence[float], count: int, size: int, verbose: bool) -> None:
        dataset[:size], sample[:size] = np.array(sampling.blend(list(weights), size)).T

    module = types.ModuleType("megatron.core.datasets.helpers_cpp")
    module.build_sample_idx_int32 = module.build_sample_idx_int64 = sample_index  # type: ignore[attr-defined]
    module.build_blending_indices = blending  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    importlib.import_module("megatron.core.datasets.utils").compile_helpers = lambda: None


def run(
    script: str, argv: Sequence[str], *, world: int, tree: Path, folder: Path, without: frozenset[str] = frozenset()
) -> tuple[int, str]:
    """Run it in forked ranks inside this folder, after `harness.prepare`: exit code, and what all ranks printed."""
    folder.mkdir(parents=True, exist_ok=True)

    def rank(store: str) -> int:
        me = int(os.environ["RANK"])
        harness.quiet(folder / f"rank{me}.log")
        os.chdir(folder)
        launch.use_loopback(world)
        _meet_at(store)
        patches.apply(patches.SCRIPTS, without=without)
        sys.argv = [script, *ON_CPU[script], *argv]
        sys.path.insert(0, str((tree / script).parent))
        try:
            runpy.run_path(str(tree / script), run_name="__main__")
            return 0
        except SystemExit as end:
            return int(end.code or 0)
        except Exception as error:
            return launch.explain(f"[rank {me}/{world}]", error)
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
            multiprocessing.util._exit_function()

    code = launch.fork_ranks(world, rank)
    logs = [(folder / f"rank{r}.log").read_text(encoding="utf-8", errors="replace") for r in range(world)]
    return code, "".join(logs)


def _meet_at(store: str) -> None:
    """Whatever backend and address a script asks for: gloo, and the file that the launcher made."""
    begin = dist.init_process_group

    def init(*args: Any, rank: int, world_size: int, timeout: timedelta = timedelta(seconds=60), **rest: Any) -> None:
        begin("gloo", init_method=store, rank=rank, world_size=world_size, timeout=timeout)

    dist.init_process_group = init


def main(argv: list[str]) -> int:
    """0 when the script ended well."""
    parser = argparse.ArgumentParser(prog="python -m runnable.megatron_cpu.scripts", description=__doc__)
    parser.add_argument("--np", type=int, default=1, help="几个 rank")
    parser.add_argument(
        "--to", type=Path, default=Path("megatron-run"), help="在这个文件夹里运行，日志与 checkpoint 也在"
    )
    parser.add_argument("script", choices=tuple(ON_CPU))
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARG", help="交给脚本")
    args = parser.parse_args(argv)
    tree = harness.prepare()
    if not (tree / args.script).is_file():
        print(f"这份快照是 wheel，没有 {args.script}：用 SOURCEPANEL_CHECKOUT 指向完整的 clone", file=sys.stderr)
        return 2
    code, log = run(args.script, args.rest, world=args.np, tree=tree, folder=args.to.resolve())
    print(log, end="")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
