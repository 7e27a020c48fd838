"""`python -m runnable.record [ch10-sp …] [--to DIR]`: run the scripts whose output the site shows, and write it again.

Everything written is deterministic: trace, text and pictures hold no times and no rounding errors.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

from runnable.demo import scripts
from runnable.traces import schema, write_text

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT / "docs" / "traces"

RECORDINGS: dict[str, list[str]] = {
    "ch01": ["--np", "4"],
    "ch02": ["--np", "4", "--tp", "2", "--pp", "2"],
    "ch02-moe": ["--np", "4", "--pp", "2", "--ep", "2"],
    "ch02-16": ["--np", "1", "--world", "16", "--tp", "2", "--pp", "4"],
    "ch03": ["--np", "4"],
    "ch04": ["--np", "4"],
    "ch05": ["--np", "4"],
    "ch06": ["--np", "4"],
    "ch06-dist-opt": ["--np", "4", "--dist-opt"],
    "ch07": ["--np", "4"],
    "ch10": ["--np", "4"],
    "ch10-sp": ["--np", "4", "--sp"],
    "ch11": ["--np", "4"],
    "ch11-interleaved": ["--np", "4", "--schedule", "interleaved"],
}
"""Name of the files → arguments of the chapter's script."""
_SMALL = [
    *("--layers", "2", "--hidden", "12", "--heads", "4", "--seq", "8", "--vocab", "100", "--micro-batch", "2"),
]
_EXAMPLE = ["--tp", "2", "--dp", "2", *_SMALL, "--global-batch", "16"]
"""The worked example of note 01."""
MEGATRON: dict[str, list[str]] = {
    "megatron": ["--tp", "2", "--pp", "2", "--dp", "2", "--picture"],
    "megatron-tp2dp2": [*_EXAMPLE, "--mask"],
    "megatron-dist-opt": [*_EXAMPLE, "--dist-opt"],
    "megatron-dist-opt-overlap": [
        *(*_EXAMPLE[:-1], "8", "--dist-opt", "--overlap", "--steps", "2", "--", "--ddp-bucket-size", "1000"),
    ],
    "megatron-fp16": [
        *("--pp", "2", "--dp", "2", *_SMALL, "--global-batch", "8", "--adam", "--steps", "2", "--no-parity", "--"),
        *("--fp16", "--initial-loss-scale", "16384", "--hysteresis", "1", "--calculate-per-token-loss"),
    ],
    "megatron-sp": ["--tp", "2", *_SMALL, "--global-batch", "8", "--sp"],
    "megatron-vpp": [
        *("--pp", "2", "--vpp", "2", "--dp", "2", *_SMALL, "--layers", "4", "--global-batch", "16"),
        *("--", "--calculate-per-token-loss"),
    ],
    "megatron-gqa": ["--tp", "4", *_SMALL, "--groups", "2", "--global-batch", "4"],
    "megatron-checkpoint": [*_EXAMPLE, "--adam", "--trace", "checkpoint"],
    "megatron-parallel-load": [*_EXAMPLE, "--adam", "--trace", "checkpoint", "--", "--ckpt-fully-parallel-load"],
    "megatron-setup": ["--tp", "2", "--pp", "2", *_SMALL, "--trace", "setup"],
    "megatron-rank": [
        *("--tp", "8", "--pp", "4", "--dp", "16", "--heads", "8", "--layers", "32", "--global-batch", "128"),
        *("--only", "137"),
    ],
}
"""Name of the files → arguments of `python -m runnable.megatron_cpu`."""


def main(argv: list[str]) -> int:
    """Record; the first script that fails ends it."""
    parser = ArgumentParser(prog="python -m runnable.record", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"默认全部：{', '.join([*RECORDINGS, *MEGATRON])}")
    parser.add_argument("--to", type=Path, default=TRACES)
    args = parser.parse_args(argv)
    known = {name: ([str(scripts()[name[2:4]])], argv) for name, argv in RECORDINGS.items()}
    known |= {name: (["-m", "runnable.megatron_cpu"], argv) for name, argv in MEGATRON.items()}
    if unknown := [name for name in args.names if name not in known]:
        parser.error(f"没有 {', '.join(unknown)}；可用：{', '.join(known)}")
    for name in args.names or known:
        program, argv = known[name]
        command = [sys.executable, *program, "--out", str(args.to.resolve() / name), *argv]
        done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT)
        print(f"{'✓' if done.returncode == 0 else '✗'} {name}", flush=True)
        if done.returncode:
            sys.stderr.write(done.stdout.decode())
            return done.returncode
    write_text(args.to / "schema.json", schema())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
