"""What mkdocs.yml promises: anchors that last, and nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import markdown
import pytest

from sourcepanel.collect import read_extensions
from sourcepanel.notes import reading_time

ROOT = Path(__file__).resolve().parents[2]


def anchors(text: str) -> dict[str, str]:
    """Heading → id, as the site makes them."""
    options = read_extensions(ROOT / "mkdocs.yml")
    html = markdown.markdown(text, extensions=list(options), extension_configs=options)
    return {re.sub(r"<[^>]*>|¶", "", body): name for name, body in re.findall(r'<h\d id="([^"]+)">(.*?)</h\d>', html)}


def test_an_inserted_heading_leaves_the_anchors_of_the_others_alone():
    before = anchors("# 题目\n\n## 调用链\n\n## Tensor / Process Group 语义\n\n## 遗留问题\n")
    after = anchors(
        "# 题目\n\n## 新的一节\n\n## 调用链\n\n### 又一节\n\n## Tensor / Process Group 语义\n\n## 遗留问题\n"
    )
    assert before == {heading: after[heading] for heading in before}
    assert before["调用链"] == "调用链"


def test_an_explicit_id_is_kept():
    assert anchors("## 调用链 {#call-chain}\n") == {"调用链": "call-chain"}


@pytest.mark.parametrize(
    "name", ["mkdocs.yml", *(p.relative_to(ROOT).as_posix() for p in ROOT.glob("overrides/**/*.html"))]
)
def test_no_template_or_setting_names_another_host(name: str):
    assert not re.findall(r"(?:https?:)?//[\w.-]+\.\w+", (ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted((ROOT / "docs/assets").rglob("*.*")), ids=lambda p: p.name)
def test_no_asset_asks_another_host(path: Path):
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.findall(r"https?://|@import|url\(", text)
    assert "fetch(" not in text


def test_mkdocs_does_not_ask_for_the_stars_of_a_repository():
    assert "repo_url:" not in (ROOT / "mkdocs.yml").read_text(encoding="utf-8").replace("No repo_url:", "")


def test_the_page_on_reading_time_gives_the_rates_that_are_used():
    page = (ROOT / "docs/about/reading-time.md").read_text(encoding="utf-8")
    rates = re.findall(r"\| 每(?:分钟|小时) (\d+) [字词行] \|", page)
    assert [int(rate) for rate in rates] == [
        reading_time.CHARACTERS_PER_MINUTE,
        reading_time.WORDS_PER_MINUTE,
        round(reading_time.CODE_LINES_PER_MINUTE * 60),
    ]
