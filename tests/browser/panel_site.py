"""A small site for the panel's tests: hand-made pages after the `<a>` contract, and sources of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from sourcepanel.panel import write_panel
from sourcepanel.panel_assets import SCRIPTS, STYLES
from sourcepanel.reference import Target
from sourcepanel.snapshot.base import git_blob_id
from tests.support.memory import COMMIT, TINY, whole

TRAINING = "".join(
    [
        '"""Trains."""\n\n\nclass Trainer:\n    """Holds\n    a model."""\n\n    def step(self, batch):\n',
        *(f"        batch = update_{i}(batch, weight={i})  # line {i + 9}\n" for i in range(700)),
        "        return batch\n",
    ]
)
EVIL = """<img src=x onerror="window.hacked = 1">
text = "</script><script>window.hacked = 2</script><!-- <script>"
&lt;b&gt; & <b>bold</b> \u2028 \u2029
"""
HUGE = "".join(f"row({i})  # of many\n" for i in range(1, 100_001))
DEEP = "def f():\n" + "".join(f"{' ' * 90}call_{i}(argument, another={i}, last='{'x' * 60}')\n" for i in range(50))

FILES: Mapping[str, bytes] = {
    "pkg/training.py": TRAINING.encode(),
    "pkg/other.py": b"def other():\n    return 1\n",
    "pkg/evil.py": EVIL.encode(),
    "pkg/huge.py": HUGE.encode(),
    "pkg/deep.py": DEEP.encode(),
    "pkg/kernel.cu": b"__global__ void scale(float* x) {\n\tx[0] *= 2;\n}\n",
    "pkg/gone.py": b"x = 1\n",
    "pkg/data.bin": b"\0\1\2",
    "pkg/empty.py": b"",
    "pkg/latin.py": "# caf\u00e9\n".encode("latin-1"),
    "pkg/odd.py": b"a = 1\r\n\tb = 2\r\n# form\x0cfeed\r\nlast = 3",
    ".github/work flow.yml": b"on: push\n",
    "pkg/unlinked.py": b"pass\n",
    "LICENSE": b"Tiny licence\n",
}


def target(path: str, start: int | None = None, end: int | None = None, **facts: object) -> Target:
    """A target in the tiny repository."""
    data = FILES.get(path, b"")
    known: dict[str, object] = {
        "repository": TINY.name,
        "path": path,
        "kind": "interior" if start else "file",
        "start": start,
        "end": end or start,
        "symbol": None,
        "blob": git_blob_id(data) if data else "",
        "has_text": True,
        "href": f"{TINY.url}/blob/{COMMIT}/{path}" + (f"#L{start}" if start else ""),
    }
    return Target(**{**known, **facts})  # type: ignore[arg-type]


TARGETS = {
    "step": target("pkg/training.py", 8, 709, symbol="Trainer.step", kind="definition"),
    "range": target("pkg/training.py", 450, 453, symbol="Trainer.step"),
    "line": target("pkg/training.py", 62, symbol="Trainer.step"),
    "other": target("pkg/other.py", 1, 2, symbol="other", kind="definition"),
    "evil": target("pkg/evil.py", 1, 2),
    "huge": target("pkg/huge.py", 75_000, 75_004),
    "deep": target("pkg/deep.py", 30, 31),
    "kernel": target("pkg/kernel.cu", 2),
    "gone": target("pkg/gone.py", 1),
    "absent": target("pretrain.py", 10, 20, symbol="forward_step", has_text=False),
    "binary": target("pkg/data.bin"),
    "empty": target("pkg/empty.py"),
    "latin": target("pkg/latin.py", 1),
    "odd": target("pkg/odd.py", 4),
    "hidden": target(".github/work flow.yml", 1),
    "folder": target("pkg", kind="folder", blob=""),
}


def link(name: str) -> str:
    """The link of a target, as the Markdown extension writes it."""
    to = TARGETS[name]
    return (
        f'<a class="sp-link" id="to-{name}" href="{escape(to.href)}" data-src="{escape(to.key)}" '
        f'data-symbol="{to.symbol or ""}" data-kind="{to.kind}" title="已校验 @ v2.0"><code>{name}</code></a>'
    )


def page(*, depth: int = 0, scheme: str = "") -> str:
    """A page with a link to every target, and enough text to scroll."""
    up = "../" * depth
    styles = "".join(f'<link rel="stylesheet" href="{up}{name}">' for name in STYLES)
    scripts = "".join(f'<script src="{up}{name}"></script>' for name in SCRIPTS)
    filler = "<p>这一段只把页面撑长：先取一个 microbatch，前向，反向，再同步梯度。</p>" * 12
    text = "".join(f"<p>这一步由 {link(name)} 完成。</p>{filler}" for name in TARGETS)
    attribute = f' data-md-color-scheme="{scheme}"' if scheme else ""
    csp = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self'"
    return f"""<!doctype html>
<html lang="zh">
<head>
<meta charset="utf-8">
<title>样页</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{csp}">
{styles}
</head>
<body{attribute}>
<main>
<h1 id="top">样页</h1>
<p><a href="#end" id="inner">跳到末尾</a> <label>找 <input id="field"></label></p>
{text}
<p id="end">完</p>
</main>
{scripts}
</body>
</html>
"""


def build(out: Path) -> Path:
    """Build the site into a folder."""
    (out / "notes").mkdir(parents=True)
    for name, html in {
        "index.html": page(),
        "notes/deep.html": page(depth=1),
        "light.html": page(scheme="default"),
        "dark.html": page(scheme="slate"),
    }.items():
        (out / name).write_text(html, encoding="utf-8")
    write_panel(out, sources=[whole(files=FILES)], targets=TARGETS.values(), cache=None)
    (out / "sourcepanel/src/tiny/pkg/gone.py.js").unlink()
    return out
