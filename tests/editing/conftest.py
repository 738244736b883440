"""A world in which edits can be worked out by hand: w = z, and words are coordinates of it."""

from __future__ import annotations

import pytest
import torch

import lace
from lace.attributes.schema import Continuous, Discrete


@pytest.fixture(scope="session")
def plain() -> lace.Model:
    """tall = z0 and wide = z1 in [-6, 6], sigma 0.5; high is nearly tall; round is sigmoid(2 z2)."""

    def draw(w: torch.Tensor) -> torch.Tensor:
        return w[:, :3, None, None].expand(-1, 3, 8, 8).tanh()

    def curved(w: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.zeros_like(w[:, 2]), 2 * w[:, 2]], dim=1)

    attributes = [
        (Continuous("tall", -6, 6, sigma=0.5), lambda w: w[:, 0]),
        (Continuous("wide", -6, 6, sigma=0.5), lambda w: w[:, 1]),
        (Continuous("high", -6, 6, sigma=0.5), lambda w: 0.9 * w[:, 0] + 0.1 * w[:, 3]),
        (Discrete("round"), curved),
    ]
    return lace.Model(lace.FunctionGenerator(draw, latent_dim=6), attributes, bank_size=2**12)
