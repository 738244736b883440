"""Elliptical slice sampling: moves along ellipses through the prior, without a setting to tune (Murray, 2010).

    v ~ N(0, I),   log y = gamma log p(c|z) + log u
    z' = z cos t + v sin t,   t uniform on a bracket of one turn that shrinks towards 0 until gamma log p(c|z') > log y

Every z' on the ellipse is as likely under N(0, I) as z is, so only the condition decides, and the posterior stays as it
is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import ValueRangeError
from .base import BATCH, Counted, Noise, Walk

__all__ = ["Elliptical", "Known", "elliptical_move"]

# A bracket is cut about in half each time, so that few walks are left after ten. One that finds nothing stays where it
# is, which is as reversible as any move.
SHRINKS = 24


class Known(NamedTuple):
    """Walks at z, where log p(c|z) is ``value``."""

    z: Tensor
    value: Tensor


def elliptical_move(target: Counted, place: Known, gamma: float, noise: Noise) -> tuple[Known, Tensor]:
    """One move of each walk under N(z; 0, I) p(c|z)^gamma, and which of them found a new place."""
    z, value = place.z.clone(), place.value.clone()
    v, u = noise.normal(z.shape[1]), noise.uniforms(SHRINKS + 2)
    level = gamma * value + u[:, 0].log()
    high = 2 * math.pi * u[:, 1]
    low, angle = high - 2 * math.pi, high
    left = torch.arange(len(z), device=z.device)
    for k in range(SHRINKS):
        proposed = place.z[left] * angle.cos()[:, None] + v[left] * angle.sin()[:, None]
        reached = target.value(proposed, left)
        found = gamma * reached > level[left]
        there, others = found.nonzero()[:, 0], found.logical_not().nonzero()[:, 0]
        z[left[there]], value[left[there]] = proposed[there], reached[there]
        left, angle, low, high = left[others], angle[others], low[others], high[others]
        if not len(left):
            break
        low, high = torch.where(angle < 0, angle, low), torch.where(angle < 0, high, angle)
        angle = low + (high - low) * u[left, k + 2]
    moved = torch.ones(len(z), dtype=torch.bool, device=z.device)
    moved[left] = False
    return Known(z, value), moved


class Elliptical(Walk):
    """Walks of elliptical moves; after enough steps each is one independent draw of the posterior."""

    name = "elliptical"

    def __init__(self, steps: int = 100, gamma: float = 1.0, batch: int = BATCH) -> None:
        super().__init__(steps, batch)
        if not gamma > 0:
            raise ValueRangeError(f"gamma must be above 0, not {gamma:g}.")
        self.gamma = gamma

    def begin(self, target: Counted, z: Tensor) -> Known:
        return Known(z, target.value(z))

    def step(self, target: Counted, place: Known, noise: Noise) -> tuple[Known, Tensor]:
        return elliptical_move(target, place, self.gamma, noise)
