"""The only module that knows MkDocs: its events, turned into calls of the engine.

Each build has its own `_Build`, made in `on_config` and replaced by the next one, so that `mkdocs serve` never
carries a page, a finding or a target from one build into another. What cannot change while its files do not (the
project with its opened sources and the answers of its verifier) is kept between builds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority

from sourcepanel.backlinks import backlinks, backlinks_section
from sourcepanel.collect import read_page
from sourcepanel.config import CONFIG_NAME, Repository, load_config
from sourcepanel.coverage.site import SCRIPT, SLOTS, CoveragePages, Material
from sourcepanel.diagnostics import Diagnostic, Level
from sourcepanel.drift.record import read_record
from sourcepanel.errors import SourcePanelError
from sourcepanel.events import read_events
from sourcepanel.graph.model import PageFacts
from sourcepanel.graph.site import SiteGraph, whole_page, write_graph
from sourcepanel.markdown import Page as SourcePage
from sourcepanel.markdown import SourcePanelExtension
from sourcepanel.mentions import Mention, read_mentions
from sourcepanel.notes.checks import NoteChecks
from sourcepanel.notes.extension import NotesExtension
from sourcepanel.notes.reading_time import ReadingTime, reading_time
from sourcepanel.notes.roadmap import fill_states, note_states
from sourcepanel.pagecheck import BAD, PageCheck, PageReport
from sourcepanel.panel import write_panel
from sourcepanel.panel_assets import SCRIPTS, STYLES, lean_asset, write_changed
from sourcepanel.project import Project
from sourcepanel.reference import Finding, Reference, Target
from sourcepanel.sections import read_sections
from sourcepanel.static_pages import extend_sitemap, noscript, static_pages, write_static_pages
from sourcepanel.strings import strings
from sourcepanel.versions_view import Views, read_versions
from sourcepanel.xref.store import Index, cached_index

if TYPE_CHECKING:
    from jinja2 import Environment
    from mkdocs.livereload import LiveReloadServer
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

LOGGER = "mkdocs.plugins.sourcepanel"
_log = logging.getLogger(LOGGER)
_LEVELS = {Level.ERROR: logging.ERROR, Level.WARNING: logging.WARNING, Level.INFO: logging.INFO}

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class _Build:
    """All that one build gathers."""

    project: Project
    notes: NoteChecks
    written: NotesExtension
    language: str
    page: SourcePage = field(default_factory=lambda: SourcePage(name=""))
    check: PageCheck | None = None
    form: tuple[Diagnostic, ...] = ()
    """What the checks of a note say about that page."""
    reports: dict[str, PageReport] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    reading: dict[str, ReadingTime] = field(default_factory=dict)
    mentions: dict[str, tuple[Mention, ...]] = field(default_factory=dict)
    links: dict[str, tuple[Mention, ...]] = field(default_factory=dict)
    """Links between pages, by the page that holds them."""
    backlinks: dict[str, tuple[Mention, ...]] = field(default_factory=dict)
    """The same by the address of the page that they lead to."""
    graph: SiteGraph | None = None
    sections: dict[str, dict[str, str]] = field(default_factory=dict)
    coverage: CoveragePages | None = None
    """Only where a page asks for a part of it."""

    @cached_property
    def targets(self) -> list[Target]:
        """What the pages refer to; asked for when all have been read, as are the next three."""
        return [target for report in self.reports.values() for target in report.targets]

    @cached_property
    def said(self) -> list[Mention]:
        """The sentences about the source."""
        return [mention for page in self.mentions.values() for mention in page]

    @cached_property
    def indexes(self) -> dict[str, Index]:
        """What each identifier means, by repository."""
        cache = self.project.config.cache_dir
        return {name: cached_index(one, cache=cache, notify=_log.info) for name, one in self.project.sources.items()}

    @cached_property
    def versions(self) -> Views:
        """What differs at other versions."""
        project = self.project
        return read_versions(project.config, sources=project.sources, targets=self.targets, notify=_log.info)

    def resolve(self, found: Reference | Finding) -> Target | None:
        """Called by the Markdown extension for the page that is being converted."""
        assert self.check is not None
        return self.check.resolve(found)

    def tell(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Log at once, so that the message stands beside MkDocs' own about the same page."""
        for diagnostic in diagnostics:
            self.findings.append(diagnostic)
            _log.log(_LEVELS[diagnostic.level], "%s", diagnostic)


_build: _Build | None = None
_kept: tuple[object, Project, NoteChecks] | None = None


def _current() -> _Build:
    if _build is None:
        raise PluginError("sourcepanel: a page was read before on_config; list hooks/source_panel.py under hooks:")
    return _build


