"""Targets in R^64 whose posteriors are known in closed form or by one-dimensional quadrature.

Each depends on z through one coordinate x = a.z along a unit vector a, so that x has a known density and everything
across a stays standard normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lace.samplers.base import Target

DIM = 64
AXIS = torch.full((DIM,), DIM**-0.5)
GRID = torch.linspace(-9, 9, 200_001, dtype=torch.float64)


@dataclass(frozen=True)
class Problem:
    """log p(c | x) and the margin m(x) of a condition on x = a.z."""

    name: str
    log_prob: Callable[[Tensor], Tensor]
    margin: Callable[[Tensor], Tensor]

    def target(self) -> Target:
        return Target(DIM, lambda z: self.log_prob(z @ AXIS.to(z)), lambda z: self.margin(z @ AXIS.to(z)))

    def evidence(self) -> float:
        """P(c), by quadrature."""
        return float((normal_density(GRID) * self.log_prob(GRID).exp()).sum() * (GRID[1] - GRID[0]))

    def moments(self, weight: Callable[[Tensor], Tensor]) -> tuple[float, float]:
        """Mean and standard deviation of x under N(x) weight(x), normalised."""
        density = normal_density(GRID) * weight(GRID)
        density = density / density.sum()
        mean = (density * GRID).sum()
        return float(mean), float((density * (GRID - mean).square()).sum().sqrt())

    def posterior(self, gamma: float = 1.0) -> tuple[float, float]:
        """Mean and standard deviation of x under N(x) p(c | x)^gamma."""
        return self.moments(lambda x: (gamma * self.log_prob(x)).exp())

    def level(self, threshold: float) -> tuple[float, float]:
        """Mean and standard deviation of x where the margin reaches a threshold."""
        return self.moments(lambda x: (self.margin(x) >= threshold).double())


def normal_density(x: Tensor) -> Tensor:
    return (-x.square() / 2).exp() / math.sqrt(2 * math.pi)


LOGISTIC = Problem("logistic", lambda x: torch.nn.functional.logsigmoid(3 * x - 2), lambda x: 3 * x - 2)
# Soft evidence: the posterior is N(y / (1 + s^2), s^2 / (1 + s^2)).
GAUSSIAN = Problem("gaussian", lambda x: -(x - 1.5).square() / (2 * 0.5**2), lambda x: 0.5 - (x - 1.5).abs())
# Two modes, as an OR makes them.
TWO_MODES = Problem(
    "two modes",
    lambda x: torch.logaddexp(-(x - 2).square() / 0.32, -(x + 2).square() / 0.32) - math.log(2),
    lambda x: 0.4 - (x.abs() - 2).abs(),
)
ALL = (LOGISTIC, GAUSSIAN, TWO_MODES)
