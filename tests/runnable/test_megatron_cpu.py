"""The real Megatron-LM of the pin: layouts equal one process; calls follow the closed forms and our replays."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("einops", reason="the real Megatron needs einops")
pytest.importorskip("psutil", reason="the real Megatron needs psutil")

from runnable.lab.ranks import Layout
from runnable.megatron_cpu.layouts import LAYOUTS
from runnable.megatron_cpu.run import Run
from runnable.record import MEGATRON, TRACES
from runnable.traces import Event, Trace

ROOT = Path(__file__).resolve().parents[2]
LONGER = {
    "pp4-vpp2", "dp2-overlap", "tp2-sp-recompute-full", "tp2-recompute-core-attn", "tp2-recompute-mlp",
    "tp2-sp-ep2-alltoall", "tp2-sp-cp2", "llama-tp2-sp-cp2",
}  # fmt: skip
"""`make megatron-all` runs these too."""
QUICK = [name for name in LAYOUTS if name not in LONGER]


def in_a_child(folder: Path, body: Callable[[], object]) -> object:
    """Run in a fork: the patches change torch for good."""
    result = folder / "result.pickle"
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            result.write_bytes(pickle.dumps(body()))
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return pickle.loads(result.read_bytes())


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """All layouts and their one-process twins, Megatron imported once: (checks, trace, losses, twin's losses)."""

    def body() -> dict[str, object]:
        from runnable.megatron_cpu import harness

        tree = harness.prepare()
        twins: dict[Run, harness.Finished] = {}
        found = {}
        for name in QUICK:
            run = LAYOUTS[name]
            many = harness.execute(run, tree=tree)
            if run.alone() not in twins:
                twins[run.alone()] = harness.execute(run.alone(), tree=tree)
            one = twins[run.alone()]
            found[name] = harness.compare_runs(many, one), many.trace, many.losses, one.losses
        return found

    return in_a_child(tmp_path_factory.mktemp("megatron"), body)


@pytest.mark.parametrize("name", QUICK)
def test_every_layout_equals_one_process(runs, name):
    checks, trace, losses, alone = runs[name]
    assert [c for c in checks if not c.passed] == []
    names = {c.name for c in checks}
    tensors = 9 if "llama" in name else 13 if "ep2" in name else 16
    assert len(names) == tensors * (1 if LAYOUTS[name].dist_opt else 2), names
    assert losses == pytest.approx(alone, abs=1e-5)
    assert trace.unmatched() == []


def calls(trace: Trace, rank: int, group: str) -> Counter[tuple[str, str]]:
    return Counter((e.phase, e.kind) for e in trace.events(rank) if trace.groups[e.group].name == group)


def test_tensor_parallel_calls_follow_the_closed_form(runs):
    """m microbatches, L layers: forward m(2L + embedding + 3 of the cross entropy), backward m(2L + head)."""
    m, layers = 4, 4
    _, trace, *_ = runs["tp2"]
    found = calls(trace, 0, "tp")
    assert found["forward", "all_reduce"] == m * (1 + 2 * layers + 3)
    assert found["backward", "all_reduce"] == m * (2 * layers + 1)


def test_sequence_parallel_calls_follow_the_closed_form(runs):
    m, layers = 4, 4
    found = calls(runs["tp2-sp"][1], 0, "tp")
    assert found["forward", "all_gather"] == m * (2 * layers + 1)
    assert found["forward", "reduce_scatter"] == m * 2 * layers
    assert found["backward", "all_gather"] == m * (4 * layers + 1 + 1)
    assert found["backward", "reduce_scatter"] == m * (2 * layers + 1)
    assert found["grad-sync", "all_reduce"] == 1


def test_distributed_optimizer_scatters_gradients_and_gathers_parameters(runs):
    found = calls(runs["dp2-dist-opt"][1], 0, "dp-cp")
    assert found["grad-sync", "reduce_scatter"] == 1
    assert found["param-sync", "all_gather"] == 1
    plain = calls(runs["dp2"][1], 0, "dp-cp")
    assert plain["grad-sync", "all_reduce"] == 1
    assert ("param-sync", "all_gather") not in plain


def test_full_recompute_repeats_the_forward_calls_of_the_layers(runs):
    m, layers = 4, 4
    found = calls(runs["tp2-recompute-full"][1], 0, "tp")
    assert found["recompute", "all_reduce"] == m * 2 * layers
    assert found["forward", "all_reduce"] == m * (1 + 2 * layers + 3)
    assert found["backward", "all_reduce"] == m * (2 * layers + 1)


def test_context_parallel_gathers_keys_and_values(runs):
    m, layers = 4, 4
    found = calls(runs["cp2"][1], 0, "cp")
    assert found == {("forward", "all_gather"): 2 * m * layers, ("backward", "reduce_scatter"): 2 * m * layers}


def test_experts_get_their_tokens_by_all_to_all_or_by_gathering_all(runs):
    """Two microbatches of each replica, four layers: out, their weights, and back again; the same in backward."""
    m, layers = 2, 4
    found = calls(runs["ep2-alltoall"][1], 0, "ep")
    assert found == {("forward", "all_to_all"): 3 * m * layers, ("backward", "all_to_all"): 3 * m * layers}
    assert not calls(runs["ep2-allgather"][1], 0, "ep")
    assert calls(runs["ep2-allgather"][1], 0, "etp-ep")["forward", "reduce_scatter"] == m * layers


def test_calls_name_their_module_in_forward_and_backward(runs):
    """Layers count over all stages: the second stage's first layer is 2."""
    m = 4
    found = Counter((e.phase, e.kind, e.module) for e in runs["tp2-pp2-sp"][1].events(3) if e.module)
    for layer in (2, 3):
        at = f"decoder.layers.{layer}."
        assert found["forward", "reduce_scatter", at + "mlp.linear_fc2"] == m
        assert found["backward", "all_gather", at + "mlp.linear_fc2"] == m
        assert found["backward", "reduce_scatter", at + "self_attention.linear_qkv"] == m
    assert {module.split(".")[2] for _, _, module in found if "layers" in module} == {"2", "3"}
    assert found["backward", "reduce_scatter", "output_layer"] == m
    again = Counter((e.phase, e.module) for e in runs["tp2-recompute-full"][1].events(0) if e.phase == "recompute")
    assert again["recompute", "decoder.layers.0.mlp.linear_fc2"] == m


def test_every_call_has_its_line_of_megatron(runs):
    for _, trace, *_ in runs.values():
        for rank in trace.ranks:
            assert all(e.site is not None and e.site.path.startswith("megatron/") for e in rank.events)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> dict[str, Trace]:
    """Every recording of the real Megatron, made again."""

    def body() -> dict[str, Trace]:
        from runnable.megatron_cpu import harness
        from runnable.megatron_cpu.__main__ import parse
        from runnable.megatron_cpu.command import run_of

        tree, found = harness.prepare(), {}
        for name, argv in MEGATRON.items():
            args = parse(argv)
            if args.only is None:
                found[name] = harness.execute(run_of(args), tree=tree).trace
            else:
                found[name] = harness.play(run_of(args), args.only, tree=tree)
        return found

    return in_a_child(tmp_path_factory.mktemp("recorded"), body)


def comparable(trace: Trace) -> str:
    """All but the command, and the length of pickled objects: another Python pickles the same object shorter."""

    def plain(event: Event) -> Event:
        pickled = event.api.endswith(("_object", "_object_list")) and (*event.before, *event.after)[0].shape != (1,)
        empty = {"before": (), "after": (), "bytes_in": 0, "bytes_out": 0}
        return event.model_copy(update=empty) if pickled else event

    ranks = [r.model_copy(update={"events": tuple(map(plain, r.events))}) for r in trace.ranks]
    return trace.model_copy(update={"command": "", "ranks": tuple(ranks)}).dumps()


@pytest.mark.parametrize("name", MEGATRON)
def test_the_committed_traces_are_todays(recorded, name):
    kept = Trace.load(TRACES / f"{name}.json")
    assert comparable(recorded[name]) == comparable(kept), f"run: python -m runnable.record {name}"
    assert kept.command.startswith("python -m runnable.megatron_cpu ")


def test_what_an_exchange_receives_has_the_phase_of_what_it_waits_for(recorded):
    """send_forward_recv_backward waits for a gradient: its receive is backward, its send forward."""
    found = Counter(
        (e.phase, e.kind, e.stack[0].function.rsplit(".", 1)[-1])
        for rank in recorded["megatron"].ranks
        for e in rank.events
        if e.peer is not None and "recv" in e.stack[0].function and "send" in e.stack[0].function
    )
    assert found == {
        ("forward", "send", "send_forward_recv_backward"): 4,
        ("backward", "recv", "send_forward_recv_backward"): 4,
        ("backward", "send", "send_backward_recv_forward"): 4,
        ("forward", "recv", "send_backward_recv_forward"): 4,
    }


def test_every_rank_makes_every_group_in_the_same_order(recorded):
    """new_group is a call of the whole world, of members and of all others; each group is in the replay's list."""
    trace = recorded["megatron-setup"]
    made = [[e.group for e in rank.events if e.kind == "new_group"] for rank in trace.ranks]
    assert made[0] == made[1] == made[2] == made[3]
    ours = Layout(world=4, tp=2, pp=2).all_groups()
    by_name: dict[str, list[list[int]]] = {}
    for key in made[0]:
        by_name.setdefault(trace.groups[key].desc, []).append(list(trace.groups[key].ranks))
    assert {name: by_name[name] for name in ours} == ours


def test_our_1f1b_sends_what_megatron_sends(runs, play, tmp_path):
    """Same order of sends and receives, same peers, same API, on every rank."""
    assert play("ch11", "--np", 4, "--m", 8, "--out", tmp_path / "ours").code == 0
    ours, theirs = Trace.load(tmp_path / "ours.json"), runs["pp4"][1]
    for rank in range(4):
        want = [(e.kind, e.peer, e.api) for e in theirs.events(rank) if e.peer is not None]
        assert [(e.kind, e.peer, e.api) for e in ours.events(rank)] == want
        assert len(want) == 8 * 2 * (2 if rank in (1, 2) else 1)


def test_one_process_plays_any_rank(runs, tmp_path):
    """Without partners and without numbers each rank makes the calls that it makes in the real run."""
    both = {"tp2-pp2-dp2": (0, 3, 5), "tp2-sp-pp2-vpp2-dp2-dist-opt-overlap": (1, 6), "llama-tp2-sp-pp2": (2,)}

    def body() -> dict[tuple[str, int], Trace]:
        from runnable.megatron_cpu import harness

        tree = harness.prepare()
        ranks = [(name, rank) for name in both for rank in both[name]]
        return {(name, rank): harness.play(LAYOUTS[name], rank, tree=tree) for name, rank in ranks}

    for (name, rank), trace in in_a_child(tmp_path, body).items():
        assert trace.events(rank) == runs[name][1].events(rank), (name, rank)


def test_a_rank_of_a_large_job():
    sizes = {"tp": 8, "pp": 4, "dp": 2, "heads": 8, "layers": 4, "global-batch": 4, "only": 50}
    argv = [part for name, size in sizes.items() for part in (f"--{name}", str(size))]
    done = subprocess.run(
        [sys.executable, "-m", "runnable.megatron_cpu", *argv], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "rank 50 / 64：{'tp': 2, 'cp': 0, 'ep': 0, 'dp': 0, 'pp': 3}" in done.stdout
    assert "batch_isend_irecv ↔ 34" in done.stdout  # the stage before: 16 ranks down


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--tp", "3"), "要能整除 4 个 head"),
        (("--dp", "3"), "micro-batch × dp = 2×3"),
        (("--pp", "3"), "不能被 pp×vpp"),
        (("--sp",), "--sp 要 tp ≥ 2"),
        (("--pp", "2", "--vpp", "2", "--global-batch", "6"), "interleaved"),
        (("--rank", "1"), "只有 1 个 rank"),
        (("--seq", "0"), "--seq 0：必须 ≥ 1"),
        (("--tp", "2", "--vocab", "101"), "--vocab 101"),
        (("--groups", "3"), "--groups 3"),
        (("--tp", "4", "--heads", "12", "--hidden", "36", "--groups", "6"), "与 tp=4 一个整除另一个"),
        (("--layout", "llama-3-70b"), "用 --only RANK"),
        (("--layout", "ep2-alltoall", "--only", "0"), "--only 不知道"),
        (("--cp", "2", "--seq", "6"), "--seq 6"),
    ],
)
def test_layouts_that_do_not_fit_are_told_at_once(argv, says):
    done = subprocess.run(
        [sys.executable, "-m", "runnable.megatron_cpu", *argv], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert done.returncode == 2, done.stderr
    assert says in done.stderr


ALL = """
import sys
from runnable.megatron_cpu import everything
from runnable.megatron_cpu.run import Run
sizes = dict(layers=1, microbatches=2)
runs = {
    "same": Run(tp=2, **sizes),
    "differs": Run(tp=2, only_here=("--lr", "0.2", "--min-lr", "0.2"), **sizes),
    "dies": Run(tp=2, only_here=("--no-such-flag",), **sizes),
}
everything.LAYOUTS = {name: runs[name] for name in sys.argv[1:]}
sys.exit(everything.train_all())
"""


@pytest.mark.parametrize(("names", "code"), [(("same",), 0), (("same", "differs", "dies"), 1)])
def test_all_layouts_are_told_apart_by_their_verdicts(names, code):
    """`make megatron-all` fails when one layout differs or dies, after having run the others."""
    done = subprocess.run([sys.executable, "-c", ALL, *names], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == code, done.stderr
    assert f"1/{len(names)} same" in done.stderr.replace(" 1/", "1/")
    assert ("未通过：differs、dies" in done.stdout) is bool(code)
    assert ("SystemExit: 2" in done.stderr) is bool(code)


NEEDS = {
    "ProcessGroup.send": Run(pp=2, vpp=2),
    "WrappedTorchNorm": Run(tp=2, sp=True),
    "cuda.get_device_properties": Run(tp=2, layers=2, microbatches=2),
    "Tensor.type": Run(layers=2, microbatches=2, extra=("--clip-grad", "0.1")),
    "Tensor.is_cuda": LAYOUTS["ep2-alltoall"],
}
"""Patch → the run that needs it; the others are needed by the smallest run of one process."""
DIFFERS = "numbers differ"
FAILURE = {
    "cuda.is_available": "AssertionError: Megatron requires CUDA",
    "cuda.device_count": "AssertionError: pipeline_model parallel group is not initialized",
    "cuda.current_device": "has no attribute '_cuda_getDevice'",
    "cuda.get_device_properties": "NameError: name '_get_device_properties' is not defined",
    "cuda.Stream": "RuntimeError: torch.cuda.Stream requires CUDA support",
    "cuda RNG": "AssertionError: Torch not compiled with CUDA enabled",
    "Tensor.cuda": "RuntimeError: Invalid device, must be cuda device",
    "Tensor.is_cuda": "TypeError: all_to_all_single(): incompatible function arguments",
    "device='cuda'": "RuntimeError: PyTorch is not linked with support for cuda devices",
    "Tensor.type": "assert param.grad.type() == 'torch.cuda.FloatTensor'",
    "ProcessGroup.send": DIFFERS,
    "WrappedTorchNorm": "AssertionError: sequence parallel not supported by torch LayerNorm",
    "_compile_dependencies": "No such file or directory: 'make'",
}
"""Patch → what Megatron or torch says without it."""
UNSEEN = {"TORCHDYNAMO_DISABLE": "costs minutes of compiling, not correctness"}


def _patch_names() -> list[str]:
    from runnable.megatron_cpu import patches

    return [p.name for p in patches.PATCHES if p.when != patches.SCRIPTS and p.name not in UNSEEN]


@pytest.mark.parametrize("name", _patch_names())
def test_each_patch_is_still_needed(name, tmp_path, monkeypatch):
    """Without it the run fails in the way that the patch is there to prevent."""
    if name == "_compile_dependencies":
        monkeypatch.setenv("PATH", "")  # a machine that can compile would not miss the patch

    def body() -> str:
        from runnable.megatron_cpu import harness

        run = NEEDS.get(name, Run(layers=2, microbatches=2))
        try:
            tree = harness.prepare(without=frozenset({name}))
            many = harness.execute(run, tree=tree)
            one = harness.execute(run.alone(), tree=tree) if run.world > 1 else many
        except harness.RunFailed as error:
            return error.log
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return DIFFERS if any(not c.passed for c in harness.compare_runs(many, one)) else "equal"

    assert FAILURE[name] in in_a_child(tmp_path, body)
