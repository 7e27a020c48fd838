"""MkDocs loads this file; the installed engine does the rest."""

from sourcepanel.mkdocs_adapter import (
    on_config,
    on_env,
    on_files,
    on_page_content,
    on_page_context,
    on_page_markdown,
    on_post_build,
    on_post_page,
    on_serve,
)

__all__ = [
    "on_config",
    "on_env",
    "on_files",
    "on_page_content",
    "on_page_context",
    "on_page_markdown",
    "on_post_build",
    "on_post_page",
    "on_serve",
]
