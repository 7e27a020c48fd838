"""The site's terms: one source, from which come the glossary's page, the tooltips of all others, and who uses what.

The source is the glossary's own page: fences `yaml glossary`, each a mapping from terms to what they mean. So a link
of a term has a line, is checked and locked, and moves with the pin, like any other reference of a page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from sourcepanel.diagnostics import Code
from sourcepanel.errors import ConfigError
from sourcepanel.notes.fenced_yaml import Text
from sourcepanel.notes.finding import Finding
from sourcepanel.notes.outline import Fence, read_outline
from sourcepanel.notes.yaml_text import YamlProblem, load_yaml

FENCE = "yaml glossary"
_INLINE_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_ADDRESS = re.compile(r"\]\([^()\s]*\)|<[^<>\s]+>")


class _Entry(BaseModel):
    """One term as written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    also: tuple[Text, ...] = ()
    """Other spellings, in any language."""
    zh: Text
    en: Text
    link: Text
    """`path::symbol` or an address: where to read on."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """One word of the trade."""

    name: str
    also: tuple[str, ...]
    zh: str
    """One line; plain text, for it is also a tooltip."""
    en: str
    link: str
    line: int
    """On the glossary's page."""

    @property
    def anchor(self) -> str:
        """Its place on that page."""
        return re.sub(r"\W+", "-", self.name.lower()).strip("-")

    def text(self, language: str) -> str:
        """What it means, in the language of a page."""
        return self.zh if language.startswith("zh") else self.en


@dataclass(frozen=True)
class Glossary:
    """All terms, in the order of the page."""

    terms: tuple[Term, ...] = ()
    page: str = ""
    """Relative to the docs folder."""

    @cached_property
    def _spelled(self) -> dict[str, Term]:
        return {name: term for term in self.terms for name in (term.name, *term.also)}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = "|".join(re.escape(name) for name in sorted(self._spelled, key=len, reverse=True))
        # Between letters of one script only: Chinese needs no space around a word, and `dp-cp` is no DP.
        return re.compile(rf"(?<![A-Za-z0-9_./-])(?:{words or '(?!)'})(?![A-Za-z0-9_/-]|\.\w)")

    def find(self, text: str) -> Iterator[tuple[int, int, Term]]:
        """Every place in a text where a term stands: start, end, term."""
        for hit in self._pattern.finditer(text):
            yield hit.start(), hit.end(), self._spelled[hit[0]]

    def anchors(self, page: str) -> Iterator[tuple[str, str]]:
        """Name and place of each term, if that is the page of the terms."""
        return ((term.name, term.anchor) for term in (self.terms if page == self.page else ()))

    def used(self, text: str) -> tuple[Term, ...]:
        """The terms that the prose of a Markdown page uses, in order of their first use."""
        outline = read_outline(text)
        fenced = {line for fence in outline.fences for line in range(fence.line, fence.end + 1)}
        lines = text.split("\n")
        prose = "\n".join(lines[number - 1] for number in outline.content if number not in fenced)
        prose = _ADDRESS.sub(" ", _INLINE_CODE.sub(" ", prose))
        return tuple(dict.fromkeys(term for _, _, term in self.find(prose)))


def is_glossary(fence: Fence) -> bool:
    """Whether this fence holds terms."""
    return fence.info.split() == FENCE.split()


def read_terms(body: Sequence[str], *, line: int) -> tuple[tuple[Term, ...], tuple[Finding, ...]]:
    """The terms of a fence, or what is wrong with it; `line` is that of the opening fence."""
    try:
        text = load_yaml("\n".join(body), offset=line)
        entries = TypeAdapter(dict[str, _Entry]).validate_python(text.data)
    except YamlProblem as error:
        return (), (_finding(error.line, FENCE, f"the glossary: {error}"),)
    except ValidationError as error:
        told = ((text.line(e["loc"]), ".".join(map(str, e["loc"])) or "the glossary", e["msg"]) for e in error.errors())
        return (), tuple(_finding(at, name, f"{name}: {said}") for at, name, said in told)
    terms = tuple(
        Term(name=name, also=entry.also, zh=entry.zh, en=entry.en, link=entry.link, line=text.line((name,)))
        for name, entry in entries.items()
    )
    return terms, ()


def check_glossary(text: str) -> Iterator[Finding]:
    """What is wrong with the terms of a page: not well written, or a spelling that stands twice."""
    seen: dict[str, Term] = {}
    anchors: dict[str, Term] = {}
    for fence in read_outline(text).fences:
        if not is_glossary(fence):
            continue
        terms, findings = read_terms(fence.body, line=fence.line)
        yield from findings
        for term in terms:
            first = anchors.setdefault(term.anchor, term)
            if first is not term and first.name != term.name:
                yield _finding(term.line, term.name, f"{term.name} and {first.name} have one anchor, {term.anchor}")
            for name in (term.name, *term.also):
                if name in seen:
                    yield _finding(term.line, name, f"{name} stands twice, first on line {seen[name].line}")
                seen[name] = term


def load_glossary(path: Path, *, docs: Path) -> Glossary:
    """The terms of a page; raises `ConfigError` naming file, line and what is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    fences = [fence for fence in read_outline(text).fences if is_glossary(fence)]
    terms = tuple(term for fence in fences for term in read_terms(fence.body, line=fence.line)[0])
    return Glossary(terms, Path(os.path.relpath(path, docs)).as_posix())


def _finding(line: int, subject: str, message: str) -> Finding:
    return Finding(code=Code.RECORD, line=line, subject=subject, message=message)
