"""What the steps after the generator's training share: its file, which latents are labelled, and its pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from cifar import WORK
from lace.attributes.annotators.judge import eight_bit
from lace.generators.stylegan2 import StyleGAN2
from lace.weights.imported import load_file_of

__all__ = ["GENERATOR", "LABELS", "SEED", "generator_in", "mapped", "pictures_of"]

GENERATOR, LABELS = WORK / "generator.safetensors", WORK / "labels.safetensors"
# Labelled latents are the addresses SEED:0, SEED:1, ...
SEED = 20211010
BATCH = 1024


def generator_in(path: Path, device: str) -> StyleGAN2:
    """The generator that export_generator.py wrote."""
    return load_file_of(path, 1.0, None, "write it again with export_generator.py").to(device)


@torch.inference_mode()
def mapped(generator: StyleGAN2, count: int, seed: int = SEED) -> Tensor:
    """w of the first addresses of a seed."""
    index = torch.arange(count, device=generator.w_mean.device)
    return torch.cat([generator.to_w(generator.prior(seed, rows)) for rows in index.split(2**15)])


@torch.inference_mode()
def pictures_of(generator: StyleGAN2, w: Tensor) -> Iterator[Tensor]:
    """Pictures [N, 3, 32, 32] in [-1, 1] as a PNG would hold them, batch by batch."""
    for rows in w.split(BATCH):
        yield eight_bit(generator.to_picture(rows))
