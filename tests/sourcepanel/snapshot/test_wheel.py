"""The wheel: downloaded by pip, checked, unpacked, never imported."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sourcepanel.config import Repository, Wheel
from sourcepanel.errors import PathNotFound, PinMismatch, SnapshotUnavailable
from sourcepanel.snapshot import wheel as wheel_module
from sourcepanel.snapshot.cache import Cache
from sourcepanel.snapshot.wheel import WheelSnapshot, open_wheel, unpack
from tests.sourcepanel.snapshot.test_git import BAD_PATHS
from tests.support.tiny import TinyRepo, build_wheel, wheel_files

NoIndex = Callable[[Path], None]
TRAINING = "tiny/training.py"


@pytest.fixture
def open_it(repository: Repository, cache: Path, told: list[str]) -> Callable[..., WheelSnapshot]:
    def open_it(**wheel: object) -> WheelSnapshot:
        assert repository.wheel
        changed = repository.model_copy(update={"wheel": repository.wheel.model_copy(update=wheel)})
        return open_wheel(changed, cache=Cache(cache, notify=told.append))

    return open_it


def test_gives_the_files_of_the_tree_that_it_holds(open_it, no_index: NoIndex, tiny_wheel: Path, tiny_repo: TinyRepo):
    no_index(tiny_wheel.parent)
    snapshot = open_it()
    assert {path: snapshot.read(path) for path in snapshot.list()} == wheel_files()
    assert {path: snapshot.blob_id(path) for path in snapshot.list()}.items() <= tiny_repo.blobs.items()
    assert list(snapshot.list()) == sorted(snapshot.list())
    assert (snapshot.commit, snapshot.origin) == (tiny_repo.commit, "tiny-engine 2.0 from PyPI")
    assert snapshot.complete is False
    assert "tiny" not in sys.modules


def test_the_second_build_needs_no_pip(open_it, no_index: NoIndex, tiny_wheel: Path, monkeypatch: pytest.MonkeyPatch):
    no_index(tiny_wheel.parent)
    first = open_it()
    monkeypatch.setattr(wheel_module, "run", lambda *_, **__: pytest.fail("ran pip"))
    assert open_it().list() == first.list()


@pytest.mark.parametrize(
    "tag",
    [
        "py3-none-any",
        "cp312-cp312-manylinux_2_28_x86_64",
        "cp312-cp312-manylinux_2_28_aarch64",
        "cp312-cp312-manylinux_2_24_x86_64.manylinux_2_28_x86_64",
    ],
)
def test_any_machine_gets_the_wheel_whatever_it_was_built_for(open_it, no_index: NoIndex, tiny_wheel: Path, tag: str):
    tiny_wheel.rename(tiny_wheel.with_name(f"tiny_engine-2.0-{tag}.whl"))
    no_index(tiny_wheel.parent)
    assert TRAINING in open_it().list()


@pytest.mark.parametrize(
    "name",
    [
        "tiny_engine-1.0-py3-none-any.whl",
        "tiny_engine-2.0-cp39-cp39-manylinux_2_28_x86_64.whl",
        "tiny_engine-2.0.tar.gz",
    ],
)
def test_a_missing_wheel_says_what_to_do(open_it, no_index: NoIndex, tiny_wheel: Path, cache: Path, name: str):
    tiny_wheel.rename(tiny_wheel.with_name(name))
    no_index(tiny_wheel.parent)
    with pytest.raises(SnapshotUnavailable) as error:
        open_it()
    for part in ("pip cannot download tiny-engine==2.0 (No matching distribution", "SOURCEPANEL_CHECKOUT"):
        assert part in str(error.value)
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_no_pip_says_how_to_get_it(open_it, monkeypatch: pytest.MonkeyPatch):
    done = wheel_module.run(
        [sys.executable, "-c", "raise SystemExit('/usr/bin/python3: No module named pip')"], timeout=60
    )
    monkeypatch.setattr(wheel_module, "run", lambda *_, **__: done)
    with pytest.raises(SnapshotUnavailable, match="-m ensurepip"):
        open_it()


def test_a_full_disk_during_the_download(open_it, monkeypatch: pytest.MonkeyPatch):
    script = "raise SystemExit('ERROR: Could not install packages: [Errno 28] No space left on device')"
    done = wheel_module.run([sys.executable, "-c", script], timeout=60)
    monkeypatch.setattr(wheel_module, "run", lambda *_, **__: done)
    with pytest.raises(SnapshotUnavailable, match=r"no space left for the cache .*SOURCEPANEL_CACHE"):
        open_it()


def test_a_wrong_checksum_is_refused_naming_both(open_it, no_index: NoIndex, tiny_wheel: Path, cache: Path):
    no_index(tiny_wheel.parent)
    right = hashlib.sha256(tiny_wheel.read_bytes()).hexdigest()
    with pytest.raises(PinMismatch) as error:
        open_it(sha256=("0" * 64, "1" * 64))
    for part in (tiny_wheel.name, "0" * 64, "1" * 64, right, "sourcepanel.toml"):
        assert part in str(error.value)
    assert [path.suffix for path in cache.iterdir()] == [".lock"], "nothing of it stays"
    assert open_it(sha256=("0" * 64, right)).list()
    with pytest.raises(PinMismatch):
        open_it(sha256=("0" * 64,))


def changed(data: bytes) -> bytes:
    return data.replace(b"0.9", b"0.8")


def test_a_changed_byte_in_the_wheel_is_refused_by_name(
    open_it, no_index: NoIndex, tmp_path: Path, cache: Path, tiny_repo: TinyRepo
):
    """RECORD still tells of the right bytes; the archive itself is in order."""
    wheel = build_wheel(tmp_path / "wheels")
    with zipfile.ZipFile(wheel) as archive:
        record = archive.read("tiny_engine-2.0.dist-info/RECORD")
    build_wheel(tmp_path / "wheels", {**wheel_files(), TRAINING: changed(wheel_files()[TRAINING])}, record=record)
    no_index(wheel.parent)
    with pytest.raises(PinMismatch) as error:
        open_it()
    assert error.value.path == TRAINING
    assert error.value.expected != error.value.found and error.value.expected.startswith("sha256=")
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_a_flipped_byte_in_the_archive_is_refused_by_name(tiny_wheel: Path, tmp_path: Path):
    data = tiny_wheel.read_bytes()
    tiny_wheel.write_bytes(changed(data))
    assert len(changed(data)) == len(data) and changed(data) != data
    with pytest.raises(PinMismatch, match=TRAINING):
        unpack(tiny_wheel, tmp_path / "out")


@pytest.mark.parametrize("cut", [0, 10, 1000, -1])
def test_a_torn_wheel_is_refused(tiny_wheel: Path, tmp_path: Path, cut: int):
    tiny_wheel.write_bytes(tiny_wheel.read_bytes()[:cut])
    with pytest.raises(SnapshotUnavailable, match=r"tiny_engine-2\.0.*cannot be unpacked.*build again"):
        unpack(tiny_wheel, tmp_path / "out")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("", "found none"),
        (f"{TRAINING},,\n", "found none"),
        (f"{TRAINING},md5=AAAA,1\n", "found md5=AAAA"),
        (f"{TRAINING},sha256=AAAA,1\n", "expected sha256=AAAA"),
    ],
)
def test_a_file_that_record_does_not_vouch_for(tmp_path: Path, row: str, what: str):
    wheel = build_wheel(tmp_path, {TRAINING: b"X = 1\n"}, record=row.encode() or b"\n")
    with pytest.raises(PinMismatch, match=what) as error:
        unpack(wheel, tmp_path / "out")
    assert error.value.path == TRAINING


def test_a_wheel_without_record(tmp_path: Path):
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(TRAINING, "X = 1\n")
    with pytest.raises(SnapshotUnavailable, match="it has no RECORD"):
        unpack(wheel, tmp_path / "out")


@pytest.mark.parametrize(
    "name",
    [
        "../evil.py",
        "tiny/../../evil.py",
        "/tmp/evil.py",
        "..\\evil.py",
        "C:/evil.py",
        "tiny//evil.py",
        "./evil.py",
        "..",
    ],
)
def test_a_member_that_would_leave_the_folder_is_refused_before_anything_is_written(tmp_path: Path, name: str):
    wheel = build_wheel(tmp_path / "wheels", {**wheel_files(), name: b"evil\n"})
    with pytest.raises(SnapshotUnavailable, match="would leave its folder"):
        unpack(wheel, tmp_path / "deep/er/out")
    assert not (tmp_path / "deep").exists() and not Path("/tmp/evil.py").exists()


def test_a_member_with_a_nul_in_its_name(tmp_path: Path):
    wheel = build_wheel(tmp_path / "wheels", {"tiny/evilX.py": b"evil\n"}, record=b"\n")
    wheel.write_bytes(wheel.read_bytes().replace(b"tiny/evilX.py", b"tiny/evil\0.py"))
    with pytest.raises(SnapshotUnavailable, match="would leave its folder"):
        unpack(wheel, tmp_path / "out")


def test_a_symlink_in_the_wheel_is_refused(tiny_wheel: Path, tmp_path: Path):
    link = zipfile.ZipInfo("tiny/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tiny_wheel, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(SnapshotUnavailable, match="'tiny/link'"):
        unpack(tiny_wheel, tmp_path / "out")


def test_a_bomb_is_refused(tiny_wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wheel_module, "_LARGEST", 1000)
    with pytest.raises(SnapshotUnavailable, match="unpacks to"):
        unpack(tiny_wheel, tmp_path / "out")


def test_what_was_built_from_the_tree_is_not_part_of_it(tmp_path: Path):
    extra = {"tiny/fast.cpython-312-x86_64-linux-gnu.so": b"\x7fELF", "tiny_engine-2.0.data/scripts/run": b"x"}
    wheel = build_wheel(tmp_path, {**wheel_files(), **extra})
    assert unpack(wheel, tmp_path / "out").keys() == wheel_files().keys()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache as one build leaves it: pip is slow, and most tests only change what it got."""
    folder = tmp_path_factory.mktemp("built")
    wheel = Wheel(package="tiny-engine", version="2.0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(build_wheel(folder / "wheels").parent))
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        store = Cache(folder / "cache", notify=print)
        store.entry(
            "tiny-tiny-engine-2.0-py3.12", build=lambda place: wheel_module._build(place, wheel=wheel, cache=store)
        )
    return folder / "cache"


@pytest.fixture
def opened(open_it, built: Path, cache: Path) -> WheelSnapshot:
    shutil.copytree(built, cache)
    return open_it()


def edit(path: Path) -> None:
    path.write_bytes(changed(path.read_bytes()))


def link_out(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def fold(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [edit, link_out, fold, Path.unlink])
def test_a_file_changed_in_the_cache_is_refused_by_name(open_it, opened: WheelSnapshot, damage):
    damage(opened.folder / "files" / TRAINING)
    for snapshot in (opened, open_it()):
        with pytest.raises(PinMismatch, match=rf"{TRAINING}.*remove .* and build again"):
            snapshot.read(TRAINING)
        assert snapshot.read("tiny/__init__.py") == wheel_files()["tiny/__init__.py"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"blobs": 3, "sha256": "", "wheel": ""}', None])
def test_a_damaged_index_says_what_to_remove(open_it, opened: WheelSnapshot, text: str | None):
    index = opened.folder / "index.json"
    if text is None:
        index.unlink()
    else:
        index.write_text(text)
    with pytest.raises(SnapshotUnavailable, match=r"index\.json is damaged.*remove .* and build again"):
        open_it()


@pytest.mark.parametrize("path", [*BAD_PATHS, "pretrain.py", "index.json", "../index.json"])
def test_a_path_that_it_does_not_hold_is_not_found(opened: WheelSnapshot, path: str):
    with pytest.raises(PathNotFound, match=r"in tiny-engine 2\.0 from PyPI"):
        opened.read(path)
    with pytest.raises(PathNotFound):
        opened.blob_id(path)


def test_an_index_cannot_lead_out_of_the_cache_unseen(open_it, opened: WheelSnapshot, tmp_path: Path):
    """Whoever may write the index still needs the id of the file it points to, and then the lock refuses it."""
    (tmp_path / "secret").write_text("secret")
    index = opened.folder / "index.json"
    data = json.loads(index.read_text())
    data["blobs"]["../../../secret"] = "0" * 40
    index.write_text(json.dumps(data))
    with pytest.raises(PinMismatch):
        open_it().read("../../../secret")


class Index:
    """A package index on this machine that stops in the middle of a wheel until it is told to go on."""

    def __init__(self, wheel: Path) -> None:
        self.data = wheel.read_bytes()
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self.downloads = 0
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = f'<a href="/{wheel.name}">{wheel.name}</a>'.encode()
                body = index.data if self.path.endswith(".whl") else page
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if body is page:
                    self.wfile.write(body)
                    return
                index.downloads += 1
                self.wfile.write(body[:1000])
                self.wfile.flush()
                index.asked.set()
                index.go_on.wait()
                try:
                    self.wfile.write(body[1000:])
                except OSError:
                    return

            def log_message(self, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"


@pytest.fixture
def index(tiny_wheel: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    index = Index(tiny_wheel)
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    thread = threading.Thread(target=index.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield index
    index.go_on.set()
    index.server.shutdown()
    index.server.server_close()
    thread.join()


OTHER = """
import sys
from pathlib import Path
from sourcepanel.config import Repository
from sourcepanel.snapshot.cache import Cache
from sourcepanel.snapshot.wheel import open_wheel

def tell(line):
    print(line, flush=True)

pin = Repository.model_validate_json(sys.argv[2])
snapshot = open_wheel(pin, cache=Cache(Path(sys.argv[1]), notify=tell))
tell(sum(len(snapshot.read(path)) for path in snapshot.list()))
"""


def other(repository: Repository, cache: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", OTHER, str(cache), repository.model_dump_json()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_killed_in_the_middle_of_the_download(
    repository: Repository, cache: Path, told: list[str], open_it, index: Index
):
    with other(repository, cache) as killed:
        index.asked.wait()
        killed.send_signal(signal.SIGKILL)
    assert [path.name for path in cache.glob(".*")], "it was under way"
    assert [path.suffix for path in cache.glob("tiny*")] == [".lock"], "nothing is in place"
    index.go_on.set()
    snapshot = open_it()
    assert {path: snapshot.read(path) for path in snapshot.list()} == wheel_files()
    assert not list(cache.glob(".*"))
    assert told == ["downloading tiny-engine 2.0 from PyPI"]


def test_two_builds_at_once_download_once(repository: Repository, cache: Path, index: Index):
    with other(repository, cache) as first:
        index.asked.wait()
        with other(repository, cache) as second:
            assert first.stdout and second.stdout
            assert second.stdout.readline().startswith("another build is fetching tiny-tiny-engine-2.0")
            index.go_on.set()
            assert first.stdout.read().splitlines()[-1] == second.stdout.read().splitlines()[-1]
    assert (first.returncode, second.returncode, index.downloads) == (0, 0, 1)
