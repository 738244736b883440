"""What LACE asks of a generator: three things.

prior:       z ~ N(0, I), addressed by (seed, index)
to_w:        z -> w, the representation that attributes are read from
to_picture:  w -> x, pictures [N, 3, H, W] in [-1, 1]
"""

from __future__ import annotations

import abc
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .. import rng

__all__ = ["Generator"]


class Generator(nn.Module, abc.ABC):
    """A frozen map from Gaussian noise to pictures.

    ``identity`` names everything that decides w (weights, truncation): what is computed from w is cached under it.
    A generator that takes a row of w for each of its styles [N, styles, dim] says in ``style_layers`` which layer of a
    StyleGAN2 each of them stands for: 0 for 4x4 pixels, 2k - 1 and 2k for 4 * 2^k.
    ``psi`` is the truncation, None where there is no such thing. ``is_pure`` says that ``to_w`` runs the same
    operations whatever z holds, so that a GPU may record them.
    """

    latent_dim: int
    identity: str
    style_layers: tuple[int, ...] | None = None
    psi: float | None = None
    is_pure = False

    @property
    def weights_identity(self) -> str:
        """``identity`` without the truncation: words learned at one psi are good at every other."""
        return self.identity

    def prior(self, seed: int, index: Tensor) -> Tensor:
        """The noise z at the addresses (seed, index), of shape [len(index), latent_dim]."""
        return rng.normal(seed, index, self.latent_dim)

    @abc.abstractmethod
    def to_w(self, z: Tensor) -> Tensor:
        """The representation on which attributes are read."""

    def swift(self, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
        """``to_w`` for a GPU, in few calls and in the arithmetic of ``dtype``; only of those that are pure."""
        return self.to_w

    def truncated(self, z: Tensor, psi: Tensor) -> Tensor:
        """w of latents, each truncated by a psi of its own [N]; the same as ``to_w`` where there is no truncation."""
        return self.to_w(z)

    @abc.abstractmethod
    def to_picture(self, w: Tensor) -> Tensor:
        """Pictures [N, 3, H, W], nominally in [-1, 1]."""
