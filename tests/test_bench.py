"""bench/build.py: that the peers are measured as what they claim to be."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bench import build as bench

ROOT = Path(__file__).resolve().parent.parent


CONFIG = """\
site_name: x
theme: {name: material, language: zh, custom_dir: overrides}
hooks: [hooks/a.py]
extra_css: [a.css]
plugins:
  - search: {jieba_dict: x.txt}
  - sourcepanel
markdown_extensions:
  - toc: {slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}}
  - sourcepanel.markdown
  - pymdownx.superfences:
      custom_fences:
        - {name: record, class: r, format: !!python/name:sourcepanel.notes.fence }
        - {name: mermaid, class: mermaid, format: !!python/name:pymdownx.superfences.fence_code_format }
"""


def test_plain_material_holds_nothing_of_ours_and_all_the_rest():
    plain = bench.plain_config(CONFIG)
    text = bench._spelled(plain)
    assert "sourcepanel" not in text
    assert not {"hooks", "extra_css"} & set(plain)
    assert plain["theme"] == {"name": "material", "language": "zh"}
    assert plain["plugins"] == [{"search": {"jieba_dict": "x.txt"}}]
    assert "pymdownx.slugs.slugify" in text
    assert "pymdownx.superfences.fence_code_format" in text


def test_the_real_configuration_still_has_something_to_take_away():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert bench.OURS.search(text)
    assert not bench.OURS.search(bench._spelled(bench.plain_config(text)))
    assert bench.plain_config(text)["markdown_extensions"]


def test_another_theme_is_refused():
    with pytest.raises(SystemExit, match="not material"):
        bench.plain_config(yaml.dump({"theme": {"name": "readthedocs"}}))


def test_figures_of_merit():
    def runs(seconds):
        return [bench.Run(s, s, 1.0, 10) for s in seconds]

    measured = {"plain": runs([2, 9, 1]), "cold": runs([3]), "warm": runs([2.2]), "mkdocstrings": runs([12])}
    result = bench.summarize(measured, {"a.py": 1000}, [2.0, 9.0, 1.0])
    assert result["warm_over_plain"] == pytest.approx(1.1)
    assert result["render_speedup"] == pytest.approx(5)
    assert result["build_speedup"] == pytest.approx(10)
    assert result["microseconds_per_line"]["cold"] == pytest.approx(1000)
    result["versions"] = {"mkdocs": "1.6.1"}
    assert "**1.10** (goal ≤ 1.15)" in bench.markdown(result)
