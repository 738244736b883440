"""pCNL: Langevin moves that leave the prior as it is whatever their size (Cotter, Roberts, Stuart and White, 2013).

    z' = r z + (1 - r) g(z) + sqrt(1 - r^2) v,   v ~ N(0, I),   r = (2 - d) / (2 + d)
    l(z) = gamma log p(c|z),   g = grad l,
    accepted with probability min(1, exp(a(z, z') - a(z', z))),
    a(z, z') = -l(z) - <z' - z, g(z)> / 2 - d <z' + z, g(z)> / 4 + d |g(z)|^2 / 4

Without a condition every move is taken. A small step d is nearly always accepted, and goes nowhere.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import ValueRangeError
from .base import BATCH, Counted, Noise, Walk

__all__ = ["Pcnl"]


class Sloped(NamedTuple):
    """Walks at z, with l and g there."""

    z: Tensor
    value: Tensor
    slope: Tensor


class Pcnl(Walk):
    """Walks of pCNL moves; after enough steps each is one independent draw of the posterior."""

    name = "pcnl"

    def __init__(self, steps: int = 200, step_size: float = 0.1, gamma: float = 1.0, batch: int = BATCH) -> None:
        super().__init__(steps, batch)
        for name, value in (("step_size", step_size), ("gamma", gamma)):
            if not value > 0:
                raise ValueRangeError(f"{name} must be above 0, not {value:g}.")
        self.step_size = step_size
        self.gamma = gamma

    def begin(self, target: Counted, z: Tensor) -> Sloped:
        value, slope = target.slope(z)
        return Sloped(z, self.gamma * value, self.gamma * slope)

    def step(self, target: Counted, place: Sloped, noise: Noise) -> tuple[Sloped, Tensor]:
        proposed = self.begin(target, self.propose(place, noise.normal(place.z.shape[1])))
        moved = noise.uniforms(1)[:, 0].log() < self.log_ratio(place, proposed)
        row = moved[:, None]
        return Sloped(
            torch.where(row, proposed.z, place.z),
            torch.where(moved, proposed.value, place.value),
            torch.where(row, proposed.slope, place.slope),
        ), moved

    def propose(self, place: Sloped, v: Tensor) -> Tensor:
        r = (2 - self.step_size) / (2 + self.step_size)
        return r * place.z + (1 - r) * place.slope + (1 - r * r) ** 0.5 * v

    def log_ratio(self, place: Sloped, proposed: Sloped) -> Tensor:
        """log of pi(z') q(z | z') / pi(z) q(z' | z)."""
        return self._half(place, proposed) - self._half(proposed, place)

    def _half(self, here: Sloped, there: Sloped) -> Tensor:
        """a(z, z') above."""
        d, slope = self.step_size / 4, here.slope
        inner = ((there.z - here.z) / 2 + d * (there.z + here.z) - d * slope) * slope
        return -here.value - inner.sum(dim=1)
