"""A real Chromium, sites served over http, under a sub-path and as files, and a watch over what pages do.

`CHROMIUM` names the browser; else the first of `chromium`, `chromium-browser` and `google-chrome` on the PATH.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.panel_site import build

Mode = Literal["http", "subpath", "file"]
MODES: tuple[Mode, ...] = ("http", "subpath", "file")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"


def find_chromium() -> str | None:
    """The browser to drive."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for the whole run; each visit has a context of its own."""
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium: install the Debian package chromium, or name a browser in CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def panel_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built folder of `panel_site.py`."""
    return build(tmp_path_factory.mktemp("panel") / "site")


@dataclass
class Visit:
    """A page, all it asked for, and all it complained of."""

    page: Page
    base: str
    """Address of the site's root, with a slash at its end."""
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Console errors and warnings, and exceptions nobody caught."""

    def goto(self, path: str = "index.html") -> Page:
        """Open a page of the site."""
        self.page.goto(self.base + path)
        return self.page

    def foreign(self) -> list[str]:
        """Requests that left the site."""
        root = urlsplit(self.base)
        icon = f"{root.scheme}://{root.netloc}/favicon.ico"
        # Chromium asks for the icon by itself, always at the root of the host.
        own = (self.base, "data:", "blob:" + self.base, "about:")
        return [url for url in self.requests if not url.startswith(own) and url != icon]

    def axe(self, *, include: str | None = None, disable: tuple[str, ...] = ()) -> list[str]:
        """What axe-core finds wrong with the page as it stands, one line per finding."""
        if not self.page.evaluate("'axe' in window"):
            # Not a script element: a page's own content security policy may forbid those.
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        options = {"rules": {rule: {"enabled": False} for rule in disable}}
        found: list[Any] = self.page.evaluate(
            "async ([context, options]) => (await axe.run(context ?? document, options)).violations",
            [include, options],
        )
        return [f"{rule['id']}: {node['html']} ({node['failureSummary']})" for rule in found for node in rule["nodes"]]


PATIENCE = 60_000
"""Milliseconds to wait for what must come: a busy machine is slow, and a test says what comes, not when."""
expect.set_options(timeout=PATIENCE)

Open = Callable[..., Visit]


def at_rest(read: Callable[[], dict[str, Any]], key: str) -> dict[str, Any]:
    """The first reading that repeats `key` of the one before: kept views get their lines when the browser is idle."""
    last, now = read(), read()
    for _ in range(30):
        if last[key] == now[key]:
            break
        last, now = now, read()
    return now


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Open]:
    """`visit(base, **context options)` makes a fresh context and page at a site; opens nothing yet.

    At the end of the test every visit must have stayed on its site and be free of errors; a test that provokes
    errors clears `visit.errors` itself.
    """
    contexts: list[BrowserContext] = []
    visits: list[Visit] = []

    def start(base: str, **options: Any) -> Visit:
        context = chromium.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        made = Visit(page, base)
        context.on("request", lambda request: made.requests.append(request.url))
        page.on("console", lambda message: message.type in ("error", "warning") and made.errors.append(message.text))
        page.on("pageerror", lambda error: made.errors.append(str(error)))
        visits.append(made)
        return made

    yield start
    for context in contexts:
        context.close()
    for made in visits:
        assert made.foreign() == [], "a page asked for something outside its site"
        assert made.errors == [], "a page complained"


class _Handler(SimpleHTTPRequestHandler):
    """Files of one folder under a prefix; anything else is not found."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args: Any, prefix: str, **options: Any) -> None:
        self.prefix = prefix
        super().__init__(*args, **options)

    def do_GET(self) -> None:
        if self.path == "/favicon.ico":
            # Chromium asks for it by itself, and would log that it is missing.
            self.send_response(204)
            self.end_headers()
            return
        if not self.path.startswith(self.prefix):
            self.send_error(404)
            return
        self.path = "/" + self.path[len(self.prefix) :]
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that closes a connection early is no error of the site."""


@contextmanager
def serve(folder: Path, *, prefix: str = "/") -> Iterator[str]:
    """Serve a built site over http on a free port; gives its base address."""
    server = _Server(("127.0.0.1", 0), partial(_Handler, directory=str(folder), prefix=prefix))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{prefix}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def publish() -> Iterator[Callable[[Path, Mode], str]]:
    """`publish(folder, mode)` gives the base address of a built site in one of `MODES`."""
    with ExitStack() as stack:
        known: dict[tuple[Path, Mode], str] = {}

        def start(folder: Path, mode: Mode) -> str:
            if mode == "file":
                return folder.resolve().as_uri() + "/"
            if (folder, mode) not in known:
                prefix = "/deep/site/" if mode == "subpath" else "/"
                known[folder, mode] = stack.enter_context(serve(folder, prefix=prefix))
            return known[folder, mode]

        yield start
