"""LACE-ODE: the paper's flow by an adaptive Runge-Kutta method (Eq. 8; see lace.dormand_prince).

    dz/dt = beta(t) / 2  grad E(c|z),   t from T = 1 down to 0        (dz/ds = -grad E: see lace.samplers.schedule)

The flow goes downhill from where it starts: it is a map of prior draws towards the nearest peak, not a sampler of the
posterior, and it draws from N(0, I) what the condition does not touch. Every walk has a step size of its own, so that
its end does not depend on its neighbours; ``shared`` gives all the same, as the released code does.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ..dormand_prince import STEPS, DormandPrince, Flow, Speed, endless
from .base import BATCH, Counted, Noise, Walk
from .schedule import PAPER, Schedule

__all__ = ["Ode"]


class Way(NamedTuple):
    """How far along the flow walks are; ``z`` is their place."""

    flow: Flow

    @property
    def z(self) -> Tensor:
        return self.flow.all


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
        self._solver = DormandPrince(atol, rtol, shared)
        self.atol, self.rtol, self.schedule, self.shared = atol, rtol, schedule, shared

    @classmethod
    def authors(cls) -> Ode:
        """The released code for faces: one step size for the batch, and a stop just short of t = 0."""
        return cls(schedule=Schedule(end=1e-3), shared=True)

    @property
    def time(self) -> float:
        """How long the flow takes."""
        return self.schedule.duration - self.schedule.end

    def speed(self, target: Counted) -> Speed:
        """dz/d(spent) = beta / 2 grad log p."""

        def at(z: Tensor, spent: Tensor, rows: Tensor) -> Tensor:
            return self.schedule.beta(self.schedule.duration - spent)[:, None] / 2 * target.slope(z, rows)[1]

        return at

    def begin(self, target: Counted, z: Tensor) -> Way:
        return Way(self._solver.begin(self.speed(target), z))

    def step(self, target: Counted, place: Way, noise: Noise) -> tuple[Way, Tensor]:
        flow, good = self._solver.step(self.speed(target), place.flow, self.time)
        if noise.step + 1 == self.steps:
            raise endless(self.steps)
        return Way(flow), good

    def arrived(self, place: Way) -> bool:
        return not place.flow.going.any()
