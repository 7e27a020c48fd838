"""How well the index of identifiers works on the pinned source: coverage, precision on a sample, sizes and times.

`python bench/xref.py`; with `SOURCEPANEL_CHECKOUT` at a clone it reads the whole commit, else what the build reads.
`--jedi` also asks jedi about the same sample, and loads griffe (extra `bench`). Writes the section of
`bench/RESULTS.md` between its marks.

A sample: all identifiers of the Python files below `--under`, in an order drawn with a fixed seed, up to the one that
makes a hundred which the index calls neither local nor outside. What each of the hundred really means was read from
the source by hand and stands in `bench/xref_sample.json`: the definition, or `outside`, or `open` where the source
does not tell. Two were drawn. While the first was read, faults of the index that it brought to light were mended; the
second was drawn when that was done. For the first, those on the way that the index dismissed as local or outside were
looked at, too; one that means something in the snapshot would stand in the file. `--show` prints the drawn identifiers
with the lines around them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import resource
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.results import Section
from sourcepanel.config import load_config
from sourcepanel.lock import read_lock
from sourcepanel.project import Sources
from sourcepanel.source import Source, SourceFile
from sourcepanel.xref.data import FileLinks
from sourcepanel.xref.index import build_index, open_linker, python_files
from sourcepanel.xref.links import Linked
from sourcepanel.xref.model import Definition, FileIndex
from sourcepanel.xref.reach import Extent, select
from sourcepanel.xref.store import Index, dump

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "bench/xref_sample.json"
SECTION = Section("xref")
SEEDS, WANTED = (20261130, 7), 100
DISMISSED = ("local", "outside")
EXTENTS: tuple[Extent, ...] = ("linked", "reachable", "everything")


@dataclass(frozen=True)
class Drawn:
    """One identifier of the sample and what the index says of it."""

    path: str
    name: str
    linked: Linked

    @property
    def place(self) -> str:
        """`path:line:column name`, the column from 1."""
        return f"{self.path}:{self.linked.line}:{self.linked.start + 1} {self.name}"


def identifiers(files: Mapping[str, SourceFile], *, under: str) -> list[Drawn]:
    """All identifiers below `under` and what the index says of them."""
    linker = open_linker(files)
    return [
        Drawn(path, files[path].lines[entry.line - 1][entry.start : entry.end], entry)
        for path in sorted(files)
        if path.startswith(under)
        for entry in linker.link(path)
    ]


def draw(every: Sequence[Drawn], *, seed: int) -> tuple[list[Drawn], list[Drawn]]:
    """The hundred of a seed, and those dismissed on the way."""
    chosen: list[Drawn] = []
    dismissed: list[Drawn] = []
    # By a hash and not by shuffling a list: a change of the index then changes little of the sample.
    for one in sorted(every, key=lambda one: hashlib.sha256(f"{seed} {one.place}".encode()).digest()):
        (dismissed if one.linked.status in DISMISSED else chosen).append(one)
        if len(chosen) == WANTED:
            break
    return chosen, dismissed


def spell(definition: Definition) -> str:
    """A definition as the sample names it: `path` or `path::name`."""
    return f"{definition.path}::{definition.name}" if definition.name else definition.path


def verdict(one: Drawn, truth: str | None) -> str:
    """The index held against what a person has read."""
    means = [spell(target) for target in one.linked.targets]
    if truth is None:
        return "not checked"
    if one.linked.status == "certain":
        return "right" if means == [truth] else "wrong"
    if one.linked.status == "likely":
        return "likely and right" if truth in means else "likely and wrong"
    return "unresolved though resolvable" if "/" in truth or truth.endswith(".py") else "rightly unresolved"


def show(drawn: Iterable[Drawn], files: Mapping[str, SourceFile], truths: Mapping[str, str], *, around: int) -> None:
    """Everything a person needs to say what the identifiers mean."""
    for one in drawn:
        entry = one.linked
        print(f"\n{one.place}  [{entry.status}]  noted: {truths.get(one.place, 'NOT YET')}")
        for target in entry.targets:
            text = files[target.path].lines[target.line - 1].strip() if target.line else ""
            print(f"    -> {spell(target)} @{target.line}: {text[:100]}")
        for number in range(max(1, entry.line - around), min(files[one.path].count, entry.line + around) + 1):
            print(f"    {'>' if number == entry.line else ' '} {number}: {files[one.path].lines[number - 1][:150]}")


def measure(source: Source) -> tuple[dict[str, Any], Index]:
    """Times and sizes of the whole index."""
    files = python_files(source)
    began = time.process_time()
    built = list(build_index(files))
    cold = time.process_time() - began
    text = dump(built)
    began = time.process_time()
    index = Index(text)
    for path in index:
        index[path]
    warm = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "files": len(files),
        "lines": sum(file.count for file in files.values()),
        "definitions": sum(len(file.definitions) for file in built),
        "links": sum(len(file.occurrences) for file in built),
        "uses": sum(len(used) for file in built for used in file.uses.values()),
        "cold": cold,
        "warm": warm,
        "peak_mib": peak,
        "entry_mb": len(text.encode()) / 1e6,
    }, index


def extents(source: Source, index: Mapping[str, FileIndex], linked: Iterable[str]) -> list[dict[str, Any]]:
    """What each extent costs, with the data that the panel loads when a reader first points at an identifier."""
    rows = []
    for extent in EXTENTS:
        chosen = select(extent, source=source, linked=linked, index=index)
        data = [
            json.dumps(FileLinks(source.repository.name, index[path]).data(), separators=(",", ":")).encode()
            for path in chosen.paths
            if path in index
        ]
        packed = [len(gzip.compress(one, 6, mtime=0)) for one in data]
        rows.append(
            {
                "extent": extent,
                "files": len(chosen.paths),
                "lines": chosen.lines,
                "text_mb": chosen.bytes / 1e6,
                "data_mb": sum(map(len, data)) / 1e6,
                "packed_mb": sum(packed) / 1e6,
                "largest_kb": max(packed, default=0) / 1e3,
            }
        )
    return rows


def ask_jedi(drawn: Sequence[Drawn], files: Mapping[str, SourceFile], truths: Mapping[str, str]) -> dict[str, Any]:
    """The same questions to jedi: how long it takes, and how often it finds what a person has read."""
    import tempfile

    import griffe
    import jedi

    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for path, file in files.items():
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(file.text + "\n", encoding="utf-8")
        project = jedi.Project(folder)
        began = time.process_time()
        for one in drawn:
            truth = truths.get(one.place, "")
            script = jedi.Script(path=str(Path(folder) / one.path), project=project)
            try:
                got = script.goto(one.linked.line, one.linked.start, follow_imports=True)
            except Exception:  # what jedi raises is its own affair
                got = []
            places = {str(Path(d.module_path).relative_to(folder)) if d.module_path and
                      Path(d.module_path).is_relative_to(folder) else "" for d in got}  # fmt: skip
            right = truth.partition("::")[0] in places and any(d.name == one.name or "::" not in truth for d in got)
            found["right" if right else "nothing" if not places - {""} else "other"] += 1
        seconds = time.process_time() - began
        began = time.process_time()
        loader = griffe.GriffeLoader(search_paths=[folder], allow_inspection=False)
        for top in sorted({one.path.partition("/")[0] for one in drawn}):
            loader.load(top, submodules=True)
        griffe_seconds = time.process_time() - began
    return {"seconds": seconds, "found": dict(found), "griffe": griffe_seconds}


def sampled(
    chosen: list[Drawn], dismissed: list[Drawn], truths: Mapping[str, str], *, seed: int
) -> tuple[str, list[str]]:
    """What a sample shows, in a sentence, and the rows of its table."""
    found = Counter(verdict(one, truths.get(one.place)) for one in chosen)
    told = f"Sample {seed}: " + ", ".join(f"{count} {name}" for name, count in found.most_common()) + "."
    missed = [one for one in dismissed if one.place in truths]
    if seed == SEEDS[0]:
        told += f" Of the {len(dismissed)} dismissed on the way, {len(missed)} mean something in the snapshot."
    rows = [
        f"| {one.path}:{one.linked.line} | `{one.name}` | {verdict(one, truths.get(one.place))} |" for one in chosen
    ]
    rows += [f"| {one.path}:{one.linked.line} | `{one.name}` | dismissed though resolvable |" for one in missed]
    return told, rows


def section(result: Mapping[str, Any], samples: Sequence[tuple[str, list[str]]]) -> str:
    """The part of RESULTS.md."""
    size, fates = result["size"], result["fates"]
    total, gone = fates.total(), sum(fates[name] for name in DISMISSED)
    rest = total - gone
    out = [
        f"Source: {result['origin']}, {size['files']} Python files, {size['lines']:,} lines.",
        "",
        "| | |",
        "|---|---|",
        f"| index made from nothing, one core | {size['cold']:.1f} s of CPU, {size['peak_mib']:.0f} MiB |",
        f"| read from the cache, every file decoded | {size['warm']:.2f} s, {size['entry_mb']:.1f} MB |",
        f"| definitions, links, uses | {size['definitions']:,}, {size['links']:,}, {size['uses']:,} |",
        "",
        f"Below `{result['under']}` stand {total:,} identifiers. {fates['local']:,} are parameters and locals, "
        f"{fates['outside']:,} belong to Python or another package. Of the other {rest:,} the index links "
        f"**{fates['certain'] / rest:.1%} for certain**, {fates['likely'] / rest:.1%} as likely, and leaves "
        f"{fates['unknown'] / rest:.1%} alone.",
        "",
        *(line for told, _ in samples for line in (told, "")),
        "| carried | files | lines | text MB | index data MB | gzipped MB | largest, gzipped kB |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {r['extent']} | {r['files']} | {r['lines']:,} | {r['text_mb']:.1f} | {r['data_mb']:.1f} "
            f"| {r['packed_mb']:.2f} | {r['largest_kb']:.0f} |"
            for r in result["extents"]
        ),
        "",
    ]
    if jedi := result.get("jedi"):
        told = ", ".join(f"{count} {name}" for name, count in sorted(jedi["found"].items()))
        each = jedi["seconds"] / WANTED
        out += [
            f"jedi on the second hundred: {told}; {each:.2f} s each, {each * rest / 60:.0f} minutes for all {rest:,}. "
            f"griffe loads the package in {jedi['griffe']:.1f} s; it does not read what stands in functions.",
            "",
        ]
    out += ["| place | name | verdict |", "|---|---|---|", *(row for _, rows in samples for row in rows)]
    return "\n".join(out)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--under", default="megatron/", help="draw from files whose path starts so")
    parser.add_argument("--show", nargs="?", const="all", help="print the sample (or only `open`, or `dismissed`)")
    parser.add_argument("--seed", type=int, default=SEEDS[0], help="which sample to show")
    parser.add_argument("--around", type=int, default=2, help="lines to print before and after")
    parser.add_argument("--jedi", action="store_true", help="ask jedi and griffe, too")
    parser.add_argument("--dry", action="store_true", help="print only, write no results")
    arguments = parser.parse_args()
    config = load_config(ROOT)
    lock = read_lock(config.path(config.lock))
    sources = Sources(config, lock=lock, notify=print)
    source = sources[config.repositories[0].name]
    files = python_files(source)
    noted: dict[str, dict[str, str]] = json.loads(SAMPLE.read_text(encoding="utf-8"))
    order = identifiers(files, under=arguments.under)
    if arguments.show:
        truths = noted.get(str(arguments.seed), {})
        chosen, dismissed = draw(order, seed=arguments.seed)
        wanted = dismissed if arguments.show == "dismissed" else chosen
        if arguments.show == "open":
            wanted = [one for one in chosen if one.place not in truths]
        show(wanted, files, truths, around=arguments.around)
        return
    size, index = measure(source)
    linked = [path for path in (source.locked.files if source.locked else ()) if path in source.seen]
    # Where a checkout lies is nobody's business.
    origin = "the whole commit" if source.snapshot.complete else source.snapshot.origin
    result: dict[str, Any] = {
        "origin": origin,
        "fates": Counter(one.linked.status for one in order),
        "under": arguments.under,
        "size": size,
    }
    result["extents"] = extents(source, index, linked)
    drawn = {seed: draw(order, seed=seed) for seed in SEEDS}
    if arguments.jedi:
        result["jedi"] = ask_jedi(drawn[SEEDS[1]][0], files, noted[str(SEEDS[1])])
    part = section(result, [sampled(*drawn[seed], noted[str(seed)], seed=seed) for seed in SEEDS])
    print(part)
    if not arguments.dry:
        SECTION.write(part)


if __name__ == "__main__":
    main()
