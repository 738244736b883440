"""Which latents are labelled: addresses of a seed of their own, each with its own truncation.

    z ~ N(0, I) at (SEED, i),   psi ~ U(0.5, 1) where the generator has a truncation

So no picture that people draw was learned from, and a word is known at every psi that they may ask for.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import rng
from ..generators.base import Generator
from ..rng import Address

__all__ = ["PSI", "SEED", "latents", "latents_at", "truncation"]

SEED = 20211206
PSI = (0.5, 1.0)
CHUNK = 4096


def truncation(index: Tensor) -> Tensor:
    """The psi of each labelled draw."""
    return PSI[0] + (PSI[1] - PSI[0]) * rng.uniform(SEED, index, rng.TRUNCATION)


@torch.no_grad()
def latents(generator: Generator, index: Tensor) -> Tensor:
    """w of the labelled draws."""
    parts = [generator.truncated(generator.prior(SEED, rows), truncation(rows)) for rows in index.split(CHUNK)]
    return torch.cat(parts)


@torch.no_grad()
def latents_at(generator: Generator, addresses: Sequence[Address], psi: Tensor) -> Tensor:
    """w of any addresses; a psi [N] that is not a number stands for the generator's own."""
    z = psi.new_empty(len(addresses), generator.latent_dim)
    for seed in dict.fromkeys(address.seed for address in addresses):
        rows = [k for k, address in enumerate(addresses) if address.seed == seed]
        index = torch.tensor([addresses[k].index for k in rows], device=psi.device)
        z[rows] = generator.prior(seed, index).to(z)
    own = 1.0 if generator.psi is None else generator.psi
    pairs = zip(z.split(CHUNK), psi.nan_to_num(own).split(CHUNK), strict=True)
    return torch.cat([generator.truncated(*pair) for pair in pairs])
