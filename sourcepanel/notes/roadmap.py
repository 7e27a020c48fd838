"""The roadmap: rounds and chapters from one YAML file, and the state of each note, computed and never typed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sourcepanel.errors import ConfigError
from sourcepanel.notes.yaml_text import YamlProblem, YamlText, load_yaml

MARK = re.compile(r"^[ ]{0,3}<!--\s*roadmap\s+(\d+)(?:\s+(list))?\s*-->\s*$")
"""The line of a page that one round's table takes, or its list of chapters; the number is the round's, from 1."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
NotePath = Annotated[str, StringConstraints(pattern=r"^[^/.\\][^\\]*\.md$")]
RelativePath = Annotated[str, StringConstraints(pattern=r"^[^/.\\][^\\]*$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Chapter(_Table):
    """One note, written or planned."""

    number: int = Field(ge=1)
    title: Text
    question: Text | None = None
    """What a reader comes with; the list of chapters shows it, or else `record`."""
    note: NotePath
    """Path of the page, relative to the docs folder; it need not exist yet."""
    script: RelativePath
    """Path of the chapter's program, relative to the project's root; it need not exist yet."""
    record: Text
    """What to record while reading; inline Markdown."""


class Round(_Table):
    """Chapters that answer one question."""

    name: Text
    title: Text
    question: Text
    chapters: tuple[Chapter, ...] = Field(min_length=1)


class Roadmap(_Table):
    """All rounds, in reading order."""

    rounds: tuple[Round, ...] = ()

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """The chapters of all rounds."""
        return tuple(chapter for each in self.rounds for chapter in each.chapters)


def load_roadmap(path: Path) -> Roadmap:
    """Read and validate; raises `ConfigError` naming file, line and what is wrong."""
    try:
        text = load_yaml(path.read_text(encoding="utf-8"))
        roadmap = Roadmap.model_validate(text.data)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    except YamlProblem as error:
        raise ConfigError(f"{path}:{error.line}: {error}") from None
    except ValidationError as error:
        raise ConfigError("\n".join(f"{path}:{text.line(e['loc'])}: {_dotted(e)}" for e in error.errors())) from None
    _refuse_doubles(path, text, roadmap)
    return roadmap


def _dotted(error: object) -> str:
    assert isinstance(error, dict)
    return f"{'.'.join(str(part) for part in error['loc']) or 'the file'}: {error['msg']}"


def _refuse_doubles(path: Path, text: YamlText, roadmap: Roadmap) -> None:
    seen: dict[object, int] = {}
    for r, each in enumerate(roadmap.rounds):
        for c, chapter in enumerate(each.chapters):
            for field, value in (("number", chapter.number), ("note", chapter.note), ("script", chapter.script)):
                line = text.line(("rounds", r, "chapters", c, field))
                if (field, value) in seen:
                    first = seen[field, value]
                    raise ConfigError(f"{path}:{line}: {field} {value} stands twice, first on line {first}")
                seen[field, value] = line


class Stage(StrEnum):
    """How far a note is."""

    PLANNED = "planned"
    """No such file."""
    DRAFT = "draft"
    """A check has something to say, or nothing in it points into the source."""
    VERIFIED = "verified"
    """No finding; every reference was checked at the pin."""


@dataclass(frozen=True, kw_only=True)
class NoteState:
    """The stage of one note, and how many references were checked."""

    stage: Stage
    references: int = 0
    drift: str = ""
    """How it stands at a newer version: `fresh`, `moved` or `stale`; empty where that is not known."""
    against: str = ""
    """That version."""
    read_again: int = 0
    """References that say something else there."""


class Seen(Protocol):
    """How a note stands at another version."""

    @property
    def freshness(self) -> str:
        """`fresh`, `moved` or `stale`."""
        ...

    @property
    def ref(self) -> str:
        """The version."""
        ...

    @property
    def read_again(self) -> int:
        """How many references say something else there."""
        ...


def note_states(
    roadmap: Roadmap,
    *,
    references: Mapping[str, int],
    findings: Iterable[str],
    drift: Mapping[str, Seen] = MappingProxyType({}),
) -> dict[str, NoteState]:
    """The state of every chapter's note.

    `references` counts the references that were checked, for every page there is; `findings` names the pages about
    which a check has something to say; `drift` says of pages how they stand at a newer version.
    """
    wrong = set(findings)
    states: dict[str, NoteState] = {}
    for chapter in roadmap.chapters:
        count = references.get(chapter.note)
        if count is None:
            states[chapter.note] = NoteState(stage=Stage.PLANNED)
        else:
            stage = Stage.VERIFIED if count and chapter.note not in wrong else Stage.DRAFT
            seen = drift.get(chapter.note)
            newer = (seen.freshness, seen.ref, seen.read_again) if seen else ("", "", 0)
            states[chapter.note] = NoteState(
                stage=stage, references=count, drift=newer[0], against=newer[1], read_again=newer[2]
            )
    return states


def state_slot(note: str) -> str:
    """An element that `fill_states` fills when all pages have been read."""
    return f'<span class="note-state" data-note="{html.escape(note)}"></span>'


_SLOT = re.compile(r'<span class="note-state" data-note="([^"]*)"></span>')


def fill_states(page: str, *, states: Mapping[str, NoteState], strings: Mapping[str, str]) -> str:
    """Put each note's state into its slot; a slot of a note that no chapter names stays empty."""

    def fill(hit: re.Match[str]) -> str:
        state = states.get(html.unescape(hit[1]))
        if state is None:
            return hit[0]
        text = strings[f"note.{state.stage}"].format(count=state.references)
        made = f'<span class="note-state note-state--{state.stage}" data-note="{hit[1]}">{html.escape(text)}</span>'
        if not state.drift:
            return made
        newer = strings[f"note.{state.drift}"].format(ref=state.against, count=state.read_again)
        return f'{made} <span class="note-drift note-drift--{state.drift}">{html.escape(newer)}</span>'

    return _SLOT.sub(fill, page)
