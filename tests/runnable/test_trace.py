"""The tracer misses nothing: it agrees with a dispatch mode on c10d's operators and with PyTorch's flight recorder."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from pathlib import Path

import pytest

from runnable.traces import Event, Group, RankTrace, Trace


def in_ranks(tmp_path, body, world: int = 2) -> list:
    """Run body(rank) in forked gloo ranks; what each returns."""
    import torch.distributed as dist

    from runnable.lab import launch

    def rank(store: str) -> int:
        me = int(os.environ["RANK"])
        launch.use_loopback(world)
        dist.init_process_group("gloo", init_method=store, rank=me, world_size=world)
        try:
            (tmp_path / f"{me}.pickle").write_bytes(pickle.dumps(body(me)))
        finally:
            dist.destroy_process_group()
        return 0

    code = launch.fork_ranks(world, rank)
    assert code == 0
    return [pickle.loads((tmp_path / f"{r}.pickle").read_bytes()) for r in range(world)]


def every_api(rank: int) -> None:
    """One call of each kind, under old and new names, blocking and not."""
    import torch
    import torch.distributed as dist

    one, two = torch.ones(4), torch.ones(8)
    dist.all_reduce(one)
    dist.all_reduce(one, async_op=True).wait()
    dist.all_gather_into_tensor(two, one)
    dist.all_gather([torch.empty(4), torch.empty(4)], one)
    dist.reduce_scatter_tensor(one, two)
    dist.broadcast(one, src=1)
    dist.reduce(one, dst=0)
    dist.all_to_all_single(two, two.clone())
    dist.barrier()
    ops = [dist.P2POp(dist.isend, one, 1 - rank), dist.P2POp(dist.irecv, torch.empty(4), 1 - rank)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    dist.all_gather_object([None, None], "x")
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(one)
        dist.all_reduce(two)
    manager.wait()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_as_many_calls_as_the_dispatcher_sees(tmp_path):
    def body(rank: int) -> tuple[int, int]:
        import warnings

        from torch.utils._python_dispatch import TorchDispatchMode

        from runnable.lab.trace import Tracer

        warnings.simplefilter("ignore")
        seen: Counter[str] = Counter()

        class Count(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                if func.namespace == "c10d":
                    seen[func._schema.name] += 1
                return func(*args, **(kwargs or {}))

        tracer = Tracer()
        tracer.install()
        with Count():
            every_api(rank)
        tracer.remove()
        return len(tracer.events), sum(seen.values())

    for recorded, dispatched in in_ranks(tmp_path, body):
        assert recorded == dispatched > 10


def test_as_many_collectives_as_the_flight_recorder(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "1000")

    def body(rank: int) -> tuple[Counter[str], int]:
        import torch
        import torch.distributed as dist

        from runnable.lab.trace import Tracer

        tracer = Tracer()
        tracer.install()
        for _ in range(3):
            dist.all_reduce(torch.ones(4))
            dist.broadcast(torch.ones(2), src=0)
            dist.all_gather([torch.empty(4), torch.empty(4)], torch.ones(4))
        tracer.remove()
        entries = pickle.loads(torch._C._distributed_c10d._dump_fr_trace(True, True, False))["entries"]
        return Counter(e.kind for e in tracer.events), len(entries)

    for kinds, entries in in_ranks(tmp_path, body):
        assert kinds == {"all_reduce": 3, "broadcast": 3, "all_gather": 3}
        assert entries == 9


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_an_event_says(tmp_path):
    def body(rank: int) -> RankTrace:
        import warnings

        from runnable.lab.trace import Tracer

        warnings.simplefilter("ignore")
        tracer = Tracer(trees=((f"{Path(__file__).parent}/", "tests/"),))
        tracer.install()
        with tracer.phase("data"), tracer.label("all"):
            every_api(rank)
        tracer.remove()
        return tracer.result(rank)

    first = in_ranks(tmp_path, body)[0]
    by_api: dict[str, Event] = {}
    for event in first.events:
        by_api.setdefault(event.api, event)
    assert {"all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "batch_isend_irecv"} <= by_api.keys()
    assert {"_coalescing_manager", "all_gather_object", "barrier", "all_to_all_single"} <= by_api.keys()
    gathered = by_api["all_gather_into_tensor"]
    assert (gathered.kind, gathered.before[0].shape, gathered.after[0].shape) == ("all_gather", (4,), (8,))
    assert (gathered.bytes_in, gathered.bytes_out, gathered.phase, gathered.label) == (16, 32, "data", "all")
    assert gathered.site.path == "tests/test_trace.py"
    assert gathered.site.function == "every_api"
    assert by_api["broadcast"].root == 1
    assert by_api["batch_isend_irecv"].peer == 1
    assert by_api["batch_isend_irecv"].asynchronous
    assert [e.asynchronous for e in first.events[:2]] == [False, True]
    assert by_api["all_reduce"].reduce == "SUM"


def test_removed_it_leaves_every_call_as_it_was(tmp_path):
    def body(rank: int) -> tuple[int, int]:
        import warnings

        from runnable.lab.trace import Tracer

        warnings.simplefilter("ignore")
        tracer = Tracer()
        for _ in range(2):
            tracer.install()
            every_api(rank)
            tracer.remove()
        seen = len(tracer.events)
        every_api(rank)
        return seen, len(tracer.events)

    for seen, after in in_ranks(tmp_path, body):
        assert seen == after > 0


def trace_of(*ranks: list[Event]) -> Trace:
    return Trace(
        source="t", command="t", world=len(ranks), layout={}, dims={},
        groups={"world": Group(name="world", desc="default_pg", ranks=tuple(range(len(ranks))))},
        ranks=tuple(RankTrace(rank=r, events=tuple(events)) for r, events in enumerate(ranks)),
    )  # fmt: skip


def event(kind: str, **more) -> Event:
    shape = ({"dtype": "float32", "shape": more.pop("shape", (2,))},)
    sides = {"before": () if kind == "recv" else shape, "after": () if kind == "send" else shape}
    return Event(
        n=0, kind=kind, api=kind, group="world", phase="data", bytes_in=8, bytes_out=8, site=None, **sides, **more
    )


def test_traces_that_do_not_fit_together_are_told():
    reduce, gather = event("all_reduce"), event("all_gather")
    assert trace_of([reduce, gather], [reduce, gather]).unmatched() == []
    assert "rank 1 issued 1 collectives" in trace_of([reduce, gather], [reduce]).unmatched()[0]
    assert trace_of([reduce, gather], [gather, reduce]).unmatched()
    sent, received = event("send", peer=1), event("recv", peer=0)
    assert trace_of([sent], [received]).unmatched() == []
    assert "rank 0 → rank 1: 1 sends, 0 receives" in trace_of([sent], []).unmatched()[0]
    assert trace_of([sent], [event("recv", peer=0, shape=(3,))]).unmatched()


def test_files_are_read_back_as_written():
    trace = trace_of([event("all_reduce", reduce="SUM")], [event("all_reduce", reduce="SUM", asynchronous=True)])
    assert Trace.loads(trace.dumps()) == trace
    with pytest.raises(ValueError, match="version"):
        Trace.loads(trace.dumps().replace('"version": 1', '"version": 2'))
    with pytest.raises(ValueError, match="colour"):
        Trace.loads(trace.dumps().replace('"phase"', '"colour": 1, "phase"', 1))
