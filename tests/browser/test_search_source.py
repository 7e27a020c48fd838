"""Files and symbols of the pinned source in the search box of the real site."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.test_search import ask
from tests.browser.test_site import base, http, site  # noqa: F401 - fixtures

TRAINING = "megatron/training/training.py"
SOURCE = [
    ("train_step", "train_step", TRAINING),
    ("TRAIN_STEP", "train_step", TRAINING),
    ("train step", "train_step", TRAINING),
    ("train_step()", "train_step", TRAINING),
    ("（train_step）", "train_step", TRAINING),
    ("`train_step`", "train_step", TRAINING),
    ("setup_model_and_optimizer", "setup_model_and_optimizer", TRAINING),
    ("DistributedOptimizer", "DistributedOptimizer", "megatron/core/optimizer/distrib_optimizer.py"),
    ("distributedoptimizer", "DistributedOptimizer", "megatron/core/optimizer/distrib_optimizer.py"),
    ("DistributedOptimizer.step_with_ready_grads", "DistributedOptimizer.step_with_ready_grads", ""),
    ("ColumnParallelLinear", "ColumnParallelLinear", "megatron/core/tensor_parallel/layers.py"),
    ("ColumnParallel", "ColumnParallelLinear", "megatron/core/tensor_parallel/layers.py"),
    ("get_num_microbatches", "get_num_microbatches", "megatron/core/num_microbatches_calculator.py"),
    ("num_microbatches", "megatron/core/num_microbatches_calculator.py", ""),
    ("grad_norm", "get_grad_norm_fp32", "megatron/core/optimizer/clip_grads.py"),
    ("parallel_state.py", "megatron/core/parallel_state.py", ""),
    ("parallel_state", "megatron/core/parallel_state.py", ""),
    ("megatron/core/parallel_state.py", "megatron/core/parallel_state.py", ""),
    ("parallel_state.py::initialize_model_parallel", "initialize_model_parallel", "megatron/core/parallel_state.py"),
    ("training.py::train_step", "train_step", TRAINING),
    ("finalize_model_grads", "finalize_model_grads", "megatron/core/distributed/finalize_model_grads.py"),
    ("VocabParallelEmbedding.forward", "VocabParallelEmbedding.forward", "megatron/core/tensor_parallel/layers.py"),
    ("_allreduce_embedding_grad", "_allreduce_embedding_grad", "megatron/core/distributed/finalize_model_grads.py"),
]  # fmt: skip
NOTHING = ["梯度同步", "重计算", "reduce-scatter 梯度", "zzzz_not_there", "tp", "123", "——"]
PAGES = [
    ("setup_model_and_optimizer", "06-gradient-sync-and-optimizer.html"),
    ("检查点", "07-checkpointing.html"),
    ("simple loop", "roadmap.html"),
]
"""What notes say of it, whatever else they come to say."""


def found(page: Page, query: str) -> list[tuple[str, str]]:
    """Name and file of what the box shows of the source."""
    page.locator("[data-md-component=search-query]").fill(query)
    page.wait_for_function("query => document.querySelector('.search-source')?.dataset.query === query", arg=query)
    if page.locator(".search-source").is_hidden():
        return []
    return page.locator(".search-source article").evaluate_all(
        "all => all.map(one => [one.querySelector('code').textContent, one.querySelector('small').textContent])"
    )


def opened(page: Page, path: str, text: str) -> None:
    expect(page.locator("#sp-panel")).to_have_attribute("aria-label", f"源码：{path}")
    expect(page.locator("#sp-panel .sp-on").first).to_contain_text(text)
    expect(page.locator("[data-md-toggle=search]")).not_to_be_checked()


def test_every_name_is_the_first_of_the_source(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto("index.html")
    ask(page)
    wrong = {}
    for query, name, path in SOURCE:
        first = (found(page, query) or [("", "")])[0]
        if tuple(first) != (name, path) and (path or first[0] != name):
            wrong[query] = first
    assert not wrong
    assert {query: found(page, query) for query in NOTHING} == {query: [] for query in NOTHING}


def test_a_symbol_opens_in_the_panel_on_the_page_where_one_is(base: str, visit: Open):  # noqa: F811
    seen = visit(base)
    page = seen.goto("glossary.html")
    ask(page)
    assert found(page, "train_step")[0] == ["train_step", TRAINING]
    expect(page.locator(".search-source mark").first).to_have_text("train_step")
    page.locator(".search-source a").first.click()
    opened(page, TRAINING, "def train_step")
    assert page.url.split("?")[0].endswith("glossary.html")
    assert seen.foreign() == [] and seen.errors == []


def test_enter_and_arrows_reach_it_from_the_keyboard(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto("index.html")
    ask(page)
    found(page, "train_step")
    page.keyboard.press("Enter")
    opened(page, TRAINING, "def train_step")
    page.keyboard.press("Escape")
    page.locator("[data-md-component=search-query]").click()
    found(page, "ColumnParallel")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".search-source a").first).to_be_focused()
    page.keyboard.press("Enter")
    opened(page, "megatron/core/tensor_parallel/layers.py", "class ColumnParallelLinear")


def test_more_is_folded_and_reset_clears_it(http: str, visit: Open):  # noqa: F811
    page = visit(http).goto("index.html")
    ask(page)
    assert len(found(page, "grad_norm")) > 3
    expect(page.locator(".search-source > ol li")).to_have_count(3)
    page.locator(".search-source summary").click()
    expect(page.locator(".search-source details li").last).to_be_visible()
    page.locator(".md-search__icon[type=reset]").click()
    expect(page.locator(".search-source")).to_be_hidden()


def test_on_a_phone_the_box_closes_over_the_panel(http: str, visit: Open):  # noqa: F811
    page = visit(http, viewport={"width": 390, "height": 844}, has_touch=True).goto("index.html")
    page.locator("label.md-header__button[for=__search]").tap()
    found(page, "train_step")
    page.locator(".search-source a").first.tap()
    opened(page, TRAINING, "def train_step")


def test_pages_are_still_found_beside_it(http: str, visit: Open, site: Path):  # noqa: F811
    page = visit(http).goto("index.html")
    ask(page)
    for query, expected in PAGES:
        found(page, query)
        link = page.locator(f'.md-search-result__item > a[href*="{expected}"]').first
        expect(link).to_be_attached()
    index = (site / "search/search_index.json").read_text(encoding="utf-8")
    assert '"coverage.html#' in index and "symbols.html#file-" not in index, "made tables are no words of a note"


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_in_the_box(http: str, visit: Open, colours: str):  # noqa: F811
    made = visit(http, color_scheme=colours)
    page = made.goto("index.html")
    ask(page)
    found(page, "train_step")
    assert made.axe(include=".search-source") == []
