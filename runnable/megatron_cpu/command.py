"""What the command line does once its arguments and packages are there."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from runnable.lab import draw
from runnable.lab.prove import lines
from runnable.lab.ranks import LayoutError
from runnable.lab.report import Report
from runnable.megatron_cpu import harness, patches
from runnable.megatron_cpu.layouts import LARGE, LAYOUTS, PER_TOKEN
from runnable.megatron_cpu.run import Run
from runnable.traces import write_text


def list_patches() -> int:
    """Name and reason of each."""
    from runnable.megatron_cpu import scripts  # noqa: F401  (registers what Megatron's own scripts need)

    report = Report(speaks=True, stable=False)
    rows = [(p.name, p.when, p.reason) for p in patches.PATCHES]
    report.table("未改动的 Megatron-LM 在 CPU 上训练所需的 patch", ["替换", "何时", "理由"], rows)
    return 0


def train(args: Namespace, *, command: str) -> int:
    """Run the layout, print its communication, compare with one process."""
    from sourcepanel.errors import SourcePanelError

    run = run_of(args)
    if problem := next(_problems(run, args, args.rank), None):
        print(problem, file=sys.stderr)
        return 2
    report = Report(speaks=True, stable=args.out is not None)
    report.title(f"Megatron-LM core_v0.17.1，未改动，CPU + gloo：TP={run.tp} PP={run.pp} DP={run.dp}")
    report.rank_map(run.layout, ("tp", "dp", "pp"))
    try:
        tree = harness.prepare()
        many = harness.execute(run, tree=tree, command=command)
        one = None if args.no_parity or run.world == 1 else harness.execute(run.alone(), tree=tree)
    except SourcePanelError as error:
        print(error, file=sys.stderr)
        return 2
    except harness.RunFailed as error:
        print(f"{error.log}\n{error}", file=sys.stderr)
        return 3
    if args.verbose:
        report.say(many.log)
    report.communication(many.trace, rank=args.rank)
    wrong = many.trace.unmatched()
    for line in wrong:
        report.say(f"[red]{line}[/red]")
    passed = not wrong
    if one:
        found = lines(harness.compare_runs(many, one))
        what = f"{'' if run.dist_opt else '每个梯度、'}{'Adam' if run.adam or run.dist_opt else 'SGD'} 一步后的每个参数"
        report.proof(f"{what}：与单进程的 Megatron 比较（所有 rank、所有层）", found)
        report.say(
            f"loss：{' '.join(f'{x:.5f}' for x in many.losses)}，单进程：{' '.join(f'{x:.5f}' for x in one.losses)}"
        )
        passed = passed and all(line.passed for line in found)
    report.say("[bold green]全部通过[/bold green]" if passed else "[bold red]未通过[/bold red]")
    if args.out:
        stem = Path(args.out)
        write_text(stem.with_name(stem.name + ".json"), many.trace.dumps())
        write_text(stem.with_name(stem.name + ".txt"), report.text())
        if args.picture:
            write_text(stem.with_name(stem.name + "-comm.svg"), draw.communication(many.trace))
    return 0 if passed else 1


def play(args: Namespace, *, command: str) -> int:
    """One rank of a job of any size, alone."""
    run, report = run_of(args), Report(speaks=True, stable=True)
    if problem := next(_problems(run, args, args.only), None):
        print(problem, file=sys.stderr)
        return 2
    try:
        trace = harness.play(run, args.only, tree=harness.prepare(), command=command)
    except harness.RunFailed as error:
        print(f"{error.log}\n{error}", file=sys.stderr)
        return 3
    grid = run.layout.dense
    report.title(f"rank {args.only} / {run.world}：{grid.place(args.only)}")
    report.communication(trace, rank=args.only)
    report.say(
        "只有这一个 rank 在跑：通信不搬数据，loss 与时间没有意义；稠密模型的 shape、次序、对象与行号与真实运行相同。"
    )
    if args.out:
        write_text(Path(f"{args.out}.json"), trace.dumps())
        write_text(Path(f"{args.out}.txt"), report.text())
    return 0


def run_of(args: Namespace) -> Run:
    """What the command line asks for."""
    if args.layout:
        return replace((LAYOUTS | LARGE)[args.layout], recorded=args.trace)
    same = ("tp", "pp", "dp", "cp", "vpp", "sp", "dist_opt", "overlap", "layers", "hidden", "ffn", "heads", "groups")
    return Run(
        **{name: getattr(args, name) for name in (*same, "seq", "vocab", "steps", "mask", "adam")},
        micro=args.micro_batch,
        # A batch that is no whole number of microbatches is told by `_problems` and never runs.
        microbatches=args.global_batch // max(1, args.micro_batch),
        recorded=args.trace,
        extra=(*(PER_TOKEN if args.cp > 1 else ()), *args.extra),
    )


def _problems(run: Run, args: Namespace, rank: int) -> Iterator[str]:
    """What Megatron would refuse, told before anything starts."""
    try:
        run.layout  # noqa: B018
    except LayoutError as error:
        yield str(error)
    counts = ("layers", "hidden", "heads", "seq", "vocab", "micro_batch", "global_batch", "steps", "vpp")
    if low := [name for name in counts if getattr(args, name) < 1]:
        yield f"--{low[0].replace('_', '-')} {getattr(args, low[0])}：必须 ≥ 1"
    elif run.heads % run.tp or run.seq % run.tp or run.hidden % run.heads:
        yield f"--tp {run.tp}：要能整除 {run.heads} 个 head 与 s={run.seq}；--heads 要能整除 --hidden {run.hidden}"
    elif run.seq % (2 * run.cp):
        yield f"--seq {run.seq} 不能被 2×cp = {2 * run.cp} 整除"
    elif run.groups and (run.heads % run.groups or (run.groups % run.tp and run.tp % run.groups)):
        yield f"--groups {run.groups}：要能整除 {run.heads} 个 head，并与 tp={run.tp} 一个整除另一个"
    elif run.vocab % run.tp or (run.ffn or run.tp) % run.tp:
        yield f"--vocab {run.vocab} 与 --ffn 要能被 tp={run.tp} 整除"
    elif run.layers % (run.pp * run.vpp):
        yield f"--layers {run.layers} 不能被 pp×vpp = {run.pp}×{run.vpp} 整除"
    elif not args.layout and args.global_batch % (run.micro * run.dp):
        yield f"--global-batch {args.global_batch} 不能被 micro-batch × dp = {run.micro}×{run.dp} 整除"
    elif run.vpp > 1 and (run.pp < 2 or (run.microbatches // run.dp) % run.pp):
        yield f"interleaved：要 pp ≥ 2，且每个副本的 microbatch 数 {run.microbatches // run.dp} 能被 pp={run.pp} 整除"
    elif args.layout in LARGE and args.only is None:
        yield f"--layout {args.layout} 有 {run.world} 个 rank：用 --only RANK 扮演其中一个"
    elif args.only is not None and run.ep > 1:
        yield f"--layout {args.layout}：router 把 token 发给谁取决于数值，--only 不知道"
    elif run.sp and run.tp == 1:
        yield "--sp 要 tp ≥ 2"
    elif not 0 <= rank < run.world:
        yield f"--rank {rank}：只有 {run.world} 个 rank"
