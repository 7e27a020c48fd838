"""bench/audit.py: what it reads from a report, and that the results say what it measured."""

from __future__ import annotations

import gzip
import json
import urllib.request
from typing import Any

import pytest

from bench.audit import FIGURES, FORMS, PAGES, SCORES, SECTION, median, read, render, serve


def report(**failing: float | None) -> dict[str, Any]:
    audits: dict[str, Any] = {name: {"numericValue": 1500.4} for name in FIGURES}
    audits |= {name: {"score": 1} for name in ("image-alt", "told-only", "title", "tall")}
    audits |= {name.replace("_", "-"): {"score": score} for name, score in failing.items()}
    refs = {"accessibility": ("image-alt", "told-only"), "seo": ("title",), "best-practices": ("tall",)}
    return {
        "audits": audits,
        "categories": {
            name: {
                "score": 0.956,
                "auditRefs": [{"id": one, "weight": int(one != "told-only")} for one in refs.get(name, ())],
            }
            for name in SCORES
        },
    }


@pytest.mark.parametrize(
    ("failing", "names"),
    [
        ({}, []),
        ({"image_alt": 0, "title": 0}, ["image-alt", "title"]),
        ({"told_only": 0}, []),
        ({"image_alt": None}, []),
    ],
)
def test_a_report_gives_scores_figures_and_what_failed(failing: dict[str, float | None], names: list[str]):
    reading, failed = read(report(**failing))
    assert [reading[name] for name in SCORES] == [96] * 4
    assert reading["largest-contentful-paint"] == 1500.4
    assert failed == names, "an audit that weighs nothing, or does not apply, is none that failed"


def test_the_median_is_of_each_figure_by_itself():
    assert median([{"a": 1, "b": 9}, {"a": 2, "b": 8}, {"a": 9, "b": 1}]) == {"a": 2, "b": 8}


def test_text_is_sent_compressed_and_may_be_kept(tmp_path):
    (tmp_path / "a.html").write_text("中" * 1000, encoding="utf-8")
    with serve(tmp_path) as base, urllib.request.urlopen(base + "a.html") as answer:
        assert answer.headers["Content-Encoding"] == "gzip" and "max-age" in answer.headers["Cache-Control"]
        assert gzip.decompress(answer.read()).decode() == "中" * 1000


def test_the_results_say_what_was_measured():
    figures = json.loads((SECTION.folder / "audit.json").read_text(encoding="utf-8"))
    assert SECTION.within((SECTION.folder / "RESULTS.md").read_text(encoding="utf-8")) == render(figures)
    assert [(row["page"], row["form"]) for row in figures["rows"]] == [(page, form) for page in PAGES for form in FORMS]
    assert figures["axe"]["violations"] == 0 and figures["axe"]["passes"] > 20 * figures["axe"]["pages"]
    for row in figures["rows"]:
        assert row["failed"] == []
        assert all(row["reading"][name] == 100 for name in SCORES[1:]), row["page"]
