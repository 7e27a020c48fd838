"""The small laboratory under the chapter scripts: start ranks, trace what they send, prove the numbers, draw."""

import importlib.util
import sys

_NEEDED = ("torch", "numpy", "rich", "pydantic")
_missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
if _missing:
    sys.stderr.write(
        f"缺少 {', '.join(_missing)}：这个脚本需要它们。安装：python -m pip install torch==2.13.0 numpy rich pydantic"
        f"（当前解释器：Python {sys.version.split()[0]}）\n"
    )
    raise SystemExit(2)
