"""What the last survey found, kept beside the lock so that a build can show it without another version's source.

It counts for a note only as long as the pin and the note's references are those that were surveyed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sourcepanel.config import Config
from sourcepanel.drift.survey import Freshness, Survey
from sourcepanel.errors import DriftError
from sourcepanel.files import write_atomically
from sourcepanel.lock import Lock

_WORST = (Freshness.FRESH, Freshness.MOVED, Freshness.STALE)


@dataclass(frozen=True)
class Seen:
    """How one note stands against another version."""

    freshness: Freshness
    ref: str
    """That version, for people."""
    read_again: int
    """References whose text is another there, or gone."""


class _Note(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Freshness
    read_again: int
    references: str
    """Digest of the page's entries in the lock at the time."""


class _Repository(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    commit: str
    """The pin at the time."""
    to_ref: str
    to_commit: str
    notes: dict[str, _Note]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    repositories: dict[str, _Repository] = {}


def write_record(survey: Survey, *, config: Config, lock: Lock) -> Path:
    """Keep this survey in place of the last one of the same repository; returns where."""
    path = config.path(config.drift)
    move = survey.move
    notes = {
        note.page: _Note(
            state=note.freshness,
            read_again=sum(each.outcome.needs_reading for each in note.references),
            references=_digest(lock.pages.get(note.page, {})),
        )
        for note in survey.notes
    }
    made = _Repository(
        commit=move.repository.commit, to_ref=move.version.ref, to_commit=move.version.commit, notes=notes
    )
    others = _read(path).repositories if path.exists() else {}
    record = _Record(repositories={**others, move.repository.name: made})
    write_atomically(
        path, json.dumps(record.model_dump(mode="json"), ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    )
    return path


def read_record(config: Config, *, lock: Lock, left: Mapping[str, int] = MappingProxyType({})) -> Mapping[str, Seen]:
    """What is known of each page and still holds; raises `DriftError` for a file that is no record.

    `left` counts, for pages by name, the references that the last move of the pin left behind: such a page is stale.
    """
    path = config.path(config.drift)
    record = _read(path) if path.exists() else _Record()
    seen: dict[str, Seen] = {}
    for repository in config.repositories:
        known = record.repositories.get(repository.name)
        if known is None or known.commit != repository.commit or known.to_commit == repository.commit:
            continue
        for page, note in known.notes.items():
            now = Seen(note.state, known.to_ref, note.read_again)
            if note.references == _digest(lock.pages.get(page, {})) and (
                page not in seen or _WORST.index(seen[page].freshness) < _WORST.index(now.freshness)
            ):
                seen[page] = now
    for page, count in left.items():
        if count and page not in seen:
            seen[page] = Seen(Freshness.STALE, config.repositories[0].ref, count)
    return seen


def _read(path: Path) -> _Record:
    try:
        return _Record.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise DriftError(f"{path}: cannot be read: {error}; remove it, or write it with `drift --save`") from None


def _digest(entries: Mapping[str, int]) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:16]
