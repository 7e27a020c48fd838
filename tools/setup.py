"""Set up what a target of the Makefile needs: `python tools/setup.py LAYER...`.

Standard library only, so that any Python >= 3.11 can run it before anything is installed. A layer that is
up to date costs one file read: its stamp in `.venv/` holds a digest of `pyproject.toml`, `constraints.txt`,
this interpreter and this folder, so an edit to any of them, or a moved clone, brings the environment up to date.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = {
    "site": ("site",),
    "lint": ("site", "lint"),
    "lab": ("lab",),
    "megatron": ("lab", "megatron"),
    "test": ("site", "test", "lab", "megatron"),
    "bench": ("site", "bench"),
}
"""Layer -> extras of pyproject.toml; all layers share one environment."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PLAYWRIGHT_PATH = """
from playwright.sync_api import sync_playwright
with sync_playwright() as run: print(run.chromium.executable_path)
"""
OFFLINE = re.compile(r"NewConnectionError|NameResolutionError|name resolution|timed? ?out|unreachable|ProxyError", re.I)


class SetupError(Exception):
    """What is missing, and what to do about it."""


@dataclass(frozen=True)
class Environment:
    """The project's virtual environment."""

    root: Path

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def unfinished(self) -> Path:
        """Stands while pip runs: found later, it tells that pip was killed and the environment cannot be trusted."""
        return self.folder / ".setup-unfinished"

    def stamp(self, layer: str) -> Path:
        """The file that says a layer is installed."""
        return self.folder / f".setup-{layer}"

    def key(self, layer: str) -> str:
        """Digest of everything that, changed, makes the layer stale."""
        digest = hashlib.sha256()
        for part in (self.root / "pyproject.toml", self.root / "constraints.txt"):
            digest.update(part.read_bytes() if part.exists() else b"")
        digest.update(repr((self._version(), str(self.root), LAYERS[layer])).encode())
        return digest.hexdigest()

    def _version(self) -> str:
        """Of the environment, not of the Python that runs this script: read from the file venv wrote."""
        with contextlib.suppress(OSError):
            return (self.folder / "pyvenv.cfg").read_text(encoding="utf-8")
        return ""

    def ready(self, layer: str) -> bool:
        """Whether nothing needs to be done."""
        stamp = self.stamp(layer)
        current = stamp.exists() and stamp.read_text(encoding="utf-8") == self.key(layer)
        return current and self.python.exists() and not self.unfinished.exists()

    def broken(self) -> str:
        """Why the folder must be made anew; empty when it is usable."""
        if not self.folder.exists():
            return ""
        if self.unfinished.exists():
            return "an earlier installation was interrupted"
        probe = "import pip, sys; sys.exit(0 if sys.version_info >= (3, 11) else 'older than 3.11')"
        try:
            run = subprocess.run([self.python, "-c", probe], capture_output=True, text=True, check=False)
        except OSError:
            return "it has no working python"
        return (run.stderr.strip().splitlines() or ["its python does not start"])[-1] if run.returncode else ""


def say(text: str) -> None:
    """One line of progress, in order with the output of the programs we start."""
    print(f"setup: {text}", flush=True)


