"""Kernels that keep the posterior: reversible, leaving it as it is, and led to it from the prior."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lace.errors import ValueRangeError
from lace.samplers.base import Counted, Noise, Target, Walk
from lace.samplers.elliptical import SHRINKS, Elliptical, Known, elliptical_move
from lace.samplers.pcnl import Pcnl, Sloped
from lace.samplers.rejection import Rejection
from lace.samplers.smc import Cloud
from tests.conftest import within
from tests.problems import ALL, AXIS, DIM, GAUSSIAN, TWO_MODES, Problem
from tests.samplers.test_filters import check_moments

N = 8000


class Turning(Walk):
    """The particles' move as a walk."""

    name = "turning"

    def __init__(self, turn: float, gamma: float = 1.0) -> None:
        super().__init__(steps=1)
        self.turn, self.gamma = turn, gamma

    def begin(self, target: Counted, z: Tensor) -> Known:
        return Known(z, target.value(z))

    def step(self, target: Counted, place: Known, noise: Noise) -> tuple[Known, Tensor]:
        cloud = Cloud(target, place, noise)
        cloud.power = self.gamma
        taken = cloud.move(self.turn)
        return cloud._place, taken


KERNELS = {
    "turns": lambda: Turning(0.5),
    "turns, tempered": lambda: Turning(0.3, gamma=3.0),
    "turns by a right angle": lambda: Turning(math.pi / 2),
    "elliptical": Elliptical,
    "elliptical, tempered": lambda: Elliptical(gamma=3.0),
    "pcnl": lambda: Pcnl(step_size=0.8),
    "pcnl, tempered": lambda: Pcnl(step_size=0.4, gamma=3.0),
}
kernels = pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS)
problems = pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.name)


def moved(make: type[Walk], problem: Problem, seed: int) -> tuple[Tensor, Tensor, Walk]:
    """Exact draws of the posterior, one move later, and the kernel."""
    kernel, target = make(), problem.target()
    z = Rejection(kernel.gamma, max_draws=2**22)(target, N, seed).z
    counted = Counted(target)
    after, _ = kernel.step(counted, kernel.begin(counted, z), Noise(seed, torch.arange(N), 0))
    return z, after.z, kernel


@kernels
@problems
def test_one_move_leaves_the_posterior(make: type[Walk], problem: Problem) -> None:
    z, after, kernel = moved(make, problem, seed=11)
    assert not torch.equal(z, after)
    check_moments(after, *problem.posterior(kernel.gamma))


@kernels
@problems
def test_moves_are_reversible(make: type[Walk], problem: Problem) -> None:
    """E[f(x) g(x')] = E[g(x) f(x')] in equilibrium, for pairs of functions that tell directions apart."""
    z, after, _ = moved(make, problem, seed=12)
    x, y = (rows @ AXIS for rows in (z, after))
    for f, g in ((lambda t: t, torch.square), (torch.sin, torch.exp), (lambda t: (t > 1).float(), lambda t: t)):
        flow = f(x) * g(y) - g(x) * f(y)
        assert within(float(flow.mean()), 0, float(flow.std()) / math.sqrt(N))


WALKS = {"elliptical": Elliptical(60), "pcnl": Pcnl(120, step_size=0.5)}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
@pytest.mark.parametrize("problem", ALL[:2], ids=lambda problem: problem.name)
def test_walks_from_the_prior_reach_the_posterior(walk: Walk, problem: Problem) -> None:
    samples = walk(problem.target(), 4000, seed=13)
    check_moments(samples.z, *problem.posterior())
    assert 0.2 < samples.info.acceptance <= 1
    assert samples.addresses == []


def log_normal(x: Tensor, mean: Tensor, variance: float) -> Tensor:
    return -(x - mean).square().sum(dim=1) / (2 * variance)


@problems
def test_pcnl_ratio_is_the_ratio_of_densities(problem: Problem) -> None:
    """pi(z') q(z | z') / pi(z) q(z' | z), each density written out, in double precision."""
    kernel, counted = Pcnl(step_size=0.6, gamma=1.7), Counted(problem.target())
    here, there = (
        kernel.begin(counted, torch.randn(50, DIM, generator=torch.Generator().manual_seed(k), dtype=torch.float64))
        for k in (0, 1)
    )
    r = (2 - 0.6) / (2 + 0.6)

    def log_flow(a: Sloped, b: Sloped) -> Tensor:
        return a.value - a.z.square().sum(dim=1) / 2 + log_normal(b.z, r * a.z + (1 - r) * a.slope, 1 - r * r)

    assert torch.allclose(kernel.log_ratio(here, there), log_flow(there, here) - log_flow(here, there), atol=1e-8)


