"""Euler: the paper's flow in steps of fixed size (appendix, "Ablation on a simple Euler method").

    dz/dt = beta(t) / 2  grad E(c|z),   beta(t) = beta_min + (beta_max - beta_min) t,   t from T = 1 down to 0
    z <- z - h beta(t) / 2  grad E(c|z)

Like the flow itself (see :mod:`lace.samplers.ode`) it goes downhill and does not sample the posterior.
"""

from __future__ import annotations

from ..errors import ValueRangeError
from .base import BATCH, Counted, Noise, Place, Walk
from .schedule import PAPER, Schedule

__all__ = ["Euler"]


class Euler(Walk):
    """1 / step_size steps along the flow."""

    name = "euler"

    def __init__(self, step_size: float = 1e-2, schedule: Schedule = PAPER, batch: int = BATCH) -> None:
        if not 0 < step_size <= schedule.duration:
            raise ValueRangeError(f"step_size lies between 0 and {schedule.duration:g}, not {step_size:g}.")
        super().__init__(round(schedule.duration / step_size), batch)
        self.step_size = schedule.duration / self.steps
        self.schedule = schedule

    @classmethod
    def authors(cls) -> Euler:
        """The released code passes no step size to its solver, which then takes one step."""
        return cls(1.0)

    def step(self, target: Counted, place: Place, noise: Noise) -> tuple[Place, None]:
        t = self.schedule.duration - noise.step * self.step_size
        speed = self.schedule.beta(t) / 2
        return Place(place.z + self.step_size * speed * target.slope(place.z)[1]), None
