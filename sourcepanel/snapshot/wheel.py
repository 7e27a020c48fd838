"""The backend of last resort: the package on PyPI, unpacked as plain files and never imported.

It holds part of the tree. What it holds is checked against its own RECORD when it is unpacked, and
against the ids noted then whenever a file is read; the lock has the last word in `PinnedSnapshot`.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from sourcepanel.config import Repository, Wheel
from sourcepanel.errors import PathNotFound, PinMismatch, SnapshotUnavailable
from sourcepanel.snapshot.base import check_blob, git_blob_id
from sourcepanel.snapshot.cache import Cache, blames_cache
from sourcepanel.snapshot.process import run

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64")
"""Asked for outright, whatever this machine is: the Python files are the same, and nothing is run."""
DOWNLOAD_TIMEOUT = 900.0
_LARGEST = 2**30
"""Bytes a wheel may unpack to."""
_COMPILED = (".so", ".pyd", ".dll", ".dylib")
"""Built from the tree, not part of it."""
_INDEX = "index.json"
_FILES = "files"


class WheelSnapshot:
    """The unpacked files of a wheel that are files of the commit."""

    complete = False

    def __init__(self, folder: Path, *, commit: str, wheel: Wheel) -> None:
        """`folder` as `_build` leaves it; raises `SnapshotUnavailable` for a damaged index."""
        self.folder = folder
        self.commit = commit
        self.origin = f"{wheel.package} {wheel.version} from PyPI"
        self._fix = f"remove {folder} and build again"
        try:
            index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
            self._blobs: Mapping[str, str] = dict(index["blobs"])
            self._sha256, self._file = str(index["sha256"]), str(index["wheel"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SnapshotUnavailable(f"{folder / _INDEX} is damaged", why=str(error), fix=self._fix) from None
        # Again here: the configuration may have learned its checksums after the wheel was unpacked.
        _check_wheel(self._file, self._sha256, wheel=wheel)
        self._paths = tuple(sorted(self._blobs))

    def list(self) -> tuple[str, ...]:
        """All paths, sorted."""
        return self._paths

    def read(self, path: str) -> bytes:
        """The bytes, checked against what the wheel held."""
        blob = self.blob_id(path)
        try:
            data = (self.folder / _FILES / path).read_bytes()
        except OSError as error:
            why = error.strerror or str(error)
            raise PinMismatch(path, expected=f"git blob {blob}", found=f"no file ({why})", fix=self._fix) from None
        return check_blob(path, data, blob=blob, fix=f"the unpacked wheel was changed: {self._fix}")

    def blob_id(self, path: str) -> str:
        """The id the file had in the wheel."""
        try:
            return self._blobs[path]
        except KeyError:
            raise PathNotFound(path, where=f"in {self.origin}") from None


def open_wheel(repository: Repository, *, cache: Cache) -> WheelSnapshot:
    """The pin's wheel, downloaded and unpacked into the cache when it is not there."""
    wheel = repository.wheel
    if wheel is None:
        fix = f"add [repositories.wheel] to sourcepanel.toml if one holds {repository.name}"
        raise SnapshotUnavailable("no wheel configured", fix=fix)
    entry = f"{repository.name}-{wheel.package}-{wheel.version}-py{wheel.python}"
    folder = cache.entry(entry, build=lambda place: _build(place, wheel=wheel, cache=cache))
    return WheelSnapshot(folder, commit=repository.commit, wheel=wheel)


def _build(place: Path, *, wheel: Wheel, cache: Cache) -> None:
    """Fill an empty folder: `files/` and the index of what they are."""
    download = place / "download"
    download.mkdir()
    path = _download(download, wheel=wheel, cache=cache)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    _check_wheel(path.name, sha256, wheel=wheel)
    blobs = unpack(path, place / _FILES)
    index = {"wheel": path.name, "sha256": sha256, "blobs": blobs}
    (place / _INDEX).write_text(json.dumps(index, indent=0), encoding="utf-8")
    path.unlink()
    download.rmdir()


