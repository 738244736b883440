"""LACE-PC: predictor and corrector on the reverse VP-SDE (appendix; Song et al., arXiv:2011.13456).

s(z) = -grad [E(c|z) + |z|^2 / 2],   b_i = beta(i) / N,   i = N ... 1
predictor:  z <- (2 - sqrt(1 - b_i)) z + b_i s(z) + sqrt(b_i) v
corrector:  z <- z + e s(z) + sqrt(2 e) v,   e = 2 (1 - b_i) (r |v| / |s(z)|)^2,   M times
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import ValueRangeError
from .base import BATCH, Counted, Noise, Place, Walk, posterior_slope
from .schedule import PAPER, Schedule

__all__ = ["PredictorCorrector"]


class PredictorCorrector(Walk):
    """``steps`` predictions (N), each followed by ``corrections`` (M) at a signal-to-noise ratio ``snr`` (r).

    ``stale`` corrects with the predictor's score in place of a new one, and ``shared`` sizes a correction by the mean
    norms of the whole batch, so that walks depend on their neighbours: the released code does both.
    """

    name = "pc"

    def __init__(
        self,
        steps: int = 100,
        corrections: int = 1,
        snr: float = 0.05,
        schedule: Schedule = PAPER,
        stale: bool = False,
        shared: bool = False,
        batch: int = BATCH,
    ) -> None:
        super().__init__(steps, batch)
        if corrections < 0 or not snr > 0:
            raise ValueRangeError("corrections must be at least 0 and snr above 0.")
        if schedule.beta_max > steps:
            raise ValueRangeError(f"steps must be at least beta_max = {schedule.beta_max:g}, or a step is too long.")
        self.corrections, self.snr, self.schedule = corrections, snr, schedule
        self.stale, self.shared = stale, shared
        self._betas = torch.linspace(schedule.beta_min, schedule.beta_max, steps).flip(0) / steps

    @classmethod
    def authors(cls, steps: int = 100) -> PredictorCorrector:
        """As the released code does it."""
        return cls(steps, stale=True, shared=True)

    def step(self, target: Counted, place: Place, noise: Noise) -> tuple[Place, None]:
        z, beta = place.z, float(self._betas[noise.step])
        v = noise.normal(z.shape[1] * (1 + self.corrections)).unflatten(1, (-1, z.shape[1])).unbind(1)
        score = posterior_slope(target, z)
        z = (2 - (1 - beta) ** 0.5) * z + beta * score + beta**0.5 * v[0]
        for each in v[1:]:
            score = score if self.stale else posterior_slope(target, z)
            size = 2 * (1 - beta) * (self.snr * self._norm(each) / self._norm(score)).square()
            z = z + size * score + (2 * size).sqrt() * each
        return Place(z), None

    def _norm(self, rows: Tensor) -> Tensor:
        norms = rows.norm(dim=1, keepdim=True).clamp_min(torch.finfo(rows.dtype).tiny)
        return norms.mean() if self.shared else norms
