"""Make the README's picture from the built site: `python tools/screenshot.py` after `make site`, with the `test` extra.

Every character of source is covered by a bar of its colour: this repository holds no line of the repositories it
reads, not as a picture either.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "site/notes/01-training-run-overview.html"
TARGET = ROOT / ".github/screenshot-panel.png"
LINK = '.call-chain a.sp-link[data-symbol="train_step"]'
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
COVER = """
document.querySelectorAll(".sp-l").forEach(line => {
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) walker.currentNode.data = walker.currentNode.data.replace(/\\S/g, "\u2584");
  line.style.opacity = "0.75";
});
"""


def main() -> None:
    """Open note 01 from disk, click a reference, wait for its source, take the picture."""
    if not PAGE.exists():
        sys.exit(f"{PAGE}: no such file; run `make site` first")
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=FLAGS).new_page(
            viewport={"width": 1360, "height": 760}
        )
        page.goto(PAGE.as_uri())
        page.locator(LINK).first.click()
        page.locator(".sp-l").first.wait_for()
        page.evaluate(COVER)
        page.evaluate("document.activeElement.blur()")
        page.wait_for_timeout(500)
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=TARGET)
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
