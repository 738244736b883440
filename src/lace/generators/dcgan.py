"""DCGAN: the plainest of generators, with nothing between its noise and its picture (Radford et al., arXiv:1511.06434).

    x = tanh(up5(... relu(norm(up1(z))))),   five transposed convolutions 4x4: 100 numbers -> 4, 8, 16, 32, 64 pixels

Attributes are read from z itself. There is no truncation.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .base import Generator

__all__ = ["DCGAN"]

CHANNELS = (100, 512, 256, 128, 64, 3)


class DCGAN(Generator):
    """Pictures of 64x64 pixels from 100 numbers; norms are folded into the convolutions before them."""

    latent_dim = CHANNELS[0]

    def __init__(self, identity: str = "dcgan") -> None:
        super().__init__()
        self.identity = identity
        # The first makes 4x4 out of one place; each of the others doubles the size.
        strides = [(1, 0)] + [(2, 1)] * 4
        self.layers = nn.Sequential(
            *(nn.ConvTranspose2d(CHANNELS[k], CHANNELS[k + 1], 4, *stride) for k, stride in enumerate(strides))
        )
        self.requires_grad_(False).eval()

    def to_w(self, z: Tensor) -> Tensor:
        return z

    def to_picture(self, w: Tensor) -> Tensor:
        x = w[:, :, None, None]
        *inner, last = self.layers
        for layer in inner:
            x = F.relu(layer(x))
        return torch.tanh(last(x)).float()
