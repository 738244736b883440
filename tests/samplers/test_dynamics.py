"""Langevin and predictor-corrector steps on a Gaussian target, where mean and variance can be followed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from lace.errors import ValueRangeError
from lace.samplers.base import Counted, Noise, Place, Samples, Target
from lace.samplers.langevin import Langevin
from lace.samplers.pc import PredictorCorrector
from tests.conftest import within
from tests.problems import AXIS, DIM, GAUSSIAN, LOGISTIC
from tests.samplers.test_filters import check_moments

N = 4000
# -grad [E + |z|^2 / 2] along the axis is 6 - 5 x: the posterior is N(1.2, 1 / 5).
PULL, CURVATURE = 6.0, 5.0


def check(samples: Samples, mean: float, variance: float) -> None:
    x = samples.z @ AXIS
    assert within(float(x.mean()), mean, math.sqrt(variance / N))
    assert within(float(x.var()), variance, variance * math.sqrt(2 / N))


def follow(steps: int, size: float, sigma: float) -> tuple[float, float]:
    """Mean and variance of x after steps x <- x + size (6 - 5 x) + sigma v, from N(0, 1)."""
    mean, variance = 0.0, 1.0
    for _ in range(steps):
        mean, variance = mean + size * (PULL - CURVATURE * mean), (1 - size * CURVATURE) ** 2 * variance + sigma**2
    return mean, variance


@pytest.mark.parametrize(
    ("walk", "size", "sigma"),
    [
        (Langevin(), 0.005, 0.01),
        (Langevin.authors(), 0.01, 0.01),
        (Langevin(30, 0.1, 0.2), 0.05, 0.2),
        (Langevin(300, 0.02, None), 0.01, math.sqrt(0.02)),
        (Langevin(300, 0.02, None, drift=1.0), 0.02, math.sqrt(0.04)),
    ],
    ids=["paper", "authors", "other", "right noise", "right noise for the authors' drift"],
)
def test_langevin_in_closed_form(walk: Langevin, size: float, sigma: float) -> None:
    check(walk(GAUSSIAN.target(), N, seed=31), *follow(walk.steps, size, sigma))


def test_the_right_noise_reaches_the_posterior_and_the_papers_does_not() -> None:
    right = Langevin(600, 0.01, None)(LOGISTIC.target(), N, seed=32)
    mean, sd = LOGISTIC.posterior()
    check_moments(right.z, mean, sd)
    paper = Langevin()(LOGISTIC.target(), N, seed=32).z @ AXIS
    assert float(paper.std()) < sd / 2
    assert float(Langevin()(LOGISTIC.target(), N, seed=32).z.norm(dim=1).mean()) < 0.7 * math.sqrt(DIM)


def betas(steps: int) -> list[float]:
    return [(0.1 + 19.9 * k / (steps - 1)) / steps for k in reversed(range(steps))]


@pytest.mark.parametrize("steps", [50, 200])
def test_the_predictor_in_closed_form(steps: int) -> None:
    """Without corrections x <- (2 - sqrt(1 - b)) x + b (6 - 5 x) + sqrt(b) v."""
    mean, variance = 0.0, 1.0
    for b in betas(steps):
        factor = 2 - math.sqrt(1 - b) - CURVATURE * b
        mean, variance = factor * mean + b * PULL, factor**2 * variance + b
    check(PredictorCorrector(steps, corrections=0)(GAUSSIAN.target(), N, seed=33), mean, variance)


def test_without_a_condition_the_prior_stays() -> None:
    """Each prediction adds about b^2 / 4 to the variance, so 1,000 of them leave it within 3 %."""
    free = Target(DIM, lambda z: 0 * z.sum(dim=1), lambda z: z[:, 0])
    z = PredictorCorrector(1000, corrections=0)(free, 500, seed=34).z
    assert float(z.var()) == pytest.approx(1, abs=0.03 + 4 * math.sqrt(2 / (500 * DIM)))


@pytest.mark.parametrize(("stale", "shared"), [(False, False), (True, False), (False, True), (True, True)])
def test_one_step_walk_by_walk(stale: bool, shared: bool) -> None:
    """The equations in plain Python, in double precision, for three walks with the same noise."""
    pc, noise = PredictorCorrector(100, 2, 0.05, stale=stale, shared=shared), Noise(35, torch.arange(3), 40)
    start = GAUSSIAN.target().prior(35, torch.arange(3)).double()
    v = noise.normal(3 * DIM).double().view(3, 3, DIM)
    b = betas(100)[40]

    def score(z: torch.Tensor) -> torch.Tensor:
        return (1.5 - z @ AXIS.double()) / 0.25 * AXIS.double() - z

    walks = list(start)
    scores = [score(z) for z in walks]
    walks = [
        (2 - math.sqrt(1 - b)) * z + b * s + math.sqrt(b) * n for z, s, n in zip(walks, scores, v[:, 0], strict=True)
    ]
    for k in (1, 2):
        scores = scores if stale else [score(z) for z in walks]
        noises = [float(n.norm()) for n in v[:, k]]
        norms = [float(s.norm()) for s in scores]
        if shared:
            noises, norms = [sum(noises) / 3] * 3, [sum(norms) / 3] * 3
        sizes = [2 * (1 - b) * (0.05 * a / c) ** 2 for a, c in zip(noises, norms, strict=True)]
        walks = [z + e * s + math.sqrt(2 * e) * n for z, e, s, n in zip(walks, sizes, scores, v[:, k], strict=True)]
    found, _ = pc.step(Counted(GAUSSIAN.target()), Place(start), noise)
    assert torch.allclose(found.z, torch.stack(walks), atol=1e-6)


def test_evaluations_are_counted() -> None:
    target = GAUSSIAN.target()
    assert PredictorCorrector(100)(target, 4).info.evaluations == 4 * 200
    assert PredictorCorrector.authors()(target, 4).info.evaluations == 4 * 100
    assert Langevin()(target, 4).info.evaluations == 4 * 100


def test_refusals() -> None:
    for bad in ({"steps": 10}, {"snr": 0.0}, {"corrections": -1}):
        with pytest.raises(ValueRangeError):
            PredictorCorrector(**bad)
    for bad in ({"eta": 0.0}, {"drift": -1.0}, {"steps": 0}):
        with pytest.raises(ValueRangeError):
            Langevin(**bad)