def _download(folder: Path, *, wheel: Wheel, cache: Cache) -> Path:
    cache.notify(f"downloading {wheel.package} {wheel.version} from PyPI")
    wanted = f"{wheel.package}=={wheel.version}"
    command = [sys.executable, "-m", "pip", "download", wanted, "--dest", str(folder), "--no-deps", "--no-input"]
    command += ["--only-binary=:all:", "--python-version", wheel.python, "--implementation", "cp"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--timeout", "15", "--retries", "2"]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    done = run(command, timeout=DOWNLOAD_TIMEOUT)
    found = sorted(folder.glob("*.whl"))
    if done.code or len(found) != 1:
        if done.reason.endswith("No module named pip"):
            fix = f"install it: {sys.executable} -m ensurepip"
        else:
            fix = "check the network and pip's index (PIP_INDEX_URL), or set SOURCEPANEL_CHECKOUT to a local clone"
        failure = SnapshotUnavailable(f"pip cannot download {wanted}", why=done.reason, fix=fix)
        raise blames_cache(done.output, cache) or failure
    return found[0]


def _check_wheel(name: str, sha256: str, *, wheel: Wheel) -> None:
    if wheel.sha256 and sha256 not in wheel.sha256:
        fix = "if this is the wheel you mean, put its checksum into sourcepanel.toml; else find out who changed it"
        raise PinMismatch(name, expected=f"sha256 {' or '.join(wheel.sha256)}", found=sha256, fix=fix)


def unpack(wheel: Path, folder: Path) -> dict[str, str]:
    """Write the wheel's files of the tree below `folder`, each checked against RECORD; path → git blob id.

    Raises `PinMismatch` naming a damaged member, `SnapshotUnavailable` for what is no wheel or would
    leave the folder.
    """
    blobs: dict[str, str] = {}
    try:
        with zipfile.ZipFile(wheel) as archive:
            record = _record(archive)
            for member in _members(archive):
                data = _member(archive, member, record=record)
                target = folder / member.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                blobs[member.filename] = git_blob_id(data)
    except (zipfile.BadZipFile, EOFError) as error:
        fix = "the download is damaged: build again"
        raise SnapshotUnavailable(f"{wheel.name} cannot be unpacked", why=str(error), fix=fix) from None
    return blobs


def _members(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    """The members to unpack; all are looked at before the first is given out."""
    chosen: list[zipfile.ZipInfo] = []
    total = 0
    for member in archive.infolist():
        name = member.orig_filename
        # On POSIX zipfile hands out names as they stand, and on Windows already turned.
        if not _stays_inside(name) or stat.S_ISLNK(member.external_attr >> 16):
            what = f"{Path(archive.filename or 'wheel').name} holds {name!r}, which would leave its folder"
            raise SnapshotUnavailable(what, fix="do not use this wheel")
        total += member.file_size
        top = PurePosixPath(name).parts[0]
        if not member.is_dir() and not top.endswith((".dist-info", ".data")) and not name.endswith(_COMPILED):
            chosen.append(member)
    if total > _LARGEST:
        raise SnapshotUnavailable(f"{archive.filename} unpacks to {total} bytes", fix="do not use this wheel")
    yield from chosen


def _stays_inside(name: str) -> bool:
    parts = name.removesuffix("/").split("/")
    return not any(c in name for c in "\\:\0") and all(part not in ("", ".", "..") for part in parts)


def _record(archive: zipfile.ZipFile) -> Mapping[str, str]:
    """Member → checksum as RECORD spells it (`sha256=…`); wheels must have one."""
    names = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD") and name.count("/") == 1]
    if len(names) != 1:
        raise zipfile.BadZipFile("it has no RECORD")
    rows = csv.reader(io.StringIO(archive.read(names[0]).decode("utf-8", "replace")))
    return {row[0]: row[1] for row in rows if len(row) >= 2}


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, *, record: Mapping[str, str]) -> bytes:
    """A member's bytes, checked."""
    name = member.filename
    expected = record.get(name, "")
    fix = "the wheel is damaged: build again, and if it stays so do not use it"
    try:
        data = archive.read(member)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise PinMismatch(name, expected=expected or "a readable member", found=str(error), fix=fix) from None
    algorithm, _, digest = expected.partition("=")
    if algorithm not in ("sha256", "sha384", "sha512"):
        raise PinMismatch(name, expected="a checksum in RECORD", found=expected or "none", fix=fix)
    found = base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()
    if found != digest:
        raise PinMismatch(name, expected=expected, found=f"{algorithm}={found}", fix=fix)
    return data
