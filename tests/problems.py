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
# The same two modes at different heights: a walk that cannot cross gets the weights of its starts, not of the modes.
TRAP = Problem(
    "trap",
    lambda x: torch.logaddexp(-(x - 2.5).square() / 0.18, -(x + 1.5).square() / 0.18 - 1.5),
    lambda x: torch.maximum(0.3 - (x - 2.5).abs(), 0.3 - (x + 1.5).abs()),
)
ALL = (LOGISTIC, GAUSSIAN, TWO_MODES)


@dataclass(frozen=True)
class Conjunction:
    """An AND of one-dimensional problems on axes of their own: evidence multiplies, posteriors stay apart."""

    name: str
    parts: tuple[Problem, ...]

    def target(self) -> Target:
        def log_prob(z: Tensor) -> Tensor:
            return torch.stack([part.log_prob(z[:, k]) for k, part in enumerate(self.parts)]).sum(dim=0)

        def margin(z: Tensor) -> Tensor:
            return torch.stack([part.margin(z[:, k]) for k, part in enumerate(self.parts)]).amin(dim=0)

        return Target(DIM, log_prob, margin)

    def evidence(self) -> float:
        return math.prod(part.evidence() for part in self.parts)


STEEP = Problem("steep", lambda x: torch.nn.functional.logsigmoid(6 * x - 12), lambda x: 6 * x - 12)
# P(c) is 1.7e-5.
RARE = Conjunction("rare", (STEEP, STEEP, LOGISTIC, GAUSSIAN))
