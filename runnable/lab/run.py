"""What a chapter's script works with on one rank, and how it is started, checked and ended."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from runnable.lab import draw
from runnable.lab.prove import Check, compare, lines
from runnable.lab.ranks import SHORT, Layout
from runnable.lab.report import Report
from runnable.lab.trace import Tracer
from runnable.traces import Phase, Trace, write_text

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, kw_only=True)
class Script:
    """A chapter's script: what to run, on how many ranks, what can be broken."""

    file: str
    """`__file__` of the script."""
    title: str
    run: Callable[[Lab], None]
    np: int
    """Ranks when nothing else is said."""
    layout: Callable[[Namespace, int], Layout]
    """Sizes from the arguments and the world size; raises `LayoutError`."""
    groups: tuple[str, ...] = ()
    """Axes of the process groups that the script uses: "tp", "dp-cp", …"""
    helpers: tuple[str, ...] = ()
    """Functions of the script that only pass a call on: the trace names their caller too."""
    preload: tuple[str, ...] = ()
    """Modules that torch imports when the script first needs them: imported once, before the ranks are forked."""
    breaks: Mapping[str, str] = field(default_factory=dict)
    """Rule → what is left out; `--break RULE` must make the proof fail."""
    arguments: Callable[[ArgumentParser], object] = lambda parser: None

    @property
    def name(self) -> str:
        return Path(self.file).stem


class SavedBytes:
    """Bytes that autograd holds between forward and backward."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self._storages: dict[int, int] = {}

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """A hook for `torch.autograd.graph.saved_tensors_hooks`."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._parameters:
            self._storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    @property
    def total(self) -> int:
        return sum(self._storages.values())


