"""`python -m runnable.megatron_cpu --tp 2 --pp 2 --dp 2`: one real `train_step` of Megatron-LM on this machine's CPUs.

Prints every collective with the line of Megatron that issued it, and compares every gradient and every parameter after
the step with the same step in one process. The source is the pin's, unmodified; `--patches` lists what replaces CUDA.
`--layout llama-3-70b --only 137` plays one rank of 512 alone: whom it talks to, in which order, with which shapes, from
which line; it cannot know values, losses and times.
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import sys

from runnable.megatron_cpu.layouts import LARGE, LAYOUTS

SIZES = {
    "tp": "tensor parallel size",
    "pp": "pipeline parallel size",
    "dp": "data parallel size",
    "cp": "context parallel size（attention 是本项目的）",
    "vpp": "每个 stage 的 virtual chunk",
}
NEEDED = ("torch", "numpy", "rich", "pydantic", "einops", "tqdm", "yaml", "psutil")


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m runnable.megatron_cpu", description=__doc__)
    layout = parser.add_argument_group("布局")
    for name, text in SIZES.items():
        layout.add_argument(f"--{name}", type=int, default=1, help=text)
    layout.add_argument("--sp", action="store_true", help="sequence parallel")
    layout.add_argument("--dist-opt", action="store_true", help="distributed optimizer")
    layout.add_argument(
        "--overlap", action="store_true", help="梯度同步与反向重叠；有 --dist-opt 时参数聚合也与前向重叠"
    )
    layout.add_argument(
        "--layout", choices=(*LAYOUTS, *LARGE), metavar="NAME",
        help=f"有名字的布局与它的模型，代替其余布局与模型参数：{'、'.join(LAYOUTS)}；要 --only：{'、'.join(LARGE)}",
    )  # fmt: skip
    layout.add_argument("--all", action="store_true", help="逐个运行所有有名字的布局，与单进程比较（几分钟）")
    model = parser.add_argument_group("模型与数据")
    model.add_argument("--layers", type=int, default=4)
    model.add_argument("--hidden", type=int, default=32)
    model.add_argument("--ffn", type=int, default=0, help="默认 4 × hidden")
    model.add_argument("--heads", type=int, default=4)
    model.add_argument("--groups", type=int, default=0, help="query group 数（GQA）；默认每个 head 一个")
    model.add_argument("--seq", type=int, default=16)
    model.add_argument("--vocab", type=int, default=128, help="补齐之后的词表，要能被 tp 整除")
    model.add_argument("--micro-batch", type=int, default=2)
    model.add_argument("--global-batch", type=int, default=8, help="所有 DP 副本、所有 microbatch 合计的样本数")
    model.add_argument("--steps", type=int, default=1)
    model.add_argument("--mask", action="store_true", help="在 dataloader 里造 attention mask（要 broadcast）")
    model.add_argument("--adam", action="store_true", help="Adam 代替 SGD（--dist-opt 总是 Adam）")
    parser.add_argument("--only", type=int, metavar="RANK", help="不启动其余 rank，只扮演这一个：任意规模，不看数值")
    parser.add_argument(
        "--trace", choices=("step", "setup", "checkpoint"), default="step",
        help="记录 train_step；或它之前的初始化（含 new_group）；或之后的 save_checkpoint 与 load_checkpoint",
    )  # fmt: skip
    parser.add_argument("--rank", type=int, default=0, help="显示哪个 rank 的通信")
    parser.add_argument("--out", metavar="STEM", help="写 STEM.json 与 STEM.txt")
    parser.add_argument("--picture", action="store_true", help="有 --out 时也写 STEM-comm.svg")
    parser.add_argument("--no-parity", action="store_true", help="不与单进程比较")
    parser.add_argument("--verbose", action="store_true", help="也打印 Megatron 自己的输出")
    parser.add_argument("--patches", action="store_true", help="列出每个 patch 和它的理由")
    parser.add_argument("extra", nargs="*", metavar="-- ARG", help="`--` 之后的参数原样交给 Megatron")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Run; 0 all equal, 1 something differs, 2 wrong use, 3 Megatron failed."""
    args = parse(argv)
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        install = "python -m pip install torch==2.13.0 numpy rich pydantic einops tqdm pyyaml psutil"
        print(f"缺少 {', '.join(missing)}：{install}", file=sys.stderr)
        return 2
    from runnable.megatron_cpu.command import list_patches, play, train
    from runnable.megatron_cpu.everything import train_all

    if args.patches:
        return list_patches()
    if args.all:
        return train_all()
    shown = [a for a in argv if a not in ("--picture", "--out", args.out)]
    run = play if args.only is not None else train
    return run(args, command=shlex.join(["python", "-m", "runnable.megatron_cpu", *shown]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