def test_ellipses_without_a_condition_are_independent_of_nothing_but_the_angle() -> None:
    """Every point of the ellipse is taken at once, and z cos t + v sin t keeps the norm in the mean."""
    free = Target(DIM, lambda z: torch.zeros(len(z)), lambda z: torch.ones(len(z)))
    counted, z = Counted(free), torch.randn(2000, DIM, generator=torch.Generator().manual_seed(3))
    place, found = elliptical_move(counted, Known(z, torch.zeros(2000)), 1.0, Noise(0, torch.arange(2000), 0))
    assert bool(found.all())
    assert counted.evaluations == 2000
    assert within(float(place.z.square().sum(dim=1).mean()), DIM, math.sqrt(2 * DIM / 2000))


def test_a_walk_that_finds_nothing_stays() -> None:
    """Nothing but the starting point obeys: after all shrinks the walk is where it was."""
    z = torch.randn(5, DIM, generator=torch.Generator().manual_seed(4))
    point = Target(DIM, lambda rows: torch.full((len(rows),), -math.inf), lambda rows: rows[:, 0])
    counted = Counted(point)
    place, found = elliptical_move(counted, Known(z, torch.zeros(5)), 1.0, Noise(0, torch.arange(5), 0))
    assert torch.equal(place.z, z)
    assert not bool(found.any())
    assert counted.evaluations == 5 * SHRINKS


def test_small_steps_are_accepted_and_large_ones_are_not() -> None:
    acceptance = [Pcnl(10, size)(GAUSSIAN.target(), 500).info.acceptance for size in (0.001, 0.1, 3.0)]
    assert acceptance[0] > 0.98
    assert acceptance == sorted(acceptance, reverse=True)


def test_walks_that_cannot_cross_keep_their_side() -> None:
    """Why rare sentences are not left to a walk: small moves between two modes take for ever."""
    z = torch.randn(500, DIM, generator=torch.Generator().manual_seed(5))
    z = z + (2 - z @ AXIS)[:, None] * AXIS
    kernel, counted = Pcnl(step_size=0.02), Counted(TWO_MODES.target())
    place = kernel.begin(counted, z)
    for step in range(20):
        place, _ = kernel.step(counted, place, Noise(5, torch.arange(500), step))
    assert float((place.z @ AXIS > 0).float().mean()) > 0.99


@pytest.mark.parametrize("bad", [{"steps": 0}, {"gamma": 0.0}, {"gamma": -1.0}, {"batch": 0}])
def test_refusals(bad: dict[str, float]) -> None:
    for kernel in (Elliptical, Pcnl):
        with pytest.raises(ValueRangeError):
            kernel(**bad)
    with pytest.raises(ValueRangeError):
        Pcnl(step_size=0)


def test_brackets_are_searched_with_numbers_of_their_own() -> None:
    """Where the first place on the ellipse is refused, the second is uniform on the bracket whatever the first was."""
    n, proposed = 10_000, []

    def log_prob(z: torch.Tensor) -> torch.Tensor:
        proposed.append(z)
        return torch.full((len(z),), -math.inf if len(proposed) == 1 else 0.0)

    noise, z = Noise(3, torch.arange(n), 0), torch.tensor([[1.0, 0.0]]).expand(n, 2)
    v = noise.normal(2)
    elliptical_move(Counted(Target(2, log_prob, log_prob)), Known(z, torch.zeros(n)), 1.0, noise)
    sines = [place[:, 1] / v[:, 1] for place in proposed[:2]]
    cosines = [place[:, 0] - v[:, 0] * sine for place, sine in zip(proposed, sines, strict=False)]
    first, second = (torch.atan2(sine, cosine) for sine, cosine in zip(sines, cosines, strict=True))
    shares = torch.stack([first, second - first]).remainder(2 * math.pi) / (2 * math.pi)
    for share in shares:
        assert within(float(share.mean()), 0.5, math.sqrt(1 / 12 / n))
    assert within(float(torch.corrcoef(shares)[0, 1]), 0, 1 / math.sqrt(n))
