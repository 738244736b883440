"""Walks that each have a condition of their own."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lace.samplers.base import Target
from lace.samplers.elliptical import Elliptical
from lace.samplers.ode import Ode
from lace.samplers.pcnl import Pcnl

from ..conftest import within

DIM, SD = 4, 0.5


class Own(Target):
    """log p(c_k|z) = -|z - m_k|^2 / (2 SD^2): the posterior of walk k is N(m_k / (1 + SD^2), SD^2 / (1 + SD^2))."""

    def __init__(self, places: Tensor) -> None:
        super().__init__(DIM, self._refuse, self._refuse)
        self.places = places

    def _refuse(self, z: Tensor) -> Tensor:
        raise AssertionError("asked without saying of whom")

    def log_prob_of(self, z: Tensor, index: Tensor | None) -> Tensor:
        assert index is not None
        return -(z - self.places[index, None]).square().sum(dim=1) / (2 * SD**2)


@pytest.mark.parametrize("sampler", [Elliptical(200, batch=300), Pcnl(150, 0.3, batch=300)])
def test_every_walk_reaches_its_own_posterior(sampler: Elliptical | Pcnl) -> None:
    n = 1000
    places = torch.tensor([-2.0, 0.0, 2.0, 4.0]).repeat(n // 4)
    z = sampler(Own(places), n, seed=1).z.double()
    variance = SD**2 / (1 + SD**2)
    for place in (-2.0, 0.0, 2.0, 4.0):
        own = z[places == place].flatten()
        assert within(float(own.mean()), place / (1 + SD**2), math.sqrt(variance / len(own)))
        assert within(float(own.var()), variance, variance * math.sqrt(2 / len(own)))


def test_the_flow_of_every_walk_is_its_own() -> None:
    """Each walk needs another number of steps, so that the solver goes on with some of them."""
    places = torch.tensor([0.0, 1.0, 20.0, -300.0])
    ode = Ode(1e-6, 1e-6)
    target = Own(places)
    start = target.prior(0, torch.arange(4))
    expected = places[:, None] + (start - places[:, None]) * math.exp(-ode.schedule.length / SD**2)
    assert torch.allclose(ode(target, 4).z, expected, atol=1e-3)