def require_tools() -> None:
    """Fail early, and by name, on what only the machine's owner can install."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this is the check itself
        found = platform.python_version()
        raise SetupError(f"Python {found} is too old: 3.11 or newer is needed (make PYTHON=/path/to/python3.12)")
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"{sys.executable} cannot make virtual environments (no ensurepip). "
            f"On Debian and Ubuntu: sudo apt-get install python{minor}-venv; or name another: make PYTHON=…"
        ) from None
    if not shutil.which("git"):
        raise SetupError(
            "git is not installed. Debian, Ubuntu: sudo apt-get install git; macOS: xcode-select --install"
        )


def install(env: Environment, layer: str) -> None:
    """Bring one layer up to date: the environment itself, then the extras, at the pinned versions."""
    reason = env.broken()
    if reason:
        if not (env.folder / "pyvenv.cfg").exists() and not env.unfinished.exists() and any(env.folder.iterdir()):
            raise SetupError(f"{env.folder} is not a virtual environment ({reason}); move it away")
        say(f"{env.folder.name} is made anew: {reason}")
        shutil.rmtree(env.folder)
    if not env.folder.exists():
        say(f"making {env.folder.name} with Python {platform.python_version()}")
        env.folder.mkdir()
        env.unfinished.touch()
        venv.create(env.folder, with_pip=True, symlinks=os.name != "nt")
    extras = ",".join(LAYERS[layer])
    say(f"installing sourcepanel[{extras}] at the versions of constraints.txt (the first time takes minutes)")
    env.unfinished.touch()
    pip(env, "install", "--constraint", "constraints.txt", "--editable", f".[{extras}]", what=f"the layer {layer}")
    env.stamp(layer).write_text(env.key(layer), encoding="utf-8")


def pip(env: Environment, *arguments: str, what: str) -> None:
    """Run pip with its progress in sight; its messages are read along, to tell no network from other troubles."""
    command = [str(env.python), "-m", "pip", "--disable-pip-version-check", *arguments]
    errors = []
    with subprocess.Popen(command, cwd=env.root, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            sys.stderr.write(line)
            errors.append(line)
    code = process.returncode
    # pip has ended by itself: what it left is whole. Only a killed one leaves the mark.
    env.unfinished.unlink(missing_ok=True)
    if code and any(OFFLINE.search(line) for line in errors):
        raise SetupError(
            f"{what} needs the network, and the package index did not answer. Behind a proxy set HTTPS_PROXY; "
            "with a mirror set PIP_INDEX_URL; then run the same command again: it goes on where it stopped"
        )
    if code:
        raise SetupError(f"pip could not install {what} (see above). If it stays so, start anew: make distclean")


def find_browser(env: Environment) -> str | None:
    """A Chromium for the browser tests: one that `CHROMIUM` names, the system's, or the one Playwright fetched."""
    named = os.environ.get("CHROMIUM")
    if named:
        if not shutil.which(named):
            raise SetupError(f"CHROMIUM={named}: no such program")
        return named
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    run = subprocess.run([env.python, "-c", PLAYWRIGHT_PATH], capture_output=True, text=True, check=False)
    path = run.stdout.strip()
    return path if path and Path(path).exists() else None


def install_browser(env: Environment) -> None:
    """Debian's package where we may install it (a download from elsewhere may be blocked), else Playwright's build."""
    debian = Path("/etc/debian_version").exists() and "ubuntu" not in platform.freedesktop_os_release().get("ID", "")
    if debian and shutil.which("apt-get") and os.geteuid() == 0:
        say("installing Chromium with apt-get for the browser tests")
        apt = ["apt-get", "-o", "Dpkg::Use-Pty=0"]
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            if subprocess.run([*apt, *arguments], env=quiet, check=False).returncode:
                break
        else:
            return
    say("fetching Playwright's Chromium for the browser tests")
    fetched = subprocess.run([env.python, "-m", "playwright", "install", "chromium"], check=False)
    if fetched.returncode:
        raise SetupError(
            "no Chromium for the browser tests. Install one (Debian: sudo apt-get install chromium), or name yours: "
            "make test CHROMIUM=/path/to/chrome; the other tests run with: make test ARGS='-m \"not browser\"'"
        )


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Keep two set-ups of one folder apart; where the system has no file locks, do without."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    with (cache / "setup.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another set-up is running here; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main(arguments: list[str], *, root: Path = ROOT) -> int:
    """Set up the named layers; `browser` stands for Chromium."""
    unknown = [name for name in arguments if name not in LAYERS and name != "browser"]
    if unknown or not arguments:
        print(f"usage: python tools/setup.py {{{'|'.join(LAYERS)}|browser}}...", file=sys.stderr)
        return 2
    env = Environment(root)
    try:
        require_tools()
        for layer in (name for name in arguments if name != "browser" and not env.ready(name)):
            with alone(root):
                if not env.ready(layer):
                    install(env, layer)
        if "browser" in arguments and not find_browser(env):
            install_browser(env)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; the next run starts this step anew", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
