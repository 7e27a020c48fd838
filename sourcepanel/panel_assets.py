"""What is the same for every file: the panel's scripts and style, and what they must know of the site."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from sourcepanel.config import Repository
from sourcepanel.files import write_atomically
from sourcepanel.strings import strings
from sourcepanel.versions_view import offered, version_name

FOLDER = "sourcepanel"
STYLES = (f"{FOLDER}/sourcepanel.css",)
# They go out as one file, in this order: a page asks once, and together they compress better.
_SCRIPTS = (
    "state.js",
    "view.js",
    "parts.js",
    "resize.js",
    "windows.js",
    "follow.js",
    "keys.js",
    "panel.js",
)
# These come when a reader first opens a file, or points at a link.
_LATER = (
    "outline.js",
    "find.js",
    "scopes.js",
    "copy.js",
    "gutter.js",
    "card.js",
    "preview.js",
    "identifiers.js",
    "tabs.js",
    "versions.js",
)
LATER = f"{FOLDER}/later.js"
_STYLES = ("sourcepanel.css", "reading.css", "moving.css", "versions.css")
SCRIPTS = (f"{FOLDER}/sourcepanel.js", f"{FOLDER}/site.js")
"""What each page loads, in this order, relative to the site's root."""

_ASSETS = Path(__file__).parent / "assets"
_COMMENT = re.compile(r"^[ \t]*(?:/\*(?:[^*]|\*(?!/))*\*/|//.*)[ \t]*\n", re.MULTILINE)
_CAST = re.compile(r"/\*\* .*? \*/ ?")


def write_assets(out: Path, *, repositories: Sequence[Repository], language: str) -> None:
    """Write the scripts and the style under `out`, the built site; what is right already stays untouched."""
    for script, parts in ((SCRIPTS[0], _SCRIPTS), (LATER, _LATER)):
        write_changed(out / script, "".join(_lean(_ASSETS / name) for name in parts))
    style = "".join(_lean(_ASSETS / name) for name in _STYLES)
    write_changed(out / STYLES[0], style + "".join(map(_print_rule, repositories)))
    write_changed(out / SCRIPTS[1], _site(repositories, language=language))


def safe_json(value: object) -> str:
    """JSON that is also JavaScript, and stays what it is inside an HTML script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("</", "<\\/").replace("<!--", "\\u003c!--")
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def lean_asset(name: str) -> str:
    """A script or style of the engine by its name, as it goes into the site."""
    return _lean(_ASSETS / name)


def _lean(file: Path) -> str:
    """A script or style without type casts, comments that fill whole lines, and indentation: half the bytes."""
    text = _COMMENT.sub("", file.read_text(encoding="utf-8"))
    return re.sub(r"^\s+", "", _CAST.sub("", text), flags=re.MULTILINE)


def call(name: str, *values: object) -> str:
    """A data file: a classic script of one call, as a page at `file://` may load those only."""
    return f"SourcePanel.{name}({','.join(map(safe_json, values))});\n"


def _site(repositories: Sequence[Repository], *, language: str) -> str:
    """The script with everything that is the same for all files."""
    table = {key.removeprefix("panel."): text for key, text in strings(language).items() if key.startswith("panel.")}
    data = {repository.name: _repository(repository) for repository in repositories}
    return call("configure", {"strings": table, "repositories": data})


def _repository(repository: Repository) -> dict[str, object]:
    base, commit, notice = repository.url.rstrip("/"), repository.commit, repository.license
    versions = [
        {"name": version_name(version), "commit": version.commit, "blob": f"{base}/blob/{quote(version.ref)}/"}
        for version in offered(repository)
    ]
    return {
        "ref": repository.ref,
        "commit": commit,
        "blob": f"{base}/blob/{commit}/",
        "tree": f"{base}/tree/{commit}/",
        "license": [f"© {notice.holder} · {notice.name}", f"{base}/blob/{commit}/{quote(notice.path)}"],
        **({"versions": versions} if versions else {}),
    }


def _print_rule(repository: Repository) -> str:
    """On paper a link says where it leads: path, range and commit, without a script."""
    start, pin = json.dumps(f"{repository.name}/"), json.dumps(f" @ {repository.commit[:8]}]")
    return f'@media print {{ a.sp-link[data-src^={start}]::after {{ content: " [" attr(data-src) {pin}; }} }}\n'


def write_changed(file: Path, text: str) -> bool:
    """Write unless the file holds this text already; whether it was written."""
    try:
        if file.read_bytes() == text.encode():
            return False
    except OSError:
        pass
    write_atomically(file, text)
    return True
