"""Every reference of every page, read as the site reads it, but without the site's builder.

The pages are rendered with the Markdown extensions that the site's own YAML file names, so that a check finds the
same references as a build: no more, no fewer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import yaml
from markdown import Markdown
from markdown.extensions import Extension

from sourcepanel.config import Config
from sourcepanel.errors import ConfigError, PageError
from sourcepanel.locate import FRONT_MATTER
from sourcepanel.markdown import Page, Resolve, SourcePanelExtension
from sourcepanel.reference import Exists, Finding, Reference, Target

BUILT_IN = ("toc", "tables", "fenced_code")
"""What MkDocs always adds."""

_OURS = ("sourcepanel", "sourcepanel.standalone", "sourcepanel.standalone:makeExtension")
_TAG = "tag:yaml.org,2002:python/"


class PageReader:
    """Renders pages for their references; reads the site's YAML file once."""

    def __init__(self, config: Config, *, exists: Exists | None = None, extensions: Sequence[Extension] = ()) -> None:
        """`extensions` are added to those of the YAML file. Raises `ConfigError` when that file cannot be used."""
        self._config = config
        self._exists = exists
        self._more = extensions
        self._file = config.path(config.markdown)
        self._extensions = read_extensions(self._file)

    def read(
        self, name: str, resolve: Resolve = lambda found: None, *, text: str | None = None
    ) -> tuple[Reference | Finding, ...]:
        """The references of the page of this name in order of their lines; each is given to `resolve` as it is found.

        `text` stands in for what the file holds. Raises `PageError` for a page that is not there or not UTF-8, or that
        takes in a file that is not there.
        """
        text = read_page(self._config.path(self._config.docs) / name) if text is None else text
        found: list[Reference | Finding] = []

        def recorded(reference: Reference | Finding) -> Target | None:
            found.append(reference)
            return resolve(reference)

        ours = SourcePanelExtension(
            self._config.repositories, lambda: Page(name=name, text=text), recorded, exists=self._exists
        )
        names = [key for key in self._extensions if key not in _OURS]
        try:
            converter = Markdown(extensions=[*names, *self._more, ours], extension_configs=self._extensions)
        except (ImportError, KeyError) as error:
            raise ConfigError(f"{self._file}: markdown_extensions: {error}") from None
        try:
            converter.convert(body_of(text))
        except Exception as error:
            # Not a dependency of ours, so known by its name: a file that a page takes in and that is not there.
            if type(error).__name__ != "SnippetMissingError":
                raise
            raise PageError(f"{name}: {error}; write the name of a file that is there, or record it") from None
        return tuple(sorted(found, key=lambda reference: reference.line))


def read_page(path: Path) -> str:
    """The text of a page with `\\n` as its only line end and no byte order mark; raises `PageError`."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        where = f"byte {error.start} is 0x{error.object[error.start]:02x}"
        raise PageError(f"{path}:{line}: not UTF-8 ({where}); save the page as UTF-8") from None
    except OSError as error:
        raise PageError(f"{path}: cannot be read: {error.strerror}") from None
    return normal_text(text)


def normal_text(text: str) -> str:
    """The text with `\\n` as its only line end and no byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def body_of(text: str) -> str:
    """A page without its YAML front matter, as MkDocs hands it to Markdown."""
    match = FRONT_MATTER.match(text)
    if match is None:
        return text
    try:
        is_data = isinstance(yaml.safe_load(match[1]), dict)
    except yaml.YAMLError:
        is_data = False
    return text[match.end() :].lstrip("\n") if is_data else text


def read_extensions(path: Path) -> dict[str, dict[str, Any]]:
    """`markdown_extensions` of a YAML file as MkDocs reads them, by name in order; raises `ConfigError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        fix = "`markdown` in sourcepanel.toml must name the YAML file with markdown_extensions"
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; {fix}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 (byte {error.start})") from None
    try:
        data = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    listed = data.get("markdown_extensions") or [] if isinstance(data, dict) else []
    entries = listed.items() if isinstance(listed, dict) else map(_entry, listed if isinstance(listed, list) else [0])
    found: dict[str, dict[str, Any]] = {name: {} for name in BUILT_IN}
    for name, options in entries:
        if not isinstance(name, str) or not isinstance(options, dict | None):
            raise ConfigError(f"{path}: markdown_extensions: each entry is a name, or a name with its options")
        found[name] = options or {}
    return found


def _entry(entry: object) -> tuple[object, object]:
    if isinstance(entry, dict) and len(entry) == 1:
        return next(iter(entry.items()))
    return entry, None


class _Loader(yaml.SafeLoader):
    """Plain data, plus the tags that MkDocs knows; any other tag is read as if it were not there."""


def _plain(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


def _python_name(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> object:
    module, _, attribute = name.rpartition(".")
    try:
        found: object = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        fix = "install what holds it, or run where the site is built"
        raise yaml.MarkedYAMLError(problem=f"cannot import {name}; {fix}", problem_mark=node.start_mark) from None
    return found


def _python_apply(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> object:
    call = cast("Callable[..., object]", _python_name(loader, name, node))
    given = _plain(loader, node)
    if isinstance(given, dict):
        return call(*given.get("args", ()), **given.get("kwds", {}))
    return call(*given) if isinstance(given, list) else call()


def _environment(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    """`!ENV NAME` or `!ENV [NAME, OTHER, default]`: the first that is set, read as YAML."""
    given = _plain(loader, node)
    names = given if isinstance(given, list) else [given]
    for name in names:
        if isinstance(name, str) and name in os.environ:
            return yaml.safe_load(os.environ[name])
    return names[-1] if len(names) > 1 else None


_Loader.add_multi_constructor(f"{_TAG}name:", _python_name)
_Loader.add_multi_constructor(f"{_TAG}object/apply:", _python_apply)
_Loader.add_constructor("!ENV", _environment)
_Loader.add_constructor(None, _plain)
