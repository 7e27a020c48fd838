"""The extension by its name alone, for any builder that runs Python-Markdown: `sourcepanel`, option `config`.

Such a builder tells an extension neither which page it renders nor where findings go: the page is known by its
text, and findings are logged.
"""

from __future__ import annotations

import logging
from functools import cached_property
from pathlib import Path
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

from sourcepanel.collect import read_page
from sourcepanel.config import CONFIG_NAME
from sourcepanel.diagnostics import Level
from sourcepanel.markdown import Page, SourcePanelExtension
from sourcepanel.notes.extension import NotesExtension
from sourcepanel.project import Project
from sourcepanel.reference import Finding, Reference, Target

UNKNOWN = "(unknown page)"

_log = logging.getLogger("sourcepanel")
_LEVELS = {Level.ERROR: logging.ERROR, Level.WARNING: logging.WARNING, Level.INFO: logging.INFO}


class StandaloneExtension(SourcePanelExtension):
    """Opens the project that `config` names; its source when the first reference asks for it."""

    def __init__(self, *, config: str = CONFIG_NAME, language: str = "zh") -> None:
        self.project = Project.open(Path(config), notify=_log.info)
        self._page = Page(name=UNKNOWN)
        self._check = self.project.page(UNKNOWN)
        super().__init__(
            self.project.config.repositories, lambda: self._page, self._resolve,
            exists=self.project.exists, language=language,
        )  # fmt: skip

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Python-Markdown's name
        """Learn the page before its lines are marked, tell the findings when it is done; records as in any build."""
        super().extendMarkdown(md)
        self._notes = notes = NotesExtension.of(
            self.project.config,
            page=lambda: self._page.name,
            evidence=self.project.evidence,
            language=self.language,
        )
        notes.extendMarkdown(md)
        md.preprocessors.register(_Begin(md, self), "sourcepanel-page", 101)
        md.treeprocessors.register(_End(md, self), "sourcepanel-page", 19.9)

    def begin(self, body: str) -> None:
        """A page begins; it is the one whose file ends in this text."""
        names = [name for name, text in self._pages.items() if text.strip().endswith(body.strip())]
        self._page = Page(name=names[0], text=self._pages[names[0]]) if len(names) == 1 else Page(name=UNKNOWN)
        self._check = self.project.page(self._page.name)

    def end(self) -> None:
        """Log what is wrong on the page; the lock knows nothing of a page whose name is not known."""
        if self._page.name == UNKNOWN:
            return
        also = self.project.note_checks().told(self._page.name, self._notes.findings)
        for finding in self._check.report(text=self._page.text or "", also=also).diagnostics:
            _log.log(_LEVELS[finding.level], "%s", finding)

    @cached_property
    def _pages(self) -> dict[str, str]:
        docs = self.project.config.path(self.project.config.docs)
        return {name: read_page(docs / name) for name in self.project.config.page_names()}

    def _resolve(self, found: Reference | Finding) -> Target | None:
        target = self._check.resolve(found)
        if self._page.name == UNKNOWN:
            for finding in self.project.verifier.resolve(found)[1]:
                _log.log(_LEVELS[finding.level], "%s", finding)
        return target


class _Begin(Preprocessor):
    def __init__(self, md: Markdown, extension: StandaloneExtension) -> None:
        super().__init__(md)
        self._extension = extension

    def run(self, lines: list[str]) -> list[str]:
        self._extension.begin("\n".join(lines).replace("\r", ""))
        return lines


class _End(Treeprocessor):
    """Right after the references are found; a postprocessor would run again for each entry of a table of contents."""

    def __init__(self, md: Markdown, extension: StandaloneExtension) -> None:
        super().__init__(md)
        self._extension = extension

    def run(self, root: Element) -> None:
        self._extension.end()


def makeExtension(**options: str) -> StandaloneExtension:  # noqa: N802 - Python-Markdown's name
    """What `markdown_extensions: [sourcepanel]` calls; options as for `StandaloneExtension`."""
    return StandaloneExtension(**options)
