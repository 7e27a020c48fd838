"""The watch over visits catches what it is there for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import MODES, Mode, Open, find_chromium


@pytest.mark.parametrize("mode", MODES)
def test_a_request_that_leaves_the_site_is_seen(
    tmp_path: Path, visit: Open, publish: Callable[[Path, Mode], str], mode: Mode
) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><img src='https://example.org/pixel.png'><img src='own.png'>")
    (tmp_path / "own.png").write_bytes(b"")
    seen = visit(publish(tmp_path, mode))
    # Answered here: no test needs a network.
    seen.page.route("https://example.org/**", lambda route: route.fulfill(status=200, body=""))
    seen.goto()
    assert seen.foreign() == ["https://example.org/pixel.png"]
    assert any(url.endswith("own.png") for url in seen.requests)
    seen.requests.clear()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("console.error('told')", "told"),
        ("null.x", "properties of null"),
        ("setTimeout(() => nowhere(), 0)", "nowhere"),
    ],
)
def test_errors_are_seen(
    tmp_path: Path, visit: Open, publish: Callable[[Path, Mode], str], script: str, message: str
) -> None:
    (tmp_path / "index.html").write_text(f"<!doctype html><script>{script}</script>")
    seen = visit(publish(tmp_path, "file"))
    page = seen.goto()
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert any(message in error for error in seen.errors)
    seen.errors.clear()


def test_the_browser_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/somewhere/else")
    assert find_chromium() == "/somewhere/else"
    monkeypatch.delenv("CHROMIUM")
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/google-chrome" if name == "google-chrome" else None)
    assert find_chromium() == "/usr/bin/google-chrome"
