"""Rejection: exact and independent draws, without gradients.

    keep z ~ N(0, I) if u < p(c | z)^gamma,   u uniform      =>   z ~ N(z; 0, I) p(c | z)^gamma / Z

gamma = 1 is the posterior; a larger gamma asks for the condition gamma times over. The cost is 1 / P(c) draws a result.
"""

from __future__ import annotations

from torch import Tensor

from .. import rng
from ..errors import ConditionError, ValueRangeError
from .base import MAX_DRAWS, Filter, Target

__all__ = ["Rejection", "no_energies"]


class Rejection(Filter):
    """Accept a prior draw with probability p(c|z)^gamma."""

    name = "rejection"
    is_rising = True

    def __init__(
        self,
        gamma: float = 1.0,
        max_draws: int = MAX_DRAWS,
        chunks: tuple[int, int] | None = None,
        share: float | None = None,
    ) -> None:
        super().__init__(max_draws, chunks, share)
        if not gamma > 0:
            raise ValueRangeError(f"gamma must be above 0, not {gamma:g}.")
        self.gamma = gamma

    def step(self, target: Target, seed: int, index: Tensor) -> Tensor:
        if not target.is_probability:
            raise no_energies()
        return rng.uniform(seed, index).log() < self.gamma * target.log_prob_at(seed, index)


def no_energies() -> ConditionError:
    """The refusal of a condition that is no probability."""
    return ConditionError("Energies are no probabilities to accept a draw by; take smc, elliptical or pcnl.")
