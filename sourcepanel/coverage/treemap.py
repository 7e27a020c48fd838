"""The treemap: a rectangle for each file, as large as it has lines, inside those of its folders; drawn as SVG.

Each file is a link that opens it in the panel, and on GitHub without a script. Colours come from the site's style
sheet by class, so the picture follows the palette and prints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from squarify import squarify

from sourcepanel.coverage.measure import FileCoverage, percent

WIDTH, HEIGHT = 1000.0, 700.0
HEAD = 15.0
"""Height of a folder's name."""
STEPS = (1, 25, 50, 75)
"""Percent at which a file takes the next colour."""
SHORT = 7
"""Letters of a file's name that are shown at least."""
_LETTER = 6.3
"""Width of a letter of the labels."""


@dataclass(frozen=True)
class Box:
    """A rectangle of the picture."""

    x: float
    y: float
    width: float
    height: float

    def inner(self, *, head: float, edge: float = 2.0) -> Box:
        """What is left of it inside an edge and below a heading."""
        return Box(self.x + edge, self.y + head, max(0.0, self.width - 2 * edge), max(0.0, self.height - head - edge))


@dataclass(frozen=True)
class Cell:
    """A file (with its coverage) or a folder in its place."""

    box: Box
    name: str
    """Path relative to the root of the repository; a folder's ends in a slash."""
    label: str
    """The part of the name that its folder does not tell already."""
    file: FileCoverage | None = None


@dataclass(frozen=True)
class _Folder:
    files: Mapping[str, FileCoverage]
    folders: Mapping[str, _Folder]

    @property
    def lines(self) -> int:
        return sum(f.lines for f in self.files.values()) + sum(f.lines for f in self.folders.values())


def layout(files: Sequence[FileCoverage], *, box: Box | None = None) -> list[Cell]:
    """Folders before what is in them; areas inside one folder are in proportion to lines.

    A folder that holds one folder and nothing else is drawn as one with it.
    """
    cells: list[Cell] = []
    _place(_tree([(file.path.split("/"), file) for file in files]), "", box or Box(0, 0, WIDTH, HEIGHT), cells)
    return cells


def _tree(files: Sequence[tuple[list[str], FileCoverage]]) -> _Folder:
    below: dict[str, list[tuple[list[str], FileCoverage]]] = defaultdict(list)
    for parts, file in files:
        if len(parts) > 1:
            below[parts[0]].append((parts[1:], file))
    here = {parts[0]: file for parts, file in files if len(parts) == 1}
    return _Folder(here, {name: _tree(inside) for name, inside in below.items()})


def _place(folder: _Folder, path: str, box: Box, cells: list[Cell]) -> None:
    entries: list[tuple[int, str, FileCoverage | _Folder]] = [
        *((file.lines, name, file) for name, file in folder.files.items()),
        *((inside.lines, name, inside) for name, inside in folder.folders.items()),
    ]
    entries.sort(key=lambda entry: (-entry[0], entry[1]))
    total = sum(lines for lines, _, _ in entries)
    if not total or box.width <= 0 or box.height <= 0:
        # Too small to be seen; the table has it.
        return
    scale = box.width * box.height / total
    for (_, name, entry), rect in zip(
        entries,
        squarify([lines * scale for lines, _, _ in entries], box.x, box.y, box.width, box.height),
        strict=True,
    ):
        there = Box(rect["x"], rect["y"], rect["dx"], rect["dy"])
        if isinstance(entry, FileCoverage):
            cells.append(Cell(there, path + name, name, entry))
            continue
        label = f"{name}/"
        while not entry.files and len(entry.folders) == 1:
            ((only, entry),) = entry.folders.items()
            label += f"{only}/"
        cells.append(Cell(there, path + label, label))
        _place(entry, path + label, there.inner(head=HEAD if _fits(label, there) else 2.0), cells)


def _fits(label: str, box: Box) -> bool:
    return box.width > len(label) * _LETTER + 6 and box.height > 2 * HEAD


def step(file: FileCoverage) -> int:
    """The colour of a file, from 0 for nothing."""
    share = percent(len(file.covered), file.lines)
    return sum(share >= least for least in STEPS)


def treemap(cells: Sequence[Cell], *, blob: str, strings: Mapping[str, str], against: str = "", label: str = "") -> str:
    """The picture. `blob` is where the pin's files stand on the web; `against` the version that may be newer."""
    return (
        f'<svg class="treemap" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="group" aria-label="{escape(label)}">'
        f"{''.join(_drawn(cells, blob=blob, strings=strings, against=against))}</svg>"
    )


def _drawn(cells: Sequence[Cell], *, blob: str, strings: Mapping[str, str], against: str) -> Iterator[str]:
    for cell in cells:
        box = cell.box
        rect = f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"/>'
        if cell.file is None:
            text = _text(cell.label, box, dy=11) if _fits(cell.label, box) else ""
            yield f'<g class="treemap__folder" aria-hidden="true">{rect}{text}</g>'
            continue
        file = cell.file
        told = about(file, strings=strings, against=against)
        stale = " treemap__file--stale" if file.stale else ""
        text = _text(_cut(cell.label, box), box, dy=13)
        yield (
            f'<a class="sp-node treemap__file treemap__file--{step(file)}{stale}"'
            f' xlink:href="{escape(blob + quote(cell.name))}" data-src="{escape(file.key)}"'
            f' aria-label="{escape(told)}"><title>{escape(told)}</title>{rect}{text}</a>'
        )


def about(file: FileCoverage, *, strings: Mapping[str, str], against: str) -> str:
    """One file in a sentence."""
    told = strings["coverage.file"].format(
        path=file.path, lines=file.lines, covered=len(file.covered), percent=percent(len(file.covered), file.lines)
    )
    return told + (strings["coverage.fileStale"].format(count=file.stale, version=against) if file.stale else "")


def _cut(label: str, box: Box) -> str:
    """As much of a file's name as there is room for; too little of it says nothing."""
    room = int((box.width - 6) / _LETTER)
    if box.height < HEAD or room < min(len(label), SHORT):
        return ""
    return label if room >= len(label) else f"{label[: room - 1]}…"


def _text(label: str, box: Box, *, dy: int) -> str:
    if not label:
        return ""
    return f'<text x="{box.x + 4:.1f}" y="{box.y + dy:.1f}">{escape(label)}</text>'
