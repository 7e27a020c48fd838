"""A small site for reading notes and source together: two notes, sources that use each other, a trace."""

from __future__ import annotations

import json
from pathlib import Path

from sourcepanel.events import read_events
from sourcepanel.mentions import Mention, read_mentions
from sourcepanel.panel import write_panel
from sourcepanel.panel_assets import SCRIPTS, STYLES
from sourcepanel.reference import Target
from sourcepanel.sections import read_sections
from sourcepanel.snapshot.base import git_blob_id
from sourcepanel.xref.index import build_index, python_files
from tests.support.memory import COMMIT, TINY, whole

MODEL = '''"""The model."""


class Block:
    """One layer.

    It does not much.
    """

    def forward(self, x: int, scale: float = 1.0) -> int:
        """Add one."""
        return self.help_out(x) + 1

    def help_out(self, x):
        return x


def build(kind: str) -> Block:
    """Make a block."""
    return Block()
'''
TRAIN = "".join(
    [
        "from pkg.model import Block, build\nfrom pkg.far import distant\n\n\n",
        "def train(steps: int) -> int:\n    block = build('x')\n    total = block.forward(steps)\n",
        "    anything = make()\n    return anything.help_out(total) + distant(total)\n\n\n",
        *(f"def filler_{i}(x):\n    return x + {i}\n\n\n" for i in range(150)),
    ]
)
FILES = {
    "pkg/__init__.py": b"",
    "pkg/model.py": MODEL.encode(),
    "pkg/train.py": TRAIN.encode(),
    "pkg/far.py": b"from pkg.other import beyond\n\n\ndef distant(x):\n    return beyond(x)\n",
    **{f"pkg/many_{i}.py": b"x = 1\n" * 300 for i in range(9)},
    "pkg/other.py": b"def beyond(x):\n    return x\n",
    "LICENSE": b"Tiny licence\n",
}


def target(path: str, start: int | None = None, end: int | None = None, symbol: str | None = None) -> Target:
    """A target in the tiny repository."""
    return Target(
        repository=TINY.name,
        path=path,
        kind="definition" if symbol else "interior" if start else "file",
        start=start,
        end=end or start,
        symbol=symbol,
        blob=git_blob_id(FILES[path]),
        has_text=True,
        href=f"{TINY.url}/blob/{COMMIT}/{path}" + (f"#L{start}" if start else ""),
    )


TARGETS = {
    "train": target("pkg/train.py", 5, 9, "train"),
    "forward": target("pkg/model.py", 10, 12, "Block.forward"),
    "build": target("pkg/model.py", 18, 20, "build"),
    "line": target("pkg/train.py", 8),
    "filler": target("pkg/train.py", 400, 403),
    "file": target("pkg/model.py"),
    **{f"many_{i}": target(f"pkg/many_{i}.py") for i in range(9)},
}


def link(name: str) -> str:
    """The link of a target, as the Markdown extension writes it."""
    to = TARGETS[name]
    return (
        f'<a class="sp-link" href="{to.href}" data-src="{to.key}" data-symbol="{to.symbol or ""}" '
        f'title="已校验 @ v2.0"><code>{name}</code></a>'
    )


LONG = "<p>这一段只把页面撑长：先取一个 microbatch，前向，反向，再同步梯度。</p>" * 10
INDEX = f"""
<h1 id="top">训练</h1>
<p>先看总图。一步训练由 {link("train")} 完成，它调用两个函数。完。</p>{LONG}
<h2 id="前向">前向</h2>
<p>前向在 {link("forward")}；模型由 {link("build")} 造出。见<a href="#反向" id="to-back">反向一节</a>和
<a href="notes/second.html#收尾" id="to-second">第二篇的收尾</a>。</p>{LONG}
<h2 id="反向">反向</h2>
<p>反向先走<b id="inner">最后一层</b>，注意 {link("line")}。</p>{LONG}
<table><tr><td>填充</td><td>{link("filler")}</td><td>第三列</td></tr></table>{LONG}{LONG}
"""
SECOND = f"""
<h1>第二篇</h1>
<p>整个文件是 {link("file")}。</p>{LONG}
<h2 id="收尾">收尾</h2>
<p>再看一次 {link("forward")} 的末尾。</p><p>收尾的第二段。</p>{LONG}
"""
TRACE = {
    "schema": "latent-atlas/trace",
    "version": 1,
    "source": f"tiny@{COMMIT}",
    "command": "python run.py --tp 2",
    "groups": {"tp[0,1]": {"name": "tp"}},
    "ranks": [
        {
            "rank": rank,
            "events": [
                {"api": "all_reduce", "group": "tp[0,1]", "site": {"path": "pkg/model.py", "line": 12, "function": "f"}}
            ]
            * 2,
        }
        for rank in (0, 1)
    ],
}


def page(content: str, *, depth: int = 0, scheme: str = "") -> str:
    """A page around its content."""
    up = "../" * depth
    styles = "".join(f'<link rel="stylesheet" href="{up}{name}">' for name in STYLES)
    scripts = "".join(f'<script src="{up}{name}"></script>' for name in SCRIPTS)
    attribute = f' data-md-color-scheme="{scheme}"' if scheme else ""
    csp = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self'"
    return f"""<!doctype html>
<html lang="zh"><head><meta charset="utf-8"><title>样页</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{csp}">
{styles}</head>
<body{attribute}><main><article>{content}</article>
<p><label>找 <input id="field"></label></p></main>{scripts}</body></html>
"""


def build(out: Path) -> Path:
    """Build the site into a folder."""
    (out / "notes").mkdir(parents=True)
    (out / "traces").mkdir()
    (out / "traces/run.json").write_text(json.dumps(TRACE), encoding="utf-8")
    mentions: list[Mention] = []
    sections: dict[str, dict[str, str]] = {}
    for name, title, html in (("index.html", "训练", INDEX), ("notes/second.html", "第二篇", SECOND)):
        content, found, _ = read_mentions(html, page=title, url=name)
        mentions += found
        sections[name] = read_sections(content)
        (out / name).write_text(page(content, depth=name.count("/")), encoding="utf-8")
        if name == "index.html":
            for scheme in ("default", "slate"):
                (out / f"{scheme}.html").write_text(page(content, scheme=scheme), encoding="utf-8")
    source = whole(files=FILES)
    write_panel(
        out,
        sources=[source],
        targets=TARGETS.values(),
        cache=None,
        mentions=mentions,
        sections=sections,
        events=read_events(out / "traces", docs=out, repositories=[TINY]),
        indexes={TINY.name: {index.path: index for index in build_index(python_files(source))}},
        extent="reachable",
    )
    return out
