"""The command line; each command has a module of its own."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from sourcepanel.cli.author import completion, link, new, show
from sourcepanel.cli.check import check
from sourcepanel.cli.drift import drift
from sourcepanel.cli.lock import lock
from sourcepanel.cli.repin import repin
from sourcepanel.cli.session import Group, Session
from sourcepanel.config import CONFIG_NAME


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=Path(CONFIG_NAME),
    show_default=True,
    help="The configuration, or the folder that holds it.",
)
@click.option("-q", "--quiet", is_flag=True, help="Results only: no progress, no notices.")
@click.version_option(package_name="sourcepanel")
@click.pass_context
def main(ctx: click.Context, config: Path, quiet: bool) -> None:
    """Keep the source links of Markdown pages right.

    Exit codes: 0 all is right, 1 something was found, 2 it could not be looked at.
    """
    ctx.obj = Session(config, Console(highlight=False), Console(stderr=True, highlight=False), quiet)


for command in (check, completion, drift, link, lock, new, repin, show):
    main.add_command(command)
