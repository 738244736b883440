"""Level sets: the prior, cut off where the condition is not met clearly enough (Au and Beck, 2001, without the chain).

    keep z ~ N(0, I) if m(z) >= t      =>   z ~ N(z; 0, I) 1{m(z) >= t} / Z

m is the margin of the heads' best guess (see :mod:`lace.conditions.margin`), and t is fixed beforehand so that a
fraction q of the draws that obey (m > 0) pass. A smaller q buys accuracy with diversity, monotonically.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import UnsatisfiableCondition, ValueRangeError
from .base import MAX_DRAWS, Filter, Target

__all__ = ["LevelSet", "threshold"]


class LevelSet(Filter):
    """Keep the draws whose margin reaches ``threshold``."""

    name = "level-set"
    is_rising = True

    def __init__(
        self,
        threshold: float,
        max_draws: int = MAX_DRAWS,
        chunks: tuple[int, int] | None = None,
        share: float | None = None,
    ) -> None:
        super().__init__(max_draws, chunks, share)
        self.threshold = threshold

    def step(self, target: Target, seed: int, index: Tensor) -> Tensor:
        return target.margin_at(seed, index) >= self.threshold


def threshold(margins: Tensor, q: float) -> float:
    """The margin that the top fraction q of the obeying draws reach, from the margins of many prior draws."""
    if not 0 < q <= 1:
        raise ValueRangeError(f"q is a fraction above 0 and at most 1, not {q:g}.")
    obeying = margins[margins > 0].sort().values
    if not len(obeying):
        raise UnsatisfiableCondition("No draw obeys.")
    # The smallest positive number stands for "every draw that obeys".
    return float(obeying[int((1 - q) * len(obeying))]) if q < 1 else torch.finfo(torch.float32).tiny
