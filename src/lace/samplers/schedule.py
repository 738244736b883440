"""The paper's schedule: how fast the flow goes at time t.

    beta(t) = beta_min + (beta_max - beta_min) t / T,   t from T down to 0

The energy does not depend on t, so a schedule only winds the clock: the flow ends where dz/ds = -grad E is after
s = T (beta_min + beta_max) / 4, which is 5.025 for the paper's numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from ..errors import ValueRangeError

__all__ = ["PAPER", "Schedule"]

Time = TypeVar("Time", float, Tensor)


@dataclass(frozen=True)
class Schedule:
    """beta(t) from ``duration`` down to ``end``."""

    beta_min: float = 0.1
    beta_max: float = 20.0
    duration: float = 1.0
    end: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.beta_min <= self.beta_max and 0 <= self.end < self.duration):
            raise ValueRangeError("A schedule needs 0 < beta_min <= beta_max and 0 <= end < duration.")

    def beta(self, t: Time) -> Time:
        """The speed at time t."""
        return self.beta_min + (self.beta_max - self.beta_min) / self.duration * t

    @property
    def length(self) -> float:
        """How far the flow goes: the integral of beta / 2 from ``end`` to ``duration``."""
        return (self.duration - self.end) * (self.beta(self.duration) + self.beta(self.end)) / 4


PAPER = Schedule()
