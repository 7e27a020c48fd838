"""What the lab costs: `python bench/lab.py` with the extras `lab` and `megatron`; some minutes on two cores.

Writes `bench/lab.json` and the section of `bench/RESULTS.md` between its marks.

- scripts: each chapter's script in a fresh process with 2 and 4 ranks, in alternating rounds. Wall time from start to
  exit; peak memory as the sum of PSS over all its processes, sampled (pages shared after the fork count once). The time
  to import torch and the lab is measured apart, in processes that do nothing else.
- bytes: what every rank put into the collectives of the committed traces, against the closed form of the algorithm.
- linear pair: forward and backward of ch10's Column/Row pair and of Megatron's `ColumnParallelLinear` and
  `RowParallelLinear`, same sizes, alternating step by step in the same two processes.
- tracer: the real Megatron's `train_step`, tiny, on 4 ranks: steps without the tracer, with it (it walks the stack for
  the issuing line), and with it and the names of modules (hooks on every module), in turn in one run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.functional import gelu, linear  # noqa: E402

from bench.lab_bytes import byte_rows  # noqa: E402
from bench.results import Section  # noqa: E402
from runnable.demo import scripts  # noqa: E402
from runnable.lab import launch  # noqa: E402

SECTION = Section("lab")
GOAL_SECONDS = 10.0
MODES = {"plain": 0.0, "traced": 0.12, "named": 0.18}
"""How a step is watched → the overhead aimed at: half of what the first version took."""
SIZES = (2, 4)
S, B, H, FFN = 256, 2, 512, 2048
"""Sizes of the linear pair that is timed."""


@dataclass(frozen=True)
class Played:
    """One run of a script."""

    seconds: float
    cpu: float
    """Seconds of user and system time of all its processes."""
    mib: float


def play(script: Path, ranks: int) -> Played:
    """Run it and watch its memory; a script that fails ends the measurement."""
    with tempfile.TemporaryFile() as output:
        start, worked, peak = time.monotonic(), _cpu_of_children(), 0
        process = subprocess.Popen([sys.executable, script, "--np", str(ranks)], stdout=output, stderr=output, cwd=ROOT)
        while process.poll() is None:
            peak = max(peak, sum(_pss(pid) for pid in _family(process.pid)))
            time.sleep(0.05)
        seconds = time.monotonic() - start
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{script.name} --np {ranks}: exit code {process.returncode}\n{output.read().decode()}")
    return Played(seconds, _cpu_of_children() - worked, peak / 1024)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _pss(pid: int) -> int:
    """KiB; 0 for a process that has just ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


def import_seconds(rounds: int) -> list[float]:
    """What every script pays before its first line of its own."""
    found = []
    for _ in range(rounds):
        start = time.monotonic()
        subprocess.run([sys.executable, "-c", "import runnable.lab.launch"], cwd=ROOT, check=True)
        found.append(time.monotonic() - start)
    return found


def pair_ratio(steps: int, *, sp: bool) -> dict[str, float]:
    """Milliseconds of a step of our pair and of Megatron's, and their ratio; call after `harness.prepare`."""
    return _in_ranks(2, lambda rank: _pair(rank, steps, sp=sp))


