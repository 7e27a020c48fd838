"""The pin in `sourcepanel.toml`, moved: three values of one table, every other byte as it was."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sourcepanel.config import Repository
from sourcepanel.errors import DriftError

_HEADER = re.compile(rb"[ \t]*(\[\[?)[ \t]*([\w.\-]+)[ \t]*\]")


def move_pin(data: bytes, *, old: Repository, new: Repository, path: Path) -> bytes:
    """The file with the pin of `old` set to that of `new`; raises `DriftError` where it is not written line by line."""
    before: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    number = [table["name"] for table in before["repositories"]].index(old.name)
    lines = data.split(b"\n")
    changes = {("repositories", "ref"): (old.ref, new.ref), ("repositories", "commit"): (old.commit, new.commit)}
    expected: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    expected["repositories"][number] |= {"ref": new.ref, "commit": new.commit}
    if old.wheel and new.wheel:
        changes["repositories.wheel", "version"] = (old.wheel.version, new.wheel.version)
        wheel = expected["repositories"][number]["wheel"]
        wheel["version"] = new.wheel.version
        if "sha256" in wheel:
            wheel["sha256"] = list(new.wheel.sha256)
    table, seen = "", -1
    for index, line in enumerate(lines):
        if header := _HEADER.match(line):
            table = header[2].decode()
            seen += header[1] == b"[[" and table == "repositories"
        elif seen == number:
            for (where, key), (was, now) in changes.items():
                if where == table:
                    lines[index] = _assign(line, key.encode(), was.encode(), now.encode(), already=lines[index])
                elif where == f"{table}.wheel" and re.match(rb"[ \t]*wheel[ \t]*=[ \t]*\{", line):
                    lines[index] = _assign(line, key.encode(), was.encode(), now.encode(), already=line, inline=True)
    made = b"\n".join(lines)
    if tomllib.loads(made.decode("utf-8")) != expected:
        fix = f"set ref, commit and the wheel of {old.name} there by hand, then run `sourcepanel lock`"
        raise DriftError(f"{path}: cannot find where the pin of {old.name} is written; {fix}")
    return made


def _assign(line: bytes, key: bytes, was: bytes, now: bytes, *, already: bytes, inline: bool = False) -> bytes:
    """The line with this key's value replaced, quotes and comment kept; `already` where it sets another key."""
    before = rb"([^#]*[{,]" if inline else rb"("
    hit = re.match(before + rb"[ \t]*" + key + rb"[ \t]*=[ \t]*([\"']))" + re.escape(was) + rb"(?=\2)", line)
    return hit[1] + now + line[hit.end() :] if hit else already
