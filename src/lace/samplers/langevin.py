"""LACE-LD: Langevin steps in the latent space, with a noise of their own choosing (section 4 of the paper).

    z <- z - d eta grad [E(c|z) + |z|^2 / 2] + sigma v,   v ~ N(0, I),   d = 1/2

Only sigma = sqrt(2 d eta) leaves the posterior (nearly) as it is. The paper takes sigma = eta = 0.01, a tenth of that:
its walks run at a temperature of sigma^2 / (2 d eta) = 0.01 and end near the nearest peak.
"""

from __future__ import annotations

import math

from ..errors import ValueRangeError
from .base import BATCH, Counted, Noise, Place, Walk, posterior_slope

__all__ = ["Langevin"]


class Langevin(Walk):
    """``steps`` steps of size ``eta``; ``sigma`` None is the noise that the posterior asks for."""

    name = "langevin"

    def __init__(
        self, steps: int = 100, eta: float = 0.01, sigma: float | None = 0.01, drift: float = 0.5, batch: int = BATCH
    ) -> None:
        super().__init__(steps, batch)
        for name, value in (("eta", eta), ("drift", drift)):
            if not value > 0:
                raise ValueRangeError(f"{name} must be above 0, not {value:g}.")
        self.eta, self.drift = eta, drift
        self.sigma = math.sqrt(2 * drift * eta) if sigma is None else sigma

    @classmethod
    def authors(cls) -> Langevin:
        """The released code drifts by eta, not by eta / 2."""
        return cls(drift=1.0)

    def step(self, target: Counted, place: Place, noise: Noise) -> tuple[Place, None]:
        drift = self.drift * self.eta * posterior_slope(target, place.z)
        return Place(place.z + drift + self.sigma * noise.normal(place.z.shape[1])), None