def _pair(rank: int, steps: int, *, sp: bool) -> dict[str, float]:
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
    from megatron.core.transformer import TransformerConfig

    parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
    config = TransformerConfig(
        num_layers=1, hidden_size=H, num_attention_heads=8, tensor_model_parallel_size=2, sequence_parallel=sp,
        perform_initialization=False, gradient_accumulation_fusion=False,
    )  # fmt: skip
    column = ColumnParallelLinear(H, FFN, config=config, init_method=None, bias=True, gather_output=False)
    row = RowParallelLinear(
        FFN, H, config=config, init_method=None, bias=True, input_is_parallel=True, skip_bias_add=False
    )
    torch.manual_seed(rank)
    for p in (*column.parameters(), *row.parameters()):
        torch.nn.init.normal_(p, std=0.02)
    script = runpy.run_path(str(scripts()["10"]))
    group = parallel_state.get_tensor_model_parallel_group()
    lab = SimpleNamespace(args=SimpleNamespace(sp=sp), group=lambda name: group, broken=lambda rule: False)
    x = torch.randn(S // 2 if sp else S, B, H, requires_grad=True)

    def theirs() -> torch.Tensor:
        return row(gelu(column(x)[0]))[0]

    def ours() -> torch.Tensor:
        y = gelu(script["ColumnLinear"].apply(x, column.weight, column.bias, lab))
        return script["RowReduce"].apply(linear(y, row.weight), lab) + row.bias

    if not torch.allclose(ours(), theirs(), atol=1e-5):
        raise AssertionError("the two pairs compute different things")
    times: dict[str, list[float]] = {"ours": [], "megatron": []}
    for step in range(steps + 3):
        for name, forward in (("ours", ours), ("megatron", theirs)):
            dist.barrier()
            start = time.perf_counter()
            forward().sum().backward()
            if step >= 3:
                times[name].append(time.perf_counter() - start)
    ms = {name: 1000 * statistics.median(found) for name, found in times.items()}
    return ms | {"ratio": ms["ours"] / ms["megatron"]}


def tracer_overhead(steps: int, tree: Path) -> dict[str, float]:
    """Milliseconds of a tiny real `train_step` without and with the tracer; call after `harness.prepare`."""
    return _in_ranks(4, lambda rank: _train(steps, tree))


def _train(steps: int, tree: Path) -> dict[str, float]:
    from megatron.training import training

    from runnable.megatron_cpu import driver

    record = driver.tracer(str(tree))
    wall: dict[str, list[float]] = {mode: [] for mode in MODES}
    cpu: dict[str, list[float]] = {mode: [] for mode in MODES}
    original = training.train_step
    hooks: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
    """Those that name modules, where they hang and what hangs there."""
    names: list[Any] = []

    def timed(step: object, data: object, model: list[Any], *args: object, iteration: int, **kwargs: object) -> object:
        mode = tuple(MODES)[iteration % len(MODES)]
        if not hooks:
            places = (m for chunk in model for m in chunk.modules())
            hooks.extend((d, dict(d)) for m in places for d in (m._forward_hooks, m._forward_pre_hooks) if d)
            names.append(record.module_of)
        for place, kept in hooks:
            place.clear()
            place.update(kept if mode == "named" else {})
        record.module_of = names[0] if mode == "named" else lambda: None
        record.remove()
        dist.barrier()
        if mode != "plain":
            record.install()
        start, worked = time.perf_counter(), time.process_time()
        result = original(step, data, model, *args, iteration=iteration, **kwargs)
        if iteration >= 2 * len(MODES):
            wall[mode].append(time.perf_counter() - start)
            cpu[mode].append(time.process_time() - worked)
        return result

    training.train_step = timed
    driver.train(driver.Run(tp=2, pp=2, steps=(steps + 2) * len(MODES)), record)
    if not any(event.module for event in record.events):
        raise AssertionError("no module was named")
    found: dict[str, float] = {"calls": len(record.events)}
    for name, times in (("wall", wall), ("cpu", cpu)):
        everyone: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, {mode: statistics.median(times[mode]) for mode in MODES})
        for mode in MODES:
            found[f"{name}_{mode}"] = 1000 * statistics.mean(medians[mode] for medians in everyone)
            found[f"{name}_{mode}_overhead"] = found[f"{name}_{mode}"] / found[f"{name}_plain"] - 1
    return found


