"""The pinned Megatron-LM as a folder that Python can import from: the one thing the lab takes from sourcepanel."""

from __future__ import annotations

import sys
from pathlib import Path

from sourcepanel.config import load_config
from sourcepanel.snapshot import open_snapshot
from sourcepanel.snapshot.cache import Cache

ROOT = Path(__file__).resolve().parents[2]


def megatron_tree(name: str = "Megatron-LM") -> Path:
    """A folder with the tree at the pin, made in the cache on first use; raises `SourcePanelError` with the remedy.

    It holds everything of the commit when the snapshot is a clone, and `megatron/` alone when it is the wheel.
    """
    config = load_config(ROOT / "sourcepanel.toml")
    repository = next(r for r in config.repositories if r.name == name)
    snapshot = open_snapshot(repository, root=config.root, cache=config.cache_dir, blobs={}, notify=_tell)

    def unpack(folder: Path) -> None:
        for path in snapshot.list():
            if path.startswith(("tests/", "docs/", "images/", ".")):
                continue
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(snapshot.read(path))

    kind = "full" if snapshot.complete else "wheel"
    return Cache(config.cache_dir, notify=_tell).entry(f"{name}-tree-{repository.commit[:12]}-{kind}", build=unpack)


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
