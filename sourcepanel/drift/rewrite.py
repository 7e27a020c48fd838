"""A reference as it is written, moved: only what must change changes, in the link and in the page around it."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from sourcepanel.config import Repository
from sourcepanel.reference import SourceRef, parse_code, parse_link

_LINK = re.compile(
    r"(?P<head>\s*(?:https?:)?//(?:[^/\s]+/[^/]+/[^/]+/(?:blob|tree|raw|blame)|raw\.githubusercontent\.com/[^/]+/[^/]+)/"
    r"(?:refs/(?:heads|tags)/)?)(?P<rest>[^?#]*)(?P<query>\?[^#]*)?(?P<fragment>#.*)?",
    re.I | re.S,
)
_FRAGMENT = re.compile(r"(?P<first>#L)\d+(?:C\d+)?(?:(?P<between>-L?)\d+(?:C\d+)?)?")
_DEFINITION = r"^[ \t>]*\[[^\[\]]+\]:\s*<?"


@dataclass(frozen=True)
class Edit:
    """One spelling on one line of a page, and what shall stand there."""

    line: int
    raw: str
    new: str
    count: int
    """How many references are written so on that line."""


def is_link(raw: str) -> bool:
    """Whether a reference is written as an address, and not as `path::symbol`."""
    return re.match(r"(?i)\s*(?:https?:)?//", raw) is not None


def rewrite(raw: str, *, was: SourceRef, to: SourceRef, old: Repository, new: Repository) -> str | None:
    """The reference at the new pin, spelled as its author spells; None where that cannot be written."""
    if is_link(raw):
        return _link(raw, was=was, to=to, old=old, new=new)
    head, separator, name = raw.partition("::")
    spelled = name.removesuffix("()")
    symbol = spelled if to.symbol == was.symbol else (to.symbol or "")
    path = head if to.path == was.path else head[: len(head) - len(head.rpartition(":")[2])] + to.path
    made = f"{path}{separator}{symbol}{name[len(spelled) :]}"
    return made if parse_code(made, [new]) == to or parse_code(made, [old, new]) == to else None


def fix_to(raw: str, *, was: SourceRef, pin: Repository, new: Repository) -> str | None:
    """An address that stays at the old pin: as it is, or with that pin's commit where it would now mean the new one."""
    if parse_link(raw, [new]) != was:
        return raw
    hit = _LINK.fullmatch(raw)
    ref = _ref(hit["rest"], pin) if hit else None
    if hit is None or ref is None:
        return None
    made = hit["head"] + pin.commit + hit["rest"][len(ref) :] + (hit["query"] or "") + (hit["fragment"] or "")
    return made if parse_link(made, [pin]) == was else None


def edit_page(data: bytes, edits: Iterable[Edit]) -> tuple[bytes, tuple[Edit, ...]]:
    """The page with these edits made and every other byte as it was, and the edits that have no clear place."""
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", data.decode("utf-8"))
    misplaced: list[Edit] = []
    by_line: dict[int, dict[str, str]] = {}
    for edit in edits:
        places = _places(lines, edit)
        if not places:
            misplaced.append(edit)
        for line, spelled in places:
            by_line.setdefault(line, {})[spelled] = _respelled(edit, spelled)
    for line, changes in by_line.items():
        # At once and longest first: no edit may meet what another has written.
        pattern = re.compile("|".join(_bounded(spelled) for spelled in sorted(changes, key=len, reverse=True)))
        parts, last = [], 0
        for hit in pattern.finditer(lines[line]):
            parts += [lines[line][last : hit.start()], changes[hit[0]]]
            last = hit.end()
        lines[line] = "".join([*parts, lines[line][last:]])
    return "".join(lines).encode("utf-8"), tuple(misplaced)


def _places(lines: list[str], edit: Edit) -> list[tuple[int, str]]:
    """Index of each line that holds it, with the spelling there."""
    for spelled in dict.fromkeys((edit.raw, html.escape(edit.raw, quote=False))):
        if 0 < edit.line <= len(lines):
            text = lines[edit.line - 1]
            hits = [hit for hit in re.finditer(_bounded(spelled), text)]
            written = [hit for hit in hits if _is_written(text, hit.start(), spelled)]
            if len(hits) == edit.count or (hits and len(hits) == len(written)):
                return [(edit.line - 1, spelled)]
            if hits and not re.match(_DEFINITION, text):
                return []
        definition = re.compile(_DEFINITION + _bounded(spelled))
        if found := [(number, spelled) for number, text in enumerate(lines) if definition.match(text)]:
            return found
    return []


def _is_written(text: str, start: int, spelled: str) -> bool:
    """Whether it stands here as an address or as code, and not as plain text."""
    before = text[:start]
    if not is_link(spelled):
        return before.endswith(("`", "` ")) or re.search(r":\s*[\"']?$", before) is not None
    return re.search(r"""(?:\]\(\s*<?|<|\]:\s*<?|href\s*=\s*["']?)$""", before) is not None


def _bounded(spelled: str) -> str:
    """The spelling alone, not as a part of a longer one."""
    return rf"(?<![\w/.:%-]){re.escape(spelled)}(?![\w/#%:-]|\.\w)"


def _respelled(edit: Edit, spelled: str) -> str:
    return edit.new if spelled == edit.raw else html.escape(edit.new, quote=False)


def _link(raw: str, *, was: SourceRef, to: SourceRef, old: Repository, new: Repository) -> str | None:
    hit = _LINK.fullmatch(raw)
    ref = _ref(hit["rest"], old) if hit else None
    if hit is None or ref is None:
        return None
    if ref == old.ref:
        there = new.ref
    elif re.fullmatch(r"[0-9a-f]{7,40}", ref.lower()) and old.commit.startswith(ref.lower()):
        there = new.commit[: len(ref)]
    else:
        there = ref
    path = hit["rest"][len(ref) :]
    if to.path != was.path:
        path = f"/{quote(to.path)}" + ("/" if path.endswith("/") else "")
    fragment = hit["fragment"] or ""
    if (to.start, to.end) != (was.start, was.end) and to.start is not None:
        lines = _FRAGMENT.fullmatch(unquote(fragment))
        if lines is None:
            return None
        fragment = f"{lines['first']}{to.start}"
        if to.end != to.start:
            fragment += f"{lines['between'] or '-L'}{to.end}"
    made = f"{hit['head']}{there}{path}{hit['query'] or ''}{fragment}"
    return made if parse_link(made, [new]) == to else None


def _ref(rest: str, pin: Repository) -> str | None:
    """The branch, tag or commit with which the rest of an address begins, if it is the pin's."""
    refs = {pin.ref, *(ref for alias in pin.aliases for ref in alias.refs)}
    for ref in sorted(refs, key=len, reverse=True):
        if rest == ref or rest.startswith(f"{ref}/"):
            return ref
    first = rest.partition("/")[0]
    return first if re.fullmatch(r"(?i)[0-9a-f]{7,40}", first) and pin.commit.startswith(first.lower()) else None


def count_edits(edits: Iterable[tuple[int, str, str]]) -> list[Edit]:
    """Edits from (line, spelling, new spelling), one for each reference; what stays as it is is left out."""
    counted = Counter(edits)
    return [Edit(line, raw, new, count) for (line, raw, new), count in counted.items() if raw != new]