class Lab:
    """One rank's side of the laboratory."""

    def __init__(self, script: Script, args: Namespace, layout: Layout, *, rank: int, device: torch.device) -> None:
        self.script, self.args, self.layout = script, args, layout
        self.rank, self.world, self.device = rank, layout.world, device
        self.dtype = DTYPES[args.dtype]
        self.timeout = timedelta(seconds=args.timeout)
        """For `new_group`: a group does not inherit the world's, it would wait for 30 minutes."""
        self.place = layout.dense.place(rank)
        self.report = Report(speaks=rank == 0, stable=args.out is not None)
        self.tracer = Tracer(helpers=frozenset(script.helpers))
        self.dims: dict[str, int] = {}
        """Letters of symbolic shapes, for the trace file."""
        self.pictures: dict[str, str] = {}
        self.timed_picture = ""
        """A picture that holds times: written beside the chrome trace, never among the recordings."""
        self._groups: dict[str, dist.ProcessGroup] = {}
        self._checks: list[Check] = []
        self._failed: list[str] = []

    def open(self) -> None:
        """Make the process groups and start to record; every rank calls this once the world is up."""
        desc = {short: long for long, short in SHORT.items()}
        for token in self.script.groups:
            members = self.layout.all_groups()[desc[token]] if token in desc else self.layout.dense.groups(token)
            for ranks in members:
                # Every rank makes every group, also those it is not in: new_group is a call of the whole world.
                group = dist.new_group(ranks, group_desc=desc.get(token, token), timeout=self.timeout)
                if self.rank in ranks:
                    self._groups[token] = group
        self.tracer.install()
        torch.manual_seed(self.args.seed)
        self.report.title(f"{self.script.name}：{self.script.title}")
        if self.args.broken:
            self.report.say(f"[red]--break {self.args.broken}：{self.script.breaks[self.args.broken]}[/red]")
        self.report.rank_map(self.layout, self.script.groups)

    def group(self, token: str) -> dist.ProcessGroup:
        """The process group of this rank over these axes."""
        return self._groups[token]

    def broken(self, rule: str) -> bool:
        """Whether `--break` names this rule."""
        if rule not in self.script.breaks:
            raise KeyError(f"{self.script.name} has no break {rule!r}")
        return bool(self.args.broken == rule)

    def phase(self, name: Phase) -> Any:
        """Record what happens inside under this phase."""
        return self.tracer.phase(name)

    def span(self, name: str, category: str = "compute") -> Any:
        """Show what happens inside on the timeline."""
        return self.tracer.span(name, category)

    @contextmanager
    def saved_bytes(self, model: torch.nn.Module) -> Iterator[SavedBytes]:
        """Count what autograd keeps for backward inside: activations, each storage once, parameters not."""
        kept = SavedBytes(model)
        with torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda tensor: tensor):
            yield kept

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, this rank computes the one-process reference: nothing is sent, nothing recorded."""
        with self.tracer.paused(), torch.random.fork_rng(devices=[]):
            yield

    def check(self, name: str, got: torch.Tensor, want: torch.Tensor, *, tolerance: float | None = None) -> None:
        """Hold a tensor of this rank against the same piece of the reference."""
        self._checks.append(compare(name, got, want, rank=self.rank, tolerance=tolerance))

    def sgd_step(
        self,
        named: Iterable[tuple[str, torch.nn.Parameter]],
        *,
        lr: float,
        reference: Mapping[str, tuple[torch.Tensor, torch.Tensor]],
        label: str = "",
    ) -> None:
        """Step by plain SGD, and hold every gradient and every parameter after it against the reference.

        `reference` maps each name to this rank's piece of the one-process weight (before) and gradient.
        """
        named = list(named)
        for name, p in named:
            self.check(f"grad {label}{name}", p.grad, reference[name][1])
        with self.phase("optimizer"), torch.no_grad():
            for _, p in named:
                p -= lr * p.grad
        for name, p in named:
            weight, grad = reference[name]
            self.check(f"SGD 后 {label}{name}", p, weight - lr * grad)

    def gather(self, value: object) -> list[Any]:
        """A value from every rank, on every rank; not recorded."""
        found: list[Any] = [None] * self.world
        with self.tracer.paused():
            dist.all_gather_object(found, value)
        return found

    def prove(self, title: str) -> bool:
        """Print the comparison of all ranks' checks since the last proof; a failure decides the exit code."""
        found = lines(check for checks in self.gather(self._checks) for check in checks)
        self._checks = []
        if not found:
            raise AssertionError(f"{title}: nothing was compared")
        self.report.proof(title, found)
        return self.require(all(line.passed for line in found), title)

    def require(self, truth: bool, claim: str) -> bool:
        """A claim that must hold on every rank."""
        holds = all(self.gather(truth))
        if not holds:
            self._failed.append(claim)
            self.report.say(f"[red]✗ {claim}[/red]")
        return holds

    def expect(self, counts: Mapping[tuple[str, str, str], int], title: str = "通信次数 = 公式") -> bool:
        """Hold the recorded calls of this rank, by (phase, kind, group), against closed forms: all of them."""
        groups = self.tracer.groups
        got = Counter((e.phase, e.kind, groups[e.group].name) for e in self.tracer.events)
        want = Counter({key: count for key, count in counts.items() if count})
        rows = [(*key, want[key], got[key], "✓" if want[key] == got[key] else "✗") for key in sorted(want | got)]
        self.report.table(f"{title}（rank 0）", ["phase", "collective", "group", ">公式", ">记录", ""], rows)
        return self.require(got == want, title)

    def trace(self) -> Trace:
        """All ranks' records as one trace; every rank calls this."""
        parts = self.gather((self.tracer.result(self.rank), self.tracer.groups))
        groups = {key: group for _, known in parts for key, group in known.items()}
        sizes = self.layout.dense.sizes | {"ep": self.layout.ep, "order": self.layout.order}
        return Trace(
            source=f"runnable/{self.script.name}.py",
            command=self.args.command,
            world=self.world,
            layout=sizes,
            dims=self.dims,
            groups=dict(sorted(groups.items())),
            ranks=tuple(part for part, _ in parts),
        )

    def finish(self) -> int:
        """Print the communication, write the files, say the verdict; the exit code."""
        trace = self.trace()
        self.require(not (wrong := trace.unmatched()), "各 rank 的通信互相对得上" + "".join(f"\n  {w}" for w in wrong))
        if self.tracer.events:
            self.report.communication(trace)
            self.pictures.setdefault("comm", draw.communication(trace))
        if self._failed:
            self.report.say(f"[bold red]未通过：{'；'.join(self._failed)}[/bold red]")
        else:
            self.report.say("[bold green]全部通过[/bold green]")
        if self.args.chrome:
            self._write_chrome(Path(self.args.chrome))
        if self.args.out and self.rank == 0:
            stem = Path(self.args.out)
            write_text(stem.with_name(stem.name + ".json"), trace.dumps())
            write_text(stem.with_name(stem.name + ".txt"), self.report.text())
            for name, text in self.pictures.items():
                write_text(stem.with_name(f"{stem.name}-{name}.svg"), text)
        return 1 if self._failed else 0

    def _write_chrome(self, path: Path) -> None:
        """Times for chrome://tracing or Perfetto; a file of its own, since times differ from run to run."""
        spans = self.gather([asdict(span) for span in self.tracer.spans])
        start = min((span["start"] for mine in spans for span in mine), default=0)
        events = [
            {
                "name": span["name"],
                "cat": span["category"],
                "ph": "X",
                "pid": rank,
                "tid": span["category"].split(":")[0],
                "ts": (span["start"] - start) / 1000,
                "dur": (span["end"] - span["start"]) / 1000,
            }
            for rank, mine in enumerate(spans)
            for span in mine
        ]
        if self.rank == 0:
            write_text(path, json.dumps({"traceEvents": events}))
            if self.timed_picture:
                write_text(path.with_suffix(".svg"), self.timed_picture)
