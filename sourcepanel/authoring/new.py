"""A new chapter: its note and its script, laid out from the roadmap and the site's templates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sourcepanel.config import Config
from sourcepanel.errors import ConfigError
from sourcepanel.files import write_atomically
from sourcepanel.notes.roadmap import Chapter, Round, load_roadmap

_NOTE = "# {number} {title}\n\n<!-- {question} -->\n\n{headings}\n"
_PLACE = re.compile(r"\{(number|title|headings|note|script|module|question|record|ref)\}")


@dataclass(frozen=True)
class Laid:
    """What was written, and what is still to do by hand."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]
    """Files that stood there already."""
    note: str
    """The note, relative to the docs folder."""


def lay_out(config: Config, number: int, title: str | None) -> Laid:
    """Write the note and, where the chapter has none yet, its script; raises `ConfigError` for a note that exists.

    The chapter must stand in the roadmap: that is where its file names come from.
    """
    if config.notes.roadmap is None:
        raise ConfigError("sourcepanel.toml names no roadmap; set `roadmap` under [notes]")
    path = config.path(config.notes.roadmap)
    roadmap = load_roadmap(path)
    found = [(each, c) for each in roadmap.rounds for c in each.chapters if c.number == number]
    if not found:
        known = ", ".join(f"{chapter.number:02}" for chapter in roadmap.chapters)
        raise ConfigError(f"{path}: no chapter {number:02}; add it there first. It has {known}")
    part, chapter = found[0]
    note, script = config.path(config.docs) / chapter.note, config.path(Path(chapter.script))
    if note.exists():
        raise ConfigError(f"{note} exists already; edit it, or move it away")
    words = _words(config, part, chapter, title)
    made = {note: _fill(_template(config, config.notes.note_template) or _NOTE, words)}
    template = _template(config, config.notes.script_template)
    kept = (script,) if script.exists() else ()
    if template is not None and not kept:
        made[script] = _fill(template, words)
    written: list[Path] = []
    try:
        for file, text in made.items():
            write_atomically(file, text)
            written.append(file)
    except OSError as error:
        for file in written:
            file.unlink(missing_ok=True)
        raise ConfigError(f"{error.filename}: cannot be written: {error.strerror}; nothing was laid out") from None
    return Laid(tuple(made), kept, chapter.note)


def _words(config: Config, part: Round, chapter: Chapter, title: str | None) -> dict[str, str]:
    headings = "\n".join(f"## {heading}\n\n<!-- … -->\n" for heading in config.notes.headings).rstrip()
    return {
        "number": f"{chapter.number:02}",
        "title": title or chapter.title,
        "headings": headings,
        "note": chapter.note,
        "script": chapter.script,
        "module": Path(chapter.script).stem,
        "question": part.question,
        "record": chapter.record,
        "ref": config.repositories[0].ref,
    }


def _template(config: Config, name: Path | None) -> str | None:
    if name is None:
        return None
    path = config.path(name)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: the template cannot be read: {error}") from None


def _fill(template: str, words: dict[str, str]) -> str:
    """Placeholders in braces; any other brace stays."""
    return _PLACE.sub(lambda hit: words[hit[1]], template)
