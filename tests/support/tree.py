"""The text of the tiny repository, version by version. Every line of it is ours.

Each file is here for a reason: what it guards stands beside it. Bytes, so that line ends survive.
"""

from __future__ import annotations

TRAINING = b'''"""A training loop in small."""

import functools

LEARNING_RATE, MOMENTUM = 0.1, 0.9


def timed(function):
    """Count calls."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


@timed
def pretrain(model, batches, *, steps=3):
    """Run the whole training."""
    total = 0.0
    for step in range(steps):
        total += train_step(model, batches[step])
    return total


@timed
@functools.lru_cache(
    maxsize=None,
)
def train_step(model, batch):
    """One step: forward, backward, update."""

    def loss_func(output):
        return output - batch

    loss = loss_func(model.forward(batch))
    model.weight -= LEARNING_RATE * loss
    return loss


class Trainer:
    """Holds a model."""

    kind: str = "plain"

    def __init__(self, model):
        self.model = model

    @property
    def weight(self):
        """The weight."""
        return self.model.weight

    @weight.setter
    def weight(self, value):
        self.model.weight = value

    class Options:
        """A class inside a class."""

        def merge(self, other):
            return {**vars(self), **vars(other)}


if LEARNING_RATE > 0:

    def schedule(step):
        return LEARNING_RATE / (1 + step)

else:

    def schedule(step):
        return 0.0
'''
"""Decorators (one over several lines), nested functions, a property defined twice, a class inside a
class, a name defined in both arms of an `if`."""

PARALLEL = b'''"""Column and row parallel layers in small."""


class Layer:
    """Base of both."""

    async def forward(self, x):
        return x


class ColumnParallel(Layer):
    """Splits the columns."""

    def forward(self, x):
        return [part * 2 for part in x]


class RowParallel(Layer):
    """Splits the rows."""

    def forward(self, x):
        """Reduce the parts."""
        return sum(x)
'''

ESCAPE = b'''"""Text that must never reach a page unescaped: </script><script>globalThis.pwned = 1</script>."""

BAD = "<img src=x onerror=globalThis.pwned=2>"
WORSE = "<!-- <script> ]]> &amp; \\u2028 ` ${globalThis.pwned=3} -->"


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")
'''

V2: dict[str, bytes] = {
    "LICENSE": b"The tiny licence.\nDo what you like.\n",
    "README.md": "# tiny\n\nA repository for tests. 一个测试用的仓库。\n".encode(),
    "docs/a b#c.md": b"A path with a space and a hash.\n",
    "docs/说明.md": b"A path outside ASCII.\n",
    "examples/run_loop.py": b'from tiny.training import pretrain\n\nif __name__ == "__main__":\n    print(pretrain)\n',
    "pretrain.py": b'"""Root script: not in the wheel."""\n\nfrom tiny.training import pretrain\n\n\ndef main():\n'
    b"    return pretrain(None, [])\n",
    "tiny/__init__.py": b'"""Tiny."""\n',
    "tiny/broken.py": b"def half(:\n    pass\n",
    "tiny/core/__init__.py": b"",
    "tiny/core/parallel.py": PARALLEL,
    "tiny/data/bom.py": b'\xef\xbb\xbf"""Starts with a byte order mark."""\nX = 1\n',
    "tiny/data/crlf.py": b'"""CRLF."""\r\n\r\n\r\ndef read():\r\n    return 1\r\n',
    "tiny/data/form_feed.py": b"A = 1\n\x0c\ndef after():\n    return A  # line 4\n",
    "tiny/data/latin1.py": b"# caf\xe9: not UTF-8\nY = 2\n",
    "tiny/data/no_newline.py": b"def last():\n    return 3",
    "tiny/data/tabs.py": b"def tabs():\n\tif True:\n\t\treturn 4\n",
    "tiny/data/weights.bin": bytes(range(256)) * 4,
    "tiny/training.py": TRAINING,
    "tiny/web/escape.py": ESCAPE,
    "tools/run.sh": b"#!/bin/sh\nexec python pretrain.py\n",
}
"""The pin."""

EXECUTABLE = "tools/run.sh"
SYMLINKS = {"tiny/outside": "/etc/passwd", "tiny/loop": "..", "docs/inside.md": "../README.md"}
"""Neither listed nor read: the first leads out of the tree, the second into a loop."""
SUBMODULE = "vendor/sub"

V1: dict[str, bytes] = {
    **{path: data for path, data in V2.items() if path != "tiny/web/escape.py"},
    "tiny/training.py": TRAINING.replace(b"train_step", b"one_step").replace(b"MOMENTUM", b"DECAY"),
}
"""Before the pin: other names, one file fewer."""

V3: dict[str, bytes] = {
    **{path: data for path, data in V2.items() if path != "tiny/core/parallel.py"},
    "tiny/training.py": TRAINING.replace(b"import functools\n", b"import functools\nimport math\n\nTAU = math.tau\n"),
    "tiny/core/layers.py": PARALLEL,
}
"""After the pin, and what is checked out: lines moved, a file renamed."""
