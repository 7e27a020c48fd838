"""Search finds Chinese words and identifiers, whole and by part, over http and from disk."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import MODES, Mode, Open
from tests.browser.site_build import build_pages

PAGES = {
    "index.md": "# 总览\n\n从这里开始。\n",
    "optimizer.md": (
        "# 分布式优化器\n\n`DistributedOptimizer` 把优化器状态按 rank 切开。\n\n"
        "## 更新之后\n\n参数由 all-gather 收回，见 `ChainedOptimizer.step`。\n"
    ),
    "schedules.md": (
        "# 流水线调度\n\n`get_forward_backward_func` 选出 `forward_backward_no_pipelining`。\n\n"
        "## 气泡\n\n流水线气泡随 stage 数增长。\n"
    ),
    "grads.md": (
        "# 梯度\n\n梯度同步（reduce-scatter）与反向计算重叠，入口是“finalize_model_grads”。\n\n"
        "## 累积\n\n`gradient_accumulation_fusion` 打开时，梯度累积写进 main_grad。\n"
    ),
    "recompute.md": "# 省显存\n\n重计算丢掉激活值，反向时再算一遍。\n\n选项是 `--recompute-granularity`。\n",
    "checkpoint.md": (
        "# 检查点\n\n断点续训要存随机状态。`ShardedTensor` 记下每片的位置，由 `save_checkpoint` 写出。\n"
    ),
    "experts.md": "# 专家并行\n\n`MoEAlltoAllTokenDispatcher` 把 token 送到专家所在的 rank。\n",
    "groups.md": "# 并行组\n\n`megatron/core/parallel_state.py` 里的 `initialize_model_parallel` 建进程组。\n",
    "names.md": (
        "# 名字\n\n`setup_model_and_scheduler` 之后算 `get_grad_norm`，`num_microbatches` 是份数。\n\n"
        "`GradNormClip` 截断。\n"
    ),
    "data.md": "# 数据\n\n数据迭代器交出 batch，`get_batch_on_this_tp_rank` 广播，这一步很重。megatron-core 0.17.1。\n",
}

QUERIES = [
    ("重计算", "recompute.html"),
    ("激活值", "recompute.html"),
    ("激活", "recompute.html"),
    ("显存", "recompute.html"),
    ("梯度同步", "grads.html"),
    ("梯度累积", "grads.html"),
    ("反向计算", "grads.html"),
    ("流水线气泡", "schedules.html"),
    ("气泡", "schedules.html"),
    ("调度", "schedules.html"),
    ("分布式优化器", "optimizer.html"),
    ("优化器状态", "optimizer.html"),
    ("优化器", "optimizer.html"),
    ("断点续训", "checkpoint.html"),
    ("随机状态", "checkpoint.html"),
    ("专家并行", "experts.html"),
    ("并行组", "groups.html"),
    ("进程组", "groups.html"),
    ("数据迭代器", "data.html"),
    ("数据迭代", "data.html"),
    ("迭代器", "data.html"),
    ("线气", "schedules.html"),
    ("化器", "optimizer.html"),
    ("家并", "experts.html"),
    ("随机状", "checkpoint.html"),
    ("DistributedOptimizer", "optimizer.html"),
    ("Distributed", "optimizer.html"),
    ("ChainedOptimizer.step", "optimizer.html"),
    ("get_forward_backward_func", "schedules.html"),
    ("forward_backward_no_pipelining", "schedules.html"),
    ("no_pipelining", "schedules.html"),
    ("pipelining", "schedules.html"),
    ("reduce", "grads.html"),
    ("reduce-scatter", "grads.html"),
    ("（reduce-scatter）", "grads.html"),
    ("“finalize_model_grads”", "grads.html"),
    ("finalize", "grads.html"),
    ("accumulation", "grads.html"),
    ("accumulation_fusion", "grads.html"),
    ("--recompute-granularity", "recompute.html"),
    ("recompute", "recompute.html"),
    ("granularity", "recompute.html"),
    ("ShardedTensor", "checkpoint.html"),
    ("Tensor", "checkpoint.html"),
    ("save_checkpoint", "checkpoint.html"),
    ("MoEAlltoAllTokenDispatcher", "experts.html"),
    ("TokenDispatcher", "experts.html"),
    ("Dispatcher", "experts.html"),
    ("initialize_model_parallel", "groups.html"),
    ("parallel_state.py", "groups.html"),
    ("megatron/core/parallel_state.py", "groups.html"),
    ("megatron/core/parallel_state.py::initialize_model_parallel", "groups.html"),
    ("tp_rank", "data.html"),
    ("0.17.1", "data.html"),
    ("reduce-scatter 梯度", "grads.html"),
    ("Optimizer", "optimizer.html"),
    ("optimizer", "optimizer.html"),
    ("main_grad", "grads.html"),
    ("all-gather", "optimizer.html"),
    ("ChainedOptimizer", "optimizer.html"),
    ("setup_model_and_scheduler", "names.html"),
    ("grad_norm", "names.html"),
    ("num_microbatches", "names.html"),
    ("num_micro", "names.html"),
    ("get_grad", "names.html"),
    ("（num_microbatches）", "names.html"),
    ("GradNormClip", "names.html"),
    ("重叠", "grads.html"),
]


@pytest.fixture(scope="module")
def searchable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_pages(tmp_path_factory.mktemp("search"), PAGES)


def ask(page: Page) -> None:
    """Open the search, and wait until its index is there."""
    page.locator("[data-md-component=search-query]").click()
    page.locator(".md-search-result__meta", has_text="键入以开始搜索").wait_for()


def hits(page: Page, query: str) -> list[str]:
    """The pages that the search shows for a query, best first."""
    # Each answer replaces the list, and with it what we put there.
    page.locator(".md-search-result__list").evaluate("list => { list.innerHTML = '<i id=stale></i>' }")
    page.locator("[data-md-component=search-query]").fill(query)
    page.keyboard.press("Shift")
    page.locator("#stale").wait_for(state="detached")
    return page.locator(".md-search-result__item > a.md-search-result__link").evaluate_all(
        "links => links.map(link => new URL(link.href).pathname.split('/').pop())"
    )


@pytest.mark.parametrize("mode", MODES)
def test_every_query_finds_its_page(visit: Open, publish: Callable[..., str], searchable: Path, mode: Mode):
    page = visit(publish(searchable, mode)).goto("data.html")
    ask(page)
    found = {query: hits(page, query) for query, _ in QUERIES}
    wrong = {query: found[query] for query, expected in QUERIES if found[query][:1] != [expected]}
    assert not wrong


def test_the_words_asked_for_are_marked_whole(visit: Open, publish: Callable[..., str], searchable: Path):
    page = visit(publish(searchable, "http")).goto("index.html")
    ask(page)
    for query, marks in {"重计算": ["重计算"], "反向计算": ["反向", "计算"], "accumulation": ["accumulation"]}.items():
        hits(page, query)
        assert page.locator(".md-search-result mark").all_inner_texts()[: len(marks)] == marks


def marks_after(page: Page, query: str) -> list[str]:
    """What the best page marks, once its result is clicked."""
    found = hits(page, query)
    assert found, query
    page.locator(".md-search-result__item > a.md-search-result__link").first.click()
    page.wait_for_url(f"**/{found[0]}?h=*")
    return page.locator("article mark").all_inner_texts()


@pytest.mark.parametrize("mode", MODES)
def test_the_page_marks_what_was_asked_for(visit: Open, publish: Callable[..., str], searchable: Path, mode: Mode):
    """As written where it stands there, else its parts; never a word that merely holds the same letters."""
    expected = {
        "DistributedOptimizer": ["DistributedOptimizer"],
        "Optimizer": ["Optimizer", "Optimizer"],
        "（reduce-scatter）": ["reduce-scatter"],
        "重计算": ["重计算"],
        "家并": ["家并"],
        "梯度同步 finalize": ["梯度同步", "finalize"],
        "setup_model_and_scheduler": ["setup_model_and_scheduler"],
        "megatron/core/parallel_state.py": ["megatron/core/parallel_state.py"],
        "--recompute-granularity": ["recompute-granularity"],
        "megatron/core/parallel_state.py::initialize_model_parallel": [
            "megatron", "core", "parallel", "state", "initialize", "model", "parallel",
        ],
    }  # fmt: skip
    base = publish(searchable, mode)
    for query, marks in expected.items():
        page = visit(base).goto("index.html")
        ask(page)
        assert marks_after(page, query) == marks, query


def test_an_identifier_asks_for_all_its_parts(visit: Open, publish: Callable[..., str], searchable: Path):
    """Without that, each page with any of them would be a result; what stands nowhere may still be found by a part."""
    page = visit(publish(searchable, "http")).goto("index.html")
    ask(page)
    assert set(hits(page, "setup_model_and_scheduler")) == {"names.html"}
    assert set(hits(page, "num_micro")) == {"names.html"}
    assert "names.html" in hits(page, "setup_scheduler_elsewhere")


def test_a_word_that_is_nowhere_is_not_cut_into_single_characters(
    visit: Open, publish: Callable[..., str], searchable: Path
):
    page = visit(publish(searchable, "http")).goto("index.html")
    ask(page)
    assert "grads.html" not in hits(page, "重激活"), "重 alone would find 重叠"


def test_text_that_comes_without_a_key_is_searched(visit: Open, publish: Callable[..., str], searchable: Path):
    page = visit(publish(searchable, "http")).goto("index.html")
    ask(page)
    page.evaluate("document.querySelector('[data-md-component=search-query]').focus()")
    page.keyboard.insert_text("重计算")
    expect(page.locator(".md-search-result__item > a").first).to_have_attribute("href", re.compile("recompute.html"))


def test_letters_that_are_still_composed_are_not_searched(visit: Open, publish: Callable[..., str], searchable: Path):
    page = visit(publish(searchable, "http")).goto("index.html")
    ask(page)
    sent = """events => {
        const field = document.querySelector('[data-md-component=search-query]');
        for (const [type, value, composing] of events) {
            field.value = value;
            const kind = type.startsWith('comp') ? CompositionEvent : type === 'keyup' ? KeyboardEvent : InputEvent;
            field.dispatchEvent(new kind(type, { bubbles: true, isComposing: composing, data: value, key: 'z' }));
        }
    }"""
    page.evaluate(sent, [["compositionstart", "", False], ["input", "optimizer", True], ["keyup", "optimizer", True]])
    page.evaluate(sent, [["compositionend", "重计算", False]])
    first = page.locator(".md-search-result__item > a").first
    expect(first).to_have_attribute("href", re.compile(r"recompute.html\?h=%E9%87%8D"))
    page.evaluate(sent, [["input", "optimizer", True], ["keyup", "optimizer", True]])
    page.evaluate(sent, [["keyup", "重计算", False]])
    expect(first).to_have_attribute("href", re.compile("recompute.html"))


def test_what_is_not_there_is_not_found(visit: Open, publish: Callable[..., str], searchable: Path):
    page = visit(publish(searchable, "file")).goto("index.html")
    ask(page)
    assert hits(page, "zzzz_not_there") == []
