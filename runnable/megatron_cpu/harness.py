"""Run layouts of the real Megatron in forked ranks, collect what they sent and what they computed, compare."""

from __future__ import annotations

import logging
import multiprocessing.util
import os
import pickle
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from runnable.lab import launch
from runnable.lab.pin import megatron_tree
from runnable.lab.prove import Check, compare
from runnable.megatron_cpu import driver, fake, patches
from runnable.megatron_cpu.driver import Outcome, Run
from runnable.traces import Group, RankTrace, Trace


class RunFailed(Exception):
    """A rank of the real Megatron ended with an error; `log` holds what the ranks printed."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True)
class Finished:
    """One layout, run."""

    run: Run
    outcomes: tuple[Outcome, ...]
    trace: Trace
    log: str

    @property
    def losses(self) -> list[float]:
        """One for each step; the last pipeline stage knows them."""
        return next(o.losses for o in reversed(self.outcomes) if o.losses)


Known = tuple[Outcome, RankTrace, dict[str, Group]]
"""What one rank leaves."""


def prepare(*, without: frozenset[str] = frozenset()) -> Path:
    """Patch torch and import Megatron from the snapshot, once for all ranks that are forked later."""
    tree = megatron_tree()
    if str(tree) not in sys.path:
        sys.path.insert(0, str(tree))
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patches.apply(patches.BEFORE, tree=str(tree), without=without)
        import megatron.core.models.gpt
        import megatron.training.training  # noqa: F401

        patches.apply(patches.AFTER, without=without)
    return tree


def execute(run: Run, *, tree: Path, command: str = "", timeout: float = 60) -> Finished:
    """Fork the ranks, wait, collect; raises `RunFailed` with what they printed. Call `prepare` before."""
    found, log = collect(
        run, range(run.world), lambda store, results: _rank(run, tree, store, results, timeout), "Megatron"
    )
    return Finished(run, tuple(outcome for outcome, _, _ in found), as_trace(run, found, command), log)


def collect(run: Run, ranks: Sequence[int], body: Callable[[str, Path], int], what: str) -> tuple[list[Known], str]:
    """Fork as many processes as there are ranks to play; what each left, and what they printed."""
    with tempfile.TemporaryDirectory(prefix="megatron-") as folder:
        results = Path(folder)
        code = launch.fork_ranks(len(ranks), lambda store: body(store, results))
        log = "".join(path.read_text(errors="replace") for path in sorted(results.glob("*.log")))
        if code:
            raise RunFailed(f"TP={run.tp} PP={run.pp} CP={run.cp} DP={run.dp}：{what} 以退出码 {code} 结束", log)
        return [pickle.loads((results / f"{rank}.pickle").read_bytes()) for rank in ranks], log


def as_trace(run: Run, found: Sequence[Known], command: str) -> Trace:
    """The ranks' records as one."""
    groups = {key: group for _, _, known in found for key, group in known.items()}
    return Trace(
        source="Megatron-LM@core_v0.17.1",
        command=command,
        world=run.world,
        layout={"tp": run.tp, "cp": run.cp, "ep": run.ep, "dp": run.dp, "pp": run.pp, "order": run.layout.order},
        dims=run.dims(),
        groups=dict(sorted(groups.items())),
        ranks=tuple(rank for _, rank, _ in found),
    )


def quiet(path: Path) -> None:
    """In a rank: everything printed goes to a file, warnings that all ranks repeat go nowhere."""
    log = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    # Whoever started us may have put something else in their place.
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", buffering=1, closefd=False) for stream in (1, 2))
    warnings.simplefilter("ignore")
    logging.getLogger("megatron.core.tensor_parallel.random").setLevel(logging.ERROR)


def _rank(run: Run, tree: Path, store: str, results: Path, timeout: float) -> int:
    def begin(rank: int) -> None:
        launch.use_loopback(run.world)
        limit = timedelta(seconds=timeout)
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=run.world, timeout=limit)

    return one_rank(run, int(os.environ["RANK"]), tree, results, begin)


def one_rank(run: Run, rank: int, tree: Path, results: Path, begin: Callable[[int], None]) -> int:
    """One rank from `begin`, which brings up its world, to the file with what it knows; the exit code."""
    quiet(results / f"{rank}.log")
    os.chdir(results)
    record = driver.tracer(str(tree))
    record.on = False
    try:
        begin(rank)
        record.install()
        record.watch_groups()
        outcome = driver.train(run, record)
        found = outcome, record.result(rank), record.groups
        (results / f"{rank}.pickle").write_bytes(pickle.dumps(found))
        return 0
    except Exception as error:
        return launch.explain(f"[rank {rank}/{run.world}]", error)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
        # A rank leaves by os._exit: the checkpoint writer's manager processes would outlive it.
        multiprocessing.util._exit_function()


def play(run: Run, rank: int, *, tree: Path, command: str = "") -> Trace:
    """What one rank of a job of any size would send (`fake` says how, and what it cannot know)."""
    alone = replace(run, shapes_only=True, only_here=(*run.only_here, "--disable-gloo-process-groups"))

    def body(store: str, results: Path) -> int:
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(run.world)}
        return one_rank(alone, rank, tree, results, lambda me: fake.begin(me, run.world))

    found, _ = collect(run, [rank], body, f"rank {rank}：Megatron")
    return as_trace(run, found, command)


def whole(outcomes: Sequence[Outcome], field: str) -> dict[tuple[str, tuple[int, ...]], torch.Tensor]:
    """All pieces of all ranks; a piece that several ranks hold must be the same on each (`compare_runs` checks)."""
    return {key: tensor for outcome in outcomes for key, tensor in getattr(outcome, field).items()}


def compare_runs(many: Finished, one: Finished, *, tolerance: float = 2e-5) -> list[Check]:
    """Every gradient and every parameter of every rank against the same piece of the one-process run.

    With the distributed optimizer a rank's gradient buffer is summed in its own shards only: parameters alone there.
    """
    checks, fields = [], {"grads": "grad", "params": "一步后"}
    if many.run.dist_opt:
        del fields["grads"]
    for field, text in fields.items():
        reference: dict[str, list[tuple[tuple[int, ...], torch.Tensor]]] = defaultdict(list)
        for (name, offset), tensor in whole(one.outcomes, field).items():
            reference[name].append((offset, tensor))
        for outcome in many.outcomes:
            for (name, offset), tensor in getattr(outcome, field).items():
                want = _find(reference[name], offset, tensor)
                checks.append(compare(f"{text} {name}", tensor, want, rank=outcome.rank, tolerance=tolerance))
    return checks


def _find(
    pieces: list[tuple[tuple[int, ...], torch.Tensor]], offset: tuple[int, ...], like: torch.Tensor
) -> torch.Tensor:
    """The stretch of the one-process tensor at this place; leading offsets pick a layer and an expert."""
    lead = len(offset) - like.dim()
    for start, whole in pieces:
        if start[:lead] == offset[:lead]:
            cuts = [(at - first, size) for at, first, size in zip(offset[lead:], start[lead:], like.shape, strict=True)]
            if all(0 <= at <= full - size for (at, size), full in zip(cuts, whole.shape, strict=True)):
                return whole[tuple(slice(at, at + size) for at, size in cuts)]
    raise LookupError(f"one process holds nothing at {offset}")
