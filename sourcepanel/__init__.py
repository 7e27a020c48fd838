"""Source links in Markdown that open the pinned source, and are checked against it.

What this package exports is its public API; names that are only found in its modules may change at any time.
"""

from __future__ import annotations

from sourcepanel.config import Alias, Config, License, Repository, Version, Wheel, load_config
from sourcepanel.diagnostics import Code, Diagnostic, Level
from sourcepanel.errors import (
    ConfigError,
    DriftError,
    LockError,
    PageError,
    PathNotFound,
    PinMismatch,
    SnapshotUnavailable,
    SourcePanelError,
    SymbolNotFound,
)
from sourcepanel.lock import FileFacts, LinkFacts, Lock, RepositoryLock, read_lock, write_lock
from sourcepanel.markdown import Page, SourcePanelExtension
from sourcepanel.pagecheck import PageReport
from sourcepanel.project import Project, Report
from sourcepanel.reference import (
    Finding,
    MalformedLink,
    OtherRef,
    Reference,
    SourceRef,
    Target,
    format_link,
    parse_code,
    parse_link,
)
from sourcepanel.relock import PageChange, Relocked, relock
from sourcepanel.render import Rendered, render_source
from sourcepanel.snapshot.base import Snapshot
from sourcepanel.snapshot.select import open_snapshot
from sourcepanel.source import Source, SourceFile
from sourcepanel.symbols import Symbol, SymbolTable
from sourcepanel.verify import Verifier

__all__ = [
    "Alias",
    "Code",
    "Config",
    "ConfigError",
    "Diagnostic",
    "DriftError",
    "FileFacts",
    "Finding",
    "Level",
    "License",
    "LinkFacts",
    "Lock",
    "LockError",
    "MalformedLink",
    "OtherRef",
    "Page",
    "PageChange",
    "PageError",
    "PageReport",
    "PathNotFound",
    "PinMismatch",
    "Project",
    "Reference",
    "Relocked",
    "Rendered",
    "Report",
    "Repository",
    "RepositoryLock",
    "Snapshot",
    "SnapshotUnavailable",
    "Source",
    "SourceFile",
    "SourcePanelError",
    "SourcePanelExtension",
    "SourceRef",
    "Symbol",
    "SymbolNotFound",
    "SymbolTable",
    "Target",
    "Verifier",
    "Version",
    "Wheel",
    "format_link",
    "load_config",
    "open_snapshot",
    "parse_code",
    "parse_link",
    "read_lock",
    "relock",
    "render_source",
    "write_lock",
]
