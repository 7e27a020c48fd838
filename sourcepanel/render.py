"""Source text to highlighted HTML, at build.

A file becomes sections of `SECTION` lines so that the browser lays out only what is in view. A section is
its lines joined by newlines; every line is whole HTML by itself (a docstring's span is closed and opened
again at each line end), so the script can wrap, replace or leave out any line.

The text of the HTML is the text of the file, to the letter: a lexer that drops or changes a character, or
fails, costs the colours of that file and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from html import escape
from pathlib import Path, PurePosixPath

import pygments
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.python import PythonLexer
from pygments.lexers.special import TextLexer
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound

from sourcepanel.files import write_atomically
from sourcepanel.source import SourceFile

SECTION = 50
"""Lines per section; the script knows the same number."""
TAB = 4
"""Columns per tab stop, as in the style sheet."""
MAX_HIGHLIGHT = 2_000_000
"""Characters up to which a file is coloured; a longer one is shown plain, as lexing it takes seconds."""
RENDERER = 2
"""Raise it whenever the same file would render otherwise: it is part of the cache's key."""

CLASSES: dict[_TokenType, str] = {
    Token.Keyword: "k",
    Token.Keyword.Constant: "m",
    Token.Operator.Word: "k",
    Token.Comment: "c",
    Token.Comment.Preproc: "k",
    Token.Comment.PreprocFile: "s",
    Token.Literal.String: "s",
    Token.Literal.String.Affix: "k",
    Token.Literal.String.Escape: "e",
    Token.Literal.String.Interpol: "e",
    Token.Literal.Number: "m",
    Token.Name.Function: "f",
    Token.Name.Class: "t",
    Token.Name.Exception: "t",
    Token.Name.Decorator: "d",
    Token.Name.Builtin: "b",
    Token.Name.Constant: "m",
    Token.Name.Tag: "t",
    Token.Name.Attribute: "m",
    Token.Keyword.Type: "t",
    Token.Generic.Heading: "h",
    Token.Generic.Subheading: "h",
    Token.Generic.Strong: "h",
    Token.Generic.Deleted: "k",
    Token.Generic.Inserted: "s",
}
"""Colour class of a token type and all below it; what is not named here is plain text without an element."""


@dataclass(frozen=True)
class Rendered:
    """All that the panel shows of one text file."""

    language: str
    """Name of the lexer, for people; empty when the file is not coloured."""
    columns: int
    """Width of the longest line: sections out of view have no width of their own."""
    sections: tuple[str, ...]
    symbols: tuple[tuple[str, str, int, int, int], ...]
    """(qualified name, kind, first line, line of the name, last line) of each definition, in order."""


def render_source(file: SourceFile) -> Rendered:
    """Render the lines of a file that has text."""
    lexer = lexer_for(file.path)
    pieces = None if lexer is None or len(file.text) > MAX_HIGHLIGHT else _pieces(lexer, file.text)
    html = list(_lines(pieces)) if pieces is not None else [_escape(line) for line in file.lines]
    return Rendered(
        language=lexer.name if lexer is not None and pieces is not None else "",
        columns=max(map(_width, file.lines), default=0),
        sections=tuple("\n".join(html[i : i + SECTION]) for i in range(0, file.count, SECTION)),
        symbols=tuple((s.name, s.kind, s.start, s.line, s.end) for s in file.symbols.symbols),
    )


def render_cached(file: SourceFile, *, cache: Path | None) -> Rendered:
    """The same, kept under `cache/render`; an entry that cannot be read or written only costs the time.

    The name of an entry holds everything the output depends on: blob, file name (it chooses the lexer), Pygments and
    `RENDERER`.
    """
    if cache is None:
        return render_source(file)
    # Not the lexer itself: to make one takes longer than to read an entry.
    kind = PurePosixPath(file.path).suffix if file.path.endswith(".py") else PurePosixPath(file.path).name
    parts = (file.blob, kind, pygments.__version__, RENDERER)
    name = hashlib.sha256(repr(parts).encode()).hexdigest()
    entry = cache / "render" / name[:2] / f"{name}.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        return _load(entry.read_text(encoding="utf-8"))
    rendered = render_source(file)
    with suppress(OSError):
        write_atomically(entry, json.dumps(asdict(rendered), ensure_ascii=False))
    return rendered


def lexer_for(path: str) -> Lexer | None:
    """The lexer for a file's name; None for plain text."""
    # Pygments tries a name on a thousand patterns; what ends in .py is Python by all of them.
    return _python() if path.endswith(".py") else _lexer(PurePosixPath(path).name)


@lru_cache(maxsize=1)
def _python() -> Lexer:
    return PythonLexer()


@lru_cache(maxsize=512)
def _lexer(name: str) -> Lexer | None:
    try:
        lexer = get_lexer_for_filename(name)
    except ClassNotFound:
        return None
    return None if isinstance(lexer, TextLexer) else lexer


def _load(text: str) -> Rendered:
    data = json.loads(text)
    sections, symbols = tuple(data["sections"]), tuple((*symbol,) for symbol in data["symbols"])
    return Rendered(data["language"], int(data["columns"]), sections, symbols)


def _pieces(lexer: Lexer, text: str) -> list[tuple[str, str]] | None:
    """(class, text) runs that together are the text; None where the lexer fails or does not give it back whole."""
    pieces: list[tuple[str, str]] = []
    last: _TokenType | None = None
    length = 0
    try:
        # Not get_tokens(): it would strip a form feed's line and turn a lone \r into a line end.
        for _, token, value in lexer.get_tokens_unprocessed(text):
            if not value:
                continue
            length += len(value)
            name = _class(token)
            if pieces and last is Token.Name and value.startswith("("):
                # A plain name before a bracket is a call; Pygments does not say so.
                called = pieces.pop()[1]
                pieces.append(("t" if called.lstrip("_")[:1].isupper() else "f", called))
            if pieces and pieces[-1][0] == name and token is not Token.Name:
                pieces[-1] = (name, pieces[-1][1] + value)
            else:
                pieces.append((name, value))
            last = token
    except Exception:  # a lexer may raise anything; the reader still gets the text
        return None
    return pieces if length == len(text) and "".join(value for _, value in pieces) == text else None


@lru_cache(maxsize=1024)
def _class(token: _TokenType) -> str:
    """The colour class of the nearest named ancestor."""
    for kind in reversed(token.split()):
        if kind in CLASSES:
            return CLASSES[kind]
    return ""


def _lines(pieces: list[tuple[str, str]]) -> Iterator[str]:
    """HTML of each line, every element closed within it."""
    line: list[str] = []
    for name, text in pieces:
        for i, part in enumerate(text.split("\n")):
            if i:
                yield "".join(line)
                line.clear()
            if part:
                line.append(f"<span class={name}>{_escape(part)}</span>" if name else _escape(part))
    yield "".join(line)


def _escape(text: str) -> str:
    # A browser turns a lone \r in HTML into a line end: the line would be two.
    return escape(text, quote=False).replace("\r", "␍")


def _width(line: str) -> int:
    if line.isascii():
        return len(line.expandtabs(TAB)) if "\t" in line else len(line)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line.expandtabs(TAB))
