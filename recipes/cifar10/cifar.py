"""CIFAR-10 as this recipe keeps it: what it shows, and one packed file for each of the data set's six sheets.

A file holds WebP strips without loss, 500 pictures below one another, end to end in ``data``; strip i is
data[off[i]:off[i+1]]. Six files, because each can then be carried by itself; 16 MB where the PNG has 23.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from lace.attributes.schema import Discrete, Schema
from lace.errors import DataError

__all__ = [
    "CLASSES",
    "FINGERPRINTS",
    "SCHEMA",
    "SIZE",
    "STRIP",
    "TEST",
    "TRAIN",
    "WORD",
    "WORK",
    "fingerprint",
    "present",
    "read",
    "read_sheet",
    "scaled",
]

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
WORD = Discrete("class", CLASSES, "what is to be seen")
SCHEMA = Schema([WORD])
SIZE, STRIP = 32, 500
# Where the steps leave what the next ones need.
WORK = Path(__file__).parent / "work"
TRAIN, TEST = tuple(f"data_batch_{k}" for k in range(1, 6)), ("test_batch",)
# SHA-256 of a sheet's pixels, row by row and picture by picture, and then of its labels, a byte each.
FINGERPRINTS = {
    "data_batch_1": "8350d89ba6404c270d263d84bf037e74b0158eecac79f27405efcf23445a6997",
    "data_batch_2": "28d2d506ff2e052a3c902ac74931514d4c22d54b3f23622088bee441ab096cf0",
    "data_batch_3": "e56532de152c7a77fc2a722499682f2699ce5177bbfac2ed2e415096184fa1d9",
    "data_batch_4": "bb996a8ffff861dd5cca88c397fdfb884f0c482c5588bd32cea3dc7b648709bb",
    "data_batch_5": "efb6334c7c1f88ac69032959408d9eeccb983002e83119b66de7309d3d2c7915",
    "test_batch": "8193b3fbce55bec361cd1b8fd4880cb1649832dc4d6de6da1e7a21847a4843aa",
}
# What numpy, zip files and Pillow say of a file that is none, or not there whole.
UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, NotImplementedError, BadZipFile)


def fingerprint(pictures: NDArray[np.uint8], labels: NDArray[np.uint8]) -> str:
    """What tells a sheet [N, 32, 32, 3] with its labels [N] from any other."""
    return hashlib.sha256(pictures.tobytes() + labels.tobytes()).hexdigest()


def present(folder: Path, names: Iterable[str] = TRAIN) -> list[str]:
    """Which of the sheets lie in a folder."""
    return [name for name in names if (folder / f"{name}.npz").exists()]


def read_sheet(path: Path, expected: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pictures [N, 32, 32, 3] and labels [N] of a packed sheet, if they are those that are expected."""

    def decoded(k: int) -> NDArray[np.uint8]:
        strip = Image.open(io.BytesIO(data[offsets[k] : offsets[k + 1]].tobytes()))
        return np.asarray(strip.convert("RGB")).reshape(-1, SIZE, SIZE, 3)

    try:
        with path.open("rb") as opened, np.load(opened) as file:
            data, offsets, labels = file["data"], file["off"], file["labels"]
        with ThreadPoolExecutor() as pool:
            pictures = np.concatenate(list(pool.map(decoded, range(len(offsets) - 1))))
    except UNREADABLE as error:
        raise DataError(f"{path} is no packed sheet of CIFAR-10 ({error}); pack_cifar.py makes it.") from error
    if fingerprint(pictures, labels) != expected:
        raise DataError(f"{path} does not hold the pictures that it should; make it again with pack_cifar.py.")
    return pictures, labels


def read(folder: Path, names: Iterable[str]) -> tuple[Tensor, Tensor]:
    """Pictures uint8 [N, 3, 32, 32] and classes [N] of several sheets."""
    sheets = [read_sheet(folder / f"{name}.npz", FINGERPRINTS[name]) for name in names]
    if not sheets:
        raise DataError(f"{folder} holds no sheet of CIFAR-10; pack_cifar.py makes them.")
    pictures = torch.from_numpy(np.concatenate([own for own, _ in sheets])).permute(0, 3, 1, 2)
    return pictures.contiguous(), torch.from_numpy(np.concatenate([labels for _, labels in sheets])).long()


def scaled(pictures: Tensor) -> Tensor:
    """Bytes as numbers in [-1, 1]."""
    return pictures.float() / 127.5 - 1