def _explained(event: Callable[P, R]) -> Callable[P, R]:
    """Errors of the engine end the build with their message, without a traceback."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return event(*args, **kwargs)
        except SourcePanelError as error:
            raise PluginError(f"sourcepanel: {error}") from None
        except OSError as error:
            # A full disk, a folder that is read-only: the place says more than where the code was.
            place = f"{error.filename}: " if error.filename else ""
            raise PluginError(f"sourcepanel: {place}{error.strerror or error}") from None

    call.__name__ = event.__name__
    call.__doc__ = event.__doc__
    return call


def _open_project(path: Path) -> tuple[Project, NoteChecks]:
    """The project of the build before, as long as its configuration and lock are byte for byte the same."""
    global _kept
    config = load_config(path)
    lock = config.path(config.lock)
    state = (path, path.read_bytes(), lock.read_bytes() if lock.is_file() else None)
    if _kept is None or _kept[0] != state:
        project = Project.open(path, notify=_log.info)
        _kept = (state, project, project.note_checks())
    return _kept[1], _kept[2]


# Before the theme's plugins: they read what is set here.
@event_priority(50)
@_explained
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Start a build: open the project, add the Markdown extensions, the panel's files and the pins for templates."""
    global _build
    root = Path(config.config_file_path).parent if config.config_file_path else Path.cwd()
    project, notes = _open_project(root / CONFIG_NAME)
    language = str(config.theme.get("language", "zh"))
    written = NotesExtension.of(
        project.config, page=lambda: build.page.name, evidence=project.evidence, language=language
    )
    build = _build = _Build(project=project, notes=notes, written=written, language=language)
    # MkDocs types these as names, and hands them to Markdown, which takes instances too.
    extensions: list[Any] = config.markdown_extensions
    extensions += [
        written,
        SourcePanelExtension(
            project.config.repositories,
            lambda: build.page,
            build.resolve,
            exists=project.exists,
            language=language,
        ),
    ]
    config.extra_css += STYLES
    config.extra_javascript += SCRIPTS
    table = strings(language)
    config.extra["sourcepanel"] = {
        "pins": [_pin(repository, table) for repository in project.config.repositories],
        "strings": table,
    }
    return config


def _pin(repository: Repository, table: Mapping[str, str]) -> dict[str, str]:
    """What templates show of one pin."""
    at = f"{repository.url}/tree/{repository.commit}"
    return {
        "name": repository.name,
        "ref": repository.ref,
        "commit": repository.commit,
        "short": repository.commit[:8],
        "url": at,
        "licence": table["site.licence"].format(holder=repository.license.holder, name=repository.license.name),
        "licence_path": repository.license.path,
        "licence_url": f"{repository.url}/blob/{repository.commit}/{repository.license.path}",
    }


@_explained
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Before MkDocs reads the pages, which ends in a traceback where one is not UTF-8."""
    for file in files.documentation_pages():
        if file.abs_src_path:
            read_page(Path(file.abs_src_path))
    return files


@_explained
def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page begins: check its text; its references come while it is converted."""
    build = _current()
    name, text = page.file.src_uri, page.file.content_string.replace("\r\n", "\n").replace("\r", "\n")
    build.page = SourcePage(name=name, text=text)
    build.check = build.project.page(name)
    build.form = build.notes.check(name, text)
    return markdown