def _in_ranks(world: int, body: Callable[[int], dict[str, float]]) -> dict[str, float]:
    """body(rank) in forked ranks; what rank 0 found."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:

        def rank(store: str) -> int:
            me = int(os.environ["RANK"])
            log = os.open(f"{folder}/{me}.log", os.O_CREAT | os.O_WRONLY)
            os.dup2(log, 1)
            os.dup2(log, 2)
            launch.use_loopback(world)
            dist.init_process_group("gloo", init_method=store, rank=me, world_size=world)
            found = body(me)
            Path(folder, f"{me}.json").write_text(json.dumps(found), encoding="utf-8")
            dist.destroy_process_group()
            return 0

        if launch.fork_ranks(world, rank):
            raise SystemExit(Path(folder, "0.log").read_text(encoding="utf-8", errors="replace"))
        result: dict[str, float] = json.loads(Path(folder, "0.json").read_text(encoding="utf-8"))
        return result


def measure(rounds: int, steps: int) -> dict[str, Any]:
    """Everything, as plain data."""
    runs: dict[str, dict[int, list[Played]]] = {chapter: {n: [] for n in SIZES} for chapter in sorted(scripts())}
    load = os.getloadavg()[0]
    imports = import_seconds(rounds)
    for turn in range(rounds):
        for chapter, sizes in runs.items():
            for ranks, found in sizes.items():
                found.append(play(scripts()[chapter], ranks))
        print(f"round {turn + 1} of {rounds}", flush=True)
    result: dict[str, Any] = {
        "cores": os.cpu_count(),
        "load": [load, os.getloadavg()[0]],
        "import": imports,
        "scripts": {c: {n: [asdict(one) for one in found] for n, found in sizes.items()} for c, sizes in runs.items()},
        "bytes": byte_rows(),
        "megatron": None,
    }
    try:
        from runnable.megatron_cpu import harness

        tree = harness.prepare()
    except ImportError as error:
        print(f"no comparison with Megatron: {error}", file=sys.stderr)
        return result
    result["megatron"] = {
        "pair": pair_ratio(steps, sp=False),
        "pair_sp": pair_ratio(steps, sp=True),
        "tracer": tracer_overhead(steps, tree),
    }
    return result


def markdown(result: dict[str, Any]) -> str:
    """The section of RESULTS.md."""
    first, last = result["load"]
    imported = statistics.median(result["import"])
    lines = [
        f"Python {platform.python_version()}, torch {torch.__version__}, {platform.system()} {platform.machine()}, "
        f"{result['cores']} cores, load average {first:.1f} at the start and {last:.1f} at the end of the rounds: "
        f"the machine was {'busy with other work' if max(first, 0) > 1 else 'otherwise idle at the start'}. "
        f"Medians of {len(result['import'])} rounds (least and most in brackets).",
        "",
        f"Importing torch and the lab: {_spread(result['import'], 2)} s, part of every time below.",
        "",
        "| script | 2 ranks, s | CPU s | peak MiB | 4 ranks, s | CPU s | peak MiB |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    slowest = 0.0
    for chapter, sizes in result["scripts"].items():
        cells = []
        for ranks in SIZES:
            found = sizes[ranks]
            slowest = max(slowest, statistics.median(one["seconds"] for one in found))
            cells += [
                _spread([one["seconds"] for one in found], 2),
                f"{statistics.median(one['cpu'] for one in found):.1f}",
                f"{statistics.median(one['mib'] for one in found):.0f}",
            ]
        lines.append(f"| ch{chapter} | {' | '.join(cells)} |")
    lines += [
        "",
        f"- slowest script, median: **{slowest:.1f} s**, of which import {imported:.1f} s (goal ≤ {GOAL_SECONDS:.0f})",
        "",
        "| trace | phase, call, group | bytes put in: rank 0 | most of any rank | closed form, every rank |",
        "|---|---|--:|--:|---|",
        *(
            f"| {row['trace']} | {row['call']} | {row['rank 0']} | {row['most']} | "
            f"{'equal' if row['equal'] else 'DIFFERS'} |"
            for row in result["bytes"]
        ),
        "",
    ]
    real = result["megatron"]
    if real is None:
        return "\n".join([*lines, "- comparison with Megatron and the tracer's cost: missing (extra `megatron`)"])
    for name, key in (("", "pair"), (", sequence parallel", "pair_sp")):
        pair = real[key]
        lines.append(
            f"- Column/Row pair, 2 ranks, s={S} b={B} h={H} f={FFN}{name}: ours {pair['ours']:.1f} ms a step, "
            f"Megatron's {pair['megatron']:.1f} ms: **{pair['ratio']:.2f}**"
        )
    tracer = real["tracer"]
    for mode, text in (("traced", "with the tracer"), ("named", "with the tracer and the names of modules")):
        lines.append(
            f"- tracer, tiny `train_step` of the real Megatron, 4 ranks, CPU time of a rank (mean of their medians): "
            f"{tracer['cpu_plain']:.1f} ms without, {tracer[f'cpu_{mode}']:.1f} ms {text}: "
            f"**{100 * tracer[f'cpu_{mode}_overhead']:+.0f} %** (goal ≤ {100 * MODES[mode]:.0f} %); wall time "
            f"{tracer['wall_plain']:.0f} and {tracer[f'wall_{mode}']:.0f} ms"
        )
    return "\n".join(lines)


def _spread(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def main() -> int:
    """Measure, print, write; 1 when a closed form does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--dry", action="store_true", help="print only, write no results")
    arguments = parser.parse_args()
    result = measure(arguments.rounds, arguments.steps)
    section = markdown(result)
    print(section)
    if not arguments.dry:
        SECTION.write(section, figures=result)
    return 0 if all(row["equal"] for row in result["bytes"]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
