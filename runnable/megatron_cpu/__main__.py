"""`python -m runnable.megatron_cpu --tp 2 --pp 2 --dp 2`: one real `train_step` of Megatron-LM on this machine's CPUs.

Prints every collective with the line of Megatron that issued it, and compares every gradient and every parameter after
the step with the same step in one process. The source is the pin's, unmodified; `--patches` lists what replaces CUDA.
`--tp 8 --pp 4 --dp 16 --heads 8 --layers 32 --microbatches 64 --only 137` plays one rank of 512 alone: whom it talks
to, in which order, with which shapes, from which line; it cannot know values, losses and times.
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import sys

NEEDED = ("torch", "numpy", "rich", "pydantic", "einops", "tqdm", "yaml", "psutil")


def main(argv: list[str]) -> int:
    """Run; 0 all equal, 1 something differs, 2 wrong use, 3 Megatron failed."""
    parser = argparse.ArgumentParser(prog="python -m runnable.megatron_cpu", description=__doc__)
    for name, text in (("tp", "tensor"), ("pp", "pipeline"), ("dp", "data"), ("vpp", "每个 stage 的 virtual chunk")):
        parser.add_argument(f"--{name}", type=int, default=1, help=f"{text} parallel size")
    parser.add_argument("--sp", action="store_true", help="sequence parallel")
    parser.add_argument("--dist-opt", action="store_true", help="distributed optimizer")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--only", type=int, metavar="RANK", help="不启动其余 rank，只扮演这一个：任意规模，不看数值")
    parser.add_argument("--microbatches", type=int, default=4, help="global batch 的 microbatch 数（所有 DP 副本合计）")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--rank", type=int, default=0, help="显示哪个 rank 的通信")
    parser.add_argument("--out", metavar="STEM", help="写 STEM.json、STEM.txt、STEM-comm.svg")
    parser.add_argument("--no-parity", action="store_true", help="不与单进程比较")
    parser.add_argument("--verbose", action="store_true", help="也打印 Megatron 自己的输出")
    parser.add_argument("--patches", action="store_true", help="列出每个 patch 和它的理由")
    args = parser.parse_args(argv)
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        install = "python -m pip install torch==2.13.0 numpy rich pydantic einops tqdm pyyaml psutil"
        print(f"缺少 {', '.join(missing)}：{install}", file=sys.stderr)
        return 2
    from runnable.megatron_cpu.command import list_patches, play, train

    if args.patches:
        return list_patches()
    shown = [a for a in argv if args.out is None or a not in ("--out", args.out)]
    run = play if args.only is not None else train
    return run(args, command=shlex.join(["python", "-m", "runnable.megatron_cpu", *shown]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