@_explained
def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page has been converted: compare it with the lock, and measure it."""
    build = _current()
    assert build.check is not None
    form = (*build.form, *build.notes.told(build.page.name, build.written.findings))
    report = build.check.report(text=build.page.text or "", also=form)
    build.reports[report.page] = report
    build.tell(report.diagnostics)
    build.reading[report.page] = reading_time(html)
    html, build.mentions[report.page], build.links[report.page] = read_mentions(
        html, page=str(page.title or ""), url=page.url
    )
    build.sections[unquote(page.url)] = read_sections(html)
    return html


@_explained
def on_env(env: Environment, config: MkDocsConfig, files: Files) -> Environment:
    """All pages have been converted: what only the whole tells, and the states that the roadmap shows."""
    build = _current()
    names = build.project.config.page_names()
    build.tell([*build.project.check_pin(), *build.project.check_rest(names, tuple(build.reports.values()))])
    errors = [d for d in build.findings if d.level is Level.ERROR]
    if errors:
        raise PluginError(f"sourcepanel: {len(errors)} findings at level error; the first: {errors[0]}")
    pages = [file.page for file in files.documentation_pages() if file.page]
    build.graph = _graph(build, pages)
    build.backlinks = backlinks(link for links in build.links.values() for link in links)
    states = note_states(
        build.written.roadmap,
        references={name: report.checked for name, report in build.reports.items()},
        findings=[d.page for d in build.findings if d.level in BAD],
        drift=read_record(
            build.project.config,
            lock=build.project.lock,
            left={name: len(report.left) for name, report in build.reports.items()},
        ),
    )
    table = strings(build.language)
    for page in pages:
        if "note-state" in (page.content or ""):
            page.content = fill_states(page.content or "", states=states, strings=table)
    _cover(build, pages)
    return env


def _cover(build: _Build, pages: Iterable[Page]) -> None:
    """Make the parts of pages that tell how much of the source the notes cover."""
    if not any(slot in (page.content or "") for page in pages for slot in SLOTS):
        return
    build.coverage = CoveragePages(
        (
            Material(
                source=source, targets=build.targets, mentions=build.said, index=build.indexes[name],
                folders=build.project.config.coverage.folders, views=build.versions,
            )
            for name, source in build.project.sources.items()
        ),
        strings=strings(build.language),
    )  # fmt: skip


def _graph(build: _Build, pages: Sequence[Page]) -> SiteGraph:
    """What speaks of what, on all pages that were read."""
    facts = [
        PageFacts(
            name=name, title=str(page.title or ""), url=page.url, note=build.notes.is_note(name),
            links=build.links[name], mentions=build.mentions[name],
        )
        for page in pages if (name := page.file.src_uri) in build.links
    ]  # fmt: skip
    return SiteGraph.of(
        build.project.config, facts, shown=whole_page((page.url, page.content or "") for page in pages),
        glossary=build.written.glossary, roadmap=build.written.roadmap, strings=strings(build.language),
    )  # fmt: skip


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation) -> dict[str, Any]:
    """The reading time, for the template of a note."""
    build = _current()
    time = build.reading.get(page.file.src_uri)
    if time is not None and build.notes.is_note(page.file.src_uri):
        table = strings(build.language)
        context["reading"] = {
            "label": table["note.readingTime"].format(minutes=time.minutes),
            "detail": table["note.readingDetail"].format(
                characters=time.characters, words=time.words, code=time.code_lines
            ),
        }
    return context


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """The coverage where a page asks for it. Where the article ends: who speaks of the page; for a reader without
    scripts the plain pages of the source.

    Here and not in the page's content, which the search would take for words of the note.
    """
    build = _current()
    report = build.reports.get(page.file.src_uri)
    end = next((tag for tag in ("</article>", "</body>") if tag in output), "")
    if report is None or not end:
        return output
    head, _, rest = output.rpartition(end)
    up = "../" * page.url.count("/")
    if build.coverage:
        head = build.coverage.fill(head, up=up)
    head += backlinks_section(build.backlinks.get(unquote(page.url), ()), up=up, strings=strings(build.language))
    if build.graph:
        head = build.graph.place(head, name=page.file.src_uri, url=page.url)
    return head + noscript(report.targets, up=up, language=build.language) + end + rest


@_explained
def on_post_build(config: MkDocsConfig) -> None:
    """Write the panel's scripts, style and data into the site."""
    build = _current()
    project = build.project
    targets, mentions, indexes = build.targets, build.said, build.indexes
    docs = project.config.path(project.config.docs)
    traces, cache = project.config.traces, project.config.cache_dir
    site, site_url = Path(config.site_dir), config.site_url or ""
    report = write_panel(
        site,
        sources=list(project.sources.values()),
        targets=targets,
        cache=cache,
        language=build.language,
        mentions=mentions,
        events=read_events(docs / traces, docs=docs, repositories=project.config.repositories) if traces else {},
        indexes=indexes,
        extent=project.config.extent,
        sections=build.sections,
        versions=build.versions,
        also={name: [file.path for file in files] for name, files in build.coverage.files.items()}
        if build.coverage
        else {},
    )
    if build.coverage:
        write_changed(site / SCRIPT, lean_asset("treemap.js"))
    pages = (
        page
        for name, source in project.sources.items()
        for page in static_pages(
            source, targets, cache=cache, mentions=mentions, index=indexes[name],
            language=build.language, site_url=site_url,
        )
    )  # fmt: skip
    extend_sitemap(site, write_static_pages(site, pages), site_url=site_url)
    if build.graph:
        write_graph(site, build.graph.places)
    checked = sum(r.checked for r in build.reports.values())
    total = sum(r.total for r in build.reports.values())
    _log.info("%d of %d source references checked; %d source files in the panel", checked, total, report.files)
    megabytes = (report.bytes / 1e6, report.index / 1e6)
    _log.info("extent %s: %.1f MB of source, %.1f MB of index", project.config.extent, *megabytes)


def on_serve(server: LiveReloadServer, config: MkDocsConfig, builder: Callable[..., Any]) -> LiveReloadServer:
    """Build anew also when the configuration or the lock changes."""
    project = _current().project
    server.watch(str(project.config.root / CONFIG_NAME))
    lock = project.config.path(project.config.lock)
    if lock.is_file():
        server.watch(str(lock))
    return server
