"""Checkpoints of StyleGAN2 in any of their forms, told apart by their first bytes and by what is in them.

The file is mapped into memory, not read: weights that nobody asks for, such as a discriminator's, are never touched.
"""

from __future__ import annotations

import mmap
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from ..errors import DataError, WeightsError
from ..generators.stylegan2 import Config
from . import nvidia, rosinality, tensorflow
from .archives import Archive, read_legacy, read_zip
from .pickles import Made, load
from .safe import card_of, header_of, tensors_of
from .stylegan2 import Found, config_of, own_weights, weights_of
from .tensors import Hoard

__all__ = ["plain", "read"]

PICKLE, ZIP = b"\x80", b"PK\x03\x04"
# What torch.save wrote before PyTorch 1.6 begins with the pickle of this number.
LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


def read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A card that says what a checkpoint is, and its generator's weights; nothing in the file is run."""
    if not path.is_file():
        raise WeightsError(f"There is no file {path}.")
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path} cannot be read ({error}).") from error
    try:
        return generator_in(data)
    except (WeightsError, DataError) as error:
        raise WeightsError(plain(f"{path.name} cannot be used: {str(error).rstrip('.')}.", 400)) from error


def plain(text: object, longest: int = 200) -> str:
    """Text out of a file as it may be shown on a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text)[:longest])


def generator_in(data: memoryview) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The card and the weights of the generator in a file's bytes."""
    if bytes(data[8:9]) == b"{" and bytes(data[:1]) != PICKLE:
        header, numbers = header_of(data)
        if card_of(header).get("generator") == "stylegan2":
            card, tensors = card_of(header), tensors_of(header, numbers, Hoard(len(data)))
            return card, own_weights(tensors, Config.from_json(card.get("config")))
    found = found_in(data)
    config = config_of(found)
    card = {"generator": "stylegan2", "kind": found.kind, "training_set": found.training_set}
    return {**card, "config": asdict(config)}, weights_of(found, config)


def found_in(data: memoryview) -> Found:
    """Tell the forms apart."""
    start = bytes(data[:16])
    if start[:4] == ZIP:
        return of_archive(read_zip(data), data)
    if start.startswith(LEGACY):
        return of_archive(read_legacy(data), data)
    if start[:1] == PICKLE:
        return of_root(load(data)[0], Hoard(len(data)))
    if start[8:9] == b"{":
        hoard = Hoard(len(data))
        return of_root(tensors_of(*header_of(data), hoard), hoard)
    raise WeightsError(
        "it is neither a pickle, nor a file of PyTorch's torch.save, nor safetensors; unpack it if it is packed"
    )


def of_archive(archive: Archive, data: memoryview) -> Found:
    return of_root(archive.root, Hoard(len(data), archive.storages))


def of_root(root: Any, hoard: Hoard) -> Found:
    """Tell whose checkpoint an object is."""
    if isinstance(root, tuple) and len(root) == 3 and all(map(tensorflow.is_network, root)):
        return tensorflow.read(root, hoard)
    if isinstance(root, Made):
        root = {"G_ema": root}
    if isinstance(root, dict) and isinstance(root.get("G_ema"), Made):
        return nvidia.read(root, hoard)
    if isinstance(root, dict) and rosinality.is_state(root.get("g_ema")):
        return rosinality.read(root["g_ema"], root.get("latent_avg"), hoard)
    if rosinality.is_state(root):
        return rosinality.read(root, None, hoard)
    if isinstance(root, dict) and "synthesis.b4.const" in root:
        return Found(
            "StyleGAN2, weights by NVIDIA's names", {name: hoard.stored(value) for name, value in root.items()}
        )
    raise WeightsError("it holds no generator that LACE knows (NVIDIA's G_ema, or rosinality's g_ema)")
