"""YAML with the line of every value, so that a finding can name it; a key that stands twice is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

Path = tuple[str | int, ...]

# libyaml's parser is ten times faster; a PyYAML that was built without it lacks the name.
_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlProblem(Exception):
    """The text is not YAML, or a key stands twice; `line` is 1-based."""

    def __init__(self, message: str, *, line: int) -> None:
        self.line = line
        super().__init__(message)


@dataclass(frozen=True)
class YamlText:
    """The data and where each part of it stands."""

    data: Any
    lines: Mapping[Path, int]

    def line(self, path: Path) -> int:
        """1-based line of the value, or of the nearest part around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def load_yaml(text: str, *, offset: int = 0) -> YamlText:
    """Parse one document of plain data, with `offset` lines of the file before it; raises `YamlProblem`."""
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        data = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise YamlProblem(f"not valid YAML: {problem}", line=offset + (mark.line + 1 if mark else 1)) from None
    except ValueError as error:
        # A date that no calendar has.
        raise YamlProblem(f"not valid YAML: {error}", line=offset + 1) from None
    finally:
        loader.dispose()
    return YamlText(data, dict(_walk(node, (), offset + 1)) if node is not None else {})


def _walk(node: yaml.Node, path: Path, first: int) -> Iterator[tuple[Path, int]]:
    """Every path with its line; `first` is the line on which the text begins."""
    yield path, node.start_mark.line + first
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + first
            if name in seen:
                raise YamlProblem(f"{name} stands twice, first on line {seen[name]}", line=line)
            seen[name] = line
            yield from _walk(value, (*path, name), first)
            yield (*path, name), line
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _walk(value, (*path, number), first)
