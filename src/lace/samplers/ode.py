"""LACE-ODE: the paper's flow by an adaptive Runge-Kutta method (Eq. 8; Dormand and Prince, 1980).

    dz/dt = beta(t) / 2  grad E(c|z),   t from T = 1 down to 0        (dz/ds = -grad E: see lace.samplers.schedule)
    z' = z + h sum_i b_i k_i,   error = h sum_i (b_i - b*_i) k_i,   accepted if |error / (atol + rtol |z|)|_rms <= 1

The flow goes downhill from where it starts: it is a map of prior draws towards the nearest peak, not a sampler of the
posterior, and it draws from N(0, I) what the condition does not touch. Every walk has a step size of its own, so that
its end does not depend on its neighbours; ``shared`` gives all the same, as the released code does.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import ValueRangeError
from .base import BATCH, Counted, Noise, Walk
from .schedule import PAPER, Schedule

__all__ = ["Ode"]

# The tableau: times, weights of the earlier slopes, and the error of the last row of them.
TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
WEIGHTS = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
# A flow that needs more steps than this has run into a wall.
STEPS = 10_000


class Flow(NamedTuple):
    """Walks at z after the time ``spent`` of their own, with the speed there and the step to try next."""

    z: Tensor
    spent: Tensor
    speed: Tensor
    size: Tensor


class Ode(Walk):
    """The flow with the error kept within ``atol`` + ``rtol`` |z| at every step."""

    name = "ode"

    def __init__(
        self,
        atol: float = 1e-3,
        rtol: float = 1e-3,
        schedule: Schedule = PAPER,
        shared: bool = False,
        batch: int = BATCH,
    ) -> None:
        super().__init__(STEPS, batch)
        if not (atol > 0 and rtol >= 0):
            raise ValueRangeError("atol must be above 0 and rtol at least 0.")
        self.atol, self.rtol, self.schedule, self.shared = atol, rtol, schedule, shared

    @classmethod
    def authors(cls) -> Ode:
        """The released code for faces: one step size for the batch, and a stop just short of t = 0."""
        return cls(schedule=Schedule(end=1e-3), shared=True)

    @property
    def time(self) -> float:
        """How long the flow takes."""
        return self.schedule.duration - self.schedule.end

    def speed(self, target: Counted, z: Tensor, spent: Tensor) -> Tensor:
        """dz/d(spent) = beta / 2 grad log p."""
        return self.schedule.beta(self.schedule.duration - spent)[:, None] / 2 * target.slope(z)[1]

    def begin(self, target: Counted, z: Tensor) -> Flow:
        """The first step's size: such that an Euler step and its change of speed stay small (Hairer et al., II.4)."""
        spent = z.new_zeros(len(z))
        speed = self.speed(target, z, spent)
        scale = self.atol + self.rtol * z.abs()
        far, fast = self._norm(z / scale), self._norm(speed / scale)
        trial = torch.where((far < 1e-5) | (fast < 1e-5), 1e-6, 0.01 * far / fast)
        later = self.speed(target, z + trial[:, None] * speed, spent + trial)
        bend = self._norm((later - speed) / scale) / trial
        steep = torch.maximum(fast, bend)
        size = torch.where(steep <= 1e-15, (trial * 1e-3).clamp_min(1e-6), (0.01 / steep) ** 0.2)
        return Flow(z, spent, speed, torch.minimum(100 * trial, size))

    def step(self, target: Counted, place: Flow, noise: Noise) -> tuple[Flow, Tensor]:
        going = (place.spent < self.time).nonzero()[:, 0]
        here = Flow(*(part[going] for part in place))
        there, ratio = self._try(target, here)
        good = ratio <= 1
        factor = (SAFETY * ratio ** (-1 / 5)).clamp(SHRINK, GROW)
        grown = here.size * torch.where(good, factor.clamp_min(1.0), factor)
        taken = Flow(*(torch.where(_like(good, new), new, old) for new, old in zip(there, here, strict=True)))
        parts = [part.index_copy(0, going, new) for part, new in zip(place, taken._replace(size=grown), strict=True)]
        if noise.step + 1 == self.steps:
            raise ValueRangeError(f"The flow is not at its end after {self.steps:,} steps; give larger tolerances.")
        return Flow(*parts), good

    def _try(self, target: Counted, here: Flow) -> tuple[Flow, Tensor]:
        """One step of each walk, not beyond the end, and its error over what is allowed."""
        size = torch.minimum(here.size, self.time - here.spent)
        slopes, z = [here.speed], here.z
        for time, weights in zip(TIMES, WEIGHTS, strict=True):
            z = here.z + size[:, None] * sum(b * k for b, k in zip(weights, slopes, strict=True))
            slopes.append(self.speed(target, z, here.spent + time * size))
        error = size[:, None] * sum(e * k for e, k in zip(ERROR, slopes, strict=True))
        allowed = self.atol + self.rtol * torch.maximum(here.z.abs(), z.abs())
        last = size >= self.time - here.spent
        spent = torch.where(last, self.time, here.spent + size)
        return Flow(z, spent, slopes[-1], size), self._norm(error / allowed).nan_to_num(torch.inf)

    def arrived(self, place: Flow) -> bool:
        return bool((place.spent >= self.time).all())

    def _norm(self, rows: Tensor) -> Tensor:
        squares = rows.square().mean(dim=1)
        return (squares.mean().expand_as(squares) if self.shared else squares).sqrt()


def _like(mask: Tensor, rows: Tensor) -> Tensor:
    return mask.view(-1, *[1] * (rows.dim() - 1))
